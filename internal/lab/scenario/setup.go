package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/property"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// setup is what stands before a story begins.
type setup struct {
	testbed.Config
	// profiles are what device lines say, by node, in their order.
	profiles map[ib.NodeGUID][]func(*sma.Config)
}

// DefaultTimeout is how long a request waits for its answer when the script
// says nothing else.
const DefaultTimeout = 10 * time.Millisecond

func defaultSetup(seed uint64) setup {
	c := fabric.DefaultConfig()
	c.Seed = max(seed, 1)
	return setup{Config: testbed.Config{Fabric: c, Timeout: DefaultTimeout, Repress: true}, profiles: map[ib.NodeGUID][]func(*sma.Config){}}
}

func settingVerbs() []verb {
	return []verb{
		{"fabric", "FILE | GENERATOR | demo | { ... }", "the topology: a file, a generator, or ibsim's own text up to a line with }", true, compileFabric},
		{"seed", "N", "where all chance comes from", true, compileSeed},
		{"option", "NAME=VALUE...", "delays, loss and time-out of the fabric", true, compileOption},
		{"device", "NODE|* NAME=VALUE...", "what a device is capable of", true, compileDevice},
	}
}

func compileSeed(a *args) (action, error) {
	n, err := a.Number("seed", 64)
	a.setup.Fabric.Seed = n
	return nil, err
}

// compileFabric reads the topology. An inline one is the text of the lines up
// to the one that is a closing brace.
func compileFabric(a *args) (action, error) {
	w, err := a.Next("a file, a generator, demo or {")
	if err != nil {
		return nil, err
	}
	if len(a.setup.profiles) > 0 {
		return nil, a.Fault(w, "want the fabric line before device lines")
	}
	switch {
	case w.Text == "{" && !w.Quoted:
		a.topology, err = a.inline(w)
		return nil, err
	case w.Text == "demo" && !w.Quoted:
		a.topology = topology.Demo()
	case a.source.Load == nil:
		return nil, a.Fault(w, "%q: want demo or { here, since no files are read", w.Text)
	default:
		topology, err := a.source.Load(w.Text)
		if err != nil {
			return nil, a.Fault(w, "%v", err)
		}
		a.topology = topology
	}
	return nil, nil
}

func (a *args) inline(w testbed.ScriptWord) (*topology.Netlist, error) {
	if err := a.Done(); err != nil {
		return nil, err
	}
	all := strings.Split(string(a.source.Text), "\n")
	first := a.Line.Number // index of the line after this one
	for i := first; i < len(all); i++ {
		if strings.TrimSpace(all[i]) != "}" {
			continue
		}
		below := strings.Repeat("\n", first) + strings.Join(all[first:i], "\n") + "\n" // keeps line numbers
		l, _, err := topology.Read([]byte(below), a.source.Name, nil)
		for a.at < len(a.lines) && a.lines[a.at].Number <= i+1 {
			a.at++
		}
		return l, a.wrapTopology(w, err)
	}
	return nil, a.Fault(w, "{: want a line with } and nothing else below")
}

// wrapTopology makes a Fault of what is wrong with a topology.
func (a *args) wrapTopology(w testbed.ScriptWord, err error) error {
	if err == nil {
		return nil
	}
	var fault *topology.Fault
	if errors.As(err, &fault) && fault.Position.Line > 0 {
		return &testbed.ScriptFault{Name: a.source.Name, Line: fault.Position.Line, Column: 1, Text: fault.Err.Error()}
	}
	return a.Fault(w, "%v", err)
}

func compileOption(a *args) (action, error) {
	for first := true; first || a.More(); first = false {
		s, err := a.Setting("NAME=VALUE, as train-delay=2ms", false)
		if err != nil {
			return nil, err
		}
		c := &a.setup.Fabric
		durations := map[string]*time.Duration{
			"hop-delay": &c.HopDelay, "agent-delay": &c.AgentDelay, "jitter": &c.Jitter,
			"train-delay": &c.TrainDelay, "self-test": &c.SelfTest, "timeout": &a.setup.Timeout,
		}
		switch to, ok := durations[s.Name]; {
		case ok:
			*to, err = a.ToDuration(s.ScriptWord, s.Value, s.Name)
		case s.Name == "loss":
			c.Loss, err = a.ToShare(s.ScriptWord, s.Value, s.Name)
		case s.Name == "repress":
			a.setup.Repress, err = a.ToOnOff(s.ScriptWord, s.Value, s.Name)
		default:
			err = a.Fault(s.ScriptWord, "%q: want hop-delay, agent-delay, jitter, train-delay, self-test, timeout, loss or repress", s.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func compileDevice(a *args) (action, error) {
	if a.topology == nil {
		return nil, a.Fault(testbed.ScriptWord{}, "want a fabric line before device lines")
	}
	nodes := a.topology.Nodes
	all := a.Keyword("*")
	if !all {
		n, err := a.Node()
		if err != nil {
			return nil, err
		}
		nodes = []*topology.Node{n}
	}
	known := property.All()
	for first := true; first || a.More(); first = false {
		s, err := a.Setting("NAME=VALUE, as partition-cap=5", false)
		if err != nil {
			return nil, err
		}
		t, ok := known[s.Name]
		if !ok {
			return nil, a.Fault(s.ScriptWord, "%q: want one of %s", s.Name, AttributeKeys(known))
		}
		var number uint64
		if t.Bits == 1 {
			on, err := a.ToOnOff(s.ScriptWord, s.Value, s.Name)
			if err != nil {
				return nil, err
			}
			if on {
				number = 1
			}
		} else if number, err = a.ToNumber(s.ScriptWord, s.Value, s.Name, t.Bits); err != nil {
			return nil, err
		}
		if err := a.give(nodes, t, number, all); err != nil {
			return nil, a.Fault(s.ScriptWord, "%s: %v", s.Text, err)
		}
	}
	return nil, nil
}

// give adds a property to the profiles of some nodes.
func (a *args) give(nodes []*topology.Node, t property.Property, number uint64, all bool) error {
	for _, n := range nodes {
		if !all && n.Type != ib.NodeSwitch && !t.Apply(&sma.Config{Ports: make([]sma.PortConfig, 1)}, number) {
			return fmt.Errorf("%s is no switch", n.ID)
		}
		a.setup.profiles[n.GUID] = append(a.setup.profiles[n.GUID], func(c *sma.Config) { t.Apply(c, number) })
	}
	return nil
}

// profile makes what the device lines say of a node.
func (s *setup) profile(n *topology.Node, c *sma.Config) {
	for _, apply := range s.profiles[n.GUID] {
		apply(c)
	}
}

// Watch lets hooks see all packets of the runs to come.
func (s *Script) Watch(c fabric.Config) {
	s.setup.Config.Fabric.Trace, s.setup.Config.Fabric.DataTrace = c.Trace, c.DataTrace
}
