package sa

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/internal/vectors"
)

// leaf is one field of a record as the tests see it.
type leaf struct {
	field reflect.Value
	read  func() string // in hexadecimal without leading zeros
}

// leaves finds the fields of a record under the names that the golden packets
// have, as shortName makes them.
func leaves(t testing.TB, r Record) map[string]leaf {
	t.Helper()
	found := map[string]leaf{}
	add := func(name string, l leaf) {
		if _, twice := found[name]; twice {
			t.Fatalf("%T has two fields %s", r, name)
		}
		found[name] = l
	}
	addLeaves(add, "", "", reflect.ValueOf(r).Elem())
	return found
}

func addLeaves(add func(string, leaf), name, index string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				addLeaves(add, f.Name, index, v.Field(i))
			}
		}
	case reflect.Array, reflect.Slice:
		addElements(add, name, v)
	case reflect.Bool:
		add(name+index, leaf{v, func() string {
			if v.Bool() {
				return "1"
			}
			return "0"
		}})
	default:
		addNumber(add, name, index, v)
	}
}

func addNumber(add func(string, leaf), name, index string, v reflect.Value) {
	part := func(name string, shift, bits int) {
		add(name, leaf{v, func() string { return fmt.Sprintf("%x", v.Uint()>>shift&(1<<bits-1)) }})
	}
	switch name {
	case "Keys":
		part("MembershipType"+index, 15, 1)
		part("PKeyBase"+index, 0, 15)
	default:
		part(name+index, 0, 64)
	}
}

func addElements(add func(string, leaf), name string, v reflect.Value) {
	bytes := v.Type().Elem().Kind() == reflect.Uint8 && name != "Ports" && name != "VLs"
	switch {
	case strings.HasPrefix(name, "ServiceData"):
		add(fmt.Sprintf("%s[%d]", name, v.Len()), leaf{v, func() string {
			text := ""
			for i := range v.Len() {
				text += fmt.Sprintf("%0*x", v.Type().Elem().Bits()/4, v.Index(i).Uint())
			}
			return plainHex(text)
		}})
		return
	case bytes:
		add(name, leaf{v, func() string { return plainHex(fmt.Sprintf("%x", v.Bytes())) }})
		return
	}
	for i := range v.Len() {
		element, index := v.Index(i), fmt.Sprintf("[%d]", i)
		switch name {
		case "Ports":
			addLeaves(add, "Port", index, element)
		case "Masks":
			addLeaves(add, "PortMask", index, element)
		case "GUIDs":
			addLeaves(add, fmt.Sprintf("GUID%d", i), "", element)
		case "VLs":
			addLeaves(add, fmt.Sprintf("SL%dtoVL", i), "", element)
		case "SGIDs":
			addLeaves(add, "SDGID1", "", element) // the vector has one of each
		case "DGIDs":
			addLeaves(add, "SDGID2", "", element)
		default:
			addLeaves(add, name, index, element)
		}
	}
}

// values reads all fields of a record. What a MultiPathRecord keeps as lists
// and as one number has the names of the golden packet.
func values(t testing.TB, r Record) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, l := range leaves(t, r) {
		out[name] = l.read()
	}
	if r, ok := r.(*MultiPathRecord); ok {
		delete(out, "ServiceID")
		out["ServiceID8MSB"] = fmt.Sprintf("%x", r.ServiceID>>56)
		out["ServiceID56LSB"] = fmt.Sprintf("%x", r.ServiceID<<8>>8)
		out["SGIDCount"] = fmt.Sprintf("%x", len(r.SGIDs))
		out["DGIDCount"] = fmt.Sprintf("%x", len(r.DGIDs))
	}
	return out
}

// shortName is the name of a field of a golden packet as this package would
// write it.
func shortName(f vectors.Field) string {
	switch f.Name {
	case "GidPrefix":
		return "GIDPrefix"
	case "OptimizedSLtoVLMappingProgramming":
		return "OptimizedSLToVLMappingProgramming"
	case "TrapNumber/DeviceID":
		return "TrapNumber"
	case "ProducerType/VendorID":
		return "Producer"
	case "GIDScope (or Reserved)":
		return "GIDScope"
	}
	return strings.ReplaceAll(f.Name, "_", "")
}

func isReserved(f vectors.Field) bool { return strings.HasPrefix(f.Name, "Reserved") }

func plainHex(s string) string {
	s = strings.TrimLeft(strings.TrimPrefix(s, "0x"), "0")
	if s == "" {
		return "0"
	}
	return s
}

// changes names the fields that differ.
func changes(before, after map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name] != after[name] {
			names = append(names, name)
		}
	}
	return names
}
