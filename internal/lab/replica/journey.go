package replica

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// End is the outcome of a packet, in the words of reports.
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
	// Sent reports whether the sender's end node let it go.
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
	// VL is the virtual lane on which it left; nil when it did not.
	VL *ib.VL
}

// sighting is a packet at one place.
type sighting struct {
	at      observed.Place
	outcome fabric.Outcome
	vl      ib.VL
	reason  endpoint.Reason
}

func (r *Replica) begin(from, to observed.Place) {
	r.from, r.to = from, to
	r.unsent, r.reason, r.unbound, r.seen, r.over = "", "", false, r.seen[:0], false
}

// see is told of each packet at each place; what follows from the first one,
// answers of its receiver for example, does not count.
func (r *Replica) see(s fabric.DataSighting) {
	if r.over {
		return
	}
	r.seen = append(r.seen, sighting{observed.Place{Node: s.Node, Port: s.Port}, s.Outcome, s.VL, s.Reason})
	r.over = s.Outcome != fabric.OutcomeLeft
}

// Ended is where the packet that was sent last has ended.
func (r *Replica) Ended() End {
	end, _ := r.ended()
	return end
}

// simple are the outcomes that need no second look.
var simple = map[fabric.Outcome]End{
	fabric.OutcomeTaken: Delivered, fabric.OutcomeEntryState: LinkState, fabric.OutcomeExitState: LinkState,
	fabric.OutcomeLinkDown: LinkState, fabric.OutcomeEntryLane: NoLane, fabric.OutcomeExitLane: NoLane,
	fabric.OutcomeEntryRaw: InboundRaw, fabric.OutcomeExitRaw: OutboundRaw, fabric.OutcomeEntryPKey: InboundKey,
	fabric.OutcomeExitPKey: OutboundKey, fabric.OutcomeNoRoute: NoRoute, fabric.OutcomeLoop: Loop, fabric.OutcomeHops: Loop,
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
		return DeadEnd, "it reached a device that was not found"
	}
	if (last.outcome == fabric.OutcomeTaken || last.outcome == fabric.OutcomeRefused) && last.at != r.to {
		return WrongDestination, fmt.Sprintf("%s, at port %d of node %v", last.outcome, last.at.Port, last.at.Node)
	}
	if end, known := simple[last.outcome]; known {
		return end, last.outcome.String()
	}
	if last.outcome != fabric.OutcomeRefused {
		return Other, last.outcome.String()
	}
	why := fmt.Sprintf("%s: %s", last.outcome, last.reason)
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

// arrival is where and on which virtual lane a packet comes in.
type arrival struct {
	observed.Place
	vl ib.VL
}

// Journey is the way of the packet that was sent last. One that goes round is
// told up to where it comes in by a port for the second time on one virtual lane.
func (r *Replica) Journey() Journey {
	j := Journey{Sent: r.unsent == "" && len(r.seen) > 0}
	j.End, j.Reason = r.ended()
	at := Hop{Node: r.from.Node}
	been, lane := make(map[arrival]bool), ib.VL(0)
	for _, s := range r.seen {
		if r.strangers[s.at.Node] {
			break
		}
		came := arrival{observed.Place{Node: at.Node, Port: at.In}, lane}
		if at.In != 0 && been[came] {
			return j
		}
		been[came] = true
		if s.outcome != fabric.OutcomeLeft {
			if leaves(s.outcome) {
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

// leaves reports whether a packet of this outcome was on its way out of a node.
func leaves(f fabric.Outcome) bool {
	switch f {
	case fabric.OutcomeExitState, fabric.OutcomeExitRaw, fabric.OutcomeExitPKey, fabric.OutcomeExitLane, fabric.OutcomeTooLong,
		fabric.OutcomeHeadTooOld, fabric.OutcomeTooOld, fabric.OutcomeStalled, fabric.OutcomeLaneClosed:
		return true
	}
	return false
}
