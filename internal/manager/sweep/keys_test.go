package sweep

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// TestExtendedSpeedsAreAskedFor: whatever a switch does with the bit of extended speeds in the modifier of a
// Get of PortInfo, what is behind it is found; and it is asked without the bit from then on where it answers so.
func TestExtendedSpeedsAreAskedFor(t *testing.T) {
	const leaf, far = 5, 7
	devices := device(map[string]smp.NodeInfo{"1": switchInfo(leaf, 2, 1), "1,2": hostInfo(far)})
	for _, x := range []struct {
		name    string
		status  mad.Status
		bit     bool // it answers with the bit
		later   bool // and without it, a second time
		refuses bool
		faults  bool
	}{
		{"takes it", mad.StatusOK, true, true, false, false},
		{"refuses it", mad.StatusInvalidField, true, true, true, false},
		{"does not answer to it", mad.StatusOK, false, true, true, false},
		{"answers once and no more, as under another M_Key", mad.StatusOK, false, false, false, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			plain := 0
			d, _ := sweepOver(t, Options{}, host(0, nil, func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
				num, bit, _ := smp.SplitPortInfoModifier(p.AttributeModifier)
				if route != "1" || p.AttributeID != smp.AttrPortInfo || num != 0 {
					return devices(route, p)
				}
				if !bit {
					plain++
				}
				switch {
				case bit && !x.bit, !bit && plain > 1 && !x.later:
					return nil, 0, false
				case bit && x.status != mad.StatusOK:
					return nil, x.status, true
				}
				return &smp.PortInfo{PortState: smp.PortActive, PortPhysicalState: smp.PhysLinkUp, CapabilityMask: smp.CapExtendedSpeeds}, 0, true
			}))
			n := d.Fabric().Node(leaf)
			if n == nil || !n.Port(0).InfoRead || d.Fabric().Node(far) == nil {
				t.Fatalf("what is behind the switch is not found; faults:\n%s", faultsOf(d))
			}
			if got := n.Port(0).RefusesExtendedSpeeds; got != x.refuses {
				t.Errorf("asked without the bit from now on: %v, want %v", got, x.refuses)
			}
			if got := faultsOf(d); strings.Contains(got, "PortInfo: no answer") != x.faults {
				t.Errorf("faults:\n%s", got)
			}
		})
	}
}
