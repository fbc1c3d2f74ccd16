package umad

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/umad"
)

// tableOnly is a machine of which nothing is asked but the time and P_Keys.
type tableOnly struct {
	System
	now   time.Duration
	keys  []ib.PKey
	reads int
}

func (m *tableOnly) Now() time.Duration { return m.now }

func (m *tableOnly) PKeys(*umad.Port) []ib.PKey {
	m.reads++
	return m.keys
}

// A packet goes with the key that it is to go with, or not at all; a key that has
// come to the table since it was read is found, and nobody makes the table be read
// over and over.
func TestKeysOfPackets(t *testing.T) {
	m := &tableOnly{keys: []ib.PKey{0x8010, 0x0020}}
	l := &Link{system: m}
	want := func(key ib.PKey, index uint16, ok bool) {
		t.Helper()
		if i, found := l.indexOf(key); found != ok || ok && i != index {
			t.Errorf("%v is at %d, %v; want %d, %v", key, i, found, index, ok)
		}
	}
	want(0, 0, true)
	want(unknownKey, 0, false)
	want(0x0010, 0, true)
	want(0x8020, 1, true)
	want(0x8030, 0, false)
	if l.keyAt(1) != 0x0020 || l.keyAt(2) != unknownKey || l.keyAt(9) != unknownKey {
		t.Errorf("at 1 %v, at 2 %v, at 9 %v", l.keyAt(1), l.keyAt(2), l.keyAt(9))
	}
	if m.reads != 1 {
		t.Errorf("the table was read %d times at once", m.reads)
	}
	m.keys = []ib.PKey{0x8010, 0x0020, 0x8030}
	want(0x8030, 0, false)
	m.now += keysLeast
	want(0x8030, 2, true)
	if l.keyAt(2) != 0x8030 {
		t.Errorf("at 2 %v", l.keyAt(2))
	}
	for range 1000 {
		want(0x8099, 0, false)
	}
	if m.reads != 2 {
		t.Errorf("the table was read %d times for a key that is not there", m.reads)
	}
	m.keys = []ib.PKey{0x8010}
	m.now += keysTime
	want(0x0020, 0, false)
	// Another key comes to the place: for a while nobody knows by which a packet came.
	m.keys = []ib.PKey{0xFFFF, 0x8010}
	l.keys.some = false
	for _, x := range []struct {
		after time.Duration
		key   ib.PKey
	}{{0, unknownKey}, {keysUncertain - 1, unknownKey}, {1, 0xFFFF}} {
		if m.now += x.after; l.keyAt(0) != x.key || l.keyAt(1) != 0x8010 {
			t.Errorf("%v after the change: %v at 0, %v at 1", x.after, l.keyAt(0), l.keyAt(1))
		}
	}
	want(0xFFFF, 0, true)
}
