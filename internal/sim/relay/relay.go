package relay

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Verdict is whether a packet goes on, and if not, why.
type Verdict uint8

// The verdicts.
const (
	Pass       Verdict = iota
	Malformed          // lengths or versions
	EntryState         // the port of arrival is neither Armed nor Active
	EntryLane          // a virtual lane that the port of arrival does not have
	EntryRaw           // raw filter of the port of arrival
	EntryPKey          // P_Key not in the table of the port of arrival
	NoRoute            // no exit in the forwarding table
	Loop               // the exit is the port of arrival
	ExitState          // the exit is not Active
	ExitRaw            // raw filter of the exit
	ExitPKey           // P_Key not in the table of the exit
	ExitLane           // the service level has no virtual lane at the exit
	TooLong            // payload above NeighborMTU of the exit, or longer than an exit passes that is locked (sma.Options)
	HopLimit           // a router may not pass it on
	verdictCount
)

var verdictNames = [verdictCount]string{
	"pass", "malformed", "entry not armed or active", "VL not in use at the entry", "raw filter at the entry",
	"P_Key at the entry", "no forwarding entry", "forwarded to where it came from", "exit not active",
	"raw filter at the exit", "P_Key at the exit", "no VL at the exit", "longer than the neighbour's MTU",
	"hop limit",
}

// String says it in a few words.
func (v Verdict) String() string {
	if v >= verdictCount {
		return "unknown verdict"
	}
	return verdictNames[v]
}

// Enter decides whether port in takes a data packet from its link.
func Enter(a *sma.Agent, in ib.PortNum, h *Headers) Verdict {
	p := a.Port(in)
	switch {
	case p == nil || p.PortState != smp.PortArmed && p.PortState != smp.PortActive:
		return EntryState
	case !hasLane(p, h.LRH.VL()):
		return EntryLane
	case h.BTH == nil:
		if p.FilterRawInbound {
			return EntryRaw
		}
	case p.PartitionEnforcementInbound && !admits(a.PKeys(in), h.BTH.PKey()):
		return EntryPKey
	}
	return Pass
}

// Exit finds where a unicast packet that came in by port in leaves a switch, 0
// for the switch itself. In is 0 for the switch's own packets.
func Exit(a *sma.Agent, in ib.PortNum, h *Headers) (ib.PortNum, Verdict) {
	exit, ok := a.UnicastExit(in, h.LRH.DLID())
	switch {
	case !ok:
		return 0, NoRoute
	case exit == in && in != 0:
		return 0, Loop
	}
	return exit, Pass
}

// Exits finds where copies of a multicast packet leave a switch; port 0 stands
// for the switch itself. The port of arrival is never among them.
func Exits(a *sma.Agent, in ib.PortNum, h *Headers) (sma.PortSet, Verdict) {
	exits := a.MulticastExits(in, h.LRH.DLID())
	if exits == (sma.PortSet{}) {
		return exits, NoRoute
	}
	return exits, Pass
}

// Leave decides whether a data packet that came in by port in, 0 for the
// device's own, leaves by port out, and on which virtual lane.
func Leave(a *sma.Agent, in, out ib.PortNum, h *Headers) (ib.VL, Verdict) {
	p := a.Port(out)
	switch {
	case p == nil || p.PortState != smp.PortActive:
		return 0, ExitState
	case h.BTH == nil:
		if p.FilterRawOutbound {
			return 0, ExitRaw
		}
	case p.PartitionEnforcementOutbound && !admits(a.PKeys(out), h.BTH.PKey()):
		return 0, ExitPKey
	}
	vl := a.VL(in, out, h.LRH.SL())
	if !hasLane(p, vl) {
		return 0, ExitLane
	}
	if mtu := p.NeighborMTU.Bytes(); len(h.bytes) > mtu && h.payload() > mtu {
		return 0, TooLong
	}
	if len(h.bytes) > sma.LockedBytes && a.IsLocked(out) {
		return 0, TooLong
	}
	return vl, Pass
}

// Cross finds the port by which a router that a packet reached at port in
// passes it on: one whose subnet has the prefix of DGID.
func Cross(a *sma.Agent, in ib.PortNum, h *Headers) (ib.PortNum, Verdict) {
	switch {
	case h.GRH == nil || h.GRH.DGID().IsMulticast():
		return 0, NoRoute
	case h.GRH.HopLmt() <= 1:
		return 0, HopLimit
	}
	prefix := h.GRH.DGID().Prefix()
	for n := ib.PortNum(1); a.Port(n) != nil; n++ {
		if a.Port(n).GIDPrefix == prefix {
			if n == in {
				return 0, Loop
			}
			return n, Pass
		}
	}
	return 0, NoRoute
}

// hasLane reports whether a data virtual lane is in use at a port.
func hasLane(p *smp.PortInfo, vl ib.VL) bool { return int(vl) < smp.DataVLs(p.OperationalVLs) }

// admits reports whether a key matches any entry of a table.
func admits(table []ib.PKey, key ib.PKey) bool {
	for _, entry := range table {
		if key.Matches(entry) {
			return true
		}
	}
	return false
}
