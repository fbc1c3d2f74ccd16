package reach

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// find looks for an entry of p's P_Key table among those that were read; index
// is -1 when there is none, and known says that there can be none.
func find(p *observed.Port, want func(ib.PKey) bool) (index int, key ib.PKey, known bool) {
	for i, k := range p.ReadPKeys() {
		if want(k) {
			return i, k, true
		}
	}
	return -1, 0, wholeTable(p)
}

// wholeTable reports whether all of p's P_Key table was read. A table of no
// entries is none that could be read.
func wholeTable(p *observed.Port) bool {
	n := p.PKeyCap()
	return n > 0 && len(p.PKeys) >= n && p.PKeysKnown()
}

func (w *walker) entryOf(index int, k ib.PKey) string { return w.say("index %d is %s", index, k) }

// match asks p's P_Key table for an entry that matches the packet's key.
func (w *walker) match(p *observed.Port, rule string, d Disposition) bool {
	index, key, known := find(p, w.packet.PKey.Matches)
	switch {
	case index >= 0:
		return w.settle(p, rule, pass, w.entryOf(index, key), d)
	case !known:
		return w.settle(p, rule, unknown, "P_KeyTable was not read whole", d)
	}
	return w.settle(p, rule, stop, w.noMatch(p), d)
}

// noMatch says that p's table has no entry for the packet. One of the same
// partition is named: of two limited members neither takes what the other sends.
func (w *walker) noMatch(p *observed.Port) string {
	sameBase := func(k ib.PKey) bool { return k.IsValid() && k.Base() == w.packet.PKey.Base() }
	if w.quiet {
		return ""
	}
	if index, key, _ := find(p, sameBase); index >= 0 {
		return w.say("no entry matches %s: index %d is %s, and both are limited", w.packet.PKey, index, key)
	}
	return w.say("no entry matches %s", w.packet.PKey)
}

// state asks whether p's link is in one of the states.
func (w *walker) state(p *observed.Port, rule string, good ...smp.PortState) bool {
	if !p.InfoRead {
		return w.settle(p, rule, unknown, "PortInfo was not read", LinkState)
	}
	for _, s := range good {
		if p.Info.PortState == s {
			return w.settle(p, rule, pass, s.String(), LinkState)
		}
	}
	return w.settle(p, rule, stop, p.Info.PortState.String(), LinkState)
}

// virtual lane asks whether the packet's virtual lane is in operation at p.
func (w *walker) lane(p *observed.Port, entry string) bool {
	lanes := smp.DataVLs(p.Info.OperationalVLs)
	if w.packet.AnyVL || int(w.vl) < lanes {
		return w.settle(p, "VL", pass, entry, NoLane)
	}
	return w.settle(p, "VL", stop, w.say("%s, %d in operation", entry, lanes), NoLane)
}

// arrive checks the packet at its port of arrival in.
func (w *walker) arrive(in *observed.Port) bool {
	if !w.state(in, "state on arrival", smp.PortArmed, smp.PortActive) ||
		!w.lane(in, w.say("VL %d", w.vl)) {
		return false
	}
	s := in.Node.Switch
	if s == nil {
		return true
	}
	if !s.InfoRead {
		return w.settle(in, "checks on arrival", unknown, "SwitchInfo was not read", Unknown)
	}
	if w.packet.Service == Raw {
		return w.filter(in, "raw filter inbound", s.Info.FilterRawInboundCap, in.Info.FilterRawInbound, InboundRaw)
	}
	return w.enforce(in, "P_Key inbound", s.Info.InboundEnforcementCap, in.Info.PartitionEnforcementInbound, InboundKey)
}

// depart asks port out, by which the packet leaves the node that it entered by
// port in, 0 for its own.
func (w *walker) depart(out *observed.Port, in ib.PortNum) bool {
	w.hop().Out = out.Num
	if !w.state(out, "state", smp.PortActive) {
		return false
	}
	if s := out.Node.Switch; s != nil {
		on := false
		if w.packet.Service == Raw {
			on = w.filter(out, "raw filter outbound", s.Info.FilterRawOutboundCap, out.Info.FilterRawOutbound, OutboundRaw)
		} else {
			on = w.enforce(out, "P_Key outbound", s.Info.OutboundEnforcementCap, out.Info.PartitionEnforcementOutbound, OutboundKey)
		}
		if !on {
			return false
		}
	}
	return w.chooseLane(out, in)
}

func (w *walker) filter(p *observed.Port, rule string, can, on bool, d Disposition) bool {
	if can && on {
		return w.settle(p, rule, stop, "the filter is on", d)
	}
	return w.settle(p, rule, off, "the filter is not on", d)
}

func (w *walker) enforce(p *observed.Port, rule string, can, on bool, d Disposition) bool {
	switch {
	case p.Node.Switch.Info.PartitionEnforcementCap == 0 || !can:
		return w.settle(p, rule, off, "the switch cannot check", d)
	case !on:
		return w.settle(p, rule, off, "the port does not check", d)
	}
	return w.match(p, rule, d)
}

// chooseLane finds the virtual lane for the packet's service level. A port that has one
// data virtual lane only may do without a table.
func (w *walker) chooseLane(out *observed.Port, in ib.PortNum) bool {
	if out.Node.Switch == nil {
		in = 0
	}
	t, read := out.SLToVL[in]
	var entry string
	switch {
	case w.packet.SL >= smp.SLCount:
		return w.settle(out, "VL", stop, w.say("SL %d does not exist", w.packet.SL), NoLane)
	case read:
		w.vl = t.VLs[w.packet.SL]
		entry = w.say("SL %d to VL %d", w.packet.SL, w.vl)
	case w.packet.AnyVL:
		w.vl = 0
	case smp.DataVLs(out.Info.VLCap) == 1:
		w.vl = 0
		entry = "VL 0, the only one"
	default:
		return w.settle(out, "VL", unknown, "SLtoVLMappingTable was not read", NoLane)
	}
	if !w.lane(out, entry) {
		return false
	}
	vl := w.vl
	w.hop().VL = &vl
	return true
}

// forward finds the port by which the packet leaves the node that it entered by
// in. On is false when it ends here, delivered or not.
func (w *walker) forward(in *observed.Port) (out *observed.Port, on bool) {
	n, rule := in.Node, "forwarding"
	if n.Switch == nil {
		w.receive(in)
		return nil, false
	}
	num, known := n.Switch.Exit(w.dlid, in.Num)
	entry := ""
	if !w.quiet {
		entry = describe(n.Switch, w.dlid, num, known)
	}
	switch {
	case !w.to.InfoRead:
		w.settle(in, rule, unknown, w.say("PortInfo of %s was not read, so its LID is not known", w.to), NoRoute)
	case !w.dlid.IsUnicast():
		w.settle(in, rule, stop, w.say("%s has no unicast LID but %s", w.to, w.dlid), NoRoute)
	case !known:
		w.settle(in, rule, unknown, entry, NoRoute)
	case num == 0:
		w.check(in.Num, rule, pass, entry)
		w.receive(&n.Ports[0])
	case int(num) >= len(n.Ports):
		w.settle(in, rule, stop, entry, NoRoute)
	case num == in.Num:
		w.settle(in, rule, stop, entry+", where it came from", Loop)
	default:
		w.check(in.Num, rule, pass, entry)
		return &n.Ports[num], true
	}
	return nil, false
}

// describe says in words what Switch.Exit found.
func describe(s *observed.Switch, lid ib.LID, out ib.PortNum, known bool) string {
	switch {
	case !s.InfoRead:
		return "SwitchInfo was not read"
	case s.Info.LinearFDBCap == 0 && !known:
		return fmt.Sprintf("RandomForwardingTable was not read whole, LID %s is in no entry", lid)
	case !known:
		return fmt.Sprintf("LinearForwardingTable was not read for LID %s", lid)
	case s.Info.LinearFDBCap != 0 && lid > s.Info.LinearFDBTop:
		return fmt.Sprintf("LID %s is above LinearFDBTop, %s", lid, s.Info.LinearFDBTop)
	case out == ib.PortNone:
		return fmt.Sprintf("LID %s has no exit", lid)
	}
	return fmt.Sprintf("LID %s to port %d", lid, out)
}
