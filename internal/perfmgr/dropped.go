package perfmgr

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Dropped says that a switch port discarded packets because of partition enforcement or a raw
// filter. At the exit no trap reports that, and no violation is counted (SW-23).
type Dropped struct {
	Port    *observed.Port
	Counter Counter // PortXmitConstraintErrors, at the exit, or PortRcvConstraintErrors, on arrival
	// Packets is how many since the reading before, or since the counter was set back. Stuck
	// reports whether the counter has stopped: then there may be more.
	Packets uint64
	Stuck   bool
}

// String is a line of the log.
func (d Dropped) String() string {
	way := "at the exit"
	if d.Counter == PortRcvConstraintErrors {
		way = "on arrival"
	}
	least, packets := "", "packets"
	if d.Stuck {
		least = "at least "
	}
	if d.Packets == 1 {
		packets = "packet"
	}
	return fmt.Sprintf("%s: dropped %s%d %s %s, by partition enforcement or a raw filter (%s)", d.Port, least, d.Packets, packets, way, d.Counter)
}

var constraintErrors = [...]Counter{PortXmitConstraintErrors, PortRcvConstraintErrors}

// drops are what the constraintErrors of a port showed last.
type drops struct {
	read  set
	value [len(constraintErrors)]uint64
}

// tellDropped enters the counters shown, and reports those that have risen. The first reading of a
// port reports nothing: it is not known since when its counters have counted.
func (p *Poller) tellDropped(a *agent, q *port, shown set) {
	for i, c := range constraintErrors {
		if !shown.has(c) || !q.known.has(c) {
			continue
		}
		n, before := q.value[c], q.drops.value[i]
		if n < before {
			before = 0
		}
		first := !q.drops.read.has(c)
		q.drops.read, q.drops.value[i] = q.drops.read|1<<c, n
		if at := p.port(a, q.num); !first && n > before && at != nil && p.dropped != nil {
			p.dropped(Dropped{Port: at, Counter: c, Packets: n - before, Stuck: q.stuck.has(c)})
		}
	}
}

// port is a port of a switch, as the subnet has it; nil where it is none.
func (p *Poller) port(a *agent, num ib.PortNum) *observed.Port {
	if !p.some {
		return nil
	}
	at := p.subnet.Fabric.At(observed.Place{Node: a.at.Node, Port: num})
	if at == nil || at.Node.Switch == nil {
		return nil
	}
	return at
}
