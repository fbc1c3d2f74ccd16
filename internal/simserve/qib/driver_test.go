package qib

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Where the driver of these tests has its memory.
const (
	availAt  = 0x1000
	tailAt   = 0x1100
	queueAt  = 0x2000
	eagerAt  = 0x100000
	memory   = eagerAt + egrBuffers*4096
	entries  = 16
	entryLen = 32 // words
)

// driver does with an adapter what the kernel's driver does.
type driver struct {
	*Adapter
	t          *testing.T
	memory     []byte
	interrupts int
	packets    [][]byte
	offers     []bool
}

func (d *driver) WriteMemory(at uint64, b []byte) {
	if at+uint64(len(b)) > uint64(len(d.memory)) {
		d.t.Fatalf("%d bytes are written to %#x", len(b), at)
	}
	copy(d.memory[at:], b)
}

func (d *driver) word(at int) uint64 { return binary.LittleEndian.Uint64(d.memory[at:]) }

// set writes a register, get reads one.
func (d *driver) set(at uint32, v uint64) { d.Write(at, 8, v); d.events() }
func (d *driver) get(at uint32) uint64    { return d.Read(at, 8) }

// events takes what came out.
func (d *driver) events() {
	for e, ok := d.Next(); ok; e, ok = d.Next() {
		switch e.Kind {
		case Packet:
			d.packets = append(d.packets, e.Packet)
		case Interrupt:
			if e.Address != 0xfee01004 || e.Data != 0x27 {
				d.t.Fatalf("interrupt %#x to %#x: want 0x27 to 0xfee01004", e.Data, e.Address)
			}
			d.interrupts++
		case Link:
			d.offers = append(d.offers, e.End.Polls)
		}
	}
}

// powered is an adapter that no driver has touched.
func powered(t *testing.T) *driver {
	d := &driver{t: t, memory: make([]byte, memory)}
	d.Adapter = New(Settings{GUID: 0x0011750000abcdef, Serial: "red-1"}, d)
	d.events()
	return d
}

// loaded is one whose driver has started, in the order of the kernel's, with no cable.
func loaded(t *testing.T) *driver {
	d := powered(t)
	d.slot()
	d.start()
	return d
}

// slot does what the kernel does with the device before the driver has it.
func (d *driver) slot() {
	d.WriteConfig(configBAR0, 4, 0xfe000000)
	d.WriteConfig(configCommand, 2, 0x0406)
	d.WriteConfig(configMSIAddr, 4, 0xfee01004)
	d.WriteConfig(configMSIData, 2, 0x27)
	d.WriteConfig(configMSI+2, 2, 0x81)
}

func (d *driver) start() {
	for _, clear := range []uint32{regHwErrClear, regErrClear, regIntClear} {
		d.set(clear, ^uint64(0))
	}
	d.set(regErrMask, ^uint64(0))
	d.set(0x110, 9)
	d.set(regRcvHdrCnt, entries)
	d.set(regRcvHdrEntSize, entryLen)
	d.set(regSendPIOAvail, availAt)
	for i := range uint32(egrBuffers) {
		d.Write(egrBase+8*i, 4, uint64(2<<29|(eagerAt+4096*i)>>11))
	}
	d.set(regIBCCtrl, 1100<<20)
	d.set(regControl, 0)
	d.set(regIBCCtrl, 1100<<20|1<<16) // disable, while there is no link to disable
	d.set(regControl, controlLinkEn)
	d.set(regSendCtrl, sendAvailDMA|sendEnable)
	d.set(regRcvHdrTail, tailAt)
	d.set(regRcvHdrAddr, queueAt)
	d.set(regRcvCtrl, rcvTailByDMA|rcvIntAvail0|rcvEnable0)
	d.set(userEgrHead, d.get(userEgrTail))
	d.set(userHdrHead, 1<<32|d.get(userHdrTail))
	for b := range uint64(buffers) { // the driver means bits 16 to 22
		d.set(regSendCtrl, sendAvailDMA|sendEnable|sendDisarm|b)
	}
	d.set(regIntMask, ^uint64(0))
	d.set(regIntClear, 0)
}

// active is one whose link is up.
func active(t *testing.T) *driver {
	d := loaded(t)
	d.SetPeer(polling)
	d.Advance(d.now + TrainTime)
	d.handle()
	d.set(regIBCCtrl, 1100<<20|2<<18)
	d.set(regIBCCtrl, 1100<<20|3<<18)
	d.handle()
	if got := d.State(); got != smp.PortActive {
		t.Fatalf("the link is %v: want it active", got)
	}
	return d
}

// handle is the driver's handler of interrupts for the link.
func (d *driver) handle() {
	d.events()
	d.set(regErrClear, d.get(regErrStatus))
	d.set(regIntClear, d.get(regIntStatus))
	d.interrupts = 0
}

var polling = End{Polls: true, Width: smp.LinkWidth4X, Speed: smp.LinkSpeedAll}

// buffer is the offset of a send buffer.
func buffer(i int) uint32 {
	if i < smallBuffers {
		return smallBase + uint32(i)*smallStride
	}
	return largeBase + uint32(i-smallBuffers)*largeStride
}

// send writes a packet, LRH to VCRC, to a buffer, without its checksums and size bytes at
// a time.
func (d *driver) send(i int, p []byte, size int) {
	d.write(i, p, size)
	d.events()
}

func (d *driver) write(i int, p []byte, size int) {
	p = p[:len(p)-packet.ICRCSize-packet.VCRCSize]
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(p)/4+1))
	b = append(b, p...)
	for at := 0; at < len(b); at += size {
		n := min(size, len(b)-at)
		var v [8]byte
		copy(v[:], b[at:at+n])
		d.Write(buffer(i)+uint32(at), n, binary.LittleEndian.Uint64(v[:]))
	}
}

// datagram is a packet of a queue pair for datagrams, with change made before its
// checksums.
func datagram(t *testing.T, k ib.PKey, payload int, change func(v packet.View)) []byte {
	p, v, err := packet.Append(nil, packet.OpCodeUDSendOnly, false, make([]byte, payload))
	if err != nil {
		t.Fatal(err)
	}
	v.LRH.SetDLID(2)
	v.LRH.SetSLID(1)
	v.BTH.SetPKey(k)
	for i := range v.Payload {
		v.Payload[i] = byte(i)
	}
	if change != nil {
		change(v)
	}
	if err := packet.Seal(p); err != nil {
		t.Fatal(err)
	}
	return p
}

func toVL15(v packet.View) { v.LRH.SetVL(15) }

// later is a time after d's.
func (d *driver) later(by time.Duration) { d.Advance(d.now + by); d.events() }
