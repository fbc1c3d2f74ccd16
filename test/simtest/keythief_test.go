package simtest

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// everyKey lists all keys that a book can come to.
func everyKey(c *mkey.KeyingConfig) map[ib.MKey]mkey.ID {
	keys := make(map[ib.MKey]mkey.ID)
	for _, s := range c.Book.Entries() {
		for g := mkey.Generation(1); g <= s.Wanted()+mkey.FurtherGenerations; g++ {
			keys[c.Ring.MKey(s.ID, g)] = s.ID
		}
	}
	return keys
}

// keysIn finds keys in bytes, wherever they begin.
func keysIn(bytes []byte, keys map[ib.MKey]mkey.ID) (found []mkey.ID) {
	for i := 0; i+8 <= len(bytes); i++ {
		if id, ok := keys[ib.MKey(binary.BigEndian.Uint64(bytes[i:]))]; ok {
			found = append(found, id)
		}
	}
	return found
}

// A program of a host that says it is a manager, sends traps, asks for and tells
// SMInfo in every role, is given no key: neither the fabric's nor its own
// port's.
func TestKeysStayAway(t *testing.T) {
	for _, profile := range []protect.Profile{protect.None, protect.Tenant} {
		t.Run(profile.String(), func(t *testing.T) { testKeysStayAway(t, profile) })
	}
}

func testKeysStayAway(t *testing.T, profile protect.Profile) {
	list := topology.Demo()
	y := halves(hosts(list))
	manager := keyed()
	manager.Profile = profile
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: manager})
	s := w.stranger("red-2")
	s.SetIsSM(true)
	var got [][]byte
	tell := func(method mad.Method, control uint32, state smp.SMState, guid ib.PortGUID) {
		info := smp.SMInfo{GUID: guid, Priority: 15, SMState: state, ActCount: 1 << 20}
		p := s.packet(mad.ClassSubnLID, method, smp.AttrSMInfo, control)
		w.encode(&info, &p.Data)
		s.send(&p, w.info(w.self).LID)
	}
	for round := range 30 {
		tell(mad.MethodGet, 0, smp.SMState(round%4), ib.PortGUID(0x7000))
		tell(mad.MethodSet, uint32(round%6), smp.SMState(round%4), w.selfGUID())
		s.localChange()
		bad := smp.BadMKeyDetails{LID: w.info(w.self).LID, MKey: 1}
		s.trap(smp.TrapBadMKey, &bad)
		for range 20 {
			w.run(50 * time.Millisecond)
			var d fabric.Delivery
			for s.Receive(&d) {
				got = append(got, append([]byte(nil), d.MAD[:]...))
				// Whoever asks for SMInfo gets what a manager would answer.
				var p mad.SMP
				if p.UnmarshalBinary(d.MAD[:]) == nil && p.AttributeID == smp.AttrSMInfo && !p.Method.IsResponse() {
					p.MakeResponse(mad.StatusOK)
					info := smp.SMInfo{GUID: w.agent(s.at.node).NodeInfo(s.at.num).PortGUID, Priority: 15, SMState: smp.SMState(round % 4)}
					w.encode(&info, &p.Data)
					s.send(&p, w.info(w.self).LID)
				}
			}
		}
	}
	keys, asked := everyKey(manager.Keys), 0
	for _, bytes := range got {
		if found := keysIn(bytes, keys); len(found) > 0 {
			t.Errorf("a program on red-2 is given the key of %v: %x", found, bytes)
		}
		var p mad.SMP
		if p.UnmarshalBinary(bytes) == nil && p.AttributeID == smp.AttrSMInfo && p.Method == mad.MethodGet {
			asked++
		}
	}
	if believes := profile == protect.None; (asked > 0) != believes {
		t.Errorf("the manager asked red-2 for SMInfo %d times", asked)
	}
	if len(keysIn(append([]byte{1, 2, 3}, binary.BigEndian.AppendUint64(nil, uint64(w.info(s.at).MKey))...), keys)) != 1 {
		t.Error("a key that is there is not found")
	}
}

// Sets of strangers are refused by every device, with no key, with guessed ones,
// and however long one waits.
func TestStrangersWriteNothing(t *testing.T) {
	need.Long(t, "thousands of forged Sets, and hours between them")
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: keyed()})
	s := w.stranger("blue-2")
	before := w.isolating()
	for round := range 3 {
		for _, n := range list.Nodes {
			to := place{n.GUID, 1}
			if n.GUID == s.at.node {
				continue
			}
			for _, key := range []ib.MKey{0, 1, ib.MKey(n.GUID), ^ib.MKey(0), w.info(s.at).MKey} {
				for _, a := range []mad.AttributeID{smp.AttrPortInfo, smp.AttrPKeyTable, smp.AttrSwitchInfo, smp.AttrLinearForwardingTable} {
					for _, m := range []mad.Method{mad.MethodSet, mad.MethodGet} {
						end := to
						if w.agent(n.GUID).SwitchInfo() != nil {
							end.num = 0
						}
						p := s.packet(mad.ClassSubnLID, m, a, 1)
						if n.Type != ib.NodeSwitch {
							p.AttributeModifier = 0
						}
						if p.MKey = key; m == mad.MethodSet && a == smp.AttrPortInfo {
							info := *w.info(to)
							info.MKey, info.MKeyProtectBits, info.PortState, info.PortPhysicalState = 0, 0, 0, 0
							info.LinkDownDefaultState = 0
							w.encode(&info, &p.Data)
						}
						if answer, ok := s.ask(p, w.info(end).LID); ok {
							t.Errorf("round %d: %s answers %v(%s) with M_Key %v: %v", round, n.ID, m, smp.AttributeName(a), key, answer.Status)
						}
					}
				}
			}
		}
		for range 8 { // more than an hour: a lease would have run out
			w.run(limit - time.Minute)
		}
	}
	w.settle()
	if d := firstDifference(before, w.isolating()); d != "" {
		t.Errorf("something has changed: %s", d)
	}
	w.wantGuarded()
	w.checkUp(y)
}

// A device that says it is another is shown no key but those of its own place, and
// none at all once it has said so; the other keeps its key, and works when it
// comes back.
func TestKeysOfImpostor(t *testing.T) {
	need.Long(t, "seconds of processor time")
	for _, x := range []struct {
		name, victim string
		change       func(i *smp.NodeInfo, victim *topology.Node)
	}{
		{"another host", "blue-6", func(i *smp.NodeInfo, v *topology.Node) { i.NodeGUID, i.PortGUID = v.GUID, v.Ports[1].GUID }},
		{"a switch", "spine-2", func(i *smp.NodeInfo, v *topology.Node) {
			i.NodeType, i.NodeGUID, i.PortGUID, i.NumPorts = ib.NodeSwitch, v.GUID, v.Ports[0].GUID, uint8(v.NumPorts())
		}},
		{"somebody new", "", func(i *smp.NodeInfo, _ *topology.Node) { i.NodeGUID, i.PortGUID = 0x77, 0x78 }},
	} {
		for _, off := range []bool{false, true} {
			t.Run(x.name+map[bool]string{true: ", switched off", false: ""}[off], func(t *testing.T) {
				list := topology.Demo()
				y := halves(hosts(list))
				manager := keyed()
				w := bringUp(t, setup{list: list, policy: y.policy(), manager: manager})
				victim := &topology.Node{Ports: make([]topology.Port, 2)}
				if x.victim != "" {
					victim = w.node(x.victim)
				}
				own := w.host("red-4")
				held := w.wantGuarded()
				said := make(map[ib.MKey]bool) // keys shown to red-4 since it lies
				w.watch = func(a arrival) {
					if a.node == own.node && a.Method != mad.MethodTrap {
						said[a.MKey] = true
					}
				}
				w.must(w.fabric.SetFault(own.node, fabric.Fault{Alter: func(now time.Duration, m *[mad.Size]byte) {
					lie(own.node, func(i *smp.NodeInfo) { x.change(i, victim) })(now, m)
				}}))
				if off && x.victim != "" {
					w.must(w.fabric.PowerOff(victim.GUID))
				}
				for range 3 {
					w.visit("blue-1", func(s *stranger) { s.localChange() })
					w.run(5 * time.Second)
				}
				for at, key := range held {
					if at != own && said[key] {
						t.Errorf("red-4 was shown the key of node %v port %d", at.node, at.num)
					}
				}
				if len(said) == 0 {
					t.Error("nobody asked red-4: nothing was tried")
				}
				w.watch = nil
				w.must(w.fabric.SetFault(own.node, fabric.Fault{}))
				if off && x.victim != "" {
					w.must(w.fabric.PowerOn(victim.GUID))
				}
				w.must(w.fabric.Reboot(own.node)) // what somebody does who finds it out
				w.run(2*engine.DefaultDriftPeriod + 10*time.Second)
				w.settle()
				for at, key := range w.wantGuarded() {
					if said[key] && at != own {
						t.Errorf("node %v port %d has a key that red-4 was shown", at.node, at.num)
					}
				}
				w.checkUp(y)
			})
		}
	}
}

// On a fabric that obeys keys of somebody else the manager says so, names the
// ports and writes nothing.
func TestForeignKeys(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: keyed()})
	before := w.isolating()
	for level := uint8(1); level <= 2; level++ {
		for _, e := range w.ends() {
			w.info(e.place).MKeyProtectBits = level
		}
		w.manager = keyed()
		w.manager.Keys.Ring = keyRing(9)
		w.restart(y.policy())
		w.settle()
		refused := all[event.Refused](w)
		if len(refused) != 1 || !strings.Contains(refused[0].Err.Error(), "mgmt-1") && !strings.Contains(refused[0].Err.Error(), "own port") {
			t.Errorf("level %d: refused %v", level, refused)
		}
		if d := firstDifference(before, w.isolating()); d != "" {
			t.Errorf("level %d: something has changed: %s", level, d)
		}
	}
}
