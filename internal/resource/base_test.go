package resource_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// TestNumbersOfTheBase: a partition of the base has the number that it states, or the one that it
// was given, and nobody else gets it; a number that was given to one that is not there any more is
// free, and once there is a file the base counts no more.
func TestNumbersOfTheBase(t *testing.T) {
	b := &bench{t, resource.New(&policy.Policy{Default: policy.Limited, Partitions: []policy.Partition{{Name: "given"}, {Name: "stated", PKey: 2}, {Name: "neither"}}}), time.Unix(1e9, 0)}
	b.Allocated = map[string]ib.PKeyBase{"given": 1, "stated": 9, "gone": 4}
	claimed := func(want string) {
		t.Helper()
		got := ""
		for k := ib.PKeyBase(0); k < 10; k++ {
			if name, is := b.Claimed(k); is || name != "" {
				got += fmt.Sprintf("%d %s %v, ", k, name, is)
			}
		}
		if got != want {
			t.Errorf("claimed: %s; want %s", got, want)
		}
	}
	claimed("1 given true, 2 stated true, 9 stated true, ")
	declared := func(want string) {
		t.Helper()
		got := ""
		for k := ib.PKeyBase(0); k < 20; k++ {
			if p := b.Declared()[k]; p != nil {
				got += fmt.Sprintf("%d %s, ", k, p.Name)
			}
		}
		if got != want {
			t.Errorf("declared: %s; want %s", got, want)
		}
	}
	declared("1 given, 2 stated, ")
	put := func(k ib.PKeyBase) resource.PutPartition {
		return resource.PutPartition{Partition: resource.Partition{PKey: k, Name: fmt.Sprint("p", k)}}
	}
	for k, name := range map[ib.PKeyBase]string{1: "given", 2: "stated"} {
		_, err := b.plan(provider, put(k))
		if want := fmt.Sprintf("pkey: %v is partition %q of the policy file: change it there", k, name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		_, err = b.plan(provider, resource.DeletePartition{PKey: k})
		if want := fmt.Sprintf("pkey: %v is partition %q of the policy file: change it there", k, name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	b.do(provider, put(0))
	if b.Partition(3) == nil {
		t.Errorf("the lowest free number is not 3: %v", b.Partitions(""))
	}
	b.do(provider, put(4))
	if got := b.Default(); got != policy.Limited {
		t.Errorf("default %v", got)
	}
	b.do(provider, file("default: limited\npartitions:\n- {name: mine, pkey: 0x10}\n"))
	claimed("")
	declared("16 mine, ")
	b.do(provider, put(1))
}

// TestWhoASecretIs: the caller of a token, as long as there is the token and its time is not over.
func TestWhoASecretIs(t *testing.T) {
	b := town(t)
	end := b.at.Add(time.Hour)
	sum := func(digit string) (s string) {
		for range 64 {
			s += digit
		}
		return s
	}
	keys := resource.KeyRange{First: 0x101, Last: 0x102}
	b.do(of("red"), resource.PutToken{Token: resource.Token{ID: "short", Tenant: "red", Sum: sum("1"), Expires: end, ReadOnly: true, Keys: keys}})
	for _, x := range []struct {
		sum   string
		at    time.Time
		known bool
	}{{sum("1"), b.at, true}, {sum("1"), end.Add(-1), true}, {sum("1"), end, false}, {sum("2"), b.at, false}, {"", b.at, false}} {
		by, known := b.CallerOf(x.sum, x.at)
		want := resource.Caller{}
		if x.known {
			want = resource.Caller{Name: "short", Tenant: "red", ReadOnly: true, Keys: keys, Expires: end}
		}
		if known != x.known || by != want {
			t.Errorf("%.4s at %v: %+v, %v", x.sum, x.at, by, known)
		}
	}
	if by, known := b.CallerOf(sum("d"), end.Add(1000*time.Hour)); !known || by.Name != "tok-red" || !by.Expires.IsZero() {
		t.Errorf("a token without an end: %+v, %v", by, known)
	}
}

// TestChangesThatAreNone: what cannot be read back says what it is.
func TestChangesThatAreNone(t *testing.T) {
	for data, want := range map[string]string{
		"{":                             "change: unexpected end of JSON input",
		`{"action":"none","fields":{}}`: "",
		`{"action":"delete partition","fields":{"pkey":7}}`: `change "delete partition": `,
	} {
		c, err := resource.DecodeChange([]byte(data))
		if err == nil || c != nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("%s: %v, %v; want %s", data, c, err, want)
		}
	}
	bad := resource.SetMembers{PKey: 5, Members: []resource.Member{{Membership: 99}}}
	if _, err := resource.EncodeChange(bad); err == nil || err.Error()[:13] != "set members: " {
		t.Errorf("a membership that cannot be: %v", err)
	}
}
