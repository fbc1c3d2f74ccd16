package desired

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// PortsByLID are the ports by the LIDs that they were assigned.
func (r *Result) PortsByLID() map[ib.LID]*observed.Port {
	out := make(map[ib.LID]*observed.Port, len(r.in.EndPorts))
	for p, at := range r.LIDs() {
		for i := range at.LMC.Count() {
			out[at.LID+ib.LID(i)] = p
		}
	}
	return out
}

// LIDs are the LIDs that ports were assigned.
func (r *Result) LIDs() map[*observed.Port]observed.Assigned {
	out := make(map[*observed.Port]observed.Assigned, len(r.in.EndPorts))
	for _, p := range r.in.EndPorts {
		if want := r.Tables.Port(p); want.Elements&observed.ElementLID != 0 {
			out[p] = observed.Assigned{LID: want.Info.LID, LMC: want.Info.LMC}
		}
	}
	return out
}
