package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// generators by name, with what they make.
var generators = map[string]func(*params) (*builder, error){
	"fattree":   fatTree,
	"torus":     torus,
	"dragonfly": dragonfly,
	"random":    random,
}

// Generate makes the topology that spec describes: a name, then key=value pairs,
// all separated by commas. Every key has a default but those marked with *.
//
//	fattree    radix* (even ports of a switch, all used), levels (2 or 3, default 2),
//	           hosts (default: all that fit; fewer are spread over the leaves), pods
//	           (of 3 levels; default: as many as the radix)
//	torus      x*, y*, z (switches in each direction, z default 1), hosts (on
//	           each switch, default 1)
//	dragonfly  groups*, leafs, spines, hosts (on each leaf), global (links to other
//	           groups from each spine); a dragonfly+ with one link between
//	           every two groups
//	random     seed (default 1), switches (8), hosts (20), ports (of each switch, 36),
//	           extra (links between switches beyond a tree, default one per switch,
//	           as far as ports are left), routers (0), ca-ports (1 to 4, default 1)
//
// Hosts come first in the result, so that a client attaches to one. Node ids are
// readable (L0, SP0, H0_0) and GUIDs are those that ibsim would give, but for
// routers, which begin at 0x300000. The error names every key that is unknown or
// out of range.
func Generate(spec string) (*Netlist, error) {
	name, rest, _ := strings.Cut(spec, ",")
	generate := generators[name]
	if generate == nil {
		return nil, fmt.Errorf("topology %q: want fattree, torus, dragonfly or random, then key=value pairs after commas", name)
	}
	p, err := parseParams(rest)
	var b *builder
	if err == nil {
		b, err = generate(p)
	}
	if err == nil {
		err = b.err
	}
	if err != nil {
		return nil, fmt.Errorf("topology %s: %w", name, err)
	}
	return b.netlist(), nil
}

// params are the key=value pairs of a specification.
type params struct {
	values map[string]string
	known  []string // keys that the generator asked for
	errs   []error
}

func parseParams(s string) (*params, error) {
	p := &params{values: make(map[string]string)}
	if s == "" {
		return p, nil
	}
	for pair := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(pair, "=")
		if _, again := p.values[key]; again {
			return nil, fmt.Errorf("key %q is given twice", key)
		}
		if !ok || key == "" {
			return nil, fmt.Errorf("%q: want key=value", pair)
		}
		p.values[key] = value
	}
	return p, nil
}

// required marks a key without a default.
const required = -1

// number is the value of key, a whole number from lo to hi.
func (p *params) number(key string, def, lo, hi int) int {
	p.known = append(p.known, key)
	text, ok := p.values[key]
	if !ok && def != required {
		return def
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < lo || v > hi {
		given := strconv.Quote(text)
		if !ok {
			given = "not given"
		}
		p.errs = append(p.errs, fmt.Errorf("%s: %s: want a whole number, %d to %d", key, given, lo, hi))
		return lo
	}
	return v
}

// fail adds a fault of one key's value.
func (p *params) fail(key, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(key+": "+format, args...))
}

// check returns all faults, among them keys that no one asked for.
func (p *params) check() error {
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		if !slices.Contains(p.known, key) {
			p.fail(key, "no such key: want %s", strings.Join(p.known, ", "))
		}
	}
	return errors.Join(p.errs...)
}

// fits checks that there is a LID for each CA, router and switch, and that there are not
// too many ports.
func fits(ends, switches, ports int) error {
	if err := ib.CheckLIDs(ends, switches, 0); err != nil {
		return err
	}
	if ports > MaxTotalPorts {
		return fmt.Errorf("%d ports in all: want at most %d", ports, MaxTotalPorts)
	}
	return nil
}

// builder collects nodes. The first error stays.
type builder struct {
	guids guidSequence
	nodes [4][]*Node // by type
	err   error
}

// firstRouterGUID is where generated routers begin. ibsim begins at 0, which is
// no GUID: OpenSM leaves such a node alone.
const firstRouterGUID = 0x30_0000

func newBuilder() *builder {
	b := &builder{guids: newGUIDSequence()}
	b.guids.set(ib.NodeRouter, firstRouterGUID)
	return b
}

// add makes the next node of type t.
func (b *builder) add(t ib.NodeType, ports int, format string, args ...any) *Node {
	n := NewNode(t, fmt.Sprintf(format, args...), b.guids.take(t, ib.PortNum(ports)), ib.PortNum(ports))
	b.nodes[t] = append(b.nodes[t], n)
	return n
}

// link lays a cable.
func (b *builder) link(x *Node, xPort int, y *Node, yPort int) {
	if err := Connect(x, ib.PortNum(xPort), y, ib.PortNum(yPort)); err != nil && b.err == nil {
		b.err = err
	}
}

// host makes a CA with one port and cables it to a port of a switch.
func (b *builder) host(sw *Node, swPort int, format string, args ...any) *Node {
	h := b.add(ib.NodeCA, 1, format, args...)
	b.link(h, 1, sw, swPort)
	return h
}

// netlist is what was built: CAs, switches, routers.
func (b *builder) netlist() *Netlist {
	return &Netlist{Nodes: slices.Concat(b.nodes[ib.NodeCA], b.nodes[ib.NodeSwitch], b.nodes[ib.NodeRouter])}
}
