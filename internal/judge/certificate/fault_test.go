package certificate_test

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// fault is one thing out of order.
type fault struct {
	what string
	at   *observed.Port
	// lost reports whether something was not read: the verdict names at. Otherwise sound may be
	// told by packets, which are sent in the fabric as it is with the fault.
	lost bool
	do   func()
}

// fault draws a fault at a random place.
func (w *world) fault() fault {
	hosts, ends := w.hosts(), w.Fabric.EndPorts()
	h := hosts[w.r.IntN(len(hosts))]
	s := h.Peer
	sw := s.Node
	any := &ends[w.r.IntN(len(ends))]
	key := func() ib.PKey { return ib.PKey(0x10+w.r.IntN(len(w.allowed)+1)) | ib.PKey(w.r.IntN(2))<<15 }
	some := func(p *observed.Port) int { // an entry that is in use, if there is one
		for range 100 {
			if i := w.r.IntN(tableSize); p.PKeys[i] != 0 {
				return i
			}
		}
		return 0
	}
	faults := []fault{
		{"another key in a host's table", h, false, func() { h.PKeys[tableSize-1] = key() }},
		{"another key in a switch port's table", s, false, func() { s.PKeys[tableSize-1] = key() }},
		{"a key less", *any, false, func() { (*any).PKeys[some(*any)] = 0 }},
		{"a key less before a host", s, false, func() { s.PKeys[some(s)] = 0 }},
		{"membership", h, false, func() { h.PKeys[some(h)] ^= 0x8000 }},
		{"membership before a host", s, false, func() { s.PKeys[some(s)] ^= 0x8000 }},
		{"inbound off", s, false, func() { s.Info.PartitionEnforcementInbound = false }},
		{"outbound off", s, false, func() { s.Info.PartitionEnforcementOutbound = false }},
		{"both off", s, false, func() { s.Info.PartitionEnforcementInbound, s.Info.PartitionEnforcementOutbound = false, false }},
		{"a switch that cannot check inbound", s, false, func() { sw.Switch.Info.InboundEnforcementCap = false }},
		{"a switch that cannot check outbound", s, false, func() { sw.Switch.Info.OutboundEnforcementCap = false }},
		{"raw inbound", s, false, func() { s.Info.FilterRawInbound = false }},
		{"raw outbound", s, false, func() { s.Info.FilterRawOutbound = false }},
		{"raw both", s, false, func() { s.Info.FilterRawInbound, s.Info.FilterRawOutbound = false, false }},
		{"a switch without filters", s, false, func() {
			sw.Switch.Info.FilterRawInboundCap, sw.Switch.Info.FilterRawOutboundCap = false, false
		}},
		{"no M_Key", *any, false, func() { (*any).Info.MKey, (*any).Info.MKeyProtectBits = 0, 0 }},
		{"a weak M_Key", *any, false, func() { (*any).Info.MKey = 1 }},
		{"a shared M_Key", &sw.Ports[0], false, func() { sw.Ports[0].Info.MKey = h.Info.MKey }},
		{"level 0", *any, false, func() { (*any).Info.MKeyProtectBits = 0 }},
		{"a lease", *any, false, func() { (*any).Info.MKeyLeasePeriod = 15 }},
		{"a hidden M_Key", &sw.Ports[0], true, func() { sw.Ports[0].Info.MKey = 0 }},
		{"the agent of a switch", &sw.Ports[0], true, func() { sw.Ports[0].InfoRead = false }},
		{"a host's table", h, true, func() { h.PKeysRead[0] = false }},
		{"a switch port's table", s, true, func() { s.PKeysRead[0] = false }},
		{"a switch port", s, true, func() { s.InfoRead = false }},
		{"SwitchInfo", s, true, func() { sw.Switch.InfoRead = false }},
		{"a cable on no list", s, true, func() { w.unlisted[s], w.unlisted[h] = true, true }},
		{"a stranger", &sw.Ports[len(sw.Ports)-1], true, func() {
			p := &sw.Ports[len(sw.Ports)-1]
			p.Info.PortState, p.Info.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
		}},
		{"a host cabled nowhere", h, true, func() { h.Peer, s.Peer = nil, nil }},
		{"a host that was not reached", h, true, func() { h.Reached = false }},
		{"two devices of one GUID", h, true, func() { h.Node.Contested = true }},
	}
	return faults[w.r.IntN(len(faults))]
}

// judged is the verdict of the judge, with what hosts could change.
func (w *world) judged() *isolation.Proof {
	proof := isolation.Prove(w.Fabric, w.allowed, w.raw())
	proof.Rest(isolation.Changeable(w.Fabric, w.declares))
	return proof
}
