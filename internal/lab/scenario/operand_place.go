package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Operands reads the words of a statement about a topology.
type Operands struct {
	*testbed.LineArgs
	Topology *topology.Netlist
}

// OperandPlace is a port of a node; hasPort says that the script named the port.
type OperandPlace struct {
	Node    *topology.Node
	Num     ib.PortNum
	HasPort bool
}

func (p OperandPlace) String() string {
	if !p.HasPort {
		return p.Node.ID
	}
	return fmt.Sprintf("%s:%d", p.Node.ID, p.Num)
}

// Entry is the end port that packets to the place reach: the port itself on a
// CA or router, 1 when none was named, and 0 on a switch.
func (p OperandPlace) Entry() ib.PortNum {
	switch {
	case p.Node.Type == ib.NodeSwitch:
		return 0
	case p.HasPort:
		return p.Num
	}
	return 1
}

// Own is the port of a switch that was named, which a modifier has to name too.
func (p OperandPlace) Own() ib.PortNum {
	if p.Node.Type == ib.NodeSwitch {
		return p.Num
	}
	return 0
}

// End is the entry of a place as the stage names it.
func (p OperandPlace) End() observed.Place { return observed.Place{Node: p.Node.GUID, Port: p.Entry()} }

// Exact is the port that was named, and the entry when none was.
func (p OperandPlace) Exact() observed.Place {
	if p.HasPort {
		return observed.Place{Node: p.Node.GUID, Port: p.Num}
	}
	return p.End()
}

// Place takes NODE or NODE:PORT.
func (a *Operands) Place() (OperandPlace, error) {
	w, err := a.Next("a node, or NODE:PORT")
	if err != nil {
		return OperandPlace{}, err
	}
	return a.ToPlace(w, w.Text)
}

func (a *Operands) ToPlace(w testbed.ScriptWord, name string) (OperandPlace, error) {
	if n := a.lookup(name); n != nil {
		return OperandPlace{Node: n}, nil
	}
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return OperandPlace{}, a.noNode(w, name)
	}
	n := a.lookup(name[:i])
	if n == nil {
		return OperandPlace{}, a.noNode(w, name[:i])
	}
	number, err := strconv.ParseUint(name[i+1:], 10, 8)
	low := uint64(1)
	if n.Type == ib.NodeSwitch {
		low = 0
	}
	if err != nil || number < low || number > uint64(n.NumPorts()) {
		return OperandPlace{}, a.Fault(w, "port %q of %s: want %d to %d", name[i+1:], n.ID, low, n.NumPorts())
	}
	return OperandPlace{n, ib.PortNum(number), true}, nil
}

// External takes NODE:PORT of a port that can have a cable.
func (a *Operands) External() (OperandPlace, error) {
	w, err := a.Next("NODE:PORT")
	if err != nil {
		return OperandPlace{}, err
	}
	p, err := a.ToPlace(w, w.Text)
	if err == nil && (!p.HasPort || p.Num == 0) {
		err = a.Fault(w, "%q: want NODE:PORT, a port that can have a cable", w.Text)
	}
	return p, err
}

// Node takes the name of a node.
func (a *Operands) Node() (*topology.Node, error) {
	w, err := a.Next("a node")
	if err != nil {
		return nil, err
	}
	n := a.lookup(w.Text)
	if n == nil {
		return nil, a.noNode(w, w.Text)
	}
	return n, nil
}

// IsNode reports whether a word names a node, with or without something behind a
// colon.
func (a *Operands) IsNode(w testbed.ScriptWord) bool {
	before, _, _ := strings.Cut(w.Text, ":")
	return a.lookup(w.Text) != nil || a.lookup(before) != nil
}

func (a *Operands) lookup(name string) *topology.Node {
	n, err := a.Topology.Find(name)
	if err != nil {
		return nil
	}
	return n
}

// noNode says that a name is nobody's, and what is like it.
func (a *Operands) noNode(w testbed.ScriptWord, name string) error {
	_, err := a.Topology.Find(name)
	return a.Fault(w, "%v; want one of %s", err, a.nodeNames())
}

// maxNamed is how many nodes a message lists.
const maxNamed = 12

func (a *Operands) nodeNames() string {
	var names []string
	for _, n := range a.Topology.Nodes {
		if len(names) == maxNamed {
			names = append(names, "...")
			break
		}
		names = append(names, n.ID)
	}
	return strings.Join(names, ", ")
}
