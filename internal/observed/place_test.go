package observed

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

func TestPlaceIsSpelledOneWay(t *testing.T) {
	for _, at := range []Place{{}, {Node: 1, Port: 0}, {Node: 0xFEDC_BA98_7654_3210, Port: ib.PortNone}} {
		if got, err := ParsePlace(at.String()); err != nil || got != at {
			t.Errorf("%s reads as %v, %v", at, got, err)
		}
	}
	if s := (Place{Node: 0x10, Port: 3}).String(); s != "0x0000000000000010:3" {
		t.Errorf("spelled %q", s)
	}
	for _, text := range []string{"", "0x10", "0x10:", ":3", "0x10:256", "0x10:-1", "0x10:3:4", "leaf:3", "0x10:3 ", "0x10:0x3"} {
		if got, err := ParsePlace(text); err == nil || got != (Place{}) {
			t.Errorf("%q was taken for %v, %v", text, got, err)
		}
	}
}
