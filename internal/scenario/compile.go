package scenario

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/netlist"
	"github.com/ibwarden/ibwarden/internal/scenario/report"
	"github.com/ibwarden/ibwarden/internal/scenario/stage"
	"github.com/ibwarden/ibwarden/internal/scenario/text"
)

// Source is a script and what it needs.
type Source struct {
	Name string // for messages
	Text []byte
	// Fabric is the topology that stands when the script names none.
	Fabric *netlist.Netlist
	// Seed stands when the script names none.
	Seed uint64
	// Load finds the topology that a fabric line names, and Read a file that a
	// warden line names; a script that needs one that is nil is refused.
	Load func(name string) (*netlist.Netlist, error)
	Read func(name string) ([]byte, error)
}

// Script is a script that can be run, any number of times.
type Script struct {
	name     string
	topology *netlist.Netlist
	setup    setup
	steps    []step
	rules    []report.Rule
}

// Rules lists the rule lines of a script.
func (s *Script) Rules() []report.Rule { return slices.Clone(s.rules) }

// step is a statement ready to run.
type step struct {
	line *text.Line
	rule int // index of the rule line that it stands under, -1 before the first
	run  action
	// judges tells that the statement says what was expected of the last
	// request.
	judges bool
	// expects tells that it is an expectation.
	expects bool
}

// action does what a statement says. An error ends the run: the script asks
// for what cannot be done.
type action func(*world) error

// args reads the words of a statement.
type args struct {
	*compiler
	*text.Args
}

// compiler turns lines into steps.
type compiler struct {
	source   Source
	lines    []text.Line
	at       int // of the line after the one that is compiled
	topology *netlist.Netlist
	setup    setup
	steps    []step
	rules    []report.Rule
	begun    bool // a statement that is no setting was seen
	// lastTarget is what the last get or set line is about.
	lastTarget *target
	qps        map[string]bool // queue pairs that were named
}

// verb is a kind of statement.
type verb struct {
	name, arguments, about string
	// setting: it stands before all that happens.
	setting bool
	compile func(*args) (action, error)
}

// verbs are all statements, in the order of the documentation.
func verbs() []verb {
	var all []verb
	for _, group := range [][]verb{settingVerbs(), happeningVerbs(), requestVerbs(), trafficVerbs(), wardenVerbs(), expectVerbs()} {
		all = append(all, group...)
	}
	return all
}

// Usage lists every statement of the language: its name, its arguments and
// what it is for.
func Usage() [][3]string {
	var out [][3]string
	for _, v := range verbs() {
		out = append(out, [3]string{v.name, v.arguments, v.about})
	}
	return out
}

// Compile reads a script. The error is a *text.Fault, which names line, column and
// what was expected.
func Compile(source Source) (*Script, error) {
	c := &compiler{source: source, topology: source.Fabric, setup: defaultSetup(source.Seed), qps: map[string]bool{}}
	var err error
	if c.lines, err = text.Lines(source.Name, source.Text); err != nil {
		return nil, err
	}
	table := make(map[string]verb)
	for _, v := range verbs() {
		table[v.name] = v
	}
	for c.at < len(c.lines) {
		l := &c.lines[c.at]
		c.at++
		if err := c.statement(l, table); err != nil {
			return nil, err
		}
	}
	if c.topology == nil {
		return nil, &text.Fault{Name: source.Name, Line: 1, Column: 1, Text: "no fabric: want a line such as fabric fattree,radix=4"}
	}
	if err := c.everyRuleExpects(); err != nil {
		return nil, err
	}
	s := &Script{name: source.Name, topology: c.topology, setup: c.setup, steps: c.steps, rules: c.rules}
	if _, err := s.begin(); err != nil {
		return nil, &text.Fault{Name: source.Name, Line: 1, Column: 1, Text: fmt.Sprintf("the fabric: %v", err)}
	}
	return s, nil
}

func (c *compiler) statement(l *text.Line, table map[string]verb) error {
	a := &args{c, &text.Args{Name: c.source.Name, Line: l, Words: l.Words}}
	w, _ := a.Next("a statement") // a line has a word
	if w.Text == "rule" && !w.Quoted {
		return c.rule(a)
	}
	v, ok := table[w.Text]
	if !ok || w.Quoted {
		return a.Fault(w, "%q: want one of rule, %s", w.Text, strings.Join(slices.Sorted(maps.Keys(table)), ", "))
	}
	switch {
	case v.setting && c.begun:
		return a.Fault(w, "%s: want it before anything happens", v.name)
	case !v.setting:
		c.begun = true
		if c.topology == nil {
			return a.Fault(w, "%s: want a fabric line before it", v.name)
		}
	}
	run, err := v.compile(a)
	if err == nil {
		err = a.Done()
	}
	if err != nil {
		var f *text.Fault
		if !errors.As(err, &f) {
			err = a.Fault(w, "%v", err)
		}
		return err
	}
	if run != nil {
		expects := v.name == "expect"
		c.steps = append(c.steps, step{l, len(c.rules) - 1, run, expects && judges(l.Words[1:]), expects})
	}
	return nil
}

var ruleID = regexp.MustCompile(`^[A-Z]{2}-[0-9]{2,3}$`)

// rule reads a rule line: ids, and a text in quotation marks if one is wanted.
func (c *compiler) rule(a *args) error {
	r := report.Rule{Line: a.Line.Number}
	for a.More() && !a.Words[0].Quoted {
		w, _ := a.Next("")
		id := strings.TrimSuffix(w.Text, ",")
		if !ruleID.MatchString(id) {
			return a.Fault(w, "%q: want the id of a rule, as PK-12, or a text in quotation marks", w.Text)
		}
		r.IDs = append(r.IDs, id)
	}
	if len(r.IDs) == 0 {
		return a.Fault(text.Word{}, "want at least one id, as PK-12")
	}
	if a.More() {
		w, _ := a.Next("")
		r.Text = w.Text
	}
	c.rules = append(c.rules, r)
	return a.Done()
}

// everyRuleExpects refuses a rule under which nothing is expected: it would
// look shown and would not be.
func (c *compiler) everyRuleExpects() error {
	counts := make([]int, len(c.rules))
	for _, s := range c.steps {
		if s.expects && s.rule >= 0 {
			counts[s.rule]++
		}
	}
	for i, r := range c.rules {
		if counts[i] == 0 {
			return &text.Fault{Name: c.source.Name, Line: r.Line, Column: 1, Text: fmt.Sprintf("rule %s: want an expect line under it", strings.Join(r.IDs, " "))}
		}
	}
	return nil
}

// place is a port of a node; hasPort tells that the script named the port.
type place struct {
	node    *netlist.Node
	port    ib.PortNum
	hasPort bool
}

func (p place) String() string {
	if !p.hasPort {
		return p.node.ID
	}
	return fmt.Sprintf("%s:%d", p.node.ID, p.port)
}

// entry is the end port that packets to the place reach: the port itself on a
// CA or router, 1 when none was named, and 0 on a switch.
func (p place) entry() ib.PortNum {
	switch {
	case p.node.Type == ib.NodeSwitch:
		return 0
	case p.hasPort:
		return p.port
	}
	return 1
}

// own is the port of a switch that was named, which a modifier has to name too.
func (p place) own() ib.PortNum {
	if p.node.Type == ib.NodeSwitch {
		return p.port
	}
	return 0
}

// end is the entry of a place as the stage names it.
func (p place) end() stage.Port { return stage.Port{Node: p.node.GUID, Num: p.entry()} }

// exact is the port that was named, and the entry when none was.
func (p place) exact() stage.Port {
	if p.hasPort {
		return stage.Port{Node: p.node.GUID, Num: p.port}
	}
	return p.end()
}

// place takes NODE or NODE:PORT.
func (a *args) place() (place, error) {
	w, err := a.Next("a node, or NODE:PORT")
	if err != nil {
		return place{}, err
	}
	return a.toPlace(w, w.Text)
}

func (a *args) toPlace(w text.Word, name string) (place, error) {
	if n := a.lookup(name); n != nil {
		return place{node: n}, nil
	}
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return place{}, a.Fault(w, "%q: no such node; want one of %s", name, a.nodeNames())
	}
	n := a.lookup(name[:i])
	if n == nil {
		return place{}, a.Fault(w, "%q: no such node; want one of %s", name[:i], a.nodeNames())
	}
	number, err := strconv.ParseUint(name[i+1:], 10, 8)
	low := uint64(1)
	if n.Type == ib.NodeSwitch {
		low = 0
	}
	if err != nil || number < low || number > uint64(n.NumPorts()) {
		return place{}, a.Fault(w, "port %q of %s: want %d to %d", name[i+1:], n.ID, low, n.NumPorts())
	}
	return place{n, ib.PortNum(number), true}, nil
}

// external takes NODE:PORT of a port that can have a cable.
func (a *args) external() (place, error) {
	w, err := a.Next("NODE:PORT")
	if err != nil {
		return place{}, err
	}
	p, err := a.toPlace(w, w.Text)
	if err == nil && (!p.hasPort || p.port == 0) {
		err = a.Fault(w, "%q: want NODE:PORT, a port that can have a cable", w.Text)
	}
	return p, err
}

// node takes the name of a node.
func (a *args) node() (*netlist.Node, error) {
	w, err := a.Next("a node")
	if err != nil {
		return nil, err
	}
	n := a.lookup(w.Text)
	if n == nil {
		return nil, a.Fault(w, "%q: no such node; want one of %s", w.Text, a.nodeNames())
	}
	return n, nil
}

func (c *compiler) lookup(id string) *netlist.Node {
	for _, n := range c.topology.Nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

// maxNamed is how many nodes a message lists.
const maxNamed = 12

func (c *compiler) nodeNames() string {
	var names []string
	for _, n := range c.topology.Nodes {
		if len(names) == maxNamed {
			names = append(names, "...")
			break
		}
		names = append(names, n.ID)
	}
	return strings.Join(names, ", ")
}
