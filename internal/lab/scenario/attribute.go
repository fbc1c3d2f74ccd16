// attribute*.go: finds subnet management attributes and their fields by name: NAME,
// NAME.i of an array, NAME.i.PART of an array of structures, or i alone if the
// attribute has one array. Names are the IBTA's, with or
// without underscores, in any case. The layouts come from package smp
// by reflection, so a new field has a name here at once.

package scenario

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// raw is an attribute without a layout: bytes by number.
type raw struct {
	id    mad.AttributeID
	Bytes [mad.DataSize]uint8
}

func (r *raw) ID() mad.AttributeID { return r.id }

func (r *raw) UnmarshalBinary(data []byte) error {
	clear(r.Bytes[copy(r.Bytes[:], data):])
	return nil
}

func (r *raw) AppendBinary(b []byte) ([]byte, error) { return append(b, r.Bytes[:]...), nil }

func (r *raw) Encode(dst *[mad.DataSize]byte) error { *dst = r.Bytes; return nil }

// AttributeKind is an attribute that a script can name.
type AttributeKind struct {
	Name string
	New  func() smp.Attribute
	// PerBlock is how many entries a block has, where entries may be named by
	// their number in the whole table.
	PerBlock int
}

// Modifier is the attribute modifier for one or two numbers, zero where the
// script has none (smp.Modifier). An attribute without a layout takes the first.
func (k AttributeKind) Modifier(own ib.PortNum, n uint16, m uint8) uint32 {
	d, ok := smp.Describe(k.New().ID())
	if !ok {
		return uint32(n)
	}
	return d.Modifier.For(own, n, m)
}

// plain is a name as it is compared: without underscores, in small letters, so
// that P_KeyTable and PKeyTable are one.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// FindAttribute finds an attribute by its name, or by its number.
func FindAttribute(text string) (AttributeKind, error) {
	var known []string
	for _, d := range smp.Attributes() {
		if plain(d.Name) == plain(text) {
			return AttributeKind{d.Name, d.New, d.PerBlock}, nil
		}
		known = append(known, d.Name)
	}
	if n, err := strconv.ParseUint(text, 0, 16); err == nil {
		id := mad.AttributeID(n)
		return AttributeKind{fmt.Sprintf("%#04x", n), func() smp.Attribute { return &raw{id: id} }, 0}, nil
	}
	return AttributeKind{}, fmt.Errorf("%q: want an attribute: %s, or a number such as 0xFF00", text, strings.Join(known, ", "))
}

// valueNames names the values of fields that have names.
var valueNames = map[reflect.Type]map[string]uint64{
	reflect.TypeFor[smp.PortState](): {"down": 1, "initialize": 2, "init": 2, "armed": 3, "active": 4},
	reflect.TypeFor[smp.PhysState](): {
		"sleep": 1, "polling": 2, "disabled": 3, "training": 4, "linkup": 5, "errorrecovery": 6,
	},
	reflect.TypeFor[ib.NodeType](): {"ca": 1, "switch": 2, "router": 3},
	reflect.TypeFor[smp.SMState](): {"notactive": 0, "discovering": 1, "standby": 2, "master": 3},
	reflect.TypeFor[bool]():        {"on": 1, "off": 0, "true": 1, "false": 0},
}

// AttributeField finds a field of an attribute by its name: NAME, NAME.i of an array,
// NAME.i.PART of an array of structures, or i alone in the one array that an
// attribute has.
func AttributeField(v reflect.Value, name string) (reflect.Value, error) {
	parts := strings.Split(name, ".")
	if _, err := strconv.Atoi(parts[0]); err == nil {
		array, ok := onlyArray(v)
		if !ok {
			return v, fmt.Errorf("field %q: want a name, one of %s", name, fieldNames(v))
		}
		v = array
	}
	for _, part := range parts {
		switch v.Kind() {
		case reflect.Struct:
			f, found := v.Type().FieldByNameFunc(func(name string) bool { return plain(name) == plain(part) })
			if !found || !f.IsExported() {
				return v, fmt.Errorf("field %q: want one of %s", part, fieldNames(v))
			}
			v = v.FieldByIndex(f.Index)
		case reflect.Array:
			i, err := strconv.ParseUint(part, 10, 16)
			if err != nil || i >= uint64(v.Len()) {
				return v, fmt.Errorf("entry %q: want 0 to %d", part, v.Len()-1)
			}
			v = v.Index(int(i))
		default:
			return v, fmt.Errorf("%q: want nothing behind a field that has no parts", part)
		}
	}
	if v.Kind() == reflect.Struct || v.Kind() == reflect.Array && v.Type().Elem().Kind() != reflect.Uint8 {
		return v, fmt.Errorf("%q: want one of its parts, as %s.0", name, name)
	}
	return v, nil
}

func onlyArray(v reflect.Value) (reflect.Value, bool) {
	var found []reflect.Value
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() && v.Field(i).Kind() == reflect.Array {
			found = append(found, v.Field(i))
		}
	}
	if len(found) != 1 {
		return v, false
	}
	return found[0], true
}

func fieldNames(v reflect.Value) string {
	var names []string
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// AttributeNumber is a field as a number.
func AttributeNumber(v reflect.Value) uint64 {
	if v.Kind() == reflect.Bool {
		if v.Bool() {
			return 1
		}
		return 0
	}
	return v.Uint()
}

// SetNumber writes a number, or whether it is not zero, to a field.
func SetNumber(to reflect.Value, n uint64) {
	if to.Kind() == reflect.Bool {
		to.SetBool(n != 0)
		return
	}
	to.SetUint(n)
}

// SetBytes writes bytes to a field that is an array of at least as many; the
// rest becomes zero.
func SetBytes(to reflect.Value, raw []byte) {
	for i := range to.Len() {
		var b byte
		if i < len(raw) {
			b = raw[i]
		}
		to.Index(i).SetUint(uint64(b))
	}
}

// bytesOf is a field that is an array, as bytes.
func bytesOf(v reflect.Value) []byte {
	raw := make([]byte, v.Len())
	for i := range raw {
		raw[i] = byte(v.Index(i).Uint())
	}
	return raw
}

// CompareBytes orders a field that is an array of bytes and at most as many
// bytes: the first of the field, or, where whole, all of it and the bytes
// filled up with zeros.
func CompareBytes(field reflect.Value, raw []byte, whole bool) int {
	got := bytesOf(field)
	if !whole {
		return bytes.Compare(got[:len(raw)], raw)
	}
	return bytes.Compare(got, append(slices.Clone(raw), make([]byte, len(got)-len(raw))...))
}

// ShowAttribute prints a field as a script would write it.
func ShowAttribute(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case bool:
		return strconv.FormatUint(AttributeNumber(v), 10)
	case ib.PKey, ib.MKey, ib.QKey, ib.NodeGUID, ib.PortGUID, smp.PortState, smp.PhysState:
		return fmt.Sprint(x)
	}
	if v.Kind() == reflect.Array {
		raw := bytesOf(v)
		if text := bytes.TrimRight(raw, "\x00"); isText(text) {
			return strconv.Quote(string(text))
		}
		return "0x" + hex.EncodeToString(raw)
	}
	n := v.Uint()
	if v.Type().Bits() > 8 && n > 9 {
		return fmt.Sprintf("%d (%#x)", n, n)
	}
	return strconv.FormatUint(n, 10)
}

func isText(b []byte) bool {
	for _, r := range string(b) {
		if r < ' ' || r == '\uFFFD' {
			return false
		}
	}
	return len(b) > 0
}

// AttributeKeys lists the keys of a map in order.
func AttributeKeys[V any](m map[string]V) string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// AttributeNamed is the value that a name stands for in fields of a type; want lists the
// names that the type has.
func AttributeNamed(t reflect.Type, name string) (n uint64, ok bool, want string) {
	n, ok = valueNames[t][plain(name)]
	if names := valueNames[t]; names != nil {
		want = AttributeKeys(names)
	}
	return n, ok, want
}
