package testbed

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// BringUp does what the least of managers would: LIDs in the order of the
// topology, shortest routes by the lowest port, and every link Active. What was
// given before stays. It asks with the M_Key key.
func (s *Testbed) BringUp(key ib.MKey) error {
	from, err := s.from()
	if err != nil {
		return err
	}
	for _, phase := range []func(observed.Place, ib.MKey) error{s.giveLIDs, s.giveRoutes, s.activate} {
		if err := phase(from.Place, key); err != nil {
			return err
		}
	}
	return nil
}

// write sets an attribute; anything but good news is an error.
func (s *Testbed) write(to observed.Place, modifier uint32, key ib.MKey, attr smp.Attribute) error {
	r, err := s.Ask(Question{To: to, Modifier: modifier, MKey: key, Attribute: attr, Set: true})
	if err == nil && !r.Good() {
		err = fmt.Errorf("%s: Set of %s: %s", s.Name(to), smp.AttributeName(attr.ID()), r.Outcome())
	}
	return err
}

// ends are the end ports that can be reached, in topology order.
func (s *Testbed) ends(from observed.Place) []observed.Place {
	var out []observed.Place
	for _, n := range s.Topology.Nodes {
		for _, i := range EndPorts(n) {
			if _, ok := s.search(from, observed.Place{Node: n.GUID, Port: i}); ok {
				out = append(out, observed.Place{Node: n.GUID, Port: i})
			}
		}
	}
	return out
}

func (s *Testbed) giveLIDs(from observed.Place, key ib.MKey) error {
	ends := s.ends(from)
	for _, p := range ends {
		if s.lids[p] == 0 {
			s.lids[p] = ib.LID(len(s.lids) + 1)
		}
	}
	for _, p := range ends {
		var info smp.PortInfo
		s.Held(p, 0, &info)
		info.LID, info.MasterSMLID = s.lids[p], s.lids[from]
		if err := s.write(p, 0, key, &info); err != nil {
			return err
		}
	}
	return nil
}

// giveRoutes fills the unicast table of every switch that can be reached.
func (s *Testbed) giveRoutes(from observed.Place, key ib.MKey) error {
	ends := s.ends(from)
	exits := s.exits(ends)
	for _, p := range ends {
		info := s.Fabric.Agent(p.Node).SwitchInfo()
		if info == nil {
			continue
		}
		give := s.giveLinear
		if info.RandomFDBCap != 0 {
			give = s.giveRandom
		}
		if err := give(p, key, ends, exits[p.Node]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Testbed) giveLinear(to observed.Place, key ib.MKey, ends []observed.Place, exit map[ib.LID]ib.PortNum) error {
	top := ib.LID(0)
	for _, p := range ends {
		top = max(top, s.lids[p])
	}
	for block := uint16(0); block <= uint16(top)/smp.LIDsPerLinearBlock; block++ {
		var t smp.LinearForwardingTable
		for i := range t.Ports {
			t.Ports[i] = ib.PortNone
			if port, ok := exit[ib.LID(block)*smp.LIDsPerLinearBlock+ib.LID(i)]; ok {
				t.Ports[i] = port
			}
		}
		if err := s.write(to, uint32(block), key, &t); err != nil {
			return err
		}
	}
	var info smp.SwitchInfo
	s.Held(to, 0, &info)
	info.LinearFDBTop, info.LifeTimeValue = top, policy.DefaultSettings().LifeTimeValue
	return s.write(to, 0, key, &info)
}

func (s *Testbed) giveRandom(to observed.Place, key ib.MKey, ends []observed.Place, exit map[ib.LID]ib.PortNum) error {
	for first := 0; first < len(ends); first += smp.RandomEntriesPerBlock {
		var t smp.RandomForwardingTable
		for i, p := range ends[first:min(first+smp.RandomEntriesPerBlock, len(ends))] {
			if port, ok := exit[s.lids[p]]; ok {
				t.Entries[i] = smp.RandomEntry{LID: s.lids[p], Valid: true, Port: port}
			}
		}
		if err := s.write(to, uint32(first/smp.RandomEntriesPerBlock), key, &t); err != nil {
			return err
		}
	}
	var info smp.SwitchInfo
	s.Held(to, 0, &info)
	info.LifeTimeValue = policy.DefaultSettings().LifeTimeValue
	return s.write(to, 0, key, &info)
}

// exits are the ports by which each switch reaches each LID: found by going
// from the end port outwards, nearest switches first.
func (s *Testbed) exits(ends []observed.Place) map[ib.NodeGUID]map[ib.LID]ib.PortNum {
	all := map[ib.NodeGUID]map[ib.LID]ib.PortNum{}
	for _, n := range s.Topology.Nodes {
		all[n.GUID] = map[ib.LID]ib.PortNum{}
	}
	for _, e := range ends {
		lid := s.lids[e]
		var queue []*topology.Node
		if s.nodes[e.Node].Type == ib.NodeSwitch {
			all[e.Node][lid] = 0
			queue = append(queue, s.nodes[e.Node])
		} else if peer, ok := s.neighbour(e); ok && s.nodes[peer.Node].Type == ib.NodeSwitch {
			all[peer.Node][lid] = peer.Port
			queue = append(queue, s.nodes[peer.Node])
		}
		for len(queue) > 0 {
			n := queue[0]
			queue = queue[1:]
			for p := 1; p <= n.NumPorts(); p++ {
				peer, ok := s.neighbour(observed.Place{Node: n.GUID, Port: ib.PortNum(p)})
				if !ok || s.nodes[peer.Node].Type != ib.NodeSwitch {
					continue
				}
				if _, seen := all[peer.Node][lid]; !seen {
					all[peer.Node][lid] = peer.Port
					queue = append(queue, s.nodes[peer.Node])
				}
			}
		}
	}
	return all
}

// activate takes every link that has trained to Armed, then to Active.
func (s *Testbed) activate(from observed.Place, key ib.MKey) error {
	for _, state := range []smp.PortState{smp.PortArmed, smp.PortActive} {
		for _, p := range s.ends(from) {
			nums := []ib.PortNum{p.Port}
			if n := s.nodes[p.Node]; n.Type == ib.NodeSwitch {
				nums = nil
				for i := 1; i <= n.NumPorts(); i++ {
					nums = append(nums, ib.PortNum(i))
				}
			}
			for _, n := range nums {
				if have := s.Fabric.Agent(p.Node).Port(n); have.PortPhysicalState != smp.PhysLinkUp || have.PortState >= state {
					continue
				}
				var info smp.PortInfo
				s.Held(p, uint32(n), &info)
				info.PortState = state
				s.settings(observed.Place{Node: p.Node, Port: n}, &info)
				if err := s.write(p, uint32(n), key, &info); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// settings are those of a link that both its ends can have.
func (s *Testbed) settings(p observed.Place, to *smp.PortInfo) {
	peer, ok := s.neighbour(p)
	if !ok {
		return
	}
	far := s.Fabric.Agent(peer.Node).Port(peer.Port)
	to.NeighborMTU, to.OperationalVLs = min(to.MTUCap, far.MTUCap), min(to.VLCap, far.VLCap)
	// Packets wait as long as the project's own manager would have them.
	usual := policy.DefaultSettings()
	to.HOQLife, to.VLStallCount = usual.LeafHOQLife, usual.LeafVLStallCount
	if s.nodes[peer.Node].Type == ib.NodeSwitch {
		to.HOQLife, to.VLStallCount = usual.HOQLife, usual.VLStallCount
	}
}
