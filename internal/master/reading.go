package master

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// offClass is where a datagram has its management class.
const offClass = 1

// ReadCounters has the performance counters of the subnet read while this manager is
// master and has nothing else to do. It is called before the first packet.
func (m *Engine) ReadCounters(c perfmgr.Config) {
	c.Dropped = func(d perfmgr.Dropped) { m.tell(d) }
	m.reader = perfmgr.New(c)
}

// Counters reads the performance counters; nil where nobody asked for them.
func (m *Engine) Counters() *perfmgr.Poller { return m.reader }

// Now is the time that the engine was told last.
func (m *Engine) Now() time.Duration { return m.now }

// readSubnet tells whose counters are read: nobody's without a subnet.
func (m *Engine) readSubnet(s *observed.Subnet) {
	switch {
	case m.reader == nil:
	case s == nil:
		m.reader.Suspend()
	default:
		m.reader.SetSubnet(*s)
	}
}

// nextReading is the next request for counters. There is none while the manager has
// anything to do: what isolates goes first.
func (m *Engine) nextReading(now time.Duration, bytes *[mad.Size]byte) (to mad.Address, ok bool) {
	if m.reader == nil || !m.Settled() {
		return to, false
	}
	began := time.Now()
	if to, ok = m.reader.Next(now, bytes); ok {
		m.reader.Spent(now, time.Since(began))
	}
	return to, ok
}

// readingDue is when reading counters has something to do.
func (m *Engine) readingDue() (time.Duration, bool) {
	if m.reader == nil {
		return 0, false
	}
	return m.reader.Deadline(m.Settled())
}
