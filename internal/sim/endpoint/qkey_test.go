package endpoint_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// qkeyPair is a UD QP on each of two nodes of one partition, holding a Q_Key each.
func qkeyPair(t *testing.T, sender, receiver ib.QKey) (n *net, b *node, from, to *endpoint.QP) {
	t.Helper()
	n = newNet(t)
	a := n.node(counters, newPort(1, 0xFFFF))
	b = n.node(counters, newPort(2, 0xFFFF))
	from, to = a.ud(1, 0), b.ud(1, 0)
	modify(t, from, endpoint.StateRTS, endpoint.AttrQKey, endpoint.Attr{QKey: sender})
	modify(t, to, endpoint.StateRTS, endpoint.AttrQKey, endpoint.Attr{QKey: receiver})
	room(t, 40, to)
	return n, b, from, to
}

// TestQKeySent shows what a request's Q_Key makes of that in the packet.
func TestQKeySent(t *testing.T) {
	for _, tt := range []struct {
		rule                   string
		asked, context, leaves ib.QKey
	}{
		{"QK-05", 0x8000_0000, 0x1234, 0x1234},
		{"QK-05/all ones", 0xFFFF_FFFF, 0x1234, 0x1234},
		{"QK-05/privileged context", 0x8000_0000, 0x8001_0000, 0x8001_0000},
		{"QK-06", 0x1111, 0x8001_0000, 0x1111},
		{"QK-06/highest", 0x7FFF_FFFF, 0x1234, 0x7FFF_FFFF},
		{"QK-06/zero", 0, 0x1234, 0},
		{"QK-11", 0x8001_0000, 0x1234, 0x1234},
		{"QK-11/free range", 0x8000_0001, 0x1234, 0x1234},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			n, b, from, to := qkeyPair(t, tt.context, 0x5555)
			r := datagram(b.ports[0], to, "x")
			r.RemoteQKey = tt.asked
			must(t, from.PostSend(r))
			n.carry()
			if got := n.sent[0].DETH.QKey(); got != tt.leaves {
				t.Errorf("left with %v, want %v", got, tt.leaves)
			}
		})
	}
}

func TestQKeyChecked(t *testing.T) {
	for _, tt := range []struct {
		rule           string
		sent, receiver ib.QKey
		taken          bool
	}{
		{"QK-01/without it", 0x1111, 0x2222, false},
		{"QK-01/with it", 0x2222, 0x2222, true},
		{"QK-01/zero is no master key", 0, 0x2222, false},
		{"QK-03/right", 0x7FFF_FFFF, 0x7FFF_FFFF, true},
		{"QK-03/wrong", 0, 0x7FFF_FFFF, false},
		{"QK-07", 0x1234, 0x1234, true},
		{"QK-07/zero", 0, 0, true},
		{"QK-07/privileged", 0x8001_0000, 0x8001_0000, true},
		{"QK-08", 0x1234, 0x1235, false},
		{"QK-12/not held", 0x8001_0000, 0x1234, false},
		{"QK-12/held", 0x8001_0000, 0x8001_0000, true},
		{"QK-25", 0x1234, 0x4321, false},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			n, b, from, to := qkeyPair(t, tt.sent, tt.receiver)
			r := datagram(b.ports[0], to, "x")
			r.RemoteQKey = 0x8000_0000 // that of the QP
			must(t, from.PostSend(r))
			n.carry()
			if len(n.sent) != 1 {
				t.Errorf("%d packets, want no answer", len(n.sent))
			}
			if got := len(received(to)) == 1; got != tt.taken {
				t.Errorf("arrived %v, want %v", got, tt.taken)
			}
			if tt.taken {
				wantCounters(t, b, 0, 0)
				return
			}
			wantReason(t, n, endpoint.ReasonQKey)
			wantCounters(t, b, 0, 1)
			if got := n.last().detail; got.Key != uint32(tt.sent) || got.QP1 != from.Number() || got.QP2 != to.Number() {
				t.Errorf("offence %+v", got)
			}
		})
	}
	t.Run("QK-02", func(t *testing.T) {
		const key = 0x8001_5A5A
		n, b, from, to := qkeyPair(t, key, key)
		for bit := range 32 {
			modify(t, from, endpoint.StateRTS, endpoint.AttrQKey, endpoint.Attr{QKey: key ^ 1<<bit})
			r := datagram(b.ports[0], to, "x")
			r.RemoteQKey = 0xFFFF_FFFF
			must(t, from.PostSend(r))
			n.carry()
			a := n.last()
			if a.reason != endpoint.ReasonQKey {
				t.Errorf("bit %d differs: %v", bit, a.reason)
			}
			// The key stands at the beginning of the DETH, after LRH and BTH.
			want := binary.BigEndian.AppendUint32(nil, key^1<<bit)
			if got := a.bytes[20:24]; !bytes.Equal(got, want) {
				t.Errorf("bytes %x, want %x", got, want)
			}
		}
	})
	t.Run("QK-09", func(t *testing.T) {
		n, b, from, to := qkeyPair(t, 0x1111, 0x2222)
		before, attrBefore := to.Query()
		for range 100 {
			must(t, from.PostSend(datagramWith(b.ports[0], to, 0x1111)))
			n.carry()
			poll(from)
		}
		if state, at := to.Query(); state != before || at != attrBefore {
			t.Errorf("state %v, attributes %+v", state, at)
		}
		wantCounters(t, b, 0, 100)
		must(t, from.PostSend(datagramWith(b.ports[0], to, 0x2222)))
		n.carry()
		if len(received(to)) != 1 {
			t.Error("a good datagram after the bad ones did not arrive")
		}
	})
	t.Run("QK-24", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0x8001)), n.node(counters, newPort(2, 0x8002))
		to := b.ud(1, 0)
		must(t, a.ud(1, 0).PostSend(datagramWith(b.ports[0], to, qkey+1)))
		n.carry()
		wantReason(t, n, endpoint.ReasonPKeyBase)
		wantCounters(t, b, 1, 0)
	})
	t.Run("QK-23", func(t *testing.T) {
		// The manager writes P_Key tables and PortInfo: the Q_Key stays, and
		// with it who is let in.
		n, b, from, to := qkeyPair(t, 0x1111, 0x2222)
		b.ports[0].info.QKeyViolations = 0
		for _, d := range n.nodes {
			d.ports[0].keys[0] = 0x8001
		}
		if _, at := to.Query(); at.QKey != 0x2222 {
			t.Errorf("Q_Key %v", at.QKey)
		}
		must(t, from.PostSend(datagramWith(b.ports[0], to, 0x1111)))
		must(t, from.PostSend(datagramWith(b.ports[0], to, 0x2222)))
		n.carry()
		if len(received(to)) != 1 {
			t.Error("not the one with the Q_Key")
		}
		b.ports[0].keys[0] = 0x0001
		room(t, 1, to)
		must(t, from.PostSend(datagramWith(b.ports[0], to, 0x2222)))
		n.carry()
		if len(received(to)) != 1 {
			t.Error("a limited member's Q_Key does not count")
		}
		modify(t, to, endpoint.StateSQD, 0, endpoint.Attr{})
		modify(t, to, endpoint.StateRTS, endpoint.AttrPKeyIndex, endpoint.Attr{PKeyIndex: 0})
		if _, at := to.Query(); at.QKey != 0x2222 {
			t.Errorf("after the P_Key index was set: Q_Key %v", at.QKey)
		}
	})
	for _, service := range []endpoint.Service{endpoint.RC, endpoint.UC} {
		t.Run(fmt.Sprint("QK-22/", service), func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0xFFFF))
			from, to := pair(t, service, a, b, 0, 0)
			room(t, 1, to)
			must(t, from.PostSend(endpoint.SendRequest{Data: []byte("x"), RemoteQKey: 0x7777}))
			n.carry()
			if n.sent[0].DETH != nil || len(received(to)) != 1 {
				t.Error("a DETH, or no delivery")
			}
			err := to.Modify(endpoint.Kernel, endpoint.StateRTS, endpoint.AttrQKey, endpoint.Attr{QKey: 1})
			if !errors.Is(err, endpoint.ErrAttribute) {
				t.Errorf("Q_Key of %v set: %v", service, err)
			}
			wantCounters(t, b, 0, 0)
		})
	}
}

func datagramWith(to *testPort, q *endpoint.QP, key ib.QKey) endpoint.SendRequest {
	r := datagram(to, q, "x")
	r.RemoteQKey = key
	return r
}

// TestQKeyPrivilege shows who may put which key into a QP.
func TestQKeyPrivilege(t *testing.T) {
	for _, tt := range []struct {
		rule string
		key  ib.QKey
		free bool // for applications
	}{
		{"QK-14", 0x7FFF_FFFF, true},
		{"QK-14/zero", 0, true},
		{"QK-15", 0x8001_0000, false},
		{"QK-16/lowest", 0x8000_0000, true},
		{"QK-16/highest", 0x8000_FFFF, true},
		{"QK-17/management", 0x8001_0000, false},
		{"QK-17/lowest", 0x8001_0001, false},
		{"QK-17/highest", 0x8FFF_FFFF, false},
		{"QK-17/in no list", 0x9000_0000, false},
		{"QK-17/all ones", 0xFFFF_FFFF, false},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			n := newNet(t)
			a := n.node(counters, newPort(1, 0xFFFF))
			q, err := a.CreateQP(endpoint.Application, endpoint.QPConfig{Service: endpoint.UD})
			must(t, err)
			at := endpoint.Attr{Port: 1, QKey: tt.key}
			err = q.Modify(endpoint.Application, endpoint.StateInit, udInit, at)
			if tt.free != (err == nil) || !tt.free && !errors.Is(err, endpoint.ErrPermission) {
				t.Errorf("an application sets it: %v", err)
			}
			state, got := q.Query()
			if !tt.free && (state != endpoint.StateReset || got != (endpoint.Attr{})) {
				t.Errorf("refused, but %v and %+v", state, got)
			}
			must(t, q.Modify(endpoint.Kernel, endpoint.StateReset, 0, at))
			must(t, q.Modify(endpoint.Kernel, endpoint.StateInit, udInit, at))
			if _, got := q.Query(); got.QKey != tt.key {
				t.Errorf("holds %v", got.QKey)
			}
		})
	}
	t.Run("QK-10", func(t *testing.T) {
		if !ib.QKey(0x8000_0000).IsPrivileged() || ib.QKey(0x7FFF_FFFF).IsPrivileged() {
			t.Error("bit 31 is not what decides")
		}
	})
	for _, rule := range []string{"QK-04", "QK-13"} {
		t.Run(rule, func(t *testing.T) {
			n, b, from, _ := qkeyPair(t, 0x8001_0000, 0)
			q := b.create(endpoint.UD, 0)
			if _, at := q.Query(); at.QKey != 0 {
				t.Errorf("created with Q_Key %v", at.QKey)
			}
			modify(t, q, endpoint.StateInit, udInit, endpoint.Attr{Port: 1, QKey: 0x8001_0000})
			modify(t, q, endpoint.StateRTR, 0, endpoint.Attr{})
			if _, at := q.Query(); at.QKey != 0x8001_0000 {
				t.Errorf("holds %v", at.QKey)
			}
			room(t, 1, q)
			must(t, from.PostSend(datagramWith(b.ports[0], q, 0x8001_0000)))
			n.carry()
			if len(received(q)) != 1 {
				t.Error("the check does not go by what was set")
			}
		})
	}
}

func TestRD(t *testing.T) {
	setup := func(t *testing.T, keys ...ib.PKey) (*net, *node, *node) {
		n := newNet(t)
		return n, n.node(counters, newPort(1, keys...)), n.node(counters, newPort(2, keys...))
	}
	send := func(a, b rdNode, data []byte) endpoint.SendRequest {
		return endpoint.SendRequest{ID: 5, Data: data, RemoteQP: b.q.Number(), RemoteQKey: qkey, EEContext: a.ee.Number()}
	}
	table := []ib.PKey{0xFFFF, 0x8001, 0x8002}
	// Three ports on each node, each with LIDs and keys of its own.
	threePorts := func(t *testing.T) (*net, *node, *node) {
		n := newNet(t)
		ports := func(lid ib.LID) (out []*testPort) {
			for i := range ib.LID(3) {
				keys := make([]ib.PKey, 3)
				for k := range keys {
					keys[k] = ib.PKey(0x8000 + 0x100*int(i+1) + 0x10*k + 1)
				}
				keys[2] = 0x8777
				out = append(out, newPort(lid+10*i, keys...))
			}
			return out
		}
		return n, n.node(counters, ports(1)...), n.node(counters, ports(2)...)
	}
	for _, rule := range []string{"QP-08", "QP-09"} {
		t.Run(rule, func(t *testing.T) {
			for pa := ib.PortNum(1); pa <= 3; pa++ {
				for pb := ib.PortNum(1); pb <= 3; pb++ {
					n, a, b := threePorts(t)
					ra, rb := rdPairAt(t, a, b, pa, pb, 2, 2)
					err := ra.q.Modify(endpoint.Kernel, endpoint.StateRTS, endpoint.AttrPort, endpoint.Attr{Port: pa})
					if _, at := ra.q.Query(); !errors.Is(err, endpoint.ErrAttribute) || at.Port != 0 {
						t.Errorf("an RD QP was given port %d: %v", at.Port, err)
					}
					for ee, port := range map[*endpoint.EEContext]ib.PortNum{ra.ee: pa, rb.ee: pb} {
						if state, at := ee.Query(); state != endpoint.StateRTS || at.Port != port || at.PKeyIndex != 2 {
							t.Errorf("EE context of port %d: %v, %+v", port, state, at)
						}
					}
					room(t, 1, rb.q)
					must(t, ra.q.PostSend(send(ra, rb, []byte("rd"))))
					n.carry()
					// The request leaves by the port of the one context, the answer by that of
					// the other, with their addresses.
					for i, v := range n.sent {
						want, lid := pa, ib.LID(1)+10*ib.LID(pa-1)
						if v.LRH.SLID()%10 == 2 {
							want, lid = pb, ib.LID(2)+10*ib.LID(pb-1)
						}
						if n.by[i] != want || v.LRH.SLID() != lid || v.BTH.PKey() != 0x8777 {
							t.Errorf("ports %d and %d: packet %d left by port %d from LID %v with %v", pa, pb, i, n.by[i], v.LRH.SLID(), v.BTH.PKey())
						}
					}
					got := received(rb.q)
					if len(n.sent) != 2 || len(got) != 1 || string(got[0].Bytes) != "rd" || got[0].SrcQP != ra.q.Number() || got[0].PKeyIndex != 2 {
						t.Errorf("ports %d and %d: %d packets, received %+v", pa, pb, len(n.sent), got)
					}
					wantStatus(t, ra.q, endpoint.Success)
					// What comes in by another port is not for the context.
					other := pb%3 + 1
					p := n.arrivals[0].bytes
					(*packet.LRH)(p).SetDLID(b.ports[other-1].info.LID)
					must(t, packet.Seal(p))
					if r := n.arrive(b, other, p).reason; r != endpoint.ReasonPort {
						t.Errorf("what came in by port %d for the context of port %d: %v", other, pb, r)
					}
				}
			}
		})
	}
	for _, rule := range []string{"QP-10", "QP-11"} {
		t.Run(rule, func(t *testing.T) {
			n, a, b := setup(t, table...)
			ra, rb := rdPair(t, a, b, 2, 2)
			second := rdNode{q: a.rd(), ee: ra.ee}
			room(t, 2, rb.q)
			must(t, ra.q.PostSend(send(ra, rb, make([]byte, 600))))
			must(t, second.q.PostSend(send(second, rb, make([]byte, 300))))
			n.carry()
			if len(received(rb.q)) != 2 {
				t.Error("not both arrived")
			}
			sources := map[ib.QPN]bool{}
			for _, v := range n.sent {
				if v.BTH.PKey() != 0x8002 {
					t.Errorf("%v with %v, want the entry of the EE context", v.BTH.OpCode(), v.BTH.PKey())
				}
				if v.DETH != nil {
					sources[v.DETH.SrcQP()] = true
				}
			}
			if len(sources) != 2 {
				t.Errorf("source QPs %v", sources)
			}
		})
	}
	t.Run("QP-12", func(t *testing.T) {
		n, a, b := setup(t, table...)
		ra, rb := rdPair(t, a, b, 1, 2) // entry 1 of b has a's key, but the EE context goes by 2
		room(t, 1, rb.q)
		must(t, ra.q.PostSend(send(ra, rb, []byte("x"))))
		n.carry()
		wantReason(t, n, endpoint.ReasonPKeyBase)
		if len(n.sent) != 1 {
			t.Error("a bad P_Key was answered")
		}
		wantCounters(t, b, 1, 0)
		n.pass(5 * ackTimeout.Duration())
		wantStatus(t, ra.q, endpoint.RetryExceeded)
		if state, _ := rb.ee.Query(); state != endpoint.StateRTS {
			t.Errorf("the receiver's context is in %v", state)
		}
	})
	t.Run("QP-12/answers", func(t *testing.T) {
		n, a, b := setup(t, table...)
		ra, rb := rdPair(t, a, b, 1, 1)
		room(t, 1, rb.q)
		must(t, ra.q.PostSend(send(ra, rb, []byte("x"))))
		request, ok := a.Send(0, 1, endpoint.AllServiceLevels, nil)
		if !ok {
			t.Fatal("no request")
		}
		n.arrive(b, 1, request)
		answer, ok := b.Send(0, 1, endpoint.AllServiceLevels, nil)
		if !ok {
			t.Fatal("no answer")
		}
		v, err := packet.Parse(answer)
		must(t, err)
		right := v.BTH.PKey()
		v.BTH.SetPKey(0x8777)
		must(t, packet.Seal(answer))
		if got := n.arrive(a, 1, answer); got.reason != endpoint.ReasonPKeyBase || len(poll(ra.q)) != 0 {
			t.Errorf("an answer with a foreign key: %v", got.reason)
		}
		wantCounters(t, a, 1, 0)
		v.BTH.SetPKey(right)
		must(t, packet.Seal(answer))
		if got := n.arrive(a, 1, answer); got.reason != endpoint.Taken {
			t.Errorf("the answer with the right key: %v", got.reason)
		}
		wantStatus(t, ra.q, endpoint.Success)
	})
	t.Run("QK-19", func(t *testing.T) {
		n, a, b := setup(t, table...)
		ra, rb := rdPair(t, a, b, 0, 0)
		modify(t, ra.q, endpoint.StateRTS, endpoint.AttrQKey, endpoint.Attr{QKey: 0x8001_0000})
		modify(t, rb.q, endpoint.StateRTS, endpoint.AttrQKey, endpoint.Attr{QKey: 0x8001_0000})
		room(t, 1, rb.q)
		r := send(ra, rb, []byte("x"))
		r.RemoteQKey = 0x8000_0000
		must(t, ra.q.PostSend(r))
		n.carry()
		v := n.sent[0]
		if v.RDETH == nil || v.DETH == nil || v.DETH.QKey() != 0x8001_0000 || v.RDETH.EEContext() != rb.ee.Number() {
			t.Errorf("headers %+v", v)
		}
		if len(received(rb.q)) != 1 {
			t.Error("the right key did not pass")
		}
	})
	t.Run("QK-20", func(t *testing.T) {
		_, a, _ := setup(t, table...)
		q, err := a.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.RD})
		if q != nil || !errors.Is(err, endpoint.ErrService) {
			t.Errorf("verbs made an RD QP: %v", err)
		}
		if _, err := a.CreateRDQP(endpoint.QPConfig{}); err != nil {
			t.Errorf("beneath verbs: %v", err)
		}
	})
	t.Run("QK-21", func(t *testing.T) {
		n, a, b := setup(t, table...)
		ra, rb := rdPair(t, a, b, 0, 0)
		second := rdNode{q: a.rd(), ee: ra.ee}
		room(t, 2, rb.q)
		bad := send(ra, rb, make([]byte, 600))
		bad.RemoteQKey = 0x4321
		must(t, ra.q.PostSend(bad))
		must(t, ra.q.PostSend(send(ra, rb, []byte("behind the bad one"))))
		must(t, second.q.PostSend(send(second, rb, []byte("of another QP"))))
		n.carry()
		wantCounters(t, b, 0, 1)
		var naks []packet.Syndrome
		resync := false
		for _, v := range n.sent {
			if v.AETH != nil && v.AETH.Syndrome().Kind() == packet.SyndromeNAK {
				naks = append(naks, v.AETH.Syndrome())
			}
			resync = resync || v.BTH.OpCode().Operation() == packet.Resync
		}
		if len(naks) != 1 || naks[0].Value() != packet.NAKInvalidRDRequest || byte(naks[0]) != 0x64 || !resync {
			t.Errorf("NAKs %v, RESYNC %v", naks, resync)
		}
		got := poll(ra.q)
		if len(got) != 2 || got[0].Status != endpoint.RemoteInvalidRDRequest || got[1].Status != endpoint.Flushed {
			t.Errorf("the sender's completions %+v", got)
		}
		wantState(t, ra.q, endpoint.StateSQE)
		wantState(t, rb.q, endpoint.StateRTS)
		wantStatus(t, second.q, endpoint.Success)
		if got := received(rb.q); len(got) != 1 || string(got[0].Bytes) != "of another QP" {
			t.Errorf("received %+v", got)
		}
		// The QP is well again after a modify.
		modify(t, ra.q, endpoint.StateRTS, 0, endpoint.Attr{})
		must(t, ra.q.PostSend(send(ra, rb, []byte("again"))))
		n.carry()
		wantStatus(t, ra.q, endpoint.Success)
	})
	t.Run("QK-24/RD", func(t *testing.T) {
		n, a, b := setup(t, table...)
		ra, rb := rdPair(t, a, b, 1, 2)
		bad := send(ra, rb, []byte("x"))
		bad.RemoteQKey = 0x4321
		must(t, ra.q.PostSend(bad))
		n.carry()
		wantCounters(t, b, 1, 0)
	})
	t.Run("not to a group", func(t *testing.T) {
		n, a, b := setup(t, table...)
		ra, rb := rdPair(t, a, b, 0, 0)
		ud := b.ud(1, 0)
		group := ib.GID{0xFF}
		must(t, ud.AttachMulticast(0xC000, group))
		room(t, 1, ud, rb.q)
		at := attr(1, 0, b.ports[0], rb.ee.Number())
		at.Path.Global, at.Path.DGID = true, group
		must(t, ra.ee.Modify(endpoint.StateSQD, 0, at))
		must(t, ra.ee.Modify(endpoint.StateRTS, endpoint.AttrPath, at))
		must(t, ra.q.PostSend(send(ra, rb, []byte("x"))))
		for _, qpn := range []ib.QPN{ib.QPMulticast, rb.q.Number()} {
			n.spoil = func(p []byte) {
				v, _ := packet.Parse(p)
				v.LRH.SetDLID(0xC000)
				v.BTH.SetDestQP(qpn)
				must(t, packet.Seal(p))
			}
			n.carry()
			n.pass(n.now + ackTimeout.Duration())
			if n.arrive(b, 1, n.last().bytes).reason == endpoint.Taken || len(received(ud))+len(received(rb.q)) > 0 {
				t.Errorf("a multicast RD packet to QP %#x was taken", qpn)
			}
		}
	})
	t.Run("no such QP", func(t *testing.T) {
		n, a, b := setup(t, table...)
		ra, rb := rdPair(t, a, b, 0, 0)
		bad := send(ra, rb, []byte("x"))
		bad.RemoteQP = b.ud(1, 0).Number()
		must(t, ra.q.PostSend(bad))
		n.carry()
		wantStatus(t, ra.q, endpoint.RemoteInvalidRDRequest)
		wantCounters(t, b, 0, 0)
	})
}
