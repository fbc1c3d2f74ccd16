package pm

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// What is said of an attribute holds: its name is that of its type, Size is what it
// takes to read one, and Decode gives back what was encoded.
func TestDescriptors(t *testing.T) {
	all := Attributes()
	if len(all) != 4 {
		t.Errorf("%d attributes, want 4", len(all))
	}
	for i, d := range all {
		a := d.New()
		if a.ID() != d.ID || AttributeName(d.ID) != d.Name || reflect.TypeOf(a).Elem().Name() != d.Name || i > 0 && all[i-1].ID >= d.ID {
			t.Errorf("%s (%#x): %T with number %#x", d.Name, d.ID, a, a.ID())
		}
		if got, ok := Describe(d.ID); !ok || got.Name != d.Name {
			t.Errorf("Describe(%#x) is %q, %v", d.ID, got.Name, ok)
		}
		bytes, err := a.AppendBinary(nil)
		if err != nil || len(bytes) != d.Size {
			t.Fatalf("%s has %d bytes on the wire, %d are described: %v", d.Name, len(bytes), d.Size, err)
		}
		if got, err := Decode(d.ID, bytes); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%s is decoded as %v, %v", d.Name, got, err)
		}
		if _, err := Decode(d.ID, bytes[:d.Size-1]); err == nil {
			t.Errorf("%s of %d bytes was decoded", d.Name, d.Size-1)
		}
	}
	if _, err := Decode(mad.AttrClassPortInfo, make([]byte, DataSize)); !errors.Is(err, ErrUnknown) {
		t.Errorf("ClassPortInfo, which is package mad's: %v", err)
	}
	c := PortCounters{PortSelect: 3, VL15Dropped: 7}
	if got := c.String(); !strings.HasPrefix(got, "PortCounters{PortSelect:3 ") || !strings.Contains(got, "VL15Dropped:7") || strings.Contains(got, "reserved") {
		t.Errorf("%s", got)
	}
}
