package smp

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

func TestAttributeName(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range codecs {
		name := AttributeName(c.make().ID())
		if strings.Contains(name, "0x") || strings.Contains(name, "_") {
			t.Errorf("%s is called %q", c.name, name)
		}
		seen[name] = true
	}
	if len(seen) != 16 {
		t.Errorf("%d names, want 16: %v", len(seen), seen)
	}
	for id, want := range map[mad.AttributeID]string{
		0x0013: "attribute 0x0013",
		0xFEFF: "attribute 0xfeff",
		0xFF00: "vendor attribute 0xff00",
		0xFFFF: "vendor attribute 0xffff",
	} {
		if got := AttributeName(id); got != want {
			t.Errorf("AttributeName(%#x) = %q, want %q", id, got, want)
		}
	}
}

func TestPKeyModifier(t *testing.T) {
	tests := []struct {
		modifier uint32
		port     ib.PortNum
		block    uint16
		ok       bool
	}{
		{0x00000000, 0, 0, true},
		{0x00000002, 0, 2, true},
		{0x00030000, 3, 0, true},
		{0x00FF07FF, 255, 2047, true},
		{0x0100FFFF, 0, 0xFFFF, false},
		{0x80010000, 1, 0, false},
	}
	for _, test := range tests {
		port, block, ok := SplitPKeyModifier(test.modifier)
		if port != test.port || block != test.block || ok != test.ok {
			t.Errorf("%#08x: port %d, block %d, %v", test.modifier, port, block, ok)
		}
		if got := PKeyModifier(port, block); ok && got != test.modifier {
			t.Errorf("port %d, block %d: %#08x, want %#08x", port, block, got, test.modifier)
		}
	}
}

func TestSLToVLModifier(t *testing.T) {
	tests := []struct {
		modifier uint32
		target   SLToVLTarget
		ok       bool
	}{
		{0x00000005, SLToVLTarget{Out: 5}, true},
		{0x00000205, SLToVLTarget{In: 2, Out: 5}, true},
		{0x00020005, SLToVLTarget{Out: 5, AllInputs: true}, true},
		{0x00010200, SLToVLTarget{In: 2, AllOutputs: true}, true},
		{0x00030000, SLToVLTarget{AllInputs: true, AllOutputs: true}, true},
		{0x00040205, SLToVLTarget{In: 2, Out: 5}, false},
		{0x80000000, SLToVLTarget{}, false},
	}
	for _, test := range tests {
		target, ok := SplitSLToVLModifier(test.modifier)
		if target != test.target || ok != test.ok {
			t.Errorf("%#08x: %+v, %v", test.modifier, target, ok)
		}
		if got := target.Modifier(); ok && got != test.modifier {
			t.Errorf("%+v: %#08x, want %#08x", target, got, test.modifier)
		}
	}
	if got := SLToVLModifier(2, 5); got != 0x0205 {
		t.Errorf("SLToVLModifier(2, 5) = %#x", got)
	}
}

func TestVLArbModifier(t *testing.T) {
	tests := []struct {
		modifier uint32
		part     VLArbPart
		port     ib.PortNum
		ok       bool
	}{
		{0x00010003, VLArbLowFirst, 3, true},
		{0x000400FF, VLArbHighSecond, 255, true},
		{0x00050001, 5, 1, true},
		{0x00000001, 0, 1, true},
		{0x00010103, VLArbLowFirst, 3, false},
	}
	for _, test := range tests {
		part, port, ok := SplitVLArbModifier(test.modifier)
		if part != test.part || port != test.port || ok != test.ok {
			t.Errorf("%#08x: part %d, port %d, %v", test.modifier, part, port, ok)
		}
	}
	for part, want := range map[VLArbPart]string{
		0: "false false 0", VLArbLowFirst: "true false 0", VLArbLowSecond: "true false 32",
		VLArbHighFirst: "true true 0", VLArbHighSecond: "true true 32", 5: "false false 0",
	} {
		if got := fmt.Sprint(part.IsValid(), part.IsHigh(), part.First()); got != want {
			t.Errorf("part %d: %s, want %s", part, got, want)
		}
	}
}

func TestMFTModifier(t *testing.T) {
	tests := []struct {
		modifier uint32
		block    uint16
		position uint8
		ok       bool
	}{
		{0x00000000, 0, 0, true},
		{0xF00001FF, 511, 15, true},
		{0x20000003, 3, 2, true},
		{0x00000200, 0, 0, false},
		{0x08000000, 0, 0, false},
	}
	for _, test := range tests {
		block, position, ok := SplitMFTModifier(test.modifier)
		if block != test.block || position != test.position || ok != test.ok {
			t.Errorf("%#08x: block %d, position %d, %v", test.modifier, block, position, ok)
		}
		if got := MFTModifier(block, position); ok && got != test.modifier {
			t.Errorf("block %d, position %d: %#08x", block, position, got)
		}
	}
	if block, index := MFTPlace(0xC000 + 32*7 + 5); block != 7 || index != 5 {
		t.Errorf("MFTPlace: block %d, index %d", block, index)
	}
}

func TestPortInfoModifier(t *testing.T) {
	tests := []struct {
		modifier uint32
		port     ib.PortNum
		extended bool
		ok       bool
	}{
		{0x00000000, 0, false, true},
		{0x000000FF, 255, false, true},
		{0x80000007, 7, true, true},
		{0x00000100, 0, false, false},
		{0xC0000001, 1, true, false},
	}
	for _, test := range tests {
		port, extended, ok := SplitPortInfoModifier(test.modifier)
		if port != test.port || extended != test.extended || ok != test.ok {
			t.Errorf("%#08x: port %d, %v, %v", test.modifier, port, extended, ok)
		}
		if got := PortInfoModifier(port, extended); ok && got != test.modifier {
			t.Errorf("port %d, %v: %#08x", port, extended, got)
		}
	}
}

func TestSMControl(t *testing.T) {
	for c := range SMControl(7) {
		if got, want := c.IsValid(), c >= 1 && c <= 5; got != want {
			t.Errorf("%d: %v", c, got)
		}
	}
}

// The positions of the capability bits, first and last and some between.
func TestCapabilityBits(t *testing.T) {
	for bit, mask := range map[uint]CapabilityMask{
		1: CapIsSM, 2: CapNoticeSupported, 3: CapTrapSupported, 6: CapSLMapping, 9: CapLEDInfo,
		10: CapSMDisabled, 11: CapSystemImageGUID, 14: CapExtendedSpeeds, 15: CapHasCapabilityMask2,
		16: CapCommunicationManagement, 20: CapVendorClass, 22: CapCapabilityMaskNotice,
		25: CapClientReregistration, 27: CapLinkSpeedWidthPairsTable, 29: CapMulticastPKeyTrapSuppression,
		30: CapMulticastFDBTop, 31: CapHierarchyInfo,
	} {
		if mask != 1<<bit {
			t.Errorf("bit %d is %#x", bit, uint32(mask))
		}
	}
	for bit, mask := range map[uint]CapabilityMask2{
		0: Cap2SetNodeDescription, 1: Cap2PortInfoExtended, 4: Cap2LinkWidth2X, 10: Cap2LinkSpeedNDR,
		11: Cap2ExtendedSpeeds2, 12: Cap2LinkSpeedXDR,
	} {
		if mask != 1<<bit {
			t.Errorf("bit %d is %#x", bit, uint16(mask))
		}
	}
	if got := (Cap2ExtendedSpeeds2 | Cap2LinkSpeedXDR | 1<<13).Names(); !slices.Equal(got, []string{"IsExtendedSpeeds2Supported", "IsLinkSpeedXDRSupported", "bit 13"}) {
		t.Errorf("CapabilityMask2.Names: %q", got)
	}
	if m := CapIsSM | CapTrapSupported; !m.Has(CapIsSM) || m.Has(CapIsSM|CapLEDInfo) {
		t.Error("CapabilityMask.Has")
	}
	if m := Cap2LinkWidth2X; !m.Has(Cap2LinkWidth2X) || m.Has(Cap2PortInfoExtended) {
		t.Error("CapabilityMask2.Has")
	}
}

func TestNames(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"NoChange":                  PortStateNoChange,
		"Down":                      PortDown,
		"Initialize":                PortInit,
		"Armed":                     PortArmed,
		"Active":                    PortActive,
		"unknown port state 5":      PortState(5),
		"Sleep":                     PhysSleep,
		"Polling":                   PhysPolling,
		"Disabled":                  PhysDisabled,
		"PortConfigurationTraining": PhysTraining,
		"LinkUp":                    PhysLinkUp,
		"LinkErrorRecovery":         PhysErrorRecovery,
		"PhyTest":                   PhysTest,
		"unknown physical state 8":  PhysState(8),
		"4X":                        LinkWidth4X,
		"1X or 4X":                  LinkWidth1X | LinkWidth4X,
		"1X or 4X or 8X or 12X or 2X or unknown 0xe0": LinkWidthAll,
		"none":                         LinkWidth(0),
		"2.5 Gbps":                     LinkSpeedSDR,
		"5.0 Gbps or 10.0 Gbps":        LinkSpeedDDR | LinkSpeedQDR,
		"14.0625 Gbps":                 LinkSpeedFDR,
		"25.78125 Gbps or 53.125 Gbps": LinkSpeedEDR | LinkSpeedHDR,
		"106.25 Gbps":                  LinkSpeedNDR,
		"not active":                   SMNotActive,
		"discovering":                  SMDiscovering,
		"standby":                      SMStandby,
		"master":                       SMMaster,
		"unknown SM state 4":           SMState(4),
	} {
		if got := v.String(); got != want {
			t.Errorf("%T: %q, want %q", v, got, want)
		}
	}
	if got := PhysNoChange.String(); got != "NoChange" {
		t.Errorf("PhysNoChange: %q", got)
	}
}

func TestDataVLs(t *testing.T) {
	for code, want := range []int{0, 1, 2, 4, 8, 15, 0, 0} {
		if got := DataVLs(uint8(code)); got != want {
			t.Errorf("code %d: %d VLs, want %d", code, got, want)
		}
	}
}

func TestNodeDescriptionText(t *testing.T) {
	full := strings.Repeat("ж", 32) // 64 bytes, no NUL
	for _, text := range []string{"", "switch 1", "узел", full} {
		var d NodeDescription
		if err := d.SetString("something longer that must not shine through"); err != nil {
			t.Fatal(err)
		}
		if err := d.SetString(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if got := d.String(); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	d := NodeDescription{NodeString: [mad.DataSize]byte{'o', 'l', 'd'}}
	for _, text := range []string{full + "x", "\xff", "a\x00b"} {
		if err := d.SetString(text); err == nil || d.String() != "old" {
			t.Errorf("%q: error %v, text now %q", text, err, d.String())
		}
	}
	d = NodeDescription{NodeString: [mad.DataSize]byte{'a', 0xFF, 'b', 0, 'c'}}
	if got := d.String(); got != "a\uFFFDb" {
		t.Errorf("not UTF-8: %q", got)
	}
}

func TestDiagCode(t *testing.T) {
	tests := []struct {
		code      DiagCode
		universal uint8
		ready     bool
		index     int // of VendorDiag, -1 for none
		vendor    int // -1 for none
	}{
		{0x0000, DiagReady, true, -1, -1},
		{0x0001, DiagSelfTest, false, -1, -1},
		{0x8002, DiagInitializing, false, -1, -1},
		{0x0010, DiagReady, false, -1, -1},
		{0x0453, DiagSoftError, false, -1, 0x45},
		{0x0454, DiagHardFailure, false, -1, 0x45},
		{0x8124, DiagHardFailure, false, 0x12, -1},
		{0xFFF4, DiagHardFailure, false, 0x7FF, -1},
		{0x7FF3, DiagSoftError, false, -1, 0x7FF},
		{0xFFF5, 5, false, -1, -1},
	}
	for _, test := range tests {
		index, vendor := -1, -1
		if v, ok := test.code.VendorDiagIndex(); ok {
			index = int(v)
		}
		if v, ok := test.code.VendorCode(); ok {
			vendor = int(v)
		}
		if test.code.Universal() != test.universal || test.code.IsReady() != test.ready || index != test.index || vendor != test.vendor {
			t.Errorf("%#04x: universal %d, ready %v, index %d, vendor code %d",
				uint16(test.code), test.code.Universal(), test.code.IsReady(), index, vendor)
		}
	}
}

func TestRandomEntryCovers(t *testing.T) {
	e := RandomEntry{LID: 0x10, Valid: true, LMC: 2, Port: 1}
	for lid, want := range map[ib.LID]bool{0x0F: false, 0x10: true, 0x13: true, 0x14: false} {
		if got := e.Covers(lid); got != want {
			t.Errorf("LID %d: %v", lid, got)
		}
	}
	e.Valid = false
	if e.Covers(0x10) {
		t.Error("an empty entry covers a LID")
	}
}

func TestTypedDetails(t *testing.T) {
	want := map[TrapNumber]string{
		64: "*smp.GIDDetails", 65: "*smp.GIDDetails", 66: "*smp.GIDDetails", 67: "*smp.GIDDetails",
		68: "*smp.PathDetails", 69: "*smp.PathDetails", 128: "*smp.LinkStateDetails",
		129: "*smp.PortDetails", 130: "*smp.PortDetails", 131: "*smp.PortDetails",
		144: "*smp.LocalChangeDetails", 145: "*smp.SystemImageGUIDDetails", 256: "*smp.BadMKeyDetails",
		257: "*smp.BadKeyDetails", 258: "*smp.BadKeyDetails", 259: "*smp.SwitchBadPKeyDetails",
	}
	for number := range TrapNumber(300) {
		n := Notice{IsGeneric: true, TrapNumber: number}
		d, ok := n.TypedDetails()
		if got := fmt.Sprintf("%T", d); ok != (want[number] != "") || ok && got != want[number] {
			t.Errorf("trap %d: %s, %v", number, got, ok)
		}
		n.IsGeneric = false
		if _, ok := n.TypedDetails(); ok {
			t.Errorf("trap %d: details of a vendor's notice", number)
		}
	}
}

func TestDetailsLength(t *testing.T) {
	for _, number := range []TrapNumber{64, 68, 128, 129, 144, 145, 256, 257, 259} {
		n := Notice{IsGeneric: true, TrapNumber: number}
		d, _ := n.TypedDetails()
		for _, size := range []int{0, NoticeDetailsSize - 1, NoticeDetailsSize + 1} {
			if err := d.UnmarshalBinary(make([]byte, size)); err == nil {
				t.Errorf("%T: no error for %d bytes", d, size)
			}
		}
	}
}

func TestNewTrap(t *testing.T) {
	n, err := NewTrap(TrapLinkStateChanged, ProducerSwitch, 7, &LinkStateDetails{LID: 7})
	want := Notice{
		IsGeneric: true, Type: NoticeUrgent, Producer: ProducerSwitch,
		TrapNumber: 128, IssuerLID: 7, Details: [NoticeDetailsSize]byte{0, 7},
	}
	if err != nil || n != want {
		t.Errorf("%+v, %v", n, err)
	}
	for number, want := range map[TrapNumber]NoticeType{
		64: NoticeSubnetManagement, 69: NoticeSubnetManagement, 128: NoticeUrgent, 131: NoticeUrgent,
		144: NoticeInformational, 145: NoticeInformational, 256: NoticeSecurity, 259: NoticeSecurity,
	} {
		if got := number.Type(); got != want {
			t.Errorf("trap %d: type %d, want %d", number, got, want)
		}
	}
}

// What is said of an attribute holds: its name is that of its type, what is behind its
// size has no meaning, and Decode gives back what was encoded.
func TestDescriptors(t *testing.T) {
	all := Attributes()
	if len(all) != 16 {
		t.Errorf("%d attributes, want 16", len(all))
	}
	for i, d := range all {
		a := d.New()
		if a.ID() != d.ID || AttributeName(d.ID) != d.Name || reflect.TypeOf(a).Elem().Name() != d.Name || i > 0 && all[i-1].ID >= d.ID {
			t.Errorf("%s (%#x): %T with number %#x", d.Name, d.ID, a, a.ID())
		}
		if got, ok := Describe(d.ID); !ok || got.Name != d.Name {
			t.Errorf("Describe(%#x) is %q, %v", d.ID, got.Name, ok)
		}
		data := bytes.Repeat([]byte{0x11}, mad.DataSize)
		clear(data[d.Size:])
		got, err := Decode(d.ID, data)
		if err != nil {
			t.Fatal(err)
		}
		if reflect.TypeOf(got) != reflect.TypeOf(a) {
			t.Errorf("%s is decoded as %T", d.Name, got)
		}
		if back, err := got.AppendBinary(nil); err != nil || !bytes.Equal(back, data) {
			t.Errorf("%s: %x comes back as %x, %v", d.Name, data, back, err)
		}
		// Bytes behind Size change no field.
		data[len(data)-1] = 0xFF
		if other, err := Decode(d.ID, data); d.Size < mad.DataSize && (err != nil || fmt.Sprint(other) != fmt.Sprint(got)) {
			t.Errorf("%s: byte 63, behind its %d, changes %v to %v", d.Name, d.Size, got, other)
		}
	}
	if _, err := Decode(0xFF00, make([]byte, mad.DataSize)); !errors.Is(err, ErrUnknown) {
		t.Errorf("Decode(0xff00): %v", err)
	}
	if _, err := Decode(AttrPortInfo, make([]byte, 3)); err == nil {
		t.Error("PortInfo of 3 bytes was decoded")
	}
}

// What is printed has the fields and neither reserved bits nor keys.
func TestString(t *testing.T) {
	var info LEDInfo
	if err := info.UnmarshalBinary(bytes.Repeat([]byte{0xFF}, mad.DataSize)); err != nil {
		t.Fatal(err)
	}
	keys := PKeyTable{Keys: [PKeysPerBlock]ib.PKey{0xFFFF, 0x8001}}
	for want, a := range map[string]any{
		"LEDInfo{LEDMask:true}":                     info,
		"VendorDiag{NextIndex:5 DiagData:0x010203}": &VendorDiag{NextIndex: 5, DiagData: [62]byte{1, 2, 3}},
		"SMInfo{GUID:0x0000000000000007 SMKey:not shown ActCount:0 Priority:3 SMState:master}": SMInfo{GUID: 7, SMKey: 9, Priority: 3, SMState: SMMaster},
	} {
		if got := fmt.Sprint(a); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := fmt.Sprint(&keys); !strings.HasPrefix(got, "PKeyTable{Keys:[0xffff 0x8001 0x0000 ") {
		t.Errorf("%s", got)
	}
	if got := fmt.Sprint(PortInfo{MKey: 0x1234_5678, LID: 17}); strings.Contains(got, "12345678") || !strings.Contains(got, " LID:17 ") {
		t.Errorf("%s", got)
	}
}

// The modifier is made of one or two numbers as each attribute wants it.
func TestModifierFor(t *testing.T) {
	for _, x := range []struct {
		id     mad.AttributeID
		own    ib.PortNum
		n      uint16
		second uint8
		want   uint32
	}{
		{AttrPortInfo, 0, 3, 0, 3}, {AttrPortInfo, 7, 0, 0, 7}, {AttrPKeyTable, 5, 2, 0, 0x0005_0002},
		{AttrVLArbitrationTable, 5, 3, 0, 0x0003_0005}, {AttrSLToVLMappingTable, 9, 2, 5, 0x0205},
		{AttrMulticastForwardingTable, 0, 3, 2, 0x2000_0003}, {AttrLinearForwardingTable, 9, 4, 0, 4}, {AttrGUIDInfo, 1, 2, 0, 2},
	} {
		d, ok := Describe(x.id)
		if got := d.Modifier.For(x.own, x.n, x.second); !ok || got != x.want {
			t.Errorf("%s of port %d, %d, %d: %#x, want %#x", d.Name, x.own, x.n, x.second, got, x.want)
		}
	}
}

// TestFieldsOfEveryAttribute: each attribute has its fields by name, and no key is among them.
func TestFieldsOfEveryAttribute(t *testing.T) {
	info := Fields(&PortInfo{MKey: 0xC0FFEE, LID: 7, PortState: PortArmed})
	want := map[string]string{"MKey": "not shown", "LID": "7", "PortState": "Armed", "LMC": "0"}
	for _, f := range info {
		if w, some := want[f.Name]; some && f.Value != w {
			t.Errorf("%s is %q, want %q", f.Name, f.Value, w)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 || info[0].Name != "MKey" {
		t.Errorf("%v: lacks %v, or has another order", info, want)
	}
	for _, f := range Fields(&SMInfo{SMKey: 0xC0FFEE}) {
		if f.Name == "SMKey" && f.Value != "not shown" {
			t.Errorf("SMKey is %q", f.Value)
		}
	}
}
