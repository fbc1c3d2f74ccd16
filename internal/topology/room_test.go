package topology

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

// What cables join needs its LIDs together; what stands apart, and ports without a cable,
// have nothing to do with it.
func TestCheckLIDs(t *testing.T) {
	l := mustGenerate(t, "fattree,radix=30") // 450 hosts under 45 switches
	other := mustGenerate(t, "fattree,radix=30")
	for _, n := range other.Nodes {
		n.GUID += 0x1000000
		l.Nodes = append(l.Nodes, n)
	}
	l.Nodes = append(l.Nodes, NewNode(ib.NodeCA, "alone", 0x7000000, 4))
	fails := func(lmc ib.LMC, want string) {
		t.Helper()
		for name, err := range map[string]error{"netlist": l.CheckLIDs(lmc), "node": l.Nodes[0].CheckLIDs(lmc), "other": other.Nodes[0].CheckLIDs(lmc)} {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s, LMC %d: %v, want %q", name, lmc, err, want)
			}
		}
	}
	fails(0, "")
	fails(6, "")
	fails(7, "450 end ports with 128 LIDs each (LMC 7) and 45 switches need 57645 unicast LIDs, and a subnet has 49151: take LMC 6 or less")
	if err := l.Nodes[len(l.Nodes)-1].CheckLIDs(7); err != nil {
		t.Errorf("a node without cables: %v", err)
	}
	for _, n := range l.Nodes {
		n.EnhancedPort0 = n.Type == ib.NodeSwitch
	}
	fails(0, "")
	fails(7, "495 end ports with 128 LIDs each (LMC 7) and 0 switches need 63360 unicast LIDs")
}
