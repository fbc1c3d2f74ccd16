package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// every is a fake subnet in which there is something to read of every attribute: the
// manager's host at port 1 of a switch of 18 ports, another switch at its port 3, a host
// with a subnet manager and alias GUIDs behind that, and a host that reports a fault.
type every struct{ asked []string }

var everywhere = map[string]string{"": "self", "1": "leaf", "1,3": "spine", "1,3,2": "host a", "1,4": "host b"}

func (e *every) answer(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
	place, known := everywhere[route]
	if !known {
		return nil, 0, false
	}
	if p.AttributeID != smp.AttrNodeInfo {
		e.asked = append(e.asked, fmt.Sprintf("%s %s %#x", place, smp.AttributeName(p.AttributeID), p.AttributeModifier))
	}
	switch p.AttributeID {
	case smp.AttrNodeInfo:
		info := map[string]smp.NodeInfo{
			"self":   {NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 1, PortGUID: 2, LocalPortNum: 1, PartitionCap: 40},
			"leaf":   {NodeType: ib.NodeSwitch, NumPorts: 18, NodeGUID: 0x10, PortGUID: 0x10, LocalPortNum: 1, PartitionCap: 8},
			"spine":  {NodeType: ib.NodeSwitch, NumPorts: 4, NodeGUID: 0x11, PortGUID: 0x11, LocalPortNum: 1, PartitionCap: 8},
			"host a": {NodeType: ib.NodeCA, NumPorts: 2, NodeGUID: 0x20, PortGUID: 0x21, LocalPortNum: 1, PartitionCap: 33},
			"host b": {NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 0x30, PortGUID: 0x31, LocalPortNum: 1},
		}[place]
		return &info, 0, true
	case smp.AttrSwitchInfo:
		s := smp.SwitchInfo{LinearFDBCap: 256, LinearFDBTop: 130, MulticastFDBCap: 96, PartitionEnforcementCap: 33}
		if place == "spine" {
			s = smp.SwitchInfo{RandomFDBCap: 20, MulticastFDBCap: 64, MulticastFDBTop: 0xC003, PartitionEnforcementCap: 8}
		}
		return &s, 0, true
	case smp.AttrPortInfo:
		return e.portInfo(place, p.AttributeModifier), 0, true
	case smp.AttrVendorDiag:
		if p.AttributeModifier == 1 {
			return block(2, 0xA1), 0, true
		}
		return block(0, 0xA2), 0, true
	}
	return nil, 0, true
}

func (e *every) portInfo(place string, num uint32) *smp.PortInfo {
	info := &smp.PortInfo{
		PortState: smp.PortInit, PortPhysicalState: smp.PhysLinkUp, VLCap: 4,
		VLArbitrationLowCap: 40, VLArbitrationHighCap: 32,
	}
	up := map[string][]uint32{"leaf": {0, 1, 3, 4}, "spine": {0, 1, 2}}[place]
	switch {
	case up != nil && !slices.Contains(up, num):
		info.PortState, info.PortPhysicalState = smp.PortDown, smp.PhysPolling
	case place == "leaf" && num == 3:
		info.PartitionEnforcementInbound = true // which is unusual between switches
	case place == "spine" && num == 0:
		info.CapabilityMask |= smp.CapMulticastFDBTop
	case place == "host a":
		info.GUIDCap = 9
		info.CapabilityMask |= smp.CapIsSM
		info.DiagCode = 0x8013 // bit 15 points at block 1 of VendorDiag
	case place == "host b":
		info.VLCap = 1
		info.DiagCode = 0x0001
	}
	return info
}

// TestOrderOfReading: what is read of each attribute, and in which order, is in
// testdata/reading.txt, for everything that Options can ask for. The order is that of
// packets on the wire: IBWARDEN_UPDATE=1 writes the file, and a difference in it needs a
// reason.
func TestOrderOfReading(t *testing.T) {
	var out strings.Builder
	for _, c := range []struct {
		name    string
		options Options
	}{
		{"nothing else", Options{}},
		{"forwarding", Options{Forwarding: true}},
		{"QoS", Options{QoS: true}},
		{"aliases", Options{Aliases: true}},
		{"audit", Options{Audit: true}},
		{"audit and aliases", Options{Audit: true, Aliases: true}},
		{"multicast", Options{Multicast: true}},
		{"multicast up to 0xc021", Options{MulticastTop: 0xC021}},
		{"multicast up to a unicast LID", Options{MulticastTop: 0xBFFF}},
		{"everything", Options{Forwarding: true, QoS: true, Audit: true, Multicast: true}},
	} {
		e := new(every)
		d, _ := sweepOver(t, c.options, e.answer)
		fmt.Fprintf(&out, "# %s\n", c.name)
		for _, a := range e.asked {
			fmt.Fprintln(&out, a)
		}
		for _, f := range d.Faults() {
			fmt.Fprintln(&out, "fault:", f)
		}
	}
	path := filepath.Join("testdata", "reading.txt")
	if os.Getenv("IBWARDEN_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("line %d of %s differs: asked\n%s", i+1, path, strings.Join(got[max(0, i-3):min(i+3, len(got))], "\n"))
		}
	}
}
