package mastership

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// doubt is a master that a manager which is new to the subnet found, and that has not proved that
// it shares the secret. One that has just begun too may have read so little of the subnet, while
// another one gave M_Keys to it, that it does not know who asks; it looks again then. So it
// is asked again until ProofGrace is over, before the subnet is left to it.
type doubt struct {
	end, next time.Duration
	under     bool // a question
}

// mayProve notes an answer of a manager in a round, and reports whether it is asked again.
func (x *Peers) mayProve(at observed.Place, r Remote) bool {
	if !x.newcomer || x.IsMaster() || r.Info.SMState != smp.SMMaster || x.election.Counts(r) {
		return false
	}
	d, again := x.doubts[at]
	if !again {
		d.end = x.clock + ProofGrace
	}
	d.next, d.under = x.clock+proofAgain, false
	if d.next > d.end {
		return false
	}
	x.doubts[at], x.round.waits[at] = d, d.next+electionWait
	return true
}

// askDoubts asks again whose time has come. What is not where it was any more has answered.
func (x *Peers) askDoubts() {
	var due []observed.Place // with every packet: only these are sorted
	for at, d := range x.doubts {
		if !d.under && x.clock >= d.next {
			due = append(due, at)
		}
	}
	slices.SortFunc(due, observed.Place.Compare)
	for _, at := range due {
		d := x.doubts[at]
		p := x.host.Facts().Fabric.At(at)
		if p == nil {
			x.round.pending--
			delete(x.round.waits, at)
			delete(x.doubts, at)
			continue
		}
		d.under = true
		x.doubts[at] = d
		x.askMember(p)
	}
}
