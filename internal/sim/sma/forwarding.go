package sma

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// forwarding is what a switch has beyond other devices. Its tables are kept as
// far as they were written.
type forwarding struct {
	info   smp.SwitchInfo
	linear linear
	random []smp.RandomEntry
	// routes is the random table by LID, nil when it has to be worked out.
	routes []route
	// masks of ports by position and by multicast LID from 0xC000.
	masks  [smp.MulticastPosition][]uint16
	slToVL []lanes // by pair of ports
}

// linear is a forwarding table by LID, as far as it was written: in pieces, so that a table
// that grows takes no more memory than it has entries.
type linear struct {
	pieces [][]ib.PortNum
	size   int // entries
}

// pieceSize is a number of LIDs; blocks do not lie across pieces.
const pieceSize = 8 * smp.LIDsPerLinearBlock

// at is the entry of a LID below size.
func (l *linear) at(lid int) ib.PortNum { return l.pieces[lid/pieceSize][lid%pieceSize] }

// block are the entries of a block as far as the table has them.
func (l *linear) block(first int) []ib.PortNum {
	if first >= l.size {
		return nil
	}
	return l.pieces[first/pieceSize][first%pieceSize : min(first%pieceSize+smp.LIDsPerLinearBlock, l.size-first/pieceSize*pieceSize)]
}

// grow makes room up to a size.
func (l *linear) grow(size int) {
	for len(l.pieces)*pieceSize < size {
		l.pieces = append(l.pieces, slices.Repeat([]ib.PortNum{ib.PortNone}, pieceSize))
	}
	l.size = max(l.size, size)
}

// noMulticast is the MulticastFDBTop that routes nothing.
const noMulticast = ib.LIDMulticastMin - 1

func newForwarding(c *SwitchConfig) *forwarding {
	f := &forwarding{info: smp.SwitchInfo{
		LinearFDBCap:            c.LinearFDBCap,
		RandomFDBCap:            c.RandomFDBCap,
		MulticastFDBCap:         c.MulticastFDBCap,
		LIDsPerPort:             c.LIDsPerPort,
		PartitionEnforcementCap: c.PartitionEnforcementCap,
		InboundEnforcementCap:   c.InboundEnforcementCap,
		OutboundEnforcementCap:  c.OutboundEnforcementCap,
		FilterRawInboundCap:     c.FilterRawInboundCap,
		FilterRawOutboundCap:    c.FilterRawOutboundCap,
		EnhancedPort0:           c.EnhancedPort0,
		// Nothing goes anywhere before a manager says so.
		DefaultMulticastPrimaryPort:    ib.PortNone,
		DefaultMulticastNotPrimaryPort: ib.PortNone,
	}}
	if c.RandomFDBCap != 0 {
		f.info.DefaultPort = ib.PortNone
	}
	if c.OptimizedSLToVL {
		f.info.OptimizedSLToVLMappingProgramming = 1
	}
	if c.Port0.CapabilityMask.Has(smp.CapMulticastFDBTop) {
		f.info.MulticastFDBTop = noMulticast
	}
	return f
}

func (a *Agent) serveSwitchInfo(r request) mad.Status {
	if r.AttributeModifier != 0 {
		return mad.StatusInvalidField
	}
	f := a.fabric
	status := mad.StatusOK
	if r.set {
		var want smp.SwitchInfo
		if err := want.UnmarshalBinary(r.Data[:]); err != nil {
			return mad.StatusInvalidField
		}
		before := f.info
		status = a.setSwitchInfo(&want)
		if f.info != before {
			a.effect(Effect{Kind: ForwardingChanged})
		}
	}
	if err := f.info.Encode(&r.Data); err != nil {
		return mad.StatusInvalidField
	}
	return status
}

func (a *Agent) setSwitchInfo(want *smp.SwitchInfo) mad.Status {
	i := &a.fabric.info
	past := i.LinearFDBCap != 0 && uint16(want.LinearFDBTop) >= i.LinearFDBCap
	if past && a.options.BadInput == BadInputRefused {
		return mad.StatusInvalidField
	}
	i.DefaultMulticastPrimaryPort = want.DefaultMulticastPrimaryPort
	i.DefaultMulticastNotPrimaryPort = want.DefaultMulticastNotPrimaryPort
	i.LifeTimeValue = want.LifeTimeValue
	if want.PortStateChange {
		i.PortStateChange = false
	}
	if i.RandomFDBCap != 0 {
		i.DefaultPort = want.DefaultPort
	}
	if a.ports[0].info.CapabilityMask.Has(smp.CapMulticastFDBTop) {
		i.MulticastFDBTop = want.MulticastFDBTop
	}
	if past {
		return a.bad()
	}
	i.LinearFDBTop = want.LinearFDBTop
	return mad.StatusOK
}

func (a *Agent) serveLinear(r request) mad.Status {
	f := a.fabric
	size := int(f.info.LinearFDBCap)
	if size == 0 {
		return mad.StatusUnsupportedAttrib
	}
	if r.AttributeModifier >= smp.LinearBlocks || int(r.AttributeModifier)*smp.LIDsPerLinearBlock >= size {
		return a.pastTheEnd(r)
	}
	first := int(r.AttributeModifier) * smp.LIDsPerLinearBlock
	var t smp.LinearForwardingTable
	if r.set {
		if err := t.UnmarshalBinary(r.Data[:]); err != nil {
			return mad.StatusInvalidField
		}
		f.linear.grow(min(first+len(t.Ports), size))
		if n := copy(f.linear.block(first), t.Ports[:]); n > 0 {
			a.effect(Effect{Kind: ForwardingChanged})
		}
	}
	for i := range t.Ports {
		t.Ports[i] = ib.PortNone
	}
	copy(t.Ports[:], f.linear.block(first))
	return done(t.Encode(&r.Data))
}

func (a *Agent) serveRandom(r request) mad.Status {
	f := a.fabric
	size := int(f.info.RandomFDBCap)
	if size == 0 {
		return mad.StatusUnsupportedAttrib
	}
	if r.AttributeModifier >= smp.RandomBlocks || int(r.AttributeModifier)*smp.RandomEntriesPerBlock >= size {
		return a.pastTheEnd(r)
	}
	first := int(r.AttributeModifier) * smp.RandomEntriesPerBlock
	var t smp.RandomForwardingTable
	if r.set {
		if err := t.UnmarshalBinary(r.Data[:]); err != nil {
			return mad.StatusInvalidField
		}
		for i, e := range t.Entries[:min(len(t.Entries), size-first)] {
			f.random = put(f.random, first+i, e)
		}
		f.routes = nil
		a.effect(Effect{Kind: ForwardingChanged})
	}
	t = smp.RandomForwardingTable{}
	for i := range t.Entries {
		t.Entries[i] = at(f.random, first+i)
	}
	return done(t.Encode(&r.Data))
}

func (a *Agent) serveMulticast(r request) mad.Status {
	f := a.fabric
	size := int(f.info.MulticastFDBCap)
	if size == 0 {
		return mad.StatusUnsupportedAttrib
	}
	block, position, ok := smp.SplitMFTModifier(r.AttributeModifier)
	if !ok || int(position)*smp.PortsPerPosition >= len(a.ports) {
		return mad.StatusInvalidField
	}
	first := int(block) * smp.MLIDsPerBlock
	if first >= size {
		return a.pastTheEnd(r)
	}
	var t smp.MulticastForwardingTable
	masks := &f.masks[position]
	if r.set {
		if err := t.UnmarshalBinary(r.Data[:]); err != nil {
			return mad.StatusInvalidField
		}
		for i, mask := range t.Masks[:min(len(t.Masks), size-first)] {
			*masks = put(*masks, first+i, mask)
		}
		a.effect(Effect{Kind: ForwardingChanged})
	}
	for i := range t.Masks {
		t.Masks[i] = at(*masks, first+i)
	}
	return done(t.Encode(&r.Data))
}

// UnicastExit is the port by which a packet for a unicast LID leaves the
// switch, 0 for the switch itself; ok is false when the packet is dropped.
func (a *Agent) UnicastExit(in ib.PortNum, lid ib.LID) (exit ib.PortNum, ok bool) {
	if a.fabric == nil || !lid.IsUnicast() {
		return 0, false
	}
	f := a.fabric
	if f.info.LinearFDBCap != 0 {
		if lid > f.info.LinearFDBTop || int(lid) >= f.linear.size {
			return 0, false
		}
		exit = f.linear.at(int(lid))
		return exit, a.port(exit) != nil
	}
	if f.routes == nil {
		f.routes = randomRoutes(f.random)
	}
	if int(lid) < len(f.routes) && f.routes[lid].found {
		exit = f.routes[lid].exit
		return exit, a.port(exit) != nil
	}
	exit = f.info.DefaultPort
	return exit, exit != in && a.port(exit) != nil
}

// route is what a random table says of one LID.
type route struct {
	found bool // an entry holds the LID
	exit  ib.PortNum
}

// randomRoutes works out the routes by LID. Of two entries for a LID the first
// counts.
func randomRoutes(entries []smp.RandomEntry) []route {
	routes := []route{}
	for _, e := range slices.Backward(entries) {
		if !e.Valid || !e.LID.IsUnicast() {
			continue
		}
		first := int(e.LID) &^ (e.LMC.Count() - 1)
		for lid := first; lid < first+e.LMC.Count(); lid++ {
			for len(routes) <= lid {
				routes = append(routes, route{})
			}
			routes[lid] = route{true, e.Port}
		}
	}
	return routes
}

// PortSet is a set of ports of a switch.
type PortSet [4]uint64

// Has reports whether n is in the set.
func (s *PortSet) Has(n ib.PortNum) bool { return s[n>>6]>>(n&63)&1 != 0 }

// All yields the ports of the set in rising order.
func (s *PortSet) All() iter.Seq[ib.PortNum] {
	return func(yield func(ib.PortNum) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(ib.PortNum(i<<6 | bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

func (s *PortSet) add(n ib.PortNum)    { s[n>>6] |= 1 << (n & 63) }
func (s *PortSet) remove(n ib.PortNum) { s[n>>6] &^= 1 << (n & 63) }

// MulticastExits are the ports by which copies of a packet for a multicast LID
// leave the switch: those of its table entry but for the one it came in by, or
// one of the default ports when there is no entry for it.
func (a *Agent) MulticastExits(in ib.PortNum, lid ib.LID) (exits PortSet) {
	if a.fabric == nil || !lid.IsMulticast() {
		return exits
	}
	exits, ok := a.multicastEntry(lid)
	if ok {
		exits.remove(in)
		return exits
	}
	exit := a.fabric.info.DefaultMulticastPrimaryPort
	if in == exit {
		exit = a.fabric.info.DefaultMulticastNotPrimaryPort
	}
	if exit != in && a.port(exit) != nil {
		exits.add(exit)
	}
	return exits
}

// multicastEntry is the entry for a multicast LID; ok is false when there is
// none. It may name ports that do not exist: they are left out.
func (a *Agent) multicastEntry(lid ib.LID) (ports PortSet, ok bool) {
	f := a.fabric
	index := int(lid - ib.LIDMulticastMin)
	bounded := a.ports[0].info.CapabilityMask.Has(smp.CapMulticastFDBTop)
	if index >= int(f.info.MulticastFDBCap) || bounded && lid > f.info.MulticastFDBTop {
		return ports, false
	}
	for position := range f.masks {
		if index < len(f.masks[position]) {
			first := position * smp.PortsPerPosition
			ports[first>>6] |= uint64(f.masks[position][index]) << (first & 63)
		}
	}
	ok = ports != (PortSet{})
	for n := range ports.All() {
		if a.port(n) == nil {
			ports.remove(n)
		}
	}
	return ports, ok
}
