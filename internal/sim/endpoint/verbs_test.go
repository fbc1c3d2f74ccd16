package endpoint_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

func TestQueries(t *testing.T) {
	n := newNet(t)
	p1, p2 := newPort(1, 0xFFFF, 0x8001), newPort(2, 0xFFFF)
	p2.size = 300
	a := n.node(counters, p1, p2)
	t.Run("VB-01", func(t *testing.T) {
		for i, want := range []int{tableLen, 300} {
			if at, err := a.QueryPort(ib.PortNum(i + 1)); err != nil || at.PKeyTableLen != want {
				t.Errorf("port %d: %d entries, %v", i+1, at.PKeyTableLen, err)
			}
		}
		for _, none := range []ib.PortNum{0, 3, 255} {
			if _, err := a.QueryPort(none); !errors.Is(err, endpoint.ErrPort) {
				t.Errorf("port %d: %v", none, err)
			}
		}
	})
	t.Run("VB-02", func(t *testing.T) {
		p1.keys[1] = 0x8009
		k1, err1 := a.QueryPKey(1, 1)
		k2, err2 := a.QueryPKey(2, 1)
		if k1 != 0x8009 || k2 != ib.PKeyInvalid || err1 != nil || err2 != nil {
			t.Errorf("entry 1: %v and %v, %v, %v", k1, k2, err1, err2)
		}
	})
	t.Run("VB-08", func(t *testing.T) {
		p2.keys = make([]ib.PKey, 300)
		for i := range p2.keys {
			p2.keys[i] = ib.PKey(0x8100 + i)
		}
		for i := range p2.keys {
			if key, err := a.QueryPKey(2, i); key != p2.keys[i] || err != nil {
				t.Errorf("entry %d: %v, %v", i, key, err)
			}
		}
		for _, i := range []int{-1, 300, 70_000} {
			if _, err := a.QueryPKey(2, i); !errors.Is(err, endpoint.ErrPKeyIndex) {
				t.Errorf("index %d: %v", i, err)
			}
		}
		if _, err := a.QueryPKey(9, 0); !errors.Is(err, endpoint.ErrPort) {
			t.Errorf("port 9: %v", err)
		}
	})
	t.Run("device", func(t *testing.T) {
		if got := a.QueryDevice(); got.Flags != counters || got.Ports != 2 {
			t.Errorf("%+v", got)
		}
	})
}

func TestVerbsPKeyIndex(t *testing.T) {
	for _, service := range []endpoint.Service{endpoint.UD, endpoint.RC, endpoint.UC} {
		mask := rcInit
		if service == endpoint.UD {
			mask = udInit
		}
		t.Run(fmt.Sprint("VB-03/", service), func(t *testing.T) {
			n := newNet(t)
			p1, p2 := newPort(1, 0xFFFF), newPort(2, 0xFFFF, 0, 0, 0x8001)
			p2.size = 2 * tableLen
			p2.keys = append(p2.keys, make([]ib.PKey, tableLen)...)
			p2.keys[tableLen] = 0x8002
			a := n.node(counters, p1, p2)
			for _, tt := range []struct {
				port  ib.PortNum
				index uint16
				want  error
			}{
				{1, 0, nil}, {2, 3, nil}, {2, tableLen, nil},
				{1, 3, endpoint.ErrPKeyEmpty}, {2, 1, endpoint.ErrPKeyEmpty},
				{1, tableLen, endpoint.ErrPKeyIndex}, {2, 2 * tableLen, endpoint.ErrPKeyIndex}, {3, 0, endpoint.ErrPort},
			} {
				q := a.create(service, 0)
				err := q.Modify(endpoint.Application, endpoint.StateInit, mask, endpoint.Attr{Port: tt.port, PKeyIndex: tt.index})
				if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
					t.Errorf("index %d of port %d: %v, want %v", tt.index, tt.port, err, tt.want)
				}
				if state, at := q.Query(); err != nil && (state != endpoint.StateReset || at != (endpoint.Attr{})) {
					t.Errorf("refused, but %v, %+v", state, at)
				}
			}
		})
	}
	t.Run("VB-04", func(t *testing.T) {
		n := newNet(t)
		a := n.node(counters, newPort(1, 0xFFFF, 0x8001, 0x8002))
		q := a.ud(1, 1)
		modify(t, q, endpoint.StateSQD, 0, endpoint.Attr{})
		modify(t, q, endpoint.StateRTS, endpoint.AttrPKeyIndex, endpoint.Attr{PKeyIndex: 2})
		for want, q := range map[uint16]*endpoint.QP{0: a.ud(1, 0), 2: q} {
			if _, at := q.Query(); at.PKeyIndex != want || int(at.PKeyIndex) >= tableLen {
				t.Errorf("index %d, want %d", at.PKeyIndex, want)
			}
		}
		long := newPort(2, make([]ib.PKey, 0x1234)...)
		long.size, long.keys[0x1233] = 0x1234, 0x8001
		if _, at := n.node(counters, long).ud(1, 0x1233).Query(); at.PKeyIndex != 0x1233 {
			t.Errorf("index %#x, want 0x1233", at.PKeyIndex)
		}
		err := q.Modify(endpoint.Kernel, endpoint.StateInit, udInit, endpoint.Attr{Port: 1})
		if !errors.Is(err, endpoint.ErrState) {
			t.Errorf("from RTS to INIT: %v", err)
		}
	})
}

func TestTableChanges(t *testing.T) {
	setup := func(t *testing.T) (*net, *node, *node) {
		n := newNet(t)
		return n, n.node(counters, newPort(1, 0xFFFF, 0, 0x8001)), n.node(counters, newPort(2, 0xFFFF, 0, 0x8001))
	}
	t.Run("VB-05", func(t *testing.T) {
		n, a, b := setup(t)
		from, to := a.ud(1, 2), b.ud(1, 2)
		room(t, 4, to)
		for i, key := range []ib.PKey{0x8001, 0x8002, 0x0002, 0x0000} {
			a.ports[0].keys[2] = key
			must(t, from.PostSend(datagram(b.ports[0], to, "x")))
			n.carry()
			if got := n.sent[i].BTH.PKey(); got != key {
				t.Errorf("left with %v, want %v", got, key)
			}
		}
		if len(received(to)) != 1 {
			t.Error("not the first alone arrived")
		}
		// The receiver goes by its new key at once, and so does a message that
		// is under way.
		b.ports[0].keys[2], a.ports[0].keys[2] = 0x8002, 0x0002
		must(t, from.PostSend(datagram(b.ports[0], to, "x")))
		n.carry()
		if len(received(to)) != 1 {
			t.Error("the receiver does not go by its new key")
		}
		b.ports[0].keys[2], a.ports[0].keys[2] = 0x8001, 0x8001
		rc, peer := pair(t, endpoint.UC, a, b, 2, 2)
		room(t, 1, peer)
		must(t, rc.PostSend(endpoint.SendRequest{Data: make([]byte, 600)}))
		n.clear()
		p, _ := a.Send(0, 1, endpoint.AllServiceLevels, nil)
		n.forward(p)
		a.ports[0].keys[2] = 0x8005
		n.carry()
		if n.sent[0].BTH.PKey() != 0x8001 || n.sent[1].BTH.PKey() != 0x8005 || n.sent[2].BTH.PKey() != 0x8005 {
			t.Errorf("keys %v, %v, %v", n.sent[0].BTH.PKey(), n.sent[1].BTH.PKey(), n.sent[2].BTH.PKey())
		}
		if len(received(peer)) != 0 {
			t.Error("a message arrived without its end")
		}
	})
	t.Run("VB-06", func(t *testing.T) {
		_, a, _ := setup(t)
		if e, ok := a.NextEvent(); ok {
			t.Errorf("an event of nothing: %+v", e)
		}
		a.Announce(endpoint.EventPKeyChange, 1)
		if e, ok := a.NextEvent(); !ok || e.Kind != endpoint.EventPKeyChange || e.Port != 1 || e.QP != nil {
			t.Errorf("event %+v, %v", e, ok)
		}
		if _, ok := a.NextEvent(); ok {
			t.Error("the event comes twice")
		}
	})
	t.Run("VB-07", func(t *testing.T) {
		_, a, _ := setup(t)
		cached := make([]ib.PKey, tableLen)
		read := func() {
			for i := range cached {
				key, err := a.QueryPKey(1, i)
				must(t, err)
				cached[i] = key
			}
		}
		read()
		a.ports[0].keys = []ib.PKey{0xFFFF, 0x8007, 0, 0x0009}
		a.Announce(endpoint.EventPKeyChange, 1)
		if e, _ := a.NextEvent(); e.Kind != endpoint.EventPKeyChange {
			t.Fatalf("event %+v", e)
		}
		read()
		want := append(append([]ib.PKey{}, a.ports[0].keys...), make([]ib.PKey, tableLen-4)...)
		if fmt.Sprint(cached) != fmt.Sprint(want) {
			t.Errorf("read %v, want %v", cached, want)
		}
	})
	t.Run("PK-23/becomes empty", func(t *testing.T) {
		n, a, b := setup(t)
		from, to := a.ud(1, 2), b.ud(1, 2)
		room(t, 1, to)
		a.ports[0].keys, b.ports[0].keys = []ib.PKey{0xFFFF}, []ib.PKey{0xFFFF}
		must(t, from.PostSend(datagram(b.ports[0], to, "x")))
		n.carry()
		wantReason(t, n, endpoint.ReasonPKeyBase)
		if n.sent[0].BTH.PKey() != ib.PKeyInvalid {
			t.Errorf("left with %v", n.sent[0].BTH.PKey())
		}
	})
}

func TestEvents(t *testing.T) {
	n := newNet(t)
	a := n.node(0, newPort(1, 0xFFFF), newPort(2, 0xFFFF))
	want := []endpoint.Event{
		{Kind: endpoint.EventPortActive, Port: 1}, {Kind: endpoint.EventPortError, Port: 1},
		{Kind: endpoint.EventPortActive, Port: 1}, {Kind: endpoint.EventClientReregister, Port: 1},
		{Kind: endpoint.EventLIDChange, Port: 2}, {Kind: endpoint.EventPKeyChange, Port: 2},
	}
	for _, e := range want {
		a.Announce(e.Kind, e.Port)
		a.Announce(e.Kind, e.Port) // once is enough
	}
	for i, e := range want {
		if got, ok := a.NextEvent(); !ok || got != e {
			t.Errorf("event %d: %+v, want %+v", i, got, e)
		}
	}
	for i := range endpoint.MaxEvents + 10 {
		a.Announce(endpoint.EventPKeyChange, ib.PortNum(1+i%2))
	}
	count := 0
	for _, ok := a.NextEvent(); ok; _, ok = a.NextEvent() {
		count++
	}
	// Of those that found the queue full every second was as the last in it.
	if count != endpoint.MaxEvents || a.LostEvents() != 5 {
		t.Errorf("%d events, %d lost", count, a.LostEvents())
	}
}

func TestCounterFlags(t *testing.T) {
	for _, tt := range []struct {
		rule       string
		flags      endpoint.DeviceFlags
		pkey, qkey uint32
	}{
		{"VB-09", endpoint.BadPKeyCounter, 3, 0},
		{"VB-10", endpoint.BadQKeyCounter, 0, 2},
		{"VB-11", endpoint.BadQKeyCounter, 0, 2},
		{"VB-12", endpoint.BadPKeyCounter, 3, 0},
		{"VB-10/neither", 0, 0, 0},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(0, newPort(1, 0xFFFF, 0x8001)), n.node(tt.flags, newPort(2, 0xFFFF, 0x8002))
			from, foreign, to := a.ud(1, 0), a.ud(1, 1), b.ud(1, 0)
			room(t, 9, to)
			for range 3 {
				must(t, foreign.PostSend(datagram(b.ports[0], to, "x")))
			}
			for range 2 {
				must(t, from.PostSend(datagramWith(b.ports[0], to, qkey+1)))
			}
			n.carry()
			if len(received(to)) != 0 {
				t.Error("the drops did not happen")
			}
			wantCounters(t, b, tt.pkey, tt.qkey)
			// The agent is told either way.
			if info := b.ports[0].info; info.PKeyViolations != 3 || info.QKeyViolations != 2 {
				t.Errorf("PortInfo counts %d and %d", info.PKeyViolations, info.QKeyViolations)
			}
		})
	}
}

func TestCreateQP(t *testing.T) {
	n := newNet(t)
	a := n.node(counters, newPort(1, 0xFFFF))
	t.Run("VB-13", func(t *testing.T) {
		for _, s := range []endpoint.Service{endpoint.SMI, endpoint.GSI} {
			c := endpoint.QPConfig{Service: s, Port: 1}
			if _, err := a.CreateQP(endpoint.Application, c); !errors.Is(err, endpoint.ErrPermission) {
				t.Errorf("an application has %v: %v", s, err)
			}
			q, err := a.CreateQP(endpoint.Kernel, c)
			must(t, err)
			if _, err := a.CreateQP(endpoint.Kernel, c); !errors.Is(err, endpoint.ErrFull) {
				t.Errorf("a second %v: %v", s, err)
			}
			q.Destroy()
			q, err = a.CreateQP(endpoint.Kernel, c)
			must(t, err)
			err = q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrQKey, endpoint.Attr{QKey: 5})
			if !errors.Is(err, endpoint.ErrAttribute) {
				t.Errorf("%v took another Q_Key: %v", s, err)
			}
		}
	})
	for name, c := range map[string]endpoint.QPConfig{
		"service":       {Service: 200},
		"send depth":    {SendDepth: endpoint.MaxQueueDepth + 1},
		"receive depth": {ReceiveDepth: -1},
		"port":          {Service: endpoint.GSI, Port: 4},
	} {
		t.Run(name, func(t *testing.T) {
			if q, err := a.CreateQP(endpoint.Kernel, c); err == nil {
				t.Errorf("made %v", q.Service())
			}
		})
	}
	t.Run("destroyed", func(t *testing.T) {
		q := a.ud(1, 0)
		number := q.Number()
		must(t, q.PostSend(datagram(a.ports[0], q, "x")))
		q.Destroy()
		q.Destroy()
		for what, err := range map[string]error{
			"modify": q.Modify(endpoint.Kernel, endpoint.StateInit, udInit, endpoint.Attr{Port: 1}),
			"send":   q.PostSend(endpoint.SendRequest{}), "receive": q.PostReceive(endpoint.ReceiveRequest{}),
			"attach": q.AttachMulticast(0xC000, ib.GID{0xFF}),
		} {
			if err == nil {
				t.Errorf("%s on QP %d, which is gone", what, number)
			}
		}
		if _, ok := a.Send(0, 1, endpoint.AllServiceLevels, nil); ok {
			t.Error("a packet of a QP that is gone")
		}
		if a.ud(1, 0).Number() == number {
			t.Error("the number is used again at once")
		}
	})
	for name, ports := range map[string][]endpoint.Port{
		"no port": {}, "only nil": {nil, nil}, "port 255": append(make([]endpoint.Port, 255), newPort(1)),
	} {
		if _, err := endpoint.New(endpoint.Config{Ports: ports}); err == nil {
			t.Errorf("%s: a device was made", name)
		}
	}
}

// TestModifyOrder tries every pair of states and every attribute alone.
func TestModifyOrder(t *testing.T) {
	full := endpoint.AttrMask(1<<12 - 1)
	legal := map[[2]endpoint.State]bool{}
	for _, to := range []endpoint.State{endpoint.StateReset, endpoint.StateErr} {
		for from := endpoint.StateReset; from <= endpoint.StateErr; from++ {
			legal[[2]endpoint.State{from, to}] = true
		}
	}
	for _, c := range [][2]endpoint.State{
		{endpoint.StateReset, endpoint.StateInit}, {endpoint.StateInit, endpoint.StateInit}, {endpoint.StateInit, endpoint.StateRTR},
		{endpoint.StateRTR, endpoint.StateRTS}, {endpoint.StateRTS, endpoint.StateRTS}, {endpoint.StateRTS, endpoint.StateSQD},
		{endpoint.StateSQD, endpoint.StateSQD}, {endpoint.StateSQD, endpoint.StateRTS},
	} {
		legal[c] = true
	}
	needs := map[endpoint.State]endpoint.AttrMask{
		endpoint.StateInit: rcInit, endpoint.StateRTR: rcRTR, endpoint.StateRTS: rcRTS,
	}
	way := []endpoint.State{endpoint.StateReset, endpoint.StateInit, endpoint.StateRTR, endpoint.StateRTS, endpoint.StateSQD}
	at := attr(1, 0, newPort(2), 7)
	n := newNet(t)
	a := n.node(0, newPort(1, 0xFFFF))
	reach := func(state endpoint.State) *endpoint.QP {
		q := a.create(endpoint.RC, 0)
		for _, s := range way[1:] {
			if q2, _ := q.Query(); q2 == state {
				break
			}
			modify(t, q, s, needs[s], at)
		}
		if state == endpoint.StateErr {
			modify(t, q, state, 0, at)
		}
		wantState(t, q, state)
		return q
	}
	for _, from := range append(way, endpoint.StateErr) {
		for to := endpoint.StateReset; to <= endpoint.StateErr+1; to++ {
			mask := needs[to]
			if from >= to || from == endpoint.StateSQD {
				mask = 0
			}
			q := reach(from)
			err := q.Modify(endpoint.Kernel, to, mask, at)
			if want := legal[[2]endpoint.State{from, to}]; want != (err == nil) {
				t.Errorf("%v to %v: %v, legal %v", from, to, err, want)
			}
			if err == nil {
				wantState(t, q, to)
			} else {
				wantState(t, q, from)
			}
			q.Destroy()
		}
	}
	for _, from := range way[:3] { // one attribute missing, and all there are
		to := from + 1
		for bit := endpoint.AttrMask(1); bit < full; bit <<= 1 {
			if needs[to]&bit != 0 {
				if err := reach(from).Modify(endpoint.Kernel, to, needs[to]&^bit, at); !errors.Is(err, endpoint.ErrAttribute) {
					t.Errorf("%v to %v without %#x: %v", from, to, bit, err)
				}
			}
		}
		if err := reach(from).Modify(endpoint.Kernel, to, full, at); !errors.Is(err, endpoint.ErrAttribute) {
			t.Errorf("%v to %v with everything: %v", from, to, err)
		}
	}
}

func TestAttributesOutOfRange(t *testing.T) {
	n := newNet(t)
	a := n.node(0, newPort(1, 0xFFFF))
	for name, change := range map[string]func(*endpoint.Attr){
		"multicast path": func(a *endpoint.Attr) { a.Path.DLID = 0xC000 },
		"SL":             func(a *endpoint.Attr) { a.Path.SL = 16 },
		"flow label":     func(a *endpoint.Attr) { a.Path.FlowLabel = 1 << 20 },
		"GID index":      func(a *endpoint.Attr) { a.Path.Global, a.Path.SGIDIndex = true, 1 },
		"MTU":            func(a *endpoint.Attr) { a.PathMTU = ib.MTU512 }, // the port's is 256
		"no MTU":         func(a *endpoint.Attr) { a.PathMTU = 0 },
		"remote":         func(a *endpoint.Attr) { a.Remote = 1 << 24 },
		"receive PSN":    func(a *endpoint.Attr) { a.ReceivePSN = 1 << 24 },
		"RNR timer":      func(a *endpoint.Attr) { a.MinRNRTimer = 32 },
		"send PSN":       func(a *endpoint.Attr) { a.SendPSN = 1 << 24 },
		"timeout":        func(a *endpoint.Attr) { a.Timeout = 32 },
		"retries":        func(a *endpoint.Attr) { a.RetryCount = 8 },
		"RNR retries":    func(a *endpoint.Attr) { a.RNRRetryCount = 8 },
	} {
		q := a.create(endpoint.RC, 0)
		at := attr(1, 0, newPort(2), 7)
		change(&at)
		modify(t, q, endpoint.StateInit, rcInit, at)
		err := q.Modify(endpoint.Kernel, endpoint.StateRTR, rcRTR, at)
		if err == nil {
			err = q.Modify(endpoint.Kernel, endpoint.StateRTS, rcRTS, at)
		}
		if !errors.Is(err, endpoint.ErrAttribute) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPostRefused(t *testing.T) {
	n := newNet(t)
	a, b := n.node(0, newPort(1, 0xFFFF)), n.node(0, newPort(2, 0xFFFF))
	ud, gsi, smi := a.ud(1, 0), a.management(endpoint.GSI, 1), a.management(endpoint.SMI, 1)
	raw, raw6 := a.raw(endpoint.RawEtherType, 1), a.raw(endpoint.RawIPv6, 1)
	rc, _ := pair(t, endpoint.RC, a, b, 0, 0)
	uc, _ := pair(t, endpoint.UC, a, b, 0, 0)
	rd := a.rd()
	to := endpoint.Address{DLID: 2}
	for _, tt := range []struct {
		name string
		q    *endpoint.QP
		r    endpoint.SendRequest
		want error
	}{
		{"no state", a.create(endpoint.UD, 0), endpoint.SendRequest{To: to, RemoteQP: 5}, endpoint.ErrState},
		{"UD write", ud, endpoint.SendRequest{Op: endpoint.OpWrite, To: to, RemoteQP: 5}, endpoint.ErrService},
		{"UC read", uc, endpoint.SendRequest{Op: endpoint.OpRead}, endpoint.ErrService},
		{"an operation of completions", rc, endpoint.SendRequest{Op: endpoint.OpReceive}, endpoint.ErrService},
		{"immediate data with a READ", rc, endpoint.SendRequest{Op: endpoint.OpRead, HasImm: true}, endpoint.ErrService},
		{"immediate data of QP1", gsi, endpoint.SendRequest{HasImm: true, To: to, RemoteQP: 1, Data: mad256(0)}, endpoint.ErrService},
		{"longer than the MTU", ud, endpoint.SendRequest{To: to, RemoteQP: 5, Data: make([]byte, 257)}, endpoint.ErrRequest},
		{"no LID", ud, endpoint.SendRequest{RemoteQP: 5}, endpoint.ErrRequest},
		{"permissive LID", ud, endpoint.SendRequest{To: endpoint.Address{DLID: ib.LIDPermissive}, RemoteQP: 5}, endpoint.ErrRequest},
		{"QP of 25 bits", ud, endpoint.SendRequest{To: to, RemoteQP: 1 << 24}, endpoint.ErrRequest},
		{"QP0", ud, endpoint.SendRequest{To: to}, endpoint.ErrRequest},
		{"multicast QP, unicast LID", ud, endpoint.SendRequest{To: to, RemoteQP: ib.QPMulticast}, endpoint.ErrRequest},
		{"multicast without a GRH", ud, endpoint.SendRequest{To: endpoint.Address{DLID: 0xC000}, RemoteQP: ib.QPMulticast}, endpoint.ErrRequest},
		{"SL", ud, endpoint.SendRequest{To: endpoint.Address{DLID: 2, SL: 16}, RemoteQP: 5}, endpoint.ErrRequest},
		{"GMP of 255 bytes", gsi, endpoint.SendRequest{To: to, RemoteQP: 1, Data: make([]byte, 255)}, endpoint.ErrRequest},
		{"SMP to QP1", smi, endpoint.SendRequest{To: to, RemoteQP: 1, Data: mad256(0)}, endpoint.ErrRequest},
		{"half a word", raw, endpoint.SendRequest{To: to, Data: make([]byte, 6)}, endpoint.ErrRequest},
		{"half an IPv6 header", raw6, endpoint.SendRequest{To: to, Data: make([]byte, 36)}, endpoint.ErrRequest},
		{"RD without an EE context", rd, endpoint.SendRequest{RemoteQP: 5}, endpoint.ErrRequest},
	} {
		if err := tt.q.PostSend(tt.r); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, ok := a.Send(0, 1, endpoint.AllServiceLevels, nil); ok {
		t.Error("something was sent all the same")
	}
}

// TestQueuesAreBounded: a request keeps its place until its completion is polled.
func TestQueuesAreBounded(t *testing.T) {
	n := newNet(t)
	a := n.node(0, newPort(1, 0xFFFF))
	q, err := a.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD, SendDepth: 2, ReceiveDepth: 3})
	must(t, err)
	modify(t, q, endpoint.StateInit, udInit, endpoint.Attr{Port: 1, QKey: qkey})
	modify(t, q, endpoint.StateRTR, 0, endpoint.Attr{})
	modify(t, q, endpoint.StateRTS, endpoint.AttrSendPSN, endpoint.Attr{})
	room(t, 3, q)
	if err := q.PostReceive(endpoint.ReceiveRequest{}); !errors.Is(err, endpoint.ErrFull) {
		t.Errorf("a fourth receive: %v", err)
	}
	for range 2 {
		must(t, q.PostSend(datagram(a.ports[0], q, "to myself")))
	}
	n.carry() // nothing is polled
	if err := q.PostSend(datagram(a.ports[0], q, "x")); !errors.Is(err, endpoint.ErrFull) {
		t.Errorf("a third send: %v", err)
	}
	if err := q.PostReceive(endpoint.ReceiveRequest{}); !errors.Is(err, endpoint.ErrFull) {
		t.Errorf("a fourth receive: %v", err)
	}
	if got := poll(q); len(got) != 4 {
		t.Errorf("%d completions, want 4", len(got))
	}
	must(t, q.PostSend(datagram(a.ports[0], q, "x")))
	must(t, q.PostReceive(endpoint.ReceiveRequest{}))
	modify(t, q, endpoint.StateErr, 0, endpoint.Attr{})
	must(t, q.PostSend(datagram(a.ports[0], q, "x")))
	must(t, q.PostReceive(endpoint.ReceiveRequest{}))
	got := poll(q)
	for _, c := range got {
		if c.Status != endpoint.Flushed {
			t.Errorf("in ERR: %+v", c)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d completions, want 5 flushed", len(got))
	}
	modify(t, q, endpoint.StateReset, 0, endpoint.Attr{})
	if _, at := q.Query(); at != (endpoint.Attr{}) {
		t.Errorf("after RESET %+v", at)
	}
}
