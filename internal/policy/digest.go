package policy

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"reflect"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// Digest tells this policy from any that means something else. Of two texts that mean the
// same it makes one digest, where their partitions and members are in the same order: layout,
// comments, the name of the file, the order of groups, and settings that are stated with
// their usual value do not count. numbers are those that Allocate gave.
//
// It does not depend on the fabric: which ports a selector finds does not count, since one
// such as SELF finds other ports for each manager.
func (p *Policy) Digest(numbers map[string]ib.PKeyBase) (d [sha256.Size]byte) {
	c := *p
	c.Source, c.Warnings, c.Services = "", nil, nil // partitions have what services make
	asked := p.Asked()
	c.Settings = &asked
	c.Groups = slices.Clone(p.Groups)
	slices.SortStableFunc(c.Groups, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	c.Partitions = slices.Clone(p.Partitions)
	for i := range c.Partitions {
		x := &c.Partitions[i]
		if x.PKey == 0 {
			x.PKey = numbers[x.Name]
		}
		x.From, x.Immutable = 0, false
	}
	h := sha256.New()
	w := bufio.NewWriter(h)
	writeText(w, digestForm)
	writeCanonical(w, reflect.ValueOf(&c).Elem())
	w.Flush()
	h.Sum(d[:0])
	return d
}

// digestForm names the encoding that writeCanonical makes, which names the fields of Policy as
// they are called here. Managers compare digests with those of other versions: whoever changes
// the encoding, or the name of a field, counts it up, and policyModifier of package mastership.
const digestForm = "ibwarden policy 2"

var posType = reflect.TypeFor[Pos]()

// writeCanonical writes a value so that no two different ones look the same. Fields that are
// zero are left out, and those that are places in a file: a field that a later version
// adds changes nothing until somebody uses it.
func writeCanonical(w io.Writer, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if isPos(f.Type) || isNothing(f, v.Field(i)) {
				continue
			}
			writeText(w, f.Name)
			writeCanonical(w, v.Field(i))
		}
		writeText(w, "")
	case reflect.Pointer:
		writeCanonical(w, v.Elem())
	case reflect.Slice, reflect.Array:
		writeNumber(w, uint64(v.Len()))
		for i := range v.Len() {
			writeCanonical(w, v.Index(i))
		}
	case reflect.Map: // a set
		keys := make([]string, 0, v.Len())
		for _, k := range v.MapKeys() {
			var b bytes.Buffer
			writeCanonical(&b, k)
			if !v.MapIndex(k).IsZero() {
				writeCanonical(&b, v.MapIndex(k))
			}
			keys = append(keys, b.String())
		}
		slices.Sort(keys)
		writeNumber(w, uint64(len(keys)))
		for _, k := range keys {
			writeText(w, k)
		}
	case reflect.String:
		writeText(w, v.String())
	case reflect.Bool:
		writeText(w, "true") // false is zero, and in no list
	default:
		writeNumber(w, v.Convert(reflect.TypeFor[uint64]()).Uint())
	}
}

// isNothing reports whether a field says nothing. No alias GUIDs are something else than
// that the policy does not speak of them.
func isNothing(f reflect.StructField, v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0 && (v.IsNil() || f.Name != "Aliases")
	}
	return v.IsZero()
}

// isPos reports whether a field has only places in a file.
func isPos(t reflect.Type) bool {
	return t == posType || t.Kind() == reflect.Slice && t.Elem() == posType
}

func writeText(w io.Writer, s string) {
	writeNumber(w, uint64(len(s)))
	io.WriteString(w, s)
}

func writeNumber(w io.Writer, n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	w.Write(b[:])
}
