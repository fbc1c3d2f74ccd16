package sa

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// What is said of a record holds: its name is that of its type, Size is what it takes
// to read one, and Decode gives back what was encoded.
func TestDescriptors(t *testing.T) {
	all := Attributes()
	if len(all) != len(codecs) {
		t.Errorf("%d records are described, %d are coded", len(all), len(codecs))
	}
	for i, d := range all {
		r := d.New()
		if r.ID() != d.ID || AttributeName(d.ID) != d.Name || reflect.TypeOf(r).Elem().Name() != d.Name || i > 0 && all[i-1].ID >= d.ID {
			t.Errorf("%s (%#x): %T with number %#x", d.Name, d.ID, r, r.ID())
		}
		if got, ok := Describe(d.ID); !ok || got.Name != d.Name {
			t.Errorf("Describe(%#x) is %q, %v", d.ID, got.Name, ok)
		}
		raw, err := r.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if d.Size > 0 && len(raw) != (d.Size+offsetUnit-1)/offsetUnit*offsetUnit {
			t.Errorf("%s has %d bytes on the wire, and %d are described", d.Name, len(raw), d.Size)
		}
		got, err := Decode(d.ID, raw)
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(r) {
			t.Fatalf("%s is decoded as %T, %v", d.Name, got, err)
		}
		if back, err := got.AppendBinary(nil); err != nil || !bytes.Equal(back, raw) {
			t.Errorf("%s: %x comes back as %x, %v", d.Name, raw, back, err)
		}
		if d.Size > 0 {
			if _, err := Decode(d.ID, raw[:d.Size-1]); err == nil {
				t.Errorf("%s of %d bytes was decoded", d.Name, d.Size-1)
			}
			if _, err := Decode(d.ID, raw[:d.Size]); err != nil {
				t.Errorf("%s of its %d bytes: %v", d.Name, d.Size, err)
			}
		}
	}
	if _, err := Decode(mad.AttrClassPortInfo, make([]byte, DataSize)); !errors.Is(err, ErrUnknown) {
		t.Errorf("ClassPortInfo, which is package mad's: %v", err)
	}
}

// What is printed has the fields, those of attributes inside too, and neither
// reserved bits nor keys.
func TestString(t *testing.T) {
	r := SMInfoRecord{LID: 4}
	r.SMInfo.SMKey, r.SMInfo.Priority = 0x1234_5678, 9
	if got := r.String(); !strings.HasPrefix(got, "SMInfoRecord{LID:4 ") || !strings.Contains(got, "SMInfo{") || !strings.Contains(got, "Priority:9") ||
		!strings.Contains(got, "SMKey:not shown") || strings.Contains(got, "reserved") {
		t.Errorf("%s", got)
	}
	if got := (LinkRecord{FromLID: 1, FromPort: 2, ToPort: 3, ToLID: 4}).String(); got != "LinkRecord{FromLID:1 FromPort:2 ToPort:3 ToLID:4}" {
		t.Errorf("%s", got)
	}
}
