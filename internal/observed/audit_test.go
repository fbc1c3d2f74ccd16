package observed

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// What only an audit reads is kept, each where it belongs, and doubted again.
func TestAbsorbForAudit(t *testing.T) {
	_, sw, ca := pair()
	sw.Switch.Info.MulticastFDBCap = 33
	management, port := &sw.Ports[0], &ca.Ports[1]
	for _, x := range []struct {
		port     *Port
		modifier uint32
		value    smp.Attribute
		kept     func() bool
	}{
		{management, smp.MFTModifier(1, 0), &smp.MulticastForwardingTable{Masks: [32]uint16{0: 5}},
			func() bool { return sw.Switch.MFT[smp.MFTModifier(1, 0)].Masks[0] == 5 }},
		{port, 0, &smp.SMInfo{GUID: 3, SMState: smp.SMMaster},
			func() bool { return port.SMInfoRead && port.SMInfo.GUID == 3 }},
		{port, 1, &smp.GUIDInfo{GUIDs: [8]uint64{0, 7}},
			func() bool { return port.GUIDInfo[1].GUIDs[1] == 7 }},
	} {
		id := x.value.ID()
		if x.kept() {
			t.Fatalf("%s was there before", smp.AttributeName(id))
		}
		if err := x.port.Absorb(id, x.modifier, encoded(t, x.value)); err != nil || !x.kept() {
			t.Errorf("%s: kept %v, %v", smp.AttributeName(id), x.kept(), err)
		}
		x.port.MarkUnread(id, x.modifier)
		if x.kept() {
			t.Errorf("%s: still believed after a doubt", smp.AttributeName(id))
		}
	}
}

// The table in force ends at MulticastFDBTop, where the switch has one.
func TestMFTBlocks(t *testing.T) {
	_, sw, ca := pair()
	sw.Switch.Info.MulticastFDBCap = 100
	if sw.MFTBlocks() != 4 || ca.MFTBlocks() != 0 || sw.MFTPositions() != 1 {
		t.Errorf("%d blocks and %d positions, want 4 and 1; %d blocks on a CA", sw.MFTBlocks(), sw.MFTPositions(), ca.MFTBlocks())
	}
	p := &sw.Ports[0]
	p.InfoRead, p.Info.CapabilityMask = true, smp.CapMulticastFDBTop
	for top, want := range map[ib.LID]int{0xBFFF: 0, 0xC000: 1, 0xC01F: 1, 0xC020: 2, 0xFFFE: 4} {
		if sw.Switch.Info.MulticastFDBTop = top; sw.MFTBlocks() != want {
			t.Errorf("top 0x%x: %d blocks, want %d", top, sw.MFTBlocks(), want)
		}
	}
}
