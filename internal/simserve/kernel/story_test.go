package kernel_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
)

// wantHeader reads a message and looks at its header.
func (b *bench) wantHeader(id, status uint32, raw int) []byte {
	b.Helper()
	out := b.wantRead(room, umad.OK)
	h, err := umad.ReadHeader(out, true)
	if err != nil || h.ID != id || h.Status != status || len(out) != umad.HeaderSize+raw {
		b.Fatalf("read %d bytes for agent %d with status %d (%v), want %d, %d, %d",
			len(out)-umad.HeaderSize, h.ID, h.Status, err, raw, id, status)
	}
	return out[umad.HeaderSize:]
}

func TestTimeOut(t *testing.T) {
	b := newBench(t).pkeys()
	id := b.agent(b.file, smAgent())
	h := request(id)
	h.Retries = 2
	b.wantWrite(written(h, true, datagram(mad.ClassSubnDirected, mad.MethodGet, 1)), umad.OK)
	b.later(time.Second) // the clock does not run before it has left
	for range 3 {
		b.wantRead(room, umad.EAGAIN)
		b.sent()
		if at, ok := b.layer.Deadline(); !ok || at != b.now+100*time.Millisecond {
			t.Fatalf("deadline %v, %v, want in 100 ms", at, ok)
		}
		b.later(100*time.Millisecond - 1)
		var p kernel.Packet
		if b.layer.Next(b.now, &p) {
			t.Fatal("sent again too early")
		}
		b.later(1)
	}
	m := b.wantHeader(id, uint32(umad.ETIMEDOUT), mad.HeaderSize)
	if got := binary.BigEndian.Uint64(m[8:]); got != 1<<32|1 {
		t.Errorf("transaction %#x, want that which left", got)
	}
	b.wantRead(room, umad.EAGAIN)
	// What was given back is done with: it may be asked again.
	b.wantWrite(written(h, true, datagram(mad.ClassSubnDirected, mad.MethodGet, 1)), umad.OK)
}

func TestAnswersFindTheirRequests(t *testing.T) {
	b := newBench(t).pkeys()
	b.layer.SetLMC(1)
	id := b.agent(b.file, saAgent())
	h := request(id)
	h.PathBits = 1
	b.wantWrite(written(h, true, datagram(mad.ClassSubnAdm, mad.MethodGet, 1)), umad.OK)
	p := b.sent()
	for name, change := range map[string]func(p *kernel.Packet){
		"another transaction": func(p *kernel.Packet) { p.MAD[15]++ },
		"another agent":       func(p *kernel.Packet) { p.MAD[11]++ },
		"another class":       func(p *kernel.Packet) { p.MAD[1] = byte(mad.ClassPerfMgt) },
		"another LID of ours": func(p *kernel.Packet) { p.PathBits = 0 },
		"a GRH":               func(p *kernel.Packet) { p.HasGRH = true },
		"another queue pair":  func(p *kernel.Packet) { p.QP = 0 },
		"another version":     func(p *kernel.Packet) { p.MAD[0] = 2 },
		"a request":           func(p *kernel.Packet) { p.MAD[3] = byte(mad.MethodReport) },
	} {
		wrong := answer(p)
		change(wrong)
		b.layer.Receive(b.now, wrong)
		if _, errno := b.file.Read(room); errno != umad.EAGAIN {
			t.Errorf("%s: taken for the answer", name)
		}
	}
	b.layer.Receive(b.now, answer(p))
	b.wantHeader(id, 0, mad.Size)
	b.layer.Receive(b.now, answer(p))
	b.wantRead(room, umad.EAGAIN) // twice is once
	b.later(time.Hour)
	b.wantRead(room, umad.EAGAIN)
}

func TestUnasked(t *testing.T) {
	b := newBench(t).pkeys()
	id := b.agent(b.file, smAgent())
	vendor := b.agent(b.file, umad.Registration{QPN: 1, Class: 0x32, ClassVersion: 1, OUI: 0x112233, Methods: umad.MethodSet(mad.MethodGet)})
	in := func(qp uint8, class mad.Class, method mad.Method) *kernel.Packet {
		return &kernel.Packet{QP: qp, MAD: [mad.Size]byte(datagram(class, method, 9)), Address: kernel.Address{LID: 4}}
	}
	b.layer.Receive(b.now, in(0, mad.ClassSubnDirected, mad.MethodTrap))
	b.wantHeader(id, 0, mad.Size)
	p := in(1, 0x32, mad.MethodGet)
	copy(p.MAD[37:], []byte{0x11, 0x22, 0x33})
	b.layer.Receive(b.now, p)
	b.wantHeader(vendor, 0, mad.Size)

	// Nobody's: a Get and a Set are refused, the rest is dropped.
	p.MAD[39]++
	b.layer.Receive(b.now, p)
	b.layer.Receive(b.now, in(0, mad.ClassSubnLID, mad.MethodSet))
	b.layer.Receive(b.now, in(0, mad.ClassSubnLID, mad.MethodTrap))
	b.layer.Receive(b.now, in(0, mad.ClassSubnLID, mad.MethodGetResp))
	b.wantRead(room, umad.EAGAIN)
	for range 2 {
		p := b.sent()
		if mad.Method(p.MAD[3]) != mad.MethodGetResp || p.MAD[5] != byte(mad.StatusUnsupportedAttrib) || p.LID != 4 {
			t.Errorf("method %#x, status %#x to %d", p.MAD[3], p.MAD[5], p.LID)
		}
	}
	if b.layer.Next(b.now, p) || b.layer.Dropped() != 2 {
		t.Errorf("more leaves, or %d dropped, want 2", b.layer.Dropped())
	}
}

// carry moves packets between two layers until both are silent. The other end
// sees the packet come from LID from.
func carry(now time.Duration, a, b *kernel.Layer) (n int) {
	for moved := true; moved; {
		moved = false
		for _, way := range []struct {
			from, to *kernel.Layer
			lid      uint16
		}{{a, b, 1}, {b, a, 2}} {
			var p kernel.Packet
			for way.from.Next(now, &p) {
				p.QPN, p.LID = 1, 3-p.LID
				way.to.Receive(now, &p)
				moved = true
				n++
			}
		}
	}
	return n
}

// TestLongMessages has one layer's program ask and the other's answer with a
// message of many segments, by the kernel both ways.
func TestLongMessages(t *testing.T) {
	for _, size := range []int{0, 1, 200, 201, 5000, 300_000} {
		client, server := newBench(t).pkeys(), newBench(t).pkeys()
		asked := saAgent()
		asked.Methods = umad.Methods{} // answers only
		cid, sid := client.agent(client.file, asked), server.agent(server.file, saAgent())
		h := request(cid)
		h.LID = 2
		client.wantWrite(written(h, true, datagram(mad.ClassSubnAdm, mad.MethodGetTable, 7)), umad.OK)
		carry(0, client.layer, server.layer)
		question := server.wantHeader(sid, 0, mad.Size)

		reply := append([]byte(nil), question[:56]...)
		reply[3] |= byte(mad.MethodResponse)
		reply[24], reply[25], reply[26] = 1, 1, 1 // version, DATA, Active
		for i := range size {
			reply = append(reply, byte(i*7))
		}
		server.wantWrite(written(umad.Header{ID: sid, LID: 1, QPN: 1}, true, reply), umad.OK)
		server.wantWrite(written(umad.Header{ID: sid, LID: 1, QPN: 1}, true, reply), umad.EINVAL)
		n := carry(0, client.layer, server.layer)
		if least := (size+199)/200 + 1; n < least {
			t.Errorf("%d bytes: %d packets, want %d at least", size, n, least)
		}
		if 56+size > mad.Size {
			short := client.wantRead(umad.HeaderSize+mad.Size, umad.ENOSPC)
			sh, _ := umad.ReadHeader(short, true)
			if len(short) != umad.HeaderSize+mad.Size || int(sh.Length) != umad.HeaderSize+56+size {
				t.Errorf("%d bytes and length %d with a short buffer", len(short), sh.Length)
			}
			client.wantRead(umad.HeaderSize+mad.Size-1, umad.EINVAL)
		}
		out := client.wantRead(umad.HeaderSize+56+size, umad.OK)
		if !bytes.Equal(out[umad.HeaderSize+56:], reply[56:]) {
			t.Errorf("%d bytes: others were read than written", size)
		}
		server.wantWrite(written(umad.Header{ID: sid, LID: 1, QPN: 1}, true, reply), umad.OK) // the first is done with
	}
}

// TestLongMessageNobodyTakes ends as Linux ends it: written, then given back.
func TestLongMessageNobodyTakes(t *testing.T) {
	b := newBench(t).pkeys()
	id := b.agent(b.file, saAgent())
	m := datagram(mad.ClassSubnAdm, mad.MethodGetMulti, 7)
	m[24], m[25], m[26] = 1, 1, 1
	b.wantWrite(written(request(id), true, append(m, make([]byte, 1000)...)), umad.OK)
	for range 100 {
		var p kernel.Packet
		for b.layer.Next(b.now, &p) {
		}
		b.later(time.Second)
	}
	b.wantHeader(id, uint32(umad.ETIMEDOUT), mad.HeaderSize)
	b.wantRead(room, umad.EAGAIN)
}

// TestUnfinishedRequests: first segments of long requests that a host never
// finishes, from as many queue pairs and LIDs of its port as it likes, keep
// nobody else's long request from being joined.
func TestUnfinishedRequests(t *testing.T) {
	b := newBench(t).pkeys()
	b.layer.SetLMC(1)
	id := b.agent(b.file, saAgent())
	segment := func(lid ib.LID, qpn uint32, tid uint64, n byte, flags mad.RMPPFlags, length byte) {
		p := kernel.Packet{QP: 1, Address: kernel.Address{LID: lid, QPN: qpn}}
		copy(p.MAD[:], datagram(mad.ClassSubnAdm, mad.MethodGetTable, tid))
		p.MAD[24], p.MAD[25], p.MAD[26], p.MAD[31], p.MAD[35] = 1, 1, byte(flags|mad.RMPPActive), n, length
		b.layer.Receive(b.now, &p)
	}
	refused := 0
	for n := range 5000 {
		segment(ib.LID(4+n%2), uint32(n%700+1), uint64(n), 1, mad.RMPPFirst, 0)
		var p kernel.Packet
		for b.layer.Next(b.now, &p) {
			if mad.RMPPType(p.MAD[25]) == mad.RMPPStop {
				refused++
			}
		}
	}
	if refused != 5000-64 {
		t.Errorf("%d of 5,000 unfinished messages were refused, want all but 64", refused)
	}
	for n := range byte(3) {
		segment(6, 1, 9, n+1, map[byte]mad.RMPPFlags{0: mad.RMPPFirst, 2: mad.RMPPLast}[n], map[byte]byte{2: 30}[n])
	}
	b.wantHeader(id, 0, 56+2*200+10)
}

// TestUnaskedOfOne: what one port sends unasked takes a part of a file's room, so
// that another's request is there to be read.
func TestUnaskedOfOne(t *testing.T) {
	b := newBench(t).pkeys()
	b.layer.SetLMC(1)
	id := b.agent(b.file, saAgent())
	receive := func(lid ib.LID, tid uint64) {
		p := kernel.Packet{QP: 1, Address: kernel.Address{LID: lid, QPN: 1}}
		copy(p.MAD[:], datagram(mad.ClassSubnAdm, mad.MethodGet, tid))
		b.layer.Receive(b.now, &p)
	}
	for n := range uint64(20_000) {
		receive(ib.LID(4+n%2), n)
	}
	receive(6, 99_999)
	read := 0
	for ; ; read++ {
		if m := b.wantHeader(id, 0, mad.Size); binary.BigEndian.Uint64(m[8:]) == 99_999 {
			break
		}
	}
	if read != kernel.MaxMessages/32 {
		t.Errorf("another's request comes after %d of one port, want %d", read, kernel.MaxMessages/32)
	}
	receive(4, 7) // there is room again
	b.wantHeader(id, 0, mad.Size)
}

// TestUserRMPP: an agent that does RMPP itself gets every packet of it.
func TestUserRMPP(t *testing.T) {
	b := newBench(t)
	r := saAgent()
	r.Flags = umad.FlagUserRMPP
	out, errno := b.file.Ioctl(umad.CommandRegister2, r.Encode2())
	if errno != umad.OK {
		t.Fatal(errno)
	}
	r, _ = umad.ReadRegistration(umad.CommandRegister2, out)
	b.wantWrite(written(request(r.ID), true, datagram(mad.ClassSubnAdm, mad.MethodGetTable, 7)), umad.OK)
	p := answer(b.sent())
	p.MAD[24], p.MAD[25], p.MAD[26] = 1, 1, 3
	for i := range 3 {
		p.MAD[31] = byte(i + 1)
		b.layer.Receive(b.now, p)
		b.wantHeader(r.ID, 0, mad.Size)
	}
	long := append(p.MAD[:], 0)
	b.wantWrite(written(request(r.ID), true, long), umad.EINVAL)
}

func TestFull(t *testing.T) {
	b := newBench(t).pkeys()
	id := b.agent(b.file, smAgent())
	for i := range kernel.MaxMessages {
		b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, uint64(i))), umad.OK)
	}
	b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, kernel.MaxMessages)), umad.ENOMEM)
	var p kernel.Packet
	for range kernel.MaxMessages {
		p = b.sent()
		b.layer.Receive(b.now, answer(p))
	}
	p.MAD[3] = byte(mad.MethodTrap)
	b.layer.Receive(b.now, &p)
	if b.layer.Dropped() != 1 {
		t.Errorf("%d dropped, want the trap", b.layer.Dropped())
	}
	for range kernel.MaxMessages {
		b.wantHeader(id, 0, mad.Size)
	}
	b.wantRead(room, umad.EAGAIN)
}
