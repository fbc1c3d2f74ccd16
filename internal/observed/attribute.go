package observed

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// kept says all that the snapshot, a sweep and a snapshot's file have to know of an
// attribute.
type kept struct {
	id mad.AttributeID
	// absorb enters an answer of p, or of the port of its switch that modifier selects.
	absorb func(p *Port, modifier uint32, data []byte) error
	// unread marks what absorb entered as not read; nil where nothing is marked.
	unread func(p *Port, modifier uint32)
	// held calls tell with what absorb entered for p; nil where a file has it elsewhere.
	held func(p *Port, tell tellFunc)
	// place is the place of its answers among those of a node in a file: the order of
	// files is older than this table. 0 where held is nil.
	place int
	// tables calls ask with every modifier by which a sweep of that scope reads the
	// attribute of p; nil for what is read before ports and links are known.
	tables func(p *Port, s Scope, ask askFunc)
	// blocks calls ask with every modifier by which p is to be read again, since another
	// manager could change the value; nil for attributes that are not read again.
	blocks func(p *Port, ask askFunc)
}

// For what belongs to a switch as a whole, held, tables and blocks are called with port 0.
type (
	tellFunc func(modifier uint32, v smp.Attribute, read bool)
	askFunc  func(modifier uint32)
)

// attributes are those that a snapshot keeps, each described in a file of its own: first
// those of ports, then those of switches, in the order of a sweep and of Fabric.Blocks.
var attributes = []kept{
	keptNodeDescription,
	keptPortInfo,
	keptPKeyTable,
	keptSMInfo,
	keptGUIDInfo,
	keptVendorDiag,
	keptSLToVL,
	keptVLArbitration,
	keptSwitchInfo,
	keptLFT,
	keptRFT,
	keptMFT,
}

// ofSwitch reports whether the attribute belongs to a switch as a whole.
func (x *kept) ofSwitch() bool {
	d, _ := smp.Describe(x.id)
	return d.Of == smp.OfSwitch
}

// ofPorts and ofSwitches are the attributes by what they belong to.
var ofPorts, ofSwitches = func() (ports, switches []kept) {
	for _, x := range attributes {
		if x.ofSwitch() {
			switches = append(switches, x)
		} else {
			ports = append(ports, x)
		}
	}
	return ports, switches
}()

// inFiles are the attributes that files have as answers, in their order: runs of those
// that belong to ports, and of those that belong to switches.
var inFiles = func() (runs [][]kept) {
	sorted := slices.DeleteFunc(slices.Clone(attributes), func(x kept) bool { return x.held == nil })
	slices.SortFunc(sorted, func(a, b kept) int { return cmp.Compare(a.place, b.place) })
	for _, x := range sorted {
		if n := len(runs); n > 0 && runs[n-1][0].ofSwitch() == x.ofSwitch() {
			runs[n-1] = append(runs[n-1], x)
		} else {
			runs = append(runs, []kept{x})
		}
	}
	return runs
}()

// byID are the attributes by number.
var byID = func() map[mad.AttributeID]*kept {
	out := make(map[mad.AttributeID]*kept, len(attributes))
	for i := range attributes {
		out[attributes[i].id] = &attributes[i]
	}
	return out
}()

// Keeps reports whether a snapshot keeps an attribute.
func Keeps(attribute mad.AttributeID) bool { return byID[attribute] != nil }

// Absorb enters the answer of a device: attribute and modifier of a Get or
// Set that was sent along p's Path, and the 64 bytes that came back. For an
// attribute of a switch p is any port of it whose Path leads there; tables of
// a port go to the port that the modifier selects. An answer that makes no
// sense for this device is an error and changes nothing.
func (p *Port) Absorb(attribute mad.AttributeID, modifier uint32, data []byte) error {
	x := byID[attribute]
	if x == nil {
		return fmt.Errorf("%s: the snapshot keeps no attribute 0x%04x", p, uint16(attribute))
	}
	return x.absorb(p, modifier, data)
}

// MarkUnread marks what Absorb entered for the same attribute and modifier as not
// read, because the device was asked again and did not answer.
func (p *Port) MarkUnread(attribute mad.AttributeID, modifier uint32) {
	if x := byID[attribute]; x != nil && x.unread != nil {
		x.unread(p, modifier)
		return
	}
	p.noteNode(attribute)
}

// Scope says which tables are read.
type Scope struct {
	// Forwarding is every unicast forwarding table in use.
	Forwarding bool
	// QoS is SLToVLMappingTables and VLArbitrationTables.
	QoS bool
	// Audit is what only an audit looks at: the P_Key tables of all switch ports, SMInfo
	// where a port says that a subnet manager is behind it, and GUIDInfo of end ports.
	Audit bool
	// Aliases is GUIDInfo of end ports that have more than one entry.
	Aliases bool
	// Multicast is every multicast forwarding table in use.
	Multicast bool
	// MulticastTop is the multicast forwarding tables up to this multicast LID; 0 is none.
	MulticastTop ib.LID
}

// Block is one block of an attribute of a port, as a request names it.
type Block struct {
	Port      *Port
	Attribute mad.AttributeID
	Modifier  uint32
}

// Tables calls ask with every block that a sweep of this scope reads of n, once ports and
// links are known, in the order of the sweep. Of a chain of blocks it has the first.
func (n *Node) Tables(s Scope, ask func(Block)) {
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Reached && (i > 0 || n.Switch != nil) {
			p.tablesOf(ofPorts, s, ask)
		}
	}
	if n.Switch != nil {
		n.Ports[0].tablesOf(ofSwitches, s, ask)
	}
}

// PKeyTable calls ask with the blocks of p's P_Key table that every sweep reads: none of
// a port between switches.
func (p *Port) PKeyTable(ask func(Block)) {
	p.tablesOf([]kept{keptPKeyTable}, Scope{}, ask)
}

// LaneTables calls ask with the blocks that say which virtual lanes packets take that leave
// by p, or come in by it, and how p arbitrates among them.
func (p *Port) LaneTables(ask func(Block)) {
	lanes := Scope{QoS: true}
	p.tablesOf([]kept{keptSLToVL, keptVLArbitration}, lanes, ask)
	if p.Node.Switch == nil || p.Num != 0 && !p.IsUp() {
		return
	}
	for i := range p.Node.Ports {
		if out := &p.Node.Ports[i]; out != p && out.queues(lanes) {
			ask(Block{out, keptSLToVL.id, smp.SLToVLModifier(p.Num, out.Num)})
		}
	}
}

func (p *Port) tablesOf(of []kept, s Scope, ask func(Block)) {
	var id mad.AttributeID // one function for all of them: it is called for each port of a sweep
	tell := func(modifier uint32) { ask(Block{p, id, modifier}) }
	for i := range of {
		if x := &of[i]; x.tables != nil {
			id = x.id
			x.tables(p, s, tell)
		}
	}
}

// Answers calls tell with all that was read of n, as answers that Absorb takes, in the
// order of a snapshot's file. What read is false for was not read the last time, and may
// be out of date.
func (n *Node) Answers(tell func(b Block, v smp.Attribute, read bool)) {
	for _, run := range inFiles {
		ports := n.Ports
		if run[0].ofSwitch() {
			if n.Switch == nil {
				continue
			}
			ports = ports[:1]
		}
		for i := range ports {
			for _, x := range run {
				x.held(&ports[i], func(modifier uint32, v smp.Attribute, read bool) {
					tell(Block{&ports[i], x.id, modifier}, v, read)
				})
			}
		}
	}
}

// Blocks lists everything in the fabric that was read, or can be, and that another
// manager could change: PortInfo, P_Key tables of ports that face end ports or strangers,
// and of all other tables the blocks that were read.
func (f *Fabric) Blocks() (out []Block) {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Reached {
				out = p.appendBlocks(out, ofPorts)
			}
		}
		if n.Switch != nil {
			out = n.Ports[0].appendBlocks(out, ofSwitches)
		}
	}
	return out
}

// appendBlocks adds the blocks of p that are to be read again, of some attributes.
func (p *Port) appendBlocks(out []Block, of []kept) []Block {
	var id mad.AttributeID // as in tablesOf
	add := func(modifier uint32) { out = append(out, Block{p, id, modifier}) }
	for i := range of {
		if x := &of[i]; x.blocks != nil {
			id = x.id
			x.blocks(p, add)
		}
	}
	return out
}

// selector is what a modifier names p by: its number on a switch, else 0.
func (p *Port) selector() ib.PortNum {
	if p.Node.Switch == nil {
		return 0 // the port that the request arrives at
	}
	return p.Num
}

// portSelectMask is the part of a modifier that selects a port.
const portSelectMask = 0xFF

// selected is the port that a modifier chooses: on a switch any of its ports,
// on a CA or router the one that was asked.
func (p *Port) selected(attribute mad.AttributeID, num uint32) (*Port, error) {
	if p.Node.Switch == nil {
		return p, nil
	}
	if int(num) >= len(p.Node.Ports) {
		return nil, fmt.Errorf("%s: %s of port %d, the switch has %d",
			p, smp.AttributeName(attribute), num, len(p.Node.Ports)-1)
	}
	return &p.Node.Ports[num], nil
}

func (p *Port) misplaced(attribute mad.AttributeID) error {
	return fmt.Errorf("%s: %s does not exist on a %s", p, smp.AttributeName(attribute), p.Node.Type())
}
