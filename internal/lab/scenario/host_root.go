package scenario

import (
	"reflect"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

// HostAction does what a statement says.
type HostAction func(*testbed.Testbed) error

// OwnAction reads what follows the word.
func OwnAction(a *Operands) (HostAction, error) {
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	var fields []Assignment
	for first := true; first || a.More(); first = false {
		f, err := a.Assignment(&t, false)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return func(w *testbed.Testbed) error {
		attr := t.AttributeKind.New()
		w.Held(t.End(), t.Modifier, attr)
		for _, f := range fields {
			at, err := AttributeField(reflect.ValueOf(attr).Elem(), f.Field)
			if err != nil {
				return err
			}
			f.Store(w, at)
		}
		return w.Own(t.End(), t.Modifier, attr)
	}, a.Fits(t, fields)
}

// Describe reads what follows the word.
func Describe(a *Operands) (HostAction, error) {
	n, err := a.Node()
	if err != nil {
		return nil, err
	}
	t, err := a.Next("a text")
	return func(w *testbed.Testbed) error { return w.Fabric.SetDescription(n.GUID, t.Text) }, err
}

// producers are the kinds of device as a notice names them.
var producers = map[ib.NodeType]uint32{ib.NodeCA: smp.ProducerCA, ib.NodeSwitch: smp.ProducerSwitch, ib.NodeRouter: smp.ProducerRouter}

// Trap reads what follows the word.
func Trap(a *Operands) (HostAction, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	n, err := a.Number("a trap number", 16)
	if err != nil {
		return nil, err
	}
	number := smp.TrapNumber(n)
	var fields []TrapField
	for a.More() {
		s, err := a.Setting("FIELD=VALUE", false)
		if err != nil {
			return nil, err
		}
		f, err := ReadTrapField(a, s, number)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return func(w *testbed.Testbed) error {
		n := smp.Notice{
			IsGeneric: true, Type: number.Type(), Producer: producers[p.Node.Type], TrapNumber: number,
			IssuerLID: w.Fabric.Agent(p.Node.GUID).Port(p.Entry()).LID,
		}
		details, typed := n.TypedDetails()
		for _, f := range fields {
			of := reflect.ValueOf(&n).Elem()
			if f.InDetails {
				of = reflect.ValueOf(details).Elem()
			}
			at, err := AttributeField(of, f.Field)
			if err != nil {
				return err
			}
			f.Store(w, at)
		}
		if typed {
			if err := details.Encode(&n.Details); err != nil {
				return err
			}
		}
		return w.Trap(p.End(), &n)
	}, nil
}

// Rival reads what follows the word.
func Rival(a *Operands) (HostAction, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	if a.Keyword("none") {
		return func(w *testbed.Testbed) error { return w.Rival(p.End(), nil, false) }, nil
	}
	k, err := a.Kind(testbed.ScriptWord{}, "SMInfo")
	if err != nil {
		return nil, err
	}
	t := OperandTarget{OperandPlace: p, AttributeKind: k}
	var fields []Assignment
	silent := false
	for first := true; first || a.More(); first = false {
		s, err := a.Setting("FIELD=VALUE", false)
		if err != nil {
			return nil, err
		}
		if s.Name == "silent" {
			if silent, err = a.ToOnOff(s.ScriptWord, s.Value, s.Name); err != nil {
				return nil, err
			}
			continue
		}
		f, err := a.ToAssignment(s, &t)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return func(w *testbed.Testbed) error {
		info := &smp.SMInfo{GUID: w.Fabric.Agent(p.Node.GUID).NodeInfo(p.Entry()).PortGUID}
		for _, f := range fields {
			at, err := AttributeField(reflect.ValueOf(info).Elem(), f.Field)
			if err != nil {
				return err
			}
			f.Store(w, at)
		}
		return w.Rival(p.End(), info, silent)
	}, a.Fits(t, fields)
}

// Answer reads what follows the word.
func Answer(a *Operands) (HostAction, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	if _, err := a.Pick("for"); err != nil {
		return nil, err
	}
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	f := testbed.Forgery{From: p.End(), For: t.Node.GUID, Modifier: t.Modifier, Count: 1}
	var fields []Assignment
	for first := true; first || a.More(); first = false {
		s, err := a.Setting("FIELD=VALUE, count=N or seen=on", false)
		if err != nil {
			return nil, err
		}
		switch s.Name {
		case "count":
			n, err := a.ToNumber(s.ScriptWord, s.Value, s.Name, 16)
			if err != nil {
				return nil, err
			}
			f.Count = int(n)
		case "seen":
			if f.Seen, err = a.ToOnOff(s.ScriptWord, s.Value, s.Name); err != nil {
				return nil, err
			}
		default:
			x, err := a.ToAssignment(s, &t)
			if err != nil {
				return nil, err
			}
			fields = append(fields, x)
		}
	}
	return func(w *testbed.Testbed) error {
		f := f
		f.Attribute = t.AttributeKind.New()
		w.Held(t.End(), t.Modifier, f.Attribute)
		for _, x := range fields {
			at, err := AttributeField(reflect.ValueOf(f.Attribute).Elem(), x.Field)
			if err != nil {
				return err
			}
			x.Store(w, at)
		}
		return w.Answer(f)
	}, a.Fits(t, fields)
}

// TrapField is a field of a notice or of its details.
type TrapField struct {
	Assignment
	InDetails bool
}

// ReadTrapField reads a field of a notice, or of its details.
func ReadTrapField(a *Operands, s testbed.ScriptSetting, n smp.TrapNumber) (TrapField, error) {
	notice := smp.Notice{IsGeneric: true, TrapNumber: n}
	at, inNotice := AttributeField(reflect.ValueOf(&notice).Elem(), s.Name)
	inDetails := inNotice != nil
	if inDetails {
		details, ok := notice.TypedDetails()
		if !ok {
			return TrapField{}, a.Fault(s.ScriptWord, "trap %d: %v", n, inNotice)
		}
		var err error
		if at, err = AttributeField(reflect.ValueOf(details).Elem(), s.Name); err != nil {
			return TrapField{}, a.Fault(s.ScriptWord, "trap %d: %v", n, err)
		}
	}
	v, err := a.ToDatum(s, at.Type())
	return TrapField{Assignment{ScriptSetting: s, Datum: v, Field: s.Name}, inDetails}, err
}
