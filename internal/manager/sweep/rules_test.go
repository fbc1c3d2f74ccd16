package sweep

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// twoRails is a fake subnet: the manager's host at port 1 of a switch of nine
// ports, and a CA of three ports whose port 1 is at port 3 of the switch and whose
// port 2 is at port 7. Its P_Key tables have hostCap entries, those of the switch's
// external ports switchCap. Codes and blocks of diagnosis are by place.
type twoRails struct {
	hostCap, switchCap uint16
	codes              map[string]smp.DiagCode
	blocks             map[string]map[uint32]*smp.VendorDiag
	asked              []string // attribute, place and modifier of Gets of P_KeyTable and VendorDiag
}

// The places of twoRails, and the routes that lead there.
var rails = map[string]string{"": "self", "1": "switch", "1,3": "CA port 1", "1,7": "CA port 2"}

func (w *twoRails) answer(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
	place := rails[route]
	node := map[string]smp.NodeInfo{
		"self":      {NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 1, PortGUID: 2, LocalPortNum: 1, PartitionCap: 1},
		"switch":    {NodeType: ib.NodeSwitch, NumPorts: 9, NodeGUID: 0x10, PortGUID: 0x10, LocalPortNum: 1, PartitionCap: 33},
		"CA port 1": {NodeType: ib.NodeCA, NumPorts: 3, NodeGUID: 0x20, PortGUID: 0x21, LocalPortNum: 1, PartitionCap: w.hostCap},
		"CA port 2": {NodeType: ib.NodeCA, NumPorts: 3, NodeGUID: 0x20, PortGUID: 0x22, LocalPortNum: 2, PartitionCap: w.hostCap},
	}[place]
	switch p.AttributeID {
	case smp.AttrNodeInfo:
		return &node, 0, place != ""
	case smp.AttrSwitchInfo:
		return &smp.SwitchInfo{LinearFDBCap: 64, PartitionEnforcementCap: w.switchCap}, 0, true
	case smp.AttrPortInfo:
		info := smp.PortInfo{PortState: smp.PortInit, PortPhysicalState: smp.PhysLinkUp, VLCap: 1}
		if place == "switch" && !slices.Contains([]uint32{0, 1, 3, 7}, p.AttributeModifier) {
			info.PortState, info.PortPhysicalState = smp.PortDown, smp.PhysPolling
		}
		if place != "switch" || p.AttributeModifier == 0 {
			info.DiagCode = w.codes[place]
		}
		return &info, 0, true
	case smp.AttrPKeyTable, smp.AttrVendorDiag:
		w.asked = append(w.asked, fmt.Sprintf("%s %s %#x", smp.AttributeName(p.AttributeID), place, p.AttributeModifier))
		if p.AttributeID == smp.AttrPKeyTable {
			return new(smp.PKeyTable), 0, true
		}
		if block := w.blocks[place][p.AttributeModifier]; block != nil {
			return block, 0, true
		}
		return nil, mad.StatusInvalidField, true
	}
	return nil, 0, true
}

func (w *twoRails) of(attribute string) (out []string) {
	for _, a := range w.asked {
		if rest, ok := strings.CutPrefix(a, attribute+" "); ok {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

// VD-12: each port is asked for the blocks that its own code names, by the way that
// leads to that port; the blocks of one are not taken for those of another.
func TestDiagnosisOfEachPort(t *testing.T) {
	w := &twoRails{
		hostCap: 32,
		codes:   map[string]smp.DiagCode{"CA port 1": 0x8143, "CA port 2": 0x8013, "switch": 0xC004},
		blocks: map[string]map[uint32]*smp.VendorDiag{
			"CA port 1": {0x14: block(1, 0xA1), 1: block(0, 0xA2)},
			"CA port 2": {1: block(0x14, 0xB1), 0x14: block(0, 0xB2)},
			"switch":    {0x400: block(0, 0xC1)},
		},
	}
	d, _ := sweepOver(t, Options{}, w.answer)
	want := []string{"CA port 1 0x1", "CA port 1 0x14", "CA port 2 0x1", "CA port 2 0x14", "switch 0x400"}
	if got := w.of("VendorDiag"); !slices.Equal(got, want) {
		t.Errorf("VendorDiag was asked of %q, want %q", got, want)
	}
	said := faultsOf(d)
	for _, chain := range [][2]byte{{0xA1, 0xA2}, {0xB1, 0xB2}, {0xC1, 0}} {
		first := fmt.Sprintf("vendor data %x", chain[0])
		second := fmt.Sprintf("%0122x%x", 0, chain[1]) // the first byte of the second block, behind the first's other 61
		if chain[1] == 0 {
			second = ""
		}
		if !strings.Contains(said, first+second) {
			t.Errorf("the chain of %#x is not in %q", chain[0], said)
		}
	}
}

// VD-05: the kind of trouble is in bits 3:0 alone, whatever stands in the others.
func TestVD05KindIsInTheLowBits(t *testing.T) {
	kinds := map[uint16]string{1: "self-test running", 2: "initializing", 3: "soft error, port works", 4: "hard failure"}
	for low := range uint16(16) {
		for _, high := range []uint16{0, 0x0010, 0x0550, 0x7FF0} {
			code := high | low
			d, asked := sweepOver(t, Options{}, host(code, nil, silence))
			said := ""
			for _, f := range d.Faults() {
				if strings.Contains(f.Error(), "DiagCode") {
					said = f.Error()
				}
			}
			want := kinds[low]
			if want == "" && code != 0 {
				want = "unknown code"
			}
			if len(asked) != 0 || (code == 0) != (said == "") || !strings.Contains(said, want) {
				t.Errorf("DiagCode %#04x: asked for %v, reported %q, want %q", code, asked, said, want)
			}
			for _, other := range kinds {
				if other != want && strings.Contains(said, other) {
					t.Errorf("DiagCode %#04x: reported %q, which says %q too", code, said, other)
				}
			}
		}
	}
}

// PT-14: of a P_Key table the blocks that it has are asked for, and none past its
// end, at end ports and at the ports that face them.
func TestPT14NoBlockPastTheCap(t *testing.T) {
	blocks := map[uint16]int{1: 1, 31: 1, 32: 1, 33: 2, 45: 2, 64: 2, 65: 3, 1000: 32}
	for hostCap, hostBlocks := range blocks {
		for switchCap, switchBlocks := range map[uint16]int{0: 0, 1: 1, 32: 1, 45: 2, 96: 3, 97: 4} {
			w := &twoRails{hostCap: hostCap, switchCap: switchCap}
			sweepOver(t, Options{}, w.answer)
			want := []string{"self 0x0", "switch 0x0", "switch 0x1"} // port 0 has 33 entries
			for block := range hostBlocks {
				want = append(want, fmt.Sprintf("CA port 1 %#x", block), fmt.Sprintf("CA port 2 %#x", block))
			}
			for _, num := range []int{1, 3, 7} {
				for block := range switchBlocks {
					want = append(want, fmt.Sprintf("switch %#x", num<<16|block))
				}
			}
			slices.Sort(want)
			if got := w.of("PKeyTable"); !slices.Equal(got, want) {
				t.Errorf("PartitionCap %d, PartitionEnforcementCap %d: asked for %q, want %q", hostCap, switchCap, got, want)
			}
		}
	}
}
