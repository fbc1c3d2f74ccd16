package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// cabling holds the list of cables and the state of learning one.
type cabling struct {
	list     *cables.List
	learning cables.Learning
	// told are the descriptions that were reported not to be those of the list.
	told map[ib.NodeGUID]string
}

// Cables is the list of cables in use; nil when the engine believes what devices report.
func (e *Engine) Cables() *cables.List { return e.cabling.list }

// SetCables replaces the list of cables. It takes effect with the next sweep.
func (e *Engine) SetCables(l *cables.List) {
	e.cabling.list, e.keys.Listed = l, true
	e.agenda.wantSweep("another list of cables")
}

// SetRoutingFile replaces the forwarding tables for routing.File. They take effect with the
// next sweep.
func (e *Engine) SetRoutingFile(t *observed.LFTs) {
	e.config.RoutingFile = t
	e.agenda.wantSweep("another file of forwarding tables")
}

// learns reports whether the next sweep, or the current one, is to learn a list of cables.
func (e *Engine) learns() bool { return e.config.LearnCables && e.cabling.list == nil }

// learnCables learns a list from the sweep that has ended, or the best of several. again
// says that the subnet is to be swept once more: for another try, or with the list.
func (e *Engine) learnCables() (again bool, err error) {
	d := e.sweep.discovery
	doubt := func(p *observed.Port) string {
		if reason, fenced := e.known.Fences[p.Place()]; fenced && strings.HasPrefix(reason, facts.CableReason) {
			return "it was fenced before: " + reason
		}
		return d.Contradiction(p)
	}
	learned, again, err := e.cabling.learning.Take(d.Fabric(), doubt, d.Disputed)
	if again {
		return true, nil
	}
	if err != nil {
		e.cabling = cabling{}
		return false, err
	}
	if e.cabling = (cabling{list: learned.List}); learned.List == nil {
		return false, nil
	}
	said := make([]string, len(learned.Left))
	for i, x := range learned.Left {
		said[i] = fmt.Sprintf("%s: %s", learned.List.Name(x.At), x.Reason)
	}
	e.emit(event.Learned{List: learned.List, Left: said})
	return learned.More, nil
}

// reconsider has the policy computed again when it withheld partitions because of open
// ports, and some of those are shut by now.
func (e *Engine) reconsider() {
	if len(e.desired.Withheld) > 0 && e.known.Fences.Open(e.fabric) < e.desired.Open {
		e.membersChanged()
	}
}

// tellDescriptions reports, once, node descriptions that differ from the list of cables.
func (e *Engine) tellDescriptions() {
	if e.cabling.list == nil {
		return
	}
	before := e.cabling.told
	e.cabling.told = facts.Renamed(e.fabric, e.cabling.list)
	for _, g := range slices.Sorted(maps.Keys(e.cabling.told)) {
		if now := e.cabling.told[g]; before[g] != now {
			d, _ := e.cabling.list.Device(g)
			e.emit(event.Warned{Text: fmt.Sprintf("%s (%v) is described as %q now: the name on the cable list counts", d.Name(), g, now)})
		}
	}
}

// fits reports whether the device that answers behind p now is worth a sweep: it was
// silent before, or the list of cables has it there. Any other could go on changing its
// reports.
func (e *Engine) fits(p *observed.Port, nodeInfo []byte) bool {
	var info smp.NodeInfo
	return !facts.Undeclared(p) || info.UnmarshalBinary(nodeInfo) == nil && e.cabling.list.Check(p.Place(), &info) == nil
}
