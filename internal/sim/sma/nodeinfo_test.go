package sma

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// allConfigs is one device of each kind.
func allConfigs() []Config {
	return []Config{caConfig(3), routerConfig(3), switchConfig(3), enhancedConfig(3), randomConfig(3)}
}

func TestAttributes(t *testing.T) {
	t.Run("AT-01", func(t *testing.T) {
		ca := caConfig(1)
		ca.Ports[0].CapabilityMask |= smp.CapNoticeSupported | smp.CapLEDInfo
		both := map[mad.AttributeID]uint32{
			0x0002: 0, 0x0010: 0, 0x0011: 0, 0x0014: 0, 0x0015: 0, 0x0016: 0, 0x0017: 0x0102,
			0x0018: 0x10001, 0x0030: 0, 0x0031: 0,
		}
		d := start(t, ca)
		for id, modifier := range both {
			d.wantStatus(mad.StatusOK, 1, mad.MethodGet, id, modifier)
		}
		linear, random := switchConfig(2), randomConfig(2)
		linear.Switch.Port0.CapabilityMask = ca.Ports[0].CapabilityMask
		d = start(t, linear)
		for id, modifier := range both {
			d.wantStatus(mad.StatusOK, 1, mad.MethodGet, id, modifier)
		}
		for _, id := range []mad.AttributeID{0x0012, 0x0019, 0x001B} {
			d.wantStatus(mad.StatusOK, 1, mad.MethodGet, id, 0)
		}
		start(t, random).wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x001A, 0)
		d.SetIsSM(0, 0, true)
		d.request(1, mad.MethodGet, 0x0020, 0, [mad.DataSize]byte{})
		if d.last.Verdict != ForManager {
			t.Errorf("SMInfo: verdict %d", d.last.Verdict)
		}
	})
	t.Run("AT-02", func(t *testing.T) {
		d := start(t, caConfig(1))
		lid := d.send(1, mad.SMP{Class: mad.ClassSubnLID, Method: mad.MethodGet, AttributeID: smp.AttrNodeInfo})
		direct := d.send(1, mad.SMP{Class: mad.ClassSubnDirected, Method: mad.MethodGet, AttributeID: smp.AttrNodeInfo})
		if lid.Data != direct.Data || lid.Method != direct.Method || lid.Direction || !direct.Direction {
			t.Errorf("answers differ:\n%+v\n%+v", lid, direct)
		}
		for _, class := range []mad.Class{mad.ClassSubnAdm, mad.ClassPerfMgt} {
			p := d.send(1, mad.SMP{Class: class, Method: mad.MethodGet, AttributeID: smp.AttrNodeInfo})
			if d.last.Verdict != Unwanted || p.Method != mad.MethodGet {
				t.Errorf("class %#x: verdict %d", class, d.last.Verdict)
			}
		}
	})
	t.Run("AT-03", func(t *testing.T) {
		d := start(t, caConfig(1))
		p := d.request(1, mad.MethodGet, smp.AttrNodeDescription, 0, [mad.DataSize]byte{})
		b, err := p.AppendBinary(nil)
		if err != nil || b[3] != 0x81 || !bytes.HasPrefix(b[64:], []byte("узел 1\x00")) {
			t.Errorf("%x, %v", b, err)
		}
		if p.TransactionID != 0xABCD || p.AttributeID != smp.AttrNodeDescription {
			t.Errorf("answer %+v", p)
		}
	})
	t.Run("AT-04", func(t *testing.T) {
		d := start(t, caConfig(1))
		want := smp.PKeyTable{Keys: [32]ib.PKey{0xFFFF, 0x8001}}
		resulting, read := want, smp.PKeyTable{}
		d.mustSet(1, 0, &resulting)
		if d.mustGet(1, 0, &read); resulting != want || read != want {
			t.Errorf("answered %v, read %v", resulting, read)
		}
		// What results is not always what was asked for: entry 0 is the port's own.
		var guids smp.GUIDInfo
		for i := range guids.GUIDs {
			guids.GUIDs[i] = uint64(0x100 + i)
		}
		d.mustSet(1, 0, &guids)
		if own := uint64(d.NodeInfo(1).PortGUID); guids.GUIDs[0] != own || guids.GUIDs[1] != 0x101 {
			t.Errorf("answered %#x, want what resulted: %#x first", guids.GUIDs, own)
		}
	})
	t.Run("AT-05", testGetData)
	t.Run("AT-06", func(t *testing.T) {
		for _, c := range allConfigs() {
			d := start(t, c)
			for _, id := range []mad.AttributeID{0xFF00, 0xFF90, 0xFFFF, 0x0013, 0x0000} {
				d.wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodGet, id, 0)
				d.wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodSet, id, 0)
			}
			for _, id := range []mad.AttributeID{0xFF00, 0xFFFF} {
				c.VendorAttributes = map[mad.AttributeID][mad.DataSize]byte{id: {63: 7}}
				d := start(t, c)
				if got := d.raw(1, id, 0); got[63] != 7 {
					t.Errorf("%v: attribute %#x reads %x", c.NodeType, uint16(id), got)
				}
				d.wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodSet, id, 0)
			}
		}
	})
	t.Run("AT-07", func(t *testing.T) {
		c := caConfig(1)
		c.VendorAttributes = map[mad.AttributeID][mad.DataSize]byte{0xFF90: {1, 2, 3}}
		d := start(t, c)
		if got := d.raw(1, 0xFF90, 0xFFFF); got[2] != 3 {
			t.Errorf("%x", got)
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0xFF90, 0x10000)
		d.wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodSet, 0xFF90, 0)
	})
}

func TestHeaders(t *testing.T) {
	a := start(t, caConfig(1)).Agent
	for _, test := range []struct {
		name          string
		base, version uint8
		method        mad.Method
		through       ib.PortNum
		verdict       Verdict
		status        mad.Status
	}{
		{"base version 2", 2, 1, mad.MethodGet, 1, Answered, mad.StatusBadVersion},
		{"class version 2", 1, 2, mad.MethodGet, 1, Answered, mad.StatusBadVersion},
		{"Send", 1, 1, mad.MethodSend, 1, Answered, mad.StatusUnsupportedMethod},
		{"GetTable", 1, 1, mad.MethodGetTable, 1, Answered, mad.StatusUnsupportedMethod},
		{"answer nobody waits for", 1, 1, mad.MethodGetResp, 1, Unwanted, 0},
		{"trap nobody waits for", 1, 1, mad.MethodTrap, 1, Unwanted, 0},
		{"port 0 of a CA", 1, 1, mad.MethodGet, 0, Unwanted, 0},
		{"port that does not exist", 1, 1, mad.MethodGet, 2, Unwanted, 0},
	} {
		p := mad.SMP{BaseVersion: test.base, Class: mad.ClassSubnLID, ClassVersion: test.version, Method: test.method, AttributeID: smp.AttrNodeInfo}
		before := p
		r := a.Handle(0, Ingress{Port: test.through}, &p)
		if r.Verdict != test.verdict || p.Status != test.status {
			t.Errorf("%s: verdict %d, status %v", test.name, r.Verdict, p.Status)
		}
		if r.Verdict != Answered && p != before {
			t.Errorf("%s: packet changed", test.name)
		}
	}
}

func TestNodeDescription(t *testing.T) {
	for _, rule := range []string{"NI-01", "NI-04"} {
		t.Run(rule, func(t *testing.T) {
			for _, c := range allConfigs() {
				d := start(t, c)
				for n := 1; n <= len(c.Ports); n++ {
					d.wantStatus(mad.StatusOK, ib.PortNum(n), mad.MethodGet, 0x0010, 0)
				}
				d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0010, 1)
			}
		})
	}
	t.Run("NI-02", func(t *testing.T) {
		if got := start(t, caConfig(1)).raw(1, smp.AttrNodeDescription, 0); !bytes.Equal(bytes.TrimRight(got[:], "\x00"), []byte("узел 1")) {
			t.Errorf("%q", got)
		}
		c := caConfig(1)
		c.Description = strings.Repeat("x", 62) + "é"
		if got := start(t, c).raw(1, smp.AttrNodeDescription, 0); string(got[:]) != c.Description {
			t.Errorf("%q, want all 64 bytes of %q", got, c.Description)
		}
	})
	t.Run("NI-03/without the mask", func(t *testing.T) {
		c := caConfig(1)
		c.Ports[0].CapabilityMask2 |= smp.Cap2SetNodeDescription // which says nothing without the bit for the mask
		text := smp.NodeDescription{NodeString: [64]byte{'x'}}
		if s := start(t, c).set(1, 0, &text); s != mad.StatusUnsupportedAttrib {
			t.Errorf("status %v", s)
		}
	})
	t.Run("NI-03", func(t *testing.T) {
		d := start(t, caConfig(1))
		var text smp.NodeDescription
		if s := d.set(1, 0, &text); s != mad.StatusUnsupportedAttrib {
			t.Errorf("status %v", s)
		}
		if d.mustGet(1, 0, &text); text.String() != "узел 1" {
			t.Errorf("text now %q", text.String())
		}
	})
	t.Run("NI-03/with the capability", func(t *testing.T) {
		c := caConfig(1)
		c.Ports[0].CapabilityMask |= smp.CapHasCapabilityMask2
		c.Ports[0].CapabilityMask2 |= smp.Cap2SetNodeDescription
		d := start(t, c)
		text := smp.NodeDescription{NodeString: [64]byte{'x'}}
		d.mustSet(1, 0, &text)
		if d.mustGet(1, 0, &text); text.String() != "x" {
			t.Errorf("text %q", text.String())
		}
	})
	t.Run("NI-05", func(t *testing.T) {
		for _, c := range allConfigs() {
			d := start(t, c)
			for n := 2; n <= len(c.Ports); n++ {
				if d.raw(1, smp.AttrNodeDescription, 0) != d.raw(ib.PortNum(n), smp.AttrNodeDescription, 0) {
					t.Errorf("%v: port %d has another text", c.NodeType, n)
				}
			}
		}
	})
}

func TestNodeInfo(t *testing.T) {
	read := func(t *testing.T, c Config, through ib.PortNum) [mad.DataSize]byte {
		return start(t, c).raw(through, smp.AttrNodeInfo, 0)
	}
	for _, rule := range []string{"NI-06", "NI-08"} {
		t.Run(rule, func(t *testing.T) {
			for _, c := range allConfigs() {
				d := start(t, c)
				for n := 1; n <= len(c.Ports); n++ {
					d.wantStatus(mad.StatusOK, ib.PortNum(n), mad.MethodGet, 0x0011, 0)
				}
				d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0011, 1)
			}
		})
	}
	t.Run("NI-07", func(t *testing.T) {
		d := start(t, caConfig(1))
		before := d.raw(1, smp.AttrNodeInfo, 0)
		d.wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodSet, 0x0011, 0)
		if d.raw(1, smp.AttrNodeInfo, 0) != before {
			t.Error("changed")
		}
	})
	revised := caConfig(2)
	revised.Revision = 0x12345678
	raw := []struct {
		rule     string
		config   Config
		from, to int
		want     []byte
	}{
		{"NI-09", caConfig(2), 0, 1, []byte{1}},
		{"NI-10", caConfig(2), 1, 2, []byte{1}},
		{"NI-11/CA", caConfig(2), 2, 3, []byte{1}},
		{"NI-11/switch", switchConfig(2), 2, 3, []byte{2}},
		{"NI-11/router", routerConfig(2), 2, 3, []byte{3}},
		{"NI-13/CA", caConfig(2), 3, 4, []byte{2}},
		{"NI-13/switch", switchConfig(36), 3, 4, []byte{36}},
		{"NI-14", caConfig(2), 4, 12, []byte{0, 2, 0xC9, 3, 0, 0, 0, 0xFF}},
		{"NI-15", caConfig(2), 12, 20, []byte{0, 2, 0xC9, 3, 0, 0, 0, 0x10}},
		{"NI-20", caConfig(2), 28, 30, []byte{0, 64}},
		{"NI-23", caConfig(2), 30, 32, []byte{0x10, 0x17}},
		{"NI-24", caConfig(2), 32, 36, []byte{0, 0, 0, 0xA0}},
		{"NI-24/32 bits", revised, 32, 36, []byte{0x12, 0x34, 0x56, 0x78}},
		{"NI-25", caConfig(2), 36, 37, []byte{2}},
		{"NI-25/switch", switchConfig(2), 36, 37, []byte{2}},
		{"NI-26", caConfig(2), 37, 40, []byte{0, 2, 0xC9}},
		{"NI-16", caConfig(2), 20, 28, []byte{0, 2, 0xC9, 3, 0, 0, 0, 0x12}},
		{"NI-19", switchConfig(2), 20, 28, []byte{0, 2, 0xC9, 3, 0, 0, 0, 0x10}},
	}
	for _, test := range raw {
		t.Run(test.rule, func(t *testing.T) {
			if got := read(t, test.config, 2); !bytes.Equal(got[test.from:test.to], test.want) {
				t.Errorf("bytes %d to %d: %x, want %x", test.from, test.to-1, got[test.from:test.to], test.want)
			}
		})
	}
	t.Run("NI-14/none", func(t *testing.T) {
		c := caConfig(1)
		c.SystemImageGUID = 0
		if got := read(t, c, 1); !bytes.Equal(got[4:12], make([]byte, 8)) {
			t.Errorf("%x", got[4:12])
		}
	})
	t.Run("NI-17", func(t *testing.T) {
		c := caConfig(2)
		c.Ports[0].GUID = ib.PortGUID(c.NodeGUID)
		if got := read(t, c, 1); !bytes.Equal(got[12:20], got[20:28]) {
			t.Errorf("NodeGUID %x, PortGUID %x", got[12:20], got[20:28])
		}
	})
	t.Run("NI-18", func(t *testing.T) {
		a, b := read(t, caConfig(2), 1), read(t, caConfig(2), 2)
		if bytes.Equal(a[20:28], b[20:28]) {
			t.Error("one GUID on two ports")
		}
	})
	t.Run("NI-19/every port", func(t *testing.T) {
		for n := range ib.PortNum(4) {
			if got := start(t, switchConfig(3)).NodeInfo(n); got.PortGUID != ib.PortGUID(testNodeGUID) {
				t.Errorf("through port %d: %v", n, got.PortGUID)
			}
		}
	})
	t.Run("NI-26/given", func(t *testing.T) {
		c := caConfig(1)
		c.VendorID = 0xABCDEF
		if got := start(t, c).NodeInfo(1).VendorID; got != 0xABCDEF {
			t.Errorf("%#x", got)
		}
	})
	t.Run("NI-27", func(t *testing.T) {
		for _, c := range allConfigs() {
			d := start(t, c)
			first := d.NodeInfo(1)
			for n := 2; n <= len(c.Ports); n++ {
				other := d.NodeInfo(ib.PortNum(n))
				other.PortGUID, other.LocalPortNum = first.PortGUID, first.LocalPortNum
				if other != first {
					t.Errorf("%v: port %d answers %+v", c.NodeType, n, other)
				}
			}
		}
	})
}

func TestVendorDiag(t *testing.T) {
	chain := caConfig(1)
	chain.Ports[0].VendorDiag = map[uint16]smp.VendorDiag{
		1:      {NextIndex: 0xFFFF, DiagData: [62]byte{'a'}},
		0xFFFF: {NextIndex: 5, DiagData: [62]byte{'b', 61: 'z'}},
		5:      {DiagData: [62]byte{'c'}},
	}
	t.Run("VD-01", func(t *testing.T) {
		d := start(t, chain)
		for _, modifier := range []uint32{0, 1, 0xFFFF} {
			d.wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0030, modifier)
		}
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0030, 0x10000)
		for modifier, want := range map[uint32]byte{0: 0, 1: 'a', 5: 'c', 0xFFFF: 'b', 0x0101: 0, 0x0105: 0} {
			if got := d.raw(1, 0x0030, modifier)[2]; got != want {
				t.Errorf("block %#x begins with %q, want %q", modifier, got, want)
			}
		}
	})
	t.Run("VD-02", func(t *testing.T) {
		start(t, chain).wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodSet, 0x0030, 0)
	})
	t.Run("VD-03", func(t *testing.T) {
		for _, at := range endPlaces() {
			at.open(t).wantStatus(mad.StatusOK, at.through, mad.MethodGet, 0x0030, 0)
		}
	})
	for rule, code := range map[string]smp.DiagCode{
		"VD-04": 0, "VD-05": 0x8124, "VD-06": smp.DiagSelfTest, "VD-07": smp.DiagInitializing,
		"VD-08": smp.DiagSoftError, "VD-09": smp.DiagHardFailure,
	} {
		t.Run(rule, func(t *testing.T) {
			for _, at := range endPlaces() {
				d := at.open(t)
				if code != 0 {
					d.SetDiagCode(d.now, at.port, code)
				}
				if got := d.portInfo(at.through, at.port).DiagCode; got != code || got.Universal() != uint8(code&15) {
					t.Errorf("%s: %#x", at.name, uint16(got))
				}
			}
		})
	}
	t.Run("VD-13", func(t *testing.T) {
		if got := start(t, chain).raw(1, 0x0030, 0xFFFF); got[2] != 'b' || got[63] != 'z' {
			t.Errorf("%x", got)
		}
	})
	for _, rule := range []string{"VD-14", "VD-15"} {
		t.Run(rule, func(t *testing.T) {
			d := start(t, chain)
			var read []byte
			for index := uint16(1); index != 0; {
				var block smp.VendorDiag
				d.mustGet(1, uint32(index), &block)
				read = append(read, block.DiagData[0])
				index = block.NextIndex
			}
			if string(read) != "abc" {
				t.Errorf("%q", read)
			}
		})
	}
}

func TestLEDInfo(t *testing.T) {
	lamp := func(edit func(*Config)) Config {
		c := caConfig(2)
		for i := range c.Ports {
			c.Ports[i].CapabilityMask |= smp.CapLEDInfo
		}
		edit(&c)
		return c
	}
	plain := lamp(func(*Config) {})
	t.Run("LE-01", func(t *testing.T) {
		d := start(t, plain)
		d.wantStatus(mad.StatusOK, 1, mad.MethodGet, 0x0031, 0)
		d.wantStatus(mad.StatusInvalidField, 1, mad.MethodGet, 0x0031, 1)
	})
	for _, rule := range []string{"LE-02", "LE-04"} {
		t.Run(rule, func(t *testing.T) {
			d := start(t, plain)
			for _, on := range []bool{true, false} {
				l := smp.LEDInfo{LEDMask: on}
				d.mustSet(1, 0, &l)
				if got := d.raw(1, 0x0031, 0)[0] == 0x80; l.LEDMask != on || got != on {
					t.Errorf("set %v: answered %v, read %v", on, l.LEDMask, got)
				}
				if got := d.raw(2, 0x0031, 0)[0]; got != 0 {
					t.Errorf("set %v at port 1: port 2 reads %#x", on, got)
				}
			}
		})
	}
	t.Run("LE-02/another port", func(t *testing.T) {
		d := start(t, plain)
		d.mustSet(1, 0, &smp.LEDInfo{LEDMask: true})
		if one, two := d.raw(1, 0x0031, 0)[0], d.raw(2, 0x0031, 0)[0]; one != 0x80 || two != 0 {
			t.Errorf("the light of port 1 is %#x, that of port 2 %#x; want 0x80 and 0", one, two)
		}
	})
	t.Run("LE-03", func(t *testing.T) {
		c := lamp(func(c *Config) { c.Ports[0].CapabilityMask &^= smp.CapLEDInfo })
		d := start(t, c)
		d.wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodGet, 0x0031, 0)
		d.wantStatus(mad.StatusUnsupportedAttrib, 1, mad.MethodSet, 0x0031, 0)
		d.wantStatus(mad.StatusOK, 2, mad.MethodGet, 0x0031, 0)
	})
	t.Run("LE-05", func(t *testing.T) {
		d := start(t, lamp(func(c *Config) { c.LEDStuck = true }))
		l := smp.LEDInfo{LEDMask: true}
		if d.mustSet(1, 0, &l); l.LEDMask {
			t.Error("a stuck light is on")
		}
	})
	t.Run("LE-06", func(t *testing.T) {
		d := start(t, plain)
		p := d.request(1, mad.MethodSet, 0x0031, 0, [mad.DataSize]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF})
		if want := ([mad.DataSize]byte{0x80}); p.Status != 0 || p.Data != want || d.raw(1, 0x0031, 0) != want {
			t.Errorf("status %v, data %x", p.Status, p.Data)
		}
		p = d.request(1, mad.MethodSet, 0x0031, 0, [mad.DataSize]byte{0x7F, 0xFF, 0xFF, 0xFF, 0xFF})
		if want := ([mad.DataSize]byte{}); p.Status != 0 || p.Data != want || d.raw(1, 0x0031, 0) != want {
			t.Errorf("all bits but LedMask: status %v, data %x", p.Status, p.Data)
		}
	})
}
