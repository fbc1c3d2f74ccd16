// This file carries out statements of scenarios on a fabric that a simulator serves:
// those about what the owner of a device, or of an adapter's firmware, can do. They need no
// clock of their own, so the console of the simulator has them too.
//
//	Statements   the statements, with their arguments and what they are for
//	Stage.Do     carries out a line

package scenario

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// ServedStatement is one that a console has.
type ServedStatement struct {
	Name, Arguments, About string
	run                    func(*testbed.Testbed, *Operands) error
}

// Statements lists them.
func Statements() []ServedStatement {
	return []ServedStatement{
		{"Own", "NODE[:PORT] ATTRIBUTE[modifier] FIELD=VALUE...", "change an attribute as who owns the device can, whatever M_Key guards it", own},
		{"Lie", "NODE[:PORT] ATTRIBUTE[modifier] FIELD=VALUE... | NODE none", "let a node's answers say this from now on, whatever it holds", lie},
		{"Spoil", "on|off NODE", "let a switch pass on what it refuses for its P_Key, spoiled on purpose", spoil},
		{"Forge", "NODE[:PORT] -> LID QP pkey=KEY [qkey=KEY] [sl=N] [bytes=N]", "put a datagram with any key on the wire", forge},
	}
}

// Do carries out the arguments of a statement on a served fabric, between two of its events.
// The error names the column of the word that is wrong.
func (s ServedStatement) Do(l *topology.Netlist, f *fabric.Fabric, arguments string) error {
	lines, err := testbed.Lines(s.Name, []byte(arguments))
	if err == nil && len(lines) != 1 {
		err = errors.New("want a node")
	}
	if err != nil {
		return err
	}
	a := &Operands{LineArgs: &testbed.LineArgs{Name: s.Name, Line: &lines[0], Words: lines[0].Words}, Topology: l}
	return s.run(testbed.Around(l, f), a)
}

// targetWith reads an attribute of a device and the FIELD=VALUE words of the rest of a line.
func targetWith(a *Operands) (t OperandTarget, fields []Assignment, err error) {
	if t, err = a.Target(); err != nil {
		return t, nil, err
	}
	for first := true; first || a.More(); first = false {
		f, err := a.Assignment(&t, false)
		if err != nil {
			return t, nil, err
		}
		fields = append(fields, f)
	}
	return t, fields, a.Fits(t, fields)
}

// change stores values in an attribute.
func change(w *testbed.Testbed, attr smp.Attribute, fields []Assignment) error {
	for _, f := range fields {
		at, err := AttributeField(reflect.ValueOf(attr).Elem(), f.Field)
		if err != nil {
			return err
		}
		f.Store(w, at)
	}
	return nil
}

func own(w *testbed.Testbed, a *Operands) error {
	t, fields, err := targetWith(a)
	if err != nil {
		return err
	}
	attr := t.AttributeKind.New()
	w.Held(t.End(), t.Modifier, attr)
	if err := change(w, attr, fields); err != nil {
		return err
	}
	at := t.End()
	set := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion, MKey: w.Fabric.Agent(at.Node).Port(at.Port).MKey,
		Method: mad.MethodSet, AttributeID: attr.ID(), AttributeModifier: t.Modifier,
	}
	if err := attr.Encode(&set.Data); err != nil {
		return err
	}
	return w.Fabric.Own(at.Node, at.Port, &set)
}

func lie(w *testbed.Testbed, a *Operands) error {
	if n := len(a.Words); n == 2 && a.Words[1].Text == "none" && !a.Words[1].Quoted {
		node, err := a.Node()
		if err != nil {
			return err
		}
		return w.Fabric.ChangeFault(node.GUID, func(f *fabric.Fault) { f.Alter = nil })
	}
	t, fields, err := targetWith(a)
	if err != nil {
		return err
	}
	attr := t.AttributeKind.New()
	return w.Lie(t.Node.GUID, attr.ID(), t.Modifier, func(data *[mad.DataSize]byte) {
		if attr.UnmarshalBinary(data[:]) == nil && change(w, attr, fields) == nil {
			_ = attr.Encode(data) // it was checked that the values fit
		}
	})
}

func spoil(w *testbed.Testbed, a *Operands) error {
	state, err := a.Pick("on", "off")
	if err != nil {
		return err
	}
	n, err := a.Node()
	if err != nil {
		return err
	}
	if n.Type == ib.NodeCA {
		return fmt.Errorf("%s: want a switch or router", n.ID)
	}
	if err := a.Done(); err != nil {
		return err
	}
	return w.Fabric.SetSpoiling(n.GUID, state == "on")
}

// servedDefaultBytes is how long a datagram is when nothing is said: that of a management datagram.
const servedDefaultBytes = 256

func forge(w *testbed.Testbed, a *Operands) error {
	p, err := a.Place()
	if err != nil {
		return err
	}
	if _, err := a.Pick("->"); err != nil {
		return err
	}
	lid, err := a.Number("LID", 16)
	if err != nil {
		return err
	}
	qp, err := a.Number("number of a queue pair", 24)
	if err != nil {
		return err
	}
	k, err := a.Knobs("pkey", "qkey", "sl", "bytes")
	if _, said := k["pkey"]; err == nil && !said {
		err = errors.New("want pkey=KEY")
	}
	if err != nil {
		return err
	}
	bytes, v, err := packet.Append(nil, packet.OpCodeUDSendOnly, false, make([]byte, k.Or("bytes", servedDefaultBytes)))
	if err != nil {
		return err
	}
	v.LRH.SetSLID(w.Fabric.Agent(p.Node.GUID).Port(p.Entry()).LID)
	v.LRH.SetDLID(ib.LID(lid))
	v.LRH.SetSL(ib.SL(k["sl"]))
	v.BTH.SetPKey(ib.PKey(k["pkey"]))
	v.BTH.SetDestQP(ib.QPN(qp))
	v.DETH.SetQKey(ib.QKey(k["qkey"]))
	v.DETH.SetSrcQP(2) // the lowest that is no manager's
	if err := packet.Seal(bytes); err != nil {
		return err
	}
	return w.Fabric.Inject(p.Node.GUID, p.Exact().Port, bytes)
}
