package simtest

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/topology"
)

const ownKey ib.MKey = 0x0123456789abcdef

// A manager that has an M_Key gives it to every end port and shows it in every
// packet; who has it not changes nothing.
func TestMKey(t *testing.T) {
	list := generate(t, "random,seed=3,switches=4,hosts=10,routers=2,ca-ports=2")
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: engine.Config{MKey: ownKey}})
	w.checkUp(y)
	t.Run("MK-01 every end port holds it", func(t *testing.T) {
		for _, e := range w.ends() {
			if info := w.info(e.place); info.MKey != ownKey || info.MKeyProtectBits == 0 {
				t.Errorf("%s: M_Key %v, M_KeyProtectBits %d", e.name, info.MKey, info.MKeyProtectBits)
			}
		}
	})
	t.Run("MK-01 every packet carries it", func(t *testing.T) {
		w.run(engine.DefaultSweepInterval + time.Second)
		for _, a := range w.arrived {
			if a.MKey != ownKey && a.Method != mad.MethodTrap {
				t.Fatalf("%v(%s) to node %v with M_Key %v", a.Method, smp.AttributeName(a.AttributeID), a.node, a.MKey)
			}
		}
	})
	t.Run("a stranger cannot write", func(t *testing.T) {
		before := w.isolating()
		s, victim := w.stranger("H5"), w.host("H2")
		var keys smp.PKeyTable
		keys.Keys[0] = 0x8010
		var data [mad.DataSize]byte
		w.encode(&keys, &data)
		if answer, ok := s.write(victim, smp.AttrPKeyTable, 0, data); ok {
			t.Errorf("Set(P_KeyTable) was answered with %v", answer.Status)
		}
		get := s.packet(mad.ClassSubnLID, mad.MethodGet, smp.AttrPortInfo, 0)
		var info smp.PortInfo
		if answer, ok := s.ask(get, w.info(victim).LID); !ok || info.UnmarshalBinary(answer.Data[:]) != nil || info.MKey != 0 {
			t.Errorf("Get(PortInfo) shows the key: %v", info.MKey)
		}
		if d := firstDifference(before, w.isolating()); d != "" {
			t.Errorf("something has changed: %s", d)
		}
	})
	t.Run("the next manager with the key writes nothing", func(t *testing.T) {
		w.run(5 * time.Second) // trap 256 of the attack
		w.restart(y.policy())
		w.settle()
		if n := len(w.sets()); n != 0 {
			t.Errorf("%d Sets", n)
		}
		w.checkUp(y)
		w.checkResult()
	})
	t.Run("a manager without it changes nothing and says so", func(t *testing.T) {
		before := w.isolating()
		w.manager.MKey = 0
		w.restart(halves(hosts(list)[3:]).policy())
		w.settle()
		if d := firstDifference(before, w.isolating()); d != "" {
			t.Errorf("something has changed: %s", d)
		}
		if r := w.result(); r.Reached() || r.Failures == 0 || !mentions[event.Failed](w, "PKeyTable", "no answer") {
			t.Errorf("reached %v, %d failures", r.Reached(), r.Failures)
		}
	})
}

// Without a key configured none is written, and a key that somebody else left
// with nothing behind it is left alone.
func TestNoMKey(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	for _, a := range w.sets(smp.AttrPortInfo) {
		var info smp.PortInfo
		if info.UnmarshalBinary(a.Data[:]) != nil || info.MKey != 0 || info.MKeyProtectBits != 0 {
			t.Errorf("node %v: Set(PortInfo) with M_Key %v, M_KeyProtectBits %d", a.node, info.MKey, info.MKeyProtectBits)
		}
	}
}
