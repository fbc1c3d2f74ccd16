package qib

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib/packet"
)

// Send buffers: small ones first in their numbering. The bases are not divisible by 8, so
// that a payload after a header of 5, 7 or 17 words is: what is not aligned, an emulator
// cuts into single bytes.
const (
	smallBuffers = 32
	largeBuffers = 4
	smallSize    = 0x840
	largeSize    = 0x1080
	smallBase    = 0x100004
	largeBase    = 0x180004
	smallStride  = pageAlign
	largeStride  = 2 * pageAlign
	buffers      = smallBuffers + largeBuffers
	// availWords is the number of 64-bit words with 2 bits for each buffer.
	availWords = (2*buffers + 63) / 64
	// pbcSize is the length of what precedes a packet in a buffer: two words, the first
	// of which has its length.
	pbcSize   = 8
	pbcLength = 0x7ff
	// stallUnit is the time of 4 bytes at the data rate, in which TxStall counts.
	stallUnit = 4 * time.Nanosecond
)

// sender is the sending half of an adapter.
type sender struct {
	data    [buffers][]byte
	written [buffers]bool
	avail   [availWords]uint64
	waiting []int // buffers whose packets wait for room at the other end, in their order
	since   time.Duration
}

// IsSendBuffer reports whether an offset in BAR 0 is inside a send buffer.
func IsSendBuffer(offset uint32) bool { b, _ := bufferAt(offset); return b >= 0 }

// bufferAt is the number of the send buffer at an offset, and where in it; -1 for none.
func bufferAt(offset uint32) (buffer, at int) {
	if n := (offset - smallBase) / smallStride; offset >= smallBase && n < smallBuffers {
		if at := (offset - smallBase) % smallStride; at < smallSize {
			return int(n), int(at)
		}
	}
	if n := (offset - largeBase) / largeStride; offset >= largeBase && n < largeBuffers {
		if at := (offset - largeBase) % largeStride; at < largeSize {
			return smallBuffers + int(n), int(at)
		}
	}
	return -1, 0
}

func sizeOf(buffer int) int {
	if buffer < smallBuffers {
		return smallSize
	}
	return largeSize
}

// store writes to a send buffer. The write of a packet's last word launches it.
func (a *Adapter) store(buffer, at, size int, v uint64) {
	s := &a.sender
	if slices.Contains(s.waiting, buffer) {
		return // it is the adapter's
	}
	b := s.data[buffer]
	if b == nil {
		b = make([]byte, largeSize+8) // a write may begin in the last bytes
		s.data[buffer] = b
	}
	s.written[buffer] = true
	for i := range size {
		b[at+i] = byte(v >> (8 * i))
	}
	words := int(binary.LittleEndian.Uint32(b) & pbcLength)
	if words == 0 || at+size != 4*(words+1) || at+size > sizeOf(buffer) || a.regs[regSendCtrl/8]&sendEnable == 0 {
		return
	}
	s.waiting = append(s.waiting, buffer)
	if len(s.waiting) == 1 {
		s.since = a.now
	}
	a.transmit()
}

// transmit sends the packets that may go.
func (a *Adapter) transmit() {
	s := &a.sender
	if a.frozen() {
		return
	}
	left := s.waiting[:0]
	for _, buffer := range s.waiting {
		words := int(binary.LittleEndian.Uint32(s.data[buffer]) & pbcLength)
		p := s.data[buffer][pbcSize : 4*(words+1)]
		isSMP := len(p) >= packet.LRHSize && p[0]>>4 == 15
		if !isSMP && !a.port.ready && a.link == linkActive {
			left = append(left, buffer)
			continue
		}
		a.emit(p, words, isSMP)
		a.release(buffer)
	}
	if s.waiting = left; len(left) > 0 {
		a.count(TxStall, uint64((a.now-s.since)/stallUnit))
		s.since = a.now
	}
}

// emit puts a packet on the wire, if the port may send it. The driver's packets end before
// the ICRC, which the length in the LRH counts.
func (a *Adapter) emit(p []byte, words int, isSMP bool) {
	if len(p) < packet.LRHSize {
		return
	}
	lrh := (*packet.LRH)(p)
	switch {
	case int(lrh.PktLen()) != words, a.link == linkDown, !isSMP && a.link != linkActive:
		return
	case !isSMP && lrh.VL() != 0:
		a.count(TxUnsupVL, 1)
		return
	}
	out := make([]byte, len(p), len(p)+packet.ICRCSize+packet.VCRCSize)
	copy(out, p)
	if lrh.LNH().IsRaw() {
		return // it has no ICRC, and the driver sends none
	}
	out, err := packet.AppendICRC(out)
	if err != nil {
		return // too short for its headers
	}
	out = packet.AppendVCRC(out)
	a.count(TxPkt, 1)
	a.count(TxDword, uint64(words))
	if a.regs[regIBCCtrl/8]&ibcLoopback != 0 {
		a.Receive(out)
		return
	}
	a.events = append(a.events, Event{Kind: Packet, Packet: out})
}

// release gives a buffer back to the driver: its generation changes.
func (a *Adapter) release(buffer int) {
	s := &a.sender
	clear(s.data[buffer][:pbcSize])
	s.written[buffer] = false
	s.avail[buffer/32] ^= 1 << (2 * (buffer % 32))
	a.showAvail()
	a.wantBuffer()
}

// showAvail writes to memory which buffers are free, if the driver wants it.
func (a *Adapter) showAvail() {
	if a.regs[regSendCtrl/8]&sendAvailDMA != 0 && !a.frozen() {
		a.writeWords(a.regs[regSendPIOAvail/8], a.sender.avail[:]...)
	}
}

// wantBuffer interrupts a driver that waits for a buffer, once there is one.
func (a *Adapter) wantBuffer() {
	if a.regs[regSendCtrl/8]&sendWantInt != 0 && len(a.sender.waiting) < buffers {
		a.latch(intPioBufAvail)
	}
}

// sendControl takes a write of SendCtrl.
func (a *Adapter) sendControl(old, v uint64) {
	if v&sendDisarm != 0 {
		// Nothing but the buffer: in the loop that disarms all of them, the driver
		// writes other bits that it does not mean.
		if b := int(v & sendBuffer >> 16); b < buffers {
			a.disarm(b)
		}
		return
	}
	a.regs[regSendCtrl/8] = v &^ (sendAbort | sendBuffer)
	if v&sendAbort != 0 {
		for b := range buffers {
			a.disarm(b)
		}
	}
	if v&^old&sendAvailDMA != 0 {
		a.showAvail()
	}
	a.wantBuffer()
}

// disarm takes back what was written to a buffer and has not left.
func (a *Adapter) disarm(buffer int) {
	s := &a.sender
	if !s.written[buffer] {
		return
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(b int) bool { return b == buffer })
	a.release(buffer)
}
