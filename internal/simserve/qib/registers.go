package qib

// BARSize is the length of BAR 0 in bytes.
const BARSize = 2 << 20

// Offsets of registers in BAR 0, 8 bytes each.
const (
	regRevision      = 0x000
	regControl       = 0x008
	regPageAlign     = 0x010
	regPortCnt       = 0x018
	regUserRegBase   = 0x038
	regCntrRegBase   = 0x040
	regIntMask       = 0x068
	regIntStatus     = 0x070
	regIntClear      = 0x078
	regErrMask       = 0x080
	regErrStatus     = 0x088
	regErrClear      = 0x090
	regHwErrStatus   = 0x0a0
	regHwErrClear    = 0x0a8
	regIBCStatus     = 0x0c0
	regIBCCtrl       = 0x0c8
	regEXTStatus     = 0x0d0
	regEXTCtrl       = 0x0d8
	regGPIOOut       = 0x0e0
	regRcvCtrl       = 0x100
	regRcvHdrCnt     = 0x118
	regRcvHdrEntSize = 0x120
	regRcvTIDBase    = 0x128
	regRcvTIDCnt     = 0x130
	regRcvEgrBase    = 0x138
	regRcvEgrCnt     = 0x140
	regRcvPKey       = 0x168
	regSendCtrl      = 0x1c0
	regSendPIOBase   = 0x1c8
	regSendPIOSize   = 0x1d0
	regSendPIOCnt    = 0x1d8
	regSendPIOAvail  = 0x1e0
	regSendBufErr0   = 0x240
	regSendBufErr1   = 0x248
	regRcvHdrAddr    = 0x280
	regRcvHdrTail    = 0x300
	endOfRegisters   = 0x400
)

// Where the rest of BAR 0 is.
const (
	userRegBase = 0x8000
	counterBase = 0x12000
	egrBase     = 0x14000
	tidBase     = 0x54000
	pageAlign   = 0x1000
)

// Registers of context 0 below userRegBase.
const (
	userHdrTail = userRegBase + 0x00
	userHdrHead = userRegBase + 0x08
	userEgrTail = userRegBase + 0x10
	userEgrHead = userRegBase + 0x18
)

const (
	contexts   = 5
	egrBuffers = 256
	tids       = 512
	// chipRevision is board 2, a QLE7140; software interface 2, which the driver asks
	// for; architecture 1; chip 4.2.
	chipRevision = 0x0000_0002_0201_0402
)

// Bits of registers.
const (
	controlReset  = 1 << 0
	controlFreeze = 1 << 1
	controlLinkEn = 1 << 2

	intRcvAvail0    = 1 << 12
	intPioBufAvail  = 1 << 29
	intError        = 1 << 31
	errRcvEgrFull   = 1 << 12
	errRcvHdrFull   = 1 << 13
	errIBStatus     = 1 << 48
	errResetNegated = 1 << 50

	rcvEnable0     = 1 << 0
	rcvIntAvail0   = 1 << 16
	rcvPKeyOff     = 1 << 30
	rcvTailByDMA   = 1 << 31
	sendAbort      = 1 << 0
	sendWantInt    = 1 << 1
	sendAvailDMA   = 1 << 2
	sendEnable     = 1 << 3
	sendBuffer     = 0x7f << 16
	sendDisarm     = 1 << 31
	ibcDefaultSlp  = 1 << 62
	ibcLoopback    = 1 << 63
	ibcCommands    = 0xf << 16
	extBISTDone    = 1 << 14
	ibcTransmitter = 3 << 30 // it is ready, and has credits
)

// initial are the registers that the driver does not change.
var initial = map[uint32]uint64{
	regRevision: chipRevision, regPageAlign: pageAlign, regPortCnt: contexts,
	regUserRegBase: userRegBase, regCntrRegBase: counterBase,
	regRcvTIDBase: tidBase, regRcvTIDCnt: tids, regRcvEgrBase: egrBase, regRcvEgrCnt: egrBuffers,
	regSendPIOBase: largeBase<<32 | smallBase, regSendPIOSize: largeSize<<32 | smallSize,
	regSendPIOCnt: largeBuffers<<32 | smallBuffers,
	regIntStatus:  0, regErrStatus: 0, regHwErrStatus: 0, regIBCStatus: 0, regEXTStatus: 0,
	regSendBufErr0: 0, regSendBufErr1: 0,
}

// A Counter counts what the driver reads as a performance counter: its offset from counterBase.
type Counter uint32

// The counters that move.
const (
	TxUnsupVL    Counter = 0x18
	TxPkt        Counter = 0x20
	TxDword      Counter = 0x30
	TxStall      Counter = 0x50 // in the time that 4 bytes take at 8 Gb/s
	RxDropped    Counter = 0x60
	RxPkt        Counter = 0x68
	RxDword      Counter = 0x78
	RxLen        Counter = 0x80
	RxMaxMinLen  Counter = 0x88
	RxICRC       Counter = 0x90
	RxVCRC       Counter = 0x98
	BadFormat    Counter = 0xa8
	LinkProblem  Counter = 0xb0
	RxEBP        Counter = 0xb8
	RxLPCRC      Counter = 0xc0
	RxBufOvfl    Counter = 0xc8
	PKeyMismatch Counter = 0xe0
	RingOverflow Counter = 0xe8
	StatusChange Counter = 0x140
	LinkRecovery Counter = 0x148
	LinkDowned   Counter = 0x150
	SymbolError  Counter = 0x158
	endCounters          = 0x200
)

// Counter is how often something happened since the adapter was last reset.
func (a *Adapter) Counter(c Counter) uint64 { return a.counters[c/8] }

func (a *Adapter) count(c Counter, n uint64) { a.counters[c/8] += n }

// Read reads size bytes, at most 8, of BAR 0 at an offset. What is not there reads as 0.
func (a *Adapter) Read(offset uint32, size int) uint64 {
	v := a.register(offset&^7) >> (8 * (offset & 7))
	if size < 8 {
		v &= 1<<(8*size) - 1
	}
	return v
}

func (a *Adapter) register(at uint32) uint64 {
	switch {
	case at == regIBCStatus:
		return ibcTransmitter | uint64(a.link)<<4 | uint64(a.training)
	case at == regEXTStatus:
		return extBISTDone | a.eeprom.levels()<<48
	case at < endOfRegisters:
		return a.regs[at/8]
	case at == userHdrTail:
		return uint64(a.ring.tail)
	case at == userHdrHead:
		return uint64(a.ring.head)
	case at == userEgrTail:
		return uint64(a.ring.egrTail)
	case at == userEgrHead:
		return uint64(a.ring.egrHead)
	case at >= counterBase && at < counterBase+endCounters:
		return a.Counter(Counter(at - counterBase))
	case at >= egrBase && at < egrBase+8*egrBuffers:
		return uint64(a.ring.buffers[(at-egrBase)/8])
	}
	return 0
}

// Write writes size bytes, at most 8, of BAR 0 at an offset. What is not there, or is only
// read, ignores it.
func (a *Adapter) Write(offset uint32, size int, v uint64) {
	if b, at := bufferAt(offset); b >= 0 {
		a.store(b, at, size, v)
		return
	}
	at := offset &^ 7
	if size < 8 { // a part of a register
		shift := 8 * (offset & 7)
		mask := uint64(1)<<(8*size) - 1
		v = a.register(at)&^(mask<<shift) | (v&mask)<<shift
	}
	switch {
	case at < endOfRegisters:
		if _, fixed := initial[at]; !fixed {
			a.writeRegister(at, v)
		}
	case at == userHdrHead:
		a.ring.head = uint32(v)
		a.ring.armed = v>>32 != 0
		a.notifyReceived()
	case at == userEgrHead:
		a.ring.egrHead = uint32(v) % egrBuffers
	case at >= egrBase && at < egrBase+8*egrBuffers:
		a.ring.buffers[(at-egrBase)/8] = uint32(v)
	}
}

// writeRegister writes one of the registers that do something.
func (a *Adapter) writeRegister(at uint32, v uint64) {
	old := a.regs[at/8]
	switch at {
	case regControl:
		a.control(old, v)
	case regIntMask:
		a.regs[at/8] = v
		a.interrupt()
	case regIntClear:
		a.regs[regIntStatus/8] &^= v
		a.interrupt()
		if v&intError != 0 {
			a.raise(a.regs[regErrStatus/8]) // one that came since the driver cleared the errors it saw
		}
	case regErrMask:
		a.regs[at/8] = v
		a.raise(a.regs[regErrStatus/8])
	case regErrClear:
		a.regs[regErrStatus/8] &^= v
	case regHwErrClear:
		a.regs[regHwErrStatus/8] &^= v
	case regIBCCtrl:
		a.regs[at/8] = v &^ ibcCommands
		a.command(v)
	case regEXTCtrl, regGPIOOut:
		a.regs[at/8] = v
		a.eeprom.drive(a.regs[regEXTCtrl/8]>>48, a.regs[regGPIOOut/8])
	case regRcvCtrl:
		a.regs[at/8] = v
		if v&^old&rcvEnable0 != 0 {
			a.ring.rewind()
		}
	case regSendCtrl:
		a.sendControl(old, v)
	default:
		a.regs[at/8] = v
	}
}

// control resets, freezes and lets links be.
func (a *Adapter) control(old, v uint64) {
	if v&controlReset != 0 {
		a.powerOn()
		a.raise(errResetNegated)
		return
	}
	a.regs[regControl/8] = v
	switch {
	case v&^old&controlLinkEn != 0:
		a.poll()
	case old&^v&controlLinkEn != 0:
		a.rest(trainDisabled)
	}
	a.transmit()
}

func (a *Adapter) frozen() bool { return a.regs[regControl/8]&controlFreeze != 0 }

// raise sets bits of ErrStatus, and the interrupt for them if one is wanted.
func (a *Adapter) raise(errors uint64) {
	a.regs[regErrStatus/8] |= errors
	if errors&a.regs[regErrMask/8] != 0 {
		a.latch(intError)
	}
}

// latch sets bits of IntStatus.
func (a *Adapter) latch(bits uint64) {
	a.regs[regIntStatus/8] |= bits
	a.interrupt()
}

// interrupt sends the interrupt again as long as something is left that is wanted.
func (a *Adapter) interrupt() {
	if a.regs[regIntStatus/8]&a.regs[regIntMask/8] == 0 {
		return
	}
	if address, data, on := a.config.msi(); on {
		a.events = append(a.events, Event{Kind: Interrupt, Address: address, Data: data})
	}
}
