package apply

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// LIDMove says where a LID goes.
type LIDMove struct {
	LID ib.LID
	// To is the port that is to have it as its base LID, with LMC 0.
	To *observed.Port
	// From are the ports that have it so far, and what they are to have instead.
	From map[*observed.Port]observed.Assigned
	// Exit is the port by which a switch is to send it, 0 where it ends; ib.PortNone
	// leaves the switch as it is.
	Exit func(*observed.Node) ib.PortNum
	// Stopped has nothing more begun once it reports true, Failed is told of each write
	// that did not hold, and Took of each that did, with what the device showed.
	Stopped func() bool
	Failed  func(Failure)
	Took    func(p *observed.Port, a mad.AttributeID, modifier uint32, data []byte)
}

// moving carries out a LIDMove.
type moving struct {
	LIDMove
	window *transact.Window
	yields int // that are outstanding
	behind map[*observed.Node][]*observed.Node
}

// Move lets a LID go from the ports that have it to another. They lose it first; that one
// gets it next; then the switches learn of it, beginning with the one before that port, and
// each when the next switch on the way there has learned. So a packet that has come to a
// switch which knows stays on the way, whatever the others know, and none goes in a circle.
// Of the forwarding table of a switch one block is written, as it was read just before but
// for one entry, and only if that entry is another. A switch that does not answer, and
// those whose way leads over it, keep theirs.
//
// Move is over when the window is idle. Forwarding tables are not entered into the
// snapshot.
func Move(w *transact.Window, f *observed.Fabric, to LIDMove) {
	m := &moving{LIDMove: to, window: w, yields: 1}
	m.behind = m.tree(f)
	for p, own := range m.From {
		if p != m.To {
			m.yields++
			m.address(p, own, func(error) { m.yielded() })
		}
	}
	m.yielded()
}

// tree lists the switches that send the LID to another next, by that one; those next to the
// port are under nil.
func (m *moving) tree(f *observed.Fabric) map[*observed.Node][]*observed.Node {
	behind := make(map[*observed.Node][]*observed.Node)
	for _, n := range f.Switches() {
		exit := m.Exit(n)
		s := n.Switch
		if exit == ib.PortNone || int(exit) >= len(n.Ports) || !s.InfoRead || s.Info.LinearFDBCap == 0 || m.LID > s.Info.LinearFDBTop {
			continue
		}
		q := &n.Ports[exit]
		switch {
		case q == m.To || q.Peer == m.To:
			behind[nil] = append(behind[nil], n)
		case q.Peer != nil && q.IsUp() && q.Peer.Node.Switch != nil: // port 0 has no peer
			behind[q.Peer.Node] = append(behind[q.Peer.Node], n)
		}
	}
	return behind
}

// yielded goes on when no port has the LID any more, as far as ports answer.
func (m *moving) yielded() {
	if m.yields--; m.yields > 0 {
		return
	}
	if m.To.Info.LID == m.LID && m.To.Info.LMC == 0 {
		m.lead(nil)
		return
	}
	m.address(m.To, observed.Assigned{LID: m.LID}, func(err error) {
		if err == nil {
			m.lead(nil)
		}
	})
}

// address writes the address of a port, and all else of PortInfo as it was read.
func (m *moving) address(p *observed.Port, to observed.Assigned, then func(error)) {
	if m.Stopped() {
		return
	}
	info := p.Info
	info.LID, info.LMC = to.LID, to.LMC
	info.PortState, info.PortPhysicalState, info.LinkDownDefaultState = smp.PortStateNoChange, smp.PhysNoChange, 0
	info.ClientReregister = false
	r := m.request(p, mad.MethodSet, smp.AttrPortInfo, p.PortInfoBlock())
	err := info.Encode(&r.Data)
	if err != nil {
		m.fail(p, smp.AttrPortInfo, err)
		then(err)
		return
	}
	m.window.Do(r, func(reply transact.Reply) {
		err := reply.Err
		if err == nil {
			err = p.Absorb(smp.AttrPortInfo, p.PortInfoBlock(), reply.SMP.Data[:])
		}
		if err == nil && (p.Info.LID != to.LID || p.Info.LMC != to.LMC) {
			err = fmt.Errorf("kept LID %d with LMC %d, want %d with %d", p.Info.LID, p.Info.LMC, to.LID, to.LMC)
		}
		if err != nil {
			m.fail(p, smp.AttrPortInfo, err)
		} else {
			m.Took(p, smp.AttrPortInfo, p.PortInfoBlock(), reply.SMP.Data[:])
		}
		then(err)
	})
}

// lead has the switches know whose next one is n.
func (m *moving) lead(n *observed.Node) {
	for _, s := range m.behind[n] {
		m.learn(s)
	}
}

// learn reads the block of a switch that has the LID, writes it if need be, and goes on
// with the switches behind.
func (m *moving) learn(n *observed.Node) {
	if m.Stopped() {
		return
	}
	p, block, exit := &n.Ports[0], uint32(m.LID/smp.LIDsPerLinearBlock), m.Exit(n)
	r := m.request(p, mad.MethodGet, smp.AttrLinearForwardingTable, block)
	m.window.Do(r, func(reply transact.Reply) {
		var t smp.LinearForwardingTable
		err := reply.Err
		if err == nil {
			err = t.UnmarshalBinary(reply.SMP.Data[:])
		}
		entry := &t.Ports[m.LID%smp.LIDsPerLinearBlock]
		switch {
		case err != nil:
			m.fail(p, smp.AttrLinearForwardingTable, err)
		case m.Stopped():
		case *entry == exit:
			m.lead(n)
		default:
			*entry = exit
			m.write(n, block, &t)
		}
	})
}

func (m *moving) write(n *observed.Node, block uint32, t *smp.LinearForwardingTable) {
	p := &n.Ports[0]
	r := m.request(p, mad.MethodSet, smp.AttrLinearForwardingTable, block)
	r.Once = true // late, it would undo what others write to the block
	if err := t.Encode(&r.Data); err != nil {
		m.fail(p, smp.AttrLinearForwardingTable, err)
		return
	}
	m.window.Do(r, func(reply transact.Reply) {
		err := reply.Err
		if err == nil && reply.SMP.Data != r.Data {
			err = fmt.Errorf("block %d reads back differently from what was written", block)
		}
		if err != nil {
			m.fail(p, smp.AttrLinearForwardingTable, err)
			return
		}
		m.Took(p, smp.AttrLinearForwardingTable, block, reply.SMP.Data[:])
		m.lead(n)
	})
}

func (m *moving) request(p *observed.Port, method mad.Method, a mad.AttributeID, block uint32) transact.Request {
	return transact.Request{Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: method, Attribute: a, Modifier: p.Modifier(a, block)}
}

func (m *moving) fail(p *observed.Port, a mad.AttributeID, err error) {
	m.Failed(Failure{Port: p, Attribute: a, Err: err})
}
