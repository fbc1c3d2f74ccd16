package replica

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// End is what becomes of a packet, in the words that reports have.
type End string

// The ends.
const (
	Delivered        End = "delivered"
	SourceKey        End = "source-key"
	LinkState        End = "link-state"
	DeadEnd          End = "dead-end"
	NoLane           End = "no-vl"
	InboundRaw       End = "inbound-raw"
	OutboundRaw      End = "outbound-raw"
	InboundKey       End = "inbound-key"
	OutboundKey      End = "outbound-key"
	NoRoute          End = "no-route"
	Loop             End = "loop"
	WrongDestination End = "wrong-destination"
	DestinationKey   End = "destination-key"
	DestinationQKey  End = "destination-qkey"
	// Other is an end that a computed trace does not know: Reason says which.
	Other End = "other"
)

// Journey is the way of a packet that was sent.
type Journey struct {
	// Sent tells that the sender's end node let it go.
	Sent   bool
	End    End
	Reason string
	Hops   []Hop
}

// Hop is a node on the way.
type Hop struct {
	Node ib.NodeGUID
	// In and Out are the ports by which the packet comes and goes; 0 where it
	// starts or ends.
	In, Out ib.PortNum
	// VL is the lane on which it left; nil when it did not.
	VL *ib.VL
}

// sighting is a packet at one place.
type sighting struct {
	at     Place
	fate   fabric.Fate
	vl     ib.VL
	reason endpoint.Reason
}

func (r *Replica) begin(from, to Place) {
	r.from, r.to = from, to
	r.unsent, r.reason, r.unbound, r.seen, r.over = "", "", false, r.seen[:0], false
}

// see is told of each packet at each place; what follows from the first one,
// answers of its receiver for example, does not count.
func (r *Replica) see(s fabric.DataSighting) {
	if r.over {
		return
	}
	r.seen = append(r.seen, sighting{Place{s.Node, s.Port}, s.Fate, s.VL, s.Reason})
	r.over = s.Fate != fabric.FateLeft
}

// Ended is where the packet that was sent last has ended.
func (r *Replica) Ended() End {
	end, _ := r.ended()
	return end
}

// simple are the fates that need no second look.
var simple = map[fabric.Fate]End{
	fabric.FateTaken: Delivered, fabric.FateEntryState: LinkState, fabric.FateExitState: LinkState,
	fabric.FateLinkDown: LinkState, fabric.FateEntryLane: NoLane, fabric.FateExitLane: NoLane,
	fabric.FateEntryRaw: InboundRaw, fabric.FateExitRaw: OutboundRaw, fabric.FateEntryPKey: InboundKey,
	fabric.FateExitPKey: OutboundKey, fabric.FateNoRoute: NoRoute, fabric.FateLoop: Loop, fabric.FateHops: Loop,
}

func (r *Replica) ended() (End, string) {
	if r.unsent != "" {
		return r.unsent, r.reason
	}
	if len(r.seen) == 0 {
		return Other, "it was not seen"
	}
	last := &r.seen[len(r.seen)-1]
	if r.strangers[last.at.Node] {
		return DeadEnd, "it came to somebody who was not found"
	}
	if (last.fate == fabric.FateTaken || last.fate == fabric.FateRefused) && last.at != r.to {
		return WrongDestination, fmt.Sprintf("%s, at port %d of node %v", last.fate, last.at.Port, last.at.Node)
	}
	if end, known := simple[last.fate]; known {
		return end, last.fate.String()
	}
	if last.fate != fabric.FateRefused {
		return Other, last.fate.String()
	}
	why := fmt.Sprintf("%s: %s", last.fate, last.reason)
	switch last.reason {
	case endpoint.ReasonAddress:
		return WrongDestination, why
	case endpoint.ReasonPKeyBase, endpoint.ReasonMembership:
		return DestinationKey, why
	case endpoint.ReasonQKey:
		return DestinationQKey, why
	case endpoint.ReasonNoQP:
		if r.unbound {
			return DestinationKey, why + ", and no entry of the table that one could be bound to"
		}
	}
	return Other, why
}

// arrival is where and on which lane a packet comes in.
type arrival struct {
	Place
	vl ib.VL
}

// Journey is the way of the packet that was sent last. One that goes round is
// told up to where it comes in by a port for the second time on one lane.
func (r *Replica) Journey() Journey {
	j := Journey{Sent: r.unsent == "" && len(r.seen) > 0}
	j.End, j.Reason = r.ended()
	at := Hop{Node: r.from.Node}
	been, lane := make(map[arrival]bool), ib.VL(0)
	for _, s := range r.seen {
		if r.strangers[s.at.Node] {
			break
		}
		came := arrival{Place{at.Node, at.In}, lane}
		if at.In != 0 && been[came] {
			return j
		}
		been[came] = true
		if s.fate != fabric.FateLeft {
			if leaves(s.fate) {
				at.Out = s.at.Port
			}
			break
		}
		vl := s.vl
		lane = vl
		at.Out, at.VL = s.at.Port, &vl
		j.Hops = append(j.Hops, at)
		node, in, _ := r.fabric.Peer(s.at.Node, s.at.Port)
		at = Hop{Node: node, In: in}
	}
	if !r.strangers[at.Node] {
		j.Hops = append(j.Hops, at)
	}
	return j
}

// leaves reports whether a packet of this fate was on its way out of a node.
func leaves(f fabric.Fate) bool {
	switch f {
	case fabric.FateExitState, fabric.FateExitRaw, fabric.FateExitPKey, fabric.FateExitLane, fabric.FateTooLong,
		fabric.FateHeadTooOld, fabric.FateTooOld, fabric.FateStalled, fabric.FateLaneClosed:
		return true
	}
	return false
}
