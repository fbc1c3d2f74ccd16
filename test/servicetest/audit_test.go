package servicetest

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/test/need"
)

// The pages of a list of findings are of one audit, as long as nothing has changed; what has
// changed is audited again.
func TestAuditIsKept(t *testing.T) {
	s, served := start(t, "sim", t.TempDir())
	do(t, s, provider, resource.PutTenant{Tenant: resource.Tenant{Name: "red"}})
	look := func(p audit.Profile, read bool) (*audit.Report, time.Time) {
		t.Helper()
		var r *audit.Report
		var at time.Time
		var err error
		need.Eventually(t, need.Patience, "the fabric has been read", func() bool {
			r, at, err = served.Audit(t.Context(), p, read)
			return err != service.ErrNotRead
		})
		if err != nil {
			t.Fatal(err)
		}
		return r, at
	}
	basic, err := audit.ParseProfile("basic")
	if err != nil {
		t.Fatal(err)
	}
	strict, err := audit.ParseProfile("strict")
	if err != nil {
		t.Fatal(err)
	}
	first, begin := look(basic, false)
	if again, at := look(basic, false); at.Equal(begin) && again != first {
		t.Error("the same snapshot was audited twice")
	}
	if other, _ := look(strict, false); other == first || len(other.Skipped) > 0 {
		t.Error("an audit with another profile is the same audit")
	}
	// What only an audit looks at is unknown until it is read, and then it is not.
	whole, _ := look(basic, true)
	if first.Counts.Unknown == 0 || whole.Counts.Unknown >= first.Counts.Unknown || len(whole.Passed) <= len(first.Passed) {
		t.Errorf("unknown are %d, and %d after all was read; %d checks pass, and %d then", first.Counts.Unknown, whole.Counts.Unknown, len(first.Passed), len(whole.Passed))
	}
	if again, _ := look(basic, false); again == whole {
		t.Error("who does not ask for more to be read is told of more")
	}
	do(t, s, provider, resource.PutPartition{Partition: resource.Partition{PKey: 0x123, Name: "training"}})
	if after, at := look(basic, false); after == first || !at.After(begin) {
		t.Errorf("after a change the audit is that of %v, of what was read at %v", begin, at)
	}
}
