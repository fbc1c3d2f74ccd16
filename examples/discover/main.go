// Command discover lists the fabric behind the first InfiniBand port of this machine:
// its nodes and the cables between them. It sends SubnGet and nothing else.
//
//	go run ./examples/discover
//
// In place of an adapter a host of a simulated fabric will do:
//
//	go build -o discover ./examples/discover
//	ibwarden sim --devices --socket demo &
//	ibwarden sim exec --socket demo --node red-1 -- ./discover
package main

import (
	"fmt"
	"log"

	"github.com/ibwarden/ibwarden/ib/discover"
	"github.com/ibwarden/ibwarden/ib/umad"
)

func main() {
	conn, port, err := umad.Open("/", umad.Place{})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	agent, err := discover.NewAgent(conn)
	if err != nil {
		log.Fatal(err)
	}
	fabric, err := discover.List(agent)
	if err != nil {
		log.Fatalf("%v: %v", &port, err)
	}
	for _, n := range fabric.Nodes {
		fmt.Printf("%v %v %q, %d ports\n", n.Info.NodeType, n.Info.NodeGUID, n, n.Info.NumPorts)
	}
	for _, p := range fabric.Links() {
		fmt.Printf("%q - %q\n", p, p.Peer)
	}
	for _, err := range fabric.Faults {
		fmt.Printf("not read: %q\n", err)
	}
}
