package observed

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// pair is a switch of four ports with a CA of two ports behind port 1.
func pair() (f *Fabric, sw, ca *Node) {
	f = NewFabric()
	sw = f.AddNode(smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: 4, NodeGUID: 1, PortGUID: 1, PartitionCap: 8})
	ca = f.AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 2, NodeGUID: 2, PortGUID: 3, PartitionCap: 33})
	sw.Switch.Info.LinearFDBCap, sw.Switch.Info.RandomFDBCap = 100, 20
	sw.Switch.Info.PartitionEnforcementCap = 5
	Connect(&sw.Ports[1], &ca.Ports[1])
	return f, sw, ca
}

func encoded(t *testing.T, a smp.Attribute) []byte {
	t.Helper()
	b, err := a.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAddNodeKnowsANodeAgain(t *testing.T) {
	f, sw, _ := pair()
	if f.AddNode(sw.Info) != sw || len(f.Nodes) != 2 || f.Node(1) != sw || f.Node(9) != nil {
		t.Error("the same NodeGUID made a second node")
	}
}

func TestPortsAndCaps(t *testing.T) {
	_, sw, ca := pair()
	if sw.Port(0) == nil || ca.Port(0) != nil || sw.Port(5) != nil || ca.Port(2) == nil {
		t.Error("port 0 exists on a switch only, and no port beyond NumPorts")
	}
	for _, x := range []struct {
		port            *Port
		end, faces      bool
		entries, blocks int
	}{
		{&sw.Ports[0], true, false, 8, 1},
		{&sw.Ports[1], false, true, 5, 1},
		{&sw.Ports[2], false, false, 5, 1},
		{&ca.Ports[1], true, false, 33, 2},
	} {
		if p := x.port; p.IsEnd() != x.end || p.FacesEnd() != x.faces || p.PKeyCap() != x.entries || p.PKeyBlocks() != x.blocks {
			t.Errorf("%s: end %v, faces %v, cap %d, blocks %d; want %+v", p, p.IsEnd(), p.FacesEnd(), p.PKeyCap(), p.PKeyBlocks(), x)
		}
	}
}

func TestPKeysAreKnownWhenEveryBlockWasRead(t *testing.T) {
	_, _, ca := pair()
	p := &ca.Ports[1]
	table := smp.PKeyTable{}
	table.Keys[0], table.Keys[31] = 0x8001, 0x0002
	second := smp.PKeyTable{}
	second.Keys[0], second.Keys[1] = 0x8003, 0xFFFF // entry 33 does not exist
	if err := p.Absorb(smp.AttrPKeyTable, 1, encoded(t, &second)); err != nil {
		t.Fatal(err)
	}
	if p.PKeysKnown() {
		t.Error("known with one block of two")
	}
	if err := p.Absorb(smp.AttrPKeyTable, 0, encoded(t, &table)); err != nil {
		t.Fatal(err)
	}
	if !p.PKeysKnown() || len(p.PKeys) != 33 || p.PKeys[0] != 0x8001 || p.PKeys[31] != 0x0002 || p.PKeys[32] != 0x8003 {
		t.Errorf("known %v, table %v", p.PKeysKnown(), p.PKeys)
	}
	p.MarkUnread(smp.AttrPKeyTable, 1)
	if p.PKeysKnown() {
		t.Error("known after a doubt")
	}
	p.MarkUnread(smp.AttrPKeyTable, 9) // past the table: nothing to doubt
}

func TestAbsorbPutsThingsWhereTheModifierSays(t *testing.T) {
	_, sw, ca := pair()
	management := &sw.Ports[0]
	steps := []struct {
		port      *Port
		attribute smp.Attribute
		modifier  uint32
	}{
		{management, &smp.PortInfo{LID: 7}, 2},
		{management, &smp.PKeyTable{Keys: [32]ib.PKey{0x8007}}, smp.PKeyModifier(3, 0)},
		{management, &smp.SLToVLMappingTable{VLs: [16]ib.VL{1: 1}}, smp.SLToVLModifier(0, 2)},
		{management, &smp.SLToVLMappingTable{VLs: [16]ib.VL{1: 3}}, smp.SLToVLTarget{Out: 4, AllInputs: true}.Modifier()},
		{management, &smp.VLArbitrationTable{}, smp.VLArbModifier(smp.VLArbHighFirst, 4)},
		{&ca.Ports[2], &smp.PortInfo{LID: 9}, 0},
		{&ca.Ports[2], &smp.PKeyTable{Keys: [32]ib.PKey{0x8009}}, smp.PKeyModifier(1, 0)}, // the port half does not count on a CA
	}
	for _, s := range steps {
		if err := s.port.Absorb(s.attribute.ID(), s.modifier, encoded(t, s.attribute)); err != nil {
			t.Fatalf("%T: %v", s.attribute, err)
		}
	}
	switch {
	case sw.Ports[2].Info.LID != 7 || !sw.Ports[2].InfoRead || sw.Ports[0].InfoRead:
		t.Error("PortInfo of switch port 2")
	case sw.Ports[3].PKeys[0] != 0x8007 || sw.Ports[0].PKeys != nil:
		t.Error("P_KeyTable of switch port 3")
	case sw.Ports[2].SLToVL[0].VLs[1] != 1 || len(sw.Ports[2].SLToVL) != 1:
		t.Error("SLtoVL of one pair")
	case sw.Ports[4].SLToVL[2].VLs[1] != 3 || len(sw.Ports[4].SLToVL) != 5:
		t.Error("SLtoVL of all inputs")
	case len(sw.Ports[4].VLArbitration) != 4:
		t.Error("VLArbitration")
	case ca.Ports[2].Info.LID != 9 || ca.Ports[2].PKeys[0] != 0x8009 || ca.Ports[1].PKeys != nil:
		t.Error("CA port 2")
	}
}

func TestRecallFillsWhatWasNotRead(t *testing.T) {
	_, _, before := pair()
	_, _, now := pair()
	old, p := &before.Ports[1], &now.Ports[1]
	p.Recall(old)
	if p.PKeys != nil {
		t.Errorf("recalled %v from a table that was not read", p.PKeys)
	}
	old.PKeys, old.PKeysRead = make([]ib.PKey, 33), []bool{true, true}
	old.PKeys[0], old.PKeys[32] = 0x8001, 0x8002
	p.Recall(old)
	if p.PKeys[0] != 0x8001 || p.PKeys[32] != 0x8002 || p.PKeysKnown() {
		t.Errorf("table %v, known %v", p.PKeys, p.PKeysKnown())
	}
	table := smp.PKeyTable{Keys: [32]ib.PKey{0x8003}}
	if err := p.Absorb(smp.AttrPKeyTable, 0, encoded(t, &table)); err != nil {
		t.Fatal(err)
	}
	p.Recall(old)
	if p.PKeys[0] != 0x8003 || p.PKeys[32] != 0x8002 || p.PKeysKnown() {
		t.Errorf("table %v, known %v", p.PKeys, p.PKeysKnown())
	}
}

func TestAbsorbForwarding(t *testing.T) {
	_, sw, _ := pair()
	management := &sw.Ports[0]
	lft := smp.LinearForwardingTable{}
	lft.Ports[0] = 3
	if err := management.Absorb(smp.AttrLinearForwardingTable, 1, encoded(t, &lft)); err != nil {
		t.Fatal(err)
	}
	s := sw.Switch
	if len(s.LFT) != 128 || s.LFT[64] != 3 || s.LFT[0] != ib.PortNone || s.LFTRead[0] || !s.LFTRead[1] {
		t.Errorf("LFT %v read %v", s.LFT, s.LFTRead)
	}
	rft := smp.RandomForwardingTable{}
	rft.Entries[2] = smp.RandomEntry{LID: 5, Valid: true, Port: 2}
	if err := management.Absorb(smp.AttrRandomForwardingTable, 0, encoded(t, &rft)); err != nil || !s.RFT[2].Valid {
		t.Errorf("RFT %v, %v", s.RFT, err)
	}
	management.MarkUnread(smp.AttrLinearForwardingTable, 1)
	management.MarkUnread(smp.AttrRandomForwardingTable, 0)
	if s.LFTRead[1] || s.RFTRead[0] {
		t.Error("still believed after a doubt")
	}
}

func TestAbsorbRefusesWhatMakesNoSense(t *testing.T) {
	_, sw, ca := pair()
	var data [mad.DataSize]byte
	for name, x := range map[string]struct {
		port      *Port
		attribute mad.AttributeID
		modifier  uint32
		data      []byte
	}{
		"SwitchInfo of a CA":         {&ca.Ports[1], smp.AttrSwitchInfo, 0, data[:]},
		"LFT of a CA":                {&ca.Ports[1], smp.AttrLinearForwardingTable, 0, data[:]},
		"RFT of a CA":                {&ca.Ports[1], smp.AttrRandomForwardingTable, 0, data[:]},
		"PortInfo of no port":        {&sw.Ports[0], smp.AttrPortInfo, 5, data[:]},
		"P_Keys of no port":          {&sw.Ports[0], smp.AttrPKeyTable, smp.PKeyModifier(9, 0), data[:]},
		"P_Keys past the table":      {&ca.Ports[1], smp.AttrPKeyTable, 2, data[:]},
		"LFT past the table":         {&sw.Ports[0], smp.AttrLinearForwardingTable, 2, data[:]},
		"RFT past the table":         {&sw.Ports[0], smp.AttrRandomForwardingTable, 2, data[:]},
		"SLtoVL of all outputs":      {&sw.Ports[0], smp.AttrSLToVLMappingTable, 0x10000, data[:]},
		"SLtoVL of no port":          {&sw.Ports[0], smp.AttrSLToVLMappingTable, 9, data[:]},
		"VLArbitration of no part":   {&sw.Ports[0], smp.AttrVLArbitrationTable, 0x50001, data[:]},
		"VLArbitration of no port":   {&sw.Ports[0], smp.AttrVLArbitrationTable, 0x10009, data[:]},
		"an attribute not kept":      {&sw.Ports[0], smp.AttrLEDInfo, 0, data[:]},
		"MFT of a CA":                {&ca.Ports[1], smp.AttrMulticastForwardingTable, 0, data[:]},
		"MFT past the table":         {&sw.Ports[0], smp.AttrMulticastForwardingTable, 2, data[:]},
		"MFT past the ports":         {&sw.Ports[0], smp.AttrMulticastForwardingTable, smp.MFTModifier(0, 1), data[:]},
		"SMInfo behind no end port":  {&sw.Ports[1], smp.AttrSMInfo, 0, data[:]},
		"GUIDInfo past the table":    {&ca.Ports[1], smp.AttrGUIDInfo, smp.GUIDInfoBlocks, data[:]},
		"a PortInfo that is short":   {&sw.Ports[0], smp.AttrPortInfo, 1, data[:10]},
		"a P_KeyTable that is short": {&ca.Ports[1], smp.AttrPKeyTable, 0, data[:10]},
	} {
		if err := x.port.Absorb(x.attribute, x.modifier, x.data); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if sw.Ports[1].InfoRead || ca.Ports[1].PKeys != nil || sw.Switch.LFT != nil || sw.Switch.InfoRead {
		t.Error("something was entered all the same")
	}
}

// TestElements gives each element another value in turn: it alone differs, and
// copying it alone makes it equal.
func TestElements(t *testing.T) {
	var all Element
	for _, x := range elements {
		all |= x.bit
	}
	all &^= ElementDefaultMulticastPorts | ElementMulticastFDBTop | ElementLifeTimeValue // no PortInfo has these
	want := smp.PortInfo{
		MKey: 1, MKeyProtectBits: 1, MKeyLeasePeriod: 1, GIDPrefix: 1, LID: 1, LMC: 1, MasterSMLID: 1, MasterSMSL: 1,
		NeighborMTU: 1, OperationalVLs: 1, HOQLife: 1, VLStallCount: 1, VLHighLimit: 1, SubnetTimeOut: 1, LinkWidthEnabled: 1, LinkSpeedEnabled: 1, LinkSpeedExtEnabled: 1, OverrunErrors: 1, LocalPhyErrors: 1,
		PartitionEnforcementInbound: true, PartitionEnforcementOutbound: true,
		FilterRawInbound: true, FilterRawOutbound: true,
	}
	full := smp.PortInfo{MKeyViolations: 0xFFFF, QKeyViolations: 0xFFFF} // differs from whatever is wanted, until it is set back
	if got := all.Differ(&full, &want); got != all {
		t.Errorf("no difference seen in %v", (all &^ got).Names())
	}
	for _, x := range elements {
		info := full
		x.bit.Copy(&info, &want)
		if got := all.Differ(&info, &want); got != all&^x.bit {
			t.Errorf("copying %s left %v different", x.name, got.Names())
		}
		if got, ok := ParseElements(x.bit.Names()); !ok || got != x.bit {
			t.Errorf("%v parses to %v", x.bit.Names(), got.Names())
		}
	}
	if _, ok := ParseElements([]string{"Shoe size"}); ok {
		t.Error("an unknown element parses")
	}
	if !slices.Equal(ElementEnforcement.Names(), []string{"PartitionEnforcementInbound", "PartitionEnforcementOutbound"}) {
		t.Errorf("enforcement is %v", ElementEnforcement.Names())
	}
}

func TestLinksAndCounts(t *testing.T) {
	f, sw, ca := pair()
	r := f.AddNode(smp.NodeInfo{NodeType: ib.NodeRouter, NumPorts: 1, NodeGUID: 9, PortGUID: 9})
	Connect(&r.Ports[1], &sw.Ports[3])
	if got := f.Count(); got != (Counts{Nodes: 3, Switches: 1, CAs: 1, Routers: 1, Links: 2}) {
		t.Errorf("counts %+v", got)
	}
	links := f.Links()
	if links[0].A != &sw.Ports[1] || links[0].B != &ca.Ports[1] || links[1].B != &r.Ports[1] {
		t.Errorf("links %v", links)
	}
	ca.Ports[1].Reached, sw.Ports[0].Reached, sw.Ports[1].Reached = true, true, true
	ca.Ports[1].GUID = 3
	if ends := f.EndPorts(); !slices.Equal(ends, []*Port{&sw.Ports[0], &ca.Ports[1]}) {
		t.Errorf("end ports %v", ends)
	}
}

// TestManager: the port that was read from says who is the master, by any of that
// port's LIDs; what others say, however many, does not count.
func TestManager(t *testing.T) {
	f := NewFabric()
	var ports []*Port
	for i, lid := range []ib.LID{1, 4, 8, 9, 10} {
		n := f.AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: ib.NodeGUID(i + 1), PortGUID: ib.PortGUID(i + 1)})
		p := &n.Ports[1]
		p.Reached, p.InfoRead = true, true
		p.Info.LID, p.Info.MasterSMLID = lid, 9
		ports = append(ports, p)
	}
	ports[1].Info.LMC = 2
	f.Self = ports[0]
	for _, tc := range []struct {
		says ib.LID
		want *Port
	}{{4, ports[1]}, {7, ports[1]}, {8, ports[2]}, {1, ports[0]}, {0, ports[0]}, {77, ports[0]}, {9, ports[3]}} {
		f.Self.Info.MasterSMLID = tc.says
		if got := f.Manager(); got != tc.want {
			t.Errorf("MasterSMLID %d: %v, want %v", tc.says, got, tc.want)
		}
	}
	f.Self.InfoRead = false
	if got := f.Manager(); got != f.Self {
		t.Errorf("PortInfo not read: %v", got)
	}
}
