//go:build linux

package linuxtest

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/test/need"
)

// key is the M_Key of the test.
const key ib.MKey = 0x1badb002

// asked is a subject with what it said to one question.
type asked struct {
	testing.TB
	subject
	said  []string
	tid   uint64
	traps []mad.SMP
	// repeated says that one of them came again.
	repeated bool
	// global gives data packets a GRH.
	global bool
}

// say notes a part of the answer.
func (a *asked) say(format string, args ...any) {
	a.said = append(a.said, fmt.Sprintf(format, args...))
}

// directed is a directed-route request as it crosses the cable.
func directed(method mad.Method, id mad.AttributeID, modifier uint32) mad.SMP {
	m := mad.SMP{
		BaseVersion: 1, Class: mad.ClassSubnDirected, ClassVersion: 1, Method: method, AttributeID: id, AttributeModifier: modifier,
		HopCount: 1, HopPointer: 1, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
	}
	m.InitialPath[1] = 1
	return m
}

// wired is a management datagram for QP0 in a packet. A LID-routed one goes to the port's LID.
func wired(t testing.TB, m *mad.SMP, change ...func(*packet.MADPacket)) []byte {
	t.Helper()
	var content [mad.Size]byte
	err := m.Encode(&content)
	p := packet.MADPacket{QP: ib.QP0, SLID: ib.LIDPermissive, DLID: ib.LIDPermissive, MAD: content[:]}
	if m.Class == mad.ClassSubnLID {
		p.SLID, p.DLID = ownLID, portLID
	}
	for _, c := range change {
		c(&p)
	}
	b, e := p.AppendBinary(nil)
	if err != nil || e != nil {
		t.Fatal(err, e)
	}
	return b
}

// hear sorts what came: traps are kept, and the others returned.
func (a *asked) hear(programs bool) (rest [][]byte) {
	for _, b := range a.heard(programs) {
		if m := answerIn(b); m != nil && m.Method == mad.MethodTrap {
			if slices.ContainsFunc(a.traps, func(t mad.SMP) bool { return t.TransactionID == m.TransactionID }) {
				a.repeated = true
			} else {
				a.traps = append(a.traps, *m)
			}
			continue
		}
		rest = append(rest, b)
	}
	return rest
}

// ask sends a request, and returns its answer with the packet, nil without one.
func (a *asked) ask(m mad.SMP, change ...func(*packet.MADPacket)) (*mad.SMP, packet.View) {
	a.Helper()
	a.tid++
	m.TransactionID = a.tid
	a.send(wired(a, &m, change...))
	for _, b := range a.hear(false) {
		if got := answerIn(b); got != nil && got.TransactionID == a.tid {
			v, _ := packet.Parse(b)
			return got, v
		}
	}
	return nil, packet.View{}
}

// answer is an answer in words: its status, and fields of its attribute.
func (a *asked) answer(m *mad.SMP, fields ...string) string {
	if m == nil {
		return "no answer"
	}
	out := fmt.Sprintf("0x%02X", uint16(m.Status))
	attribute, err := smp.Decode(m.AttributeID, m.Data[:])
	if err != nil {
		return out
	}
	for _, f := range smp.Fields(attribute) {
		if slices.Contains(fields, f.Name) {
			out += fmt.Sprintf(", %s %s", f.Name, f.Value)
		}
	}
	return out
}

// tell sends a request, and notes what it is and the answer.
func (a *asked) tell(what string, m mad.SMP, change ...func(*packet.MADPacket)) {
	got, _ := a.ask(m, change...)
	a.say("%s: %s", what, a.answer(got))
}

// Steps of a question.

type step = func(*asked)

// steps are several, one after the other.
func steps(s ...step) step {
	return func(a *asked) {
		for _, s := range s {
			s(a)
		}
	}
}

// get asks for an attribute, and shows fields of the answer.
func get(id mad.AttributeID, modifier uint32, fields ...string) step {
	return send(directed(mad.MethodGet, id, modifier), fields...)
}

// send sends a request, and shows fields of the answer.
func send(m mad.SMP, fields ...string) step {
	return func(a *asked) {
		got, _ := a.ask(m)
		a.say("%s", a.answer(got, fields...))
	}
}

// with changes a request.
func with(m mad.SMP, change func(*mad.SMP)) mad.SMP {
	change(&m)
	return m
}

// data gives a request an attribute.
func data(m mad.SMP, attribute smp.Attribute) mad.SMP {
	b, err := attribute.AppendBinary(nil)
	if err != nil {
		panic(err) // the tests fill in what fits
	}
	copy(m.Data[:], b)
	return m
}

// byLID makes a request LID-routed.
func byLID(m mad.SMP) mad.SMP {
	m.Class, m.HopCount, m.HopPointer, m.DrSLID, m.DrDLID, m.InitialPath = mad.ClassSubnLID, 0, 0, 0, 0, [mad.PathSize]byte{}
	return m
}

// portInfo is the port's.
func (a *asked) portInfo() (i smp.PortInfo) {
	a.Helper()
	m := directed(mad.MethodGet, smp.AttrPortInfo, 0)
	m.MKey = key
	got, _ := a.ask(m)
	if got == nil || i.UnmarshalBinary(got.Data[:]) != nil {
		a.Fatal("no answer to Get(PortInfo)")
	}
	return i
}

// setPort is a Set of PortInfo that changes fields of it and no others, by name.
func (a *asked) setPort(fields ...any) mad.SMP {
	a.Helper()
	i := a.portInfo()
	i.PortState, i.PortPhysicalState, i.LinkDownDefaultState, i.ClientReregister = 0, 0, 0, false
	m := directed(mad.MethodSet, smp.AttrPortInfo, 0)
	m.MKey = key
	for n := 0; n < len(fields); n += 2 {
		change(&i, fields[n].(string), fields[n+1])
	}
	return data(m, &i)
}

func change(i *smp.PortInfo, name string, value any) {
	f := reflect.ValueOf(i).Elem().FieldByName(name)
	f.Set(reflect.ValueOf(value).Convert(f.Type()))
}

// set changes fields of PortInfo, by name.
func set(fields ...any) step {
	return func(a *asked) {
		if got, _ := a.ask(a.setPort(fields...)); got == nil || got.Status != 0 {
			a.Fatalf("Set(PortInfo) %v: %s", fields, a.answer(got))
		}
	}
}

// writes shows what becomes of a field of PortInfo when values are written there.
func writes(name string, values ...int) step {
	return func(a *asked) {
		for _, v := range values {
			got, _ := a.ask(a.setPort(name, v))
			after := a.portInfo()
			a.say("%d: %s, then %v", v, a.answer(got), reflect.ValueOf(after).FieldByName(name))
		}
	}
}

// shows shows fields of PortInfo.
func shows(names ...string) step {
	return func(a *asked) {
		i := reflect.ValueOf(a.portInfo())
		for _, name := range names {
			a.say("%s %v", name, i.FieldByName(name))
		}
	}
}

// pkeys writes the P_Key table.
func pkeys(keys ...ib.PKey) step {
	return func(a *asked) {
		if got, _ := a.ask(setPKeys(keys...)); got == nil || got.Status != 0 {
			a.Fatalf("Set(P_KeyTable): %s", a.answer(got))
		}
	}
}

func setPKeys(keys ...ib.PKey) mad.SMP {
	var t smp.PKeyTable
	copy(t.Keys[:], keys)
	return data(with(directed(mad.MethodSet, smp.AttrPKeyTable, 0), func(m *mad.SMP) { m.MKey = key }), &t)
}

// repress tells the port that its traps have come, until there are no more.
func repress(a *asked) {
	for a.hear(false); len(a.traps) > 0; a.hear(false) {
		for _, t := range a.traps {
			r := byLID(directed(mad.MethodTrapRepress, smp.AttrNotice, 0))
			r.Data, r.TransactionID, r.MKey = t.Data, t.TransactionID, key
			a.send(wired(a, &r))
		}
		a.hear(false)
		a.traps, a.repeated = nil, false
		a.pause()
	}
}

// reset brings the port to what every question begins with.
func (a *asked) reset() {
	a.Helper()
	repress(a)
	set("MKey", 0, "MKeyProtectBits", 0, "MKeyLeasePeriod", 0, "GIDPrefix", uint64(ib.DefaultGIDPrefix), "LID", portLID, "LMC", 0,
		"MasterSMLID", ownLID, "MasterSMSL", 0, "LinkWidthEnabled", 255, "LinkSpeedEnabled", 15, "NeighborMTU", ib.MTU2048,
		"OperationalVLs", 1, "VLHighLimit", 0, "MKeyViolations", 0, "PKeyViolations", 0, "QKeyViolations", 0, "SubnetTimeOut", 10,
		"LocalPhyErrors", 4, "OverrunErrors", 4, "LinkDownDefaultState", smp.PhysPolling)(a)
	pkeys(ib.PKeyDefaultFull)(a)
	if a.portInfo().PortState == smp.PortInit {
		set("PortState", smp.PortArmed)(a)
	}
	if a.portInfo().PortState == smp.PortArmed {
		set("PortState", smp.PortActive)(a)
	}
}

// showKeys shows the P_Key table.
func showKeys(a *asked) { a.showKeys(directed(mad.MethodGet, smp.AttrPKeyTable, 0)) }

// showKeys shows the first entries of the P_Key table that an answer has.
func (a *asked) showKeys(m mad.SMP) {
	var t smp.PKeyTable
	got, _ := a.ask(m)
	if got == nil || t.UnmarshalBinary(got.Data[:]) != nil {
		a.Fatal("no P_Key table")
	}
	a.say("%s, %v", a.answer(got), t.Keys[:5])
}

// toLink writes PortPhysicalState or another field that takes the link down, waits for a state of the port, as its
// host sees it, and shows it.
func toLink(want string, fields ...any) step {
	return func(a *asked) {
		m, before := a.setPort(fields...), a.state()
		is := before
		a.Cleanup(func() {
			if is != want {
				a.Logf("the port was %s, is %s", before, is)
			}
		})
		need.Eventually(a, need.Patience, "the port is "+want, func() bool {
			if is == before { // no answer comes by a link that is down
				a.send(wired(a, &m))
			}
			a.pause()
			is = a.state()
			return is == want
		})
		a.say("%s", want)
	}
}

// counting notes what comes of something, and what of violations the port counts for it.
func (a *asked) counting(what string, run func() string) {
	a.Helper()
	before := a.portInfo()
	outcome := run()
	after := a.portInfo()
	if d := after.PKeyViolations - before.PKeyViolations; d != 0 {
		outcome += fmt.Sprintf(", P_KeyViolations +%d", d)
	}
	if d := after.QKeyViolations - before.QKeyViolations; d != 0 {
		outcome += fmt.Sprintf(", Q_KeyViolations +%d", d)
	}
	a.say("%s: %s", what, outcome)
}

// datagram sends a UD packet, and notes whether it is taken.
func (a *asked) datagram(what string, to ib.QPN, pkey ib.PKey, qkey ib.QKey) {
	a.Helper()
	a.counting(what, func() string {
		a.send(a.packed(packet.OpCodeUDSendOnly, to, pkey, make([]byte, pairMTU), keyed(qkey)))
		if len(a.paired()) == 0 {
			return "dropped"
		}
		return "taken"
	})
}

// keyed gives a datagram its Q_Key.
func keyed(k ib.QKey) func(*packet.View) {
	return func(v *packet.View) {
		v.DETH.SetQKey(k)
		v.DETH.SetSrcQP(ownQP)
	}
}

// message sends a message of pairSize bytes.
func (a *asked) message(t packet.Transport, to ib.QPN, pkey ib.PKey) {
	a.Helper()
	for n, op := range []packet.Operation{packet.SendFirst, packet.SendMiddle, packet.SendLast} {
		size := min(pairMTU, pairSize-n*pairMTU)
		a.send(a.packed(packet.MakeOpCode(t, op), to, pkey, make([]byte, size), func(v *packet.View) {
			v.BTH.SetPSN(pairPSN + uint32(n))
			v.BTH.SetAckReq(op == packet.SendLast)
		}))
	}
}

// packed is a data packet to the port.
func (a *asked) packed(op packet.OpCode, to ib.QPN, pkey ib.PKey, payload []byte, change ...func(*packet.View)) []byte {
	a.Helper()
	b, v, err := packet.Append(nil, op, a.global, payload)
	if err != nil {
		a.Fatal(err)
	}
	v.LRH.SetSLID(ownLID)
	v.LRH.SetDLID(portLID)
	v.BTH.SetDestQP(to)
	v.BTH.SetPKey(pkey)
	if a.global {
		v.GRH.SetHopLmt(1)
		v.GRH.SetSGID(ib.MakeGID(ib.DefaultGIDPrefix, 1))
		v.GRH.SetDGID(ib.MakeGID(ib.DefaultGIDPrefix, ib.PortGUID(nodeGUID)))
	}
	for _, c := range change {
		c(&v)
	}
	if err := packet.Seal(b); err != nil {
		a.Fatal(err)
	}
	return b
}

// gmp asks the performance agent behind QP1 for PortCounters, and notes the keys of the answer.
func (a *asked) gmp(what string, pkey ib.PKey, qkey ib.QKey) {
	a.Helper()
	a.counting(what, func() string {
		m := make([]byte, mad.Size)
		copy(m, []byte{1, byte(mad.ClassPerfMgt), 1, byte(mad.MethodGet), 17: 0x12, 65: 1})
		a.send(a.packed(packet.OpCodeUDSendOnly, ib.QP1, pkey, m, keyed(qkey)))
		for _, b := range a.hear(false) {
			if v, err := packet.Parse(b); err == nil && v.DETH != nil && bytes.Equal(v.Payload[8:16], m[8:16]) {
				return fmt.Sprintf("answered with P_Key %v, Q_Key %v", v.BTH.PKey(), v.DETH.QKey())
			}
		}
		return "dropped"
	})
}

// showTraps shows the traps that came.
func showTraps(a *asked) {
	a.Helper()
	a.hear(true)
	if len(a.traps) == 0 {
		a.say("no trap")
	}
	for _, m := range a.traps {
		var n smp.Notice
		if err := n.UnmarshalBinary(m.Data[:]); err != nil {
			a.Fatal(err)
		}
		details, _ := n.TypedDetails()
		out := fmt.Sprintf("trap %d of LID %v: ", n.TrapNumber, n.IssuerLID)
		switch d := details.(type) {
		case *smp.BadKeyDetails:
			out += fmt.Sprintf("LID %v to %v, key 0x%X, SL %v, QP %v to another", d.LID1, d.LID2, d.Key, d.SL, d.QP1)
		case *smp.BadMKeyDetails:
			out += fmt.Sprintf("from LID %v, DrSLID %v, %v of 0x%X, modifier %d, M_Key %v, directed %v, %d hops, return path %v",
				d.LID, d.DrSLID, d.Method, uint16(d.AttributeID), d.AttributeModifier, d.MKey, d.DRNotice, d.DRHopCount, d.DRNoticeReturnPath[:2])
		default:
			out += fmt.Sprintf("%+v", d)
		}
		a.say("%s", out)
	}
}

// pair runs steps with a queue pair.
func pair(s endpoint.Service, run func(a *asked, to ib.QPN)) step {
	return func(a *asked) {
		to := a.open(s)
		defer a.close()
		run(a, to)
	}
}

// paired are the packets that came from a queue pair of the test's host to the test's.
func (a *asked) paired() (all []packet.View) {
	for _, b := range a.hear(true) {
		if v, err := packet.Parse(b); err == nil && v.BTH != nil && v.BTH.DestQP() == ownQP {
			all = append(all, v)
		}
	}
	return all
}
