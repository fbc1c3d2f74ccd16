package observed

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Every attribute that Absorb takes is noted when it says something new, at the
// port that it belongs to, not when it says the same again, and when it is
// doubted.
func TestTakeChanges(t *testing.T) {
	f, sw, ca := pair()
	sw.Switch.Info = smp.SwitchInfo{LinearFDBCap: 100, RandomFDBCap: 20, PartitionEnforcementCap: 5, MulticastFDBCap: 33}
	if list, all := f.TakeChanges(); len(list) > 0 || !all {
		t.Fatalf("%v, all %v: want that anything may have changed", list, all)
	}
	management, port := &sw.Ports[0], &ca.Ports[1]
	same := sw.Switch.Info
	for _, x := range []struct {
		ask      *Port
		modifier uint32
		value    smp.Attribute
		at       *Port
	}{
		{management, 0, &smp.NodeDescription{}, management},
		{management, 0, &same, management},
		{management, 3, &smp.PortInfo{LID: 7}, &sw.Ports[3]},
		{port, 0, &smp.PortInfo{LID: 8}, port},
		{management, smp.PKeyModifier(2, 0), &smp.PKeyTable{Keys: [32]ib.PKey{0x8001}}, &sw.Ports[2]},
		{port, 1, &smp.PKeyTable{Keys: [32]ib.PKey{0x8001}}, port},
		{management, 1, &smp.LinearForwardingTable{}, management},
		{management, 0, &smp.RandomForwardingTable{}, management},
		{management, smp.MFTModifier(1, 0), &smp.MulticastForwardingTable{}, management},
		{management, smp.SLToVLModifier(1, 2), &smp.SLToVLMappingTable{}, &sw.Ports[2]},
		{management, smp.VLArbModifier(smp.VLArbHighFirst, 4), &smp.VLArbitrationTable{}, &sw.Ports[4]},
		{port, 0, &smp.SMInfo{GUID: 3}, port},
		{port, 1, &smp.GUIDInfo{GUIDs: [8]uint64{5}}, port},
	} {
		id, data := x.value.ID(), encoded(t, x.value)
		if id == smp.AttrNodeDescription {
			data[0] = 'x'
		}
		want := []Change{{x.at, id}}
		for round, want := range [][]Change{want, nil} {
			if id == smp.AttrSMInfo && round == 1 {
				continue // who was asked again may have another state
			}
			if err := x.ask.Absorb(id, x.modifier, data); err != nil {
				t.Fatal(err)
			}
			if list, all := f.TakeChanges(); !slices.Equal(list, want) || all {
				t.Errorf("%s, round %d: %v, all %v, want %v", smp.AttributeName(id), round, list, all, want)
			}
		}
		if id == smp.AttrNodeDescription || id == smp.AttrSLToVLMappingTable || id == smp.AttrVLArbitrationTable {
			continue // are not doubted
		}
		x.ask.MarkUnread(id, x.modifier)
		if list, _ := f.TakeChanges(); !slices.Equal(list, want) {
			t.Errorf("%s doubted: %v, want %v", smp.AttributeName(id), list, want)
		}
		if err := x.ask.Absorb(id, x.modifier, data); err != nil {
			t.Fatal(err)
		}
		if list, _ := f.TakeChanges(); !slices.Equal(list, want) {
			t.Errorf("%s read again after a doubt: %v, want %v", smp.AttributeName(id), list, want)
		}
	}
}

func TestCountersOfViolationsAreNoChange(t *testing.T) {
	f, _, ca := pair()
	p := &ca.Ports[1]
	f.TakeChanges()
	info := smp.PortInfo{LID: 3}
	for _, x := range []struct {
		change func()
		noted  int
	}{
		{func() {}, 1},
		{func() { info.MKeyViolations, info.PKeyViolations, info.QKeyViolations = 1, 2, 3 }, 0},
		{func() { info.PKeyViolations, info.LMC = 4, 1 }, 1},
	} {
		x.change()
		if err := p.Absorb(smp.AttrPortInfo, 0, encoded(t, &info)); err != nil {
			t.Fatal(err)
		}
		if list, _ := f.TakeChanges(); len(list) != x.noted || p.Info != info {
			t.Errorf("noted %v, want %d; kept %v", list, x.noted, p.Info == info)
		}
	}
}

// Nobody who follows a fabric takes part of the changes for all of them.
func TestChangesAreBounded(t *testing.T) {
	f, sw, _ := pair()
	f.TakeChanges()
	for i := range MaxChanges + 1 {
		info := smp.PortInfo{LID: ib.LID(i + 1)}
		if err := sw.Ports[0].Absorb(smp.AttrPortInfo, 1, encoded(t, &info)); err != nil {
			t.Fatal(err)
		}
	}
	if list, all := f.TakeChanges(); len(list) != MaxChanges || !all {
		t.Errorf("%d changes, all %v", len(list), all)
	}
	if list, all := f.TakeChanges(); len(list) != 0 || all {
		t.Errorf("%d changes, all %v after they were taken", len(list), all)
	}
}

func TestRecallIsAChange(t *testing.T) {
	_, _, before := pair()
	f, _, now := pair()
	f.TakeChanges()
	old := &before.Ports[1]
	old.PKeys, old.PKeysRead = make([]ib.PKey, 33), []bool{true, true}
	now.Ports[1].Recall(old)
	if list, _ := f.TakeChanges(); !slices.Equal(list, []Change{{&now.Ports[1], smp.AttrPKeyTable}}) {
		t.Errorf("noted %v", list)
	}
}
