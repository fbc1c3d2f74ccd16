package cli

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/property"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// profile is what the --device flags say, in their order.
func (f *simFlags) profile(l *topology.Netlist) (func(*topology.Node, *sma.Config), error) {
	said := make(map[ib.NodeGUID][]func(*sma.Config) bool)
	for _, text := range f.properties {
		if err := addDevice(said, l, text); err != nil {
			return nil, fmt.Errorf("--device %q: %w", text, err)
		}
	}
	return func(n *topology.Node, c *sma.Config) {
		for _, apply := range said[n.GUID] {
			apply(c)
		}
	}, nil
}

// addDevice reads NODE NAME=VALUE...; blanks may stand in the node's name.
func addDevice(said map[ib.NodeGUID][]func(*sma.Config) bool, l *topology.Netlist, text string) error {
	words := strings.Fields(text)
	first := 0
	for first < len(words) && !strings.Contains(words[first], "=") {
		first++
	}
	if first == 0 || first == len(words) {
		return fmt.Errorf("want NODE NAME=VALUE..., as 'blue-1 pkey-nvram=on'")
	}
	nodes, name := l.Nodes, strings.Join(words[:first], " ")
	if name != "*" {
		n, err := l.Find(name)
		if err != nil {
			return err
		}
		nodes = []*topology.Node{n}
	}
	for _, w := range words[first:] {
		apply, err := property.Read(w)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if name != "*" && n.Type != ib.NodeSwitch && !apply(&sma.Config{Ports: make([]sma.PortConfig, 1)}) {
				return fmt.Errorf("%s: %s is no switch", w, n.ID)
			}
			said[n.GUID] = append(said[n.GUID], apply)
		}
	}
	return nil
}
