package verbsd_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/simfabric"
)

const (
	star = "Switch 4 \"S\"\n[1] \"M\"[1]\n[2] \"A\"[1]\n[3] \"B\"[1]\n[4] \"C\"[1]\n" +
		"Hca 1 \"M\"\n[1] \"S\"[1]\nHca 1 \"A\"\n[1] \"S\"[2]\nHca 1 \"B\"\n[1] \"S\"[3]\nHca 1 \"C\"\n[1] \"S\"[4]\n"
	// sharing has A and B in one partition, which has a multicast group, and C in another.
	sharing = "version: 1\ndefault: none\npartitions:\n" +
		"  - {name: one, pkey: 0x0001, ipoib: true, members: {full: [{at: \"S:2\"}, {at: \"S:3\"}]}}\n" +
		"  - {name: two, pkey: 0x0002, members: {full: [{at: \"S:4\"}]}}\n"
)

// programs are the programs of a test on a fabric that is managed, and what came of their calls.
type programs struct {
	testing.TB
	fabric *simfabric.Fabric
	story  golden.Story
}

// says adds a line: a call, and what came of it.
func (p *programs) says(call string, result ...any) {
	var words []string
	for _, r := range result {
		switch r := r.(type) {
		case error:
			words = append(words, "error: "+r.Error())
		case nil:
			words = append(words, "ok")
		default:
			words = append(words, fmt.Sprintf("%+v", r))
		}
	}
	p.story.Add(call+": "+strings.Join(words, " "), "")
}

// is fails the test with an error.
func is[T any](x T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// end is a queue pair of a program with all that it needs.
type end struct {
	*verbs.QP
	d        *verbs.Device
	sent, in *verbs.CQ
	ee       *verbs.EEContext
	memory   *verbs.Memory
}

// create makes an end of a service on a host.
func (p *programs) create(node string, service verbs.QPType) *end {
	p.Helper()
	e := &end{d: is(p.fabric.OpenDevice(node))(p)}
	e.sent, e.in = is(e.d.CreateCQ(16))(p), is(e.d.CreateCQ(16))(p)
	make := e.d.CreateQP
	if service == verbs.QPTypeRD {
		make = e.d.CreateRDQP
		e.ee = is(e.d.CreateEEContext())(p)
	}
	e.QP = is(make(verbs.QPInit{Type: service, SendCQ: e.sent, ReceiveCQ: e.in, SendDepth: 8, ReceiveDepth: 8}))(p)
	e.memory = is(e.d.RegisterMemory(64, 0x1000, verbs.AccessRemoteRead|verbs.AccessRemoteWrite))(p)
	return e
}

// ready takes an end to RTS, with another as its peer if its service has one.
func (p *programs) ready(e, to *end, service verbs.QPType) {
	p.Helper()
	a := verbs.QPAttr{
		State: verbs.StateInit, Port: 1, PKeyIndex: 0, QKey: 0x55, AV: verbs.AHAttr{DLID: is(to.d.QueryPort(1))(p).LID, SL: 0},
		PathMTU: ib.MTU256, DestQPN: to.Number(), RQPSN: 5, SQPSN: 5, MinRNRTimer: 12, Timeout: 8, RetryCount: 2, RNRRetry: 3,
	}
	const first, second, third = verbs.AttrState | verbs.AttrPort | verbs.AttrPKeyIndex,
		verbs.AttrState | verbs.AttrAV | verbs.AttrPathMTU | verbs.AttrDestQPN | verbs.AttrRQPSN, verbs.AttrState | verbs.AttrSQPSN
	step := func(what string, modify func(verbs.QPAttr, verbs.QPAttrMask) error, masks ...verbs.QPAttrMask) {
		for i, mask := range masks {
			a.State = verbs.StateInit + verbs.QPState(i)
			p.says(fmt.Sprintf("%v %s to %v", service, what, a.State), modify(a, mask))
		}
	}
	const reliable = verbs.AttrTimeout | verbs.AttrRetryCount | verbs.AttrRNRRetry
	switch service {
	case verbs.QPTypeUD:
		step("QP", e.Modify, first|verbs.AttrQKey, verbs.AttrState, third)
	case verbs.QPTypeUC:
		step("QP", e.Modify, first, second, third)
	case verbs.QPTypeRC:
		step("QP", e.Modify, first, second|verbs.AttrMinRNRTimer, third|reliable)
	case verbs.QPTypeRD:
		a.DestQPN = to.ee.Number()
		step("EE context", e.ee.Modify, first, second|verbs.AttrMinRNRTimer, third|reliable)
		step("QP", e.Modify, verbs.AttrState|verbs.AttrQKey, verbs.AttrState, verbs.AttrState)
		got, err := e.ee.Query()
		p.says("EE context", got, err)
	default:
		step("QP", e.Modify, verbs.AttrState|verbs.AttrPort, verbs.AttrState, verbs.AttrState)
	}
	got, err := e.Query()
	p.says(fmt.Sprintf("%v QP", service), got, err)
}

// completions adds what came into a queue within a second of the fabric's time.
func (p *programs) completions(call string, q *verbs.CQ, most int) {
	p.Helper()
	wcs := is(q.Wait(most, time.Second))(p)
	if len(wcs) == 0 {
		p.says(call, "nothing")
	}
	for _, c := range wcs {
		data := fmt.Sprintf("%q", c.Data)
		if len(c.Data) > 64 {
			data = fmt.Sprint(len(c.Data), " bytes")
		}
		grh := fmt.Sprintf("%x", c.GRH)
		c.Data, c.GRH = nil, nil
		p.says(call, c, data, "GRH", grh)
	}
}

// TestServices: what comes of each operation of each service between two hosts of a partition.
func TestServices(t *testing.T) {
	f := is(simfabric.Open(simfabric.Options{Topology: star, Policy: sharing, Manager: "M"}))(t)
	defer f.Close()
	p := &programs{TB: t, fabric: f}
	for _, service := range []verbs.QPType{verbs.QPTypeRC, verbs.QPTypeUC, verbs.QPTypeRD, verbs.QPTypeUD, verbs.QPTypeRawIPv6, verbs.QPTypeRawEtherType} {
		a, b := p.create("A", service), p.create("B", service)
		p.ready(a, b, service)
		p.ready(b, a, service)
		for i := range 5 {
			p.says(fmt.Sprintf("%v receive %d", service, i), b.PostReceive(uint64(20+i), 300))
		}
		lid := is(b.d.QueryPort(1))(t).LID
		local := is(a.d.CreateAH(verbs.AHAttr{Port: 1, DLID: lid, SL: 0}))(t)
		global := is(a.d.CreateAH(verbs.AHAttr{Port: 1, DLID: lid, Global: true, DGID: is(b.d.QueryGID(1, 0))(t), HopLimit: 3, TrafficClass: 7, FlowLabel: 9}))(t)
		if err := b.memory.Write(8, []byte("remote")); err != nil {
			t.Fatal(err)
		}
		to := verbs.SendWR{AH: local, EE: a.ee, RemoteQPN: b.Number(), RemoteQKey: 0x55, EtherType: 0x88B5, RKey: b.memory.RKey(), RemoteAddress: 0x1008}
		for i, w := range []verbs.SendWR{
			{Data: []byte("hi there")}, {Data: []byte("now!"), HasImm: true, Imm: 77, Solicited: true}, {Data: bytes.Repeat([]byte("x"), 300), AH: global},
			{Op: verbs.OpWrite, Data: []byte("WR")}, {Op: verbs.OpWrite, Data: []byte("IMM"), HasImm: true, Imm: 78}, {Op: verbs.OpRead, Length: 6},
			{Data: []byte("no handle"), EE: nil, AH: nil, ID: 99},
		} {
			w.RemoteQPN, w.RemoteQKey, w.EtherType, w.RKey, w.RemoteAddress = to.RemoteQPN, to.RemoteQKey, to.EtherType, to.RKey, to.RemoteAddress
			if w.ID == 0 {
				w.EE = to.EE
				if w.AH == nil {
					w.AH = to.AH
				}
			}
			w.ID = uint64(10 + i)
			p.says(fmt.Sprintf("%v send %d", service, i), a.PostSend(w))
			p.completions("  sent", a.sent, 4)
			if w.Op == verbs.OpSend || w.HasImm {
				p.completions("  came", b.in, 4)
			}
		}
		raw, err := b.memory.Read(8, 8)
		p.says("memory", fmt.Sprintf("%q", raw), err)
		p.says("handle", local.Destroy(), global.Destroy())
		p.says("handle again", local.Destroy())
		if service == verbs.QPTypeRC {
			p.says("a foreign key", a.PostSend(verbs.SendWR{ID: 30, Op: verbs.OpWrite, Data: []byte("x"), RKey: to.RKey + 1, RemoteAddress: 0x1000}))
			p.completions("  sent", a.sent, 4)
			for _, e := range []*end{a, b} {
				ev, ok, err := e.d.WaitEvent(time.Second)
				p.says("  event", ev, ok, err)
			}
			p.says("  state", is(a.Query())(t).State, is(b.Query())(t).State)
			for _, e := range []*end{a, b} {
				p.says("reset", e.Modify(verbs.QPAttr{}, verbs.AttrState))
				p.completions("  sent", e.sent, 4)
				p.completions("  came", e.in, 4)
				p.ready(e, map[bool]*end{true: b, false: a}[e == a], service)
			}
		}
		if service == verbs.QPTypeUC || service == verbs.QPTypeRC {
			p.long(a, b)
		}
		p.says("busy CQ", b.in.Destroy())
		p.says("EE context", endEE(b), endEE(b))
		p.says("QP", b.Destroy(), b.Destroy())
		p.says("CQ", b.in.Destroy(), b.in.Destroy(), b.sent.Destroy())
		p.says("memory", b.memory.Deregister(), b.memory.Deregister())
		p.says("device", a.d.Close(), b.d.Close())
	}
	p.story.Check(t, "services.txt")
}

// long has one host send messages of which one answer to a program holds one only.
func (p *programs) long(a, b *end) {
	for i := range 3 {
		is(0, b.PostReceive(uint64(40+i), 100_000))(p)
		is(0, a.PostSend(verbs.SendWR{ID: uint64(50 + i), Data: make([]byte, 100_000)}))(p)
	}
	is(0, p.fabric.Advance(time.Second))(p)
	for i := range 3 {
		p.completions(fmt.Sprint("  answer ", i), b.in, 3)
	}
	p.completions("  sent", a.sent, 4)
}

func endEE(e *end) any {
	if e.ee == nil {
		return "none"
	}
	return e.ee.Destroy()
}

// TestPorts: what programs are told of their devices and ports, and of what happens to them.
func TestPorts(t *testing.T) {
	f := is(simfabric.Open(simfabric.Options{Topology: star, Policy: sharing, Manager: "M", Devices: map[string]map[string]uint64{"C": {"bad-pkey-counter": 0}, "B": {"bad-qkey-counter": 0}}}))(t)
	defer f.Close()
	p := &programs{TB: t, fabric: f}
	devices := map[string]*verbs.Device{}
	for _, node := range []string{"A", "B", "C"} {
		d := is(f.OpenDevice(node))(t)
		devices[node] = d
		p.says(node, d.Query())
		attr, err := d.QueryPort(1)
		p.says(node+" port 1", attr, err)
		_, err = d.QueryPort(2)
		p.says(node+" port 2", err)
		_, err = d.QueryPKey(1, 128)
		p.says(node+" P_Key 128", err)
		for i := range 3 {
			key, err := d.QueryPKey(1, i)
			p.says(fmt.Sprint(node, " P_Key ", i), key, err)
		}
		for _, i := range []int{-1, 0, 1, attr.GIDTableLen - 1, attr.GIDTableLen} {
			gid, err := d.QueryGID(1, i)
			p.says(fmt.Sprint(node, " GID ", i), gid, err)
		}
		_, err = d.QueryGID(2, 0)
		p.says(node+" GID of port 2", err)
	}
	events := func(when string) {
		for _, node := range []string{"A", "B", "C"} {
			for e, ok, err := devices[node].NextEvent(); ok || err != nil; e, ok, err = devices[node].NextEvent() {
				if p.says(when+" "+node, e.Type, e.Port, e.QPN, err); err != nil {
					break
				}
			}
		}
	}
	events("at first")
	if err := f.SetPolicy(strings.ReplaceAll(sharing, "0x0002", "0x0003")); err != nil {
		t.Fatal(err)
	}
	events("another P_Key")
	if err := f.Unplug("B", 1); err != nil {
		t.Fatal(err)
	}
	is(0, f.Advance(time.Second))(t)
	events("unplugged")
	if err := f.Plug("B", 1); err != nil {
		t.Fatal(err)
	}
	is(0, f.Advance(time.Minute))(t)
	events("plugged")
	if err := f.PowerOff("C"); err != nil {
		t.Fatal(err)
	}
	events("off")
	_, err := devices["C"].QueryPort(1)
	p.says("C off", err)
	_, err = f.OpenDevice("C")
	p.says("C off, opened", err)
	_, err = f.OpenDevice("Z")
	p.says("Z", err)
	p.story.Check(t, "ports.txt")
}

// TestGroups: joins of multicast groups and what the administration says to them, one at a time
// and two at once, of programs on one port; and those that nobody answers.
func TestGroups(t *testing.T) {
	f := is(simfabric.Open(simfabric.Options{Topology: star, Policy: sharing, Manager: "M"}))(t)
	defer f.Close()
	p := &programs{TB: t, fabric: f}
	group, foreign := ib.GID{0xFF, 0x12, 0x40, 0x1B, 0x80, 0x01, 12: 0xFF, 0xFF, 0xFF, 0xFF}, ib.GID{0xFF, 0x12, 0x40, 0x1B, 0x80, 0x02, 12: 0xFF, 0xFF, 0xFF, 0xFF}
	a, b, c := p.create("A", verbs.QPTypeUD), p.create("B", verbs.QPTypeUD), p.create("C", verbs.QPTypeUD)
	for _, e := range []*end{a, b, c} {
		p.ready(e, e, verbs.QPTypeUD)
		for i := range 4 {
			is(0, e.PostReceive(uint64(i), 100))(t)
		}
	}
	join := func(what string, d *verbs.Device, mgid ib.GID) *verbs.MulticastGroup {
		g, err := d.JoinMulticast(1, 0, mgid, time.Second)
		if err != nil {
			p.says(what, err)
			return nil
		}
		p.says(what, *g)
		return g
	}
	g := join("A joins", a.d, group)
	join("A joins again", a.d, group)
	join("B joins", b.d, group)
	join("C joins what is not its own", c.d, group)
	join("A joins a group that there is not", a.d, foreign)
	join("A joins no group", a.d, ib.GID{1})
	is(0, f.Advance(time.Second))(t)
	p.says("C attaches", c.AttachMulticast(g.MGID, g.MLID))
	p.says("B attaches", b.AttachMulticast(g.MGID, g.MLID))
	way := is(a.d.CreateAH(verbs.AHAttr{Port: 1, DLID: g.MLID, Global: true, DGID: g.MGID, HopLimit: 1}))(t)
	send := func(what string) {
		p.says(what, a.PostSend(verbs.SendWR{ID: 5, Data: []byte("all"), AH: way, RemoteQPN: ib.QPMulticast, RemoteQKey: 0x55}))
		p.completions("  A", a.sent, 9)
		p.completions("  B", b.in, 9)
		p.completions("  C", c.in, 9)
	}
	send("A sends")
	p.says("B detaches", b.DetachMulticast(g.MGID, g.MLID), b.DetachMulticast(g.MGID, g.MLID))
	send("A sends again")
	p.says("B leaves", b.d.LeaveMulticast(1, 0, group, time.Second))
	p.says("B leaves again", b.d.LeaveMulticast(1, 0, group, time.Second))
	if err := f.Unplug("M", 1); err != nil {
		t.Fatal(err)
	}
	p.says("B leaves, nobody answers", b.d.LeaveMulticast(1, 0, group, time.Second))
	join("B joins, nobody answers", b.d, group)
	other := is(f.OpenDevice("B"))(t)
	both := make(chan string, 2)
	for _, d := range []*verbs.Device{b.d, other} {
		go func() {
			_, err := d.JoinMulticast(1, 0, group, time.Second)
			both <- fmt.Sprint(err)
		}()
	}
	p.says("two programs of B at once", <-both, <-both)
	p.says("a program of B ends", other.Close())
	join("B joins with the other gone", b.d, group)
	p.story.Check(t, "groups.txt")
}
