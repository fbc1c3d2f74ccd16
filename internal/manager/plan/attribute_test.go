package plan

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestAttributesAgree holds each attribute that a change keeps against itself: a block
// that was wanted, entered into desired values that want nothing yet, is wanted again,
// and nothing else is; Held reads what a device would answer after the write.
func TestAttributesAgree(t *testing.T) {
	fabric := func() *observed.Fabric {
		f := star(2, func(int) bool { return true }, smp.PortActive)
		sw := f.Nodes[0].Switch
		sw.LFT, sw.LFTRead = make([]ib.PortNum, 128), []bool{true, true}
		sw.RFT, sw.RFTRead = make([]smp.RandomEntry, 32), []bool{true, true}
		sw.Info.RandomFDBCap, sw.Info.LinearFDBTop = 32, 127
		p := f.Nodes[1].Port(1)
		p.Info.GUIDCap = 13 // its last block is not full
		p.GUIDInfo = map[uint32]smp.GUIDInfo{0: {}, 1: {}}
		p.SLToVL = map[ib.PortNum]smp.SLToVLMappingTable{0: {}}
		p.VLArbitration = make([]smp.VLArbitrationTable, 4)
		return f
	}
	// blocks are the last of each table, where there are several.
	blocks := map[mad.AttributeID]struct {
		node, port int
		modifier   uint32
	}{
		smp.AttrPKeyTable: {1, 1, 1}, smp.AttrGUIDInfo: {1, 1, 1},
		smp.AttrLinearForwardingTable: {0, 0, 1}, smp.AttrRandomForwardingTable: {0, 0, 1},
		smp.AttrSwitchInfo: {0, 0, 0}, smp.AttrSLToVLMappingTable: {1, 1, 0}, smp.AttrVLArbitrationTable: {1, 1, 4 << 16},
	}
	want := func(f *observed.Fabric) *observed.Desired {
		d := observed.NewDesired(f)
		p := f.Nodes[1].Port(1)
		x, n := d.Port(p), &d.Nodes[0]
		x.PKeys = make([]ib.PKey, 40)
		x.PKeys[3], x.PKeys[39] = 0x8001, 0x8002
		x.GUIDs = make([]ib.PortGUID, 16)
		x.GUIDs[1], x.GUIDs[9] = 0xA1, 0xA9
		x.SLToVL = []*smp.SLToVLMappingTable{&smp.SLToVLMappingTable{VLs: [smp.SLCount]ib.VL{1: 1, 15: 3}}}
		for part := range x.VLArbitration {
			x.VLArbitration[part] = &smp.VLArbitrationTable{}
			x.VLArbitration[part].Entries[3].Weight = uint8(part + 7)
		}
		n.LFT, n.RFT, n.DefaultPort = make([]ib.PortNum, 128), make([]smp.RandomEntry, 32), 2
		n.LFT[100], n.RFT[31] = 2, smp.RandomEntry{LID: 9, Valid: true, Port: 1}
		return d
	}
	bytes := func(e Encoder) (b [mad.DataSize]byte) {
		t.Helper()
		if err := e.Encode(&b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	for id := range attributes {
		if d, ok := smp.Describe(id); !ok || !d.Access.CanSet() {
			t.Errorf("%s cannot be written", smp.AttributeName(id))
		}
		what, err := Describe(id)
		if id == smp.AttrPortInfo || err != nil {
			if (err != nil) != (id == smp.AttrMulticastForwardingTable) {
				t.Errorf("%s: %v", smp.AttributeName(id), err)
			}
			continue
		}
		at, listed := blocks[id]
		if !listed {
			t.Errorf("%s is not tried here", smp.AttributeName(id))
			continue
		}
		f := fabric()
		p := &f.Nodes[at.node].Ports[at.port]
		data := bytes(what.Wanted(p, want(f), at.modifier))
		held, read := what.Held(p, at.modifier)
		if before := bytes(held); !read || before == data {
			t.Fatalf("%s: the same is held (read %t): %x", smp.AttributeName(id), read, before)
		}
		fresh := observed.NewDesired(f)
		fresh.Nodes[0].LFT = make([]ib.PortNum, 128) // a change makes the room for routes
		if id == smp.AttrSwitchInfo {
			fresh.Nodes[0].RFT = f.Nodes[0].Switch.RFT // the port is the random table's
		}
		if err := what.Enter(p, fresh, at.modifier, data[:]); err != nil {
			t.Fatal(err)
		}
		if again := bytes(what.Wanted(p, fresh, at.modifier)); again != data {
			t.Errorf("%s: %x is entered, and wanted is %x", smp.AttributeName(id), data, again)
		}
		if err := p.Absorb(id, at.modifier, data[:]); err != nil {
			t.Fatal(err)
		}
		if held, read := what.Held(p, at.modifier); !read || bytes(held) != data {
			t.Errorf("%s: after the write held is %x (read %t), want %x", smp.AttributeName(id), bytes(held), read, data)
		}
		if err := what.Enter(p, fresh, at.modifier, data[:1]); err == nil {
			t.Errorf("%s: one byte was taken for a block", smp.AttributeName(id))
		}
	}
}
