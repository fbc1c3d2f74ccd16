package kernel_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
)

// tape reads decisions from bytes; at their end all are zero.
type tape struct{ bytes []byte }

func (t *tape) next() int {
	if len(t.bytes) == 0 {
		return 0
	}
	b := t.bytes[0]
	t.bytes = t.bytes[1:]
	return int(b)
}

// asked is a request that a program was allowed to write.
type asked struct {
	file        *kernel.File
	transaction uint64
	class       mad.Class
	// loose is set when it may end without a word: its agent went, it goes by
	// RMPP, or it is an answer, whose transaction may come again.
	loose bool
	ended int
}

// player carries out a tape and keeps its own books of what was asked.
type player struct {
	tape
	layer *kernel.Layer
	files []*kernel.File
	long  map[*kernel.File]bool // header
	// registered has the number that the layer must give each agent.
	registered map[*kernel.File]map[uint32]uint64
	lastAgent  uint64
	open       []*asked
	left       []kernel.Packet
	now        time.Duration
	fault      string
}

func (p *player) failf(format string, args ...any) {
	if p.fault == "" {
		p.fault = fmt.Sprintf(format, args...)
	}
}

var fuzzClasses = []mad.Class{mad.ClassSubnDirected, mad.ClassSubnLID, mad.ClassSubnAdm, mad.ClassPerfMgt, 0x32, 0}

var fuzzMethods = []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodTrap, mad.MethodTrapRepress, mad.MethodGetResp, 0x92}

func (p *player) step() {
	if op := p.next() % 12; len(p.files) == 0 || op == 0 {
		p.openFile()
	} else {
		f := p.files[p.next()%len(p.files)]
		switch op {
		case 1:
			p.register(f)
		case 2, 3, 4:
			p.write(f)
		case 5, 6:
			p.nextPacket()
		case 7, 8:
			p.receive()
		case 9:
			p.read(f, plenty)
		case 10:
			p.now += time.Duration(p.next()) * 10 * time.Millisecond
			p.layer.Expire(p.now)
		case 11:
			p.rare(f)
		}
	}
}

func (p *player) openFile() {
	f, errno := p.layer.Open()
	if errno != umad.OK || len(p.files) >= 4 {
		return
	}
	if p.next()%2 == 0 {
		f.Ioctl(umad.CommandEnablePKey, nil)
		p.long[f] = true
	}
	p.files = append(p.files, f)
	p.registered[f] = make(map[uint32]uint64)
}

func (p *player) register(f *kernel.File) {
	class := fuzzClasses[p.next()%len(fuzzClasses)]
	r := umad.Registration{
		QPN: uint32(p.next() % 3), Class: class, ClassVersion: 1 + uint8(p.next()%2), RMPPVersion: uint8(p.next() % 2),
		Flags: uint32(p.next() % 3), OUI: uint32(p.next() % 2), Methods: umad.Methods{uint64(p.next()) << 1, uint64(p.next())},
	}
	command, argument := umad.CommandRegister, r.Encode()
	if p.next()%2 == 0 {
		command, argument = umad.CommandRegister2, r.Encode2()
	}
	out, errno := f.Ioctl(command, argument)
	if errno != umad.OK {
		return
	}
	got, err := umad.ReadRegistration(command, out)
	if err != nil {
		p.failf("registered, and the answer is %v", err)
	}
	if command == umad.CommandRegister2 && len(p.registered[f]) == 0 {
		p.long[f] = true
	}
	p.lastAgent++
	p.registered[f][got.ID] = p.lastAgent
}

func (p *player) write(f *kernel.File) {
	class := fuzzClasses[p.next()%len(fuzzClasses)]
	m := datagram(class, fuzzMethods[p.next()%len(fuzzMethods)], uint64(p.next()%8))
	h := umad.Header{
		ID: uint32(p.next() % 4), TimeoutMilliseconds: uint32(p.next() % 4 * 100), Retries: uint32(p.next() % 3),
		LID: 1, QPN: 1, PathBits: uint8(p.next() % 2), GRHPresent: uint8(p.next() % 8 / 7),
	}
	if p.next()%4 == 0 {
		m[24], m[25], m[26] = 1, 1, byte(p.next()%2)
		m = append(m, make([]byte, p.next()*4)...)
	}
	if p.next()%16 == 15 {
		m = m[:p.next()]
	}
	bytes := written(h, p.long[f], m)
	n, errno := f.Write(p.now, bytes)
	if errno == umad.OK != (n == len(bytes)) {
		p.failf("wrote %d of %d bytes and %v", n, len(bytes), errno)
	}
	long := len(m) > 26 && m[26]&1 != 0 && class == mad.ClassSubnAdm
	if errno != umad.OK || h.TimeoutMilliseconds == 0 && !long {
		return // a long message comes back though no answer is expected
	}
	a := &asked{file: f, class: mad.Class(m[1]), transaction: binary.BigEndian.Uint64(m[8:])}
	a.loose = long
	if method := mad.Method(m[3]); method.IsResponse() || method == mad.MethodTrapRepress {
		a.loose = true
	} else {
		a.transaction = p.registered[f][h.ID]<<32 | a.transaction&0xFFFFFFFF
	}
	p.open = append(p.open, a)
}

func (p *player) nextPacket() {
	var out kernel.Packet
	if p.layer.Next(p.now, &out) && len(p.left) < 64 {
		p.left = append(p.left, out)
	}
}

func (p *player) receive() {
	var in kernel.Packet
	if len(p.left) > 0 && p.next()%8 != 0 {
		in = p.left[p.next()%len(p.left)]
		in.MAD[3] ^= byte(mad.MethodResponse)
	} else {
		in.QP = uint8(p.next() % 2)
		in.MAD = [mad.Size]byte(datagram(fuzzClasses[p.next()%len(fuzzClasses)], fuzzMethods[p.next()%len(fuzzMethods)], 1<<32))
	}
	for range p.next() % 4 {
		in.MAD[p.next()%64] = byte(p.next())
	}
	p.layer.Receive(p.now, &in)
}

const plenty = 1 << 20

func (p *player) read(f *kernel.File, room int) {
	out, errno := f.Read(room)
	if errno != umad.OK {
		if errno != umad.EAGAIN && errno != umad.EIO && room == plenty {
			p.failf("read: %v", errno)
		}
		return
	}
	h, err := umad.ReadHeader(out, p.long[f])
	m := out[umad.SizeOf(p.long[f]):]
	if err != nil || len(m) < mad.HeaderSize {
		p.failf("read %d bytes", len(out))
		return
	}
	method := mad.Method(m[3])
	answers := method.IsResponse() || method == mad.MethodTrapRepress
	if h.Status == 0 && !answers {
		return
	}
	class, transaction := mad.Class(m[1]), binary.BigEndian.Uint64(m[8:])
	for _, loose := range []bool{false, true} {
		for _, a := range p.open {
			if a.file == f && a.class == class && a.transaction == transaction && a.ended == 0 && a.loose == loose {
				a.ended++
				return
			}
		}
	}
	if h.Status != 0 || !(len(m) == mad.Size && m[26]&1 != 0) { // user RMPP may get more than it asked for
		p.failf("read status %d for %#x of class %#x, which nobody asks", h.Status, transaction, uint8(class))
	}
}

func (p *player) rare(f *kernel.File) {
	switch p.next() % 16 {
	case 0:
		f.Close()
		p.forget(f)
		for i, g := range p.files {
			if f == g {
				p.files = append(p.files[:i:i], p.files[i+1:]...)
			}
		}
	case 1:
		if p.next()%8 == 0 {
			p.layer.Remove()
			for _, f := range p.files {
				p.forget(f)
			}
		}
	case 2:
		id := uint32(p.next() % 4)
		if _, errno := f.Ioctl(umad.CommandUnregister, umad.EncodeID(id)); errno == umad.OK {
			p.forgetAgent(f, p.registered[f][id])
		}
	case 3:
		f.Ioctl(uint32(p.next()), p.bytes[:min(len(p.bytes), 40)])
	case 4:
		p.layer.OpenIsSM()
	case 5:
		p.layer.CloseIsSM()
	case 6:
		p.read(f, p.next()*2)
	case 7:
		f.Poll()
		p.layer.Ready()
	}
}

// forget drops what a file asked: it gets no answers any more. What it asked
// through an agent that is gone may or may not be unread.
func (p *player) forget(f *kernel.File) {
	for _, a := range p.open {
		if a.file == f {
			a.loose = true
		}
	}
}

func (p *player) forgetAgent(f *kernel.File, agent uint64) {
	for _, a := range p.open {
		if a.file == f && (a.transaction>>32 == agent || a.transaction>>32 == 0) {
			a.loose = true
		}
	}
}

// finish lets all time pass, reads everything and looks whether each request
// has ended.
func (p *player) finish() {
	for range 200 {
		var out kernel.Packet
		for p.layer.Next(p.now, &out) {
		}
		p.now += time.Second
		p.layer.Expire(p.now)
	}
	for _, f := range p.files {
		for f.Poll()&kernel.PollIn != 0 {
			p.read(f, plenty)
		}
	}
	for _, a := range p.open {
		if a.ended == 0 && !a.loose {
			p.failf("%#x of class %#x was never answered nor given back", a.transaction, uint8(a.class))
		}
	}
	for _, f := range p.files {
		f.Close()
	}
	var out kernel.Packet
	for p.layer.Next(p.now, &out) {
	}
	if at, ok := p.layer.Deadline(); ok {
		p.failf("with nothing open it waits for %v", at)
	}
}

func play(bytes []byte) string {
	p := &player{
		tape: tape{bytes}, layer: kernel.New(kernel.Config{}), long: make(map[*kernel.File]bool),
		registered: make(map[*kernel.File]map[uint32]uint64),
	}
	p.layer.SetLMC(1)
	for len(p.bytes) > 0 && p.fault == "" {
		p.step()
	}
	p.finish()
	return p.fault
}

// FuzzLayer: any sequence of calls and bytes ends every request at most once,
// and exactly once unless its agent goes or it goes by RMPP.
func FuzzLayer(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		f.Add(tapeOf(r, 500))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		if len(bytes) > 1<<14 {
			return
		}
		if fault := play(bytes); fault != "" {
			t.Error(fault)
		}
	})
}

func tapeOf(r *rand.Rand, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

func TestRandomCalls(t *testing.T) {
	for seed := range uint64(400) {
		if fault := play(tapeOf(rand.New(rand.NewPCG(seed, 77)), 6000)); fault != "" {
			t.Fatalf("seed %d: %s", seed, fault)
		}
	}
}
