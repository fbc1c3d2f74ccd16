package describe

import (
	"slices"
	"testing"
)

func TestTable(t *testing.T) {
	var x Table[string]
	if _, ok := x.Find(1); ok || len(x.All()) != 0 {
		t.Error("the zero table has something")
	}
	x.Add(0x15, "PortInfo")
	x.Add(0x11, "NodeInfo")
	if got, ok := x.Find(0x15); !ok || got != "PortInfo" {
		t.Errorf("%q, %t", got, ok)
	}
	if got := x.All(); !slices.Equal(got, []string{"NodeInfo", "PortInfo"}) {
		t.Errorf("%q, want them by number", got)
	}
	defer func() {
		if got := recover(); got != "attribute 0x0011 is described twice" {
			t.Errorf("panic %v", got)
		}
	}()
	x.Add(0x11, "again")
}
