package simfabric_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
)

// TestForeignMemory: a peer of one program on a host names the memory of another
// program there, by its right R_Key and address, and gets nothing; its own program's
// memory it reaches.
func TestForeignMemory(t *testing.T) {
	f := open(tenants)
	defer f.Close()
	a, b, other := is(f.OpenDevice("A")), is(f.OpenDevice("B")), is(f.OpenDevice("B"))
	own := is(b.RegisterMemory(8, 0x1000, verbs.AccessRemoteRead|verbs.AccessRemoteWrite))
	foreign := is(other.RegisterMemory(8, 0x1000, verbs.AccessRemoteRead|verbs.AccessRemoteWrite))
	must(foreign.Write(0, []byte("secret!!")))
	for _, tt := range []struct {
		memory *verbs.Memory
		want   verbs.WCStatus
	}{{own, verbs.WCSuccess}, {foreign, verbs.WCRemAccessErr}} {
		for _, op := range []verbs.SendWR{{Op: verbs.OpRead, Length: 8}, {Op: verbs.OpWrite, Data: []byte("attacked")}} {
			cq, there := is(a.CreateCQ(4)), is(b.CreateCQ(4))
			from := is(a.CreateQP(verbs.QPInit{Type: verbs.QPTypeRC, SendCQ: cq, ReceiveCQ: cq}))
			to := is(b.CreateQP(verbs.QPInit{Type: verbs.QPTypeRC, SendCQ: there, ReceiveCQ: there}))
			connect(from, b, to.Number())
			connect(to, a, from.Number())
			op.RKey, op.RemoteAddress = tt.memory.RKey(), 0x1000
			must(from.PostSend(op))
			wcs := is(cq.Wait(1, time.Second))
			if len(wcs) != 1 || wcs[0].Status != tt.want {
				t.Errorf("operation %d: %+v, want %v", op.Op, wcs, tt.want)
			}
		}
	}
	if got := string(is(foreign.Read(0, 8))); got != "secret!!" {
		t.Errorf("another program's memory is %q", got)
	}
	if got := string(is(own.Read(0, 8))); got != "attacked" {
		t.Errorf("the program's own memory is %q", got)
	}
}

// TestOthersObjects: what another device made is refused before anything is asked.
func TestOthersObjects(t *testing.T) {
	f := open(tenants)
	defer f.Close()
	x, y := newDatagram(f, "A", 0x8001, 1), newDatagram(f, "B", 0x8001, 1)
	ah := is(y.d.CreateAH(verbs.AHAttr{Port: 1, DLID: 1}))
	if err := x.PostSend(verbs.SendWR{AH: ah, RemoteQPN: 2}); err == nil {
		t.Error("an address handle of another device was taken")
	}
	if err := x.PostSend(verbs.SendWR{EE: is(y.d.CreateEEContext())}); err == nil {
		t.Error("an EE context of another device was taken")
	}
	if _, err := x.d.CreateQP(verbs.QPInit{Type: verbs.QPTypeUD, SendCQ: x.in, ReceiveCQ: y.in}); err == nil {
		t.Error("a completion queue of another device was taken")
	}
	if err := x.PostSend(verbs.SendWR{RemoteQPN: ib.QPN(y.Number())}); err == nil {
		t.Error("a datagram without an address handle was taken")
	}
}
