// This file reads JSON of which there is one opinion only: no key twice in an object,
// also not in other letters, keys spelled as the names that they are read as, valid UTF-8,
// nothing after the value.

package listen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// DepthMax is how deep the values of a body may be nested.
const DepthMax = 32

// JSON is the format of bodies.
var JSON = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: Unmarshal}

// Unmarshal is json.Unmarshal of a value that every program reads as the same. The error
// names the key that is there twice or is misspelled. encoding/json takes a key for a field
// in upper and lower case alike, by the folding of Unicode (pKey and p, U+212A, ey are pkey
// to it), and the last of them counts: a proxy that checks pkey would check another value
// than the one that is used.
func Unmarshal(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("want UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := distinct(d, reflect.TypeOf(v), 0); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("want one JSON value and nothing after it")
	}
	return json.Unmarshal(data, v)
}

// distinct reads one value, for a variable of a type, and refuses objects with a key twice
// and with keys that only nearly are the name of a field. The type is nil where none is known.
func distinct(d *json.Decoder, t reflect.Type, depth int) error {
	if depth > DepthMax {
		return fmt.Errorf("nested deeper than %d", DepthMax)
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, is := token.(json.Delim)
	if !is {
		return nil
	}
	fields, element := inside(t)
	keys := map[string]string{} // by folded
	for d.More() {
		of := element
		if open == '{' {
			token, err := d.Token()
			if err != nil {
				return err
			}
			k, _ := token.(string)
			folded := strings.Map(fold, k)
			if other, again := keys[folded]; again && other == k {
				return fmt.Errorf("key %.40q is there twice", k)
			} else if again {
				return fmt.Errorf("keys %.40q and %.40q differ only in upper and lower case: want one", other, k)
			}
			keys[folded] = k
			if f, known := fields[folded]; known {
				if f.name != k {
					return fmt.Errorf("key %.40q: want it as %q", k, f.name)
				}
				of = f.of
			}
		}
		if err := distinct(d, of, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// fold is the first of the letters that are one in upper and lower case, as encoding/json
// compares them.
func fold(r rune) rune {
	for next := unicode.SimpleFold(r); ; next = unicode.SimpleFold(next) {
		if next <= r {
			return next
		}
		r = next
	}
}

// field is a field of a struct as JSON has it.
type field struct {
	name string
	of   reflect.Type
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// inside is what an object or a list for a variable of a type has in it: its fields by folded
// names, or the type of its elements; neither where a type reads itself.
func inside(t reflect.Type) (fields map[string]field, element reflect.Type) {
	for t != nil && t.Kind() == reflect.Pointer && !t.Implements(unmarshaler) {
		t = t.Elem()
	}
	if t == nil || t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
		return nil, nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return nil, t.Elem()
	case reflect.Struct:
	default:
		return nil, nil
	}
	fields = map[string]field{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[strings.Map(fold, name)] = field{name, f.Type}
	}
	return fields, nil
}
