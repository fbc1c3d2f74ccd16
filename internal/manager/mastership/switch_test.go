package mastership

import (
	"slices"
	"testing"
)

// A manager on a switch that nobody named is reported as any other, for the reason that holds;
// there is no port before it that could be fenced, and it stands where it is.
func TestManagerOnASwitch(t *testing.T) {
	for _, x := range []struct {
		key  bool
		does behaviour
		want []string
	}{
		{false, silent, []string{rogueThere}},
		{true, silent, []string{rogueSilent}},
		{true, nameless, []string{rogueUnproven}},
		{true, partner, nil},
	} {
		c := strict()
		if !x.key {
			c.Election.Key = nil
		}
		r, hosts := newRig(t, c, 1)
		p := &r.leaf.Ports[0]
		r.lead()
		r.says(p, true, x.does)
		r.run(3 * ProofGrace)
		if !slices.Equal(r.alarms(), x.want) || len(r.fences) > 0 || r.Names(p) != (x.does == partner) {
			t.Errorf("secret %v, does %v: alarms %q, fences %v, named %v; want alarms %q", x.key, x.does, r.alarms(), r.fences, r.Names(p), x.want)
		}
		if standing(p) != p.Place() || standing(hosts[0]) != hosts[0].Peer.Place() {
			t.Errorf("%s stands at %v, %s at %v", p, standing(p), hosts[0], standing(hosts[0]))
		}
		// Of two hosts that are cabled to each other each stands where it is.
		hosts[0].Peer = r.b.Fabric.Self
		if standing(hosts[0]) != hosts[0].Place() {
			t.Errorf("a host behind a host stands at %v", standing(hosts[0]))
		}
	}
}
