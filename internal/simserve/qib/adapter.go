package qib

import (
	"encoding/binary"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// Memory is that of the machine in which the adapter is, by physical address. Where there
// is none, a write is lost, and the adapter does not notice.
type Memory interface {
	WriteMemory(address uint64, b []byte)
}

// Settings are what differs between adapters.
type Settings struct {
	// GUID is that of the node and of its port. The driver takes one of which bytes 0 to 2
	// are 0, and 3 and 4 are not, for one of an old format, and changes it.
	GUID   ib.NodeGUID
	Serial string // at most 12 characters
	// End is what the port offers the other end; the zero value for 1x and 4x, SDR.
	End End
}

// EventKind says what an Event is.
type EventKind uint8

const (
	// Packet is a packet that goes out by the port.
	Packet EventKind = iota
	// Interrupt is a message signaled interrupt: a write of Data, 4 bytes, to Address.
	Interrupt
	// Link is a change of what the port offers the other end.
	Link
)

// Event is something that comes out of an adapter.
type Event struct {
	Kind    EventKind
	Packet  []byte // LRH to VCRC; the receiver may keep it
	Address uint64
	Data    uint32
	End     End
}

// Adapter is one adapter. It is not safe for concurrent use.
type Adapter struct {
	settings Settings
	memory   Memory
	now      time.Duration
	config   configSpace
	regs     [endOfRegisters / 8]uint64
	counters [endCounters / 8]uint64
	eeprom   eeprom
	ring     ring
	sender   sender
	port
	events []Event
}

// New is an adapter that was just powered on, with no cable.
func New(s Settings, m Memory) *Adapter {
	if s.End.Width == 0 {
		s.End = End{Width: defaultWidth, Speed: defaultSpeed}
	}
	a := &Adapter{settings: s, memory: m}
	a.eeprom.content = contentOf(s)
	a.port.ready = true
	a.Reset()
	return a
}

// Reset resets the adapter as its slot does: everything is as after power came on. The
// cable stays, and time.
func (a *Adapter) Reset() {
	a.config = newConfigSpace()
	a.powerOn()
}

// powerOn resets all but the PCI configuration space, as the chip's own reset does.
func (a *Adapter) powerOn() {
	if a.polls() {
		a.offer(false)
	}
	a.training, a.link = trainDisabled, linkDown
	a.regs, a.counters = [endOfRegisters / 8]uint64{}, [endCounters / 8]uint64{}
	for at, v := range initial {
		a.regs[at/8] = v
	}
	a.ring, a.sender = ring{}, sender{}
	a.eeprom.release()
}

// Advance moves time on. What was due by then happens.
func (a *Adapter) Advance(now time.Duration) {
	a.now = max(a.now, now)
	if due, ok := a.Deadline(); ok && due <= a.now {
		a.trained()
	}
}

// Next takes the event that came first, and reports whether there was one.
func (a *Adapter) Next() (Event, bool) {
	if len(a.events) == 0 {
		return Event{}, false
	}
	e := a.events[0]
	if a.events = a.events[1:]; len(a.events) == 0 {
		a.events = nil
	}
	return e, true
}

// writeWords writes 64-bit words to memory, if the adapter may.
func (a *Adapter) writeWords(address uint64, words ...uint64) {
	b := make([]byte, 0, 64)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	a.writeMemory(address, b)
}

func (a *Adapter) writeMemory(address uint64, b []byte) {
	if a.config.isMaster() {
		a.memory.WriteMemory(address, b)
	}
}
