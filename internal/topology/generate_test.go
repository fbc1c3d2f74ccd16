package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
)

// checkConnected fails unless every node is reached from the first.
func checkConnected(t *testing.T, spec string, n *Netlist) {
	t.Helper()
	seen := map[*Node]bool{n.Nodes[0]: true}
	for queue := []*Node{n.Nodes[0]}; len(queue) > 0; queue = queue[1:] {
		for _, port := range queue[0].Ports {
			if port.Peer != nil && !seen[port.Peer] {
				seen[port.Peer] = true
				queue = append(queue, port.Peer)
			}
		}
	}
	if len(seen) != len(n.Nodes) {
		t.Errorf("%s: %d of %d nodes are connected", spec, len(seen), len(n.Nodes))
	}
}

func TestGenerate(t *testing.T) {
	for _, spec := range specs {
		n := mustGenerate(t, spec)
		if err := n.Validate(); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
		checkConnected(t, spec, n)
		if n.Nodes[0].Type != ib.NodeCA {
			t.Errorf("%s: the first node is a %v", spec, n.Nodes[0].Type)
		}
		if detail(n) != detail(mustGenerate(t, spec)) {
			t.Errorf("%s: is not the same twice", spec)
		}
	}
}

func TestGenerateSizes(t *testing.T) {
	tests := []struct {
		spec                           string
		hosts, switches, routers, link int
	}{
		{"fattree,radix=2,levels=2", 2, 3, 0, 4},
		{"fattree,radix=36", 648, 54, 0, 1296},
		{"fattree,radix=24,levels=3", 3456, 720, 0, 10368},
		{"fattree,radix=36,levels=3", 11664, 1620, 0, 34992},
		{"fattree,radix=8,hosts=9", 9, 12, 0, 41},
		{"fattree,radix=254", 32258, 381, 0, 64516},
		{"fattree,radix=56,levels=3", 43904, 3920, 0, 131712},
		{"fattree,radix=64,levels=3,pods=40", 40960, 3584, 0, 122880},
		{"fattree,radix=8,levels=3,pods=3,hosts=13", 13, 40, 0, 13 + 96},
		{"torus,x=4,y=4", 16, 16, 0, 48},
		{"torus,x=4,y=4,z=4,hosts=2", 128, 64, 0, 320},
		{"torus,x=1,y=1", 1, 1, 0, 1},
		{"torus,x=2,y=2", 4, 4, 0, 12},
		{"dragonfly,groups=9,leafs=4,spines=4,hosts=4", 144, 72, 0, 324},
		{"random", 20, 8, 0, 35},
		{"random,switches=4,hosts=5,routers=2,extra=3", 5, 4, 2, 13},
	}
	for _, test := range tests {
		n := mustGenerate(t, test.spec)
		if h, s, r, l := n.Count(ib.NodeCA), n.Count(ib.NodeSwitch), n.Count(ib.NodeRouter), len(n.Links()); h != test.hosts || s != test.switches || r != test.routers || l != test.link {
			t.Errorf("%s: %d hosts, %d switches, %d routers, %d links; want %d, %d, %d, %d",
				test.spec, h, s, r, l, test.hosts, test.switches, test.routers, test.link)
		}
	}
}

// TestFatTree compares with netfiles that another program has made.
func TestFatTree(t *testing.T) {
	for spec, file := range map[string]string{
		"fattree,radix=4,levels=2": "fattree-2-4.net",
		"fattree,radix=4,levels=3": "fattree-3-4.net",
	} {
		want, _ := mustRead(t, string(readFile(t, file)))
		if diff := cmp.Diff(detail(want), detail(mustGenerate(t, spec))); diff != "" {
			t.Errorf("%s: %s", spec, diff)
		}
	}
}

// TestFatTreeHosts spreads hosts over the leaves.
func TestFatTreeHosts(t *testing.T) {
	n := mustGenerate(t, "fattree,radix=6,hosts=8")
	perLeaf := make(map[string]int)
	for _, node := range n.Nodes[:8] {
		perLeaf[node.Ports[1].Peer.ID]++
	}
	want := map[string]int{"L0": 2, "L1": 2, "L2": 1, "L3": 1, "L4": 1, "L5": 1}
	if diff := cmp.Diff(want, perLeaf); diff != "" {
		t.Error(diff)
	}
}

func TestTorusNeighbours(t *testing.T) {
	n := mustGenerate(t, "torus,x=3,y=2,z=4")
	var sw *Node
	for _, node := range n.Nodes {
		if node.ID == "T2_1_0" {
			sw = node
		}
	}
	var got []string
	for _, port := range sw.Ports[1:] {
		got = append(got, port.Peer.ID)
	}
	want := []string{"H2_1_0_0", "T0_1_0", "T1_1_0", "T2_0_0", "T2_0_0", "T2_1_1", "T2_1_3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDragonflyGroups counts the cables between every two groups.
func TestDragonflyGroups(t *testing.T) {
	n := mustGenerate(t, "dragonfly,groups=7,leafs=2,spines=3,hosts=1")
	between := make(map[[2]string]int)
	for _, node := range n.Nodes {
		for _, port := range node.Ports {
			if port.Peer == nil || node.ID[0] != 'G' || port.Peer.ID[0] != 'G' {
				continue
			}
			a, b := strings.Split(node.ID, "_")[0], strings.Split(port.Peer.ID, "_")[0]
			if a != b {
				between[[2]string{a, b}]++
			}
		}
	}
	if len(between) != 7*6 {
		t.Errorf("%d pairs of groups, want %d", len(between), 7*6)
	}
	for pair, count := range between {
		if count != 1 {
			t.Errorf("%v: %d cables", pair, count)
		}
	}
}

// TestRandomVariety finds in a few seeds what random fabrics are for.
func TestRandomVariety(t *testing.T) {
	parallel, secondPort, noSecondPort, gaps := 0, 0, 0, 0
	for seed := range 10 {
		n := mustGenerate(t, "random,switches=5,hosts=15,ports=14,ca-ports=2,routers=2,extra=8,seed="+fmt.Sprint(seed))
		for _, node := range n.Nodes {
			peers := make(map[*Node]int)
			for p := 1; p <= node.NumPorts(); p++ {
				if peer := node.Ports[p].Peer; peer != nil {
					peers[peer]++
					if p > 1 && node.Ports[p-1].Peer == nil {
						gaps++
					}
				}
			}
			for _, count := range peers {
				if count > 1 {
					parallel++
					if node.Type == ib.NodeCA {
						t.Errorf("seed %d: %s has two ports on one switch", seed, node.ID)
					}
				}
			}
			if node.Type == ib.NodeCA && len(peers) == 2 {
				secondPort++
			} else if node.Type == ib.NodeCA {
				noSecondPort++
			}
		}
	}
	if parallel == 0 || secondPort == 0 || noSecondPort == 0 || gaps == 0 {
		t.Errorf("parallel links %d, hosts with two cables %d, with one %d, free ports between %d", parallel, secondPort, noSecondPort, gaps)
	}
}

// TestRandomFull leaves no port free: every host and router still has a cable.
func TestRandomFull(t *testing.T) {
	for seed := range 20 {
		spec := fmt.Sprintf("random,seed=%d,switches=4,ports=6,hosts=16,routers=2,ca-ports=4,extra=9", seed)
		checkConnected(t, spec, mustGenerate(t, spec))
	}
}

func TestGenerateErrors(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"", `topology "": want fattree, torus, dragonfly or random, then key=value pairs after commas`},
		{"mesh,x=1", `topology "mesh": want fattree, torus, dragonfly or random, then key=value pairs after commas`},
		{"fattree", `topology fattree: radix: not given: want a whole number, 2 to 254`},
		{"fattree,radix=7", `topology fattree: radix: 7: want an even number`},
		{"fattree,radix=256,levels=3", `topology fattree: radix: "256": want a whole number, 2 to 254`},
		{"fattree,radix=64,levels=3", `topology fattree: 65536 CA and router ports and 5120 switches need 70656 unicast LIDs, and a subnet has 49151: divide the fabric into several subnets`},
		{"fattree,radix=58,levels=3", `topology fattree: 48778 CA and router ports and 4205 switches need 52983 unicast LIDs, and a subnet has 49151: divide the fabric into several subnets`},
		{"fattree,radix=64,levels=3,pods=65", `topology fattree: pods: "65": want a whole number, 1 to 64`},
		{"fattree,radix=64,pods=2", "topology fattree: pods: no such key: want levels, radix, hosts"},
		{"fattree,radix=4,levels=4,host=3", "topology fattree: levels: \"4\": want a whole number, 2 to 3\nhost: no such key: want levels, radix, hosts"},
		{"fattree,radix=4,hosts=9", `topology fattree: hosts: "9": want a whole number, 1 to 8`},
		{"fattree,radix=4,radix=4", `topology fattree: key "radix" is given twice`},
		{"fattree,radix", `topology fattree: "radix": want key=value`},
		{"fattree,", `topology fattree: radix: not given: want a whole number, 2 to 254`},
		{"fattree,radix=", `topology fattree: radix: "": want a whole number, 2 to 254`},
		{"torus,x=2", `topology torus: y: not given: want a whole number, 1 to 128`},
		{"torus,x=128,y=128,z=128", `topology torus: 2097152 CA and router ports and 2097152 switches need 4194304 unicast LIDs, and a subnet has 49151: divide the fabric into several subnets`},
		{"torus,x=110,y=110,hosts=100", `topology torus: 1210000 CA and router ports and 12100 switches need 1222100 unicast LIDs, and a subnet has 49151: divide the fabric into several subnets`},
		{"random,switches=4096,ports=254,hosts=2100", `topology random: 1048680 ports in all: want at most 1048576`},
		{"torus,x=2,y=2,hosts=251", `topology torus: hosts: "251": want a whole number, 1 to 250`},
		{"dragonfly,groups=9,global=3", `topology dragonfly: groups: 9: want at most 7, one more than spines times global`},
		{"dragonfly,groups=1024,spines=2", `topology dragonfly: global: 512 are needed by default: want at most 252 in addition to 2 leafs`},
		{"random,switches=2,ports=4,hosts=7", `topology random: ports: 4 on 2 switches, joined by 1 links, leave 6 free: want at least 7, for hosts and routers`},
		{"random,seed=x", `topology random: seed: "x": want a whole number, 0 to 9223372036854775807`},
	}
	for _, test := range tests {
		n, err := Generate(test.spec)
		if err == nil || err.Error() != test.want || n != nil {
			t.Errorf("%s:\ngot  %v\nwant %s", test.spec, err, test.want)
		}
	}
}

func TestDemo(t *testing.T) {
	n := Demo()
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	checkConnected(t, "demo", n)
	if n.Count(ib.NodeCA) != 16 || n.Count(ib.NodeSwitch) != 6 || len(n.Links()) != 32 {
		t.Error(n.Canonical())
	}
	roles := make(map[string]int)
	tenants := make(map[*Node]map[string]bool)
	for _, node := range n.Nodes[:16] {
		role, _, _ := strings.Cut(node.ID, "-")
		roles[role]++
		leaf := node.Ports[1].Peer
		if tenants[leaf] == nil {
			tenants[leaf] = make(map[string]bool)
		}
		tenants[leaf][role] = true
		if node.Description != node.ID+" HCA-1" {
			t.Errorf("%s is described as %q", node.ID, node.Description)
		}
		if rate, _ := node.ActiveRate(1); rate.String() != "4xHDR" {
			t.Errorf("%s runs at %v", node.ID, rate)
		}
	}
	if diff := cmp.Diff(map[string]int{"mgmt": 1, "storage": 3, "red": 6, "blue": 6}, roles); diff != "" {
		t.Error(diff)
	}
	for leaf, has := range tenants {
		if !has["red"] || !has["blue"] {
			t.Errorf("%s has no hosts of both tenants", leaf.ID)
		}
	}
	for _, node := range n.Nodes {
		for p := 1; p <= node.NumPorts(); p++ {
			if node.Ports[p].Peer == nil {
				t.Errorf("port %d of %s has no cable", p, node.ID)
			}
		}
	}
}
