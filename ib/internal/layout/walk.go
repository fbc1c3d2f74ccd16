package layout

import (
	"encoding/hex"
	"fmt"
	"reflect"

	"github.com/ibwarden/ibwarden/ib"
)

// Leaf is a value inside a structure: a field, an entry of a table, or a field of an entry.
type Leaf struct {
	// Name is where the value is, as in "LID", "Keys[3]" or "Entries[3].Weight".
	Name string
	// Field is the name of the field alone, and Index the first index on the way to it, -1
	// where there is none.
	Field string
	Index int
	// Of is the value.
	Of reflect.Value
}

// Walk calls visit with the exported values of a structure, or of one that is pointed to, in
// their order. Arrays of bytes are one value; first is the number of the first entry of other
// arrays.
func Walk(of any, first int, visit func(Leaf)) {
	walkStruct("", -1, first, reflect.Indirect(reflect.ValueOf(of)), visit)
}

func walkStruct(under string, index, first int, v reflect.Value, visit func(Leaf)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		x := v.Field(i)
		switch {
		case x.Kind() == reflect.Struct:
			walkStruct(under+f.Name+".", index, first, x, visit)
		case x.Kind() == reflect.Array && !IsBytes(x):
			for n := range x.Len() {
				at := fmt.Sprintf("%s%s[%d]", under, f.Name, first+n)
				if x.Index(n).Kind() == reflect.Struct {
					walkStruct(at+".", first+n, first, x.Index(n), visit)
				} else {
					visit(Leaf{at, f.Name, first + n, x.Index(n)})
				}
			}
		default:
			visit(Leaf{under + f.Name, f.Name, index, x})
		}
	}
}

// IsBytes reports whether a value is an array of bytes, which are printed as one.
func IsBytes(v reflect.Value) bool {
	return (v.Kind() == reflect.Array || v.Kind() == reflect.Slice) && v.Type().Elem().Kind() == reflect.Uint8 && v.Type().Elem().Name() == "uint8"
}

// Number is the value on the wire of a leaf that is no array of bytes.
func (l Leaf) Number() uint64 {
	if l.Of.Kind() == reflect.Bool {
		if l.Of.Bool() {
			return 1
		}
		return 0
	}
	return l.Of.Uint()
}

// Value is a leaf for people and programs: a number, or text where it is read as hexadecimal digits
// (GUIDs, keys, masks, bytes). A secret key is not told.
func (l Leaf) Value() any {
	if gid, is := l.Of.Interface().(ib.GID); is {
		return gid.String()
	}
	if IsBytes(l.Of) {
		bytes := make([]byte, l.Of.Len())
		reflect.Copy(reflect.ValueOf(bytes), l.Of)
		return "0x" + hex.EncodeToString(bytes)
	}
	switch x := l.Of.Interface().(type) {
	case ib.MKey, ib.SMKey:
		if l.Of.IsZero() {
			return l.Number()
		}
		return "not shown"
	case ib.NodeGUID, ib.PortGUID, ib.PKey, ib.QKey:
		return fmt.Sprint(x)
	}
	return l.Number()
}
