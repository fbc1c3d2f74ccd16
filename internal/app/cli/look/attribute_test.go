package look

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// PortInfo is written back with the counters at 0 and without a question or a change of state, and not
// at all where the device shows another M_Key than the one that is known: that would take its place.
func TestClearCounters(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(4, "leaf")
	host := b.Host(sw, "red-1 HCA-1")
	host.Key = 0x77
	info := host.Info
	info.MKey, info.PKeyViolations, info.QKeyViolations, info.PortState, info.ClientReregister = 0x77, 0xFFFF, 9, smp.PortActive, true
	var data [mad.DataSize]byte
	if err := info.Encode(&data); err != nil {
		t.Fatal(err)
	}
	if err := clearCounters(host, &data, []string{"PKeyViolations"}); err != nil {
		t.Fatal(err)
	}
	var wrote smp.PortInfo
	if err := wrote.UnmarshalBinary(data[:]); err != nil {
		t.Fatal(err)
	}
	want := info
	want.PKeyViolations, want.PortState, want.PortPhysicalState, want.LinkDownDefaultState, want.ClientReregister = 0, 0, 0, 0, false
	if wrote != want {
		t.Errorf("writes %v, want %v", wrote, want)
	}
	for _, shown := range []uint64{0, 0x78} {
		data[7] = byte(shown)
		if err := clearCounters(host, &data, []string{"PKeyViolations"}); err == nil {
			t.Errorf("a device that shows key %#x is written to", shown)
		}
	}
}

// The port of another manager is left alone; one's own, one without a manager, and one that takes a key
// of this command are not.
func TestForeign(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(4, "leaf")
	self, host := b.Host(sw, "self"), b.Host(sw, "red-1 HCA-1")
	b.ManagedFrom(self)
	for name, c := range map[string]struct {
		prepare func()
		foreign bool
	}{
		"another's":              {func() { host.Info.MasterSMLID = 40 }, true},
		"no manager":             {func() { host.Info.MasterSMLID = 0 }, false},
		"one's own":              {func() { host.Info.MasterSMLID = self.Info.LID }, false},
		"with the key":           {func() { host.Info.MasterSMLID, host.Key, host.Info.MKey = 40, 5, 5 }, false},
		"with a key that is not": {func() { host.Info.MasterSMLID, host.Key, host.Info.MKey = 40, 5, 6 }, true},
	} {
		host.Key, host.Info.MKey = 0, 0
		c.prepare()
		if err := Foreign(b.Fabric, host); (err != nil) != c.foreign {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLocate(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(4, "leaf-1")
	host := b.Host(sw, "red-1 HCA-1")
	for text, want := range map[string]string{
		"red-1": "red-1 HCA-1", "red-1 HCA-1": "red-1 HCA-1", "red-1:1": "red-1 HCA-1", "leaf-1": "leaf-1", "leaf-1:0": "leaf-1:0", "leaf-1:3": "leaf-1:3",
		host.GUID.String(): "red-1 HCA-1", host.Node.GUID().String() + ":1": "red-1 HCA-1", sw.GUID().String() + ":2": "leaf-1:2", host.Info.LID.String(): "red-1 HCA-1",
	} {
		if got, err := Locate(b.Fabric, text); err != nil || got.String() != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"rde-1": "did you mean 'red-1 HCA-1'?", "laef-1:3": "did you mean 'leaf-1:3'?", "leaf-1:5": "leaf-1 has no port 5: want 0 to 4", "red-1:0": "want 1 to 1",
		"leaf-1:x": "want the number of a port", "": "no device", "0x1": "no device", "49151": "no device",
	} {
		if _, err := Locate(b.Fabric, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestFindAndCounters(t *testing.T) {
	for text, want := range map[string]string{
		"PortInfo": "PortInfo", "p_keytable": "PKeyTable", "SLtoVLMappingTable": "SLToVLMappingTable", "VLArbitration": "VLArbitrationTable",
		"LedInfo": "LEDInfo", "portcounters": "PortCounters", "0x0015": "PortInfo", "0xFF03": "0xFF03",
	} {
		if k, err := FindAttribute(text); err != nil || k.Name != want {
			t.Errorf("%q: %q, %v", text, k.Name, err)
		}
	}
	for _, text := range []string{"", "PortInf", "0x10000", "Port Info"} {
		if k, err := FindAttribute(text); err == nil {
			t.Errorf("%q is %s", text, k.Name)
		}
	}
	for _, k := range Kinds() {
		for _, c := range k.Resettable() {
			got, err := k.Counters([]string{strings.ToUpper(c) + "=0"})
			if err != nil || len(got) != 1 || got[0] != c {
				t.Errorf("%s.%s: %v, %v", k.Name, c, got, err)
			}
			if k.Performance {
				if _, err := pm.Reset(k.ID, c); err != nil {
					t.Error(err)
				}
			}
			for _, bad := range []string{c, c + "=1", c + "=", c + "=00", c + "x=0"} {
				if got, err := k.Counters([]string{bad}); err == nil {
					t.Errorf("%s %q is %v", k.Name, bad, got)
				}
			}
		}
	}
}

// TestTooShort: data that is shorter than an attribute is an error, and never explained as far as it goes.
func TestTooShort(t *testing.T) {
	for _, k := range Kinds() {
		if fields, err := k.explain(0, []byte{1, 2}); err == nil {
			t.Errorf("2 bytes of %s: %v", k.Name, fields)
		}
	}
}
