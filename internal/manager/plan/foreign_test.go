package plan

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Only what gives a port more than is wanted, and was not so before, is foreign: not what the manager
// had not written yet, what a restart set back, or what takes keys away.
func TestForeign(t *testing.T) {
	const foreign = ib.PKey(0x8020)
	change := func(p *observed.Port) { p.PKeys[9] = foreign }
	for _, x := range []struct {
		name     string
		old, now func(p *observed.Port)
		drifted  bool
		want     int
	}{
		{name: "nothing"},
		{name: "a key more", now: change, want: 1},
		{name: "a key more, seen before", old: change, now: change, drifted: true, want: 1},
		{name: "a key that the manager was still to take", old: change, now: change},
		{name: "another key that the manager was still to take", old: func(p *observed.Port) { p.PKeys[8] = foreign }, now: change},
		{name: "a key less", now: func(p *observed.Port) { p.PKeys[0] = ib.PKeyInvalid }},
		{name: "after a restart", now: func(p *observed.Port) { change(p); p.Info.PortState = smp.PortInit }},
		{name: "without its LID", now: func(p *observed.Port) { change(p); p.Info.LID = 0 }},
		{name: "not read", now: func(p *observed.Port) { change(p); p.PKeysRead[0] = false }},
		{name: "not reached", now: func(p *observed.Port) { change(p); p.Reached = false }},
		{name: "not read before", old: func(p *observed.Port) { p.PKeysRead[0] = false }, now: change},
	} {
		t.Run(x.name, func(t *testing.T) {
			read := func(change func(*observed.Port)) (*observed.Fabric, *observed.Port) {
				f := star(3, func(int) bool { return true }, smp.PortActive)
				var p *observed.Port
				for _, q := range f.EndPorts() {
					if q.Node.Switch == nil {
						p = q
					}
				}
				p.Reached, p.InfoRead, p.Info.LID = true, true, 7
				p.PKeys, p.PKeysRead = make([]ib.PKey, p.PKeyCap()), make([]bool, p.PKeyBlocks())
				for i := range p.PKeysRead {
					p.PKeysRead[i] = true
				}
				p.PKeys[0] = 0x8010
				if change != nil {
					change(p)
				}
				return f, p
			}
			old, q := read(x.old)
			now, p := read(x.now)
			was := observed.NewDesired(old)
			was.Port(q).PKeys = []ib.PKey{0x8010}
			var drifted []*observed.Port
			if x.drifted {
				drifted = []*observed.Port{q}
			}
			ops, d := Foreign(old, was, drifted, now)
			if len(ops) != x.want || x.want > 0 && (ops[0].Port != p || ops[0].Attribute != smp.AttrPKeyTable || d.Port(p).PKeys[0] != 0x8010) {
				t.Errorf("%v", ops)
			}
		})
	}
}

// Enforcement that somebody turned off is foreign as a key is.
func TestForeignEnforcement(t *testing.T) {
	read := func(on bool) (*observed.Fabric, *observed.Port) {
		f := star(2, func(int) bool { return true }, smp.PortActive)
		for _, n := range f.Nodes {
			if n.Switch != nil {
				p := &n.Ports[1]
				p.Reached, p.InfoRead = true, true
				p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound = on, on
				return f, p
			}
		}
		t.Fatal("no switch")
		return nil, nil
	}
	old, q := read(true)
	was := observed.NewDesired(old)
	want := was.Port(q)
	want.Elements = observed.ElementEnforcement
	want.Info.PartitionEnforcementInbound, want.Info.PartitionEnforcementOutbound = true, true
	now, p := read(false)
	if ops, _ := Foreign(old, was, nil, now); len(ops) != 1 || ops[0].Port != p || ops[0].Attribute != smp.AttrPortInfo {
		t.Errorf("%v", ops)
	}
	if ops, d := Foreign(old, was, nil, old); ops != nil || d != nil {
		t.Errorf("of one and the same reading: %v", ops)
	}
}
