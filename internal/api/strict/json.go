// Package strict reads JSON of which there is one opinion only: no key twice in an object,
// valid UTF-8, nothing after the value.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// DepthMax is how deep the values of a body may be nested.
const DepthMax = 32

// JSON is the format of bodies.
var JSON = huma.Format{
	Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(data []byte, v any) error {
		if !utf8.Valid(data) {
			return errors.New("want UTF-8")
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := distinct(d, 0); err != nil {
			return err
		}
		if _, err := d.Token(); err != io.EOF {
			return errors.New("want one JSON value and nothing after it")
		}
		return json.Unmarshal(data, v)
	},
}

// distinct reads one value and refuses objects with a key twice.
func distinct(d *json.Decoder, depth int) error {
	if depth > DepthMax {
		return fmt.Errorf("nested deeper than %d", DepthMax)
	}
	t, err := d.Token()
	if err != nil {
		return err
	}
	open, is := t.(json.Delim)
	if !is {
		return nil
	}
	keys := map[string]bool{}
	for d.More() {
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return err
			}
			k, _ := t.(string)
			if keys[k] {
				return fmt.Errorf("key %.40q is there twice", k)
			}
			keys[k] = true
		}
		if err := distinct(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}
