package discover_test

import (
	"fmt"
	"log"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/discover"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/umadtest"
)

// open is umad.Open("/", umad.Place{}) on a machine with an adapter, or inside
// `ibwarden sim exec`. Here it is a host of a simulated fabric in the process.
func open() (*umad.Conn, error) {
	l, _, err := topology.Read([]byte(`
Switch 4 "sw" # "leaf"
[1] "a"[1]
[2] "b"[1]

Hca 1 "a" # "alice"
[1] "sw"[1]

Hca 1 "b" # "bob"
[1] "sw"[2]
`), "two.net", nil)
	if err != nil {
		return nil, err
	}
	host, err := umadtest.New(l, "a")
	if err != nil {
		return nil, err
	}
	f, err := host.OpenMAD()
	if err != nil {
		return nil, err
	}
	return umad.NewConn(f)
}

// The nodes of a fabric, and the cables between them.
func Example() {
	c, err := open()
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	a, err := discover.NewAgent(c)
	if err != nil {
		log.Fatal(err)
	}
	fabric, err := discover.List(a)
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range fabric.Nodes {
		fmt.Printf("%-6v %-5v %d ports, route %v\n", n.Info.NodeType, n, n.Info.NumPorts, n.Route)
	}
	for _, p := range fabric.Links() {
		fmt.Println(p, "-", p.Peer, p.Info.PortState)
	}
	fmt.Println(fabric.Count(ib.NodeCA), "CAs,", fabric.Count(ib.NodeSwitch), "switch,", len(fabric.Faults), "faults")
	// Output:
	// CA     alice 1 ports, route 0
	// switch leaf  4 ports, route 0,1
	// CA     bob   1 ports, route 0,1,2
	// alice:1 - leaf:1 Initialize
	// leaf:2 - bob:1 Initialize
	// 2 CAs, 1 switch, 0 faults
}
