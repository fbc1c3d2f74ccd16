package plan

import (
	"errors"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// TestNameMaster wants the master's LID at every end port that can be told, and nothing else.
func TestNameMaster(t *testing.T) {
	for _, registered := range []bool{false, true} {
		b := subnettest.New()
		sw := b.Switch(6, "switch")
		told, unread, none, group, down := b.Host(sw, "told"), b.Host(sw, "unread"), b.Host(sw, "none"), b.Host(sw, "group"), b.Host(sw, "down")
		unread.InfoRead, none.Info.LID, group.Info.LID, down.Info.PortState = false, 0, ib.LIDMulticastMin, smp.PortArmed
		self := &sw.Ports[0]
		self.Info.PortState = smp.PortDown // of port 0, which has no link, it says nothing
		d := observed.NewDesired(b.Fabric)
		NameMaster(d, b.Fabric.EndPorts(), 9, registered)
		for _, p := range b.Fabric.EndPorts() {
			want := observed.DesiredPort{}
			if p == told || p == self {
				want.Elements, want.Info.MasterSMLID, want.Registered = observed.ElementMasterSMLID, 9, registered
			}
			if got := d.Port(p); got.Elements != want.Elements || got.Info != want.Info || got.Registered != want.Registered {
				t.Errorf("%s: %v, LID %d, registered %v", p, got.Elements.Names(), got.Info.MasterSMLID, got.Registered)
			}
		}
	}
}

// TestMovesWithMaster has one more thing written at a time than a change of the master needs: of the
// LID m that moves with it the address of the ports that have it or are to have it, and its entry in
// the tables of switches.
func TestMovesWithMaster(t *testing.T) {
	const m, other = ib.LID(40), ib.LID(41)
	for _, x := range []struct {
		name   string
		change func(d *observed.Desired, sw *observed.Node, self, had, third *observed.Port)
		with   ib.LID
		all    bool
		tables bool
	}{
		{"nothing but MasterSMLID", func(*observed.Desired, *observed.Node, *observed.Port, *observed.Port, *observed.Port) {}, 0, true, false},
		{"P_Keys", func(d *observed.Desired, _ *observed.Node, _, _, third *observed.Port) {
			d.Port(third).PKeys = []ib.PKey{0x8010}
		}, 0, true, true},
		{"a setting of a host", func(d *observed.Desired, _ *observed.Node, _, _, third *observed.Port) {
			d.Port(third).Elements |= observed.ElementHOQLife
			d.Port(third).Info.HOQLife = 3
		}, m, false, false},
		{"the address of the master", func(d *observed.Desired, _ *observed.Node, self, _, _ *observed.Port) {
			d.Port(self).Elements |= observed.ElementLID
			d.Port(self).Info.LID = m
		}, m, true, false},
		{"the address of the master, which no LID moves with", func(d *observed.Desired, _ *observed.Node, self, _, _ *observed.Port) {
			d.Port(self).Elements |= observed.ElementLID
			d.Port(self).Info.LID = m
		}, 0, false, false},
		{"the address of who was master", func(d *observed.Desired, _ *observed.Node, _, had, _ *observed.Port) {
			d.Port(had).Elements |= observed.ElementLID | observed.ElementLMC
			d.Port(had).Info.LID, d.Port(had).Info.LMC = 7, 1
		}, m, true, false},
		{"the address of who was master, and its link", func(d *observed.Desired, _ *observed.Node, _, had, _ *observed.Port) {
			d.Port(had).Elements |= observed.ElementLID
			d.Port(had).Info.LID, d.Port(had).Activate, had.Info.PortState = 7, true, smp.PortArmed
		}, m, false, false},
		{"the address of a third", func(d *observed.Desired, _ *observed.Node, _, _, third *observed.Port) {
			d.Port(third).Elements |= observed.ElementLID
			d.Port(third).Info.LID = 7
		}, m, false, false},
		{"the entry of the LID", func(d *observed.Desired, sw *observed.Node, _, _, _ *observed.Port) { d.Nodes[sw.Index].LFT[m] = 3 }, m, true, false},
		{"the entry of the LID, which moves with nobody", func(d *observed.Desired, sw *observed.Node, _, _, _ *observed.Port) { d.Nodes[sw.Index].LFT[m] = 3 }, 0, false, false},
		{"the entry of another LID", func(d *observed.Desired, sw *observed.Node, _, _, _ *observed.Port) { d.Nodes[sw.Index].LFT[other] = 3 }, m, false, false},
		{"that of another block at the same place", func(d *observed.Desired, sw *observed.Node, _, _, _ *observed.Port) { d.Nodes[sw.Index].LFT[m+64] = 3 }, m, false, false},
		{"virtual lanes", func(d *observed.Desired, _ *observed.Node, _, _, third *observed.Port) {
			d.Port(third).VLArbitration[0] = &smp.VLArbitrationTable{Entries: [32]smp.VLArbitrationEntry{{Weight: 1}}}
		}, m, false, false},
	} {
		b := subnettest.New()
		b.SwitchInfo.LinearFDBCap = 256
		sw := b.Switch(4, "switch")
		self, had, third := b.Host(sw, "self"), b.Host(sw, "had"), b.Host(sw, "third")
		had.Info.LID = m
		b.Route()
		sw.Switch.LFT, sw.Switch.LFTRead, sw.Switch.Info.LinearFDBTop = make([]ib.PortNum, 128), []bool{true, true}, 127
		d := observed.NewDesired(b.Fabric)
		d.Nodes[sw.Index].LFT = make([]ib.PortNum, 128)
		NameMaster(d, b.Fabric.EndPorts(), 9, false)
		x.change(d, sw, self, had, third)
		all, tables := Diff(b.Fabric, d).MovesWithMaster(d, self, x.with)
		if all != x.all || tables != x.tables {
			t.Errorf("%s: all %v, tables %v", x.name, all, tables)
		}
	}
}

// TestSameAsRead compares what a device answers before a write with what is known of it.
func TestSameAsRead(t *testing.T) {
	f := star(1, func(int) bool { return true }, smp.PortActive)
	p := f.Nodes[1].Port(1)
	subnettest.SetPKeys(p, 0x8001, 0x8002)
	for _, x := range []struct {
		name   string
		op     Op
		answer Encoder
		want   error
	}{
		{"the same keys", Op{Port: p, Attribute: smp.AttrPKeyTable}, &smp.PKeyTable{Keys: [32]ib.PKey{0x8001, 0x8002}}, nil},
		{"other keys", Op{Port: p, Attribute: smp.AttrPKeyTable}, &smp.PKeyTable{Keys: [32]ib.PKey{0x8001, 0x8003}}, errOtherwise},
		{"one more key", Op{Port: p, Attribute: smp.AttrPKeyTable}, &smp.PKeyTable{Keys: [32]ib.PKey{0x8001, 0x8002, 31: 0x8003}}, errOtherwise},
		{"the second block", Op{Port: p, Attribute: smp.AttrPKeyTable, Modifier: 1}, &smp.PKeyTable{Keys: [32]ib.PKey{}}, nil},
		{"a key in the second block", Op{Port: p, Attribute: smp.AttrPKeyTable, Modifier: 1}, &smp.PKeyTable{Keys: [32]ib.PKey{7: 1}}, errOtherwise},
		{"keys past the table", Op{Port: p, Attribute: smp.AttrPKeyTable, Modifier: 1}, &smp.PKeyTable{Keys: [32]ib.PKey{8: 1}}, nil},
		{"the same settings", Op{Port: p, Attribute: smp.AttrPortInfo}, &p.Info, nil},
		{"another table", Op{Port: p, Attribute: smp.AttrLinearForwardingTable}, &smp.PKeyTable{Keys: [32]ib.PKey{9}}, nil},
	} {
		var data [mad.DataSize]byte
		if err := x.answer.Encode(&data); err != nil {
			t.Fatal(err)
		}
		if err := x.op.SameAsRead(data[:]); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
		if err := x.op.SameAsRead(data[:9]); (err == nil) != (x.op.Attribute == smp.AttrLinearForwardingTable) {
			t.Errorf("%s, cut off: %v", x.name, err)
		}
	}
	for name, change := range map[string]func(*smp.PortInfo){
		"a check on the way in": func(x *smp.PortInfo) { x.PartitionEnforcementInbound = true }, "a filter": func(x *smp.PortInfo) { x.FilterRawOutbound = true },
		"a LID": func(x *smp.PortInfo) { x.LID++ }, "a state": func(x *smp.PortInfo) { x.PortState = smp.PortInit },
	} {
		info := p.Info
		change(&info)
		var data [mad.DataSize]byte
		if err := info.Encode(&data); err != nil {
			t.Fatal(err)
		}
		op := Op{Port: p, Attribute: smp.AttrPortInfo}
		if err := op.SameAsRead(data[:]); !errors.Is(err, errOtherwise) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
