package endpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// twoPorts is a node with two ports and a peer for each.
func twoPorts(t *testing.T) (n *net, a *node, peers [2]*node) {
	n = newNet(t)
	a = n.node(counters, newPort(1, 0xFFFF), newPort(2, 0xFFFF))
	// Each peer has its port at the same number as the one it talks to.
	for i := range peers {
		peers[i] = n.node(counters, newPort(ib.LID(11+10*i), 0xFFFF), newPort(ib.LID(12+10*i), 0xFFFF))
	}
	return n, a, peers
}

func TestQPPort(t *testing.T) {
	t.Run("QP-01/UD", func(t *testing.T) {
		n, a, peers := twoPorts(t)
		q, peer := a.ud(2, 0), peers[0].ud(2, 0)
		room(t, 2, q, peer)
		must(t, q.PostSend(datagram(peers[0].ports[1], peer, "by port 2")))
		n.carry()
		if n.sent[0].LRH.SLID() != 2 || len(received(peer)) != 1 {
			t.Errorf("left with SLID %v", n.sent[0].LRH.SLID())
		}
		// The same packet by the other port.
		must(t, peer.PostSend(datagram(a.ports[0], q, "to port 1")))
		n.carry()
		wantReason(t, n, endpoint.ReasonPort)
		must(t, peer.PostSend(datagram(a.ports[1], q, "to port 2")))
		n.carry()
		wantReason(t, n, endpoint.Taken)
		// Of several ports it is the QP's, not the last.
		n.clear()
		must(t, a.ud(1, 0).PostSend(datagram(peers[0].ports[0], peer, "by port 1")))
		n.carry()
		if len(n.sent) != 1 || n.sent[0].LRH.SLID() != 1 || n.by[0] != 1 {
			t.Errorf("a QP of port 1 sent %d packets by ports %v, want one by port 1", len(n.sent), n.by)
		}
	})
	for _, service := range []endpoint.Service{endpoint.RC, endpoint.UC} {
		t.Run(fmt.Sprint("QP-01/", service), func(t *testing.T) {
			n, a, peers := twoPorts(t)
			q, peer := a.create(service, 0), peers[0].create(service, 0)
			connect(t, q, peer, a, peers[0], 2, 0, 0)
			room(t, 2, q, peer)
			must(t, q.PostSend(endpoint.SendRequest{Data: []byte("by port 2")}))
			n.carry()
			if n.sent[0].LRH.SLID() != 2 || len(received(peer)) != 1 {
				t.Errorf("left with SLID %v", n.sent[0].LRH.SLID())
			}
			must(t, peer.PostSend(endpoint.SendRequest{Data: []byte("x")}))
			b, _ := peers[0].Send(n.now, 2, endpoint.AllServiceLevels, nil)
			toPort1 := bytes.Clone(b)
			(*packet.LRH)(toPort1).SetDLID(1)
			must(t, packet.Seal(toPort1))
			if got := n.arrive(a, 1, toPort1); got.reason != endpoint.ReasonPort || got.bad != 0 {
				t.Errorf("at port 1: %v", got.reason)
			}
			if got := n.arrive(a, 2, b); got.reason != endpoint.Taken {
				t.Errorf("at port 2: %v", got.reason)
			}
		})
	}
	t.Run("QP-02", func(t *testing.T) {
		_, a, _ := twoPorts(t)
		q := a.create(endpoint.UD, 0)
		if state, at := q.Query(); state != endpoint.StateReset || at != (endpoint.Attr{}) {
			t.Errorf("created with %v, %+v", state, at)
		}
		modify(t, q, endpoint.StateInit, udInit, endpoint.Attr{Port: 2, QKey: qkey})
		if state, at := q.Query(); state != endpoint.StateInit || at.Port != 2 {
			t.Errorf("modified to %v, %+v", state, at)
		}
	})
	for service, mask := range map[endpoint.Service]endpoint.AttrMask{endpoint.UD: udInit, endpoint.RC: rcInit, endpoint.UC: rcInit} {
		t.Run(fmt.Sprint("QP-02/", service, " wants one"), func(t *testing.T) {
			_, a, _ := twoPorts(t)
			q := a.create(service, 0)
			err := q.Modify(endpoint.Kernel, endpoint.StateInit, mask&^endpoint.AttrPort, endpoint.Attr{Port: 1, QKey: qkey})
			if state, _ := q.Query(); !errors.Is(err, endpoint.ErrAttribute) || state != endpoint.StateReset {
				t.Errorf("without a port: %v, state %v", err, state)
			}
		})
	}
}

func TestQPStamps(t *testing.T) {
	keys := []ib.PKey{0xFFFF, 0x8001, 0x8002, 0x8003, 0x8004, 0x8005}
	t.Run("QP-03", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, keys...)), n.node(counters, newPort(2, keys...))
		q := a.ud(1, 5)
		if _, at := q.Query(); at.PKeyIndex != 5 {
			t.Errorf("index %d, want 5", at.PKeyIndex)
		}
		must(t, q.PostSend(datagram(b.ports[0], b.ud(1, 5), "x")))
		n.carry()
		if got := n.sent[0].BTH.PKey(); got != 0x8005 {
			t.Errorf("P_Key %v, want entry 5", got)
		}
		for service, mask := range map[endpoint.Service]endpoint.AttrMask{endpoint.UD: udInit, endpoint.RC: rcInit, endpoint.UC: rcInit} {
			err := a.create(service, 0).Modify(endpoint.Kernel, endpoint.StateInit, mask&^endpoint.AttrPKeyIndex, endpoint.Attr{Port: 1, QKey: qkey})
			if !errors.Is(err, endpoint.ErrAttribute) {
				t.Errorf("%v without an index: %v", service, err)
			}
		}
	})
	t.Run("QP-04", func(t *testing.T) {
		n := newNet(t)
		// The same partition at different places and with different membership.
		a, b := n.node(counters, newPort(1, 0xFFFF, 0x0007)), n.node(counters, newPort(2, 0xFFFF, 0x8001, 0x8007))
		from, to := pair(t, endpoint.RC, a, b, 1, 2)
		room(t, 3, to)
		memory := make([]byte, 1000)
		region, err := b.RegisterMemory(memory, 0x10000, endpoint.AccessRemoteRead|endpoint.AccessRemoteWrite)
		must(t, err)
		for _, r := range []endpoint.SendRequest{
			{Op: endpoint.OpSend, Data: make([]byte, 600)},
			{Op: endpoint.OpWrite, Data: make([]byte, 600), RemoteAddress: 0x10000, RKey: region.RKey()},
			{Op: endpoint.OpRead, Data: make([]byte, 600), RemoteAddress: 0x10000, RKey: region.RKey()},
		} {
			must(t, from.PostSend(r))
		}
		n.carry()
		seen := map[packet.Operation]bool{}
		for _, v := range n.sent {
			op := v.BTH.OpCode().Operation()
			seen[op] = true
			want := ib.PKey(0x0007)
			if op.IsResponse() {
				want = 0x8007
			}
			if v.BTH.PKey() != want {
				t.Errorf("%v left with %v, want %v", v.BTH.OpCode(), v.BTH.PKey(), want)
			}
		}
		for _, op := range []packet.Operation{
			packet.SendFirst, packet.SendMiddle, packet.SendLast, packet.WriteFirst, packet.WriteMiddle, packet.WriteLast,
			packet.ReadRequest, packet.ReadResponseFirst, packet.ReadResponseMiddle, packet.ReadResponseLast, packet.Acknowledge,
		} {
			if !seen[op] {
				t.Errorf("no %v among the packets", packet.MakeOpCode(packet.RC, op))
			}
		}
		for _, c := range poll(from) {
			if c.Status != endpoint.Success {
				t.Errorf("completion %+v", c)
			}
		}
		n.sent = nil
		to = b.ud(1, 2)
		must(t, a.ud(1, 1).PostSend(datagram(b.ports[0], to, "x")))
		n.carry()
		if len(n.sent) != 1 || n.sent[0].BTH.PKey() != 0x0007 {
			t.Errorf("a datagram left with %v, want 0x0007", n.sent[0].BTH.PKey())
		}
	})
	for _, service := range []endpoint.Service{endpoint.RC, endpoint.UC} {
		t.Run(fmt.Sprint("QP-05/", service), func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(counters, newPort(1, 0xFFFF, 0x8001)), n.node(counters, newPort(2, 0xFFFF, 0x8001))
			from, to := pair(t, service, a, b, 1, 1)
			room(t, 1, to)
			must(t, from.PostSend(endpoint.SendRequest{Data: make([]byte, 3*256)}))
			n.carry()
			var ops []packet.Operation
			for _, v := range n.sent {
				if !v.BTH.OpCode().Operation().IsResponse() {
					ops = append(ops, v.BTH.OpCode().Operation())
					if v.BTH.PKey() != 0x8001 {
						t.Errorf("%v with %v", v.BTH.OpCode(), v.BTH.PKey())
					}
				}
			}
			if want := []packet.Operation{packet.SendFirst, packet.SendMiddle, packet.SendLast}; fmt.Sprint(ops) != fmt.Sprint(want) {
				t.Errorf("operations %v, want %v", ops, want)
			}
		})
	}
}

func TestQPChecks(t *testing.T) {
	t.Run("QP-06", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0xFFFF))
		from, to, other := a.ud(1, 0), b.ud(1, 0), b.ud(1, 0)
		room(t, 1, to, other)
		must(t, from.PostSend(datagram(b.ports[0], to, "x")))
		n.carry()
		if len(received(to)) != 1 || len(received(other)) != 0 {
			t.Error("not the addressed QP alone")
		}
		room(t, 1, to)
		must(t, from.PostSend(datagram(b.ports[0], other, "x")))
		n.carry()
		if len(received(to)) != 0 || len(received(other)) != 1 {
			t.Error("not the other QP alone")
		}
		for _, number := range []ib.QPN{0x4711, to.Number() | 0x1_0000, to.Number() | 0x80_0000} {
			gone := datagram(b.ports[0], to, "x")
			gone.RemoteQP = number
			must(t, from.PostSend(gone))
			n.carry()
			wantReason(t, n, endpoint.ReasonNoQP)
		}
		wantCounters(t, b, 0, 0)
	})
	for _, service := range []endpoint.Service{endpoint.UD, endpoint.RC, endpoint.UC} {
		t.Run(fmt.Sprint("QP-07/", service), func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(counters, newPort(1, 0xFFFF, 0x8001)), n.node(counters, newPort(2, 0xFFFF, 0x8001, 0x8002))
			var from, to *endpoint.QP
			send := endpoint.SendRequest{Data: []byte("x")}
			if service == endpoint.UD {
				from, to = a.ud(1, 1), b.ud(1, 2)
				send = datagram(b.ports[0], to, "x")
			} else {
				from, to = pair(t, service, a, b, 1, 2)
			}
			room(t, 1, to)
			must(t, from.PostSend(send))
			n.carry()
			wantReason(t, n, endpoint.ReasonPKeyBase)
			wantCounters(t, b, 1, 0)
		})
		t.Run(fmt.Sprint("QP-07/", service, " of another index than 0"), func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(counters, newPort(1, 0xFFFF, 0x8001)), n.node(counters, newPort(2, 0xFFFF, 0x8002, 0x8001))
			var from, to *endpoint.QP
			send := endpoint.SendRequest{Data: []byte("x")}
			if service == endpoint.UD {
				from, to = a.ud(1, 1), b.ud(1, 2)
				send = datagram(b.ports[0], to, "x")
			} else {
				from, to = pair(t, service, a, b, 1, 2)
			}
			room(t, 1, to)
			must(t, from.PostSend(send))
			n.carry()
			if len(received(to)) != 1 {
				t.Error("what matches the entry was not taken")
			}
			wantCounters(t, b, 0, 0)
		})
	}
	t.Run("QP-26/UD", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0x8001)), n.node(counters, newPort(2, 0x8002))
		from, to := a.ud(1, 0), b.ud(1, 0)
		room(t, 1, to)
		must(t, from.PostSend(datagram(b.ports[0], to, "x")))
		n.carry()
		if got := poll(to); len(got) != 0 || len(n.sent) != 1 {
			t.Errorf("completions %+v, %d packets, want none and the one that was refused", got, len(n.sent))
		}
	})
	t.Run("QP-26", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0x8001)), n.node(counters, newPort(2, 0x8002))
		from, to := pair(t, endpoint.RC, a, b, 0, 0)
		room(t, 1, to)
		must(t, from.PostSend(endpoint.SendRequest{ID: 7, Data: []byte("x")}))
		n.carry()
		if len(n.sent) != 1 {
			t.Fatalf("%d packets, want the request and no answer", len(n.sent))
		}
		if got := poll(from); len(got) != 0 {
			t.Fatalf("the sender hears %+v before its time", got)
		}
		n.pass(3*ackTimeout.Duration() + 1)
		if got := poll(from); len(got) != 0 || len(n.sent) != 4 {
			t.Fatalf("after three time-outs: %+v and %d packets, want 4", got, len(n.sent))
		}
		n.pass(4*ackTimeout.Duration() + 1)
		wantStatus(t, from, endpoint.RetryExceeded)
		wantState(t, from, endpoint.StateErr)
		// The receiver has noticed nothing but its counter.
		wantState(t, to, endpoint.StateRTS)
		wantCounters(t, b, 4, 0)
		if got := poll(to); len(got) != 0 {
			t.Errorf("receiver completes %+v", got)
		}
		if len(n.sent) != 4 {
			t.Errorf("%d packets, want 4 and no answer", len(n.sent))
		}
	})
	for _, service := range []endpoint.Service{endpoint.UD, endpoint.RC, endpoint.UC} {
		t.Run(fmt.Sprint("QP-27/", service), func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(counters, newPort(1, 0x8001)), n.node(counters, newPort(2, 0x8001))
			var from, to *endpoint.QP
			send := endpoint.SendRequest{Data: []byte("good")}
			if service == endpoint.UD {
				from, to = a.ud(1, 0), b.ud(1, 0)
				send = datagram(b.ports[0], to, "good")
			} else {
				from, to = pair(t, service, a, b, 0, 0)
			}
			room(t, 1, to)
			stateBefore, attrBefore := to.Query()
			must(t, from.PostSend(send))
			good, ok := a.Send(0, 1, endpoint.AllServiceLevels, nil)
			if !ok {
				t.Fatal("no packet")
			}
			bad := bytes.Clone(good)
			v, _ := packet.Parse(bad)
			v.BTH.SetPKey(0x8002)
			must(t, packet.Seal(bad))
			for range 100 {
				if got := n.arrive(b, 1, bad); got.reason != endpoint.ReasonPKeyBase {
					t.Fatalf("%v", got.reason)
				}
			}
			if state, at := to.Query(); state != stateBefore || at != attrBefore {
				t.Errorf("state %v, attributes %+v", state, at)
			}
			wantCounters(t, b, 100, 0)
			if n.arrive(b, 1, good); len(received(to)) != 1 {
				t.Errorf("a good packet after the bad ones: %v", n.last().reason)
			}
		})
	}
	t.Run("QP-28", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0x8001, 0x0002)), n.node(counters, newPort(2, 0x0002))
		to := b.ud(1, 0)
		for i, from := range []*endpoint.QP{a.ud(1, 0), a.ud(1, 1)} {
			must(t, from.PostSend(datagram(b.ports[0], to, "x")))
			n.carry()
			wantCounters(t, b, uint32(i+1), 0)
		}
	})
}

// mad256 is a management datagram's length of bytes.
func mad256(fill byte) []byte { return bytes.Repeat([]byte{fill}, mad.Size) }

func TestManagementQPs(t *testing.T) {
	// SMPs to a port of b with nothing but partition 5 in its table.
	smps := func(t *testing.T) (*net, *node, *node, *endpoint.QP, *endpoint.QP) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0x0005))
		return n, a, b, a.management(endpoint.SMI, 1), b.management(endpoint.SMI, 1)
	}
	smp := func(to *testPort) endpoint.SendRequest {
		return endpoint.SendRequest{Data: mad256(1), To: endpoint.Address{DLID: to.info.LID}}
	}
	t.Run("QP-13", func(t *testing.T) {
		n, _, b, from, to := smps(t)
		r := smp(b.ports[0])
		r.PKey = 0x1234
		room(t, 1, to)
		must(t, from.PostSend(r))
		n.carry()
		if got := received(to); len(got) != 1 || !bytes.Equal(got[0].Bytes[endpoint.GRHSize:], r.Data) {
			t.Errorf("received %+v", got)
		}
		wantCounters(t, b, 0, 0)
	})
	t.Run("QP-14", func(t *testing.T) {
		n, _, b, from, _ := smps(t)
		for _, key := range []ib.PKey{0x1234, 0x8000, 0x0001} {
			r := smp(b.ports[0])
			r.PKey = key
			must(t, from.PostSend(r))
			n.carry()
			if got := n.sent[len(n.sent)-1].BTH.PKey(); got != key {
				t.Errorf("left with %v, want %v", got, key)
			}
		}
	})
	t.Run("QP-15", func(t *testing.T) {
		n, a, b, from, _ := smps(t)
		a.ports[0].keys[0] = 0x8009
		must(t, from.PostSend(smp(b.ports[0])))
		n.carry()
		v := n.sent[0]
		if v.BTH.PKey() != ib.PKeyDefaultFull || v.LRH.VL() != ib.VLManagement || v.DETH.QKey() != 0 || v.DETH.SrcQP() != 0 {
			t.Errorf("P_Key %v, VL %d, Q_Key %v", v.BTH.PKey(), v.LRH.VL(), v.DETH.QKey())
		}
	})
	t.Run("VL 15 is for QP0", func(t *testing.T) {
		n, a, b, from, _ := smps(t)
		must(t, from.PostSend(smp(b.ports[0])))
		p, _ := a.Send(0, 1, 0, nil)
		(*packet.LRH)(p).SetVL(3)
		must(t, packet.Seal(p))
		if got := n.arrive(b, 1, p).reason; got != endpoint.ReasonLane {
			t.Errorf("QP0 on VL 3: %v", got)
		}
		ud := a.ud(1, 0)
		must(t, ud.PostSend(datagram(b.ports[0], b.ud(1, 0), "x")))
		p, _ = a.Send(0, 1, endpoint.AllServiceLevels, nil)
		(*packet.LRH)(p).SetVL(ib.VLManagement)
		must(t, packet.Seal(p))
		if got := n.arrive(b, 1, p).reason; got != endpoint.ReasonLane {
			t.Errorf("data on VL 15: %v", got)
		}
	})
}

// gmp is a request from QP1 to QP1 by an entry of the sender's table.
func gmp(to *testPort, index uint16) endpoint.SendRequest {
	return endpoint.SendRequest{Data: mad256(2), To: endpoint.Address{DLID: to.info.LID}, RemoteQP: ib.QP1, PKeyIndex: index}
}

func TestGSI(t *testing.T) {
	// b's QP1 has index 0; its table holds two partitions elsewhere.
	setup := func(t *testing.T, keys ...ib.PKey) (*net, *node, *endpoint.QP, *endpoint.QP) {
		n := newNet(t)
		a := n.node(counters, newPort(1, keys...))
		b := n.node(counters, newPort(2, 0xFFFF, 0, 0, 0x8003, 0, 0, 0, 0x0007))
		from, to := a.management(endpoint.GSI, 1), b.management(endpoint.GSI, 1)
		room(t, 9, to)
		return n, b, from, to
	}
	for _, rule := range []string{"QP-16", "QP-17"} {
		t.Run(rule, func(t *testing.T) {
			n, b, from, to := setup(t, 0x8003, 0x8007, 0x0003, 0x0007, 0x8008, 0x0000)
			for i, want := range []endpoint.Reason{
				endpoint.Taken, endpoint.Taken, endpoint.Taken,
				endpoint.ReasonMembership, endpoint.ReasonPKeyBase, endpoint.ReasonPKeyBase,
			} {
				must(t, from.PostSend(gmp(b.ports[0], uint16(i))))
				n.carry()
				wantReason(t, n, want)
			}
			got := received(to)
			if len(got) != 3 || got[0].PKeyIndex != 3 || got[1].PKeyIndex != 7 || got[2].PKeyIndex != 3 {
				t.Errorf("received %+v", got)
			}
			wantCounters(t, b, 3, 0)
		})
	}
	t.Run("QP-18", func(t *testing.T) {
		keys := []ib.PKey{0x8003, 0x8007, 0x0003}
		n, b, from, _ := setup(t, keys...)
		for i, key := range keys {
			must(t, from.PostSend(gmp(b.ports[0], uint16(i))))
			n.carry()
			if got := n.sent[i].BTH.PKey(); got != key {
				t.Errorf("index %d left with %v, want %v", i, got, key)
			}
		}
		if err := from.PostSend(gmp(b.ports[0], tableLen)); err == nil {
			t.Error("an index past the table was taken")
		}
		asked := gmp(b.ports[0], 1)
		asked.PKey = 0x8009
		must(t, from.PostSend(asked))
		n.carry()
		if got := n.sent[len(n.sent)-1].BTH.PKey(); got != 0x8007 {
			t.Errorf("asked for a key outside the table, left with %v, want entry 1", got)
		}
	})
	t.Run("QK-18", func(t *testing.T) {
		n, b, from, to := setup(t, 0xFFFF)
		for i, asked := range []ib.QKey{0, 0x1234, 0x8001_0000, 0x9000_0000} {
			r := gmp(b.ports[0], 0)
			r.RemoteQKey = asked
			must(t, from.PostSend(r))
			n.carry()
			if got := n.sent[i].DETH.QKey(); got != ib.QKeyGSI {
				t.Errorf("request %v left with %v", asked, got)
			}
		}
		if len(received(to)) != 4 {
			t.Error("not all arrived")
		}
		if _, at := to.Query(); at.QKey != ib.QKeyGSI {
			t.Errorf("QP1 holds %v", at.QKey)
		}
	})
	t.Run("QP-19/switch port 0", func(t *testing.T) {
		n := newNet(t)
		a := n.node(counters, newPort(1, 0x8001, 0x8002))
		p0 := newPort(9, 0x8001)
		p0.info.NeighborMTU = 0 // as at a base port 0
		d, err := endpoint.New(endpoint.Config{Ports: []endpoint.Port{p0}})
		must(t, err)
		q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.GSI, Port: 0})
		must(t, err)
		for _, s := range []endpoint.State{endpoint.StateInit, endpoint.StateRTR, endpoint.StateRTS} {
			must(t, q.Modify(endpoint.Kernel, s, 0, endpoint.Attr{}))
		}
		room(t, 2, q)
		from := a.management(endpoint.GSI, 1)
		for i, want := range []endpoint.Reason{endpoint.Taken, endpoint.ReasonPKeyBase} {
			must(t, from.PostSend(gmp(p0, uint16(i))))
			b, _ := a.Send(0, 1, endpoint.AllServiceLevels, nil)
			if got := d.Receive(0, 0, b); got.Reason != want {
				t.Errorf("key of entry %d: %v, want %v", i, got.Reason, want)
			}
		}
		if len(received(q)) != 1 {
			t.Error("not one GMP")
		}
	})
}

func TestRaw(t *testing.T) {
	for _, tt := range []struct {
		rule    string
		service endpoint.Service
		lnh     packet.LNH
		data    []byte
	}{
		{"QP-20", endpoint.RawIPv6, packet.LNHRawIPv6, bytes.Repeat([]byte{0x60}, 48)},
		{"QP-21", endpoint.RawEtherType, packet.LNHRaw, []byte("a packet")},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(counters, newPort(1)), n.node(counters, newPort(2)) // no keys at all
			from, to := a.raw(tt.service, 1), b.raw(tt.service, 1)
			other := b.raw(endpoint.RawIPv6+endpoint.RawEtherType-tt.service, 1)
			room(t, 1, to, other)
			must(t, from.PostSend(endpoint.SendRequest{Data: tt.data, To: endpoint.Address{DLID: 2}, EtherType: 0x88B5}))
			n.carry()
			if v := n.sent[0]; v.BTH != nil || v.LRH.LNH() != tt.lnh {
				t.Errorf("LNH %d, BTH %v", v.LRH.LNH(), v.BTH)
			}
			got := received(to)
			if len(got) != 1 || !bytes.Equal(got[0].Bytes, tt.data) || got[0].SLID != 1 {
				t.Fatalf("received %+v", got)
			}
			if tt.service == endpoint.RawEtherType && got[0].EtherType != 0x88B5 {
				t.Errorf("EtherType %#x", got[0].EtherType)
			}
			if len(received(other)) != 0 {
				t.Error("a QP of the other kind has it too")
			}
			wantCounters(t, b, 0, 0)
		})
	}
	t.Run("nobody", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(0, newPort(1)), n.node(0, newPort(2))
		q, to := a.raw(endpoint.RawEtherType, 1), b.raw(endpoint.RawEtherType, 1)
		r := endpoint.SendRequest{Data: []byte("word"), To: endpoint.Address{DLID: 2}}
		for _, want := range []endpoint.Reason{endpoint.ReasonNoReceive, endpoint.ReasonNoQP} {
			must(t, q.PostSend(r))
			n.carry()
			wantReason(t, n, want)
			modify(t, to, endpoint.StateReset, 0, endpoint.Attr{})
		}
	})
}

func TestMulticast(t *testing.T) {
	group := ib.GID{0xFF, 0x12, 15: 1}
	const mlid ib.LID = 0xC001
	n := newNet(t)
	a := n.node(counters, newPort(1, 0x8001))
	b := n.node(counters, newPort(2, 0x8001, 0x8002, 0x8003))
	from := a.ud(1, 0)
	good, foreign, otherKey := b.ud(1, 0), b.ud(1, 1), b.ud(1, 0)
	modify(t, otherKey, endpoint.StateRTS, endpoint.AttrQKey, endpoint.Attr{QKey: 0x9999})
	send := func(want endpoint.Reason, bad endpoint.ViolationKind) {
		t.Helper()
		room(t, 1, good)
		must(t, from.PostSend(endpoint.SendRequest{
			Data: []byte("all"), To: endpoint.Address{DLID: mlid, Global: true, DGID: group}, RemoteQP: ib.QPMulticast, RemoteQKey: qkey,
		}))
		n.carry()
		if got := n.last(); got.reason != want || got.bad != bad {
			t.Errorf("%v, violation %d; want %v, %d", got.reason, got.bad, want, bad)
		}
	}
	send(endpoint.ReasonNoQP, 0)
	must(t, foreign.AttachMulticast(mlid, group))
	send(endpoint.ReasonPKeyBase, endpoint.BadPKey)
	if got := n.last().detail; got.QP2 != ib.QPMulticast || got.LID2 != mlid || got.GID2 != group {
		t.Errorf("offence %+v", got)
	}
	must(t, otherKey.AttachMulticast(mlid, group))
	send(endpoint.ReasonQKey, endpoint.BadQKey)
	must(t, good.AttachMulticast(mlid, group))
	must(t, good.AttachMulticast(mlid, group)) // once is enough
	second := b.ud(1, 0)
	room(t, 1, second, foreign, otherKey)
	must(t, second.AttachMulticast(mlid, group))
	send(endpoint.Taken, 0)
	for q, want := range map[*endpoint.QP]int{good: 1, second: 1, foreign: 0, otherKey: 0} {
		got := received(q)
		if len(got) != want {
			t.Errorf("QP %d received %d, want %d", q.Number(), len(got), want)
		} else if want == 1 && (!got[0].Global || !bytes.Equal(got[0].Bytes[24:40], group[:])) {
			t.Errorf("no GRH in %+v", got[0])
		}
	}
	wantCounters(t, b, 1, 1)
	good.DetachMulticast(mlid, group)
	second.Destroy()
	send(endpoint.ReasonQKey, endpoint.BadQKey)
	for _, bad := range []struct {
		lid ib.LID
		gid ib.GID
	}{{5, group}, {mlid, ib.GID{}}} {
		if good.AttachMulticast(bad.lid, bad.gid) == nil {
			t.Errorf("attached to LID %v, GID %v", bad.lid, bad.gid)
		}
	}
	if a.create(endpoint.RC, 0).AttachMulticast(mlid, group) == nil {
		t.Error("an RC QP was attached")
	}
}

// TestAdmission is what is checked before any key: none of it is a violation.
func TestAdmission(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(b *node, v *packet.View, p []byte)
		want   endpoint.Reason
	}{
		{"good", func(*node, *packet.View, []byte) {}, endpoint.Taken},
		{"another LID", func(_ *node, v *packet.View, _ []byte) { v.LRH.SetDLID(77) }, endpoint.ReasonAddress},
		{"permissive LID", func(_ *node, v *packet.View, _ []byte) { v.LRH.SetDLID(ib.LIDPermissive) }, endpoint.ReasonAddress},
		{"second LID", func(b *node, v *packet.View, _ []byte) { b.ports[0].info.LMC = 1; v.LRH.SetDLID(3) }, endpoint.Taken},
		{"another GID", func(_ *node, v *packet.View, _ []byte) { v.GRH.SetDGID(ib.GID{1}) }, endpoint.ReasonAddress},
		{"default prefix", func(b *node, v *packet.View, _ []byte) {
			v.GRH.SetDGID(ib.MakeGID(ib.DefaultGIDPrefix, b.ports[0].gids[0].PortGUID()))
		}, endpoint.Taken},
		{"multicast QP", func(_ *node, v *packet.View, _ []byte) { v.BTH.SetDestQP(ib.QPMulticast) }, endpoint.ReasonAddress},
		{"multicast LID", func(_ *node, v *packet.View, _ []byte) { v.LRH.SetDLID(0xC000) }, endpoint.ReasonAddress},
		{"port initializing", func(b *node, _ *packet.View, _ []byte) { b.ports[0].info.PortState = 2 }, endpoint.ReasonPortState},
		{"port armed", func(b *node, _ *packet.View, _ []byte) { b.ports[0].info.PortState = 3 }, endpoint.Taken},
		{"port down", func(b *node, _ *packet.View, _ []byte) { b.ports[0].info.PortState = 1 }, endpoint.ReasonPortState},
		{"another transport", func(_ *node, v *packet.View, _ []byte) {
			v.BTH.SetOpCode(packet.MakeOpCode(packet.RC, packet.SendOnly))
		}, endpoint.ReasonService},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0xFFFF))
			to := b.ud(1, 0)
			room(t, 1, to)
			r := datagram(b.ports[0], to, "12345678")
			r.To.Global, r.To.DGID = true, b.ports[0].gids[0]
			must(t, a.ud(1, 0).PostSend(r))
			p, _ := a.Send(0, 1, endpoint.AllServiceLevels, nil)
			v, err := packet.Parse(p)
			must(t, err)
			tt.change(b, &v, p)
			must(t, packet.Seal(p))
			if got := n.arrive(b, 1, p); got.reason != tt.want || got.bad != 0 {
				t.Errorf("%v, violation %d; want %v", got.reason, got.bad, tt.want)
			}
		})
	}
	t.Run("ICRC before keys", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0x8001)), n.node(counters, newPort(2, 0x8002))
		must(t, a.ud(1, 0).PostSend(datagram(b.ports[0], b.ud(1, 0), "x")))
		p, _ := a.Send(0, 1, endpoint.AllServiceLevels, nil)
		p[len(p)-8] ^= 1
		packet.SealVCRC(p)
		if got := n.arrive(b, 1, p); got.reason != endpoint.ReasonICRC || got.bad != 0 {
			t.Errorf("%v, violation %d", got.reason, got.bad)
		}
	})
	t.Run("state", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0x8001)), n.node(counters, newPort(2, 0x8002))
		from, to := a.ud(1, 0), b.create(endpoint.UD, 0)
		for _, s := range []endpoint.State{endpoint.StateReset, endpoint.StateInit, endpoint.StateErr} {
			modify(t, to, s, map[endpoint.State]endpoint.AttrMask{endpoint.StateInit: udInit}[s], endpoint.Attr{Port: 1, QKey: qkey})
			must(t, from.PostSend(datagram(b.ports[0], to, "x")))
			n.carry()
			if got := n.last(); got.bad != 0 || got.reason == endpoint.Taken {
				t.Errorf("in %v: %v, violation %d", s, got.reason, got.bad)
			}
		}
	})
	t.Run("no room", func(t *testing.T) {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0xFFFF))
		from, to := a.ud(1, 0), b.ud(1, 0)
		for _, want := range []endpoint.Reason{endpoint.ReasonNoReceive, endpoint.ReasonLength} {
			must(t, from.PostSend(datagram(b.ports[0], to, "12345678")))
			n.carry()
			wantReason(t, n, want)
			must(t, to.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, endpoint.GRHSize+7)}))
		}
		wantState(t, to, endpoint.StateRTS)
	})
}

// TestSendTurns shows what Send gives out when: contexts take turns, a blocked
// service level holds up nobody else, and no data leaves a port that is not active.
func TestSendTurns(t *testing.T) {
	n := newNet(t)
	a, b := n.node(0, newPort(1, 0xFFFF)), n.node(0, newPort(2, 0xFFFF))
	q1, q2, to := a.ud(1, 0), a.ud(1, 0), b.ud(1, 0)
	smi := a.management(endpoint.SMI, 1)
	post := func(q *endpoint.QP, sl ib.SL) {
		t.Helper()
		r := datagram(b.ports[0], to, "x")
		r.To.SL = sl
		must(t, q.PostSend(r))
	}
	post(q1, 1)
	post(q1, 1)
	post(q2, 2)
	next := func(levels endpoint.ServiceLevels) string {
		p, ok := a.Send(0, 1, levels, []byte("before"))
		if !ok {
			if string(p) != "before" {
				t.Errorf("nothing came with %x", p)
			}
			return "none"
		}
		v, err := packet.Parse(p[6:])
		must(t, err)
		return fmt.Sprint(v.DETH.SrcQP() - q1.Number())
	}
	if got := next(1 << 3); got != "none" {
		t.Errorf("level 3: %s", got)
	}
	if got := next(1 << 2); got != "1" {
		t.Errorf("level 2: %s", got)
	}
	post(q2, 2)
	var order []string
	for range 4 {
		order = append(order, next(endpoint.AllServiceLevels))
	}
	if fmt.Sprint(order) != "[0 1 0 none]" {
		t.Errorf("turns %v", order)
	}
	post(q1, 1)
	must(t, smi.PostSend(endpoint.SendRequest{Data: mad256(3), To: endpoint.Address{DLID: ib.LIDPermissive}}))
	a.ports[0].info.PortState = 2
	p, ok := a.Send(0, 1, 0, nil)
	if v, err := packet.Parse(p); !ok || err != nil || v.LRH.SLID() != ib.LIDPermissive || v.LRH.VL() != 15 {
		t.Errorf("no SMP from an initializing port: %v", err)
	}
	if next(endpoint.AllServiceLevels) != "none" {
		t.Error("data left an initializing port")
	}
	a.ports[0].info.PortState = 4
	if next(endpoint.AllServiceLevels) != "0" {
		t.Error("no data from the port that is active again")
	}
	if _, ok := a.Send(0, 9, endpoint.AllServiceLevels, nil); ok {
		t.Error("a packet from a port that is not there")
	}
}
