package qib

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// Fields of an entry of the receive header queue.
const (
	entryIB        = 2 << 11 // a packet that the chip does not interpret
	entryEgrShift  = 16
	entryUsesEgr   = 1 << 31
	entryErrorICRC = 1 << 31 // in its second word

	entryFlags = 8 // bytes before the headers

	egrAddress = 1<<29 - 1 // of an eager buffer, in units of 2 KiB
	egrSize    = 29        // where its size is: 1 for 2 KiB, 2 for 4 KiB
)

// ring is the receiving half of an adapter: the queue of headers and the eager buffers of
// context 0.
type ring struct {
	tail, head       uint32 // in words
	armed            bool   // the driver wants an interrupt for the next packet
	egrTail, egrHead uint32
	buffers          [egrBuffers]uint32
}

// rewind begins again at the first entry and buffer.
func (r *ring) rewind() { *r = ring{buffers: r.buffers} }

// Receive takes a packet from the cable, LRH to VCRC. The adapter does not keep it.
func (a *Adapter) Receive(p []byte) {
	if a.training != trainUp || a.frozen() || !a.intact(p) {
		return
	}
	lrh := (*packet.LRH)(p)
	isSMP := lrh.VL() == 15
	a.count(RxPkt, 1)
	a.count(RxDword, uint64(lrh.PktLen()))
	if !isSMP {
		switch a.link {
		case linkInit:
			a.count(RxDropped, 1)
			return
		case linkArmed: // the other end is active already
			a.setLink(linkActive)
		}
	}
	headers := headerLength(p)
	if headers == 0 {
		a.count(BadFormat, 1)
		return
	}
	if !isSMP && !a.accepts(pkeyOf(p)) {
		a.count(PKeyMismatch, 1)
		return
	}
	var errors uint32
	if good, err := packet.CheckICRC(p); err != nil || !good {
		a.count(RxICRC, 1)
		errors = entryErrorICRC
	}
	a.deliver(p[:headers], p[headers:len(p)-packet.VCRCSize], errors)
}

// intact reports whether a packet is one that the link layer passes on, and counts what
// is wrong with it.
func (a *Adapter) intact(p []byte) bool {
	longest := int(a.regs[regIBCCtrl/8] >> 20 & 0x7ff)
	switch {
	case len(p) < packet.LRHSize+packet.BTHSize+packet.ICRCSize+packet.VCRCSize:
		a.count(RxMaxMinLen, 1)
		return false
	case !packet.CheckVCRC(p):
		a.count(RxVCRC, 1)
		return false
	}
	lrh := (*packet.LRH)(p)
	words := int(lrh.PktLen())
	switch {
	case lrh.LVer() != 0 || lrh.VL() != 0 && lrh.VL() != 15 || lrh.LNH().IsRaw() || lrh.VL() == 15 && lrh.LNH() != packet.LNHLocal:
		a.count(BadFormat, 1)
	case 4*words+packet.VCRCSize != len(p):
		a.count(RxLen, 1)
	case longest != 0 && words > longest:
		a.count(RxMaxMinLen, 1)
	default:
		return true
	}
	return false
}

func bthAt(p []byte) int {
	if (*packet.LRH)(p).LNH() == packet.LNHGlobal {
		return packet.LRHSize + packet.GRHSize
	}
	return packet.LRHSize
}

func pkeyOf(p []byte) ib.PKey { return (*packet.BTH)(p[bthAt(p):]).PKey() }

// headerLength is the number of bytes before the payload, 0 when the packet is too short
// for the headers that it has.
func headerLength(p []byte) int {
	n := bthAt(p) + packet.BTHSize
	if n > len(p) {
		return 0
	}
	n += (*packet.BTH)(p[bthAt(p):]).OpCode().Headers().Size()
	if n+packet.ICRCSize+packet.VCRCSize > len(p) {
		return 0
	}
	return n
}

// accepts reports whether a P_Key matches one of the four of the register. The default
// key always does: the driver does not put it there.
func (a *Adapter) accepts(k ib.PKey) bool {
	const base, full = 0x7fff, 0x8000
	if a.regs[regRcvCtrl/8]&rcvPKeyOff != 0 || k&base == base {
		return true
	}
	for keys := a.regs[regRcvPKey/8]; keys != 0; keys >>= 16 {
		if mine := ib.PKey(keys); mine&base != 0 && mine&base == k&base && (mine|k)&full != 0 {
			return true
		}
	}
	return false
}

// deliver puts a packet into memory: its headers in the queue, the rest in a buffer.
func (a *Adapter) deliver(headers, rest []byte, errors uint32) {
	r := &a.ring
	control := a.regs[regRcvCtrl/8]
	size := uint32(a.regs[regRcvHdrEntSize/8])
	end := uint32(a.regs[regRcvHdrCnt/8]) * size
	if control&rcvEnable0 == 0 || end == 0 || 4*int(size) < entryFlags+len(headers) {
		a.count(RxDropped, 1)
		return
	}
	next := r.tail + size
	if next >= end {
		next = 0
	}
	if next == r.head {
		a.count(RingOverflow, 1)
		a.raise(errRcvHdrFull)
		return
	}
	if (r.egrTail+1)%egrBuffers == r.egrHead {
		a.count(RxDropped, 1)
		a.raise(errRcvEgrFull)
		return
	}
	tid := r.buffers[r.egrTail]
	// What is longer than a buffer can only be the ICRC, which nobody reads.
	a.writeMemory(uint64(tid&egrAddress)<<11, rest[:min(len(rest), 1024<<(tid>>egrSize))])
	words := uint32(len(headers)+len(rest)) / 4
	entry := binary.LittleEndian.AppendUint32(make([]byte, 0, entryFlags+len(headers)), words|entryIB|r.egrTail<<entryEgrShift|entryUsesEgr)
	entry = binary.LittleEndian.AppendUint32(entry, errors)
	a.writeMemory(a.regs[regRcvHdrAddr/8]+4*uint64(r.tail), append(entry, headers...))
	r.egrTail = (r.egrTail + 1) % egrBuffers
	r.tail = next
	if control&rcvTailByDMA != 0 {
		a.writeWords(a.regs[regRcvHdrTail/8], uint64(r.tail))
	}
	a.notifyReceived()
}

// notifyReceived interrupts a driver that waits for packets, once for all that are there.
func (a *Adapter) notifyReceived() {
	if r := &a.ring; r.armed && r.tail != r.head && a.regs[regRcvCtrl/8]&rcvIntAvail0 != 0 {
		r.armed = false
		a.latch(intRcvAvail0)
	}
}
