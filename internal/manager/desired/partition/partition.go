package partition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// BlockEntries is how many entries one P_KeyTable attribute holds: entry i of
// a table is entry i mod 32 of block i/32.
const BlockEntries = 32

// Table is a P_Key table from index 0 up; 0x0000 is an empty entry. Entries
// past its end are empty.
type Table []ib.PKey

// Blocks is how many blocks of 32 entries hold t.
func (t Table) Blocks() int { return (len(t) + BlockEntries - 1) / BlockEntries }

// Block is the n-th block of t, entries past its end empty. Blocks from
// Blocks() on are empty.
func (t Table) Block(n int) (block [BlockEntries]ib.PKey) {
	if first := n * BlockEntries; first < len(t) {
		copy(block[:], t[first:])
	}
	return block
}

// Input is what Compile needs to know.
type Input struct {
	// Ports are all end ports of the fabric, in any order.
	Ports []PortFacts
	// Resolution tells who belongs where. A port it does not know gets limited
	// membership of the default partition, or with NoDefault no key.
	Resolution *policy.Resolution
	// Fence tells of a port, unless it is nil, that a table too small for it
	// is no reason to refuse the policy: the port is fenced.
	Fence func(ib.PortGUID) bool
}

// PortFacts describes an end port: a CA or router port, or port 0 of a switch.
type PortFacts struct {
	PortGUID ib.PortGUID
	NodeGUID ib.NodeGUID
	PortNum  ib.PortNum
	// Cap is the size of the table in entries (NodeInfo.PartitionCap).
	Cap int
	// Current is the table as it was read, nil if it was not.
	Current Table
	// Facing is the switch port at the other end of the cable, nil for port 0
	// of a switch and where there is no switch.
	Facing *SwitchPortFacts
	// Manager marks the port of the subnet manager itself.
	Manager bool
}

// SwitchPortFacts describes an external port of a switch.
type SwitchPortFacts struct {
	SwitchGUID ib.NodeGUID
	PortNum    ib.PortNum
	// Cap is the size of the table in entries (SwitchInfo.PartitionEnforcementCap), 0 for none.
	Cap int
	// InboundCap and OutboundCap are SwitchInfo's InboundEnforcementCap and
	// OutboundEnforcementCap.
	InboundCap, OutboundCap bool
}

// Output is what the fabric should hold.
type Output struct {
	// EndPorts are sorted by PortGUID, then NodeGUID and PortNum. A port that
	// reports a table of no entries is not among them.
	EndPorts []EndPort
	// SwitchPorts are sorted by SwitchGUID and PortNum: those that face an
	// end port, and no others.
	SwitchPorts []SwitchPort
	// NotEnforced are the switch ports that do not check both directions, in
	// the same order.
	NotEnforced []NotEnforced
	// Fenced are the ports that get the default partition and nothing else, or
	// with NoDefault nothing, because what the policy asks for does not fit them, sorted as EndPorts.
	Fenced []Overflow
	// Warnings tell what is odd about the fabric, sorted.
	Warnings []string
}

// EndPort is the table that an end port should hold.
type EndPort struct {
	PortGUID ib.PortGUID
	NodeGUID ib.NodeGUID
	PortNum  ib.PortNum
	Table    Table
}

// SwitchPort is what a switch port that faces an end port should hold.
type SwitchPort struct {
	SwitchGUID ib.NodeGUID
	PortNum    ib.PortNum
	// Peer is the end port it faces.
	Peer ib.PortGUID
	// HasTable reports whether Table is to be written: the port has a table and the
	// peer's keys fit. A port that checks holds the full key of each of the
	// peer's partitions, one that does not a copy of the peer's keys. Otherwise the table, if any, is without effect and is
	// best left alone.
	HasTable bool
	Table    Table
	// Inbound and Outbound are PortInfo's PartitionEnforcementInbound and
	// PartitionEnforcementOutbound.
	Inbound, Outbound bool
}

// NotEnforced tells why a switch port does not check both directions.
type NotEnforced struct {
	SwitchGUID ib.NodeGUID
	PortNum    ib.PortNum
	Peer       ib.PortGUID
	// Reasons has at least one.
	Reasons []Reason
	// Cap is the size of the port's table, Needed the keys of the peer.
	Cap, Needed int
}

// Reason is why a switch port does not enforce.
type Reason uint8

// The reasons.
const (
	// NoTable: PartitionEnforcementCap is 0.
	NoTable Reason = iota + 1
	// TableTooSmall: the peer has more keys than the switch port has entries.
	TableTooSmall
	// NoInboundCap: the switch cannot check packets that come in.
	NoInboundCap
	// NoOutboundCap: the switch cannot check packets that go out.
	NoOutboundCap
)

// String says the reason in words.
func (r Reason) String() string {
	switch r {
	case NoTable:
		return "the switch has no P_Key tables on its external ports"
	case TableTooSmall:
		return "the switch port's P_Key table is too small"
	case NoInboundCap:
		return "the switch cannot check incoming packets"
	case NoOutboundCap:
		return "the switch cannot check outgoing packets"
	}
	return "unknown reason"
}

// Compile computes the tables. The error, when there is a resolution, is an
// *Error: the policy does not fit the fabric, and nothing of it should be
// applied.
func Compile(in Input) (Output, error) {
	if in.Resolution == nil {
		return Output{}, errors.New("no resolved policy to compile")
	}
	c := compiler{in: in}
	c.ports = slices.SortedStableFunc(slices.Values(in.Ports), comparePorts)
	c.collectKeys()
	var out Output
	for i := range c.ports {
		port := &c.ports[i]
		keys, ok := c.fit(port, c.keys[i])
		if !ok {
			continue
		}
		table := place(port.Current, keys, max(port.Cap, len(keys)))
		if port.Cap > 0 {
			out.EndPorts = append(out.EndPorts, EndPort{port.PortGUID, port.NodeGUID, port.PortNum, table})
		}
		if port.Facing != nil {
			guard, missing := enforce(port, table)
			out.SwitchPorts = append(out.SwitchPorts, guard)
			if in.Resolution.NoDefault && slices.Contains(missing.Reasons, TableTooSmall) {
				c.warnings = append(c.warnings, fmt.Sprintf("switch %v port %d, before port %v: its P_Key table holds %d keys, the port needs %d: it checks nothing",
					missing.SwitchGUID, missing.PortNum, missing.Peer, missing.Cap, missing.Needed))
			}
			if len(missing.Reasons) > 0 {
				out.NotEnforced = append(out.NotEnforced, missing)
			}
		}
	}
	if len(c.faults.Overflows)+len(c.faults.Index0) > 0 {
		return Output{}, &c.faults
	}
	slices.SortFunc(out.SwitchPorts, func(a, b SwitchPort) int {
		return cmp.Or(cmp.Compare(a.SwitchGUID, b.SwitchGUID), cmp.Compare(a.PortNum, b.PortNum))
	})
	slices.SortFunc(out.NotEnforced, func(a, b NotEnforced) int {
		return cmp.Or(cmp.Compare(a.SwitchGUID, b.SwitchGUID), cmp.Compare(a.PortNum, b.PortNum))
	})
	out.Warnings, out.Fenced = c.warnings, c.fenced
	return out, nil
}

func comparePorts(a, b PortFacts) int {
	return cmp.Or(cmp.Compare(a.PortGUID, b.PortGUID), cmp.Compare(a.NodeGUID, b.NodeGUID), cmp.Compare(a.PortNum, b.PortNum))
}

// enforce computes what the switch port that faces port should hold.
func enforce(port *PortFacts, table Table) (SwitchPort, NotEnforced) {
	f := port.Facing
	keys := compact(table)
	guard := SwitchPort{SwitchGUID: f.SwitchGUID, PortNum: f.PortNum, Peer: port.PortGUID}
	missing := NotEnforced{SwitchGUID: f.SwitchGUID, PortNum: f.PortNum, Peer: port.PortGUID, Cap: f.Cap, Needed: len(keys)}
	switch {
	case f.Cap <= 0:
		missing.Reasons = []Reason{NoTable}
		return guard, missing
	case f.Cap < len(keys):
		missing.Reasons = []Reason{TableTooSmall}
		return guard, missing
	}
	guard.Inbound, guard.Outbound = f.InboundCap, f.OutboundCap
	if guard.Inbound || guard.Outbound {
		keys = full(keys)
	}
	guard.HasTable, guard.Table = true, keys
	if !f.InboundCap {
		missing.Reasons = append(missing.Reasons, NoInboundCap)
	}
	if !f.OutboundCap {
		missing.Reasons = append(missing.Reasons, NoOutboundCap)
	}
	return guard, missing
}

// full gives the keys of a switch port that checks: of each partition the full
// one. A switch matches as an end port does, so that a limited key in its table
// would stop what a limited member sends, and let pass what it could only
// forge; a full key lets both pass. Who may talk to whom among the members of
// one partition is for their own tables to say.
func full(keys Table) Table {
	out := make(Table, len(keys))
	for i, k := range keys {
		out[i] = k.Base().Full()
	}
	return out
}

// compact gives the keys of an end port as the switch port facing it holds
// them: in order, without gaps, and without a limited key whose full twin is
// there too, which lets the packets of both pass.
func compact(table Table) Table {
	full := map[ib.PKey]bool{}
	for _, k := range table {
		if k.IsFull() {
			full[k] = true
		}
	}
	keys := make(Table, 0, len(table))
	for _, k := range table {
		if k.IsValid() && (k.IsFull() || !full[k.Base().Full()]) {
			keys = append(keys, k)
		}
	}
	return keys
}
