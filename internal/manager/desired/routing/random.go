package routing

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// RFT turns a linear table into the entries of a random one of the given
// capacity, ordered by LID, and the port for what no entry covers. An entry
// stands for as long a run of LIDs with one exit port as its LMC can name;
// LIDs without a route get none.
//
// While the entries fit, the default port is ib.PortNone, so that the switch
// drops what it has no route for. When they do not, the exit port that takes
// most entries becomes the default and its entries are left out; LIDs without
// a route then leave by it too. It is an error when even this does not fit.
func RFT(linear []ib.PortNum, capacity int) ([]smp.RandomEntry, ib.PortNum, error) {
	entries := entriesOf(linear)
	if len(entries) <= capacity {
		return entries, ib.PortNone, nil
	}
	var uses [ib.PortNone]int
	for _, e := range entries {
		uses[e.Port]++
	}
	common := ib.PortNum(1)
	for port := common; port < ib.PortNone; port++ {
		if uses[port] > uses[common] {
			common = port
		}
	}
	all := len(entries)
	entries = slices.DeleteFunc(entries, func(e smp.RandomEntry) bool { return e.Port == common })
	if len(entries) > capacity {
		return nil, ib.PortNone, fmt.Errorf("the random forwarding table needs %d entries, %d with port %d as the default port, and has %d",
			all, len(entries), common, capacity)
	}
	return entries, common, nil
}

// entriesOf covers the routed LIDs of a table with the fewest entries.
func entriesOf(linear []ib.PortNum) []smp.RandomEntry {
	var out []smp.RandomEntry
	for lid := int(ib.LIDUnicastMin); lid < len(linear); {
		lmc := longest(linear, lid)
		if linear[lid] != ib.PortNone {
			out = append(out, smp.RandomEntry{LID: ib.LID(lid), Valid: true, LMC: lmc, Port: linear[lid]})
		}
		lid += lmc.Count()
	}
	return out
}

// longest is the largest LMC with which an entry at lid covers only LIDs of
// the same exit port.
func longest(linear []ib.PortNum, lid int) ib.LMC {
	lmc, run := ib.LMC(0), 1
	for lmc < ib.LMCMax && lid%(lmc+1).Count() == 0 && lid+(lmc+1).Count() <= len(linear) {
		for run < (lmc + 1).Count() {
			if linear[lid+run] != linear[lid] {
				return lmc
			}
			run++
		}
		lmc++
	}
	return lmc
}

// Enter writes the tables into d, each in the form that the switch has, a
// random one to its full length so that no old entry stays. The error joins
// one for each switch that does not hold its table: a linear one is cut, so
// that the LIDs beyond its capacity are unrouted there; a random one is left
// as it is.
func (t *Tables) Enter(f *observed.Fabric, d *observed.Desired) error {
	var faults []error
	for _, n := range f.Switches() {
		linear, want := t.Linear[n.Index], &d.Nodes[n.Index]
		if capacity := int(n.Switch.Info.LinearFDBCap); capacity > 0 {
			want.LFT = linear[:min(len(linear), capacity)]
			if capacity <= int(t.Top) {
				faults = append(faults, fmt.Errorf("%s: the linear forwarding table ends at LID %d, LIDs go up to %d",
					n.Name(), capacity-1, t.Top))
			}
			continue
		}
		if err := enterRandom(linear, int(n.Switch.Info.RandomFDBCap), want); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", n.Name(), err))
		}
	}
	return errors.Join(faults...)
}

func enterRandom(linear []ib.PortNum, capacity int, want *observed.DesiredNode) error {
	if capacity == 0 {
		return errors.New("the switch has no unicast forwarding table")
	}
	entries, common, err := RFT(linear, capacity)
	if err != nil {
		return err
	}
	want.RFT = append(entries, make([]smp.RandomEntry, capacity-len(entries))...)
	want.DefaultPort = common
	return nil
}
