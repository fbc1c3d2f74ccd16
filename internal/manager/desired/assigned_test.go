package desired

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// What devices do not keep is learned of the ports that forget something, but for what guards,
// and noted in the next run at those that are there and up.
func TestWhatIsForgottenIsRemembered(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(3, "leaf")
	hosts := []*observed.Port{b.Host(leaf, "a"), b.Host(leaf, "b"), b.Host(leaf, "c")}
	hosts[0].Forgets = observed.ElementMasterSMLID
	hosts[1].Forgets = observed.ElementGuard
	hosts[2].Forgets = observed.ElementMasterSMLID | observed.ElementGuard
	a := Assigned{Forgets: map[observed.Place]observed.Element{{Node: 77, Port: 1}: observed.ElementLID}}
	a.Learn(b.Fabric)
	want := map[observed.Place]observed.Element{hosts[0].Place(): observed.ElementMasterSMLID, hosts[2].Place(): observed.ElementMasterSMLID &^ observed.ElementGuard}
	if len(a.Forgets) != len(want) {
		t.Errorf("%v, want %v", a.Forgets, want)
	}
	for at, elements := range want {
		if a.Forgets[at] != elements {
			t.Errorf("%v: %v, want %v", at, a.Forgets[at], elements)
		}
	}
	for _, p := range hosts {
		p.Forgets = 0
	}
	subnettest.SetLink(hosts[2], smp.PortDown, smp.PhysPolling)
	a.Forgets[observed.Place{Node: hosts[0].Node.GUID(), Port: 2}] = observed.ElementLID // a port that it has no more
	a.Forgets[observed.Place{Node: 99, Port: 1}] = observed.ElementLID
	a.Recall(b.Fabric)
	if hosts[0].Forgets != observed.ElementMasterSMLID || hosts[1].Forgets != 0 || hosts[2].Forgets != 0 {
		t.Errorf("noted %v, %v and %v", hosts[0].Forgets, hosts[1].Forgets, hosts[2].Forgets)
	}
}

func TestKeepsAliases(t *testing.T) {
	for _, x := range []struct{ now, before, want bool }{{}, {true, false, true}, {false, true, true}, {true, true, true}} {
		p, a := &policy.Policy{}, Assigned{Aliases: x.before}
		if x.now {
			p.Aliases = []policy.PortAliases{}
		}
		if got := a.KeepsAliases(p); got != x.want {
			t.Errorf("a policy with aliases %v, one before %v: keeps them %v", x.now, x.before, got)
		}
	}
}
