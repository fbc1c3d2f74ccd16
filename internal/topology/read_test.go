package topology

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
)

// mustRead reads text that has no fault, and returns the warnings as well.
func mustRead(t testing.TB, text string) (*Netlist, []Warning) {
	t.Helper()
	n, warnings, err := Read([]byte(text), "net", nil)
	if err != nil {
		t.Fatalf("Read:\n%v\nof:\n%s", err, text)
	}
	if err := n.Validate(); err != nil {
		t.Fatalf("Read returned what Validate refuses:\n%v", err)
	}
	return n, warnings
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Two nodes and a cable, for cases about one line of it.
const pair = `Hca 1 "H"
[1] "S"[2]

Switch 4 "S"
[2] "H"[1]
`

// A GUID that nobody gave to a port without a cable stands in nobody's way: else a
// device could choose one that keeps a discovered topology from being read.
func TestAssumedPortGUIDs(t *testing.T) {
	for _, port := range []string{"", "(100002)"} { // cabled, default or given
		n, _ := mustRead(t, "caguid=0x100000\nCa 2 \"H\"\n[1] \"S\"[1]\n\nSwitch 2 \"S\"\n[1] \"H\"[1]\n[2] \"G\"[1]\n\ncaguid=0x100001\nCa 1 \"G\"\n[1]"+port+" \"S\"[2]\n")
		if a, b := n.Nodes[0].Ports[2].GUID, n.Nodes[2].Ports[1].GUID; a != 0x100002 || b != 0x100002 {
			t.Errorf("port GUIDs %v and %v", a, b)
		}
		if err := n.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestReadDefaults(t *testing.T) {
	n, warnings := mustRead(t, pair+"\nRt 2 \"R\"\n\nHca 2 \"H2\"\n\nHca 1 \"H3\"\n\nSwitch 36 \"S2\"\n\nRt 1 \"R2\"\n")
	if got := fmt.Sprint(warnings); got != "[net:7:1: node GUID 0, which some subnet managers do not manage: want a line before it like rtguid=0x300000]" {
		t.Error(got)
	}
	want := `0x0000000000000000 router "R" image 0x0 vendor 0x0 device 0x0 ports 2 [1](0x0000000000000001) lid 0 lmc 0 [2](0x0000000000000002) lid 0 lmc 0
0x0000000000000003 router "R2" image 0x3 vendor 0x0 device 0x0 ports 1 [1](0x0000000000000004) lid 0 lmc 0
0x0000000000100000 CA "H" image 0x100000 vendor 0x0 device 0x0 ports 1 [1](0x0000000000100001) lid 0 lmc 0
0x0000000000100002 CA "H2" image 0x100002 vendor 0x0 device 0x0 ports 2 [1](0x0000000000100003) lid 0 lmc 0 [2](0x0000000000100004) lid 0 lmc 0
0x0000000000100005 CA "H3" image 0x100005 vendor 0x0 device 0x0 ports 1 [1](0x0000000000100006) lid 0 lmc 0
0x0000000000200000 switch "S" image 0x200000 vendor 0x0 device 0x0 ports 4 [0](0x0000000000200000) lid 0 lmc 0
0x0000000000200001 switch "S2" image 0x200001 vendor 0x0 device 0x0 ports 36 [0](0x0000000000200001) lid 0 lmc 0
0x0000000000100000[1] - 0x0000000000200000[2] 4xSDR
`
	if diff := cmp.Diff(want, n.Canonical()); diff != "" {
		t.Error(diff)
	}
	for _, node := range n.Nodes {
		for p, port := range node.Ports {
			if port.Enabled != DefaultRates {
				t.Errorf("%s port %d enables %+v", node.ID, p, port.Enabled)
			}
			if node.Type == ib.NodeSwitch && p > 0 && port.GUID != 0 {
				t.Errorf("switch %s: port %d has GUID %v", node.ID, p, port.GUID)
			}
		}
	}
}

// nodeText shows what a header and the settings before it can say.
func nodeText(n *Node) string {
	return fmt.Sprintf("%v %q %q %v image %x vendor %x device %x ports %d enhanced %t port0 %v lid %d lmc %d",
		n.Type, n.ID, n.Description, n.GUID, n.SystemImageGUID, n.VendorID, n.DeviceID, n.NumPorts(), n.EnhancedPort0,
		n.Ports[0].GUID, n.Ports[0].LID, n.Ports[0].LMC)
}

func TestReadHeader(t *testing.T) {
	const rest = ` 0x0000000000200000 image 200000 vendor 0 device 0 ports 8`
	const plain = rest + ` enhanced false port0 0x0000000000200000 lid 0 lmc 0`
	tests := []struct{ line, want string }{
		{`Switch 8 "S"`, `switch "S" "S"` + plain},
		{"Switch\t8 \"S\"\r", `switch "S" "S"` + plain},
		{`Switch  8  "S"   # a switch  `, `switch "S" "a switch"` + plain},
		{`Switch8"S"#"q"`, `switch "S" "q"` + plain},
		{`Switch 010 "S" # ""`, `switch "S" "S"` + plain},
		{`Switch 0x8 "S" # "lid 3 # x" base port 0`, `switch "S" "lid 3 # x"` + plain},
		{`Switch 8 "S" # "d" base port 0 lid 6 lmc 2`, `switch "S" "d"` + rest + ` enhanced false port0 0x0000000000200000 lid 6 lmc 2`},
		{`Switch 8 "S" # "d" enhanced port 0 lid 0x10 lmc 0`, `switch "S" "d"` + rest + ` enhanced true port0 0x0000000000200000 lid 16 lmc 0`},
		{`Switch 8 "S" # plain desc enhanced port 0 lid 7`, `switch "S" "plain desc"` + rest + ` enhanced true port0 0x0000000000200000 lid 7 lmc 0`},
		{`Switch 8 "S" # plain lid 7 lmc 1`, `switch "S" "plain"` + rest + ` enhanced false port0 0x0000000000200000 lid 7 lmc 1`},
		{`Switch 8 "S" enhanced port 0 lid 9`, `switch "S" "S"` + rest + ` enhanced true port0 0x0000000000200000 lid 9 lmc 0`},
		{`Switch 8 "S" # "é\n'"`, `switch "S" "é\\n'"` + plain},
	}
	for _, test := range tests {
		n, warnings := mustRead(t, test.line+"\n")
		if got := nodeText(n.Nodes[0]); got != test.want || len(n.Nodes) != 1 {
			t.Errorf("%s\ngot  %s\nwant %s", test.line, got, test.want)
		}
		if len(warnings) != 0 {
			t.Errorf("%s: warnings %v", test.line, warnings)
		}
	}
}

func masks(r Rates) string { return fmt.Sprintf("w=%d s=%d e=%d", r.Width, r.Speed, r.ExtSpeed) }

func TestReadSettings(t *testing.T) {
	n, warnings := mustRead(t, `vendid=0x2c9
devid=4099
sysimgguid=0x77	# Chassis 1 (name) slot 2
caguid=0x500
Ca 2 "a"

Ca 1 "b"

switchguid = 0x600(602)	# Spine 1
Switch 2 "c"

Switch 2 "d"

hcaguids+0x20
devid=0
Hca 1 "e"

caguids+5
Hca 1 "f"

rtguid=0777
vendid=1
Rt 1 "g"

width=3
speed=7
extspeed=1
pdebug=1
Rt 1 "h"
`)
	if len(warnings) != 0 {
		t.Errorf("warnings %v", warnings)
	}
	var got []string
	for _, node := range n.Nodes {
		got = append(got, fmt.Sprintf("%s %x image %x vendor %x device %x %x %s", node.ID, uint64(node.GUID), node.SystemImageGUID,
			node.VendorID, node.DeviceID, uint64(node.Ports[0].GUID+node.Ports[1].GUID), masks(node.Ports[1].Enabled)))
	}
	want := []string{
		"a 500 image 77 vendor 2c9 device 1003 501 w=2 s=1 e=0",
		"b 503 image 503 vendor 0 device 1003 504 w=2 s=1 e=0",
		"c 600 image 600 vendor 0 device 1003 602 w=2 s=1 e=0",
		"d 601 image 601 vendor 0 device 1003 601 w=2 s=1 e=0",
		"e 520 image 520 vendor 0 device 0 521 w=2 s=1 e=0",
		"f 505 image 505 vendor 0 device 0 506 w=2 s=1 e=0",
		"g 1ff image 1ff vendor 1 device 0 200 w=2 s=1 e=0",
		"h 201 image 201 vendor 0 device 0 202 w=3 s=7 e=1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadPortLine(t *testing.T) {
	const h2 = "\n\nSwitch 4 \"S\"\n[3] \"H\"[2] w=31 s=7 e=15\n"
	tests := []struct{ line, want string }{
		{`[2] "S"[3]`, `100002 lid 0 lmc 0 w=2 s=1 e=0 4xSDR`},
		{`[2](77) "S"[3]`, `77 lid 0 lmc 0 w=2 s=1 e=0 4xSDR`},
		{"[2](2c9030002847e) \t\"S\"[3]\t\t# lid 4 lmc 1 \"x lid 9\" lid 6 4xSDR", `2c9030002847e lid 4 lmc 1 w=3 s=1 e=0 4xSDR`},
		{`[2][ext 12](0x77)	"S"[3][ext 4] (88) # "a" lid 1 1xDDR slot 5`, `77 lid 0 lmc 0 w=1 s=3 e=0 1xDDR`},
		{`[2] "S"[3] w=3, s=5`, `100002 lid 0 lmc 0 w=3 s=5 e=0 4xQDR`},
		{`[2] "S"[3] s=0 e=0x3 w=010`, `100002 lid 0 lmc 0 w=8 s=4 e=3 12xEDR`},
		{`[2] "S"[3] e=8`, `100002 lid 0 lmc 0 w=2 s=1 e=8 4xNDR`},
		{`[2] "S"[3] w=16 lid 3 8xQDR`, `100002 lid 3 lmc 0 w=4 s=7 e=0 8xQDR`},
		{`[2] "S"[3] e=1 # lid 3 lmc 2`, `100002 lid 3 lmc 2 w=2 s=1 e=1 4xFDR`},
		{`[2] "S"[3] # "" lid 0 2xFDR10`, `100002 lid 0 lmc 0 w=16 s=7 e=0 2xQDR`},
		{`[2] "S"[3] # "" lid 0 4xFDR`, `100002 lid 0 lmc 0 w=3 s=7 e=1 4xFDR`},
		{`[2] "S"[3] # "" lid 0 4xEDR`, `100002 lid 0 lmc 0 w=3 s=7 e=3 4xEDR`},
		{`[2] "S"[3] # "" lid 0 12xHDR (scp)`, `100002 lid 0 lmc 0 w=11 s=7 e=7 12xHDR`},
		{`[2] "S"[3] # "" lid 0 4xNDR s=4 w=2 v=4`, `100002 lid 0 lmc 0 w=3 s=7 e=15 4xNDR`},
		{`[2] "S"[3] # solid 4 valid 5`, `100002 lid 0 lmc 0 w=2 s=1 e=0 4xSDR`},
	}
	for _, header := range []string{"Ca", "Rt"} {
		for _, test := range tests {
			guid := "caguid=0x100000\nrtguid=0x100000\n"
			n, warnings := mustRead(t, guid+header+" 2 \"H\"\n"+test.line+h2)
			p := n.Nodes[0].Ports[2]
			rate, _ := n.Nodes[0].ActiveRate(2)
			got := fmt.Sprintf("%x lid %d lmc %d %s %v", uint64(p.GUID), p.LID, p.LMC, masks(p.Enabled), rate)
			if got != test.want {
				t.Errorf("%s: %s\ngot  %s\nwant %s", header, test.line, got, test.want)
			}
			if len(warnings) != 0 {
				t.Errorf("%s: warnings %v", test.line, warnings)
			}
		}
	}
}

func TestReadDefaultRemotePort(t *testing.T) {
	n, warnings := mustRead(t, "Switch 4 \"S\"\n[2]\"H\"\n\nCa 1 \"H\"\n[1] \"S\"[2]\n")
	if got := fmt.Sprint(n.Links(), warnings); got != "[0x0000000000100000[1] - 0x0000000000200000[2]] []" {
		t.Error(got)
	}
}

// TestReadRemoteGUID gives a port's GUID on its peer's line only.
func TestReadRemoteGUID(t *testing.T) {
	n, _ := mustRead(t, "Ca 1 \"H\"\n[1] \"S\"[2](99)\n\nSwitch 4 \"S\"\n[2](98) \"H\"[1](77)\n")
	if h, s := n.Nodes[0], n.Nodes[1]; h.Ports[1].GUID != 0x77 || s.Ports[2].GUID != 0 || s.Ports[0].GUID != 0x20_0000 {
		t.Errorf("CA port %v, switch port 2 %v, port 0 %v", h.Ports[1].GUID, s.Ports[2].GUID, s.Ports[0].GUID)
	}
}

// TestReadNoise reads what surrounds records in real files.
func TestReadNoise(t *testing.T) {
	n, warnings := mustRead(t, `src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,1,31 Attr 0x11:0) bad status 110; Connection timed out
#
# Topology file: generated on Tue Jun  5 14:15:10 2007

Chassis 1 (guid 0x8f10400410015)
Hostname: nas-1

# Spine Nodes
`+strings.ReplaceAll(pair, "\n[", "\n# between port lines\n[")+`
Non-Chassis Nodes
 Switch 8 "indented"
do Verbose 1
do  Baselid "S" 5
`)
	if len(n.Nodes) != 2 || len(n.Links()) != 1 || len(warnings) != 0 {
		t.Errorf("%d nodes, %d links, warnings %v", len(n.Nodes), len(n.Links()), warnings)
	}
	if diff := cmp.Diff([]string{"Verbose 1", `Baselid "S" 5`}, n.Commands); diff != "" {
		t.Error(diff)
	}
}

const modules = `module="m1"
Switch 4 "S" # plain lid 5
@[1] "up" w=3
[2] "H"[1]

Hca 1 "H"
[1] "S"[2]

module="m2"
Switch 4 "S"
[3] "m1@up"
[1] "H"[1]

Hca 1 "H"
[1] "S"[1]
`

func TestReadModules(t *testing.T) {
	n, warnings := mustRead(t, modules+"\nmodule=\"\"\nHca 1 \"H\"\n[1] \"G\"[1]\n\nHca 1 \"G\"\n[1] \"H\"[1]\n")
	if len(warnings) != 0 {
		t.Errorf("warnings %v", warnings)
	}
	var got []string
	for _, node := range n.Nodes {
		got = append(got, node.ID+" "+node.Description)
	}
	for _, link := range n.Links() {
		got = append(got, link.String())
	}
	want := []string{
		"m1#S plain", "m1#H m1#H", "m2#S m2#S", "m2#H m2#H", "H H", "G G",
		"0x0000000000100000[1] - 0x0000000000200000[2]",
		"0x0000000000100002[1] - 0x0000000000200001[1]",
		"0x0000000000100004[1] - 0x0000000000100006[1]",
		"0x0000000000200000[1] - 0x0000000000200001[3]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadInclude(t *testing.T) {
	files := map[string]string{
		"a":    "Hca 1 \"H\"\n[1] \"S\"[2]",
		"b":    "include \"c\"\nwidth=3",
		"c":    "Switch 4 \"S\"\n[2] \"H\"[1]\n",
		"bad":  "\nSwitch 0 \"T\"\n",
		"self": "include \"self\"\n",
		"many": "include \"empty\"\ninclude \"many\"\n",
	}
	include := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
	files["empty"] = ""
	files["wide"] = strings.Repeat("include \"empty\"\n", MaxIncludes)
	n, _, err := Read([]byte("include \"a\"\ninclude \"b\"\nHca 1 \"G\"\n"), "top", include)
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Links()) != 1 || n.Nodes[2].Ports[1].Enabled.Width != 3 {
		t.Error(n.Canonical())
	}
	faults := []struct{ name, want string }{
		{"bad", `bad:2:8: "0 \"T\"": want the number of ports, 1 to 254`},
		{"none", `top:7:15: include "none": file does not exist`},
		{"self", `self:1:15: include "self": want at most 8 files deep`},
		{"wide", `wide:256:16: include "empty": want at most 256 included files`},
	}
	for _, test := range faults {
		text := pair + "\ninclude \"" + test.name + "\"\n"
		if test.name == "none" {
			text = pair + "\ninclude \"none\"\n"
		}
		_, _, err := Read([]byte(text), "top", include)
		if err == nil || err.Error() != test.want {
			t.Errorf("include %q: %v\nwant %s", test.name, err, test.want)
		}
	}
	_, _, err = Read([]byte(pair+"include \"none\"\n"), "top", include)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v does not wrap its cause", err)
	}
}

func TestReadFaults(t *testing.T) {
	long := strings.Repeat("x", 65)
	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{`net:1:1: no node record: want at least one line that starts with Switch, Ca, Hca or Rt`}},
		{"header", "Switch \"S\"\nHca 255 \"H\"\nCa 1 H\nRt 1 \"R\nCa 1 \"\"\nCa 1 \"a#b\"\nCa 1 \"a\x01\"\nSwitch\nCa 08 \"H\"\nCa 1 \"" + long + "\"\n" + pair, []string{
			`net:1:8: "\"S\"": want the number of ports, 1 to 254`,
			`net:2:5: "255 \"H\"": want the number of ports, 1 to 254`,
			`net:3:6: "H": want a node id in double quotes`,
			`net:4:6: a node id without a closing double quote`,
			`net:5:6: node id of 0 bytes: want 1 to 64`,
			`net:6:6: node id "a#b": want no # or @ in it`,
			`net:7:8: control character 0x01 in a node id`,
			`net:8:7: the line ends here: want the number of ports, 1 to 254`,
			`net:9:4: "08 \"H\"": want the number of ports, 1 to 254`,
			`net:10:6: node id of 65 bytes: want 1 to 64`,
		}},
		{"port lines of a bad header pass", "Switch 300 \"T\"\n[200] \"S\"[1]\n[200] \"S\"[1]\n\n" + pair, []string{
			`net:1:8: "300 \"T\"": want the number of ports, 1 to 254`,
			`net:3:1: port 200 is listed twice, first at net:2:1`,
		}},
		{"setting", "vendid 3\nvendid=\ndevid=0x10000\nsysimgguid=1g\nwidth=0\nspeed=8\nextspeed=16\ncaguid=1(\ncaguid=1(0)\ncaguid=1(2\nswitchguid=0x1 2\nmodule=x\nmodule=\"a#b\"\nmodule=\"" + long[:21] + "\"\nvendid=0x1000000\nrtguid=1x\ninclude x\ninclude \"x\"\ndo a\x02\ndevid=1 y\n" + pair, []string{
			`net:1:8: "3": want "="`,
			`net:2:8: the line ends here: want a vendor id, 0x0 to 0xffffff`,
			`net:3:7: "0x10000": want a device id, 0 to 65535`,
			`net:4:12: "1g": want a GUID, 0x0 to 0xffffffffffffffff`,
			`net:5:7: "0": want a mask of link widths, 1 to 31`,
			`net:6:7: "8": want a mask of link speeds, 1 to 7`,
			`net:7:10: "16": want a mask of extended link speeds, 0 to 15`,
			`net:8:10: the line ends here: want a port GUID, 0x1 to 0xffffffffffffffff`,
			`net:9:10: "0)": want a port GUID, 0x1 to 0xffffffffffffffff`,
			`net:10:11: the line ends here: want ")"`,
			`net:11:16: "2": want the end of the line or a comment`,
			`net:12:8: "x": want a module name in double quotes`,
			`net:13:8: module name "a#b": want up to 20 bytes without # and @`,
			`net:14:8: module name "xxxxxxxxxxxxxxxxxxxxx": want up to 20 bytes without # and @`,
			`net:15:8: "0x1000000": want a vendor id, 0x0 to 0xffffff`,
			`net:16:8: "1x": want a GUID, 0x0 to 0xffffffffffffffff`,
			`net:17:9: "x": want a file name in double quotes`,
			`net:18:12: include "x": included files are not read here: want all in one file`,
			`net:19:5: control character 0x02 in a command`,
			`net:20:9: "y": want the end of the line or a comment`,
		}},
		{"port line", `Switch 4 "S"
[0] "H"[1]
[5] "H"[1]
[1 "H"[1]
[1] H[1]
[1] "H[1]
[1] "H"[0]
[1] "H"[255]
[1] "H"[x]
[1] "H"[1
[1](xyz) "H"[1]
[] "H"[1]
[1][ext x] "H"[1]
[1] "H"[1] w=32 s=8
[2] "H"[1] e=16 q=3
@"x"
`, []string{
			`net:2:2: "0] \"H\"[1]": want a port number, 1 to 4`,
			`net:3:2: "5] \"H\"[1]": want a port number, 1 to 4`,
			`net:4:3: "\"H\"[1]": want "]"`,
			`net:5:5: "H[1]": want a remote node id in double quotes`,
			`net:6:5: a remote node id without a closing double quote`,
			`net:7:9: "0]": want a port number, 1 to 254`,
			`net:8:9: "255]": want a port number, 1 to 254`,
			`net:9:9: "x]": want a port number, 1 to 254`,
			`net:10:10: the line ends here: want "]"`,
			`net:11:5: "xyz) \"H\"[1]": want a port GUID, 0x1 to 0xffffffffffffffff`,
			`net:12:2: "] \"H\"[1]": want a port number, 1 to 4`,
			`net:13:9: "x] \"H\"[1]": want an external port number, 0 to 255`,
			`net:14:14: "32 s=8": want a mask of link widths, 1 to 31`,
			`net:14:19: "8": want a mask of link speeds, 0 to 7`,
			`net:15:14: "16 q=3": want a mask of extended link speeds, 0 to 15`,
			`net:15:19: option "q" is unknown: want w, s or e`,
			`net:16:2: "\"x\"": want "["`,
			`net:14:1: port 1 is cabled to "H": no node has this id`,
			`net:15:1: port 2 is cabled to "H": no node has this id`,
		}},
		{"outside a record", "[1] \"S\"[2]\n" + pair + "\n[3] \"H\"[1]\n  [4] \"H\"[1]\n", []string{
			`net:1:1: port line outside a node record: want it below its Switch, Ca, Hca or Rt line, without a blank line between`,
			`net:8:1: port line outside a node record: want it below its Switch, Ca, Hca or Rt line, without a blank line between`,
			`net:9:1: blank before a port line: want [ in column 1`,
		}},
		{"cables", `Switch 4 "A"
[1] "A"[1]
[2] "B"[1]
[3] "B"[9]
[4] "B"[3]

Switch 4 "B"
[1] "A"[3]
[1] "A"[2]
`, []string{
			`net:9:1: port 1 is listed twice, first at net:8:1`,
			`net:2:1: port 1 of "A": cabled to itself`,
			`net:3:1: port 2 is cabled to port 1 of "B", which is cabled to port 3 of "A" at net:8:1`,
			`net:4:1: port 3 is cabled to port 9 of "B", which has 4 ports`,
			`net:5:1: port 4 is cabled to port 3 of "B", which lists no such port: want a line for it at net:7:1`,
			`net:8:1: port 1 is cabled to port 3 of "A", which is cabled to port 9 of "B" at net:4:1`,
		}},
		{"twice", pair + "\nSwitch 2 \"S\"\n[1] \"H\"[1]\n\nswitchguid=0x100000\nSwitch 2 \"T\"\n[1] \"G\"[1]\n[2] \"G\"[2]\n\ncaguid=0xfffff\nCa 2 \"G\"\n[1] \"T\"[1]\n[2] \"T\"[2]\n", []string{
			`net:7:1: another node has the same id`,
			`net:11:1: node GUID 0x0000000000100000 is also that of "H"`,
			`net:16:1: port 1: port GUID 0x0000000000100000 is also that of a port of "T"`,
			`net:16:1: port 2: port GUID 0x0000000000100001 is also that of a port of "H"`,
		}},
		{"port GUIDs", "Ca 1 \"H\"\n[1](77) \"S\"[1]\n\nswitchguid=1(77)\nSwitch 2 \"S\"\n[1] \"H\"[1](78)\n\ncaguid=0xffffffffffffffff\nCa 1 \"G\"\n", []string{
			`net:6:1: port GUID 0x0000000000000078 of port 1 of "H": its own line gives 0x0000000000000077 at net:2:1`,
			`net:5:1: port 0: port GUID 0x0000000000000077 is also that of a port of "H"`,
			`net:9:1: port 1: port GUID 0: want another`,
		}},
		{"rates", strings.Replace(pair, `"S"[2]`, `"S"[2] w=1`, 1), []string{
			`net:1:1: port 1: enables width mask 1 and speed mask 1, port 2 of "S" enables 2 and 1: want a common width and a common speed`,
		}},
		{"aliases", modules + "@[1] \"up\"\n\nSwitch 2 \"X\"\n[2] \"m1#X\"[1]\n\nmodule=\"m3\"\nCa 1 \"H\"\n[1] \"m1@up\"\n\nCa 1 \"G\"\n[1] \"@none\"\n\nCa 1 \"I\"\n[1] \"m1#S\"[1]\n\nCa 4 \"J\"\n@[1] \"a@b\"\n@[2] \"" + long[:40] + "\"\n@[3] \"c\"\n@[4] \"c\"\n", []string{
			`net:16:1: port 1 is listed twice, first at net:15:1`,
			`net:32:1: alias "a@b": want no # or @ in it`,
			`net:33:1: alias "m3@xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": want at most 39 bytes with the module`,
			`net:35:1: alias "m3@c" is given twice, first at net:34:1`,
			`net:19:1: port 2 is cabled to "m1#X": no node has this id`,
			`net:23:1: port 1 of "m1#S": already cabled to port 3 of "m2#S"`,
			`net:26:1: port 1 is cabled to alias "m3@none": no port has this alias`,
			`net:29:1: port 1 is cabled to port 1 of "m1#S", which has an alias: want "module@alias"`,
		}},
		{"description", "Switch 4 \"S\" # \"a\x7fb\"\nSwitch 4 \"T\" # a\x7fb\n", []string{
			`net:1:18: control character 0x7f in a description`,
			`net:2:17: control character 0x7f in a description`,
		}},
		{"long line", "# " + strings.Repeat("x", MaxLine) + "\n" + pair, []string{
			`net:1:4097: line of 4098 bytes: want at most 4096`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n, _, err := Read([]byte(test.text), "net", nil)
			var faults Faults
			if !errors.As(err, &faults) || n != nil {
				t.Fatalf("Read: %v, %v", n, err)
			}
			if diff := cmp.Diff(test.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadLimits(t *testing.T) {
	var faults Faults
	_, _, err := Read([]byte(strings.Repeat("Switch\n", MaxFaults+10)), "net", nil)
	if !errors.As(err, &faults) || len(faults) != MaxFaults+1 || faults[MaxFaults].Error() != "net:1001:7: more than 1000 faults: the rest is not listed" {
		t.Errorf("%d faults, last %v", len(faults), faults[len(faults)-1])
	}
	_, warnings, _ := Read([]byte(strings.Repeat("foo=1\n", MaxWarnings+10)), "net", nil)
	if len(warnings) != MaxWarnings {
		t.Errorf("%d warnings", len(warnings))
	}
	var text strings.Builder
	for i := range MaxNodes + 2 {
		fmt.Fprintf(&text, "Ca 1 \"%d\"\n\n", i)
	}
	_, _, err = Read([]byte(text.String()), "net", nil)
	if err == nil || err.Error() != "net:98305:1: one node too many: want at most 49152 nodes and 1048576 ports" {
		t.Error(err)
	}
	text.Reset()
	for i := range MaxTotalPorts/MaxPorts + 1 {
		fmt.Fprintf(&text, "Switch 254 \"%d\"\n\n", i)
	}
	if _, _, err = Read([]byte(text.String()), "net", nil); !errors.As(err, &faults) || len(faults) != 1 {
		t.Error(err)
	}
}

func TestReadWarnings(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown setting", "vendor=3\n" + pair, `net:1:1: setting "vendor" is unknown and ignored`},
		{"like a keyword", "Switches are below\n" + pair, `net:1:1: line starts with "Switches" and is ignored: ibsim would take it for another keyword`},
		{"unfinished record", strings.Replace(pair, "\n\n", "\n", 1), ``},
		{"swallowed header", "Switch 4 \"S\"\n[2] \"H\"[1]\nHca 1 \"H\"\n[1] \"S\"[2]\n", `net:3:1: no blank line ends the record before: ibsim ignores this line`},
		{"swallowed setting", "Switch 4 \"S\"\nvendid=4\n", `net:2:1: no blank line ends the record before: ibsim ignores this line`},
		{"option in comment", strings.Replace(pair, `"S"[2]`, `"S"[2] # was w=1`, 1), `net:2:18: ibsim reads options in comments: this one is ignored`},
		{"option in description", strings.Replace(pair, `"S"[2]`, `"S"[2] # "ages = 9" lid 0 4xSDR`, 1), `net:2:18: ibsim reads options in comments: this one is ignored`},
		{"no option in comment", strings.Replace(pair, `"S"[2]`, `"S"[2] # a=3, 4=5`, 1), ``},
		{"text for options", strings.Replace(pair, `"S"[2]`, `"S"[2] fast w`, 1), "net:2:12: \"fast w\": want an option, w=, s= or e=, or a comment\nnet:2:17: \"w\": want an option, w=, s= or e=, or a comment"},
		{"blank before port", strings.Replace(pair, `"S"[2]`, `"S" [2]`, 1), `net:2:9: blank before the remote port: ibsim takes port 1`},
		{"unknown speed", strings.Replace(pair, `"S"[2]`, `"S"[2] # "" lid 1 4xZDR`, 1), `net:2:23: rate "4xZDR": want a speed of SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR: the port keeps the rates it had`},
		{"unknown width", strings.Replace(pair, `"S"[2]`, `"S"[2] # "" lid 1 ??x???`, 1), `net:2:23: rate "??x???": want a width of 1x, 2x, 4x, 8x or 12x: the port keeps the rates it had`},
		{"no LID", strings.Replace(pair, `"S"[2]`, `"S"[2] # lid 65535 lmc 8 "S"`, 1), "net:2:18: \"65535 lmc 8 \": want the LID, 0 to 49151: none is preset\nnet:2:28: \"8 \": want the LMC, 0 to 7: none is preset"},
		{"description cut", "Ca 1 \"H\" # \"" + strings.Repeat("d", 65) + "\"\n", `net:1:13: description of 65 bytes: cut to 64`},
		{"description without end", "Ca 1 \"H\" # \"d\n", `net:1:13: description without a closing double quote`},
		{"long line", "Ca 1 \"H\" # d lid " + strings.Repeat("d", 240) + "\n", `net:1:255: line of 257 bytes: ibsim reads lines of at most 254`},
		{"long comment", "#" + strings.Repeat("d", 300) + "\n" + pair, ``},
		{"alias before it is given", "Ca 1 \"H\"\n[1] \"@a\"\n\nCa 1 \"G\"\n@[1] \"a\"\n", `net:2:1: alias "@a" is used before line 5 gives it: ibsim does not find it`},
	}
	for _, test := range tests {
		_, warnings := mustRead(t, test.text)
		var got []string
		for _, w := range warnings {
			got = append(got, w.String())
		}
		if s := strings.Join(got, "\n"); s != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, s, test.want)
		}
	}
}
