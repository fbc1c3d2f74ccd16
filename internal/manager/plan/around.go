package plan

import (
	"github.com/ibwarden/ibwarden/internal/observed"
)

// DiffForwarding is what of Diff is about the unicast forwarding tables of some switches
// alone.
func DiffForwarding(f *observed.Fabric, d *observed.Desired, switches []*observed.Node) *Plan {
	p, ops := &Plan{fabric: f, desired: d}, &collected{}
	for _, n := range switches {
		p.diffForwarding(n, ops.add)
	}
	p.arrange(ops)
	return p
}
