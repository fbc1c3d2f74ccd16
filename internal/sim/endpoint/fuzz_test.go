package endpoint_test

import (
	"bytes"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// target is a node with a QP of every service in a state that receives, and room
// for little.
func target(t testing.TB) (*net, *node, []*endpoint.QP) {
	n := newNet(t)
	a, b := n.node(counters, newPort(1, 0xFFFF, 0x8001)), n.node(counters, newPort(2, 0xFFFF, 0x8001))
	var qs []*endpoint.QP
	for _, s := range []endpoint.Service{endpoint.RC, endpoint.UC} {
		_, q := pair(t, s, a, b, 1, 1)
		qs = append(qs, q)
	}
	_, rb := rdPair(t, a, b, 1, 1)
	ud := b.ud(1, 1)
	must(t, ud.AttachMulticast(0xC000, ib.GID{0xFF}))
	qs = append(qs, rb.q, ud, b.raw(endpoint.RawIPv6, 1), b.raw(endpoint.RawEtherType, 1),
		b.management(endpoint.SMI, 1), b.management(endpoint.GSI, 1))
	room(t, 3, qs...)
	_, err := b.RegisterMemory(make([]byte, 4096), 0x1000, endpoint.AccessRemoteRead|endpoint.AccessRemoteWrite)
	must(t, err)
	for _, q := range qs[:2] {
		must(t, q.PostSend(endpoint.SendRequest{Data: make([]byte, 300)}))
	}
	must(t, rb.q.PostSend(endpoint.SendRequest{Data: make([]byte, 300), RemoteQP: 5, EEContext: rb.ee.Number()}))
	return n, b, qs
}

// seeds are packets that such a node takes.
func seeds(t testing.TB) [][]byte {
	var out [][]byte
	n := newNet(t)
	a, b := n.node(counters, newPort(1, 0xFFFF, 0x8001)), n.node(counters, newPort(2, 0xFFFF, 0x8001))
	keep := func() {
		for {
			p, ok := a.Send(0, 1, endpoint.AllServiceLevels, nil)
			if !ok {
				return
			}
			out = append(out, p)
		}
	}
	for _, s := range []endpoint.Service{endpoint.RC, endpoint.UC} {
		from, _ := pair(t, s, a, b, 1, 1)
		must(t, from.PostSend(endpoint.SendRequest{Data: make([]byte, 600)}))
		must(t, from.PostSend(endpoint.SendRequest{Op: endpoint.OpWrite, Data: make([]byte, 300), RemoteAddress: 0x1000, RKey: 1}))
		if s == endpoint.RC {
			must(t, from.PostSend(endpoint.SendRequest{Op: endpoint.OpRead, Data: make([]byte, 300), RemoteAddress: 0x1000, RKey: 1}))
		}
		keep()
	}
	ra, rb := rdPair(t, a, b, 1, 1)
	must(t, ra.q.PostSend(endpoint.SendRequest{Data: []byte("x"), RemoteQP: rb.q.Number(), RemoteQKey: qkey, EEContext: 1}))
	keep()
	ud := b.ud(1, 1)
	r := datagram(b.ports[0], ud, "x")
	must(t, a.ud(1, 1).PostSend(r))
	r.To, r.RemoteQP = endpoint.Address{DLID: 0xC000, Global: true, DGID: ib.GID{0xFF}}, ib.QPMulticast
	must(t, a.ud(1, 1).PostSend(r))
	for _, s := range []endpoint.Service{endpoint.RawIPv6, endpoint.RawEtherType} {
		must(t, a.raw(s, 1).PostSend(endpoint.SendRequest{Data: make([]byte, 44), To: endpoint.Address{DLID: 2}}))
	}
	must(t, a.management(endpoint.SMI, 1).PostSend(endpoint.SendRequest{Data: mad256(1), To: endpoint.Address{DLID: 2}}))
	must(t, a.management(endpoint.GSI, 1).PostSend(gmp(b.ports[0], 0)))
	keep()
	return out
}

// TestSeeds makes sure that the seeds are what the target takes.
func TestSeeds(t *testing.T) {
	n, b, qs := target(t)
	for i, p := range seeds(t) {
		if r := b.Receive(n.now, 1, p); r.Reason != endpoint.Taken {
			t.Errorf("seed %d: %v", i, r.Reason)
		}
	}
	for _, q := range qs {
		if len(received(q)) == 0 {
			t.Errorf("nothing came to %v", q.Service())
		}
	}
}

// FuzzReceive: whatever bytes come to a port, nothing panics, a violation comes
// with a drop, what leaves is a proper packet, and every request ends once.
func FuzzReceive(f *testing.F) {
	for _, p := range seeds(f) {
		f.Add(p, true)
		f.Add(append(bytes.Clone(p), p...), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, seal bool) {
		n, b, qs := target(t)
		// The bytes are packets, one behind the other, as their lengths say.
		for packets := 0; len(raw) > 0 && packets < 50; packets++ {
			p := raw
			if h, err := packet.ParseLRH(raw); err == nil {
				p = raw[:min(len(raw), int(h.PktLen())*4+packet.VCRCSize)]
			}
			raw = raw[max(1, len(p)):]
			p = bytes.Clone(p)
			if seal {
				_ = packet.Seal(p)
			}
			r := b.Receive(n.now, 1, p)
			if r.Violation != nil && (r.Reason == endpoint.Taken || r.Violation.Kind == 0) {
				t.Fatalf("%v with violation %+v", r.Reason, r.Violation)
			}
			if right, err := packet.CheckICRC(p); r.Reason == endpoint.Taken && err == nil && !right {
				t.Fatal("a packet with a wrong ICRC was taken")
			}
			if packets%3 == 2 {
				n.drain(b)
			}
		}
		n.drain(b)
		if at, ok := b.Deadline(); ok {
			b.Expire(at)
			n.drain(b)
		}
		for _, q := range qs {
			seen := map[string]bool{}
			modify(t, q, endpoint.StateErr, 0, endpoint.Attr{})
			got := poll(q)
			receives := 0
			for _, c := range got {
				if c.Op >= endpoint.OpReceive {
					receives++
					key := string(rune(c.ID))
					if seen[key] {
						t.Fatalf("request %d of %v ended twice", c.ID, q.Service())
					}
					seen[key] = true
				}
			}
			if receives != 3 || len(got)-receives > 1 {
				t.Fatalf("%v: %d receives ended, want 3; %d sends", q.Service(), receives, len(got)-receives)
			}
		}
	})
}

// drain takes what a node sends, which must be proper packets.
func (n *net) drain(from *node) {
	n.t.Helper()
	for range 1000 {
		p, ok := from.Send(n.now, 1, endpoint.AllServiceLevels, nil)
		if !ok {
			return
		}
		if _, err := packet.Parse(p); err != nil || !packet.CheckVCRC(p) {
			n.t.Fatalf("%x: %v", p, err)
		}
	}
}
