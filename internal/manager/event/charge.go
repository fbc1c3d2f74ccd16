// MasterWatch watches who is in charge of a subnet: whether nobody is master, or two
// managers are, or the master has changed, once or again and again, and whether partners
// have another policy.
//
// In: the managers that are known, about once a second (See). Out: events, and a
// MasterStatus for metrics.

package event

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// NoMasterGrace is how long nobody has to be master before that is told: an election takes
	// a moment.
	NoMasterGrace = 5 * time.Second
	// TwoMastersGrace is the same for two masters: in a handover both are for a moment.
	TwoMastersGrace = 3 * time.Second
	// AskMastersEvery is how often the managers are to be asked, and StaleAnswer how old an answer may
	// be that counts.
	AskMastersEvery = 10 * time.Second
	StaleAnswer     = 3 * AskMastersEvery
	// FlapChanges changes of the master within FlapTime are flapping. It has ended when
	// the master has not changed for that time.
	FlapChanges = 4
	FlapTime    = 10 * time.Minute
)

// mastersMax is how many masters an event names: any number of hosts may claim to be one.
const mastersMax = 8

// Master is a manager that is master.
type Master struct {
	Port ib.PortGUID
	Name string // what its node says of itself
	// Counts reports whether it takes part in the election.
	Counts bool
}

func (m Master) String() string { return fmt.Sprintf("%s (port %s)", m.Name, m.Port) }

// NoMaster says that no manager is master.
type NoMaster struct{ Last Master } // Last was master before; its Port is 0 for nobody

// SeveralMasters says that more than one manager is master.
type SeveralMasters struct {
	Masters []Master // the first of them
	Count   int
}

// OneMaster says that one manager alone is master again, after NoMaster or
// SeveralMasters.
type OneMaster struct{ Master Master }

// MasterChanged says that another manager is master than before.
type MasterChanged struct{ From, To Master }

// MasterFlapping says that the master changes again and again.
type MasterFlapping struct {
	Changes int
	Within  time.Duration
	Master  Master
}

func (e NoMaster) String() string {
	if e.Last.Port == 0 {
		return "ALARM: no subnet manager is master of the subnet"
	}
	return "ALARM: no subnet manager is master of the subnet; the last was " + e.Last.String()
}

func (e SeveralMasters) String() string {
	return fmt.Sprintf("ALARM: %d subnet managers are master: %s", e.Count, namedMasters(e.Masters))
}

// namedMasters names managers.
func namedMasters(list []Master) string {
	names := make([]string, 0, len(list))
	for _, m := range list {
		text := m.String()
		if !m.Counts {
			text += ", which does not count"
		}
		names = append(names, text)
	}
	return strings.Join(names, "; ")
}

func (e OneMaster) String() string { return e.Master.String() + " alone is master" }

func (e MasterChanged) String() string {
	return fmt.Sprintf("the subnet manager that is master has changed: %s, was %s", e.To, e.From)
}

func (e MasterFlapping) String() string {
	return fmt.Sprintf("ALARM: the subnet manager that is master has changed %d times within %v; now it is %s", e.Changes, e.Within, e.Master)
}

// MasterStatus is who is in charge.
type MasterStatus struct {
	// Masters is how many managers are master, Changes how often another one came to be.
	Masters  int
	Changes  uint64
	Flapping bool
	// OtherPolicies is how many managers that count have another policy than the one here.
	OtherPolicies int
}

// MasterWatch watches who is in charge. The zero value has seen nothing.
type MasterWatch struct {
	status MasterStatus
	master Master // that was alone last
	// off is since when there is none, or more than one, as count says; told, that it was
	// told, and alarmed, that one alone is to be told.
	off     time.Duration
	isOff   bool
	count   int
	told    bool
	alarmed bool
	changes []time.Duration // the last FlapChanges
	policyWatch
}

// Status is what was seen last.
func (w *MasterWatch) Status() MasterStatus { return w.status }

// See takes the managers that are known at a time; nil while the subnet was not read. It
// returns what is to be told.
func (w *MasterWatch) See(now time.Duration, known []observed.SubnetManager) (out []Event) {
	if known == nil {
		return nil
	}
	out = w.seePolicies(now, known)
	masters := mastersOf(known)
	w.status.Masters = len(masters)
	if len(masters) != 1 {
		return append(out, w.seeOff(now, masters)...)
	}
	alone := masters[0]
	if w.alarmed {
		out = append(out, OneMaster{alone})
	}
	w.isOff, w.told, w.alarmed = false, false, false
	if was := w.master; was.Port != 0 && was.Port != alone.Port {
		w.status.Changes++
		out = append(out, MasterChanged{was, alone})
		if w.changes = append(w.changes, now); len(w.changes) > FlapChanges {
			w.changes = w.changes[1:]
		}
	}
	w.master = alone
	return append(out, w.flapping(now)...)
}

// flapping looks whether the master changes too often.
func (w *MasterWatch) flapping(now time.Duration) (out []Event) {
	n := len(w.changes)
	switch {
	case n == 0:
	case w.status.Flapping && now-w.changes[n-1] >= FlapTime:
		w.status.Flapping, w.changes = false, nil
	case !w.status.Flapping && n == FlapChanges && now-w.changes[0] < FlapTime:
		w.status.Flapping = true
		out = append(out, MasterFlapping{n, now - w.changes[0], w.master})
	}
	return out
}

// seeOff handles a subnet with no master, or several.
func (w *MasterWatch) seeOff(now time.Duration, masters []Master) []Event {
	count := min(len(masters), 2)
	if !w.isOff || w.count != count {
		w.isOff, w.count, w.off, w.told = true, count, now, false
	}
	grace := NoMasterGrace
	if count > 0 {
		grace = TwoMastersGrace
	}
	if w.told || now < w.off+grace {
		return nil
	}
	w.told, w.alarmed = true, true
	if count == 0 {
		return []Event{NoMaster{w.master}}
	}
	return []Event{SeveralMasters{masters[:min(len(masters), mastersMax)], len(masters)}}
}

// mastersOf are the managers that have answered lately that they are master: those that
// count first.
func mastersOf(known []observed.SubnetManager) (out []Master) {
	for i := range known {
		m := &known[i]
		if m.IsMaster() && m.Silent <= StaleAnswer && m.State == smp.SMMaster {
			out = append(out, Master{m.Port, m.Name, m.Counts()})
		}
	}
	slices.SortStableFunc(out, func(a, b Master) int {
		if a.Counts != b.Counts {
			if a.Counts {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Port, b.Port)
	})
	return out
}
