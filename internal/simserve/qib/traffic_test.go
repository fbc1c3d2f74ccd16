package qib

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/test/need"
)

// own are the P_Keys that each driver writes to its adapter.
const own = 0x8003_0002_8001

// egrSpare is how many buffers for payloads a driver gives its adapter, but for one: few, so that they run out.
const egrSpare = 17

// station is an adapter with its driver, and what follows for its packets from what was done to it.
type station struct {
	*driver
	unloaded, busy, frozen, noRoom bool
	head, egrHead                  uint64
	free                           [2]uint64 // what availAt has when all send buffers are the driver's
	offered                        End
	coming                         []any    // on the cable to it: an End or a packet
	waiting                        [][]byte // to leave
	expected                       [][]byte // in its memory, not read yet
	received                       int
}

// pair are two stations with a cable.
type pair struct {
	t      *testing.T
	r      *rand.Rand
	ends   [2]*station
	pulled bool
	sent   uint32
	story  []string
}

func (s *station) WriteMemory(at uint64, b []byte) {
	if s.unloaded {
		s.t.Errorf("%d bytes are written to %#x, and there is no driver", len(b), at)
	}
	s.driver.WriteMemory(at, b)
}

// begin loads the driver.
func (s *station) begin() {
	s.unloaded, s.busy, s.frozen = false, false, false
	clear(s.memory[availAt:queueAt])
	s.start()
	s.set(regRcvPKey, own)
	s.head, s.egrHead = s.get(userHdrTail), s.get(userEgrTail)+egrSpare
	s.set(userEgrHead, s.egrHead)
	s.free = [2]uint64{s.word(availAt), s.word(availAt + 8)}
	s.waiting, s.expected = nil, nil
}

// end unloads it.
func (s *station) end() {
	s.set(regSendCtrl, sendAbort|sendAvailDMA)
	s.set(regSendCtrl, 0)
	s.set(regRcvCtrl, 0)
	s.set(regIntMask, 0)
	s.set(regControl, 0)
	s.unloaded, s.waiting, s.expected = true, nil, nil
}

// takes reports whether the rules have a packet arrive in memory.
func (s *station) takes(p []byte) bool {
	k := pkeyOf(p)
	up := s.State() >= smp.PortArmed || s.State() == smp.PortInit && p[0]>>4 == 15
	spare := (s.egrHead - s.get(userEgrTail)) % egrBuffers
	return !s.unloaded && !s.frozen && up && len(s.expected) < entries-1 && spare > 1 &&
		(p[0]>>4 == 15 || k == 0x8001 || k == 0x8002 || k == 0x7fff)
}

// leaves are the packets that are to leave now, in their order.
func (s *station) leaves() (out [][]byte) {
	if s.frozen {
		return nil
	}
	stay := s.waiting[:0]
	for _, p := range s.waiting {
		switch data := p[0]>>4 != 15; {
		case data && s.State() == smp.PortActive && s.noRoom:
			stay = append(stay, p)
		case s.State() == smp.PortActive || !data && s.State() != smp.PortDown:
			out = append(out, p)
		}
	}
	s.waiting = stay
	return out
}

// do does something to a station, which puts what has to leave, and nothing else, onto the cable.
func (p *pair) do(i int, what string, step func(s *station)) {
	s, other := p.ends[i], p.ends[1-i]
	p.story = append(p.story, fmt.Sprint(i, ":", what))
	step(s)
	s.events()
	want := s.leaves()
	for n := range max(len(want), len(s.packets)) {
		if n >= len(want) || n >= len(s.packets) || !bytes.Equal(want[n], s.packets[n]) {
			p.t.Fatalf("%d packets leave, want %d, and number %d is another", len(s.packets), len(want), n)
		}
	}
	for _, polls := range s.offers {
		s.offered = End{Polls: polls, Width: defaultWidth, Speed: defaultSpeed}
		if !p.pulled {
			other.coming = append(other.coming, s.offered)
		}
	}
	if !p.pulled {
		for _, sent := range s.packets {
			other.coming = append(other.coming, sent)
		}
	}
	s.packets, s.offers = nil, nil
	used := bits.OnesCount64(s.word(availAt)^s.free[0]) + bits.OnesCount64(s.word(availAt+8)^s.free[1])
	if !s.unloaded && !s.frozen && used != len(s.waiting) {
		p.t.Fatalf("%d send buffers are the adapter's, with %d packets", used, len(s.waiting))
	}
}

// arrive brings a station the next thing on the cable.
func (p *pair) arrive(i int) {
	s := p.ends[i]
	if len(s.coming) == 0 {
		return
	}
	next := s.coming[0]
	s.coming = s.coming[1:]
	if e, is := next.(End); is {
		p.do(i, "end", func(s *station) { s.SetPeer(e) })
		return
	}
	packet := next.([]byte)
	if s.takes(packet) {
		s.expected = append(s.expected, packet)
	}
	p.do(i, "packet", func(s *station) { s.Receive(packet) })
}

// handle is the driver's handler of interrupts: it reads what it is told of, and gives the buffers
// back or not.
func (p *pair) handle(i int) {
	s := p.ends[i]
	if s.interrupts == 0 || s.busy || s.unloaded {
		return
	}
	s.interrupts = 0
	status, errors := s.get(regIntStatus), s.get(regErrStatus)
	p.do(i, "interrupt", func(s *station) { s.set(regIntClear, status); s.set(regErrClear, errors) })
	if status&intRcvAvail0 == 0 && errors&errRcvEgrFull == 0 {
		return
	}
	tail := s.word(tailAt)
	for ; s.head != tail && p.r.IntN(8) > 0; s.head = (s.head + entryLen) % (entries * entryLen) {
		entry := s.memory[queueAt+4*s.head:]
		flags := binary.LittleEndian.Uint32(entry)
		headers := packet.LRHSize + packet.BTHSize + packet.DETHSize
		got := append([]byte(nil), entry[8:8+headers]...)
		got = append(got, s.memory[eagerAt+4096*(flags>>16&0x7ff):][:int(flags&0x7ff)*4-headers]...)
		if len(s.expected) == 0 || !bytes.Equal(got, s.expected[0][:len(s.expected[0])-packet.VCRCSize]) {
			p.t.Fatalf("a packet is in memory, of %d bytes, and another is to come of %d", len(got), len(s.expected))
		}
		s.expected = s.expected[1:]
		s.received++
	}
	if errors&errRcvEgrFull != 0 || p.r.IntN(2) == 0 {
		s.egrHead = (s.get(userEgrTail) + egrSpare) % egrBuffers
	}
	p.do(i, "read", func(s *station) { s.set(userEgrHead, s.egrHead); s.set(userHdrHead, 1<<32|s.head) })
}

// send sends a packet, if a buffer is free.
func (p *pair) send(i int) {
	s := p.ends[i]
	if s.unloaded {
		return
	}
	b := p.r.IntN(buffers)
	if bit := uint64(1) << (2 * (b % 32)); s.word(availAt+8*(b/32))&bit != s.free[b/32]&bit {
		return
	} else {
		s.free[b/32] ^= bit
	}
	p.sent++
	keys := []ib.PKey{0x8001, 0x8002, 0x0002, 0x8004, 0x7fff}
	out := datagram(p.t, keys[p.r.IntN(len(keys))], 4+4*p.r.IntN(50), func(v packet.View) {
		binary.BigEndian.PutUint32(v.Payload, p.sent)
		if p.r.IntN(4) == 0 {
			v.LRH.SetVL(15)
		}
	})
	s.waiting = append(s.waiting, out)
	p.do(i, "send", func(s *station) { s.driver.write(b, out, 8) })
}

func (p *pair) pull(pulled bool) {
	p.pulled = pulled
	for i, s := range p.ends {
		offer := p.ends[1-i].offered
		if s.coming = nil; pulled {
			offer = End{}
		}
		p.do(i, fmt.Sprint("pulled ", pulled), func(s *station) { s.SetPeer(offer) })
	}
}

// manage is a subnet manager's step.
func (p *pair) manage(i int) {
	switch p.ends[i].State() {
	case smp.PortInit:
		p.do(i, "arm", func(s *station) { s.set(regIBCCtrl, 1100<<20|2<<18) })
	case smp.PortArmed:
		p.do(i, "activate", func(s *station) { s.set(regIBCCtrl, 1100<<20|3<<18) })
	}
}

// step does one thing of those that happen.
func (p *pair) step() {
	i := p.r.IntN(2)
	s := p.ends[i]
	switch n := p.r.IntN(1000); {
	case n < 270:
		p.send(i)
	case n < 550:
		p.arrive(i)
	case n < 720:
		p.handle(i)
	case n < 810:
		p.manage(i)
	case n < 890:
		p.do(i, "later", func(s *station) { s.later(TrainTime / 2) })
	case n < 910:
		s.busy = p.flips(s.busy)
	case n < 930 && !s.unloaded:
		p.do(i, "room", func(s *station) { s.noRoom = p.flips(s.noRoom); s.SetReady(!s.noRoom) })
	case n < 950 && !s.unloaded:
		p.do(i, "freeze", func(s *station) {
			s.frozen = p.flips(s.frozen)
			s.set(regControl, map[bool]uint64{true: controlLinkEn | controlFreeze, false: controlLinkEn}[s.frozen])
		})
	case n < 970:
		if pull := p.flips(p.pulled); pull != p.pulled {
			p.pull(pull)
		}
	case n < 990 && s.unloaded:
		p.do(i, "load", (*station).begin)
	case n == 990 && !s.unloaded:
		p.do(i, "unload", (*station).end)
	case n < 992 && !s.unloaded:
		p.do(i, "down", func(s *station) { s.set(regIBCCtrl, 1100<<20|1<<18) })
	case n == 992:
		p.do(i, "chip reset", func(s *station) { s.set(regControl, controlReset); s.begin() })
	case n == 993:
		p.do(i, "slot reset", func(s *station) { s.unloaded = true; s.Reset(); s.slot(); s.begin() })
	}
}

// flips begins something that is wrong, seldom, or ends it.
func (p *pair) flips(on bool) bool { return !on && p.r.IntN(8) == 0 }

// settle has all be well again: the link comes up, and everything arrives.
func (p *pair) settle() {
	p.pull(false)
	for i, s := range p.ends {
		if s.unloaded {
			p.do(i, "load", (*station).begin)
		}
		s.busy = false
		p.do(i, "thaw", func(s *station) { s.frozen = false; s.set(regControl, controlLinkEn) })
		p.do(i, "room", func(s *station) { s.noRoom = false; s.SetReady(true) })
	}
	for n := range 4 * entries {
		for i := range p.ends {
			for range 4 {
				p.arrive(i)
			}
			p.do(i, "later", func(s *station) { s.later(TrainTime / 4) })
			if n > entries {
				p.manage(i)
			}
			for range entries { // a driver that holds buffers gives them back in the end
				p.handle(i)
			}
		}
	}
}

// Two adapters on a cable, of which drivers are loaded and unloaded, that are reset, frozen, unplugged,
// not read from and kept from sending: every packet leaves or arrives by the rules, once, in its order
// and whole, and after all of it the next ones do.
func TestTraffic(t *testing.T) {
	seed := need.Seed(t, rand.Uint64())
	var memories [2][]byte
	received := 0
	for n := range need.Share(50, 1000) {
		p := &pair{t: t, r: rand.New(rand.NewPCG(seed, uint64(n)))}
		for i := range p.ends {
			if memories[i] == nil {
				memories[i] = make([]byte, memory)
			}
			s := &station{driver: &driver{t: t, memory: memories[i]}}
			s.Adapter = New(Settings{GUID: 0x0011750000abcdef}, s)
			p.ends[i] = s
			s.slot()
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p.t = t
			defer func() {
				if t.Failed() {
					t.Log(p.story)
				}
			}()
			for i := range p.ends {
				p.ends[i].t = t
				p.do(i, "load", (*station).begin)
			}
			p.settle()
			for range 400 {
				p.step()
			}
			p.settle()
			for i, s := range p.ends {
				before := s.received
				for range 100 {
					p.send(1 - i)
					p.arrive(i)
					p.handle(i)
				}
				if s.received < before+20 {
					t.Errorf("end %d is %v, the other %v, and of 100 packets %d arrive", i, s.State(), p.ends[1-i].State(), s.received-before)
				}
				received += s.received
			}
		})
	}
	t.Logf("%d packets arrived", received)
}
