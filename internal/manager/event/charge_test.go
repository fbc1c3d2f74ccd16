package event

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// managers are managers by their ports: M is master, S stands by, a small letter one that
// does not count, X one that was master and is silent.
func managers(letters string) []observed.SubnetManager {
	out := []observed.SubnetManager{}
	for i, l := range letters {
		m := observed.SubnetManager{Port: ib.PortGUID(i + 1), Name: fmt.Sprint("n", i+1), Trust: observed.TrustShared}
		info := smp.SMInfo{SMState: smp.SMStandby}
		if strings.ContainsRune("MmXO", l) {
			info.SMState = smp.SMMaster
		}
		m.Hear(&info)
		switch l {
		case 'A', 'B': // another policy
			m.Policy, m.PolicySum[0] = observed.PolicyOther, byte(l)
		case 'a':
			m.Policy, m.Trust = observed.PolicyOther, observed.TrustNone
		case 'Y':
			m.Policy, m.Missed = observed.PolicyOther, 1
		case 'm', 's':
			m.Trust = observed.TrustNone
		case 'X':
			m.Missed = 1
		case 'O':
			m.Silent = StaleAnswer + 1
		}
		out = append(out, m)
	}
	return out
}

func told(list []Event) string {
	var out []string
	for _, e := range list {
		switch e := e.(type) {
		case NoMaster:
			out = append(out, fmt.Sprintf("none, was %d", e.Last.Port))
		case SeveralMasters:
			out = append(out, fmt.Sprintf("%d: %d", e.Count, e.Masters[0].Port))
		case OneMaster:
			out = append(out, fmt.Sprintf("one: %d", e.Master.Port))
		case MasterChanged:
			out = append(out, fmt.Sprintf("%d>%d", e.From.Port, e.To.Port))
		case OtherPolicy:
			out = append(out, fmt.Sprintf("%d other: %d", e.Count, e.Managers[0].Port))
		case SamePolicy:
			out = append(out, "same")
		case MasterFlapping:
			out = append(out, fmt.Sprintf("flaps: %d in %v", e.Changes, e.Within))
		}
	}
	return strings.Join(out, ", ")
}

// Each step is a second with these managers; what is told in it, and how many masters
// there are.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []string // "SECOND LETTERS[=TOLD]"
	}{
		{"one master", []string{"0 MS", "1 MS", "100 MS"}},
		{"a handover with both for a moment", []string{"0 MS", "1 MM", "2 SM=1>2", "60 SM"}},
		{"a failover", []string{"0 MS", "1 XS", "2 XS", "3 XM=1>2"}},
		{"nobody", []string{"0 MS", "1 XS", "5 XS", "6 XS=none, was 1", "7 XS", "70 XS", "71 XM=one: 2, 1>2"}},
		{"nobody from the start", []string{"0 S", "4 S", "5 S=none, was 0", "6 M=one: 1"}},
		{"a split fabric", []string{"0 MM", "2 MM", "3 MM=2: 1", "4 MMM", "9 MM", "10 SM=one: 2"}},
		{"a rogue that claims to be master", []string{"0 mM", "3 mM=2: 2", "4 sM=one: 2"}},
		{"what was said long ago does not count", []string{"0 OM", "10 OM"}},
		{"none, then two", []string{"0 M", "1 X", "6 X=none, was 1", "7 MM", "9 MM", "10 MM=2: 1", "11 XX", "15 XX", "16 XX=none, was 1", "17 MS=one: 1"}},
		{"none, then two for a moment", []string{"0 M", "1 X", "6 X=none, was 1", "7 MM", "8 MS=one: 1"}},
		{"a partner with another policy", []string{"0 MA", "9 MA", "10 MA=1 other: 2", "11 MA", "100 MA", "101 MS=same", "102 MS"}},
		{"another policy for a moment", []string{"0 MA", "5 MS", "6 MA", "15 MA", "16 MA=1 other: 2"}},
		{"another, and then a third", []string{"0 MA", "10 MA=1 other: 2", "15 MB", "20 MB=1 other: 2", "30 MB", "40 MBA=2 other: 2", "60 MBA"}},
		{"another policy of one that does not count, or is gone", []string{"0 Ma", "60 Ma", "61 MY", "100 MY"}},
		{"flapping", []string{"0 MS", "1 SM=1>2", "2 MS=2>1", "3 SM=1>2", "4 MS=2>1, flaps: 4 in 3s", "5 SM=1>2", "604 SM", "605 SM", "606 MS=2>1"}},
		{"changes that are far apart", []string{"0 MS", "1 SM=1>2", "301 MS=2>1", "501 SM=1>2", "601 MS=2>1"}},
	} {
		var w MasterWatch
		for _, step := range c.steps {
			var second int
			var rest string
			if _, err := fmt.Sscanf(step, "%d", &second); err != nil {
				t.Fatal(err)
			}
			_, rest, _ = strings.Cut(step, " ")
			letters, want, _ := strings.Cut(rest, "=")
			if got := told(w.See(time.Duration(second)*time.Second, managers(letters))); got != want {
				t.Errorf("%s: %q: told %q", c.name, step, got)
			}
			if n := strings.Count(strings.ToUpper(letters), "M"); w.Status().Masters != n {
				t.Errorf("%s: %q: %d masters", c.name, step, w.Status().Masters)
			}
		}
	}
	var w MasterWatch
	if w.See(0, nil) != nil || w.See(time.Hour, nil) != nil {
		t.Error("something is told of a subnet that was not read")
	}
}

// However many hosts claim to be master, an event names few of them, those that count
// first, and says how many there are.
func TestManyMasters(t *testing.T) {
	var w MasterWatch
	list := managers(strings.Repeat("m", 1000) + "M")
	w.See(0, list)
	out := w.See(TwoMastersGrace, list)
	e, is := out[0].(SeveralMasters)
	if len(out) != 1 || !is || e.Count != 1001 || len(e.Masters) != mastersMax || e.Masters[0].Port != 1001 {
		t.Fatalf("%+v", out)
	}
	if text := e.String(); !strings.Contains(text, "1001 subnet managers") || !strings.Contains(text, "n1001") || !strings.Contains(text, "does not count") {
		t.Error(text)
	}
}
