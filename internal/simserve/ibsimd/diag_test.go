package ibsimd_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// TestConsoleGivesDiagnostics: Diag and VendorDiag set what a port tells of itself: the port that
// is named, that of a switch, or the first of a host.
func TestConsoleGivesDiagnostics(t *testing.T) {
	d := newDesk(t)
	c := attach(t, d.server.Name(), "one")
	get := func(attribute mad.AttributeID, modifier uint32, path ...byte) []byte {
		t.Helper()
		r := c.query(directed(1, mad.MethodGet, attribute, modifier, path...))
		if r == nil || r.status != 0 {
			t.Fatalf("attribute %v by %v: %v", attribute, path, r)
		}
		return r.mad[64:128]
	}
	code := func(port uint32, path ...byte) uint16 {
		return binary.BigEndian.Uint16(get(smp.AttrPortInfo, port, path...)[24:])
	}
	for _, x := range []struct {
		line string
		port uint32
		path []byte
	}{
		{`Diag "three"[1] 0x101`, 1, []byte{1, 3}}, {`Diag "three" 0x301`, 1, []byte{1, 3}}, {`Diag "two"[2] 0x201`, 2, []byte{1, 4}},
		{`Diag "two" 0x401`, 1, []byte{1, 2}}, {`Diag "sw" 0x501`, 0, []byte{1}}, {`Diag "one"[1] 65281`, 1, nil},
	} {
		before := code(x.port, x.path...)
		d.do(x.line)
		var want uint16
		if _, err := fmt.Sscan(x.line[strings.LastIndex(x.line, " ")+1:], &want); err != nil {
			t.Fatal(err)
		}
		if got := code(x.port, x.path...); got != want || before == want {
			t.Errorf("%s: DiagCode %#x, then %#x", x.line, before, got)
		}
	}
	for _, x := range []struct {
		line, data string
		block      uint32
		next       uint16
	}{
		{`VendorDiag "three"[1] 0 NextIndex=7 DiagData="some text"`, "some text", 0, 7}, {`vendordiag three[1] 0 DiagData="= text " NextIndex=7`, "= text ", 0, 7},
		{`VendorDiag "three" 7 DiagData=0x0102ff`, "\x01\x02\xff", 7, 0}, {`VendorDiag "three" 0`, "", 0, 0},
		{`VendorDiag "three" 65535 NextIndex=65535 DiagData=` + strings.Repeat("x", smp.VendorDiagDataSize), strings.Repeat("x", smp.VendorDiagDataSize), 65535, 65535},
	} {
		d.do(x.line)
		want := make([]byte, mad.DataSize)
		binary.BigEndian.PutUint16(want, x.next)
		copy(want[2:], x.data)
		if got := get(smp.AttrVendorDiag, x.block, 1, 3); !bytes.Equal(got, want) {
			t.Errorf("%s: %x\nwant %x", x.line, got, want)
		}
	}
	long := strings.Repeat("00", smp.VendorDiagDataSize+1)
	for line, want := range map[string]string{
		`Diag "nobody" 1`:                       `no node "nobody"`,
		`Diag "one" 65536`:                      `DiagCode "65536": want a number up to 65535`,
		`Diag "one"`:                            `DiagCode "": want a number up to 65535`,
		`Diag "one"[0] 1`:                       "port 0",
		`VendorDiag "nobody" 0`:                 `no node "nobody"`,
		`VendorDiag "one" 65536`:                `index "65536": want a number up to 65535`,
		`VendorDiag "one" 0 NextIndex=65536`:    `NextIndex "65536": want a number up to 65535`,
		`VendorDiag "one" 0 NextIndex=`:         `NextIndex "": want a number up to 65535`,
		`VendorDiag "one" 0 DiagData=0x0g`:      "DiagData 0x0g: " + hex.InvalidByteError('g').Error(),
		`VendorDiag "one" 0 DiagData=0x` + long: "DiagData: 63 bytes, want at most 62",
		`VendorDiag "one" 0 DiagData="no end`:   "no closing quotation mark",
		`VendorDiag "one" 0 7 text`:             `"7 text": want FIELD=VALUE`,
		`VendorDiag "one" 0 Colour=red`:         `field "Colour": want NextIndex or DiagData`,
	} {
		if err := d.console.Execute(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", line, err, want)
		}
	}
}
