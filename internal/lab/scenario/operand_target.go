package scenario

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

// OperandTarget is an attribute of a port.
type OperandTarget struct {
	OperandPlace
	AttributeKind
	Modifier uint32
	// Whole reports whether the script named all of Modifier, by =NUMBER.
	Whole bool
	// block is the block that entries named by table index have to be in;
	// -1 when the script named a modifier.
	block int
}

func (t OperandTarget) String() string {
	return fmt.Sprintf("%v %s", t.OperandPlace, t.AttributeKind.Name)
}

// Target takes NODE[:PORT] ATTRIBUTE[modifier].
func (a *Operands) Target() (OperandTarget, error) {
	p, err := a.Place()
	if err != nil {
		return OperandTarget{}, err
	}
	w, err := a.Next("an attribute, as PortInfo or PKeyTable[1]")
	if err != nil {
		return OperandTarget{}, err
	}
	name, inside, bracket := strings.Cut(w.Text, "[")
	t := OperandTarget{OperandPlace: p}
	if t.AttributeKind, err = a.Kind(w, name); err != nil {
		return t, err
	}
	if !bracket {
		t.Modifier, t.block = t.AttributeKind.Modifier(p.Own(), 0, 0), 0
		return t, nil
	}
	t.block = -1
	inside, closed := strings.CutSuffix(inside, "]")
	if !closed {
		return t, a.Fault(w, "%q: want a closing bracket", w.Text)
	}
	if raw, ok := strings.CutPrefix(inside, "="); ok {
		n, err := a.ToNumber(w, raw, "modifier", 32)
		t.Modifier, t.Whole = uint32(n), true
		return t, err
	}
	first, second, two := strings.Cut(inside, ",")
	n, err := a.ToNumber(w, first, "modifier", 16)
	if err != nil {
		return t, err
	}
	var m uint64
	if two {
		if m, err = a.ToNumber(w, second, "modifier", 8); err != nil {
			return t, err
		}
		if id := t.AttributeKind.New().ID(); id != smp.AttrSLToVLMappingTable && id != smp.AttrMulticastForwardingTable {
			return t, a.Fault(w, "%q: want one number in brackets, or =NUMBER for a whole modifier", w.Text)
		}
	}
	t.Modifier = t.AttributeKind.Modifier(p.Own(), uint16(n), uint8(m))
	return t, nil
}

// Assignment is a field with what it is set to or compared with.
type Assignment struct {
	testbed.ScriptSetting
	Datum
	Field string // its name in the block
}

// Assignment takes FIELD=VALUE of an attribute.
func (a *Operands) Assignment(t *OperandTarget, comparisons bool) (Assignment, error) {
	s, err := a.Setting("FIELD=VALUE", comparisons)
	if err != nil {
		return Assignment{}, err
	}
	return a.ToAssignment(s, t)
}

func (a *Operands) ToAssignment(s testbed.ScriptSetting, t *OperandTarget) (Assignment, error) {
	name := s.Name
	if t.AttributeKind.PerBlock > 0 && t.block >= 0 {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 {
			block := i / t.AttributeKind.PerBlock
			if t.block > 0 && t.block != block+1 {
				return Assignment{}, a.Fault(s.ScriptWord, "entry %d is in block %d: want entries of one block in a line", i, block)
			}
			t.block = block + 1 // of the first entry, counted from 1
			t.Modifier = t.AttributeKind.Modifier(t.Own(), uint16(min(block, 0xFFFF)), 0)
			name = strconv.Itoa(i % t.AttributeKind.PerBlock)
		}
	}
	f, err := AttributeField(reflect.ValueOf(t.AttributeKind.New()).Elem(), name)
	if err != nil {
		return Assignment{}, a.Fault(s.ScriptWord, "%s: %v", t.AttributeKind.Name, err)
	}
	v, err := a.ToDatum(s, f.Type())
	return Assignment{s, v, name}, err
}

// Kind finds an attribute by its name, or by its number.
func (a *Operands) Kind(w testbed.ScriptWord, name string) (AttributeKind, error) {
	k, err := FindAttribute(name)
	if err != nil {
		err = a.Fault(w, "%v", err)
	}
	return k, err
}

// Fits refuses values that no field can hold, before anything runs.
func (a *Operands) Fits(t OperandTarget, fields []Assignment) error {
	attr := t.AttributeKind.New()
	var bytes [mad.DataSize]byte
	for _, f := range fields {
		if f.late != nil || f.gid != nil {
			continue
		}
		to, err := AttributeField(reflect.ValueOf(attr).Elem(), f.Field)
		if err != nil {
			return a.Fault(f.ScriptWord, "%v", err)
		}
		f.Store(nil, to)
		if err := attr.Encode(&bytes); err != nil {
			return a.Fault(f.ScriptWord, "%v", err)
		}
	}
	return nil
}
