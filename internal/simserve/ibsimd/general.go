package ibsimd

import (
	"encoding/binary"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// general sends a general management datagram of a client by queue pair 1 of its
// port, as any data packet goes.
func (s *Server) general(c *client, p *datagram) {
	m, dlid := p.mad(), p.dlid()
	err := c.place.gsi.Send((*[mad.Size]byte)(m), endpoint.SendRequest{
		RemoteQP: p.destQP(), PKeyIndex: s.keyIndex(c.place, m, dlid), To: endpoint.Address{DLID: dlid},
	})
	if r, asking := s.find(m); err != nil && r != nil && asking == c && r.state == underWay {
		s.fail(c, m.tag())
	}
}

// keyIndex is the entry of a place's P_Key table by which a datagram to a LID
// leaves; the protocol does not tell. What answers a datagram takes the entry that
// it came by, anything else the first whose partition the destination is in as
// well; where there is none, entry 0.
func (s *Server) keyIndex(from *place, m *madBytes, dlid ib.LID) uint16 {
	if m.method().IsResponse() {
		if index, known := from.came[origin{dlid, m.transaction()}]; known {
			return index
		}
	}
	own := s.fabric.Agent(from.node.GUID).PKeys(from.port)
	if !slices.ContainsFunc(own[min(1, len(own)):], ib.PKey.IsValid) {
		return 0 // there is no other
	}
	if to, ok := s.walk(from.end(), dlid, func(end) {}); ok {
		theirs := s.fabric.Agent(to.node).PKeys(to.port)
		for i, k := range own {
			if k.IsValid() && slices.ContainsFunc(theirs, k.Matches) {
				return uint16(i)
			}
		}
	}
	return 0
}

// origin is where a request came from, and which it is.
type origin struct {
	lid         ib.LID
	transaction uint64
}

// originsMax bounds the requests of others whose P_Key entry is remembered at a
// place; beyond it all are forgotten.
const originsMax = 4096

// deliverGeneral delivers the datagrams that arrived at queue pair 1 of a place.
func (s *Server) deliverGeneral(p *place) {
	p.gsi.Receive(func(c *endpoint.Completion, bytes *[mad.Size]byte) {
		m := (*madBytes)(bytes)
		switch {
		case m.method().IsResponse():
			m.hideMask2()
			s.answered(p, m, c.SLID, c.DLID)
		case m.class() == mad.ClassSubnAdm:
			if len(p.came) >= originsMax {
				clear(p.came)
			}
			p.came[origin{c.SLID, m.transaction()}] = c.PKeyIndex
			s.toManager(p, m, c.SLID, c.DLID)
		default:
			// libumad2sim dies of a class that its program did not register.
			if r, asking := s.find(m); r != nil && r.state == underWay {
				s.fail(asking, m.tag())
			}
		}
	})
}

// hideMask2 takes CapabilityMask2 out of a ClassPortInfo of performance management. What
// libumad2sim hands to a program lacks the last counters of the newer form of
// PortCountersExtended, so that diagnostics which ask for them show garbage.
func (m *madBytes) hideMask2() {
	if m.class() != mad.ClassPerfMgt || m.attribute() != uint16(mad.AttrClassPortInfo) {
		return
	}
	data := m[pm.DataOffset:]
	capabilities := binary.BigEndian.Uint16(data[2:]) &^ uint16(mad.ClassCapCapabilityMask2)
	binary.BigEndian.PutUint16(data[2:], capabilities)
	const respTimeBits = 0x1F // below CapabilityMask2
	binary.BigEndian.PutUint32(data[4:], binary.BigEndian.Uint32(data[4:])&respTimeBits)
}

// end is a port of a node.
type end struct {
	node ib.NodeGUID
	port ib.PortNum
}

func (p *place) end() end { return end{p.node.GUID, p.port} }

// maxHops is how many links a general management datagram may cross.
const maxHops = mad.MaxHops + 1

// walk follows the forwarding tables from an end port to the one that has a
// LID, over active links. It passes the ports to leave by to passed.
func (s *Server) walk(from end, dlid ib.LID, passed func(end)) (to end, ok bool) {
	at, origin := from, true
	for range maxHops {
		agent := s.fabric.Agent(at.node)
		isSwitch := agent.SwitchInfo() != nil
		if (origin || !isSwitch) && agent.HasLID(at.port, dlid) {
			return at, true
		}
		exit := at.port
		if isSwitch {
			exit, ok = agent.UnicastExit(at.port, dlid)
			switch {
			case !ok || exit == at.port && !origin:
				return end{}, false
			case exit == 0:
				return end{at.node, 0}, agent.HasLID(0, dlid)
			}
		} else if !origin {
			return end{}, false
		}
		next, entry, cabled := s.fabric.Peer(at.node, exit)
		if !cabled || agent.Port(exit).PortState != smp.PortActive || s.fabric.Agent(next).Port(entry).PortState != smp.PortActive {
			return end{}, false
		}
		passed(end{at.node, exit})
		at, origin = end{next, entry}, false
	}
	return end{}, false
}
