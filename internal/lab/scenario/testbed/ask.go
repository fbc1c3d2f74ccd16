package testbed

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Question is a Get or Set.
type Question struct {
	To       observed.Place // an end port
	Modifier uint32
	// Whole reports whether Modifier is to be sent as it is. Else PortInfo is asked for as a manager
	// does that knows extended speeds.
	Whole bool
	MKey  ib.MKey
	// Attribute takes the answer; in a Set it holds what is written.
	Attribute smp.Attribute
	Set       bool
	// LID, when it is not 0, is where a LID-routed packet is sent; 0 stands for
	// a directed route to To.
	LID ib.LID
	// Route, when it is not nil, is the directed route that is taken, wherever it
	// leads.
	Route mad.Path
	// HopCount, when it is not nil, is what the packet says of its hops.
	HopCount *uint8
}

// Request is the result of a Question.
type Request struct {
	id        uint64
	Attribute smp.Attribute // of the answer
	Status    mad.Status
	Answered  bool
}

// Good reports whether the request was answered with success.
func (r *Request) Good() bool { return r.Answered && r.Status == mad.StatusOK }

// Outcome describes the result of a request, in the words of scripts.
func (r *Request) Outcome() string {
	switch {
	case !r.Answered:
		return "timeout"
	case r.Status == mad.StatusOK:
		return "status ok"
	}
	return fmt.Sprintf("status %v", r.Status)
}

func (r *Request) answer(p *mad.SMP) {
	r.Answered, r.Status = true, p.Status
	if err := r.Attribute.UnmarshalBinary(p.Data[:]); err != nil {
		r.Status = mad.StatusInvalidField // an answer that cannot be read is none
	}
}

// Ask sends a request and waits for its answer, or for as long as one may take.
// Drops are those since then. The error says that it could not be sent.
func (s *Testbed) Ask(q Question) (*Request, error) {
	from, err := s.from()
	if err != nil {
		return nil, err
	}
	if q.Attribute.ID() == smp.AttrPortInfo && !q.Whole {
		num, _, _ := smp.SplitPortInfoModifier(q.Modifier)
		q.Modifier = smp.PortInfoModifier(num, s.takesExtended(q.To))
	}
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Method: mad.MethodGet,
		TransactionID: s.nextID, AttributeID: q.Attribute.ID(), AttributeModifier: q.Modifier, MKey: q.MKey,
	}
	if q.Set {
		p.Method = mad.MethodSet
		if err := q.Attribute.Encode(&p.Data); err != nil {
			return nil, err
		}
		if !s.deaf {
			s.authored(from.Node, p.Data[:])
		}
	}
	dlid := ib.LIDPermissive
	if q.LID != 0 {
		p.Class, dlid = mad.ClassSubnLID, q.LID
	} else {
		path, err := q.Route, error(nil)
		if path == nil {
			path, err = s.way(from, q.To)
		}
		if err != nil {
			return nil, err
		}
		p.Class, p.HopCount = mad.ClassSubnDirected, uint8(len(path))
		if q.HopCount != nil {
			p.HopCount = *q.HopCount
		}
		p.DrSLID, p.DrDLID = ib.LIDPermissive, ib.LIDPermissive
		for i, n := range path {
			p.InitialPath[i+1] = byte(n)
		}
	}
	s.Drops = s.Drops[:0]
	r := &Request{id: s.nextID, Attribute: q.Attribute}
	s.last = r
	s.nextID++
	from.post(&p, dlid)
	return r, s.Until(s.Fabric.Now()+s.config.Timeout, func() bool { return r.Answered })
}

// takesExtended reports whether the agent at an end port has extended speeds, and takes the bit that
// says that its sender knows them.
func (s *Testbed) takesExtended(p observed.Place) bool {
	agent := s.Fabric.Agent(p.Node)
	if agent == nil || agent.Options().RefusesExtendedSpeeds {
		return false
	}
	info := agent.Port(p.Port)
	return info != nil && info.CapabilityMask.Has(smp.CapExtendedSpeeds)
}

// sameBlock reports whether two modifiers of an attribute name the same block of it.
func sameBlock(id mad.AttributeID, a, b uint32) bool {
	if id == smp.AttrPortInfo {
		p, _, _ := smp.SplitPortInfoModifier(a)
		q, _, _ := smp.SplitPortInfoModifier(b)
		return p == q
	}
	return a == b
}

// way is the directed route from the sender to an end port: the shortest, and
// of those the one by the lowest ports. When there is none the last known one
// is taken, as by a manager that has not noticed yet.
func (s *Testbed) way(from *station, to observed.Place) (mad.Path, error) {
	if path, ok := s.search(from.Place, to); ok {
		s.ways[to] = path
		return path, nil
	}
	if path, ok := s.ways[to]; ok {
		return path, nil
	}
	return nil, fmt.Errorf("%s: no way there from %s, and none was ever used", s.Name(to), s.Name(from.Place))
}

// search goes outwards from an end port over links that are up.
func (s *Testbed) search(from, to observed.Place) (mad.Path, bool) {
	if from == to {
		return mad.Path{}, true
	}
	type visit struct {
		node ib.NodeGUID
		path mad.Path
	}
	queue := []visit{{from.Node, nil}}
	seen := map[ib.NodeGUID]bool{from.Node: true}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		n := s.nodes[v.node]
		for p := ib.PortNum(1); int(p) <= n.NumPorts(); p++ {
			if n.Type != ib.NodeSwitch && p != from.Port {
				continue
			}
			peer, ok := s.neighbour(observed.Place{Node: v.node, Port: p})
			if !ok || len(v.path) == mad.MaxHops {
				continue
			}
			path := append(slices.Clone(v.path), p)
			if peer.Node == to.Node && (to.Port == 0 || peer.Port == to.Port) {
				return path, true
			}
			if !seen[peer.Node] && s.nodes[peer.Node].Type == ib.NodeSwitch {
				seen[peer.Node] = true
				queue = append(queue, visit{peer.Node, path})
			}
		}
	}
	return nil, false
}

// neighbour is the other end of a link that is up.
func (s *Testbed) neighbour(p observed.Place) (observed.Place, bool) {
	peer, num, ok := s.Fabric.Peer(p.Node, p.Port)
	if !ok || s.off[p.Node] || s.off[peer] || s.Fabric.Agent(p.Node).Port(p.Port).PortPhysicalState != smp.PhysLinkUp {
		return observed.Place{}, false
	}
	return observed.Place{Node: peer, Port: num}, true
}

// Held fills attr with what a device holds, read directly and not over the fabric: no
// packet is sent, nothing is counted and no lease is renewed, except for a device whose
// protect bits are 2 or 3 and an attribute other than PortInfo and SwitchInfo. Fields in
// which a Set means "do this" and not "be this" are left at the value that does nothing.
// What the device does not have stays zero.
func (s *Testbed) Held(to observed.Place, modifier uint32, attr smp.Attribute) {
	agent := s.Fabric.Agent(to.Node)
	switch attr := attr.(type) {
	case *smp.PortInfo:
		n, _, _ := smp.SplitPortInfoModifier(modifier)
		if n == 0 {
			n = to.Port
		}
		if info := agent.Port(n); info != nil {
			*attr = *info
			attr.PortState, attr.PortPhysicalState, attr.LinkDownDefaultState = 0, 0, 0
			attr.LinkWidthEnabled, attr.LinkSpeedEnabled, attr.LinkSpeedExtEnabled = 0, 0, 0
			attr.ClientReregister = false
		}
	case *smp.SwitchInfo:
		if info := agent.SwitchInfo(); info != nil {
			*attr = *info
			attr.PortStateChange = false
		}
	default:
		key := ^agent.Port(to.Port).MKey // a Get with a wrong key passes and renews nothing
		if agent.Port(to.Port).MKeyProtectBits >= 2 {
			key = agent.Port(to.Port).MKey
		}
		p := mad.SMP{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion, Method: mad.MethodGet,
			AttributeID: attr.ID(), AttributeModifier: modifier, MKey: key,
		}
		r := agent.Handle(s.Fabric.Now(), sma.Ingress{Port: to.Port, SLID: ib.LIDPermissive}, &p)
		if r.Verdict == sma.Answered && p.Status == mad.StatusOK {
			_ = attr.UnmarshalBinary(p.Data[:]) // what cannot be read stays zero
		}
	}
}
