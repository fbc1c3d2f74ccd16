package qib

import "encoding/binary"

// The memory with the adapter's GUID: two lines, of which each side pulls low or releases.
const (
	lineClock = 1 << 0
	lineData  = 1 << 1

	eepromSize   = 128
	eepromLength = 82
)

type eepromState uint8

const (
	eepromIdle eepromState = iota
	eepromAddress
	eepromAccept // we acknowledge the address
	eepromSend
	eepromListen // the host acknowledges, if it wants more
)

// eeprom is that memory, read bit by bit.
type eeprom struct {
	content [eepromSize]byte
	state   eepromState
	clock   bool // levels of the host, true for released
	data    bool
	low     bool // we pull data low
	bits    int
	shift   byte
	at      int
	more    bool
}

// contentOf is what the driver reads: version, checksum, length, GUID, count of GUIDs,
// serial number, dates, and what it was tested for.
func contentOf(s Settings) (c [eepromSize]byte) {
	c[0], c[2] = 2, eepromLength
	binary.BigEndian.PutUint64(c[3:], uint64(s.GUID))
	c[11] = 1
	copy(c[12:24], s.Serial)
	copy(c[46:78], "Tested successfully")
	var sum byte
	for i, b := range c[:eepromLength] {
		if i != 1 {
			sum += b
		}
	}
	c[1] = ^sum
	return c
}

// release is the state with both lines released by everyone.
func (e *eeprom) release() { *e = eeprom{content: e.content, clock: true, data: true} }

// levels are those of the lines.
func (e *eeprom) levels() uint64 {
	var v uint64
	if e.clock {
		v |= lineClock
	}
	if e.data && !e.low {
		v |= lineData
	}
	return v
}

// drive takes what the host does: a line is low that it drives, with level 0.
func (e *eeprom) drive(direction, out uint64) {
	low := direction &^ out
	clock, data := low&lineClock == 0, low&lineData == 0
	was, before := e.clock, e.data
	e.clock, e.data = clock, data
	switch {
	case was && clock && before && !data: // start
		e.state, e.bits, e.shift, e.low = eepromAddress, 0, 0, false
	case was && clock && !before && data: // stop
		e.state, e.low = eepromIdle, false
	case !was && clock:
		e.rise()
	case was && !clock:
		e.fall()
	}
}

// rise samples data, when the clock rises.
func (e *eeprom) rise() {
	switch e.state {
	case eepromAddress:
		e.shift <<= 1
		if e.data {
			e.shift |= 1
		}
		e.bits++
	case eepromSend:
		e.bits++
	case eepromListen:
		e.more = !e.data
	}
}

// fall changes data, when the clock falls.
func (e *eeprom) fall() {
	switch {
	case e.state == eepromAddress && e.bits == 8:
		if e.shift&1 == 0 { // it is only read
			e.state = eepromIdle
			return
		}
		e.state, e.low, e.at = eepromAccept, true, int(e.shift>>1)
	case e.state == eepromAccept:
		e.send()
	case e.state == eepromSend && e.bits == 8:
		e.state, e.low = eepromListen, false
	case e.state == eepromSend:
		e.show()
	case e.state == eepromListen && e.more:
		e.at = (e.at + 1) % eepromSize
		e.send()
	case e.state == eepromListen:
		e.state, e.low = eepromIdle, false
	}
}

func (e *eeprom) send() {
	e.state, e.bits = eepromSend, 0
	e.show()
}

// show puts the next bit on the line.
func (e *eeprom) show() { e.low = e.content[e.at]<<e.bits&0x80 == 0 }
