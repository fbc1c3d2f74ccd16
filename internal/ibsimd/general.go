package ibsimd

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// general answers a general management datagram, or leads it to who does. The
// fabric carries subnet management only.
func (s *Server) general(c *client, m *madOctets, dlid ib.LID) {
	to, ok := s.walk(c.place.end(), dlid, s.passed)
	switch {
	case !ok:
	case m.class() == mad.ClassPerfMgt && m.tag() != 0:
		if s.perform(c, to, m, dlid) {
			return
		}
	case m.class() == mad.ClassSubnAdm:
		for _, p := range s.places {
			if p.end() == to {
				s.toManager(p, m, s.lid(c.place), dlid)
				return
			}
		}
	}
	if m.tag() != 0 {
		s.fail(c, m.tag())
	}
}

// perform answers a datagram of performance management that reached a port, and
// reports whether the answer came through.
func (s *Server) perform(c *client, at end, m *madOctets, dlid ib.LID) bool {
	var v pm.MAD
	if v.UnmarshalBinary(m[:]) != nil || !s.meter.Agent(at.node).Handle(&v) {
		return false
	}
	b, err := v.AppendBinary(m[:0])
	if err != nil || len(b) != mad.Size {
		return false
	}
	home := s.lid(c.place)
	if back, ok := s.walk(at, home, s.passed); !ok || back != c.place.end() {
		return false
	}
	s.answered(c.place, m, dlid, home)
	return true
}

// generalAnswer brings the answer of a subnet manager to the client that asked.
func (s *Server) generalAnswer(from, asking *client, m *madOctets) {
	home := s.lid(asking.place)
	if back, ok := s.walk(from.place.end(), home, s.passed); !ok || back != asking.place.end() {
		s.fail(asking, m.tag())
		return
	}
	s.answered(asking.place, m, s.lid(from.place), home)
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

// passed counts a packet that left by a port whose link is up.
func (s *Server) passed(at end) { s.meter.Passed(at.node, at.port) }
