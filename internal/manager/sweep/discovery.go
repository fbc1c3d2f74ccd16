package sweep

import (
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Bounds of one discovery, whatever devices say.
const (
	// MaxNodes is the most devices: the unicast LID space holds no more.
	MaxNodes = int(ib.LIDUnicastMax)
	// MaxPorts is the most ports of all devices together: four million LIDs
	// would not serve them, and a device that says it is a whole fabric of
	// switches could go on for hours.
	MaxPorts = 1 << 20
)

// Options says how far a discovery goes.
type Options struct {
	// Keys says which M_Keys requests carry; when it is nil, all carry MKey.
	Keys Keys
	MKey ib.MKey
	// InParts makes Advance report true once before tables are read, when
	// nodes, ports and links are known, and again at the end.
	InParts bool
	// ClearChange writes SwitchInfo.PortStateChange back to zero before the
	// ports of a switch are read, so that a later change shows. Without it
	// nothing is written.
	ClearChange bool
	// Forwarding reads every forwarding table in use.
	Forwarding bool
	// QoS reads SLToVLMappingTables and VLArbitrationTables.
	QoS bool
	// Audit reads what only an audit looks at: the P_Key tables of all switch
	// ports, SMInfo where a port says that a subnet manager is behind it,
	// and GUIDInfo of end ports.
	Audit bool
	// Aliases reads GUIDInfo of end ports that have more than one entry.
	Aliases bool
	// Multicast reads every multicast forwarding table in use.
	Multicast bool
	// MulticastTop reads the multicast forwarding tables up to this multicast
	// LID, and no farther; 0 reads nothing.
	MulticastTop ib.LID
	// Cables is the list of cables to hold to: what is behind a port and not
	// on it is not let in, nor anything behind that. Nil believes devices.
	Cables *cables.List
	// Verify follows every cable between switches from both ends; Contradiction returns what
	// did not match.
	Verify bool
	// Last are ports that are followed when nothing else is left to follow: a device
	// there that claims another's GUID is found second.
	Last map[observed.Place]bool
	// Placed, when set, is told the GUID of the manager's own port, before anything
	// else is asked.
	Placed func(ib.PortGUID)
}

// Fault is something that a discovery found and could not use.
type Fault struct {
	Where string // node or port, or the directed route to it
	Err   error
	// Port is the port that it is about, or behind which; nil for the manager's
	// own node.
	Port *observed.Port
}

// Error joins place and cause.
func (f Fault) Error() string { return f.Where + ": " + f.Err.Error() }

// Unwrap returns the cause.
func (f Fault) Unwrap() error { return f.Err }

type stage uint8

const (
	stageNodes stage = iota
	stageVerify
	stageMet
	stageTables
	stageDone
)

// Discovery is one pass over the subnet.
type Discovery struct {
	window  *transact.Window
	options Options
	fabric  *observed.Fabric
	faults  []Fault
	stage   stage
	met     int // faults before tables were read
	// ports counts those of all nodes; contradictions are about the cables at ports.
	ports          int
	contradictions map[*observed.Port]string
	// over are the ports over whose cables somebody answered, for Options.Verify.
	over map[*observed.Port]bool
	last []*observed.Port // of options.Last, still to be followed
	// disputed are the ports of devices that were found first and whose GUID another
	// device claims.
	disputed map[observed.Place]bool
	// tabled is how many nodes were asked for their tables, asked how many
	// requests of read have not ended.
	tabled, asked int
	// kept are the nodes of an earlier snapshot that stand in this one as they
	// were, followed the ports behind which this discovery looks; see Again.
	kept     map[ib.NodeGUID]bool
	followed map[*observed.Port]bool
	// doubted are switches of the earlier snapshot that did not answer, fallen the ports
	// whose links to them are down.
	doubted map[*observed.Node]bool
	fallen  []*observed.Port
	// conflicts reports whether a GUID stands at two places.
	conflicts bool
	// beyond reports whether there are more than MaxNodes.
	beyond bool
	// completes reports whether the fabric is known, and that only what the options add is read.
	completes bool
}

// ahead is how many requests for tables are made before the first of them have ended:
// more than any window has outstanding at once, so that none waits for another, and few
// compared with the millions that a large subnet takes.
const ahead = 8192

// Discover starts at the port through which the window's packets leave.
func Discover(w *transact.Window, o Options) *Discovery {
	d := newDiscovery(w, o, observed.NewFabric())
	d.visit(nil, nil)
	return d
}

func newDiscovery(w *transact.Window, o Options, f *observed.Fabric) *Discovery {
	return &Discovery{window: w, options: o, fabric: f, over: make(map[*observed.Port]bool), contradictions: make(map[*observed.Port]string)}
}

// Advance is called when the window is idle: it asks for the next part, or
// reports true when everything was asked and answered.
func (d *Discovery) Advance() (done bool) {
	switch d.stage {
	case stageNodes:
		if d.followLast() {
			return false
		}
		if d.options.Verify {
			d.stage = stageVerify
			d.verify()
			return false
		}
		fallthrough
	case stageVerify:
		d.noteCables()
		d.reportDuplicates()
		d.met = len(d.faults)
		if d.stage = stageMet; d.options.InParts {
			return true
		}
		fallthrough
	case stageMet:
		d.stage = stageTables
		d.rereadFollowed()
		d.readTables()
		if !d.window.Idle() {
			return false
		}
		d.stage = stageDone
	case stageTables:
		d.stage = stageDone
	}
	return true
}

// ForgetTables has the tables read once more.
func (d *Discovery) ForgetTables() {
	for _, n := range d.fabric.Nodes {
		n.Tables(d.options.scope(), func(b observed.Block) { b.Port.MarkUnread(b.Attribute, b.Modifier) })
	}
	d.stage, d.tabled, d.faults = stageMet, 0, d.faults[:d.met]
}

// WriteNothing makes the rest of the pass leave PortStateChange as it is.
func (d *Discovery) WriteNothing() { d.options.ClearChange = false }

// HasTables reports whether the tables are among what was read.
func (d *Discovery) HasTables() bool { return d.stage == stageDone }

// Fabric is what was found; complete once Advance has reported true.
func (d *Discovery) Fabric() *observed.Fabric { return d.fabric }

// CheckLIDs reports an error when there are not LIDs for all that was found, with 2^lmc for
// each CA and router port. Beyond MaxNodes nobody is in the fabric.
func (d *Discovery) CheckLIDs(lmc ib.LMC) error {
	if d.beyond {
		return fmt.Errorf("more than %d nodes, and a subnet has %d unicast LIDs: divide the fabric into several subnets", MaxNodes, ib.LIDUnicastMax)
	}
	return desired.CheckLIDs(d.fabric, lmc)
}

// Faults lists what could not be used, in the order in which it was found.
func (d *Discovery) Faults() []Fault { return d.faults }

func (d *Discovery) fault(where *observed.Port, err error) {
	d.faults = append(d.faults, Fault{where.String(), err, where})
}

func (d *Discovery) get(path mad.Path, key ib.MKey, respond time.Duration, attribute mad.AttributeID, modifier uint32, then func(transact.Reply)) {
	d.window.Do(transact.Request{
		Path: path, Respond: respond, MKey: key, Method: mad.MethodGet,
		Attribute: attribute, Modifier: modifier,
	}, then)
}

// read asks for one block of an attribute of p and enters the answer.
func (d *Discovery) read(p *observed.Port, attribute mad.AttributeID, block uint32, then func()) {
	d.asked++
	used, sent := p.MKey(), p.Modifier(attribute, block)
	d.get(p.Path, used, p.RespTime(), attribute, sent, func(r transact.Reply) {
		if key := d.otherKey(p.Agent(), used); errors.Is(r.Err, transact.ErrNoAnswer) && key != used {
			d.get(p.Path, key, p.RespTime(), attribute, sent, func(r transact.Reply) {
				if r.Err == nil {
					p.Agent().Key = key
				}
				d.wasRead(p, attribute, block, sent, r, then)
			})
			return
		}
		d.wasRead(p, attribute, block, sent, r, then)
	})
}

// answered counts a request of read that has ended, and goes on with tables.
func (d *Discovery) answered() {
	d.asked--
	if d.stage == stageTables {
		d.readTables()
	}
}

// wasRead enters an answer, or that there was none.
func (d *Discovery) wasRead(p *observed.Port, attribute mad.AttributeID, block, sent uint32, r transact.Reply, then func()) {
	d.answered()
	err := r.Err
	if refusesBit(p, block, sent, err) {
		d.read(p, attribute, block, then)
		return
	}
	if sent != block && p == p.Agent() && p.InfoRead && errors.Is(err, transact.ErrNoAnswer) {
		d.readWithoutBit(p, err, then)
		return
	}
	if err == nil {
		err = p.Absorb(attribute, block, r.SMP.Data[:])
	}
	if err != nil {
		d.fault(p, fmt.Errorf("%s (modifier 0x%08x): %w", smp.AttributeName(attribute), sent, err))
		d.doubt(p.Node, err)
		return
	}
	if p.Unlocks(attribute, block, sent) {
		d.read(p, attribute, block, then)
		return
	}
	if then != nil {
		then()
	}
}

// refusesBit notes of a device that it refused a Get whose modifier has the bit of extended
// speeds, and asks for it without. Whatever else it refuses, it refuses then too.
func refusesBit(p *observed.Port, block, sent uint32, err error) bool {
	if sent == block || err == nil {
		return false
	}
	var status transact.StatusError // allocated, since errors.As is given it
	if !errors.As(err, &status) {
		return false
	}
	p.Agent().RefusesExtendedSpeeds = true
	return true
}

// readWithoutBit asks once more without the bit of extended speeds, after a device answered without
// it and not with it. If it answers again, it is asked without it from now on. If it does not, it
// may have been given another M_Key meanwhile: it stays as it was read, and what is behind it is
// found all the same.
func (d *Discovery) readWithoutBit(p *observed.Port, why error, then func()) {
	block := p.PortInfoBlock()
	d.asked++
	d.get(p.Path, p.MKey(), p.RespTime(), smp.AttrPortInfo, block, func(r transact.Reply) {
		d.answered()
		p.RefusesExtendedSpeeds = r.Err == nil
		if r.Err != nil {
			d.fault(p, fmt.Errorf("PortInfo: %w", why))
			d.doubt(p.Node, why)
		}
		if then != nil {
			then()
		}
	})
}

// visit asks who is at the end of path; from is the port that it leaves by
// last, nil for the manager's own node.
func (d *Discovery) visit(path mad.Path, from *observed.Port) {
	d.askWho(path, from, func(key ib.MKey, r transact.Reply) {
		var info smp.NodeInfo
		err := r.Err
		if from != nil && from.Peer == nil {
			from.Silent = errors.Is(err, transact.ErrNoAnswer)
		}
		if err == nil {
			err = info.UnmarshalBinary(r.SMP.Data[:])
		}
		if err == nil {
			err = d.arrive(path, from, info, key)
		} else {
			err = d.unsaid(from, err)
		}
		if undeclared := errors.Is(err, ErrUndeclared); err != nil {
			if from != nil && (undeclared || !errors.Is(err, transact.ErrNoAnswer)) {
				from.Stranger = &observed.Stranger{Info: info, Why: err, Undeclared: undeclared}
			}
			d.faults = append(d.faults, Fault{where(path, from), fmt.Errorf("NodeInfo: %w", err), from})
		}
	})
}

func where(path mad.Path, from *observed.Port) string {
	if from == nil {
		return "the manager's own node"
	}
	return fmt.Sprintf("node behind %s (route %s)", from, path)
}

func (d *Discovery) arrive(path mad.Path, from *observed.Port, info smp.NodeInfo, key ib.MKey) error {
	if err := d.declared(from, &info); err != nil {
		return err
	}
	switch {
	case info.NodeType < ib.NodeCA || info.NodeType > ib.NodeRouter:
		return fmt.Errorf("%s", info.NodeType)
	case info.NumPorts == 0 || info.NumPorts == uint8(ib.PortNone):
		return fmt.Errorf("%d ports, want 1 to 254", info.NumPorts)
	case info.LocalPortNum > ib.PortNum(info.NumPorts),
		info.LocalPortNum == 0 && (info.NodeType != ib.NodeSwitch || from != nil):
		return fmt.Errorf("LocalPortNum %d on a %s of %d ports", info.LocalPortNum, info.NodeType, info.NumPorts)
	}
	known := d.fabric.Node(info.NodeGUID)
	if known != nil && (known.Info.NodeType != info.NodeType || known.Info.NumPorts != info.NumPorts) {
		for i := range known.Ports {
			d.dispute(known.Ports[i].Via)
		}
		d.contest(known)
		return fmt.Errorf("node GUID %s is also that of %s, a different device", info.NodeGUID, known.Name())
	}
	if from != nil && from.Peer != nil && (known == nil || from.Peer != known.Port(info.LocalPortNum)) {
		return fmt.Errorf("%s is cabled to %s already: recabled during the sweep", from, from.Peer)
	}
	if known == nil {
		if d.ports += int(info.NumPorts); len(d.fabric.Nodes) >= MaxNodes || d.ports > MaxPorts {
			d.beyond = d.beyond || len(d.fabric.Nodes) >= MaxNodes
			return fmt.Errorf("more than %d nodes or %d ports", MaxNodes, MaxPorts)
		}
	}
	node := d.fabric.AddNode(info)
	port := &node.Ports[info.LocalPortNum]
	if from != nil {
		if port.Peer != nil && port.Peer != from {
			d.dispute(port.Peer)
			d.contest(node)
			return fmt.Errorf("%s port %d is already cabled to %s: recabled during the sweep, or a second device with node GUID %s",
				node.Name(), port.Num, port.Peer, info.NodeGUID)
		}
		observed.Connect(from, port)
		d.noteOver(from, port, &info)
	}
	if from == nil && d.options.Placed != nil {
		d.options.Placed(info.PortGUID)
	}
	if node.Switch != nil {
		if known == nil {
			d.enterSwitch(node, path, from, key)
		} else if d.kept[info.NodeGUID] {
			d.read(port, smp.AttrPortInfo, port.PortInfoBlock(), nil)
		}
		if from == nil {
			d.fabric.Self = &node.Ports[0]
		}
		return nil
	}
	if from == nil {
		d.fabric.Self = port
	}
	if !port.Reached {
		port.Reached, port.Path, port.GUID = true, path, info.PortGUID
		if d.kept[info.NodeGUID] {
			d.followed[port] = true // a port of a CA that was reached by another one alone
		}
		d.enterEndPort(port, from, key, known == nil)
	}
	return nil
}

// Disputed are the ports of devices that were found first and whose GUID another device
// claims. A sweep that follows them last (Options.Last) finds the other device first: of
// two that claim to be one switch, that may be the one that leads on.
func (d *Discovery) Disputed() map[observed.Place]bool { return d.disputed }

func (d *Discovery) dispute(p *observed.Port) {
	if p == nil {
		return
	}
	if d.disputed == nil {
		d.disputed = make(map[observed.Place]bool)
	}
	d.disputed[p.Place()] = true
}

// contest marks a node whose GUID another device claims; not the manager's own, nor
// the one at the other end of its cable, which are known to be genuine.
func (d *Discovery) contest(n *observed.Node) {
	self := d.fabric.Self
	d.conflicts = true
	n.Contested = self == nil || n != self.Node && (self.Peer == nil || n != self.Peer.Node)
}

func (d *Discovery) enterSwitch(n *observed.Node, path mad.Path, from *observed.Port, key ib.MKey) {
	for i := range n.Ports {
		n.Ports[i].Reached, n.Ports[i].Path = true, path
	}
	management := &n.Ports[0]
	keys := d.keysOf(management, from, key)
	d.read(management, smp.AttrNodeDescription, 0, nil)
	if d.options.Keys == nil {
		d.readSwitch(n)
		return
	}
	// What is written needs the key that counts: which of them that is, PortInfo
	// shows.
	d.readEnd(management, keys, func() { d.readSwitch(n) })
}

func (d *Discovery) readSwitch(n *observed.Node) {
	d.read(&n.Ports[0], smp.AttrSwitchInfo, 0, func() {
		if n.Switch.Info.PortStateChange && d.options.ClearChange {
			d.clearChange(n)
			return
		}
		d.readPorts(n)
	})
}

// clearChange writes SwitchInfo as it was read, with PortStateChange set: one
// clears it (SwitchInfo, Table 29-4). What the switch answers is what is known of
// it from then on: else the next look at it would find a change.
func (d *Discovery) clearChange(n *observed.Node) {
	r := transact.Request{
		Path: n.Ports[0].Path, Respond: n.Ports[0].RespTime(), MKey: n.Ports[0].MKey(),
		Method: mad.MethodSet, Attribute: smp.AttrSwitchInfo,
	}
	if err := n.Switch.Info.Encode(&r.Data); err != nil {
		d.fault(&n.Ports[0], err)
		return
	}
	d.window.Do(r, func(reply transact.Reply) {
		err := reply.Err
		if err == nil {
			err = n.Ports[0].Absorb(smp.AttrSwitchInfo, 0, reply.SMP.Data[:])
		}
		if err != nil {
			d.fault(&n.Ports[0], fmt.Errorf("clearing SwitchInfo.PortStateChange: %w", err))
		}
		d.readPorts(n)
	})
}

// readPorts reads PortInfo of port 0 first, if it was not read for its key: what it says of
// extended speeds counts for all of them.
func (d *Discovery) readPorts(n *observed.Node) {
	if d.options.Keys != nil {
		d.readExternal(n)
		return
	}
	d.read(&n.Ports[0], smp.AttrPortInfo, 0, func() { d.readExternal(n) })
}

func (d *Discovery) readExternal(n *observed.Node) {
	for i := range n.Ports[1:] {
		p := &n.Ports[i+1]
		d.read(p, smp.AttrPortInfo, p.PortInfoBlock(), func() {
			if p.IsUp() && p.Peer == nil {
				d.follow(p)
			}
		})
	}
}

// followLast follows the ports that were left for the end, and reports whether there
// were any.
func (d *Discovery) followLast() bool {
	last := d.last
	d.last, d.options.Last = nil, nil
	for _, p := range last {
		if p.Peer == nil {
			d.follow(p)
		}
	}
	return !d.window.Idle()
}

// follow goes over the cable behind p.
func (d *Discovery) follow(p *observed.Port) {
	if d.options.Last[p.Place()] {
		d.last = append(d.last, p)
		return
	}
	if len(p.Path) >= mad.MaxHops {
		d.fault(p, fmt.Errorf("more than %d hops from the manager", mad.MaxHops))
		return
	}
	path := make(mad.Path, len(p.Path)+1)
	copy(path, p.Path)
	path[len(p.Path)] = p.Num
	d.visit(path, p)
}

func (d *Discovery) enterEndPort(p, from *observed.Port, key ib.MKey, newNode bool) {
	keys := d.keysOf(p, from, key)
	if newNode {
		d.read(p, smp.AttrNodeDescription, 0, nil)
	}
	// Modifier 0 is the port that the request arrives at.
	d.readEnd(p, keys, func() {
		if from == nil && p.IsUp() {
			d.follow(p)
		}
	})
}

var errDuplicateGUID = errors.New("port GUID is claimed by two ports, which of them is genuine cannot be told from the wire")

// reportDuplicates reports ports that claim one GUID.
func (d *Discovery) reportDuplicates() {
	ports := d.fabric.EndPorts()
	for i := 0; i+1 < len(ports); {
		j := i + 1
		for j < len(ports) && ports[j].GUID == ports[i].GUID {
			j++
		}
		if j > i+1 {
			for _, p := range ports[i:j] {
				d.fault(p, fmt.Errorf("%s: %w", p.GUID, errDuplicateGUID))
			}
		}
		i = j
	}
}
