package simtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// toldWorld has devices that report everything, under a manager with an M_Key.
func toldWorld(t *testing.T) *world {
	list := topology.Demo()
	s := setup{list: list, policy: halves(hosts(list)).policy(), manager: engine.Config{MKey: 0x00C0FFEE00C0FFEE, LMC: 1}}
	s.fabric.Profile = func(_ *topology.Node, d *sma.Config) {
		d.PKeyTraps, d.TrapSends = true, 1
		if d.Switch != nil {
			d.Switch.Port0.CapabilityMask |= smp.CapPKeySwitchExternalPortTrap
		}
	}
	w := bringUp(t, s)
	w.calm()
	return w
}

// reports are what the traps of one number said since the last call.
func (w *world) reports(number smp.TrapNumber) (out []*watch.Report) {
	w.t.Helper()
	w.run(2 * time.Second)
	for _, e := range all[event.Trapped](w) {
		if e.Number == number {
			out = append(out, e.Report)
		}
	}
	w.forget()
	return out
}

// said wants one report of a trap whose sentence, and whose JSON, have all these.
func (w *world) said(number smp.TrapNumber, sentence []string, fields map[string]any) *watch.Report {
	w.t.Helper()
	all := w.reports(number)
	if len(all) != 1 {
		w.t.Errorf("trap %d was told %d times, want once: %v", number, len(all), all)
		return nil
	}
	r := all[0]
	for _, part := range sentence {
		if !strings.Contains(r.String(), part) {
			w.t.Errorf("trap %d: %q lacks %q", number, r, part)
		}
	}
	bytes, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(bytes, &doc); err != nil {
		w.t.Fatal(err)
	}
	for path, want := range fields {
		var got any = doc
		for _, name := range strings.Split(path, ".") {
			m, _ := got.(map[string]any)
			got = m[name]
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			w.t.Errorf("trap %d: %s is %v, want %v in %s", number, path, got, want, bytes)
		}
	}
	return r
}

// datagram is one of a host, as its sender makes it.
func datagram(t *testing.T, from, to ib.LID, key ib.PKey, qp ib.QPN, qkey ib.QKey) []byte {
	t.Helper()
	b, v, err := packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), false, make([]byte, 64))
	if err != nil {
		t.Fatal(err)
	}
	v.LRH.SetSLID(from)
	v.LRH.SetDLID(to)
	v.BTH.SetPKey(key)
	v.BTH.SetDestQP(qp)
	v.DETH.SetQKey(qkey)
	v.DETH.SetSrcQP(77)
	if err := packet.Seal(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// listens gives a host a queue pair, with a P_Key of its own and Q_Key 7.
func (w *world) listens(at place) ib.QPN {
	w.t.Helper()
	d, err := w.fabric.Device(at.node)
	if err != nil {
		w.t.Fatal(err)
	}
	q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD, SendDepth: 4, ReceiveDepth: 4})
	for _, step := range []func() error{
		func() error { return err },
		func() error {
			return q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrPort|endpoint.AttrPKeyIndex|endpoint.AttrQKey, endpoint.Attr{Port: at.num, QKey: 7})
		},
		func() error { return q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, endpoint.Attr{}) },
	} {
		if err := step(); err != nil {
			w.t.Fatal(err)
		}
	}
	return q.Number()
}

func (w *world) lid(id string) ib.LID { return w.info(w.host(id)).LID }

// Trap 256 names who tried what, where: by LID, and back along a directed route.
// The key that was presented is told nowhere: it may be the right one of another
// port.
func TestWrongMKeysNameTheirSender(t *testing.T) {
	w := toldWorld(t)
	const wrong = ib.MKey(0x1122334455667788)
	for name, route := range map[string]bool{"by LID": false, "by directed route": true} {
		w.visit("red-1", func(s *stranger) {
			w.forget()
			victim, modifier := "blue-1 HCA-1", uint32(1)
			class := mad.ClassSubnLID
			if route {
				victim, class = "leaf-1", mad.ClassSubnDirected
			}
			p := s.packet(class, mad.MethodSet, smp.AttrPortInfo, modifier)
			p.MKey = wrong
			if route {
				p.HopCount, p.InitialPath[1] = 1, 1
				s.send(&p, ib.LIDPermissive)
			} else {
				s.send(&p, w.lid("blue-1"))
			}
			r := w.said(smp.TrapBadMKey, []string{"red-1 HCA-1 (", "behind leaf-1:2", "tried Set(PortInfo, modifier 0x00000001) at " + victim, "wrong M_Key"}, map[string]any{
				"by.name": "red-1 HCA-1", "by.behind": "leaf-1:2", "against.name": victim, "at.name": victim,
				"method": "Set", "attribute": "PortInfo", "modifier": "0x00000001", "by.lid": w.lid("red-1"), "qkey": nil,
			})
			if r == nil {
				return
			}
			bytes, _ := json.Marshal(r)
			for _, text := range []string{r.String(), string(bytes)} {
				for _, secret := range []string{"1122334455667788", "1234605616436508552", "c0ffee", "C0FFEE"} {
					if strings.Contains(text, secret) {
						t.Errorf("%s: %q has an M_Key", name, text)
					}
				}
			}
		})
	}
}

// Traps 257, 258 and 259 name both ends of the packet, its key and its queue pairs.
func TestWrongKeysNameBothEnds(t *testing.T) {
	w := toldWorld(t)
	red, blue := w.host("red-1"), w.host("blue-1")
	from, to := w.lid("red-1")+1, w.lid("blue-1")+1 // the second of two addresses each
	ends := map[string]any{
		"by.name": "red-1 HCA-1", "by.lid": from, "by.qp": 77, "against.name": "blue-1 HCA-1", "against.lid": to, "sl": 0,
	}
	with := func(more map[string]any) map[string]any {
		for k, v := range ends {
			more[k] = v
		}
		return more
	}
	qp := w.listens(blue)
	w.forget()
	w.must(w.fabric.Inject(red.node, red.num, datagram(t, from, to, 0x8321, 5, 7)))
	w.said(smp.TrapSwitchBadPKey, []string{"red-1 HCA-1 (LID ", "QP 0x00004d", "sent P_Key 0x8321 to blue-1 HCA-1 (LID ", "QP 0x000005", "refused at leaf-1:2 (LID ", "cabled to red-1 HCA-1"},
		with(map[string]any{"pkey": "0x8321", "at.name": "leaf-1", "place": "leaf-1:2", "port": 2, "link": "red-1 HCA-1", "against.qp": 5}))

	// Switches that let everything pass, until the manager puts that right.
	for _, id := range []string{"red-1", "blue-1"} {
		info := w.info(w.switchPort(id))
		info.PartitionEnforcementInbound, info.PartitionEnforcementOutbound = false, false
	}
	w.must(w.fabric.Inject(red.node, red.num, datagram(t, from, to, 0x8321, qp, 7)))
	w.said(smp.TrapBadPKey, []string{"red-1 HCA-1 (", "sent P_Key 0x8321 to blue-1 HCA-1 (", "refused (trap 257)"},
		with(map[string]any{"pkey": "0x8321", "at.name": "blue-1 HCA-1", "against.qp": qp, "qkey": nil}))

	w.calm()
	w.forget()
	key := w.agent(blue.node).PKeys(blue.num)[0] // of the queue pair
	w.must(w.fabric.Inject(w.host("blue-2").node, 1, datagram(t, w.lid("blue-2"), to, key|0x8000, qp, 0x123)))
	w.said(smp.TrapBadQKey, []string{"blue-2 HCA-1 (LID ", "QP 0x00004d", "sent Q_Key 0x00000123 to blue-1 HCA-1 (LID ", fmt.Sprintf("QP 0x%06x", uint32(qp)), "refused (trap 258)"},
		map[string]any{"by.name": "blue-2 HCA-1", "against.name": "blue-1 HCA-1", "qkey": "0x00000123", "pkey": nil, "by.qp": 77, "against.qp": qp})
}

// A notice that a device sends of itself, as it is on the wire.
func (w *world) notify(id string, number smp.TrapNumber, issuer ib.LID, d smp.TrapDetails) {
	w.t.Helper()
	n, err := smp.NewTrap(number, smp.ProducerSwitch, issuer, d)
	if err != nil {
		w.t.Fatal(err)
	}
	w.forget()
	w.visit(id, func(s *stranger) {
		p := s.packet(mad.ClassSubnLID, mad.MethodTrap, smp.AttrNotice, 0)
		w.encode(&n, &p.Data)
		s.send(&p, w.info(w.self).LID)
	})
}

// The other traps name the port that they are about, and say whose word it is where
// that is another.
func TestTrapsNameTheirPorts(t *testing.T) {
	w := toldWorld(t)
	leaf := w.info(place{w.node("leaf-1").GUID, 0}).LID
	red, blue := w.lid("red-1"), w.lid("blue-1")
	for number, words := range map[smp.TrapNumber]string{
		smp.TrapLinkIntegrity: "more errors of the link", smp.TrapBufferOverrun: "buffers overran", smp.TrapFlowControlWatchdog: "no flow-control packet",
	} {
		w.notify("leaf-1", number, leaf, &smp.PortDetails{LID: leaf, Port: 2})
		r := w.said(number, []string{"leaf-1:2 (LID ", "cabled to red-1 HCA-1): ", words}, map[string]any{"place": "leaf-1:2", "port": 2, "link": "red-1 HCA-1", "at.name": "leaf-1"})
		if r != nil && strings.Contains(r.String(), "says") {
			t.Errorf("%q: it is the device's own word", r)
		}
	}
	w.notify("red-1", smp.TrapBufferOverrun, red, &smp.PortDetails{LID: leaf, Port: 3})
	w.said(smp.TrapBufferOverrun, []string{"leaf-1:3 (LID ", ", says red-1 HCA-1 (LID "}, map[string]any{"at.name": "red-1 HCA-1"})

	// A host that blames another: it is its word, and nothing else.
	w.notify("red-1", smp.TrapBadPKey, red, &smp.BadKeyDetails{LID1: blue, LID2: w.lid("blue-2"), Key: 0x8001, QP1: 5, QP2: 6})
	w.said(smp.TrapBadPKey, []string{"blue-1 HCA-1 (LID ", ", says red-1 HCA-1 (LID ", "behind leaf-1:2"}, map[string]any{"at.name": "red-1 HCA-1", "by.name": "blue-1 HCA-1"})

	// The GID of one port and the LID of another, and what nobody has.
	guid := func(id string) ib.PortGUID { return w.agent(w.host(id).node).NodeInfo(1).PortGUID }
	w.notify("red-1", smp.TrapBadQKey, red, &smp.BadKeyDetails{
		LID1: blue, LID2: red, Key: 9, GID1: ib.MakeGID(ib.DefaultGIDPrefix, guid("blue-2")), GID2: ib.MakeGID(ib.DefaultGIDPrefix, 0x77),
	})
	w.said(smp.TrapBadQKey, []string{"blue-1 HCA-1 (LID ", " of blue-2 HCA-1", "fe80::77, which no port has"}, map[string]any{"by.gid_name": "blue-2 HCA-1", "against.gid": "fe80::77", "against.gid_name": nil})
	w.notify("red-1", smp.TrapBadPKey, red, &smp.BadKeyDetails{LID1: 0x3333, LID2: red, Key: 9})
	w.said(smp.TrapBadPKey, []string{"an unknown port (LID 13107"}, map[string]any{"by.name": nil, "by.lid": 0x3333})

	w.notify("red-1", smp.TrapLocalChange, red, &smp.LocalChangeDetails{LID: red, OtherLocalChanges: true, NodeDescriptionChange: true, LinkWidthEnabledChange: true, CapabilityMask: 0x42})
	w.said(smp.TrapLocalChange, []string{"red-1 HCA-1 (LID ", "cabled to leaf-1:2) has changed: LinkWidthEnabled, NodeDescription (trap 144)"}, map[string]any{"capability_mask": "0x00000042", "changes": "[LinkWidthEnabled NodeDescription]"})
	w.notify("red-1", smp.TrapSystemImageGUID, red, &smp.SystemImageGUIDDetails{LID: red, SystemImageGUID: 0xABC})
	w.said(smp.TrapSystemImageGUID, []string{"red-1 HCA-1 (LID ", "SystemImageGUID is 0x0000000000000abc now"}, map[string]any{"system_image_guid": "0x0000000000000abc", "place": "red-1 HCA-1"})
	for number, words := range map[smp.TrapNumber]string{
		smp.TrapGIDInService: "is in service", smp.TrapGIDOutOfService: "is out of service", smp.TrapMulticastGroupCreated: "is a new multicast group", smp.TrapMulticastGroupDeleted: "is no longer a multicast group",
	} {
		w.notify("red-1", number, red, &smp.GIDDetails{GID: ib.MakeGID(ib.DefaultGIDPrefix, guid("blue-2"))})
		w.said(number, []string{"GID fe80::", " of blue-2 HCA-1 " + words, ", says red-1 HCA-1"}, map[string]any{"gid_name": "blue-2 HCA-1"})
	}
	w.notify("red-1", 4711, red, &smp.GIDDetails{})
	w.said(4711, []string{"red-1 HCA-1 (LID ", "sent trap 4711"}, nil)
	w.forget()
	w.must(w.fabric.Unlink(w.node("red-2").GUID, 1))
	w.said(smp.TrapLinkStateChanged, []string{"leaf-2 (LID ", "or went down"}, map[string]any{"at.name": "leaf-2"})
}

// One cable is one event that names both its ends, once when it is pulled and once
// when it is back; who was behind it is named with it.
func TestACableIsOneEvent(t *testing.T) {
	w := toldWorld(t)
	for _, c := range []struct{ at, link, who string }{
		{"leaf-1", "leaf-1:5 - spine-1:1", ""}, {"red-1", "leaf-1:2 - red-1 HCA-1", "red-1 HCA-1 (0x"},
	} {
		at, num := w.node(c.at), ib.PortNum(1)
		if c.at == "leaf-1" {
			num = 5
		}
		far, ok := w.peer(place{at.GUID, num})
		if !ok {
			t.Fatalf("%s:%d has no cable", c.at, num)
		}
		w.forget()
		w.must(w.fabric.Unlink(at.GUID, num))
		w.run(time.Minute)
		down := "link down: " + c.link
		if c.who != "" {
			down += "; gone: " + c.who
		}
		if all := all[watch.LinksDown](w); len(all) != 1 || !strings.HasPrefix(all[0].String(), down) {
			t.Errorf("%s: %v", c.link, all)
		}
		if up := all[watch.LinksUp](w); len(up) != 0 {
			t.Errorf("%s is down and was told to be up: %v", c.link, up)
		}
		w.forget()
		w.must(w.fabric.Link(at.GUID, num, far.node, far.num))
		w.run(time.Minute)
		if all := all[watch.LinksUp](w); len(all) != 1 || !strings.HasPrefix(all[0].String(), strings.NewReplacer("down", "up", "gone", "new").Replace(down)) {
			t.Errorf("%s: %v", c.link, all)
		}
		if down := all[watch.LinksDown](w); len(down) != 0 {
			t.Errorf("%s is up and was told to be down: %v", c.link, down)
		}
	}
	// A switch is one event too, however many cables it has.
	w.forget()
	w.must(w.fabric.PowerOff(w.node("spine-2").GUID))
	w.run(time.Minute)
	if all := all[watch.LinksDown](w); len(all) != 1 || len(all[0].Gone) != 1 || len(all[0].Links) != 8 || !strings.Contains(all[0].String(), "gone: spine-2 (0x") {
		t.Errorf("spine-2: %v", all)
	}
}

// An engine that goes no further says at how many ports everything is written: at as
// many as the devices hold what they are to hold.
func TestHalfDoneIsTold(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	whole := bringUp(t, setup{list: list, policy: y.policy()})
	if w, busy := whole.engine.UnderWay(); busy {
		t.Errorf("at rest: %v", w)
	}
	counts := map[int]bool{}
	for stop := 1; stop < 400; stop += 7 {
		w := newWorld(t, setup{list: list, policy: y.policy()})
		sent := 0
		w.watch = func(a arrival) {
			if a.Method == mad.MethodSet {
				sent++
			}
		}
		w.until("some writes", func() bool { return sent >= stop || w.engine.Settled() })
		work, busy := w.engine.UnderWay()
		if w.engine.Settled() {
			break
		}
		if !busy || work.Of == 0 || work.Ports >= work.Of || work.Stands {
			t.Fatalf("after %d writes: %+v, %v", stop, work, busy)
		}
		if text := work.String(); !strings.Contains(text, fmt.Sprintf("%d of %d ports written", work.Ports, work.Of)) || !strings.Contains(text, "run again to finish") {
			t.Errorf("%q", text)
		}
		counts[work.Ports] = true
		// P_Key tables go first: a port that is done has all that it is to have.
		held := 0
		for _, n := range list.Nodes {
			for num := range n.Ports {
				p := place{n.GUID, ib.PortNum(num)}
				if w.agent(p.node).Port(p.num) == nil {
					continue
				}
				got, want := *w.info(p), *whole.info(p)
				if got.PortState == want.PortState && got.LID == want.LID && got.NeighborMTU == want.NeighborMTU && got.MasterSMLID == want.MasterSMLID &&
					fmt.Sprint(w.agent(p.node).PKeys(p.num)) == fmt.Sprint(whole.agent(p.node).PKeys(p.num)) {
					held++
				}
			}
		}
		if work.Ports > held {
			t.Errorf("after %d writes: %d of %d ports are said to be written, and %d are", stop, work.Ports, work.Of, held)
		}
	}
	if len(counts) < 3 {
		t.Errorf("the counts are %v: nothing was seen half done", counts)
	}
}

// A switch that starts again is one event, though all its links went down and came
// up before anybody looked.
func TestARebootIsOneEvent(t *testing.T) {
	w := toldWorld(t)
	w.forget()
	w.must(w.fabric.Reboot(w.node("spine-2").GUID))
	w.run(time.Minute)
	again, down, up := all[watch.LinksAgain](w), all[watch.LinksDown](w), all[watch.LinksUp](w)
	if len(again)+len(down) != 1 || len(up) != len(down) {
		t.Errorf("%v %v %v", again, down, up)
	}
	if len(again) == 1 && (len(again[0].Links) != 8 || !strings.HasPrefix(again[0].String(), "8 links looked at again: leaf-1:7 - spine-2:1, ")) {
		t.Errorf("%v", again)
	}
}
