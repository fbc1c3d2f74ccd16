package plan

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// bytes are an attribute's.
func bytes(t *testing.T, a interface {
	Encode(*[mad.DataSize]byte) error
}) (data [mad.DataSize]byte) {
	t.Helper()
	if err := a.Encode(&data); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestWhereABlockStands compares where a block of each attribute stands, by what its device shows, and
// what is said of one that somebody else wrote.
func TestWhereABlockStands(t *testing.T) {
	keys := func(k ...ib.PKey) [mad.DataSize]byte {
		var x smp.PKeyTable
		copy(x.Keys[:], k)
		return bytes(t, &x)
	}
	aliases := func(g ...uint64) [mad.DataSize]byte {
		var x smp.GUIDInfo
		copy(x.GUIDs[:], append([]uint64{0x1011}, g...)) // the port's own first
		return bytes(t, &x)
	}
	port := func(x smp.PortInfo) [mad.DataSize]byte { return bytes(t, &x) }
	sw := func(x smp.SwitchInfo) [mad.DataSize]byte { return bytes(t, &x) }
	pkeys := ChangedBlock{Attribute: smp.AttrPKeyTable, Before: keys(0x8010, 0x8020, 0), After: keys(0x8010, 0x8030, 0x8040)}
	guids := ChangedBlock{Attribute: smp.AttrGUIDInfo, Before: aliases(0xA1, 0xA2), After: aliases(0xA1, 0xA3)}
	info := ChangedBlock{Attribute: smp.AttrPortInfo, Elements: observed.ElementLID | observed.ElementMasterSMLID, Before: port(smp.PortInfo{LID: 2, MasterSMLID: 1}), After: port(smp.PortInfo{LID: 3, MasterSMLID: 4})}
	up := info
	up.Activate = true
	swInfo := ChangedBlock{Attribute: smp.AttrSwitchInfo, Before: sw(smp.SwitchInfo{LinearFDBTop: 5, DefaultPort: 1}), After: sw(smp.SwitchInfo{LinearFDBTop: 6, DefaultPort: 2})}
	unread := func(b ChangedBlock) ChangedBlock { b.Unread = true; return b }
	hold := func(k ...ib.PKey) func(*observed.Port) {
		return func(p *observed.Port) { subnettest.SetPKeys(p, k...) }
	}
	shows := func(g ...uint64) func(*observed.Port) {
		return func(p *observed.Port) {
			var x smp.GUIDInfo
			copy(x.GUIDs[:], append([]uint64{0x1011}, g...))
			p.GUIDInfo = map[uint32]smp.GUIDInfo{0: x}
		}
	}
	has := func(lid, master ib.LID, state smp.PortState) func(*observed.Port) {
		return func(p *observed.Port) { p.Info.LID, p.Info.MasterSMLID, p.Info.PortState = lid, master, state }
	}
	tops := func(top ib.LID, out ib.PortNum) func(*observed.Port) {
		return func(p *observed.Port) { p.Node.Switch.Info.LinearFDBTop, p.Node.Switch.Info.DefaultPort = top, out }
	}
	for _, x := range []struct {
		name  string
		b     ChangedBlock
		show  func(*observed.Port)
		where ChangePosition
		says  string
	}{
		{"keys as before", pkeys, hold(0x8010, 0x8020), AtOld, ""},
		{"keys as they are to be", pkeys, hold(0x8010, 0x8030, 0x8040), AtNew, ""},
		{"one key written", pkeys, hold(0x8010, 0x8030), BetweenSides, ""},
		{"keys taken, none given", pkeys, hold(0x8010), BetweenSides, ""},
		{"a key that is limited so long", pkeys, hold(0x8010, 0x0030), BetweenSides, ""},
		{"the old key limited so long", pkeys, hold(0x8010, 0x0020), BetweenSides, ""},
		{"the limited key of another", pkeys, hold(0x8010, 0x0040), Elsewhere, "index 1 holds 0x0040, which is neither 0x8020 as before nor 0x8030 as it was to be"},
		{"the full key of another", pkeys, hold(0x8010, 0x8020, 0x8099), Elsewhere, "index 2 holds 0x8099, which is neither 0x0000 as before nor 0x8040 as it was to be"},
		{"a spare key in its way", pkeys, hold(0x8010, 0xFFFF), BetweenSides, ""},
		{"a spare key in place of one that stays", pkeys, hold(0xFFFF, 0x8030), Elsewhere, "index 0 holds 0xffff, which is neither 0x8010 as before nor 0x8010 as it was to be"},
		{"a key gone that stays", pkeys, hold(0, 0x8030), Elsewhere, "index 0 holds 0x0000, which is neither 0x8010 as before nor 0x8010 as it was to be"},
		{"a spare key where nothing is to be", pkeys, hold(0x8010, 0x8030, 0, 0xFFFF), BetweenSides, ""},
		{"keys that were not read", pkeys, func(p *observed.Port) { p.PKeysRead[0] = false }, Elsewhere, "could not be read"},
		{"aliases as before", guids, shows(0xA1, 0xA2), AtOld, ""},
		{"aliases as they are to be", guids, shows(0xA1, 0xA3), AtNew, ""},
		{"an alias taken", guids, shows(0xA1), BetweenSides, ""},
		{"an alias of another", guids, shows(0xA1, 0xA9), Elsewhere, "entry 2 holds 0x00000000000000a9, which is neither 0x00000000000000a2 as before nor 0x00000000000000a3 as it was to be"},
		{"aliases that were not read", guids, func(*observed.Port) {}, Elsewhere, "could not be read"},
		{"aliases that were never read", unread(guids), func(*observed.Port) {}, BetweenSides, ""},
		{"aliases that were not read before", unread(guids), shows(0xA1, 0xA9), AtOld, ""},
		{"settings as before", info, has(2, 1, smp.PortActive), AtOld, ""},
		{"settings as they are to be", info, has(3, 4, smp.PortInit), AtNew, ""},
		{"half of the settings", info, has(3, 1, smp.PortActive), BetweenSides, ""},
		{"the other half", info, has(2, 4, smp.PortActive), BetweenSides, ""},
		{"a setting of another", info, has(3, 9, smp.PortActive), Elsewhere, "[MasterSMLID]: " + neither},
		{"settings of another", info, has(9, 9, smp.PortActive), Elsewhere, "[LID MasterSMLID]: " + neither},
		{"settings that are not kept", info, func(p *observed.Port) { has(3, 1, smp.PortActive)(p); p.Forgets = observed.ElementMasterSMLID }, AtNew, ""},
		{"settings, and a link that is not up", up, has(3, 4, smp.PortArmed), BetweenSides, ""},
		{"settings, and a link that is up", up, has(3, 4, smp.PortActive), AtNew, ""},
		{"settings that were not read", info, func(p *observed.Port) { p.InfoRead = false }, Elsewhere, "could not be read"},
		{"a top as before", swInfo, tops(5, 1), AtOld, ""},
		{"a top as it is to be", swInfo, tops(6, 2), AtNew, ""},
		{"half of it", swInfo, tops(6, 1), Elsewhere, neither},
		{"a port that was not reached", pkeys, func(p *observed.Port) { p.Reached = false }, Elsewhere, "the port was not found"},
	} {
		b := subnettest.New()
		b.PortInfo.GUIDCap = 8
		leaf := b.Switch(2, "leaf")
		b.GUID = 0x1010
		p := b.Host(leaf, "host")
		if x.b.Attribute == smp.AttrSwitchInfo {
			p = &leaf.Ports[0]
		}
		x.show(p)
		x.b.Node, x.b.Port = p.Node.GUID(), p.Num
		where, says := x.b.stand(b.Fabric, []ib.PKey{0xFFFF})
		if where != x.where || says != x.says {
			t.Errorf("%s: %v, %q; want %v, %q", x.name, where, says, x.where, x.says)
		}
	}
}

// TestSpareKeys: at the manager's port and the switch port before it every key of a change may stand
// elsewhere for a while, at other switch ports the default one, at other hosts none.
func TestSpareKeys(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	self, host := b.Host(leaf, "self"), b.Host(leaf, "host")
	b.ManagedFrom(self)
	before, after := bytes(t, &smp.PKeyTable{Keys: [32]ib.PKey{0xFFFF, 0x8010}}), bytes(t, &smp.PKeyTable{Keys: [32]ib.PKey{0x7FFF, 0, 0x8020}})
	for _, x := range []struct {
		p    *observed.Port
		want []ib.PKey
	}{{self, []ib.PKey{0xFFFF, 0x8010, 0x7FFF, 0x8020}}, {self.Peer, []ib.PKey{0xFFFF, 0x8010, 0x7FFF, 0x8020}}, {host.Peer, []ib.PKey{0xFFFF, 0x7FFF}}, {host, nil}} {
		c := &Change{[]ChangedBlock{{Node: x.p.Node.GUID(), Port: x.p.Num, Attribute: smp.AttrPKeyTable, Before: before, After: after},
			{Node: x.p.Node.GUID(), Port: x.p.Num, Attribute: smp.AttrGUIDInfo, Before: before, After: after}, {Node: 0xBAD, Attribute: smp.AttrPKeyTable, Before: before}}}
		if got := c.spare(b.Fabric)[portKey{x.p.Node.GUID(), x.p.Num}]; !slices.Equal(got, x.want) || len(c.spare(b.Fabric)) > 1 {
			t.Errorf("%s: %v, want %v", x.p, got, x.want)
		}
	}
}

// TestTheManagerGoesAlong: the manager's own device is in every step that has another in it, and in none
// before the first.
func TestTheManagerGoesAlong(t *testing.T) {
	f := changeStar(3)
	f.Self = f.Nodes[1].Port(1)
	full := observed.NewDesired(f)
	for i := 1; i <= 3; i++ {
		p := f.Nodes[i].Port(1)
		full.Port(p).PKeys, full.Port(p.Peer).PKeys = []ib.PKey{0x8066}, []ib.PKey{0x8066}
	}
	for _, x := range []struct {
		done []int
		want [4]bool // who gets the new key
	}{{nil, [4]bool{}}, {[]int{2}, [4]bool{1: true, 2: true}}, {[]int{1}, [4]bool{1: true}}, {[]int{2, 3}, [4]bool{1: true, 2: true, 3: true}}} {
		done := map[*observed.Node]bool{}
		for _, i := range x.done {
			done[f.Nodes[i]] = true
		}
		d, _ := NextStep(f, full, done)
		for i := 1; i <= 3; i++ {
			if got := slices.Contains(d.Port(f.Nodes[i].Port(1)).PKeys, 0x8066); got != x.want[i] {
				t.Errorf("with %v in it, host %d gets the key: %v", x.done, i, got)
			}
		}
		if len(done) != len(x.done) {
			t.Errorf("the caller's list has %d devices now", len(done))
		}
	}
}

// TestActivateIsOfItsLink: of a change that brings some links up, the blocks of their ports say so, and
// no others; a block that is written twice is in it once.
func TestActivateIsOfItsLink(t *testing.T) {
	f := changeStar(3)
	d := other(f)
	want := map[*observed.Port]bool{f.Nodes[2].Port(1): true, f.Nodes[3].Port(1): true}
	for i := 1; i <= 3; i++ {
		p := f.Nodes[i].Port(1)
		p.Info.PortState = smp.PortInit
		d.Port(p).Activate = want[p]
		d.Port(p).Elements |= observed.ElementHOQLife
		d.Port(p).Info.HOQLife = 7
	}
	c, err := ChangeOf(f, d, Diff(f, d))
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[portKey]int{}
	for _, b := range c.Blocks {
		if b.Attribute != smp.AttrPortInfo {
			if b.Activate {
				t.Errorf("%s of %s brings a link up", smp.AttributeName(b.Attribute), b.Name)
			}
			continue
		}
		blocks[portKey{b.Node, b.Port}]++
		if p := f.Node(b.Node).Port(b.Port); b.Activate != want[p] {
			t.Errorf("%s: brings its link up %v", b.Name, b.Activate)
		}
	}
	for i := 1; i <= 3; i++ {
		if p := f.Nodes[i].Port(1); blocks[portKey{p.Node.GUID(), p.Num}] != 1 {
			t.Errorf("%s: %d blocks of PortInfo", p, blocks[portKey{p.Node.GUID(), p.Num}])
		}
	}
}
