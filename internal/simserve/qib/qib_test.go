package qib

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/test/need"
)

func TestConfigSpace(t *testing.T) {
	d := powered(t)
	for _, c := range []struct {
		what         string
		at           uint32
		write, after uint32
	}{
		{"vendor and device", 0x00, ^uint32(0), 0x0010_1fc1},
		{"command and status", configCommand, ^uint32(0), 0x0010_0546},
		{"BAR 0 says its size", configBAR0, ^uint32(0), 0xffe0_0000},
		{"BAR 1 is not there", configBAR0 + 4, ^uint32(0), 0},
		{"nor is an expansion ROM", 0x30, ^uint32(0), 0},
		{"MSI control", configMSI, 0xffff_0000, 0x00f1_6005},
		{"MSI data", configMSIData, ^uint32(0), 0xffff},
		{"link of the slot", configPCIe + 0x10, 0, 0x0081_0000},
	} {
		d.WriteConfig(c.at, 4, c.write)
		if got := d.ReadConfig(c.at, 4); got != c.after {
			t.Errorf("%s: %#x: want %#x", c.what, got, c.after)
		}
	}
	if got := d.ReadConfig(0x0a, 2); got != 0x0c06 {
		t.Errorf("class: %#x", got)
	}
}

func TestConstants(t *testing.T) {
	d := powered(t)
	for at, want := range map[uint32]uint64{
		0x000: 0x202010402, 0x010: 0x1000, 0x018: 5, 0x038: 0x8000, 0x040: 0x12000, 0x128: 0x54000,
		0x130: 512, 0x138: 0x14000, 0x140: 256, 0x1c8: 0x18000400100004, 0x1d0: 0x108000000840,
		0x1d8: 4<<32 | 32, 0x0d0: 1<<14 | 3<<48, 0x0a0: 0, 0x240: 0, 0x248: 0,
	} {
		if got := d.get(at); got != want {
			t.Errorf("register %#x: %#x: want %#x", at, got, want)
		}
		d.set(at, 0x5555)
		if got := d.get(at); got != want {
			t.Errorf("register %#x after a write: %#x: want %#x", at, got, want)
		}
	}
	for _, at := range []uint32{0x048, regErrMask, regSendPIOAvail, 0x300, 0x280, 0x3c0} {
		d.set(at, 0x1234_5678_9abc_def0)
		d.Write(at+4, 4, 0xffff_0000)
		if got := d.get(at); got != 0xffff_0000_9abc_def0 {
			t.Errorf("register %#x keeps %#x", at, got)
		}
		if got := d.Read(at+4, 4); got != 0xffff_0000 {
			t.Errorf("register %#x, upper half: %#x", at, got)
		}
	}
}

// lines drives the two lines of the EEPROM as the driver does, and reads data.
type lines struct {
	*driver
	direction uint64
}

func (l *lines) line(line uint64, high bool) {
	if l.direction |= line; high {
		l.direction &^= line
	}
	l.set(regGPIOOut, 0)
	l.set(regEXTCtrl, l.direction<<48)
}

func (l *lines) in() byte { return byte(l.get(regEXTStatus) >> 49 & 1) }

func (l *lines) begin(address byte) (accepted bool) {
	l.line(lineData, true)
	l.line(lineClock, true)
	l.line(lineData, false)
	for i := 7; i >= 0; i-- {
		l.line(lineClock, false)
		l.line(lineData, address>>i&1 == 1)
		l.line(lineClock, true)
	}
	l.line(lineClock, false)
	l.line(lineData, true)
	l.line(lineClock, true)
	return l.in() == 0
}

func (l *lines) next(last bool) (b byte) {
	l.line(lineClock, false)
	l.line(lineData, true)
	for range 8 {
		l.line(lineClock, true)
		b = b<<1 | l.in()
		l.line(lineClock, false)
	}
	l.line(lineData, last)
	l.line(lineClock, true)
	return b
}

func TestEEPROM(t *testing.T) {
	l := &lines{driver: powered(t)}
	if l.begin(0) {
		t.Error("an address to write to is accepted")
	}
	for range 2 {
		if !l.begin(1) {
			t.Fatal("address 0 is not accepted")
		}
		var got [eepromSize]byte
		for i := range got {
			got[i] = l.next(i == len(got)-1)
		}
		l.line(lineClock, false)
		l.line(lineData, false)
		l.line(lineClock, true)
		l.line(lineData, true)
		var sum byte
		for _, b := range got[:got[2]] {
			sum += b
		}
		if got[0] != 2 || got[2] != 82 || sum-got[1] != ^got[1] || binary.BigEndian.Uint64(got[3:]) != 0x0011750000abcdef || !bytes.Contains(got[46:78], []byte("Tested successfully")) {
			t.Errorf("EEPROM: %x", got)
		}
	}
	if !l.begin(10<<1|1) || l.next(true) != 0xef {
		t.Error("byte 10, after a start without a stop, is not that of the GUID")
	}
}

func TestLink(t *testing.T) {
	d := loaded(t)
	const cmd = 1100 << 20
	slow := End{Polls: true, Width: smp.LinkWidth12X, Speed: smp.LinkSpeedSDR}
	for _, step := range []struct {
		what   string
		do     func()
		status uint64
		offers []bool
	}{
		{"no cable", func() {}, 0x02, []bool{true}},
		{"an end of another width", func() { d.SetPeer(slow) }, 0x02, nil},
		{"an end that polls", func() { d.SetPeer(polling) }, 0x08, nil},
		{"almost trained", func() { d.later(TrainTime - 1) }, 0x08, nil},
		{"trained", func() { d.later(1) }, 0x11, nil},
		{"active before armed", func() { d.set(regIBCCtrl, cmd|3<<18) }, 0x11, nil},
		{"arm", func() { d.set(regIBCCtrl, cmd|2<<18) }, 0x21, nil},
		{"activate", func() { d.set(regIBCCtrl, cmd|3<<18) }, 0x31, nil},
		{"arm an active link", func() { d.set(regIBCCtrl, cmd|2<<18) }, 0x21, nil},
		{"a data packet arrives", func() { d.Receive(datagram(t, 0x7fff, 4, nil)) }, 0x31, nil},
		{"down", func() { d.set(regIBCCtrl, cmd|1<<18) }, 0x08, []bool{false, true}},
		{"the other end notices", func() { d.SetPeer(End{}) }, 0x02, nil},
		{"and polls", func() { d.SetPeer(polling); d.later(TrainTime) }, 0x11, nil},
		{"pulled", func() { d.SetPeer(End{}) }, 0x02, nil},
		{"put back", func() { d.SetPeer(polling); d.later(TrainTime) }, 0x11, nil},
		{"disable", func() { d.set(regIBCCtrl, cmd|1<<16) }, 0x00, []bool{false}},
		{"no link of a disabled port", func() { d.SetPeer(polling); d.later(TrainTime) }, 0x00, nil},
		{"poll", func() { d.set(regIBCCtrl, cmd|2<<16); d.later(TrainTime) }, 0x11, []bool{true}},
		{"sleep", func() { d.set(regIBCCtrl, cmd|3<<16) }, 0x05, []bool{false}},
		{"poll again", func() { d.set(regIBCCtrl, cmd|2<<16); d.later(TrainTime) }, 0x11, []bool{true}},
		{"sleep, as the driver writes it for an SMP", func() { d.set(regIBCCtrl, cmd|1<<18|3<<16) }, 0x05, []bool{false}},
		{"and poll", func() { d.set(regIBCCtrl, cmd|2<<16); d.later(TrainTime) }, 0x11, []bool{true}},
		{"down, where that is to sleep", func() { d.set(regIBCCtrl, cmd|1<<18|ibcDefaultSlp) }, 0x05, []bool{false}},
		{"LinkEn ends", func() { d.set(regControl, 0) }, 0x00, nil},
		{"commands without LinkEn", func() { d.set(regIBCCtrl, cmd|2<<16) }, 0x00, nil},
		{"loopback", func() {
			d.SetPeer(End{})
			d.set(regIBCCtrl, cmd|ibcLoopback)
			d.set(regControl, controlLinkEn)
			d.later(TrainTime)
		}, 0x11, []bool{true}},
	} {
		before := d.get(regIBCStatus) & 0x7f
		changes := d.Counter(StatusChange)
		step.do()
		d.events()
		if got := d.get(regIBCStatus) & 0x7f; got != step.status {
			t.Fatalf("%s: status %#x: want %#x", step.what, got, step.status)
		}
		if !slices.Equal(d.offers, step.offers) {
			t.Fatalf("%s: offers %v: want %v", step.what, d.offers, step.offers)
		}
		if notices := d.Counter(StatusChange) > changes; before>>4 != step.status>>4 && (!notices || d.get(regErrStatus)&errIBStatus == 0) {
			t.Fatalf("%s: the driver is not notified of the change", step.what)
		}
		d.offers = nil
	}
	if got := d.get(counterBase + uint32(LinkDowned)); got != 1 {
		t.Errorf("LinkDowned: %d: want 1, for the cable", got)
	}
}

// Two adapters on a cable have a link again after either takes it down, or both do, however
// late each learns of the other.
func TestTwoEnds(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	ends := [2]*driver{loaded(t), loaded(t)}
	var cable [2][]End // on the way to each
	for round := range 200 {
		for i, d := range ends {
			if round > 0 && r.IntN(2) == 0 {
				d.set(regIBCCtrl, 1<<18)
			}
			if i == 1 && r.IntN(4) == 0 {
				d.set(regControl, 0)
				d.set(regControl, controlLinkEn)
			}
		}
		for range 200 {
			i := r.IntN(2)
			for _, offer := range ends[i].offers {
				cable[1-i] = append(cable[1-i], End{Polls: offer, Width: defaultWidth, Speed: defaultSpeed})
			}
			if ends[i].offers = nil; len(cable[i]) > 0 {
				ends[i].SetPeer(cable[i][0])
				cable[i] = cable[i][1:]
			}
			ends[i].later(TrainTime / 50)
		}
		if ends[0].State() != smp.PortInit || ends[1].State() != smp.PortInit {
			t.Fatalf("seed %d, round %d: %v and %v: want a link", seed, round, ends[0].State(), ends[1].State())
		}
	}
}

func TestSend(t *testing.T) {
	for _, size := range []int{8, 4, 1} {
		for _, i := range []int{0, 31, 32, 35} {
			d := active(t)
			p := datagram(t, 0x8001, 2000, nil)
			d.send(i, p, size)
			if len(d.packets) != 1 || !bytes.Equal(d.packets[0], p) {
				t.Fatalf("buffer %d, %d bytes at a time: %d packets, or another", i, size, len(d.packets))
			}
			var want [availWords]uint64
			want[i/32] = 1 << (2 * (i % 32))
			if d.word(availAt) != want[0] || d.word(availAt+8) != want[1] {
				t.Errorf("buffer %d: the driver reads %#x %#x: want its generation changed", i, d.word(availAt), d.word(availAt+8))
			}
			d.send(i, p, size)
			if d.word(availAt) != 0 || d.word(availAt+8) != 0 || d.Counter(TxPkt) != 2 || d.Counter(TxDword) != uint64(2*(len(p)-2)/4) {
				t.Errorf("buffer %d: sent again, the driver reads %#x %#x, %d packets", i, d.word(availAt), d.word(availAt+8), d.Counter(TxPkt))
			}
		}
	}
}

func TestSendRefused(t *testing.T) {
	good := datagram(t, 0x8001, 100, nil)
	for _, c := range []struct {
		what    string
		before  func(d *driver)
		packet  []byte
		packets int
		given   bool // the buffer is given back
	}{
		{"active", func(*driver) {}, good, 1, true},
		{"no such lane", func(*driver) {}, datagram(t, 0x8001, 100, func(v packet.View) { v.LRH.SetVL(1) }), 0, true},
		{"a length that is wrong", func(*driver) {}, datagram(t, 0x8001, 100, func(v packet.View) { v.LRH.SetPktLen(9) }), 0, true},
		{"sending is off", func(d *driver) { d.set(regSendCtrl, sendAvailDMA) }, good, 0, false},
		{"armed", func(d *driver) { d.set(regIBCCtrl, 2<<18) }, good, 0, true},
		{"armed, an SMP", func(d *driver) { d.set(regIBCCtrl, 2<<18) }, datagram(t, 0xffff, 256, toVL15), 1, true},
		{"down", func(d *driver) { d.SetPeer(End{}) }, datagram(t, 0xffff, 256, toVL15), 0, true},
		{"frozen", func(d *driver) { d.set(regControl, controlLinkEn|controlFreeze) }, good, 0, false},
		{"no room, an SMP", func(d *driver) { d.SetReady(false) }, datagram(t, 0xffff, 256, toVL15), 1, true},
		{"no room", func(d *driver) { d.SetReady(false) }, good, 0, false},
	} {
		d := active(t)
		c.before(d)
		d.send(3, c.packet, 8)
		if given := d.word(availAt) != 0; len(d.packets) != c.packets || given != c.given {
			t.Errorf("%s: %d packets, buffer given back %v: want %d, %v", c.what, len(d.packets), given, c.packets, c.given)
		}
	}
}

// The other end has no room: packets wait, in order, and all buffers fill.
func TestBackPressure(t *testing.T) {
	d := active(t)
	d.SetReady(false)
	for i := range buffers {
		d.send(i, datagram(t, 0x8001, 4*i, nil), 8)
	}
	d.Write(buffer(7), 8, pbcLength) // a driver that writes to a buffer it does not have
	d.set(regSendCtrl, sendEnable|sendAvailDMA|sendWantInt)
	if d.get(regIntStatus)&intPioBufAvail != 0 {
		t.Error("an interrupt for a buffer, and there is none")
	}
	d.later(time.Microsecond)
	d.set(regSendCtrl, sendEnable|sendAvailDMA|sendWantInt|sendDisarm|5<<16)
	if d.get(regIntStatus)&intPioBufAvail == 0 {
		t.Error("no interrupt for the buffer that was taken back")
	}
	d.SetReady(true)
	d.events()
	if len(d.packets) != buffers-1 || d.Counter(TxStall) != 250 {
		t.Fatalf("%d packets, %d ticks of waiting: want %d and 250", len(d.packets), d.Counter(TxStall), buffers-1)
	}
	for i, p := range d.packets {
		if i >= 5 {
			i++
		}
		if !bytes.Equal(p, datagram(t, 0x8001, 4*i, nil)) {
			t.Errorf("packet %d is another", i)
		}
	}
}

func TestDisarm(t *testing.T) {
	d := active(t)
	d.Write(buffer(2), 8, 0) // the driver measures how fast it writes
	d.Write(buffer(2)+8, 8, 1)
	d.set(regSendCtrl, sendDisarm|2<<16)
	d.set(regSendCtrl, sendDisarm|3<<16)
	if got := d.word(availAt); got != 1<<4 {
		t.Errorf("after disarming a written buffer and another: %#x", got)
	}
	d.Write(buffer(4), 8, 50)
	d.set(regSendCtrl, sendEnable|sendAvailDMA|sendAbort)
	if got := d.word(availAt); got != 1<<4|1<<8 || len(d.packets) != 0 {
		t.Errorf("after an abort: %#x, %d packets", got, len(d.packets))
	}
	if got := d.get(regSendCtrl); got != sendEnable|sendAvailDMA {
		t.Errorf("SendCtrl: %#x", got)
	}
}

func TestReceive(t *testing.T) {
	spoil := func(at int) []byte {
		p := datagram(t, 0x8001, 64, nil)
		p[len(p)-at] ^= 1
		if at > packet.VCRCSize {
			packet.SealVCRC(p)
		}
		return p
	}
	with := func(change func(packet.View)) []byte { return datagram(t, 0x8001, 64, change) }
	good := with(nil)
	for _, c := range []struct {
		what    string
		packet  []byte
		counter Counter // that moves
		entry   bool
		errors  uint32
	}{
		{"data", good, RxPkt, true, 0},
		{"full member to limited", datagram(t, 0x8002, 64, nil), RxPkt, true, 0},
		{"limited to limited", datagram(t, 0x0002, 64, nil), PKeyMismatch, false, 0},
		{"another partition", datagram(t, 0x8004, 64, nil), PKeyMismatch, false, 0},
		{"P_Key 0", datagram(t, 0x8000, 64, nil), PKeyMismatch, false, 0},
		{"the default partition", datagram(t, 0x7fff, 64, nil), RxPkt, true, 0},
		{"an SMP, whatever its P_Key", datagram(t, 0x8004, 256, toVL15), RxPkt, true, 0},
		{"a wrong VCRC", spoil(1), RxVCRC, false, 0},
		{"a wrong ICRC", spoil(4), RxICRC, true, 1 << 31},
		{"too long", datagram(t, 0x8001, 4400, nil), RxMaxMinLen, false, 0},
		{"too short", good[:20], RxMaxMinLen, false, 0},
		{"another length in the LRH", with(func(v packet.View) { v.LRH.SetPktLen(30) }), RxLen, false, 0},
		{"another version", with(func(v packet.View) { v.LRH.SetLVer(1) }), BadFormat, false, 0},
		{"another lane", with(func(v packet.View) { v.LRH.SetVL(1) }), BadFormat, false, 0},
	} {
		d := active(t)
		d.set(regRcvPKey, 0x8003_0002_8001)
		d.Receive(c.packet)
		d.events()
		if d.Counter(c.counter) != 1 {
			t.Errorf("%s: counter %#x is %d: want 1", c.what, c.counter, d.Counter(c.counter))
		}
		if got := d.word(tailAt) == entryLen; got != c.entry || c.entry && d.interrupts != 1 {
			t.Errorf("%s: given to the driver %v, %d interrupts: want %v", c.what, got, d.interrupts, c.entry)
			continue
		}
		if !c.entry {
			continue
		}
		const headers = packet.LRHSize + packet.BTHSize + packet.DETHSize
		words := uint64(len(c.packet)-packet.VCRCSize) / 4
		if got, want := d.word(queueAt), words|2<<11|1<<31|uint64(c.errors)<<32; got != want {
			t.Errorf("%s: entry %#x: want %#x", c.what, got, want)
		}
		if !bytes.Equal(d.memory[queueAt+8:][:headers], c.packet[:headers]) || !bytes.HasPrefix(d.memory[eagerAt:], c.packet[headers:len(c.packet)-packet.VCRCSize]) {
			t.Errorf("%s: the packet in memory is another", c.what)
		}
	}
}

func TestReceiveFull(t *testing.T) {
	d := active(t)
	p := datagram(t, 0x7fff, 64, nil)
	for range entries {
		d.Receive(p)
	}
	if d.Counter(RingOverflow) != 1 || d.get(regErrStatus)&errRcvHdrFull == 0 || d.word(tailAt) != (entries-1)*entryLen {
		t.Errorf("one more than the queue holds: %d lost, errors %#x, tail %#x", d.Counter(RingOverflow), d.get(regErrStatus), d.word(tailAt))
	}
	d.handle()
	d.set(userHdrHead, 1<<32|3*entryLen) // three are read, and the rest is there
	if d.interrupts != 1 {
		t.Errorf("%d interrupts for what came before the driver was ready: want 1", d.interrupts)
	}
	d.set(userHdrHead, (entries-1)*entryLen)
	d.Receive(p)
	d.events()
	if d.word(tailAt) != 0 || d.interrupts != 1 {
		t.Errorf("tail %#x, %d interrupts: want the first entry again, and no interrupt that was not asked for", d.word(tailAt), d.interrupts)
	}
	for range 2 * egrBuffers { // the driver reads the queue, and gives no buffer back
		d.set(userHdrHead, d.get(userHdrTail))
		d.Receive(p)
	}
	if d.get(userEgrTail) != egrBuffers-1 || d.get(regErrStatus)&errRcvEgrFull == 0 {
		t.Errorf("buffer %d is next, errors %#x: want all buffers used", d.get(userEgrTail), d.get(regErrStatus))
	}
	d.set(userEgrHead, d.get(userEgrTail))
	d.set(userHdrHead, d.get(userHdrTail))
	before := d.get(userEgrTail)
	d.Receive(p)
	if d.get(userEgrTail) != (before+1)%egrBuffers {
		t.Error("a packet does not arrive, and there are buffers again")
	}
}

// IntClear delivers again what is left, IntMask what it lets through.
func TestInterrupts(t *testing.T) {
	d := active(t)
	d.Receive(datagram(t, 0x7fff, 64, nil))
	d.events()
	d.set(regIntClear, 0)
	d.set(regIntMask, 0)
	d.set(regIntClear, 0)
	d.set(regIntMask, intRcvAvail0)
	if d.interrupts != 3 {
		t.Errorf("%d interrupts: want 3", d.interrupts)
	}
	d.set(regIntClear, intRcvAvail0)
	d.LinkError(LinkRecovery)
	d.LinkError(SymbolError)
	d.events()
	if d.interrupts != 3 || d.get(regIntStatus) != intError || d.get(counterBase+uint32(SymbolError)) != 1 {
		t.Errorf("%d interrupts, status %#x after an error on the cable", d.interrupts, d.get(regIntStatus))
	}
}

// An error that comes while the driver handles one interrupts again: what it clears is what it has seen.
func TestErrorWhileOneIsHandled(t *testing.T) {
	d := loaded(t)
	d.LinkError(LinkRecovery)
	seen := d.get(regErrStatus)
	d.set(regErrClear, seen)
	d.LinkError(LinkRecovery)
	d.set(regIntClear, intError)
	if d.get(regIntStatus)&intError == 0 {
		t.Errorf("ErrStatus %#x, and no interrupt", d.get(regErrStatus))
	}
	d.set(regErrClear, seen)
	d.set(regIntClear, intError)
	if d.get(regIntStatus)&intError != 0 {
		t.Error("an interrupt without an error")
	}
}

func TestReset(t *testing.T) {
	d := active(t)
	d.send(3, datagram(t, 0x8001, 100, nil), 8)
	d.offers = nil
	d.set(regControl, controlReset)
	if d.get(regErrStatus) != errResetNegated || d.get(regSendCtrl) != 0 || d.Counter(TxPkt) != 0 || d.State() != smp.PortDown || !slices.Equal(d.offers, []bool{false}) {
		t.Errorf("after the reset: errors %#x, %v, offers %v", d.get(regErrStatus), d.State(), d.offers)
	}
	if d.BAR() != 0xfe000000 {
		t.Errorf("BAR 0 is at %#x", d.BAR())
	}
	d.start()
	d.later(TrainTime)
	if d.State() != smp.PortInit || d.get(regErrStatus) != errIBStatus {
		t.Errorf("started again: %v, errors %#x", d.State(), d.get(regErrStatus))
	}
	d.Reset()
	d.events()
	if d.BAR() != 0 || d.State() != smp.PortDown {
		t.Errorf("after a reset of the slot: BAR 0 at %#x, %v", d.BAR(), d.State())
	}
}

// anywhere is memory that takes everything.
type anywhere struct{}

func (anywhere) WriteMemory(uint64, []byte) {}

// Whatever a driver and a cable do, the adapter does not fail, and every packet that leaves
// is whole.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(need.Seed(t, rand.Uint64()), 0))
	for range need.Share(20, 1000) {
		d := active(t)
		d.memory, d.Adapter.memory = nil, anywhere{}
		for range 500 {
			switch r.IntN(8) {
			case 0:
				d.Write(uint32(r.IntN(endOfRegisters)), 1<<r.IntN(4), r.Uint64()>>r.IntN(64))
			case 1:
				d.Write(uint32(r.IntN(BARSize)), 1<<r.IntN(4), r.Uint64())
			case 2:
				d.Write(buffer(r.IntN(buffers))+4*uint32(r.IntN(3)), 8, uint64(r.IntN(2048)))
			case 3:
				d.send(r.IntN(buffers), datagram(t, 0x8001, 4*r.IntN(100), nil), 1<<r.IntN(4))
			case 4:
				p := datagram(t, 0x7fff, 4*r.IntN(100), nil)
				p[r.IntN(20)] ^= byte(1 << r.IntN(8))
				packet.SealVCRC(p)
				d.Receive(p[:len(p)-r.IntN(2)*r.IntN(len(p))])
			case 5:
				d.SetPeer(End{Polls: r.IntN(2) == 0, Width: smp.LinkWidth4X, Speed: smp.LinkSpeedSDR})
				d.SetReady(r.IntN(2) == 0)
			case 6:
				d.Advance(d.now + time.Duration(r.Int64N(int64(TrainTime))))
			case 7:
				d.start()
			}
			for e, ok := d.Next(); ok; e, ok = d.Next() {
				if e.Kind != Packet {
					continue
				}
				if good, err := packet.CheckICRC(e.Packet); err != nil || !good || !packet.CheckVCRC(e.Packet) {
					t.Fatalf("a packet of %d bytes with a wrong checksum: %v", len(e.Packet), err)
				}
			}
		}
	}
}
