// Ports: the settings of end ports, of single links and of the ports between
// switches, from a policy.
//
// In: a snapshot and settings. Out: values entered in an observed.Desired, and
// warnings for people. EnterLinks computes what all links have in common, and package
// partition the P_Key tables.

package desired

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// CheckBetweenSwitches wants the ports between switches to check P_Keys against the
// partitions of everybody behind them: of all end ports that the switch at the
// other end reaches without this one. A packet that comes in by such a port
// started behind it, and one that leaves by it ends behind it, whatever route
// between them is taken, as long as none leads through one switch twice; and who
// sends or takes a packet holds a key of its partition. So nothing that a policy
// allows is stopped. It wants what the other end ports and switch ports are to hold
// to be in d already.
//
// A port whose table has no room for those partitions, or that cannot check both
// directions that are asked for, is left without a check, and a warning says so.
func CheckBetweenSwitches(f *observed.Fabric, in, out bool, d *observed.Desired) (warnings []string) {
	var small []*observed.Port
	most := 0
	for _, n := range f.Switches() {
		if !n.Switch.InfoRead {
			continue
		}
		behind := partsWithout(f, n, d)
		for i := 1; i < len(n.Ports); i++ {
			p := &n.Ports[i]
			if p.Peer == nil || p.Peer.Node.Switch == nil || p.Peer.Node == n {
				continue // a cable from a switch to itself has nobody behind it
			}
			info, want := &n.Switch.Info, d.Port(p)
			keys := behind[p.Peer.Node]
			want.Elements |= observed.ElementEnforcement
			want.Info.PartitionEnforcementInbound, want.Info.PartitionEnforcementOutbound = false, false
			if len(keys) > p.PKeyCap() || p.PKeyCap() == 0 {
				small, most = append(small, p), max(most, len(keys))
				continue
			}
			want.PKeys = keys
			want.Info.PartitionEnforcementInbound = in && info.InboundEnforcementCap
			want.Info.PartitionEnforcementOutbound = out && info.OutboundEnforcementCap
		}
	}
	if len(small) > 0 {
		warnings = append(warnings, fmt.Sprintf("part_enforce_switches: %d ports between switches check nothing, for their P_Key tables have no room for the partitions of everybody behind them, up to %d (for example %s)", len(small), most, small[0]))
	}
	return warnings
}

// UncheckedBetweenSwitches wants ports between switches to check nothing.
func UncheckedBetweenSwitches(f *observed.Fabric, d *observed.Desired) {
	for _, n := range f.Switches() {
		for i := 1; i < len(n.Ports); i++ {
			if p := &n.Ports[i]; p.Peer != nil && p.Peer.Node.Switch != nil {
				d.Port(p).Elements |= observed.ElementEnforcement
			}
		}
	}
}

// partsWithout are, for every switch next to n, the full keys of the ports that it
// reaches when n is removed.
func partsWithout(f *observed.Fabric, n *observed.Node, d *observed.Desired) map[*observed.Node][]ib.PKey {
	out := make(map[*observed.Node][]ib.PKey)
	for i := range n.Ports {
		if p := n.Ports[i].Peer; p == nil || p.Node.Switch == nil || p.Node == n || out[p.Node] != nil {
			continue // a cable from n to itself leads to everybody, and is no way to a neighbour
		}
		next := n.Ports[i].Peer.Node
		island := islandOf(next, n)
		bases := make(map[ib.PKeyBase]bool)
		for _, s := range island {
			holders(s, d, bases)
		}
		keys := make([]ib.PKey, 0, len(bases))
		for b := range bases {
			keys = append(keys, b.Full())
		}
		slices.Sort(keys)
		for _, s := range island {
			out[s] = keys
		}
	}
	return out
}

// islandOf are the switches that can be reached from one without another.
func islandOf(from, without *observed.Node) []*observed.Node {
	seen := map[*observed.Node]bool{from: true, without: true}
	island := []*observed.Node{from}
	for at := 0; at < len(island); at++ {
		for i := range island[at].Ports {
			if p := island[at].Ports[i].Peer; p != nil && p.Node.Switch != nil && !seen[p.Node] {
				seen[p.Node] = true
				island = append(island, p.Node)
			}
		}
	}
	return island
}

// holders enters the partitions that a switch's own port, and the ports cabled to it, are
// to hold: what devices hold or report now widens nothing.
func holders(s *observed.Node, d *observed.Desired, bases map[ib.PKeyBase]bool) {
	for i := range s.Ports {
		p := &s.Ports[i]
		ends := []*observed.Port{p}
		switch {
		case i > 0 && p.Peer != nil && p.Peer.Node.Switch != nil:
			continue
		case i > 0 && p.Peer != nil:
			ends = append(ends, p.Peer)
		}
		for _, end := range ends {
			for _, k := range d.Port(end).PKeys {
				if k.IsValid() {
					bases[k.Base()] = true
				}
			}
		}
	}
}
