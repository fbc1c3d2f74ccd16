package watch

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// IsOfManager reports whether a trap tells of a subnet manager's priority, which
// none but a manager knows.
func IsOfManager(n *smp.Notice) bool {
	details, _ := n.TypedDetails()
	d, ok := details.(*smp.LocalChangeDetails)
	return ok && d.OtherLocalChanges && d.SMPriorityChange
}

// Redirected is the answer to a trap by a directed route to the agent of a switch
// that is guarded, under its key.
func Redirected(reply mad.SMP, s *observed.Port) mad.SMP {
	reply.Class, reply.MKey = mad.ClassSubnDirected, s.Key
	reply.DrSLID, reply.DrDLID = ib.LIDPermissive, ib.LIDPermissive
	reply.HopPointer, reply.HopCount = 0, uint8(len(s.Path))
	for i, num := range s.Path {
		reply.InitialPath[i+1] = byte(num)
	}
	return reply
}
