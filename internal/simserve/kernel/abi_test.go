package kernel_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
)

// bench is a layer with one open file.
type bench struct {
	*testing.T
	layer *kernel.Layer
	file  *kernel.File
	now   time.Duration
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, layer: kernel.New(kernel.Config{Port: 1})}
	b.file = b.open()
	return b
}

func (b *bench) open() *kernel.File {
	b.Helper()
	f, errno := b.layer.Open()
	if errno != umad.OK {
		b.Fatalf("open: %v", errno)
	}
	return f
}

// pkeys switches the file to the long header.
func (b *bench) pkeys() *bench {
	b.Helper()
	if _, errno := b.file.Ioctl(umad.CommandEnablePKey, nil); errno != umad.OK {
		b.Fatalf("ENABLE_PKEY: %v", errno)
	}
	return b
}

// agent registers one and returns its number.
func (b *bench) agent(f *kernel.File, r umad.Registration) uint32 {
	b.Helper()
	out, errno := f.Ioctl(umad.CommandRegister, r.Encode())
	if errno != umad.OK {
		b.Fatalf("REGISTER_AGENT %+v: %v", r, errno)
	}
	got, err := umad.ReadRegistration(umad.CommandRegister, out)
	if err != nil {
		b.Fatal(err)
	}
	return got.ID
}

func (b *bench) wantRegister(r umad.Registration, want umad.Errno) {
	b.Helper()
	if _, errno := b.file.Ioctl(umad.CommandRegister, r.Encode()); errno != want {
		b.Errorf("REGISTER_AGENT %+v: %v, want %v", r, errno, want)
	}
}

// The registrations that most cases use.
func smAgent() umad.Registration {
	return umad.Registration{Class: mad.ClassSubnDirected, ClassVersion: 1,
		Methods: umad.MethodSet(mad.MethodGet, mad.MethodSet, mad.MethodTrap)}
}

func saAgent() umad.Registration {
	return umad.Registration{QPN: 1, Class: mad.ClassSubnAdm, ClassVersion: 2, RMPPVersion: 1,
		Methods: umad.MethodSet(mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodDelete)}
}

// datagram makes one of a class.
func datagram(class mad.Class, method mad.Method, tid uint64) []byte {
	m := make([]byte, mad.Size)
	m[0], m[1], m[2], m[3] = mad.BaseVersion, byte(class), 1, byte(method)
	if class == mad.ClassSubnAdm {
		m[2] = 2
	}
	binary.BigEndian.PutUint64(m[8:], tid)
	binary.BigEndian.PutUint16(m[16:], 0x11)
	return m
}

// byRoute makes a directed route one that has no part by LID.
func byRoute(m []byte) {
	for i := 32; i < 36; i++ {
		m[i] = 0xFF
	}
}

func written(h umad.Header, long bool, m []byte) []byte {
	out := make([]byte, umad.SizeOf(long), umad.SizeOf(long)+len(m))
	h.Put(out, long)
	return append(out, m...)
}

func (b *bench) wantWrite(raw []byte, want umad.Errno) {
	b.Helper()
	n, errno := b.file.Write(b.now, raw)
	if errno != want || errno == umad.OK && n != len(raw) {
		b.Errorf("write of %d bytes: %d, %v, want %v", len(raw), n, errno, want)
	}
}

// sent is the next packet that leaves.
func (b *bench) sent() kernel.Packet {
	b.Helper()
	var p kernel.Packet
	if !b.layer.Next(b.now, &p) {
		b.Fatal("nothing leaves")
	}
	return p
}

func (b *bench) wantRead(room int, want umad.Errno) []byte {
	b.Helper()
	out, errno := b.file.Read(room)
	if errno != want {
		b.Fatalf("read of %d bytes: %v, want %v", room, errno, want)
	}
	return out
}

// answer is the response to a packet.
func answer(p kernel.Packet) *kernel.Packet {
	p.MAD[3] |= byte(mad.MethodResponse)
	return &p
}

// later lets time pass.
func (b *bench) later(d time.Duration) {
	b.now += d
	b.layer.Expire(b.now)
}

const room = 4096

func request(id uint32) umad.Header {
	return umad.Header{ID: id, TimeoutMilliseconds: 100, LID: 7, QPN: 1}
}

// TestABI is the kernel's documented behaviour, case by case.
func TestABI(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(b *bench)
	}{
		{"register: queue pair beyond 1", func(b *bench) {
			b.wantRegister(umad.Registration{QPN: 2, Class: mad.ClassPerfMgt}, umad.EINVAL)
		}},
		{"register: subnet management wants queue pair 0", func(b *bench) {
			r := smAgent()
			r.QPN = 1
			b.wantRegister(r, umad.EINVAL)
			r = saAgent()
			r.QPN = 0
			b.wantRegister(r, umad.EINVAL)
		}},
		{"register: class 80 and beyond, but 0x81", func(b *bench) {
			b.wantRegister(umad.Registration{QPN: 1, Class: 80}, umad.EINVAL)
			b.wantRegister(umad.Registration{QPN: 1, Class: 79, OUI: 1}, umad.OK)
			b.wantRegister(smAgent(), umad.OK)
		}},
		{"register: class version beyond the last", func(b *bench) {
			b.wantRegister(umad.Registration{QPN: 1, Class: mad.ClassPerfMgt, ClassVersion: 0x83}, umad.EINVAL)
		}},
		{"register: vendor class without OUI", func(b *bench) {
			b.wantRegister(umad.Registration{QPN: 1, Class: 0x32}, umad.EINVAL)
		}},
		{"register: RMPP for a class without, or of another version", func(b *bench) {
			b.wantRegister(umad.Registration{QPN: 1, Class: mad.ClassPerfMgt, RMPPVersion: 1}, umad.EINVAL)
			b.wantRegister(umad.Registration{QPN: 1, Class: mad.ClassSubnAdm, RMPPVersion: 2}, umad.EINVAL)
		}},
		{"register: a method that another agent has", func(b *bench) {
			b.agent(b.open(), smAgent())
			b.wantRegister(smAgent(), umad.EINVAL)
			r := smAgent()
			r.Methods = umad.MethodSet(mad.MethodReport)
			b.wantRegister(r, umad.OK)
			r = smAgent()
			r.ClassVersion = 2
			b.wantRegister(r, umad.OK)
		}},
		{"register: without methods beside the same class", func(b *bench) {
			b.agent(b.open(), smAgent())
			r := smAgent()
			r.Methods = umad.Methods{}
			b.wantRegister(r, umad.OK)
		}},
		{"register: the same vendor class for two vendors, and a ninth", func(b *bench) {
			r := umad.Registration{QPN: 1, Class: 0x32, Methods: umad.MethodSet(mad.MethodGet)}
			for r.OUI = 1; r.OUI <= 8; r.OUI++ {
				b.wantRegister(r, umad.OK)
			}
			b.wantRegister(r, umad.EINVAL)
		}},
		{"register: 32 agents, no more", func(b *bench) {
			for i := range uint32(umad.MaxAgents) {
				if id := b.agent(b.file, umad.Registration{QPN: 1}); id != i {
					b.Errorf("agent %d, want %d", id, i)
				}
			}
			b.wantRegister(umad.Registration{QPN: 1}, umad.ENOMEM)
			if _, errno := b.file.Ioctl(umad.CommandUnregister, umad.EncodeID(5)); errno != umad.OK {
				b.Error(errno)
			}
			if id := b.agent(b.file, umad.Registration{QPN: 1}); id != 5 {
				b.Errorf("agent %d, want the free number 5", id)
			}
		}},
		{"register: a short argument", func(b *bench) {
			if _, errno := b.file.Ioctl(umad.CommandRegister, make([]byte, umad.RegisterSize-1)); errno != umad.EFAULT {
				b.Error(errno)
			}
		}},
		{"register: queue pair 0 of a RoCE port", func(b *bench) {
			b.layer = kernel.New(kernel.Config{Port: 1, NoSubnetManagement: true})
			b.file = b.open()
			b.wantRegister(smAgent(), umad.EPROTONOSUPPORT)
		}},
		{"register 2: unknown flags, and the known ones come back", func(b *bench) {
			r := saAgent()
			r.Flags = 6
			out, errno := b.file.Ioctl(umad.CommandRegister2, r.Encode2())
			got, err := umad.ReadRegistration(umad.CommandRegister2, out)
			if errno != umad.EINVAL || err != nil || got.Flags != umad.FlagUserRMPP {
				b.Errorf("%v, %v, flags %#x, want EINVAL and 1", errno, err, got.Flags)
			}
		}},
		{"register 2: OUI of more than 24 bits", func(b *bench) {
			r := umad.Registration{QPN: 1, Class: 0x32, OUI: 1 << 24}
			if _, errno := b.file.Ioctl(umad.CommandRegister2, r.Encode2()); errno != umad.EINVAL {
				b.Error(errno)
			}
		}},
		{"register 2: RMPP by the program, and no class", func(b *bench) {
			r := umad.Registration{QPN: 1, Flags: umad.FlagUserRMPP}
			if _, errno := b.file.Ioctl(umad.CommandRegister2, r.Encode2()); errno != umad.EINVAL {
				b.Error(errno)
			}
		}},
		{"register 2: brings the long header", func(b *bench) {
			r := saAgent()
			if _, errno := b.file.Ioctl(umad.CommandRegister2, r.Encode2()); errno != umad.OK {
				b.Fatal(errno)
			}
			b.wantRead(umad.OldHeaderSize, umad.EINVAL)
			b.wantRead(umad.HeaderSize, umad.EAGAIN)
		}},
		{"register 2: after the first command keeps the short header", func(b *bench) {
			b.agent(b.file, smAgent())
			r := saAgent()
			if _, errno := b.file.Ioctl(umad.CommandRegister2, r.Encode2()); errno != umad.OK {
				b.Fatal(errno)
			}
			b.wantRead(umad.OldHeaderSize, umad.EAGAIN)
		}},
		{"enable P_Key index: before the first agent, not after", func(b *bench) {
			b.pkeys()
			b.agent(b.file, smAgent())
			if _, errno := b.file.Ioctl(umad.CommandEnablePKey, nil); errno != umad.EINVAL {
				b.Error(errno)
			}
		}},
		{"unregister: no such agent", func(b *bench) {
			for _, id := range []uint32{0, 31, 32, 1 << 31} {
				if _, errno := b.file.Ioctl(umad.CommandUnregister, umad.EncodeID(id)); errno != umad.EINVAL {
					b.Errorf("agent %d: %v", id, errno)
				}
			}
			if _, errno := b.file.Ioctl(umad.CommandUnregister, nil); errno != umad.EFAULT {
				b.Error(errno)
			}
		}},
		{"ioctl: unknown command", func(b *bench) {
			if _, errno := b.file.Ioctl(0x1B05, nil); errno != umad.ENOTTY {
				b.Error(errno)
			}
		}},
		{"write: too short", func(b *bench) {
			b.pkeys()
			id := b.agent(b.file, smAgent())
			all := written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 1))
			b.wantWrite(all[:umad.HeaderSize+umad.LeastMAD-1], umad.EINVAL)
			b.wantWrite(all[:umad.HeaderSize+umad.LeastMAD], umad.OK)
		}},
		{"write: longer than a datagram", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			m := append(datagram(mad.ClassSubnDirected, mad.MethodGet, 1), 0)
			b.wantWrite(written(request(id), true, m), umad.EINVAL)
		}},
		{"write: no agent", func(b *bench) {
			b.pkeys()
			m := datagram(mad.ClassSubnDirected, mad.MethodGet, 1)
			b.wantWrite(written(request(0), true, m), umad.EIO)
			b.wantWrite(written(request(32), true, m), umad.EINVAL)
		}},
		{"write: class without RMPP from an agent with", func(b *bench) {
			id := b.agent(b.pkeys().file, saAgent())
			b.wantWrite(written(request(id), true, datagram(mad.ClassPerfMgt, mad.MethodGet, 1)), umad.EINVAL)
		}},
		{"write: GID index beyond the table", func(b *bench) {
			id := b.agent(b.pkeys().file, saAgent())
			h := request(id)
			h.GRHPresent, h.GIDIndex = 1, 1
			b.wantWrite(written(h, true, datagram(mad.ClassSubnAdm, mad.MethodGet, 1)), umad.EINVAL)
		}},
		{"write: directed route out of another port, or too long", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			m := datagram(mad.ClassSubnDirected, mad.MethodGet, 1)
			m[7], m[129] = 1, 2
			b.wantWrite(written(request(id), true, m), umad.OK) // it begins by LID
			m[15] = 2
			byRoute(m)
			b.wantWrite(written(request(id), true, m), umad.EINVAL)
			m[7], m[129] = 64, 1
			b.wantWrite(written(request(id), true, m), umad.EINVAL)
			m[7], m[6] = 63, 1
			b.wantWrite(written(request(id), true, m), umad.EINVAL)
			m[6] = 0
			b.wantWrite(written(request(id), true, m), umad.OK)
		}},
		{"write: directed route that returns, that has left already, or of a switch", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			m := datagram(mad.ClassSubnDirected, mad.MethodGetResp, 1)
			m[4], m[7], m[129] = 0x80, 1, 2
			b.wantWrite(written(request(id), true, m), umad.OK)
			m = datagram(mad.ClassSubnDirected, mad.MethodGet, 2)
			m[6], m[7], m[129] = 1, 1, 2
			b.wantWrite(written(request(id), true, m), umad.OK)
			m = datagram(mad.ClassSubnDirected, mad.MethodGet, 3)
			m[129] = 2
			b.wantWrite(written(request(id), true, m), umad.OK) // of no hops
			b.layer = kernel.New(kernel.Config{})
			b.file = b.open()
			id = b.agent(b.pkeys().file, smAgent())
			m[7] = 1
			b.wantWrite(written(request(id), true, m), umad.OK) // from port 0
		}},
		{"write: duplicate transaction", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			m := written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 0x5_0000_0001))
			b.wantWrite(m, umad.OK)
			b.wantWrite(m, umad.EINVAL)
			p := b.sent()
			b.wantWrite(m, umad.EINVAL)
			b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 2)), umad.OK)
			b.wantWrite(written(request(id), true, datagram(mad.ClassSubnLID, mad.MethodGet, 1)), umad.OK)
			b.layer.Receive(b.now, answer(p))
			b.wantWrite(m, umad.OK)
		}},
		{"transaction: the upper half is the kernel's in requests", func(b *bench) {
			b.agent(b.pkeys().file, umad.Registration{})
			id := b.agent(b.file, smAgent())
			b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 0xAAAA_AAAA_0000_0009)), umad.OK)
			p := b.sent()
			if got := binary.BigEndian.Uint64(p.MAD[8:]); got != 2<<32|9 {
				b.Errorf("transaction %#x, want the second agent and 9", got)
			}
		}},
		{"transaction: responses and TrapRepress keep theirs", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			for _, method := range []mad.Method{mad.MethodGetResp, mad.MethodTrapRepress} {
				h := request(id)
				h.TimeoutMilliseconds = 0
				b.wantWrite(written(h, true, datagram(mad.ClassSubnLID, method, 0xAAAA_AAAA_0000_0009)), umad.OK)
				p := b.sent()
				if got := binary.BigEndian.Uint64(p.MAD[8:]); got != 0xAAAA_AAAA_0000_0009 {
					b.Errorf("%v: transaction %#x", method, got)
				}
			}
		}},
		{"read: nothing there", func(b *bench) {
			b.wantRead(umad.OldHeaderSize-1, umad.EINVAL)
			b.wantRead(room, umad.EAGAIN)
		}},
		{"read: a short buffer, and the message stays", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 1)), umad.OK)
			b.layer.Receive(b.now, answer(b.sent()))
			b.wantRead(umad.HeaderSize+mad.Size-1, umad.EINVAL)
			b.wantRead(umad.HeaderSize+mad.Size, umad.OK)
			b.wantRead(room, umad.EAGAIN)
		}},
		{"poll: to write always, to read when there is something", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			if got := b.file.Poll(); got != kernel.PollOut|kernel.PollWritNor {
				b.Errorf("poll %#x", got)
			}
			b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 1)), umad.OK)
			b.layer.Receive(b.now, answer(b.sent()))
			if got := b.file.Poll(); got&kernel.PollIn == 0 || got&kernel.PollOut == 0 {
				b.Errorf("poll %#x", got)
			}
			if got := b.layer.Ready(); !slices.Equal(got, []*kernel.File{b.file}) || len(b.layer.Ready()) != 0 {
				b.Errorf("%d files are ready, want the one, once", len(got))
			}
		}},
		{"issm: one opener", func(b *bench) {
			for _, want := range []umad.Errno{umad.OK, umad.EAGAIN} {
				if errno := b.layer.OpenIsSM(); errno != want || !b.layer.IsSM() {
					b.Errorf("%v, want %v", errno, want)
				}
			}
			b.layer.CloseIsSM()
			if b.layer.IsSM() {
				b.Error("the port still announces a manager")
			}
			if errno := b.layer.OpenIsSM(); errno != umad.OK {
				b.Error(errno)
			}
		}},
		{"removal: what is open, and what is tried then", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			b.layer.OpenIsSM()
			m := written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 1))
			b.wantWrite(m, umad.OK)
			b.layer.Receive(b.now, answer(b.sent()))
			b.layer.Remove()
			b.wantRead(room, umad.EIO)
			b.wantWrite(m, umad.EIO)
			b.wantRegister(saAgent(), umad.EPIPE)
			if _, errno := b.file.Ioctl(umad.CommandUnregister, umad.EncodeID(id)); errno != umad.EINVAL {
				b.Error(errno)
			}
			if got := b.file.Poll(); got != kernel.PollErr {
				b.Errorf("poll %#x, want POLLERR", got)
			}
			if len(b.layer.Ready()) != 1 || b.layer.IsSM() {
				b.Error("nobody was woken, or the port announces a manager")
			}
			if _, errno := b.layer.Open(); errno != umad.ENXIO {
				b.Error(errno)
			}
			if errno := b.layer.OpenIsSM(); errno != umad.ENXIO {
				b.Error(errno)
			}
			b.file.Close()
			if _, ok := b.layer.Deadline(); ok {
				b.Error("it still waits for something")
			}
		}},
		{"unregister: with datagrams unread", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 1)), umad.OK)
			b.layer.Receive(b.now, answer(b.sent()))
			b.file.Ioctl(umad.CommandUnregister, umad.EncodeID(id))
			b.wantRead(room, umad.OK)
		}},
		{"unregister: with a request outstanding", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 1)), umad.OK)
			p := b.sent()
			b.file.Ioctl(umad.CommandUnregister, umad.EncodeID(id))
			b.layer.Receive(b.now, answer(p))
			b.later(time.Hour)
			b.wantRead(room, umad.EAGAIN)
			b.wantRegister(smAgent(), umad.OK)
		}},
		{"close: with requests outstanding and unsent", func(b *bench) {
			id := b.agent(b.pkeys().file, smAgent())
			b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 1)), umad.OK)
			p := b.sent()
			b.wantWrite(written(request(id), true, datagram(mad.ClassSubnDirected, mad.MethodGet, 2)), umad.OK)
			b.file.Close()
			if _, ok := b.layer.Deadline(); ok || b.layer.Next(b.now, &p) {
				b.Error("something is left of the file")
			}
			b.layer.Receive(b.now, answer(p))
			b.file = b.open()
			b.wantRegister(smAgent(), umad.OK)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(newBench(t)) })
	}
}

// TestWhatArrives: which datagrams are dropped, which are refused with an answer, and which reach
// an agent, by queue pair, class, method and attribute.
func TestWhatArrives(t *testing.T) {
	const dropped, refused, delivered = "dropped", "refused", "delivered"
	const comMgt = mad.ClassCommMgt
	classPortInfo := uint16(mad.AttrClassPortInfo)
	for _, x := range []struct {
		name      string
		qp        uint8
		class     mad.Class
		method    mad.Method
		attribute uint16
		agent     bool
		want      string
	}{
		{"a Get without an agent", 1, mad.ClassPerfMgt, mad.MethodGet, 0x12, false, refused},
		{"a Set without an agent", 1, mad.ClassPerfMgt, mad.MethodSet, 0x12, false, refused},
		{"a Trap without an agent", 1, mad.ClassPerfMgt, mad.MethodTrap, 2, false, dropped},
		{"an answer that nobody asked for", 1, mad.ClassPerfMgt, mad.MethodGetResp, 0x12, false, dropped},
		{"a Get with an agent", 1, mad.ClassPerfMgt, mad.MethodGet, 0x12, true, delivered},
		{"a directed Get without an agent", 0, mad.ClassSubnDirected, mad.MethodGet, 0x11, false, refused},
		{"a directed Get with an agent", 0, mad.ClassSubnDirected, mad.MethodGet, 0x11, true, delivered},
		{"subnet management at queue pair 1", 1, mad.ClassSubnLID, mad.MethodGet, 0x11, false, dropped},
		{"performance management at queue pair 0", 0, mad.ClassPerfMgt, mad.MethodGet, 0x12, true, dropped},
		{"communication management, Send", 1, comMgt, mad.MethodSend, 0x10, true, delivered},
		{"communication management, Get", 1, comMgt, mad.MethodGet, 0x10, true, dropped},
		{"communication management, Get of ClassPortInfo", 1, comMgt, mad.MethodGet, classPortInfo, false, refused},
		{"communication management, Get of ClassPortInfo, with an agent", 1, comMgt, mad.MethodGet, classPortInfo, true, delivered},
	} {
		b := newBench(t)
		b.pkeys()
		if x.agent {
			qp := uint32(1)
			if x.class == mad.ClassSubnDirected {
				qp = 0
			}
			b.agent(b.file, umad.Registration{QPN: qp, Class: x.class, ClassVersion: 1, Methods: umad.MethodSet(x.method)})
		}
		p := &kernel.Packet{QP: x.qp, Address: kernel.Address{LID: 7, QPN: uint32(x.qp)}}
		copy(p.MAD[:], datagram(x.class, x.method, 9))
		binary.BigEndian.PutUint16(p.MAD[16:], x.attribute)
		b.layer.Receive(b.now, p)
		_, errno := b.file.Read(room)
		var back kernel.Packet
		answers := b.layer.Next(b.now, &back)
		got := map[bool]string{true: delivered, false: dropped}[errno == umad.OK]
		if answers {
			got = refused
		}
		if got != x.want || (got == dropped) != (b.layer.Dropped() == 1) {
			t.Errorf("%s: %s, want %s; %d dropped", x.name, got, x.want, b.layer.Dropped())
		}
		status := uint16(mad.StatusUnsupportedAttrib)
		if x.class == mad.ClassSubnDirected {
			status |= 0x8000 // it returns
		}
		if answers && (mad.Method(back.MAD[3]) != mad.MethodGetResp || binary.BigEndian.Uint16(back.MAD[4:]) != status || back.LID != 7 || back.QP != x.qp) {
			t.Errorf("%s: answered with method %#x, status %#x, to LID %d", x.name, back.MAD[3], back.MAD[4:6], back.LID)
		}
	}
}

// TestAnswers: an answer is read by who asked, once, and at the queue pair that it asked from.
func TestAnswers(t *testing.T) {
	b := newBench(t)
	id := b.agent(b.pkeys().file, umad.Registration{QPN: 1}) // of no class: it gets answers alone
	for i, class := range []mad.Class{mad.ClassPerfMgt, mad.ClassSubnLID} {
		b.wantWrite(written(request(id), true, datagram(class, mad.MethodGet, uint64(i+1))), umad.OK)
		asked := b.sent()
		for name, bend := range map[string]func(*kernel.Packet){
			"of another transaction": func(p *kernel.Packet) { p.MAD[15]++ },
			"of another class":       func(p *kernel.Packet) { p.MAD[1]++ },
			"to another agent":       func(p *kernel.Packet) { p.MAD[11]++ },
			"at the other queue pair": func(p *kernel.Packet) {
				p.QP = 1 - p.QP
			},
		} {
			p := answer(asked)
			bend(p)
			before := b.layer.Dropped()
			b.layer.Receive(b.now, p)
			if _, errno := b.file.Read(room); errno != umad.EAGAIN || b.layer.Dropped() != before+1 {
				t.Errorf("class %#x: an answer %s is read", class, name)
			}
		}
		if class == mad.ClassPerfMgt {
			b.layer.Receive(b.now, answer(asked))
			b.wantRead(room, umad.OK)
			b.layer.Receive(b.now, answer(asked))
			b.wantRead(room, umad.EAGAIN)
		}
	}
}

// TestHeaders reads back what came, with both lengths of header.
func TestHeaders(t *testing.T) {
	for _, long := range []bool{false, true} {
		b := newBench(t)
		if long {
			b.pkeys()
		}
		b.layer.SetLMC(2)
		id := b.agent(b.file, saAgent())
		h := request(id)
		h.SL, h.PathBits, h.PKeyIndex, h.QKey = 3, 2, 5, 0x80010000
		h.GRHPresent = 1
		h.GRH = umad.GRH{HopLimit: 9, TrafficClass: 7, FlowLabel: 0x12345, GID: [16]byte{0xFE, 0x80, 15: 1}}
		b.wantWrite(written(h, long, datagram(mad.ClassSubnAdm, mad.MethodGet, 1)), umad.OK)
		p := b.sent()
		want := kernel.Address{QPN: 1, LID: 7, SL: 3, PathBits: 2, HasGRH: true, GRH: h.GRH}
		if long {
			want.PKeyIndex = 5
		}
		if p.Address != want || p.QP != 1 {
			t.Errorf("left by queue pair %d to %+v, want 1 and %+v", p.QP, p.Address, want)
		}
		b.layer.Receive(b.now, answer(p))
		out := b.wantRead(room, umad.OK)
		got, err := umad.ReadHeader(out, long)
		if err != nil {
			t.Fatal(err)
		}
		h.TimeoutMilliseconds, h.QKey, h.HopLimit = 0, 0, 0xFF
		h.PKeyIndex = want.PKeyIndex
		h.Length = uint32(umad.SizeOf(long) + mad.Size)
		if got != h {
			t.Errorf("read\n%+v, want\n%+v", got, h)
		}
		if !bytes.Equal(out[umad.SizeOf(long)+3:], answer(p).MAD[3:]) {
			t.Error("another datagram was read than came")
		}
	}
}
