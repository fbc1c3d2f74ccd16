package simtest

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// stranger is a program with access to the management queue pair of a port:
// a host's own, or an attacker's.
type stranger struct {
	w  *world
	at place
	*fabric.Attachment
	tid uint64
}

func (w *world) stranger(id string) *stranger {
	w.t.Helper()
	node, num, err := w.list.Attach(id)
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := w.fabric.Attach(node.GUID, num)
	if err != nil {
		w.t.Fatal(err)
	}
	return &stranger{w: w, at: place{node.GUID, num}, Attachment: a}
}

// visit lets a stranger do something and go.
func (w *world) visit(id string, do func(*stranger)) {
	w.t.Helper()
	s := w.stranger(id)
	do(s)
	w.run(wait)
	s.Detach()
}

// packet is a packet that the stranger makes.
func (s *stranger) packet(class mad.Class, m mad.Method, a mad.AttributeID, modifier uint32) mad.SMP {
	s.tid++
	return mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: class, Method: m,
		TransactionID: s.tid, AttributeID: a, AttributeModifier: modifier,
		DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
	}
}

func (s *stranger) send(p *mad.SMP, dlid ib.LID) {
	s.w.t.Helper()
	var bytes [mad.Size]byte
	if err := p.Encode(&bytes); err != nil {
		s.w.t.Fatal(err)
	}
	s.Send(&bytes, dlid)
}

// wait is longer than any answer takes, and far less than the manager waits
// between two looks at a table.
const wait = time.Millisecond

// ask sends a packet and returns the answer, if there is one.
func (s *stranger) ask(p mad.SMP, dlid ib.LID) (answer mad.SMP, ok bool) {
	s.w.t.Helper()
	s.send(&p, dlid)
	s.w.run(wait)
	var d fabric.Delivery
	for s.Receive(&d) {
		if answer.UnmarshalBinary(d.MAD[:]) == nil && answer.TransactionID == p.TransactionID {
			return answer, true
		}
	}
	return mad.SMP{}, false
}

// trap sends a trap to the manager.
func (s *stranger) trap(number smp.TrapNumber, details smp.TrapDetails) mad.SMP {
	s.w.t.Helper()
	n, err := smp.NewTrap(number, smp.ProducerCA, s.w.info(s.at).LID, details)
	p := s.packet(mad.ClassSubnLID, mad.MethodTrap, smp.AttrNotice, 0)
	if err == nil {
		err = n.Encode(&p.Data)
	}
	if err != nil {
		s.w.t.Fatal(err)
	}
	s.send(&p, s.w.info(s.w.self).LID)
	return p
}

// localChange sends the trap that makes a manager sweep again.
func (s *stranger) localChange() mad.SMP {
	s.w.t.Helper()
	return s.trap(smp.TrapLocalChange, &smp.LocalChangeDetails{LID: s.w.info(s.at).LID})
}

// write sets an attribute of another port by LID, starting from what is there.
func (s *stranger) write(to place, a mad.AttributeID, modifier uint32, data [mad.DataSize]byte) (mad.SMP, bool) {
	s.w.t.Helper()
	p := s.packet(mad.ClassSubnLID, mad.MethodSet, a, modifier)
	p.Data = data
	end := to
	if s.w.agent(to.node).SwitchInfo() != nil {
		end.num = 0
	}
	return s.ask(p, s.w.info(end).LID)
}

// agentSet changes a device behind everybody's back: the Set reaches its agent
// by way of port and nobody sees it. It is for settings that do not concern
// links.
func (w *world) agentSet(by place, a mad.AttributeID, modifier uint32, fill func(*[mad.DataSize]byte)) {
	w.t.Helper()
	in := by.num
	if w.agent(by.node).SwitchInfo() != nil {
		in = 0
	}
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID,
		Method: mad.MethodSet, AttributeID: a, AttributeModifier: modifier, MKey: w.info(place{by.node, in}).MKey,
	}
	fill(&p.Data)
	r := w.agent(by.node).Handle(w.fabric.Now(), sma.Ingress{Port: in, SLID: 1}, &p)
	if r.Verdict != sma.Answered || p.Status != mad.StatusOK {
		w.t.Fatalf("Set(%s) at node %v port %d: verdict %v, status %v", smp.AttributeName(a), by.node, by.num, r.Verdict, p.Status)
	}
}

func (w *world) encode(a interface {
	Encode(*[mad.DataSize]byte) error
}, data *[mad.DataSize]byte) {
	w.t.Helper()
	if err := a.Encode(data); err != nil {
		w.t.Fatal(err)
	}
}
