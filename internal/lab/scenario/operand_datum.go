// operand*.go: parses the operands of scenario statements: locations in a topology,
// attributes of ports, and values of their fields.

package scenario

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

// Datum is what a field is set to or compared with: a number, bytes, or a
// number that is known only when the script runs.
type Datum struct {
	number uint64
	raw    []byte
	padded bool // bytes are text, filled up with NUL
	late   func(*testbed.Testbed) uint64
	// gid is the port whose GID the bytes are.
	gid *OperandPlace
}

// ToDatum reads the value of a field of type t.
func (a *Operands) ToDatum(s testbed.ScriptSetting, t reflect.Type) (Datum, error) {
	if t.Kind() == reflect.Array {
		if inner, ok := strings.CutPrefix(strings.TrimSuffix(s.Value, ")"), "gid("); ok && t.Len() == len(ib.GID{}) {
			p, err := a.ToPlace(s.ScriptWord, inner)
			return Datum{gid: &p}, err
		}
		return a.toBytes(s, t.Len())
	}
	n, ok, names := AttributeNamed(t, s.Value)
	if ok {
		return Datum{number: n}, nil
	}
	if name, inner, ok := strings.Cut(strings.TrimSuffix(s.Value, ")"), "("); ok && strings.HasSuffix(s.Value, ")") {
		return a.toLate(s, name, inner)
	}
	width := 1
	if t.Kind() != reflect.Bool {
		width = t.Bits()
	}
	n, err := testbed.ParseNumber(s.Value)
	if err != nil || width < 64 && n>>width != 0 {
		want := fmt.Sprintf("a number of %d bits", width)
		if names != "" {
			want += " or one of " + names
		}
		return Datum{}, a.Fault(s.ScriptWord, "%s: value %q: want %s", s.Name, s.Value, want)
	}
	return Datum{number: n}, nil
}

func (a *Operands) toBytes(s testbed.ScriptSetting, size int) (Datum, error) {
	if digits, ok := strings.CutPrefix(s.Value, "0x"); ok {
		bytes, err := hex.DecodeString(digits)
		if err != nil || len(bytes) > size {
			return Datum{}, a.Fault(s.ScriptWord, "%s: want up to %d bytes as 0x and pairs of hexadecimal digits", s.Name, size)
		}
		return Datum{raw: bytes}, nil
	}
	if len(s.Value) > size {
		return Datum{}, a.Fault(s.ScriptWord, "%s: a text of %d bytes: want up to %d", s.Name, len(s.Value), size)
	}
	return Datum{raw: []byte(s.Value), padded: true}, nil
}

// toLate reads lid(NODE), guid(NODE), portguid(NODE:PORT), mkey(NODE), which is
// the key that guards a port now, or guess(NODE), another number each time.
func (a *Operands) toLate(s testbed.ScriptSetting, name, inner string) (Datum, error) {
	p, err := a.ToPlace(s.ScriptWord, inner)
	if err != nil {
		return Datum{}, err
	}
	switch name {
	case "lid":
		return Datum{late: func(w *testbed.Testbed) uint64 { return uint64(w.Fabric.Agent(p.Node.GUID).Port(p.Entry()).LID) }}, nil
	case "guid":
		return Datum{number: uint64(p.Node.GUID)}, nil
	case "portguid":
		// That of the topology: what the device says is compared with it.
		return Datum{number: uint64(p.Node.Ports[p.End().Port].GUID)}, nil
	case "mkey":
		return Datum{late: func(w *testbed.Testbed) uint64 { return uint64(w.Fabric.Agent(p.Node.GUID).Port(p.Entry()).MKey) }}, nil
	case "guess":
		return Datum{late: func(w *testbed.Testbed) uint64 { return w.Guess() }}, nil
	}
	return Datum{}, a.Fault(s.ScriptWord, "%q: want lid(NODE), guid(NODE), portguid(NODE:PORT), mkey(NODE) or guess(NODE)", s.Value)
}

func (v Datum) Now(w *testbed.Testbed) uint64 {
	if v.late != nil {
		return v.late(w)
	}
	return v.number
}

// Store writes a value to a field.
func (v Datum) Store(w *testbed.Testbed, to reflect.Value) {
	if to.Kind() == reflect.Array {
		SetBytes(to, v.bytes(w))
		return
	}
	SetNumber(to, v.Now(w))
}

// Compare reports whether a field stands in a relation to a value.
func (v Datum) Compare(w *testbed.Testbed, relation string, got reflect.Value) bool {
	var order int
	if got.Kind() == reflect.Array {
		order = CompareBytes(got, v.bytes(w), v.padded)
	} else {
		order = cmp.Compare(AttributeNumber(got), v.Now(w))
	}
	switch relation {
	case "!=":
		return order != 0
	case ">=":
		return order >= 0
	case "<=":
		return order <= 0
	}
	return order == 0
}

// Number is a value that is known.
func Number(n uint64) Datum { return Datum{number: n} }

// bytes are the bytes of a value that has some.
func (v Datum) bytes(on *testbed.Testbed) []byte {
	if v.gid == nil {
		return v.raw
	}
	gid := v.gid.GID(on)
	return gid[:]
}

// GID is the GID of the end port at a place, as the device holds it now.
func (p OperandPlace) GID(on *testbed.Testbed) ib.GID {
	agent := on.Fabric.Agent(p.Node.GUID)
	guid, _ := agent.GUID(p.Entry(), 0) // every end port has one
	return ib.MakeGID(agent.Port(p.Entry()).GIDPrefix, ib.PortGUID(guid))
}
