// Package show prints the structures of the codec packages for people: fields by name,
// without the reserved bits.
package show

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// Fields prints the exported fields of a structure, as in
//
//	SwitchInfo{LinearFDBCap:49151 ... EnhancedPort0:false}
//
// Octets are hexadecimal, two digits each, without those at the end that are zero, and
// other values as fmt prints them. Of an M_Key or SM_Key it says only whether it is 0: what
// is printed gets into logs.
func Fields(of any) string {
	v := reflect.ValueOf(of)
	var b strings.Builder
	b.WriteString(v.Type().Name() + "{")
	first := true
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		if !first {
			b.WriteByte(' ')
		}
		first = false
		b.WriteString(f.Name + ":" + value(v.Field(i)))
	}
	return b.String() + "}"
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
		return Fields(v.Interface())
	case (v.Kind() == reflect.Array || v.Kind() == reflect.Slice) && v.Type().Elem().Kind() == reflect.Uint8 && v.Type().Elem().Name() == "uint8":
		octets := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(octets), v)
		return fmt.Sprintf("0x%x", bytes.TrimRight(octets, "\x00"))
	case v.Kind() == reflect.Array || v.Kind() == reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = value(v.Index(i))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v.Interface())
}
