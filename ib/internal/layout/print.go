package layout

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// Print prints the exported fields of a structure, as in
//
//	SwitchInfo{LinearFDBCap:49151 ... EnhancedPort0:false}
//
// Bytes are hexadecimal, two digits each, without those at the end that are zero, and
// other values as fmt prints them. Of an M_Key or SM_Key it says only whether it is 0: what
// is printed gets into logs.
func Print(of any) string {
	v := reflect.ValueOf(of)
	parts := make([]string, 0, v.NumField())
	for _, f := range PrintedFields(of) {
		parts = append(parts, f.Name+":"+f.Value)
	}
	return v.Type().Name() + "{" + strings.Join(parts, " ") + "}"
}

// PrintedField is a field of a structure, printed.
type PrintedField struct{ Name, Value string }

// PrintedFields is the exported fields of a structure, or of one that is pointed to, as Print prints
// them.
func PrintedFields(of any) (out []PrintedField) {
	v := reflect.Indirect(reflect.ValueOf(of))
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			out = append(out, PrintedField{f.Name, value(v.Field(i))})
		}
	}
	return out
}

// value prints one field.
func value(v reflect.Value) string {
	switch v.Interface().(type) {
	case ib.MKey, ib.SMKey:
		if v.IsZero() {
			return "0"
		}
		return "not shown"
	}
	if _, named := v.Interface().(fmt.Stringer); named {
		return fmt.Sprint(v.Interface())
	}
	switch {
	case v.Kind() == reflect.Struct:
		return Print(v.Interface())
	case IsBytes(v):
		raw := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(raw), v)
		return fmt.Sprintf("0x%x", bytes.TrimRight(raw, "\x00"))
	case v.Kind() == reflect.Array || v.Kind() == reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = value(v.Index(i))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v.Interface())
}
