package routes

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// SLs is a set of service levels: bit n for level n.
type SLs uint16

// AllSLs is every service level.
const AllSLs SLs = 1<<smp.SLCount - 1

// SL is the set of one level.
func SL(l ib.SL) SLs { return 1 << l }

// Talk says which end ports exchange packets on data lanes.
type Talk uint8

// The ways to talk.
const (
	// Answers: CA and router ports with all end ports, port 0 of switches with those and
	// with the manager's port.
	Answers Talk = iota
	// Hosts: CA and router ports with each other only.
	Hosts
	// Everybody: every end port with every other.
	Everybody
)

// Input is what is judged.
type Input struct {
	Fabric *observed.Fabric
	// Ends say who has which LIDs; a port may stand there several times.
	Ends []End
	// Tables are the forwarding tables by Node.Index; empty ones of nodes that are not
	// switches.
	Tables []Table
	Levels Levels
	// Lanes is the mapping to virtual lanes for an exit port, VLs the number of data
	// virtual lanes in operation there. A CA or router port sends by its own.
	Lanes  func(out *observed.Port) Mapping
	VLs    func(p *observed.Port) int
	Groups []Group
	// GroupLevels are levels that groups may have later, for Result.Regroup.
	GroupLevels SLs
	Talk        Talk

	// Parts is the number of parts into which the work is divided, 0 for one. Parallel
	// calls do for 0 to n-1, in any order or at once; nil: one after the other.
	Parts    int
	Parallel func(n int, do func(i int))
}

// End is an end port and its LIDs: LMC.Count() of them from LID up.
type End struct {
	Port *observed.Port
	LID  ib.LID
	LMC  ib.LMC
}

// Table is where a switch sends packets.
type Table struct {
	// Exits holds the exit port of each LID from 0: 0 for the switch itself,
	// ib.PortNone for none; LIDs beyond its end have none.
	Exits []ib.PortNum
	// Unread tells by block of smp.LIDsPerLinearBlock LIDs what was not read; nil:
	// nothing.
	Unread []bool
	// Default tells by LID that the exit is the default port of a random table, by which
	// no packet goes back; nil: none is.
	Default []bool
}

func (t *Table) exit(l ib.LID) (out ib.PortNum, read bool) {
	if block := int(l) / smp.LIDsPerLinearBlock; block < len(t.Unread) && t.Unread[block] {
		return ib.PortNone, false
	}
	if int(l) >= len(t.Exits) {
		return ib.PortNone, true
	}
	return t.Exits[l], true
}

func (t *Table) byDefault(l ib.LID) bool { return int(l) < len(t.Default) && t.Default[l] }

// Levels are the service levels that packets have. The zero value is SL 0 for all.
type Levels struct {
	// Of are the levels of the packets of each layer; nil: SL 0.
	Of []SLs
	// Layer is the layer of packets by the switch that they enter first and by that of the
	// LID, by the Place of their Node.Index; nil, and places that it does not have: layer 0.
	Layer [][]uint8
	Place []int32
	// Each, when it is set, tells the levels of packets from an end port to a LID, none
	// where there are no packets, and Layer does not count. Of[0] then holds all of them
	// together; nil: AllSLs.
	Each func(from *observed.Port, to ib.LID) SLs
}

// PathLevels are those of paths to which s gives service levels, for the levels of a policy;
// s may be nil.
func PathLevels(s *observed.ServiceLevels, levels ...ib.SL) Levels {
	var l Levels
	if s == nil || s.Layer == nil {
		set := SLs(0)
		for _, level := range levels {
			set |= SL(level)
		}
		l.Of = []SLs{set}
		return l
	}
	l.Layer, l.Place = s.Layer, s.Place
	for _, level := range levels {
		for layer, sl := range s.SL[level] {
			for len(l.Of) <= layer {
				l.Of = append(l.Of, 0)
			}
			l.Of[layer] |= SL(sl)
		}
	}
	return l
}

// layer is that of packets between two switches.
func (l *Levels) layer(from, to *observed.Node) uint8 {
	x, y := l.place(from), l.place(to)
	if x < 0 || x >= len(l.Layer) || y < 0 || y >= len(l.Layer[x]) {
		return 0
	}
	return l.Layer[x][y]
}

func (l *Levels) place(n *observed.Node) int {
	if n.Index >= len(l.Place) {
		return -1
	}
	return int(l.Place[n.Index])
}

func (l *Levels) of(layer uint8) SLs {
	switch {
	case int(layer) < len(l.Of):
		return l.Of[layer]
	case layer == 0 && l.Of == nil:
		return SL(0)
	}
	return 0
}

// all is every level that may occur.
func (l *Levels) all() (set SLs) {
	if l.Of == nil && l.Each != nil {
		return AllSLs
	}
	if l.Of == nil {
		return SL(0)
	}
	for _, s := range l.Of {
		set |= s
	}
	return set
}

// Mapping gives the virtual lane at an exit port: the table of the entry port in By or In,
// else Every. Without any all levels take VL 0.
type Mapping struct {
	Every *smp.SLToVLMappingTable
	By    []*smp.SLToVLMappingTable
	In    map[ib.PortNum]smp.SLToVLMappingTable
}

func (m *Mapping) table(in ib.PortNum) (t [smp.SLCount]ib.VL) {
	if int(in) < len(m.By) && m.By[in] != nil {
		return m.By[in].VLs
	}
	if x, ok := m.In[in]; ok {
		return x.VLs
	}
	if m.Every != nil {
		return m.Every.VLs
	}
	return t
}

// same reports whether the entry port does not count.
func (m *Mapping) same() bool { return len(m.By) == 0 && len(m.In) == 0 }

// has reports whether there is a table of the entry port's own.
func (m *Mapping) has(in ib.PortNum) bool {
	_, read := m.In[in]
	return read || int(in) < len(m.By) && m.By[in] != nil
}

// Group is a multicast group: its MLID, the levels of its packets, and by which ports
// switches copy them.
type Group struct {
	MLID ib.LID
	SLs  SLs
	// Exits are the ports of a switch that copies go out by, 0 for the switch itself,
	// of a packet that came in by port in; none of them is in.
	Exits func(n *observed.Node, in ib.PortNum) []ib.PortNum
}

// Read is an Input of what was read from the devices. Where no SLToVLMappingTable was
// read, all levels take VL 0.
func Read(f *observed.Fabric) *Input { return Wanted(f, observed.NewDesired(f)) }

// Wanted is an Input of what d wants, and of what was read where d leaves it alone.
func Wanted(f *observed.Fabric, d *observed.Desired) *Input {
	var ends []End
	for _, p := range f.EndPorts() {
		lid, lmc := p.Info.LID, p.Info.LMC
		want := d.Port(p)
		if want.Elements&observed.ElementLID != 0 {
			lid = want.Info.LID
		} else if !p.InfoRead {
			continue
		}
		if want.Elements&observed.ElementLMC != 0 {
			lmc = want.Info.LMC
		}
		if lid.IsUnicast() && (lid + ib.LID(lmc.Count()-1)).IsUnicast() {
			ends = append(ends, End{p, lid, lmc})
		}
	}
	return WantedFor(f, d, ends)
}

// WantedFor is Wanted with these end ports and LIDs.
func WantedFor(f *observed.Fabric, d *observed.Desired, ends []End) *Input {
	in := &Input{Fabric: f, Ends: ends}
	in.Tables = WantedTables(f, d, in.top())
	in.lanesOf(d)
	return in
}

// lanesOf takes virtual lanes from d, and from what was read where d leaves them alone.
func (in *Input) lanesOf(d *observed.Desired) {
	in.Lanes = func(out *observed.Port) Mapping {
		switch w := d.Port(out).SLToVL; len(w) {
		case 0:
		case 1:
			return Mapping{Every: w[0]}
		default:
			return Mapping{By: w}
		}
		return Mapping{In: out.SLToVL}
	}
	in.VLs = func(p *observed.Port) int {
		code := p.Info.OperationalVLs
		if w := d.Port(p); w.Elements&observed.ElementOperationalVLs != 0 {
			code = w.Info.OperationalVLs
		}
		return max(1, smp.DataVLs(code))
	}
}

// WantedTables are the tables of d up to a LID, and those that were read where d leaves a
// switch alone.
func WantedTables(f *observed.Fabric, d *observed.Desired, top ib.LID) []Table {
	tables := make([]Table, len(f.Nodes))
	for _, n := range f.Switches() {
		w := &d.Nodes[n.Index]
		switch {
		case w.LFT != nil:
			tables[n.Index] = Table{Exits: w.LFT}
		case w.RFT != nil:
			tables[n.Index] = randomTable(w.RFT, w.DefaultPort, top)
		default:
			tables[n.Index] = readTable(n.Switch, top)
		}
	}
	return tables
}

// top is the highest LID of all ends.
func (in *Input) top() (top ib.LID) {
	for _, e := range in.Ends {
		top = max(top, e.last())
	}
	return top
}

func (e End) last() ib.LID { return e.LID + ib.LID(e.LMC.Count()-1) }

func randomTable(entries []smp.RandomEntry, other ib.PortNum, top ib.LID) Table {
	t := Table{Exits: make([]ib.PortNum, int(top)+1), Default: make([]bool, int(top)+1)}
	for lid := range t.Exits {
		t.Exits[lid], t.Default[lid] = other, true
	}
	for _, e := range slices.Backward(entries) { // of two that cover a LID the first counts
		first := int(e.LID) >> e.LMC << e.LMC
		for lid := first; e.Valid && lid < min(first+e.LMC.Count(), len(t.Exits)); lid++ {
			t.Exits[lid], t.Default[lid] = e.Port, false
		}
	}
	return t
}

// readTable is the table of a switch as it was read.
func readTable(s *observed.Switch, top ib.LID) Table {
	blocks := int(top)/smp.LIDsPerLinearBlock + 1
	switch {
	case !s.InfoRead:
		return Table{Unread: slices.Repeat([]bool{true}, blocks)}
	case s.Info.LinearFDBCap != 0:
		t := Table{Exits: s.LFT[:min(len(s.LFT), int(s.Info.LinearFDBTop)+1)]}
		for block := range blocks {
			read := block < len(s.LFTRead) && s.LFTRead[block]
			t.Unread = append(t.Unread, !read && block*smp.LIDsPerLinearBlock <= int(s.Info.LinearFDBTop))
		}
		return t
	}
	t := Table{Exits: make([]ib.PortNum, int(top)+1), Default: make([]bool, int(top)+1), Unread: make([]bool, blocks)}
	for lid := range t.Exits {
		out, known := s.Exit(ib.LID(lid), observed.AnyPort)
		t.Exits[lid] = out
		t.Unread[lid/smp.LIDsPerLinearBlock] = t.Unread[lid/smp.LIDsPerLinearBlock] || !known
		back, _ := s.Exit(ib.LID(lid), out)
		t.Default[lid] = known && back != out // what comes in by the default port does not leave by it
	}
	return t
}
