package topology

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
)

var topologies = []string{
	"ibnetdiscover-1.topo", "ibnetdiscover-2.topo", "ibnetdiscover-3.topo", "ibnetdiscover-4.topo",
}

// specs is a small fabric of every kind.
var specs = []string{
	"fattree,radix=2",
	"fattree,radix=6",
	"fattree,radix=4,levels=3",
	"fattree,radix=8,hosts=10",
	"torus,x=3,y=4",
	"torus,x=2,y=1,hosts=3",
	"torus,x=2,y=3,z=3,hosts=2",
	"dragonfly,groups=2",
	"dragonfly,groups=5,leafs=3,spines=2,hosts=1",
	"random,switches=1,hosts=1",
	"random,seed=2",
	"random,seed=3,switches=6,hosts=12,ports=8,routers=2,ca-ports=2,extra=5",
	"random,seed=4,switches=12,hosts=9,ports=6,routers=1,ca-ports=3,extra=30",
}

func mustGenerate(t testing.TB, spec string) *Netlist {
	t.Helper()
	n, err := Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func written(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var text bytes.Buffer
	if err := write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// decorate presets everything a file can preset, at random. It stays with what
// ibsim 0.10 takes and ibnetdiscover prints: no NDR, no preset LID of a router, and
// ASCII descriptions.
func decorate(n *Netlist, rng *rand.Rand) {
	descriptions := []string{"", "plain", "host # 1", "lid 5 lmc 3", "a; b:c/d", " two  words ", "base port 0", strings.Repeat("x", 63)}
	for i, node := range n.Nodes {
		node.Description = descriptions[rng.IntN(len(descriptions))]
		node.VendorID = rng.Uint32N(3) * 0x7F_FFFF
		node.DeviceID = uint16(rng.IntN(2) * 0x1003)
		if rng.IntN(2) == 0 {
			node.SystemImageGUID = rng.Uint64()
		}
		if node.Type == ib.NodeSwitch {
			node.EnhancedPort0 = rng.IntN(2) == 0
		}
		if rng.IntN(2) == 0 {
			moveGUIDs(node, ib.NodeGUID(0x5000_0000_0000_0000+uint64(i)<<8))
		}
		for p := range node.Ports {
			port := &node.Ports[p]
			port.Enabled = Rates{Width: Width4x | uint8(rng.IntN(32)), Speed: SpeedSDR | uint8(rng.IntN(8)), ExtSpeed: uint8(rng.IntN(8))}
			if node.IsEndPort(p) && node.Type != ib.NodeRouter && (p == 0 || port.Peer != nil) && rng.IntN(2) == 0 {
				port.LID, port.LMC = ib.LID(1+rng.IntN(0xBFFF)), ib.LMC(rng.IntN(8))
			}
		}
	}
}

// moveGUIDs gives a node another GUID, its ports following as in ibsim.
func moveGUIDs(n *Node, guid ib.NodeGUID) {
	if n.SystemImageGUID == uint64(n.GUID) {
		n.SystemImageGUID = uint64(guid)
	}
	n.GUID = guid
	for p := range n.Ports {
		if n.IsEndPort(p) {
			n.Ports[p].GUID = n.defaultPortGUID(p)
		}
	}
}

// scatterPortGUIDs gives cabled ports GUIDs that ibsim would not give.
func scatterPortGUIDs(n *Netlist, rng *rand.Rand) {
	for _, node := range n.Nodes {
		for p := range node.Ports {
			if node.IsEndPort(p) && (p == 0 || node.Ports[p].Peer != nil) && rng.IntN(2) == 0 {
				node.Ports[p].GUID = ib.PortGUID(rng.Uint64())
			}
		}
	}
}

// detail is all that WriteIbsim keeps, in the order of nodes.
func detail(n *Netlist) string {
	var s strings.Builder
	for _, node := range n.Nodes {
		fmt.Fprintf(&s, "%q", node.ID)
		for p, port := range node.Ports {
			if port.Peer != nil {
				fmt.Fprintf(&s, " [%d] %s %d", p, masks(port.Enabled), port.LID)
			}
		}
		s.WriteByte('\n')
	}
	return s.String() + n.Canonical() + strings.Join(n.Commands, "\n")
}

// checkRoundTrips writes n in both forms and reads it back.
func checkRoundTrips(t *testing.T, n *Netlist) {
	t.Helper()
	text := written(t, n.WriteIbsim)
	back, warnings := mustRead(t, text)
	if diff := cmp.Diff(detail(n), detail(back)); diff != "" || len(warnings) != 0 {
		t.Errorf("ibsim form: %v\n%s", warnings, diff)
	}
	if again := written(t, back.WriteIbsim); again != text {
		t.Errorf("written again it differs:\n%s", cmp.Diff(text, again))
	}
	for i, line := range strings.Split(text, "\n") {
		if len(line) > ibsimLine {
			t.Errorf("line %d has %d bytes", i+1, len(line))
		}
	}
	back, warnings = mustRead(t, written(t, n.WriteIbnetdiscover))
	if diff := cmp.Diff(n.Canonical(), back.Canonical()); diff != "" || len(warnings) != 0 {
		t.Errorf("ibnetdiscover form: %v\n%s", warnings, diff)
	}
}

func TestRoundTripGenerated(t *testing.T) {
	for _, spec := range specs {
		checkRoundTrips(t, mustGenerate(t, spec))
	}
	checkRoundTrips(t, Demo())
}

func TestRoundTripRandom(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		spec := fmt.Sprintf("random,seed=%d,switches=%d,hosts=%d,ports=%d,routers=%d,ca-ports=%d,extra=%d",
			seed, 1+rng.IntN(8), 1+rng.IntN(8), 16+rng.IntN(20), rng.IntN(3), 1+rng.IntN(4), rng.IntN(20))
		n := mustGenerate(t, spec)
		decorate(n, rng)
		scatterPortGUIDs(n, rng)
		n.Commands = []string{"Verbose 1", `Error "H0"[1] 5`}
		if err := n.Validate(); err != nil {
			t.Fatal(spec, err)
		}
		n.Nodes[0].Description = "été"
		// An empty description is read as the id, which is not kept by both forms.
		for _, node := range n.Nodes {
			node.Description = node.description()
		}
		if checkRoundTrips(t, n); t.Failed() {
			t.Fatalf("seed %d: %s", seed, spec)
		}
	}
}

var blanks = regexp.MustCompile(`[ \t]+`)

// plainLines is the lines of a topology file without comments and with blanks
// made equal.
func plainLines(text string) map[string]bool {
	lines := make(map[string]bool)
	for line := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(line, "#") {
			lines[strings.TrimSpace(blanks.ReplaceAllString(line, " "))] = true
		}
	}
	return lines
}

// TestRoundTripTopologies reads what real ibnetdiscovers have written, and finds
// every line of it again.
func TestRoundTripTopologies(t *testing.T) {
	skipped := map[string]bool{
		"Non-Chassis Nodes": true,
		// The two ends of a cable differ about its width: both print what they
		// have in common.
		`[12] "H-0008f10403960558"[1](8f10403960559) # "MT23108 InfiniHost Mellanox Technologies" lid 10 4xSDR`: true,
		`[10] "S-0008f10400410015"[1] # "SW-6IB4 Voltaire" lid 3 4xSDR`:                                         true,
	}
	for _, name := range topologies {
		text := string(readFile(t, name))
		n, warnings := mustRead(t, text)
		if len(warnings) != 0 {
			t.Errorf("%s: warnings %v", name, warnings)
		}
		checkRoundTrips(t, n)
		ours := plainLines(written(t, n.WriteIbnetdiscover))
		for line := range plainLines(text) {
			if !ours[line] && !skipped[line] && !strings.HasPrefix(line, "src/query_smp.c") {
				t.Errorf("%s: not written: %s", name, line)
			}
		}
	}
}

func TestWriteIbsimText(t *testing.T) {
	s := NewNode(ib.NodeSwitch, "m#S", 0x20_0000, 8)
	h := NewNode(ib.NodeCA, "H", 0x700, 2)
	r := NewNode(ib.NodeRouter, "R", 0, 1)
	s.Description, s.EnhancedPort0, s.Ports[0].GUID, s.Ports[0].LID = "a \"b\"\tc", true, 0x99, 3
	h.VendorID, h.DeviceID, h.SystemImageGUID = 0x2c9, 0x1003, 0x703
	h.Ports[2].GUID, h.Ports[2].LID, h.Ports[2].LMC = 0x55, 4, 1
	h.Ports[2].Enabled, s.Ports[5].Enabled = Rates{3, 7, 7, 0}, Rates{3, 7, 3, 0}
	if err := errors.Join(Connect(h, 2, s, 5), Connect(s, 8, r, 1)); err != nil {
		t.Fatal(err)
	}
	n := &Netlist{Nodes: []*Node{h, s, r}, Commands: []string{"Verbose 1"}}
	want := `# 1 CAs, 1 switches, 1 routers, 2 links

vendid=0x2c9
devid=0x1003
sysimgguid=0x703
caguid=0x700
Ca 2 "H"
[2](55)	"m.S"[5] w=3 s=7 e=7 # lid 4 lmc 1

devid=0x0
switchguid=0x200000(99)
Switch 8 "m.S" # "a 'b' c" enhanced port 0 lid 3 lmc 0
[5]	"H"[2] w=3 s=7 e=3
[8]	"R"[1]

Rt 1 "R"
[1]	"m.S"[8]

do Verbose 1
`
	if diff := cmp.Diff(want, written(t, n.WriteIbsim)); diff != "" {
		t.Error(diff)
	}
	want = "#\n# Topology file: generated by ibwarden\n#\n# Initiated from node 0000000000000700 port 0000000000000701\n" +
		"\nvendid=0x0\ndevid=0x0\nsysimgguid=0x200000\nswitchguid=0x200000(99)\n" +
		"Switch\t8 \"S-0000000000200000\"\t\t# \"a 'b' c\" enhanced port 0 lid 3 lmc 0\n" +
		"[5]\t\"H-0000000000000700\"[2](55) \t\t# \"H\" lid 4 4xEDR\n" +
		"[8]\t\"R-0000000000000000\"[1](1) \t\t# \"R\" lid 0 4xSDR\n" +
		"\nvendid=0x2c9\ndevid=0x1003\nsysimgguid=0x703\ncaguid=0x700\n" +
		"Ca\t2 \"H-0000000000000700\"\t\t# \"H\"\n" +
		"[2](55) \t\"S-0000000000200000\"[5]\t\t# lid 4 lmc 1 \"a 'b' c\" lid 3 4xEDR\n" +
		"\nvendid=0x0\ndevid=0x0\nrtguid=0x0\n" +
		"Rt\t1 \"R-0000000000000000\"\t\t# \"R\"\n" +
		"[1](1) \t\"S-0000000000200000\"[8]\t\t# lid 0 lmc 0 \"a 'b' c\" lid 3 4xSDR\n"
	if diff := cmp.Diff(want, written(t, n.WriteIbnetdiscover)); diff != "" {
		t.Error(diff)
	}
}

// TestWriteBackToBack cables two CAs to each other.
func TestWriteBackToBack(t *testing.T) {
	n, _ := mustRead(t, "Ca 1 \"A\"\n[1] \"B\"[1]\n\nCa 1 \"B\"\n[1] \"A\"[1]\n")
	text := written(t, n.WriteIbnetdiscover)
	const want = "[1](100001) \t\"H-0000000000100002\"[1] (100003) \t\t# lid 0 lmc 0 \"B\" lid 0 4xSDR\n"
	if !strings.Contains(text, want) {
		t.Errorf("no %q in:\n%s", want, text)
	}
	checkRoundTrips(t, n)
}

func TestWriteRefusesFaults(t *testing.T) {
	h := NewNode(ib.NodeCA, "", 1, 1)
	n := &Netlist{Nodes: []*Node{h}}
	var text bytes.Buffer
	for _, write := range []func(io.Writer) error{n.WriteIbsim, n.WriteIbnetdiscover} {
		if err := write(&text); err == nil || !strings.Contains(err.Error(), "node id of 0 bytes") || text.Len() != 0 {
			t.Errorf("%v after %q", err, text.String())
		}
	}
	n = &Netlist{Nodes: []*Node{NewNode(ib.NodeCA, "a#b", 1, 1), NewNode(ib.NodeCA, "a.b", 3, 1)}}
	if err := n.WriteIbsim(&text); err == nil || err.Error() != `write a netfile: nodes "a#b" and "a.b": without # both are "a.b"` {
		t.Error(err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteReportsErrors(t *testing.T) {
	for _, write := range []func(io.Writer) error{Demo().WriteIbsim, Demo().WriteIbnetdiscover} {
		if err := write(brokenWriter{}); !errors.Is(err, io.ErrShortWrite) {
			t.Error(err)
		}
	}
}
