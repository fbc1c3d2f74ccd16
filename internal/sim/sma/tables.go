package sma

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

func (a *Agent) serveGUIDInfo(r request) mad.Status {
	if r.AttributeModifier >= smp.GUIDInfoBlocks {
		return mad.StatusInvalidField
	}
	p := r.end
	first := int(r.AttributeModifier) * smp.GUIDsPerBlock
	var block smp.GUIDInfo
	if r.set {
		if err := block.UnmarshalBinary(r.Data[:]); err != nil {
			return mad.StatusInvalidField
		}
		for i, guid := range block.GUIDs {
			// Index 0 is the port's own.
			if index := first + i; index > 0 && index < int(p.info.GUIDCap) {
				p.guids = put(p.guids, index, guid)
			}
		}
	}
	for i := range block.GUIDs {
		block.GUIDs[i] = at(p.guids, first+i)
	}
	if first == 0 {
		block.GUIDs[0] = uint64(p.guid)
	}
	return done(block.Encode(&r.Data))
}

// GUID is entry i of the GUID table of end port n, 0 where the manager has
// assigned none; ok is false past the end of the table.
func (a *Agent) GUID(n ib.PortNum, i int) (guid uint64, ok bool) {
	p := a.port(n)
	switch {
	case p == nil || !p.kind.isEnd() || i < 0 || i >= int(p.info.GUIDCap):
		return 0, false
	case i == 0:
		return uint64(p.guid), true
	}
	return at(p.guids, i), true
}

// put writes an entry of a table that is kept only as far as it was written.
// Zeros behind its end are not kept.
func put[T comparable](table []T, index int, value T) []T {
	var zero T
	if index >= len(table) {
		if value == zero {
			return table
		}
		table = append(table, make([]T, index+1-len(table))...)
	}
	table[index] = value
	return table
}

// at reads an entry of such a table.
func at[T any](table []T, index int) T {
	if index < len(table) {
		return table[index]
	}
	var zero T
	return zero
}

// PKeys is the P_Key table of port n as far as it was written; entries behind
// its end are empty. It must not be written and is valid until the next call
// of Handle.
func (a *Agent) PKeys(n ib.PortNum) []ib.PKey {
	p := a.port(n)
	switch {
	case p == nil || a.pkeyCap(p) == 0:
		return nil
	case p.keys == nil:
		return a.defaultKeys
	}
	return p.keys
}

// pkeyCap is the number of entries of a port's P_Key table.
func (a *Agent) pkeyCap(p *port) int {
	if p.kind == external {
		return int(a.fabric.info.PartitionEnforcementCap)
	}
	return int(a.node.PartitionCap)
}

func (a *Agent) servePKeyTable(r request) mad.Status {
	n, block, ok := smp.SplitPKeyModifier(r.AttributeModifier)
	if a.fabric == nil {
		n, ok = r.from.Port, true
	}
	p := a.port(n)
	if !ok || p == nil || a.pkeyCap(p) == 0 {
		return mad.StatusInvalidField
	}
	first, size := int(block)*smp.PKeysPerBlock, a.pkeyCap(p)
	if first >= size {
		return a.pastTheEnd(r)
	}
	if r.set && !a.setPKeys(r, n, p, first, size) {
		return mad.StatusInvalidField
	}
	var t smp.PKeyTable
	keys := a.PKeys(n)
	for i := range t.Keys {
		t.Keys[i] = at(keys, first+i)
	}
	return done(t.Encode(&r.Data))
}

func (a *Agent) setPKeys(r request, n ib.PortNum, p *port, first, size int) bool {
	var t smp.PKeyTable
	if err := t.UnmarshalBinary(r.Data[:]); err != nil {
		return false
	}
	changed := false
	keys := a.PKeys(n)
	next := append([]ib.PKey{}, keys...)
	for i, key := range t.Keys[:min(len(t.Keys), size-first)] {
		changed = changed || key != at(keys, first+i)
		next = put(next, first+i, key)
	}
	if a.options.OneMembership && holdsBoth(next) {
		return false
	}
	if changed {
		p.keys = next
		a.effect(Effect{Kind: PKeysChanged, Port: n})
	}
	return true
}

// holdsBoth reports whether a table holds full and limited membership of one
// partition.
func holdsBoth(keys []ib.PKey) bool {
	seen := map[ib.PKeyBase]ib.PKey{}
	for _, k := range keys {
		if !k.IsValid() {
			continue
		}
		if other, ok := seen[k.Base()]; ok && other != k {
			return true
		}
		seen[k.Base()] = k
	}
	return false
}

// virtual lanes is a SLToVLMappingTable, two levels to a byte as on the wire. At
// power-up all levels go to virtual lane 0, which every port has.
type lanes [smp.SLToVLMappingTableSize]byte

func (l *lanes) vl(sl ib.SL) ib.VL {
	if sl&1 == 0 {
		return ib.VL(l[sl>>1] >> 4)
	}
	return ib.VL(l[sl>>1] & 0x0F)
}

// VL is the virtual lane on which a packet of a service level leaves. in and out are
// ports of a switch, in being 0 for packets of the switch itself; on a CA or
// router only out counts.
func (a *Agent) VL(in, out ib.PortNum, sl ib.SL) ib.VL {
	p := a.port(out)
	if p == nil || sl >= smp.SLCount {
		return ib.VLManagement
	}
	if a.fabric == nil {
		if p.slToVL == nil {
			return 0
		}
		return p.slToVL.vl(sl)
	}
	if at := a.pair(in, out); at < len(a.fabric.slToVL) {
		return a.fabric.slToVL[at].vl(sl)
	}
	return 0
}

// pair is the place of a pair of ports among a switch's tables.
func (a *Agent) pair(in, out ib.PortNum) int { return int(in)*len(a.ports) + int(out) }

func (a *Agent) serveSLToVL(r request) mad.Status {
	if a.fabric != nil {
		return a.serveSwitchSLToVL(r)
	}
	p := r.end
	if smp.DataVLs(p.info.VLCap) < 2 {
		return mad.StatusUnsupportedMethod
	}
	if r.set {
		table := lanes(r.Data[:])
		p.slToVL = &table
	}
	var now lanes
	if p.slToVL != nil {
		now = *p.slToVL
	}
	return answerLanes(r, now)
}

func answerLanes(r request, table lanes) mad.Status {
	r.Data = [mad.DataSize]byte{}
	copy(r.Data[:], table[:])
	return mad.StatusOK
}

// serveSwitchSLToVL serves the table of a pair of ports. A Set may name all
// inputs or outputs at once when the switch knows how.
func (a *Agent) serveSwitchSLToVL(r request) mad.Status {
	target, ok := smp.SplitSLToVLModifier(r.AttributeModifier)
	many := target.AllInputs || target.AllOutputs
	if !ok || many && (!r.set || a.fabric.info.OptimizedSLToVLMappingProgramming == 0) {
		return mad.StatusInvalidField
	}
	ins, ok := a.span(target.In, target.AllInputs)
	if !ok {
		return mad.StatusInvalidField
	}
	outs, ok := a.span(target.Out, target.AllOutputs)
	if !ok || !a.hasExit(target.Out) && !target.AllOutputs {
		return mad.StatusInvalidField
	}
	if !target.AllOutputs && smp.DataVLs(a.ports[outs.first].info.VLCap) < 2 {
		return mad.StatusUnsupportedMethod
	}
	if r.set {
		a.setSLToVL(lanes(r.Data[:]), ins, outs)
	}
	var now lanes
	if at := a.pair(ins.first, outs.last); at < len(a.fabric.slToVL) {
		now = a.fabric.slToVL[at]
	}
	return answerLanes(r, now)
}

// setSLToVL writes the tables of many pairs, leaving out exits that have none.
func (a *Agent) setSLToVL(table lanes, ins, outs span) {
	for in := int(ins.first); in <= int(ins.last); in++ {
		for out := int(outs.first); out <= int(outs.last); out++ {
			n := ib.PortNum(out)
			if a.hasExit(n) && smp.DataVLs(a.ports[n].info.VLCap) >= 2 {
				a.fabric.slToVL = put(a.fabric.slToVL, a.pair(ib.PortNum(in), n), table)
			}
		}
	}
}

// span is a range of ports, both ends in it.
type span struct{ first, last ib.PortNum }

// span is one port, or all of them.
func (a *Agent) span(n ib.PortNum, all bool) (s span, ok bool) {
	if all {
		return span{0, ib.PortNum(len(a.ports) - 1)}, true
	}
	return span{n, n}, a.port(n) != nil
}

// hasExit reports whether packets of a switch can queue at port n.
func (a *Agent) hasExit(n ib.PortNum) bool {
	p := a.port(n)
	return p != nil && p.kind.hasLink()
}

// VLArbitration holds the high-priority and the low-priority table of port n,
// as far as they were written. They must not be written.
func (a *Agent) VLArbitration(n ib.PortNum) (high, low []smp.VLArbitrationEntry) {
	if p := a.port(n); p != nil {
		return p.high, p.low
	}
	return nil, nil
}

func (a *Agent) serveVLArbitration(r request) mad.Status {
	part, n, ok := smp.SplitVLArbModifier(r.AttributeModifier)
	if a.fabric == nil {
		n, ok = r.from.Port, true
	}
	if !ok || !part.IsValid() || !a.hasExit(n) {
		return mad.StatusInvalidField
	}
	p := a.port(n)
	if smp.DataVLs(p.info.VLCap) < 2 {
		return mad.StatusUnsupportedMethod
	}
	table, size := &p.low, int(p.info.VLArbitrationLowCap)
	if part.IsHigh() {
		table, size = &p.high, int(p.info.VLArbitrationHighCap)
	}
	var t smp.VLArbitrationTable
	if r.set {
		if err := t.UnmarshalBinary(r.Data[:]); err != nil {
			return mad.StatusInvalidField
		}
		for _, e := range t.Entries {
			if e.VL == ib.VLManagement {
				return mad.StatusInvalidField // has no turn: it goes first always
			}
		}
		for i, e := range t.Entries[:max(0, min(len(t.Entries), size-part.First()))] {
			*table = put(*table, part.First()+i, e)
		}
	}
	t = smp.VLArbitrationTable{}
	for i := range t.Entries {
		t.Entries[i] = at(*table, part.First()+i)
	}
	return done(t.Encode(&r.Data))
}
