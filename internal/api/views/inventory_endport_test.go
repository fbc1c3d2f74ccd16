package views

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// A name means one port or is refused with what it may mean.
func TestEndPort(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(4, "leaf")
	red, blue := b.Host(sw, "red-1 mlx5_0"), b.Host(sw, "blue-1")
	two := b.Node(ib.NodeCA, 2, "two")
	first, second := b.Host(nil, "same"), b.Host(nil, "same")
	b.Fabric.EndPorts()[0].Info.LID = ib.LIDMulticastMin // nonsense that a device may say
	for name, want := range map[string]*observed.Port{
		"red-1 mlx5_0": red, "red-1": red, "blue-1:1": blue, "two:2": &two.Ports[2], "3": blue, blue.GUID.String(): blue,
	} {
		if got, err := FindEndPort(b.Fabric.EndPorts(), name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"blue-2": "did you mean 'blue-1'?",
		"two:3":  "is no end port that was reached",
		"two":    "ambiguous: it may be any of two:1",
		"same":   first.GUID.String() + "), same (" + second.GUID.String(),
		"0":      "is no end port",
		"0xC000": "is no end port",
		"99":     "is no end port",
		"":       "is no end port",
	} {
		if got, err := FindEndPort(b.Fabric.EndPorts(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %q", name, got, err, want)
		}
	}
	blue.InfoRead = false
	if got, err := FindEndPort(b.Fabric.EndPorts(), "3"); err == nil {
		t.Errorf("a LID that was not read is that of %v", got)
	}
}
