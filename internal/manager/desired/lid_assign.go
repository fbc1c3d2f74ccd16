// LIDs: AssignLIDs assigns them to the end ports of a subnet.
//
// In: a snapshot, the earlier assignments, and the LID mask count. Out: one
// LIDAssignment for each end port that was reached, ordered by port GUID, and one
// LIDMove for each port whose LIDs change. The same input always gives the same
// output, and an assignment that is passed back as the previous one does not change.
//
// A port gets, in this order, its earlier assignment, the LID that it holds already,
// or the lowest free LIDs. The LIDs of a port that is absent are kept for it as long
// as other LIDs are left. When two ports claim a LID, the one with the earlier
// assignment keeps it, then the one with the lower GUID; the other is moved.
//
// One LID may belong to whichever manager is master: no port is assigned it, and the
// port of the master, which has it, keeps one of its own for later.
//
// CA and router ports, and port 0 of a switch with an enhanced port 0, get
// 2^LMC consecutive LIDs, the first with its low LMC bits zero; a base switch
// port 0 gets one. LID 0 is never assigned. If LIDs run out, that is an error
// and nothing is assigned.

package desired

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// LIDAssignment is the range of LIDs of one end port: LMC.Count() of them, from
// LID up. The low LMC bits of LID are zero.
type LIDAssignment struct {
	Port *observed.Port
	LID  ib.LID
	LMC  ib.LMC
}

// Contains reports whether l is one of the assigned LIDs.
func (a LIDAssignment) Contains(l ib.LID) bool { return l>>a.LMC == a.LID>>a.LMC }

// LIDMoveReason says why a port does not keep its LID.
type LIDMoveReason uint8

// The reasons for a LIDMove.
const (
	// LIDNotUnicast: the LID, or one of the range that begins there, is not
	// between 0x0001 and 0xBFFF.
	LIDNotUnicast LIDMoveReason = iota + 1
	// LIDMisaligned: the low LMC bits of the LID are not zero.
	LIDMisaligned
	// LIDTaken: the LID, or one of the range, belongs to LIDMove.Winner.
	LIDTaken
	// LIDReserved: the LID, or one of the range, was assigned before to a port
	// that is absent now.
	LIDReserved
	// LIDReassigned: the port holds another LID than it was assigned before.
	LIDReassigned
	// LIDOfManagers: the LID, or one of the range, belongs to whichever manager is master.
	LIDOfManagers
)

// LIDMove says that a port gets another LID than it was assigned before or,
// where nothing was, than it holds.
type LIDMove struct {
	Port   *observed.Port
	From   ib.LID
	To     ib.LID
	Reason LIDMoveReason
	// Winner is the port that the LID belongs to; nil unless Reason is LIDTaken.
	Winner *observed.Port
}

// String describes the move for people.
func (m LIDMove) String() string {
	return fmt.Sprintf("%s: LID %d to %d: %s", m.Port, m.From, m.To, m.why())
}

func (m LIDMove) why() string {
	switch m.Reason {
	case LIDNotUnicast:
		return "not within the unicast range"
	case LIDMisaligned:
		return "low LMC bits are not zero"
	case LIDTaken:
		return "belongs to " + m.Winner.String()
	case LIDReserved:
		return "kept for an absent port"
	case LIDReassigned:
		return "as assigned before"
	case LIDOfManagers:
		return "it is master_sm_lid"
	}
	return "no reason"
}

// AssignLIDs gives every end port of f that was reached its LIDs. previous holds
// the base LID that each port was assigned before, and may name ports that f
// does not have. No port is assigned managers, the LID of whichever manager is master; 0
// for none. AssignLIDs fails when lmc is above ib.LMCMax or when the unicast LIDs do not
// suffice.
func AssignLIDs(f *observed.Fabric, previous map[ib.PortGUID]ib.LID, lmc ib.LMC, managers ib.LID) ([]LIDAssignment, []LIDMove, error) {
	if lmc > ib.LMCMax {
		return nil, nil, fmt.Errorf("LMC %d, want 0 to %d", lmc, ib.LMCMax)
	}
	s := newLIDSpace(f, lmc)
	if managers.IsUnicast() {
		s.owner[managers] = ofManagers
	}
	if len(s.assigned) > int(ib.LIDUnicastMax) {
		return nil, nil, s.exhausted(lmc)
	}
	for i := range s.assigned {
		if l, ok := previous[s.assigned[i].Port.GUID]; ok {
			s.claim(i, l)
		}
	}
	s.reserve(previous, lmc)
	for i, a := range s.assigned {
		if a.LID == ib.LIDReserved && heldLID(a.Port) != ib.LIDReserved {
			s.claim(i, heldLID(a.Port))
		}
	}
	// Ranges before single LIDs, which would break them up.
	for _, ranges := range []bool{true, false} {
		for i, a := range s.assigned {
			if a.LID == ib.LIDReserved && (a.LMC > 0) == ranges && !s.take(i) {
				return nil, nil, s.exhausted(lmc)
			}
		}
	}
	return s.assigned, s.moves(previous, f.Self, managers), nil
}

// heldLID is the LID that a port answered to have, 0 for none.
func heldLID(p *observed.Port) ib.LID {
	if !p.InfoRead {
		return ib.LIDReserved
	}
	return p.Info.LID
}

// Owners of a LID, besides the ports by index.
const (
	free       = int32(-1)
	absent     = int32(-2) // kept for a port that is not there
	ofManagers = int32(-3) // the LID of the manager that is master
)

// lidSpace is the LIDs while they are given out.
type lidSpace struct {
	assigned []LIDAssignment             // by port GUID; LID 0 until assigned
	owner    [ib.LIDUnicastMax + 1]int32 // index in assigned, free, absent or ofManagers
	refused  map[int]LIDMove             // first refusal of each port, by index in assigned
	lowest   [ib.LMCMax + 1]int          // no aligned range of this size is free below
}

func newLIDSpace(f *observed.Fabric, lmc ib.LMC) *lidSpace {
	s := &lidSpace{refused: make(map[int]LIDMove)}
	for i := range s.owner {
		s.owner[i] = free
	}
	ports := f.EndPorts()
	slices.SortFunc(ports, func(a, b *observed.Port) int {
		return cmp.Or(cmp.Compare(a.GUID, b.GUID), cmp.Compare(a.Node.GUID(), b.Node.GUID()), cmp.Compare(a.Num, b.Num))
	})
	s.assigned = make([]LIDAssignment, len(ports))
	for i, p := range ports {
		s.assigned[i] = LIDAssignment{Port: p, LMC: lmc}
		if p.Node.Switch != nil && !p.Node.Switch.Info.EnhancedPort0 {
			s.assigned[i].LMC = 0
		}
	}
	return s
}

// claim gives port i the range from base, or notes why it cannot have it.
func (s *lidSpace) claim(i int, base ib.LID) {
	a := &s.assigned[i]
	refusal := LIDMove{Port: a.Port, From: base}
	first, count := int(base), a.LMC.Count()
	switch {
	case !base.IsUnicast() || first+count-1 > int(ib.LIDUnicastMax):
		refusal.Reason = LIDNotUnicast
	case first%count != 0:
		refusal.Reason = LIDMisaligned
	default:
		blocker := s.blocker(first, count)
		if blocker == free {
			s.give(i, base)
			return
		}
		switch blocker {
		case absent:
			refusal.Reason = LIDReserved
		case ofManagers:
			refusal.Reason = LIDOfManagers
		default:
			refusal.Reason, refusal.Winner = LIDTaken, s.assigned[blocker].Port
		}
	}
	if _, before := s.refused[i]; !before {
		s.refused[i] = refusal
	}
}

// blocker is the owner of the first LID of a range that is not free.
func (s *lidSpace) blocker(first, count int) int32 {
	for _, o := range s.owner[first : first+count] {
		if o != free {
			return o
		}
	}
	return free
}

func (s *lidSpace) give(i int, base ib.LID) {
	a := &s.assigned[i]
	a.LID = base
	for l := range a.LMC.Count() {
		s.owner[int(base)+l] = int32(i)
	}
}

// reserve keeps what absent ports were assigned, where nobody has it. Whether
// an absent port had a range is not known: an aligned LID is taken for one.
func (s *lidSpace) reserve(previous map[ib.PortGUID]ib.LID, lmc ib.LMC) {
	present := make(map[ib.PortGUID]bool, len(s.assigned))
	for _, a := range s.assigned {
		present[a.Port.GUID] = true
	}
	for guid, base := range previous {
		if present[guid] || !base.IsUnicast() {
			continue
		}
		count := 1
		if int(base)%lmc.Count() == 0 {
			count = lmc.Count()
		}
		for l := int(base); l < int(base)+count && l < len(s.owner); l++ {
			if s.owner[l] == free {
				s.owner[l] = absent
			}
		}
	}
}

// take gives port i the lowest range that is free, LID 0 excepted, and when
// there is none the lowest that is only kept for absent ports.
func (s *lidSpace) take(i int) bool {
	lmc := s.assigned[i].LMC
	count := lmc.Count()
	for first := max(s.lowest[lmc], count); first+count <= len(s.owner); first += count {
		if s.blocker(first, count) == free {
			s.lowest[lmc] = first + count
			s.give(i, ib.LID(first))
			return true
		}
	}
	kept := false
	for l, o := range s.owner {
		if o == absent {
			s.owner[l], kept = free, true
		}
	}
	if !kept {
		return false
	}
	s.lowest = [len(s.lowest)]int{}
	return s.take(i)
}

// moves compares what every port had with what it got. That the manager's own port holds
// the managers' LID is as it should be.
func (s *lidSpace) moves(previous map[ib.PortGUID]ib.LID, self *observed.Port, managers ib.LID) []LIDMove {
	var out []LIDMove
	for i, a := range s.assigned {
		if a.Port == self && managers != ib.LIDReserved && heldLID(self) == managers {
			continue
		}
		if m, ok := s.refused[i]; ok {
			if m.To = a.LID; m.From != m.To {
				out = append(out, m)
			}
			continue
		}
		_, known := previous[a.Port.GUID]
		if had := heldLID(a.Port); known && had != ib.LIDReserved && had != a.LID {
			out = append(out, LIDMove{Port: a.Port, From: had, To: a.LID, Reason: LIDReassigned})
		}
	}
	return out
}

// exhausted is the error of LIDs that do not suffice, be it for where those lie that ports
// keep.
func (s *lidSpace) exhausted(lmc ib.LMC) error {
	ends, switches := 0, 0
	for _, a := range s.assigned {
		if a.LMC > 0 || a.Port.Node.Switch == nil {
			ends++
		} else {
			switches++
		}
	}
	if err := ib.CheckLIDs(ends, switches, lmc); err != nil {
		return err
	}
	return fmt.Errorf("no %d LIDs in a row are left (LMC %d) for one of %d end ports: the LIDs that ports keep lie between them; take a lower LMC, or forget what was assigned before",
		lmc.Count(), lmc, ends)
}

// CheckLIDs reports an error when the unicast LIDs do not suffice for the end ports of f. AssignLIDs
// may fail all the same, where LIDs that ports keep, or managers, are in the way.
func CheckLIDs(f *observed.Fabric, lmc ib.LMC) error {
	ends, switches := 0, 0
	for _, p := range f.EndPorts() {
		if s := p.Node.Switch; s == nil || s.Info.EnhancedPort0 && lmc > 0 {
			ends++
		} else {
			switches++
		}
	}
	return ib.CheckLIDs(ends, switches, lmc)
}

// EnterLIDs writes the assignments into d as wanted elements of PortInfo.
func EnterLIDs(assigned []LIDAssignment, d *observed.Desired) {
	for _, a := range assigned {
		want := d.Port(a.Port)
		want.Elements |= observed.ElementLID | observed.ElementLMC
		want.Info.LID, want.Info.LMC = a.LID, a.LMC
	}
}
