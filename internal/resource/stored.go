// This file reads the JSON that this version of the program, or an older one, has stored.

package resource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// UnmarshalStored is json.Unmarshal of what this version has marshalled and stored. A field that
// is not known is an error too: a newer version wrote it.
func UnmarshalStored(data []byte, to any) error {
	var whole json.RawMessage // a Decoder reads the first value only, and not what follows it
	if err := json.Unmarshal(data, &whole); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err != nil && strings.Contains(err.Error(), "unknown field") {
		return fmt.Errorf("%w: a newer ibwarden has written it", err)
	}
	return err
}
