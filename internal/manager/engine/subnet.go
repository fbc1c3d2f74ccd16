package engine

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// Subnet returns what subnet administration needs to know of the subnet: the
// fabric as it was read back and the partitions of the policy. After a takeover, until the
// first pass, that is the fabric as it was last read as standby, and of the partitions what has
// not changed since. ok is false while no policy
// stands, or while another manager is master. It is worth asking for after every Completed.
func (e *Engine) Subnet() (s observed.Subnet, ok bool) {
	stands := e.desired
	if e.standby.serves {
		stands = e.standby.ready
	} else if !e.settled {
		stands = nil
	}
	if stands == nil || !e.isMaster() {
		return observed.Subnet{}, false
	}
	s = stands.Subnet(e.known.Fences)
	if e.standby.serves && !e.unchanged(&s) {
		return observed.Subnet{}, false
	}
	s.Manager, s.Epoch = e.master.Info(), e.proof.epoch
	for p, info := range e.master.Rivals() {
		if info.GUID != 0 {
			s.Others = append(s.Others, observed.OtherManager{Port: p, Info: info})
		}
	}
	slices.SortFunc(s.Others, func(a, b observed.OtherManager) int { return cmp.Compare(a.Port.GUID, b.Port.GUID) })
	return s, true
}
