package scenario

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// TestFind: attributes by name in any spelling, and by number.
func TestFind(t *testing.T) {
	for text, want := range map[string]string{
		"PortInfo": "PortInfo", "p_keytable": "PKeyTable", "PKEYTABLE": "PKeyTable", "sltovlmappingtable": "SLToVLMappingTable",
		"0xFF00": "0xff00", "0x15": "0x0015",
	} {
		if k, err := FindAttribute(text); err != nil || k.Name != want {
			t.Errorf("%s is %q, %v; want %s", text, k.Name, err, want)
		}
	}
	for _, d := range smp.Attributes() {
		k, err := FindAttribute(d.Name)
		if err != nil || k.New().ID() != d.ID || k.PerBlock != d.PerBlock {
			t.Errorf("%s is %+v, %v", d.Name, k, err)
		}
	}
	if _, err := FindAttribute("PortInf"); err == nil || !strings.Contains(err.Error(), "SwitchInfo") {
		t.Errorf("PortInf: %v, want a list of names", err)
	}
	if _, err := FindAttribute("0x10000"); err == nil {
		t.Error("a number of 17 bits is an attribute")
	}
	raw, _ := FindAttribute("0xFF01")
	a := raw.New()
	f, err := AttributeField(reflect.ValueOf(a).Elem(), "63")
	if err != nil || a.ID() != 0xFF01 || raw.Modifier(3, 5, 7) != 5 {
		t.Fatalf("a raw attribute: %v, %#x", err, a.ID())
	}
	SetNumber(f, 0xAB)
	if bytes, err := a.AppendBinary(nil); err != nil || len(bytes) != 64 || bytes[63] != 0xAB {
		t.Errorf("byte 63 of a raw attribute: %x, %v", bytes, err)
	}
}

// TestModifier: as smp describes it for the attribute.
func TestModifier(t *testing.T) {
	for name, want := range map[string]uint32{
		"PortInfo": 4, "PKeyTable": 4<<16 | 2, "GUIDInfo": 2, "VLArbitrationTable": 2<<16 | 4, "SLToVLMappingTable": 2<<8 | 1,
		"MulticastForwardingTable": 1<<28 | 2,
	} {
		k, err := FindAttribute(name)
		if err != nil {
			t.Fatal(err)
		}
		n := uint16(2)
		if name == "PortInfo" {
			n = 0 // the port that is asked about
		}
		if got := k.Modifier(4, n, 1); got != want {
			t.Errorf("%s: %#x, want %#x", name, got, want)
		}
	}
}

// TestField: fields by name, by index, by both, and what is wrong with others.
func TestField(t *testing.T) {
	info := &smp.PortInfo{LID: 5, PortState: smp.PortActive}
	keys := &smp.PKeyTable{Keys: [smp.PKeysPerBlock]ib.PKey{31: 0x8001}}
	vl := &smp.VLArbitrationTable{}
	vl.Entries[3].Weight = 200
	for _, c := range []struct {
		of    any
		name  string
		shown string
		wrong string
	}{
		{info, "LID", "5", ""},
		{info, "portstate", "Active", ""},
		{keys, "31", "0x8001", ""},
		{keys, "Keys.31", "0x8001", ""},
		{vl, "3.weight", "200", ""},
		{vl, "Entries.3.Weight", "200", ""},
		{keys, "32", "", `entry "32": want 0 to 31`},
		{keys, "Keys", "", `"Keys": want one of its parts, as Keys.0`},
		{vl, "3", "", `"3": want one of its parts, as 3.0`},
		{info, "3", "", `field "3": want a name`},
		{info, "LID.1", "", `"1": want nothing behind a field that has no parts`},
		{info, "Lidd", "", `field "Lidd": want one of`},
	} {
		v, err := AttributeField(reflect.ValueOf(c.of).Elem(), c.name)
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %s", c.name, err, c.wrong)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case ShowAttribute(v) != c.shown:
			t.Errorf("%s is shown as %s, want %s", c.name, ShowAttribute(v), c.shown)
		}
	}
}

// TestBytes: texts and bytes in arrays, filled up with zeros, and how they compare.
func TestBytes(t *testing.T) {
	d := smp.NodeDescription{}
	v, err := AttributeField(reflect.ValueOf(&d).Elem(), reflect.TypeOf(d).Field(0).Name)
	if err != nil {
		t.Fatal(err)
	}
	SetBytes(v, []byte("leaf-10"))
	SetBytes(v, []byte("leaf-1"))
	if ShowAttribute(v) != `"leaf-1"` {
		t.Errorf("shown as %s", ShowAttribute(v))
	}
	for _, c := range []struct {
		bytes string
		whole bool
		want  int
	}{{"leaf-1", true, 0}, {"leaf", true, 1}, {"leaf", false, 0}, {"leaf-2", true, -1}, {"kite", false, 1}} {
		if got := CompareBytes(v, []byte(c.bytes), c.whole); got != c.want {
			t.Errorf("%q, whole %t: %d, want %d", c.bytes, c.whole, got, c.want)
		}
	}
	SetBytes(v, []byte{1, 2})
	if got := ShowAttribute(v); !strings.HasPrefix(got, "0x0102000000") {
		t.Errorf("bytes that are no text are shown as %s", got)
	}
}

// TestNamed: values by their names, for the types that have some.
func TestNamed(t *testing.T) {
	if n, ok, _ := AttributeNamed(reflect.TypeFor[smp.PortState](), "Armed"); !ok || n != 3 {
		t.Errorf("Armed is %d, %t", n, ok)
	}
	if n, ok, want := AttributeNamed(reflect.TypeFor[bool](), "maybe"); ok || n != 0 || want != "false, off, on, true" {
		t.Errorf("maybe is %d, %t, %s", n, ok, want)
	}
	if _, ok, want := AttributeNamed(reflect.TypeFor[ib.LID](), "one"); ok || want != "" {
		t.Errorf("a LID has names: %s", want)
	}
}

// TestRecords: every component that a script can name is a field of its record.
func TestRecords(t *testing.T) {
	for _, d := range sa.Attributes() {
		k, err := FindRecord(strings.ToUpper(d.Name))
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		for name := range k.components {
			if _, err := AttributeField(reflect.ValueOf(k.New()).Elem(), name); err != nil && !strings.Contains(err.Error(), "want one of its parts") {
				t.Errorf("%s: component %s: %v", d.Name, name, err)
			}
		}
	}
	path, _ := FindRecord("PathRecord")
	for field, want := range map[string]sa.ComponentMask{
		"SLID": sa.PathRecordSLID, "p_key": sa.PathRecordPKey, "ServiceID": sa.PathRecordServiceID8MSB | sa.PathRecordServiceID56LSB,
	} {
		if got, ok := path.Component(field); !ok || got != want {
			t.Errorf("%s is component %#x, %t; want %#x", field, got, ok, want)
		}
	}
	if _, ok := path.Component("Preference"); ok {
		t.Error("Preference is a component")
	}
	if _, err := FindCounters("PortCounters"); err != nil {
		t.Error(err)
	}
	if _, err := FindCounters("Counters"); err == nil || !strings.Contains(err.Error(), "PortCounters") {
		t.Errorf("Counters: %v", err)
	}
}
