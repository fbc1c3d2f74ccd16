package endpoint_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// TestRDMA moves memory both ways, over a path with a GRH.
func TestRDMA(t *testing.T) {
	n := newNet(t)
	a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0xFFFF))
	from, to := a.create(endpoint.RC, 0), b.create(endpoint.RC, 0)
	up := func(q *endpoint.QP, peer *testPort, remote *endpoint.QP) {
		at := attr(1, 0, peer, uint32(remote.Number()))
		at.Path.Global, at.Path.DGID, at.Path.SL, at.Path.HopLimit = true, peer.gids[0], 4, 64
		modify(t, q, endpoint.StateInit, rcInit, at)
		modify(t, q, endpoint.StateRTR, rcRTR, at)
		modify(t, q, endpoint.StateRTS, rcRTS, at)
	}
	up(from, b.ports[0], to)
	up(to, a.ports[0], from)
	memory := []byte("abcdefghijklmnopqrstuvwxyz")
	region, err := b.RegisterMemory(memory, 0x5000, endpoint.AccessRemoteRead|endpoint.AccessRemoteWrite)
	must(t, err)
	read := make([]byte, 6)
	room(t, 2, to)
	for i, r := range []endpoint.SendRequest{
		{Op: endpoint.OpWrite, Data: []byte("MNOP"), RemoteAddress: 0x500C, RKey: region.RKey()},
		{Op: endpoint.OpRead, Data: read, RemoteAddress: 0x500B, RKey: region.RKey()},
		{Op: endpoint.OpWrite, Data: []byte("Z"), RemoteAddress: 0x5019, RKey: region.RKey(), HasImm: true, Imm: 99},
		{Op: endpoint.OpSend, Data: []byte("done"), Solicited: true},
	} {
		r.ID = uint64(i)
		must(t, from.PostSend(r))
	}
	n.carry()
	if string(memory) != "abcdefghijklMNOPqrstuvwxyZ" || string(read) != "lMNOPq" {
		t.Errorf("memory %q, read %q", memory, read)
	}
	for i, c := range poll(from) {
		if c.ID != uint64(i) || c.Status != endpoint.Success || (c.Op == endpoint.OpRead) != bytes.Equal(c.Bytes, read) {
			t.Errorf("completion %d: %+v", i, c)
		}
	}
	got := received(to)
	if len(got) != 2 || got[0].Op != endpoint.OpReceiveWrite || got[0].Imm != 99 || got[0].Bytes != nil ||
		string(got[1].Bytes) != "done" || !got[1].Solicited || got[1].SrcQP != from.Number() || got[1].SL != 4 || !got[1].Global {
		t.Errorf("received %+v", got)
	}
	for _, v := range n.sent {
		if v.GRH == nil || v.GRH.HopLmt() != 64 || v.LRH.SL() != 4 {
			t.Errorf("%v without its route", v.BTH.OpCode())
		}
	}
}

// TestAccessRefused: what a region does not allow ends the connection at both
// ends, with a NAK.
func TestAccessRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		access endpoint.Access
		r      endpoint.SendRequest
		gone   bool
	}{
		{"read only", endpoint.AccessRemoteRead, endpoint.SendRequest{Op: endpoint.OpWrite, Data: []byte("x"), RemoteAddress: 100}, false},
		{"write only", endpoint.AccessRemoteWrite, endpoint.SendRequest{Op: endpoint.OpRead, Data: []byte("x"), RemoteAddress: 100}, false},
		{"before", 3, endpoint.SendRequest{Op: endpoint.OpWrite, Data: []byte("xx"), RemoteAddress: 99}, false},
		{"behind", 3, endpoint.SendRequest{Op: endpoint.OpWrite, Data: []byte("xx"), RemoteAddress: 103}, false},
		{"around", 3, endpoint.SendRequest{Op: endpoint.OpWrite, Data: []byte("xx"), RemoteAddress: 1<<64 - 1}, false},
		{"deregistered", 3, endpoint.SendRequest{Op: endpoint.OpWrite, Data: []byte("xx"), RemoteAddress: 100}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0xFFFF))
			from, to := pair(t, endpoint.RC, a, b, 0, 0)
			room(t, 1, to)
			memory := []byte("****")
			region, err := b.RegisterMemory(memory, 100, tt.access)
			must(t, err)
			if tt.gone {
				region.Deregister()
			}
			tt.r.RKey = region.RKey()
			must(t, from.PostSend(tt.r))
			n.carry()
			wantStatus(t, from, endpoint.RemoteAccessError)
			wantState(t, from, endpoint.StateErr)
			wantState(t, to, endpoint.StateErr)
			if e, ok := b.NextEvent(); !ok || e.Kind != endpoint.EventQPAccessError || e.QP != to {
				t.Errorf("event %+v, %v", e, ok)
			}
			if got := poll(to); len(got) != 1 || got[0].Status != endpoint.Flushed {
				t.Errorf("receiver's completions %+v", got)
			}
			if string(memory) != "****" {
				t.Errorf("memory %q", memory)
			}
			wantCounters(t, b, 0, 0)
		})
	}
	n := newNet(t)
	a := n.node(0, newPort(1, 0xFFFF))
	if _, err := a.RegisterMemory(make([]byte, 2), 1<<64-1, 3); err == nil {
		t.Error("a region past the end of the address space")
	}
}

// TestMessageTooLong: the receiver's room is too small.
func TestMessageTooLong(t *testing.T) {
	n := newNet(t)
	a, b := n.node(0, newPort(1, 0xFFFF)), n.node(0, newPort(2, 0xFFFF))
	from, to := pair(t, endpoint.RC, a, b, 0, 0)
	must(t, to.PostReceive(endpoint.ReceiveRequest{ID: 3, Buffer: make([]byte, 300)}))
	must(t, from.PostSend(endpoint.SendRequest{Data: make([]byte, 301)}))
	n.carry()
	wantStatus(t, from, endpoint.RemoteInvalidRequest)
	wantStatus(t, to, endpoint.LocalLengthError)
	wantState(t, to, endpoint.StateErr)
	if e, ok := b.NextEvent(); !ok || e.Kind != endpoint.EventQPRequestError {
		t.Errorf("event %+v, %v", e, ok)
	}
}

// TestLossIsRepaired: RC does not mind what gets lost, RD neither.
func TestLossIsRepaired(t *testing.T) {
	for _, service := range []string{"RC", "RD"} {
		t.Run(service, func(t *testing.T) {
			n := newNet(t)
			a, b := n.node(counters, newPort(1, 0xFFFF)), n.node(counters, newPort(2, 0xFFFF))
			var from, to *endpoint.QP
			r := endpoint.SendRequest{}
			if service == "RC" {
				from, to = pair(t, endpoint.RC, a, b, 0, 0)
			} else {
				ra, rb := rdPair(t, a, b, 0, 0)
				from, to = ra.q, rb.q
				r = endpoint.SendRequest{RemoteQP: to.Number(), RemoteQKey: qkey, EEContext: ra.ee.Number()}
			}
			room(t, 10, to)
			for i := range 10 {
				r.ID, r.Data = uint64(i), bytes.Repeat([]byte{byte(i)}, 700)
				must(t, from.PostSend(r))
			}
			count := 0
			n.lose = func(*packet.View) bool { count++; return count%4 == 0 }
			n.pass(1 << 20)
			for i, c := range poll(from) {
				if c.ID != uint64(i) || c.Status != endpoint.Success {
					t.Errorf("completion %d: %+v", i, c)
				}
			}
			got := received(to)
			for i, c := range got {
				if !bytes.Equal(c.Bytes, bytes.Repeat([]byte{byte(i)}, 700)) {
					t.Errorf("message %d is not what was sent", i)
				}
			}
			if len(got) != 10 {
				t.Errorf("%d messages, want 10", len(got))
			}
		})
	}
}

// TestAnswersAreChecked: an acknowledgement with a bad P_Key is dropped and
// counted like everything else, and the sender waits in vain.
func TestAnswersAreChecked(t *testing.T) {
	n := newNet(t)
	a, b := n.node(counters, newPort(1, 0x8001)), n.node(counters, newPort(2, 0x8001))
	from, to := pair(t, endpoint.RC, a, b, 0, 0)
	room(t, 1, to)
	n.spoil = func(p []byte) {
		v, err := packet.Parse(p)
		if err == nil && v.AETH != nil {
			v.BTH.SetPKey(0x8002)
			must(t, packet.Seal(p))
		}
	}
	must(t, from.PostSend(endpoint.SendRequest{Data: []byte("x")}))
	n.pass(1 << 20)
	wantStatus(t, from, endpoint.RetryExceeded)
	wantCounters(t, a, 4, 0)
	if len(received(to)) != 1 {
		t.Error("the message did not arrive once")
	}
}

// TestReceiverNotReady: RC asks for time, and gets it.
func TestReceiverNotReady(t *testing.T) {
	n := newNet(t)
	a, b := n.node(counters, newPort(1, 0x8001)), n.node(counters, newPort(2, 0x8001))
	from, to := pair(t, endpoint.RC, a, b, 0, 0)
	must(t, from.PostSend(endpoint.SendRequest{Data: []byte("x")}))
	n.carry()
	wantReason(t, n, endpoint.Taken) // the NAK
	if s := n.last().v.AETH.Syndrome(); s.Kind() != packet.SyndromeRNRNAK || s.Value() != 1 {
		t.Errorf("syndrome %#x", s)
	}
	room(t, 1, to)
	n.pass(1 << 20)
	wantStatus(t, from, endpoint.Success)
	must(t, from.PostSend(endpoint.SendRequest{Data: []byte("x")}))
	n.pass(1 << 21)
	wantStatus(t, from, endpoint.RNRRetryExceeded)
	wantState(t, to, endpoint.StateRTS)
}

// TestSQD: what was begun is finished, nothing else is begun, and the P_Key index
// may change meanwhile.
func TestSQD(t *testing.T) {
	n := newNet(t)
	a, b := n.node(0, newPort(1, 0x8001, 0x8002)), n.node(0, newPort(2, 0x8001, 0x8002))
	from, to := pair(t, endpoint.RC, a, b, 0, 0)
	room(t, 3, to)
	for range 2 {
		must(t, from.PostSend(endpoint.SendRequest{Data: make([]byte, 600)}))
	}
	p, _ := a.Send(0, 1, endpoint.AllServiceLevels, nil)
	n.forward(p)
	modify(t, from, endpoint.StateSQD, 0, endpoint.Attr{})
	must(t, from.PostSend(endpoint.SendRequest{Data: []byte("x")}))
	n.carry()
	if got := len(received(to)); got != 1 {
		t.Errorf("%d messages, want the one that was begun", got)
	}
	modify(t, from, endpoint.StateSQD, endpoint.AttrPKeyIndex, endpoint.Attr{PKeyIndex: 1})
	modify(t, to, endpoint.StateSQD, 0, endpoint.Attr{})
	modify(t, to, endpoint.StateRTS, endpoint.AttrPKeyIndex, endpoint.Attr{PKeyIndex: 1})
	n.clear()
	modify(t, from, endpoint.StateRTS, 0, endpoint.Attr{})
	n.carry()
	if got := len(received(to)); got != 2 || n.sent[0].BTH.PKey() != 0x8002 {
		t.Errorf("%d messages, first packet with %v", got, n.sent[0].BTH.PKey())
	}
}

// TestResetMidway: a QP that is reset in the middle of everything leaves nothing
// behind, for itself or for others.
func TestResetMidway(t *testing.T) {
	for _, what := range []string{"reset", "error", "destroy"} {
		for _, service := range []string{"RC", "UC", "RD"} {
			t.Run(what+" "+service, func(t *testing.T) {
				n := newNet(t)
				a, b := n.node(0, newPort(1, 0xFFFF)), n.node(0, newPort(2, 0xFFFF))
				var qs [2]*endpoint.QP
				var rest [2]rdNode
				r := endpoint.SendRequest{Data: make([]byte, 900)}
				switch service {
				case "RD":
					rest[0], rest[1] = rdPair(t, a, b, 0, 0)
					qs = [2]*endpoint.QP{rest[0].q, rest[1].q}
					r.RemoteQP, r.RemoteQKey, r.EEContext = qs[1].Number(), qkey, rest[0].ee.Number()
				case "RC":
					qs[0], qs[1] = pair(t, endpoint.RC, a, b, 0, 0)
				default:
					qs[0], qs[1] = pair(t, endpoint.UC, a, b, 0, 0)
				}
				room(t, 2, qs[1])
				for range 3 {
					must(t, qs[0].PostSend(r))
				}
				for range 2 {
					p, _ := a.Send(0, 1, endpoint.AllServiceLevels, nil)
					n.forward(p)
				}
				for i, q := range qs {
					switch what {
					case "reset":
						modify(t, q, endpoint.StateReset, 0, endpoint.Attr{})
					case "error":
						modify(t, q, endpoint.StateErr, 0, endpoint.Attr{})
					case "destroy":
						q.Destroy()
					}
					want := 0
					if what == "error" {
						want = 3 - i
					}
					got := poll(q)
					if len(got) != want {
						t.Errorf("%d completions, want %d", len(got), want)
					}
					for _, c := range got {
						if c.Status != endpoint.Flushed {
							t.Errorf("%+v", c)
						}
					}
				}
				n.pass(1 << 20)
				if service == "RD" { // the channel goes on for others
					from, to := rdNode{a.rd(), rest[0].ee}, rdNode{b.rd(), rest[1].ee}
					room(t, 1, to.q)
					r.RemoteQP = to.q.Number()
					must(t, from.q.PostSend(r))
					n.carry()
					wantStatus(t, from.q, endpoint.Success)
				} else if at, ok := a.Deadline(); ok {
					t.Errorf("a deadline at %v of nobody", at)
				}
			})
		}
	}
}

// TestEEContextGone: its requests end, its QPs live on.
func TestEEContextGone(t *testing.T) {
	n := newNet(t)
	a, b := n.node(0, newPort(1, 0xFFFF)), n.node(0, newPort(2, 0xFFFF))
	ra, rb := rdPair(t, a, b, 0, 0)
	r := endpoint.SendRequest{Data: []byte("x"), RemoteQP: rb.q.Number(), RemoteQKey: qkey, EEContext: ra.ee.Number()}
	for range 2 {
		must(t, ra.q.PostSend(r))
	}
	ra.ee.Destroy()
	ra.ee.Destroy()
	if got := poll(ra.q); len(got) != 2 || got[0].Status != endpoint.Flushed {
		t.Errorf("completions %+v", got)
	}
	wantState(t, ra.q, endpoint.StateRTS)
	if ra.q.PostSend(r) == nil {
		t.Error("posted to a context that is gone")
	}
	if err := ra.ee.Modify(endpoint.StateInit, rcInit, endpoint.Attr{Port: 1}); err == nil {
		t.Error("modified a context that is gone")
	}
	for i := range endpoint.MaxEEContexts + 1 {
		if _, err := a.CreateEEContext(); (err == nil) != (i < endpoint.MaxEEContexts) {
			t.Fatalf("context %d: %v", i, err)
		}
	}
}

func TestNames(t *testing.T) {
	for r := endpoint.Taken; r <= endpoint.ReasonRefused; r++ {
		if r.String() == "" || r.String() == "unknown reason" {
			t.Errorf("reason %d is %q", r, r)
		}
	}
	got := fmt.Sprint(endpoint.Reason(99), endpoint.State(99), endpoint.Service(99), endpoint.RD, endpoint.StateSQD)
	if got != "unknown reason unknown state unknown service RD SQD" {
		t.Error(got)
	}
}

// TestRepeats: the same calls give the same packets.
func TestRepeats(t *testing.T) {
	run := func() []byte {
		n := newNet(t)
		a, b := n.node(counters, newPort(1, 0xFFFF, 0x8001)), n.node(counters, newPort(2, 0xFFFF, 0x8001))
		for i := range 20 {
			from, to := pair(t, endpoint.RC, a, b, uint16(i%2), uint16(i%2))
			room(t, 2, to)
			must(t, from.PostSend(endpoint.SendRequest{Data: make([]byte, 100*i)}))
		}
		count := 0
		n.lose = func(*packet.View) bool { count++; return count%7 == 0 }
		n.pass(1 << 20)
		var out []byte
		for _, v := range n.sent {
			out = append(out, v.LRH[:]...)
			out = append(out, v.BTH[:]...)
			out = append(out, v.VCRC[:]...)
		}
		return out
	}
	if !bytes.Equal(run(), run()) {
		t.Error("two runs differ")
	}
}
