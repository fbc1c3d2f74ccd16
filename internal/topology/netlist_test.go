package topology

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(h, s *Node, n *Netlist)
		want  string
	}{
		{"nothing", func(_, _ *Node, _ *Netlist) {}, ``},
		{"id", func(h, _ *Node, _ *Netlist) { h.ID = `a"b` }, `node "a\"b": node id "a\"b": want no '"' in it`},
		{"id of an alias", func(h, _ *Node, _ *Netlist) { h.ID = "a@b" }, `node "a@b": node id "a@b": want no '@' in it`},
		{"type", func(h, _ *Node, _ *Netlist) { h.Type = 4 }, `node "H": unknown node type 4: want CA, switch or router`},
		{"no ports", func(h, _ *Node, n *Netlist) { n.Nodes = []*Node{{ID: "N", Type: ib.NodeCA}} }, `node "N": 0 ports: want 1 to 254`},
		{"many ports", func(h, _ *Node, n *Netlist) { n.Nodes = append(n.Nodes, NewNode(ib.NodeSwitch, "N", 9, 255)) }, `node "N": 255 ports: want 1 to 254`},
		{"vendor", func(h, _ *Node, _ *Netlist) { h.VendorID = 1 << 24 }, `node "H": vendor id 0x1000000: want at most 0xffffff`},
		{"LID", func(h, _ *Node, _ *Netlist) { h.Ports[1].LID = 0xC000 }, `node "H": port 1: LID 49152: want 1 to 49151, or 0 for none`},
		{"LMC", func(h, _ *Node, _ *Netlist) { h.Ports[1].LMC = 8 }, `node "H": port 1: LMC 8: want 0 to 7`},
		{"itself", func(_, s *Node, _ *Netlist) { s.Ports[3] = Port{Peer: s, PeerPort: 3} }, `node "S": port 3: cabled to itself`},
		{"port 0", func(_, s *Node, _ *Netlist) { s.Ports[3].Peer = s }, `node "S": port 3: cabled to port 0 of "S": port 0 has no cable`},
		{"no such port", func(h, s *Node, _ *Netlist) { s.Ports[3].Peer, s.Ports[3].PeerPort = h, 2 }, `node "S": port 3: cabled to port 2 of "H": want 1 to 1`},
		{"one end", func(h, s *Node, _ *Netlist) { s.Ports[3].Peer, s.Ports[3].PeerPort = h, 1 }, `node "S": port 3: cabled to port 1 of "H", which is not cabled back`},
		{"rates", func(h, _ *Node, _ *Netlist) { h.Ports[1].Enabled.Speed = SpeedDDR }, `node "H": port 1: enables width mask 2 and speed mask 2, port 2 of "S" enables 2 and 1: want a common width and a common speed`},
		{"command", func(_, _ *Node, n *Netlist) { n.Commands = []string{"a\nb"} }, `command "a\nb": want no control characters`},
		{"two", func(h, _ *Node, _ *Netlist) { h.ID, h.VendorID = "S", 1<<24 }, "node \"S\": vendor id 0x1000000: want at most 0xffffff\nnode \"S\": another node has the same id"},
	}
	for _, test := range tests {
		n, _ := mustRead(t, pair)
		test.spoil(n.Nodes[0], n.Nodes[1], n)
		got := ""
		if err := n.Validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestConnect(t *testing.T) {
	a, b := NewNode(ib.NodeSwitch, "A", 1, 3), NewNode(ib.NodeSwitch, "B", 2, 3)
	tests := []struct {
		aPort, bPort ib.PortNum
		to           *Node
		want         string
	}{
		{1, 2, b, ``},
		{1, 3, b, `port 1 of "A": already cabled to port 2 of "B"`},
		{2, 2, b, `port 2 of "B": already cabled to port 1 of "A"`},
		{0, 1, b, `port 0 of "A": want 1 to 3`},
		{2, 4, b, `port 4 of "B": want 1 to 3`},
		{2, 2, a, `port 2 of "A": cabled to itself`},
		{2, 3, a, ``},
	}
	for _, test := range tests {
		got := ""
		if err := Connect(a, test.aPort, test.to, test.bPort); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("A[%d] to %s[%d]: %q, want %q", test.aPort, test.to.ID, test.bPort, got, test.want)
		}
	}
}

func TestAttach(t *testing.T) {
	n, _ := mustRead(t, pair+"\nCa 1 \"G\" # \"H\"\n\nCa 1 \"F\" # \"a host\"\n")
	tests := []struct {
		name, id string
		port     ib.PortNum
		err      string
	}{
		{"", "H", 1, ""},
		{"H", "H", 1, ""},
		{"S", "S", 0, ""},
		{"a host", "F", 1, ""},
		{"X", "", 0, `attach: the fabric has no node "X"`},
	}
	for _, test := range tests {
		node, port, err := n.Attach(test.name)
		switch {
		case err != nil:
			if err.Error() != test.err {
				t.Error(err)
			}
		case node.ID != test.id || port != test.port || test.err != "":
			t.Errorf("attach to %q: port %d of %q", test.name, port, node.ID)
		}
	}
	if _, _, err := new(Netlist).Attach(""); err == nil {
		t.Error("attached to nothing")
	}
}

func TestActiveRate(t *testing.T) {
	tests := []struct {
		a, b Rates
		want string
		ok   bool
	}{
		{DefaultRates, DefaultRates, "4xSDR", true},
		{Rates{31, 7, 15, 0}, Rates{31, 7, 15, 0}, "12xNDR", true},
		{Rates{31, 7, 15, 1}, Rates{2, 7, 15, 1}, "4xXDR", true},
		{Rates{31, 7, 15, 1}, Rates{2, 7, 15, 0}, "4xNDR", true},
		{Rates{31, 7, 15, 0}, Rates{23, 7, 7, 0}, "8xHDR", true},
		{Rates{19, 7, 3, 0}, Rates{17, 7, 2, 0}, "2xEDR", true},
		{Rates{1, 7, 1, 0}, Rates{1, 3, 1, 0}, "1xFDR", true},
		{Rates{3, 7, 1, 0}, Rates{2, 7, 2, 0}, "4xQDR", true},
		{Rates{3, 3, 0, 0}, Rates{2, 6, 2, 0}, "4xDDR", true},
		{Rates{1, 7, 0, 0}, Rates{2, 7, 0, 0}, "??QDR", false},
		{Rates{2, 1, 0, 0}, Rates{2, 2, 0, 0}, "4x???", false},
	}
	for _, test := range tests {
		for range 2 {
			got, ok := test.a.Active(test.b)
			if got.String() != test.want || ok != test.ok {
				t.Errorf("%+v and %+v: %v, %t; want %s, %t", masks(test.a), masks(test.b), got, ok, test.want, test.ok)
			}
			test.a, test.b = test.b, test.a
		}
	}
}

// TestCanonical tells apart whatever makes a fabric another fabric.
func TestCanonical(t *testing.T) {
	base, _ := mustRead(t, pair)
	same, _ := mustRead(t, strings.ReplaceAll(pair, `"H"`, `"G"`))
	same.Nodes[0].Description = "H"
	same.Nodes[0], same.Nodes[1] = same.Nodes[1], same.Nodes[0]
	if base.Canonical() != same.Canonical() {
		t.Error("ids or order make a difference")
	}
	changes := map[string]func(h, s *Node){
		"description": func(h, _ *Node) { h.Description = "X" },
		"GUID":        func(h, _ *Node) { h.GUID = 5 },
		"port GUID":   func(h, _ *Node) { h.Ports[1].GUID = 5 },
		"image":       func(h, _ *Node) { h.SystemImageGUID = 5 },
		"vendor":      func(h, _ *Node) { h.VendorID = 5 },
		"device":      func(h, _ *Node) { h.DeviceID = 5 },
		"type":        func(h, _ *Node) { h.Type = ib.NodeRouter },
		"port 0":      func(_, s *Node) { s.EnhancedPort0 = true },
		"LID":         func(_, s *Node) { s.Ports[0].LID = 5 },
		"LMC":         func(_, s *Node) { s.Ports[0].LMC = 5 },
		"rate":        func(h, s *Node) { h.Ports[1].Enabled.Speed, s.Ports[2].Enabled.Speed = 3, 3 },
		"ports":       func(_, s *Node) { s.Ports = s.Ports[:4] },
		"cable": func(h, s *Node) {
			s.Ports[2], s.Ports[3], h.Ports[1].PeerPort = s.Ports[3], s.Ports[2], 3
		},
		"no cable": func(h, s *Node) { h.Ports[1].Peer, s.Ports[2].Peer = nil, nil },
	}
	for name, change := range changes {
		n, _ := mustRead(t, pair)
		change(n.Nodes[0], n.Nodes[1])
		if n.Canonical() == base.Canonical() {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestActiveRateWithoutLink(t *testing.T) {
	n, _ := mustRead(t, pair)
	for p := range 255 {
		if _, ok := n.Nodes[1].ActiveRate(ib.PortNum(p)); ok != (p == 2) {
			t.Errorf("port %d has an active rate: %t", p, ok)
		}
	}
	n.Nodes[0].Ports[1].PeerPort = 200
	if rate, ok := n.Nodes[0].ActiveRate(1); ok {
		t.Errorf("rate %v with a port that does not exist", rate)
	}
}

// TestFind: a node has one name everywhere, whole or short.
func TestFind(t *testing.T) {
	l := Demo()
	for name, want := range map[string]string{"red-1": "red-1 HCA-1", "red-1 HCA-1": "red-1 HCA-1", "leaf-1": "leaf-1"} {
		if n, err := l.Find(name); err != nil || n.Description != want {
			t.Errorf("%q is %v, %v, want %q", name, n, err, want)
		}
	}
	for _, n := range l.Nodes {
		n.ID = "id of " + n.ID // what follows goes by descriptions
	}
	if n, err := l.Find("red-1"); err != nil || n.Description != "red-1 HCA-1" {
		t.Errorf("the first word is %v, %v", n, err)
	}
	for name, want := range map[string]string{
		"red-l": `the fabric has no node "red-l"; did you mean 'red-1 HCA-1'?`, "": `the fabric has no node ""`,
	} {
		if n, err := l.Find(name); err == nil || err.Error() != want {
			t.Errorf("%q is %v, %v, want %s", name, n, err, want)
		}
	}
	for _, n := range l.Nodes {
		if n.Description == "red-2 HCA-1" {
			n.Description = "red-1 HCA-2"
		}
	}
	if n, err := l.Find("red-1"); err == nil || err.Error() != `"red-1" may be "red-1 HCA-1" or "red-1 HCA-2": want one` {
		t.Errorf("two have the first word: %v, %v", n, err)
	}
}
