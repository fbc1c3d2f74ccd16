package umadfs

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

// bench is two hosts, and a fresh umad file at the first.
type bench struct {
	*opened
	far *space
}

// TestABI is the kernel's documented behaviour, case by case, each through
// system calls on a file of /dev/infiniband.
func TestABI(t *testing.T) {
	w := newWorld(t)
	near, far := w.enter(0), w.enter(1)
	for _, cases := range [][]abiCase{registerCases, writeCases, readCases, lifeCases, addressCases} {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				here, there := *near, *far
				world := *w
				world.T = t
				here.world, there.world = &world, &world
				b := &bench{here.umad(), &there}
				defer b.close()
				c.run(b)
			})
		}
	}
}

type abiCase struct {
	name string
	run  func(b *bench)
}

var registerCases = []abiCase{
	{"register: queue pair beyond 1", func(b *bench) {
		b.wantRegister(umad.Registration{QPN: 2, Class: mad.ClassPerfMgt, ClassVersion: 1}, unix.EINVAL)
	}},
	{"register: a class at the wrong queue pair", func(b *bench) {
		r := smAgent()
		r.QPN = 1
		b.wantRegister(r, unix.EINVAL)
		r = saAgent()
		r.QPN = 0
		b.wantRegister(r, unix.EINVAL)
	}},
	{"register: class 80 and beyond, class version 0x83", func(b *bench) {
		b.wantRegister(umad.Registration{QPN: 1, Class: 80, ClassVersion: 1}, unix.EINVAL)
		b.wantRegister(umad.Registration{QPN: 1, Class: mad.ClassPerfMgt, ClassVersion: 0x83}, unix.EINVAL)
	}},
	{"register: vendor class without OUI", func(b *bench) {
		b.wantRegister(umad.Registration{QPN: 1, Class: vendor, ClassVersion: 1}, unix.EINVAL)
	}},
	{"register: RMPP for a class without, or of another version", func(b *bench) {
		b.wantRegister(umad.Registration{QPN: 1, Class: mad.ClassPerfMgt, ClassVersion: 1, RMPPVersion: 1}, unix.EINVAL)
		b.wantRegister(umad.Registration{QPN: 1, Class: mad.ClassSubnAdm, ClassVersion: 2, RMPPVersion: 2}, unix.EINVAL)
	}},
	{"register: a method that an agent of another program has", func(b *bench) {
		other := b.umad()
		other.agent(smAgent())
		b.wantRegister(smAgent(), unix.EINVAL)
		r := smAgent()
		r.Methods = umad.Methods{} // answers only
		b.wantRegister(r, nil)
		other.close()
		b.wantRegister(smAgent(), nil)
	}},
	{"register: 32 agents and no more", func(b *bench) {
		for want := range uint32(umad.MaxAgents) {
			if id := b.agent(umad.Registration{QPN: 1}); id != want {
				b.Errorf("agent %d, want %d", id, want)
			}
		}
		b.wantRegister(umad.Registration{QPN: 1}, unix.ENOMEM)
		b.unregister(5)
		if id := b.agent(umad.Registration{QPN: 1}); id != 5 {
			b.Errorf("agent %d, want 5, which is free", id)
		}
	}},
	{"register: a bad pointer", func(b *bench) {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.fd), uintptr(umad.CommandRegister), 1); errno != unix.EFAULT {
			b.Error(errno)
		}
	}},
	{"register 2: unknown flags, and the known ones come back", func(b *bench) {
		r := saAgent()
		r.Flags = 6
		argument := r.Encode2()
		b.wantIoctl("REGISTER_AGENT2", umad.CommandRegister2, argument, unix.EINVAL)
		if got, err := umad.ReadRegistration(umad.CommandRegister2, argument); err != nil || got.Flags != umad.FlagUserRMPP {
			b.Errorf("%v, flags %#x, want 1", err, got.Flags)
		}
	}},
	{"register 2: OUI of more than 24 bits", func(b *bench) {
		r := vendorAgent()
		r.OUI = 1 << 24
		b.wantIoctl("REGISTER_AGENT2", umad.CommandRegister2, r.Encode2(), unix.EINVAL)
	}},
	{"register 2: brings the long header", func(b *bench) {
		r := saAgent()
		b.wantIoctl("REGISTER_AGENT2", umad.CommandRegister2, r.Encode2(), nil)
		b.wantRead(umad.OldHeaderSize, unix.EINVAL)
		b.wantRead(umad.HeaderSize, unix.EAGAIN)
	}},
	{"register 2: after the first command keeps the short header", func(b *bench) {
		b.agent(smAgent())
		r := saAgent()
		b.wantIoctl("REGISTER_AGENT2", umad.CommandRegister2, r.Encode2(), nil)
		b.wantRead(umad.OldHeaderSize, unix.EAGAIN)
	}},
	{"enable P_Key index: before the first agent, not after", func(b *bench) {
		b.pkeys().agent(smAgent())
		b.wantIoctl("ENABLE_PKEY", umad.CommandEnablePKey, nil, unix.EINVAL)
	}},
	{"unregister: no such agent", func(b *bench) {
		for _, id := range []uint32{0, 31, 32, 1 << 31} {
			b.wantIoctl("UNREGISTER_AGENT", umad.CommandUnregister, umad.EncodeID(id), unix.EINVAL)
		}
	}},
	{"ioctl: unknown commands", func(b *bench) {
		b.wantIoctl("0x1B05", 0x1B05, nil, unix.ENOTTY)
		b.wantIoctl("TCGETS", unix.TCGETS, make([]byte, 64), unix.ENOTTY)
	}},
}

var writeCases = []abiCase{
	{"write: too short", func(b *bench) {
		id := b.pkeys().agent(smAgent())
		all := b.bytes(own(id), makeMAD(mad.ClassSubnDirected, mad.MethodGet, 1))
		b.wantWrite(all[:umad.HeaderSize+umad.LeastMAD-1], unix.EINVAL)
	}},
	{"write: longer than a datagram", func(b *bench) {
		id := b.pkeys().agent(smAgent())
		b.wantWrite(b.bytes(own(id), append(makeMAD(mad.ClassSubnDirected, mad.MethodGet, 1), 0)), unix.EINVAL)
	}},
	{"write: no agent", func(b *bench) {
		b.pkeys()
		m := makeMAD(mad.ClassSubnDirected, mad.MethodGet, 1)
		b.wantWrite(b.bytes(own(0), m), unix.EIO)
		b.wantWrite(b.bytes(own(32), m), unix.EINVAL)
	}},
	{"write: class without RMPP from an agent with", func(b *bench) {
		id := b.pkeys().agent(saAgent())
		b.wantWrite(b.bytes(nowhere(id, 100, 0), makeMAD(mad.ClassPerfMgt, mad.MethodGet, 1)), unix.EINVAL)
	}},
	{"write: GID index beyond the table", func(b *bench) {
		id := b.pkeys().agent(saAgent())
		h := nowhere(id, 100, 0)
		h.GRHPresent, h.GIDIndex = 1, 255
		b.wantWrite(b.bytes(h, makeMAD(mad.ClassSubnAdm, mad.MethodGet, 1)), unix.EINVAL)
	}},
	{"write: directed route out of another port, or too long", func(b *bench) {
		id := b.pkeys().agent(smAgent())
		m := makeMAD(mad.ClassSubnDirected, mad.MethodGet, 1)
		m[7], m[129] = 1, 2
		b.wantWrite(b.bytes(own(id), m), unix.EINVAL)
		m[7], m[129] = 64, 1
		b.wantWrite(b.bytes(own(id), m), unix.EINVAL)
	}},
	{"write: a second request of one transaction and class", func(b *bench) {
		id := b.pkeys().agent(vendorAgent())
		m := makeMAD(vendor, mad.MethodGet, 0xAAAA_0000_0007)
		b.send(nowhere(id, 100, 0), m)
		b.wantWrite(b.bytes(nowhere(id, 100, 0), m), unix.EINVAL)
		binary.BigEndian.PutUint64(m[8:], 7) // the upper half is not the program's
		b.wantWrite(b.bytes(nowhere(id, 100, 0), m), unix.EINVAL)
		binary.BigEndian.PutUint64(m[8:], 8)
		b.send(nowhere(id, 100, 0), m)
		b.message()
		b.message()
		binary.BigEndian.PutUint64(m[8:], 7) // done with
		b.send(nowhere(id, 100, 0), m)
	}},
}

var readCases = []abiCase{
	{"read: nothing there", func(b *bench) {
		b.wantRead(umad.OldHeaderSize-1, unix.EINVAL)
		b.wantRead(room, unix.EAGAIN)
	}},
	{"read: waits without O_NONBLOCK, and a message ends the wait", func(b *bench) {
		waits, err := b.open("umad0", unix.O_RDWR)
		if err != nil {
			b.Fatal(err)
		}
		defer waits.close()
		id := waits.pkeys().agent(vendorAgent())
		waits.send(nowhere(id, 150, 0), makeMAD(vendor, mad.MethodGet, 3))
		begin := time.Now()
		if h, err := umad.ReadHeader(waits.wantRead(room, nil), true); err != nil || h.Status != uint32(umad.ETIMEDOUT) {
			b.Errorf("%+v, %v", h, err)
		}
		if waited := time.Since(begin); waited < 100*time.Millisecond {
			b.Errorf("waited %v, want the time-out", waited)
		}
	}},
	{"read: a short buffer, and the message stays", func(b *bench) {
		id := b.pkeys().agent(smAgent())
		b.send(own(id), makeMAD(mad.ClassSubnDirected, mad.MethodGet, 9))
		b.poll(unix.POLLIN, longest)
		b.wantRead(umad.HeaderSize+mad.Size-1, unix.EINVAL)
		got := b.wantRead(umad.HeaderSize+mad.Size, nil)
		h, _ := umad.ReadHeader(got, true)
		if m := got[umad.HeaderSize:]; h.Length != umad.HeaderSize+mad.Size || h.ID != id || tidOf(m)&0xFFFFFFFF != 9 || m[3] != byte(mad.MethodGetResp) {
			b.Errorf("%+v, %x", h, m[:24])
		}
		b.wantRead(room, unix.EAGAIN)
	}},
	{"read: a time-out is the header and 24 bytes, after all retries", func(b *bench) {
		id := b.pkeys().agent(vendorAgent())
		begin := time.Now()
		b.send(nowhere(id, 60, 2), makeMAD(vendor, mad.MethodGet, 0x77))
		h, m := b.message()
		if waited := time.Since(begin); waited < 3*60*time.Millisecond {
			b.Errorf("given back after %v, want three times 60 ms", waited)
		}
		if h.Status != uint32(umad.ETIMEDOUT) || h.ID != id || len(m) != mad.HeaderSize || uint32(tidOf(m)) != 0x77 || h.LID != 0x4000 {
			b.Errorf("%+v, %x", h, m)
		}
	}},
	{"read: a long message and a short buffer", func(b *bench) {
		// The far side answers a GetTable with more than one datagram holds.
		server := b.far.umad().pkeys()
		defer server.close()
		sid := server.agent(saAgent())
		id := b.pkeys().agent(saAgent())
		b.send(b.to(id), makeMAD(mad.ClassSubnAdm, mad.MethodGetTable, 0x55))
		h, m := server.message()
		long := bytes.Repeat(m[:56], 1)
		long[3] = byte(mad.MethodGetTable | mad.MethodResponse)
		long[24], long[25], long[26] = 1, 0, 1 // RMPP version 1, active
		long = append(long, bytes.Repeat([]byte{0xA5}, 1000)...)
		h.ID, h.TimeoutMilliseconds = sid, 0
		server.send(h, long)
		b.poll(unix.POLLIN, longest)
		// ENOSPC comes with the header and the first datagram.
		short := make([]byte, umad.HeaderSize+mad.Size)
		if n, err := unix.Read(b.fd, short); n != -1 || err != unix.ENOSPC {
			b.Errorf("read: %d, %v, want ENOSPC", n, err)
		}
		said, err := umad.ReadHeader(short, true)
		want := uint32(umad.HeaderSize + len(long))
		if err != nil || said.Length < want {
			b.Errorf("%v, the header says %d bytes, want %d", err, said.Length, want)
		}
		whole := b.wantRead(int(said.Length), nil)
		if got := whole[umad.HeaderSize:]; len(got) < len(long) || !bytes.Equal(got[56:len(long)], long[56:]) {
			b.Errorf("%d bytes that differ from the %d sent", len(got), len(long))
		}
		b.wantRead(room, unix.EAGAIN)
	}},
	{"poll: to write always, to read when there is something", func(b *bench) {
		id := b.pkeys().agent(smAgent())
		if got := b.poll(unix.POLLIN|unix.POLLOUT, longest); got != unix.POLLOUT {
			b.Errorf("poll %#x, want POLLOUT", got)
		}
		if got := b.poll(unix.POLLIN, 20*time.Millisecond); got != 0 {
			b.Errorf("poll %#x, want nothing", got)
		}
		b.send(own(id), makeMAD(mad.ClassSubnDirected, mad.MethodGet, 1))
		if got := b.poll(unix.POLLIN|unix.POLLOUT, longest); got != unix.POLLIN|unix.POLLOUT {
			b.Errorf("poll %#x, want POLLIN and POLLOUT", got)
		}
	}},
}

// lifeCases are about what is there when something ends.
var lifeCases = []abiCase{
	{"issm: one opener, and what the port says", func(b *bench) {
		first, err := b.open("issm0", unix.O_RDONLY|unix.O_NONBLOCK)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := b.open("issm0", unix.O_RDONLY|unix.O_NONBLOCK); err != unix.EAGAIN {
			b.Errorf("a second opener: %v, want EAGAIN", err)
		}
		if !b.isSM() {
			b.Error("the port does not have IsSM set")
		}
		// One that waits gets it when the first lets go. Its thread waits in
		// open(2), so that it has a namespace of its own.
		other := b.enter(0)
		held := make(chan *opened)
		go func() {
			f, err := other.open("issm0", unix.O_RDONLY)
			if err != nil {
				b.Error(err)
			}
			held <- f
		}()
		select {
		case <-held:
			b.Error("a second opener did not wait")
		case <-time.After(100 * time.Millisecond):
		}
		first.close()
		select {
		case f := <-held:
			if !b.isSM() {
				b.Error("with the second opener the port does not have IsSM set")
			}
			f.close()
		case <-time.After(longest):
			b.Fatal("the first let go, and the second still waits")
		}
		b.soon("the port says that there is no manager", func() bool { return !b.isSM() })
	}},
	{"unregister: with a message queued", func(b *bench) {
		id := b.pkeys().agent(smAgent())
		b.send(own(id), makeMAD(mad.ClassSubnDirected, mad.MethodGet, 1))
		b.poll(unix.POLLIN, longest)
		b.unregister(id)
		if h, m := b.message(); h.ID != id || len(m) != mad.Size {
			b.Errorf("%+v", h)
		}
	}},
	{"unregister: with a request outstanding", func(b *bench) {
		id := b.pkeys().agent(vendorAgent())
		b.send(nowhere(id, 50, 0), makeMAD(vendor, mad.MethodGet, 1))
		b.unregister(id)
		if got := b.poll(unix.POLLIN, 200*time.Millisecond); got != 0 {
			b.Errorf("poll %#x, want nothing: the agent is gone", got)
		}
	}},
	{"close: with requests outstanding", func(b *bench) {
		other := b.umad().pkeys()
		id := other.agent(vendorAgent(mad.MethodGet))
		for i := range 100 {
			other.send(nowhere(id, 100, 5), makeMAD(vendor, mad.MethodGet, uint64(i+1)))
		}
		other.close()
		b.soon("the methods are free again", func() bool { r := vendorAgent(mad.MethodGet); return b.ioctl(umad.CommandRegister, r.Encode()) == nil })
	}},
	{"transaction: the upper half is the kernel's, an answer keeps it", func(b *bench) {
		server := b.far.umad().pkeys()
		defer server.close()
		sid := server.agent(vendorAgent(mad.MethodGet))
		id := b.pkeys().agent(vendorAgent())
		b.send(b.to(id), makeMAD(vendor, mad.MethodGet, 0xAAAA_AAAA_0000_0009))
		h, m := server.message()
		asked := tidOf(m)
		if uint32(asked) != 9 || asked>>32 == 0xAAAA_AAAA {
			b.Errorf("transaction %#x on the way, want the agent's number over 9", asked)
		}
		m[3] = byte(mad.MethodGetResp)
		h.ID, h.TimeoutMilliseconds = sid, 0
		server.send(h, m)
		if _, got := b.message(); tidOf(got) != asked {
			b.Errorf("transaction %#x in the answer, want %#x", tidOf(got), asked)
		}
	}},
	{"a response that nobody waits for", func(b *bench) {
		server := b.far.umad().pkeys()
		defer server.close()
		sid := server.agent(vendorAgent(mad.MethodGet))
		id := b.pkeys().agent(vendorAgent())
		b.send(b.to(id), makeMAD(vendor, mad.MethodGet, 1))
		h, m := server.message()
		m[3] = byte(mad.MethodGetResp)
		h.ID, h.TimeoutMilliseconds = sid, 0
		server.send(h, m)
		server.send(h, m) // once too often
		b.message()
		if got := b.poll(unix.POLLIN, 50*time.Millisecond); got != 0 {
			b.Errorf("poll %#x, want nothing", got)
		}
	}},
	{"a request that nobody registered for", func(b *bench) {
		// The other side's kernel answers it.
		id := b.pkeys().agent(vendorAgent())
		b.send(b.to(id), makeMAD(vendor, mad.MethodGet, 1))
		if h, m := b.message(); h.Status != 0 || m[3] != byte(mad.MethodGetResp) ||
			mad.Status(binary.BigEndian.Uint16(m[4:])) != mad.StatusUnsupportedAttrib {
			b.Errorf("%+v, %x, want an answer with UnsupportedAttrib", h, m[:24])
		}
	}},
}

// isSM is what the agent of the near port says.
func (b *bench) isSM() (is bool) {
	b.Helper()
	if err := b.sim.Do(func(f *fabric.Fabric) {
		is = f.Agent(b.hosts[0].GUID).Port(1).CapabilityMask.Has(smp.CapIsSM)
	}); err != nil {
		b.Fatal(err)
	}
	return is
}

// soon waits for something that the kernel tells the server later: the end of a
// file.
func (b *bench) soon(what string, is func() bool) {
	b.Helper()
	need.Eventually(b, longest, what, is)
}

// to is the header of a request to the far host, in the partition of both.
func (b *bench) to(id uint32) umad.Header {
	b.Helper()
	return umad.Header{
		ID: id, TimeoutMilliseconds: 10000, LID: b.lid(1), QPN: 1, QKey: uint32(ib.QKeyGSI), PKeyIndex: sharedNear,
	}
}

// addressCases send to the far host and back, and look at the packets.
var addressCases = []abiCase{
	{"address: P_Key index", func(b *bench) {
		b.wantAddress(umad.Header{}, umad.Header{}) // of which wantAddress looks in every case
	}},
	{"address: SL", func(b *bench) {
		b.wantAddress(umad.Header{SL: 5}, umad.Header{SL: 5})
	}},
	{"address: path bits", func(b *bench) {
		b.wantAddress(umad.Header{PathBits: 1}, umad.Header{})
		b.wantAddress(umad.Header{PathBits: 7}, umad.Header{}) // of which the port has one bit
	}},
	{"address: the other side's path bits", func(b *bench) {
		b.wantAddress(umad.Header{LID: b.lid(1) + 1}, umad.Header{PathBits: 1})
	}},
	{"address: GRH", func(b *bench) {
		grh := umad.GRH{HopLimit: 1, TrafficClass: 0x5A, FlowLabel: 0xBCDEF, GID: b.gid(1)}
		back := grh
		back.GID = b.gid(0)
		b.wantAddress(umad.Header{GRHPresent: 1, GRH: grh}, umad.Header{GRHPresent: 1, GRH: back})
	}},
	{"address: Q_Key", func(b *bench) {
		// Linux puts the well-known one, whatever the program wrote.
		b.wantAddress(umad.Header{QKey: 5}, umad.Header{})
	}},
	{"address: a P_Key that the other side does not have", func(b *bench) {
		server := b.far.umad().pkeys()
		defer server.close()
		sid := server.agent(vendorAgent(mad.MethodGet))
		// Index 1 of the far host is its own partition.
		server.send(umad.Header{ID: sid, TimeoutMilliseconds: 100, LID: b.lid(0), QPN: 1, PKeyIndex: 1}, makeMAD(vendor, mad.MethodGet, 4))
		if h, _ := server.message(); h.Status != uint32(umad.ETIMEDOUT) {
			b.Errorf("%+v, want a time-out", h)
		}
		server.send(umad.Header{ID: sid, TimeoutMilliseconds: 100, LID: b.lid(0), QPN: 1, PKeyIndex: 100}, makeMAD(vendor, mad.MethodGet, 5))
		if h, _ := server.message(); h.Status != uint32(umad.ETIMEDOUT) {
			b.Errorf("an empty entry: %+v, want a time-out", h)
		}
	}},
}

func (b *bench) gid(host int) (g ib.GID) {
	b.Helper()
	if err := b.sim.Do(func(f *fabric.Fabric) {
		binary.BigEndian.PutUint64(g[:], f.Agent(b.hosts[host].GUID).Port(1).GIDPrefix)
	}); err != nil {
		b.Fatal(err)
	}
	binary.BigEndian.PutUint64(g[8:], uint64(b.hosts[host].Ports[1].GUID))
	return g
}

// wantAddress sends a request in the shared partition, which has another index
// in the table of each, with what h says beside the usual address, holds
// the packet on the wire against it and what the far side reads against seen,
// and lets the far side answer to the address that it read.
func (b *bench) wantAddress(h, seen umad.Header) {
	b.Helper()
	server := b.far.umad().pkeys()
	defer server.close()
	sid := server.agent(vendorAgent(mad.MethodGet))
	client := b.umad().pkeys()
	defer client.close()
	id := client.agent(vendorAgent())
	base := b.to(id)
	if h.LID == 0 {
		h.LID = base.LID
	}
	h.ID, h.TimeoutMilliseconds, h.QPN, h.PKeyIndex = id, base.TimeoutMilliseconds, 1, sharedNear
	if h.QKey == 0 {
		h.QKey = base.QKey
	}
	for len(b.packets) > 0 {
		<-b.packets
	}
	client.send(h, makeMAD(vendor, mad.MethodGet, 11))
	got, m := server.message()
	source := b.lid(0) + ib.LID(h.PathBits&(1<<abiLMC-1))
	b.wantOnWire(&h, source)
	if got.LID != source || got.QPN != 1 || got.SL != seen.SL || got.PathBits != seen.PathBits || got.GRHPresent != seen.GRHPresent ||
		got.PKeyIndex != sharedFar || got.GRH.GID != seen.GRH.GID || got.TrafficClass != seen.TrafficClass || got.FlowLabel != seen.FlowLabel {
		b.Errorf("the far side reads %+v, want LID %d, P_Key index %d and %+v", got, source, sharedFar, seen)
	}
	m[3] = byte(mad.MethodGetResp)
	got.ID, got.TimeoutMilliseconds = sid, 0
	server.send(got, m)
	back, _ := client.message()
	if back.Status != 0 || back.LID != h.LID || back.SL != h.SL || back.PathBits != h.PathBits&(1<<abiLMC-1) || back.PKeyIndex != h.PKeyIndex ||
		back.GRHPresent != h.GRHPresent || back.GRH.GID != h.GRH.GID || back.TrafficClass != h.TrafficClass || back.FlowLabel != h.FlowLabel {
		b.Errorf("the answer comes with %+v, want the address that was asked: %+v", back, h)
	}
}

// wantOnWire holds the request's packet against its address header.
func (b *bench) wantOnWire(h *umad.Header, source ib.LID) {
	b.Helper()
	var raw []byte
	select {
	case raw = <-b.packets:
	default:
		b.Fatal("no packet left the near host")
	}
	v, err := packet.Parse(raw)
	if err != nil {
		b.Fatal(err)
	}
	const key ib.PKey = 0x8020
	lrh, bth, deth := v.LRH, v.BTH, v.DETH
	if lrh.SLID() != source || lrh.DLID() != h.LID || lrh.SL() != ib.SL(h.SL) {
		b.Errorf("on the wire: LIDs %d to %d, SL %d, want %d to %d, SL %d", lrh.SLID(), lrh.DLID(), lrh.SL(), source, h.LID, h.SL)
	}
	if bth.PKey() != key || bth.DestQP() != 1 || deth.QKey() != ib.QKeyGSI || deth.SrcQP() != 1 {
		b.Errorf("on the wire: P_Key %v, QP %d, Q_Key %v, from QP %d, want %v, 1, %v, 1", bth.PKey(), bth.DestQP(), deth.QKey(), deth.SrcQP(), key, ib.QKeyGSI)
	}
	if grh := v.GRH; (grh != nil) != (h.GRHPresent != 0) || grh != nil && (grh.DGID() != h.GRH.GID || grh.SGID() != b.gid(0) ||
		grh.TClass() != h.TrafficClass || grh.FlowLabel() != h.FlowLabel || grh.HopLmt() != h.HopLimit) {
		b.Errorf("on the wire: GRH %v, want %+v", grh, h.GRH)
	}
}
