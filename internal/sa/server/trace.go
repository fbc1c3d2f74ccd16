package server

import (
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// Trace calls emit with the devices that packets of the first path of a query
// pass, in order, both ends included. Devices that the asker does not see have
// neither names nor port numbers.
func Trace(s *Subject, q *PathQuery, emit func(*sa.TraceRecord) bool) mad.Status {
	q.One = true
	return Paths(s, q, func(r *sa.PathRecord) bool {
		if r.DGID.IsMulticast() {
			return false // a group has no one route
		}
		from, to := s.View.At(r.SLID), s.View.At(r.DLID)
		steps, _ := s.View.Route(from, to, r.DLID)
		for _, step := range steps {
			t := sa.TraceRecord{GIDPrefix: s.View.GIDPrefix, NodeType: step.Node.Type()}
			end := from
			switch step.Node {
			case to.Node:
				end = to
			case from.Node:
			default:
				end = s.View.EndOf(&step.Node.Ports[0])
			}
			if q.Sees(end) {
				t.NodeID, t.ChassisID = uint64(step.Node.GUID()), step.Node.Info.SystemImageGUID
				t.EntryPort, t.ExitPort = step.Entry, step.Exit
				if step.Entry != 0 {
					t.EntryPortID = uint64(end.GUID)
				}
				if step.Exit != 0 {
					t.ExitPortID = uint64(end.GUID)
				}
			}
			if !emit(&t) {
				break
			}
		}
		return false
	})
}
