package desired

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
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

// Exit is the port by which a switch is to send a LID; ib.PortNone where it is to send it
// nowhere, or has no linear forwarding table.
func (r *Result) Exit(at ib.NodeGUID, l ib.LID) ib.PortNum {
	n := r.in.Fabric.Node(at)
	if n == nil || int(l) >= len(r.Tables.Nodes[n.Index].LFT) {
		return ib.PortNone
	}
	return r.Tables.Nodes[n.Index].LFT[l]
}

// Enter enters what a port of a later snapshot of the fabric showed into the one that the
// result was computed for.
func (r *Result) Enter(p *observed.Port, a mad.AttributeID, modifier uint32, data []byte) {
	if q := r.in.Fabric.At(p.Place()); q != nil && q.GUID == p.GUID {
		_ = q.Absorb(a, modifier, data) // what makes no sense changes nothing
	}
}
