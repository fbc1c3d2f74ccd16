package scenario

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Source is a script and what it needs.
type Source struct {
	Name string // for messages
	Text []byte
	// Fabric is the topology that stands when the script names none.
	Fabric *topology.Netlist
	// Seed stands when the script names none.
	Seed uint64
	// Load finds the topology that a fabric line names, and Read a file that a
	// warden line names; a script that needs one that is nil is refused.
	Load func(name string) (*topology.Netlist, error)
	Read func(name string) ([]byte, error)
	// Profile is that of wardens of which the script says none.
	Profile protect.Profile
}

// Script is a script that can be run, any number of times.
type Script struct {
	name     string
	topology *topology.Netlist
	setup    setup
	steps    []step
	rules    []Rule
	suspects []ib.NodeGUID
	profile  protect.Profile
}

// Rules lists the rule lines of a script.
func (s *Script) Rules() []Rule { return slices.Clone(s.rules) }

// step is a statement ready to run.
type step struct {
	line *testbed.ScriptLine
	rule int // index of the rule line that it stands under, -1 before the first
	run  action
	// judges reports whether the statement says what was expected of the last
	// request.
	judges bool
	// expects reports whether it is an expectation.
	expects bool
}

// action does what a statement says. An error ends the run: the script asks
// for what cannot be done.
type action func(*world) error

// args reads the words of a statement.
type args struct {
	*compiler
	*Operands
}

// compiler turns lines into steps.
type compiler struct {
	source   Source
	lines    []testbed.ScriptLine
	at       int // of the line after the one that is compiled
	topology *topology.Netlist
	setup    setup
	steps    []step
	rules    []Rule
	begun    bool // a statement that is no setting was seen
	// lastTarget is what the last get or set line is about.
	lastTarget *OperandTarget
	// lastGeneral is what the last sa or pm line asks.
	lastGeneral *HostRequest
	qps         map[string]endpoint.Service // of queue pairs that were named
	suspects    []ib.NodeGUID               // whose knowledge of keys is asked for
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
	for _, group := range [][]verb{settingVerbs(), happeningVerbs(), requestVerbs(), rootVerbs(), trafficVerbs(), wardenVerbs(), expectVerbs()} {
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

// Compile reads a script. The error is a *testbed.ScriptFault, which names line, column and
// what was expected.
func Compile(source Source) (*Script, error) {
	c := &compiler{source: source, topology: source.Fabric, setup: defaultSetup(source.Seed), qps: map[string]endpoint.Service{}}
	var err error
	if c.lines, err = testbed.Lines(source.Name, source.Text); err != nil {
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
		return nil, &testbed.ScriptFault{Name: source.Name, Line: 1, Column: 1, Text: "no fabric: want a line such as fabric fattree,radix=4"}
	}
	if err := c.everyRuleExpects(); err != nil {
		return nil, err
	}
	s := &Script{name: source.Name, topology: c.topology, setup: c.setup, steps: c.steps, rules: c.rules, suspects: c.suspects, profile: source.Profile}
	if _, err := s.begin(); err != nil {
		return nil, &testbed.ScriptFault{Name: source.Name, Line: 1, Column: 1, Text: fmt.Sprintf("the fabric: %v", err)}
	}
	return s, nil
}

// statement compiles a line: prefixes, and statements with a semicolon between
// them, which the prefixes are about together.
func (c *compiler) statement(l *testbed.ScriptLine, table map[string]verb) error {
	a := &args{c, &Operands{LineArgs: &testbed.LineArgs{Name: c.source.Name, Line: l, Words: l.Words}, Topology: c.topology}}
	wrap, err := a.prefixed()
	if err != nil {
		return err
	}
	st := step{line: l, rule: len(c.rules) - 1}
	var runs []action
	for rest := a.Words; ; {
		end := slices.IndexFunc(rest, func(w testbed.ScriptWord) bool { return w.Text == ";" && !w.Quoted })
		if a.Words = rest; end >= 0 {
			a.Words = rest[:end]
		}
		run, err := c.one(a, table, &st)
		if err != nil {
			return err
		}
		if run != nil {
			runs = append(runs, run)
		}
		if end < 0 {
			break
		}
		rest = rest[end+1:]
	}
	if len(runs) > 0 {
		st.run = wrap(inTurn(runs))
		c.steps = append(c.steps, st)
	}
	return nil
}

// inTurn does one thing after the other.
func inTurn(runs []action) action {
	if len(runs) == 1 {
		return runs[0]
	}
	return func(w *world) error {
		for _, run := range runs {
			w.settleLast()
			if err := run(w); err != nil {
				return err
			}
		}
		return nil
	}
}

// one compiles one statement and nothing behind it. A setting or a rule has no
// action.
func (c *compiler) one(a *args, table map[string]verb, st *step) (action, error) {
	w, err := a.Next("a statement")
	if err != nil {
		return nil, err
	}
	if w.Text == "rule" && !w.Quoted {
		err := c.rule(a)
		st.rule = len(c.rules) - 1
		return nil, err
	}
	v, ok := table[w.Text]
	if !ok || w.Quoted {
		all := slices.Sorted(maps.Keys(table))
		return nil, a.Fault(w, "%q is no statement%s; want one of rule, %s", w.Text, names.DidYouMean(w.Text, all), strings.Join(all, ", "))
	}
	switch {
	case v.setting && c.begun:
		return nil, a.Fault(w, "%s: want it before anything happens", v.name)
	case !v.setting:
		c.begun = true
		if c.topology == nil {
			return nil, a.Fault(w, "%s: want a fabric line before it", v.name)
		}
	}
	rest := a.Words
	run, err := v.compile(a)
	if err == nil {
		err = a.Done()
	}
	var f *testbed.ScriptFault
	if err != nil && !errors.As(err, &f) {
		err = a.Fault(w, "%v", err)
	}
	if run != nil {
		asks := v.name == "expect" || v.name == "goal"
		st.judges = asks && judges(rest)
		st.expects = st.expects || v.name == "expect"
	}
	return run, err
}

var ruleID = regexp.MustCompile(`^[A-Z]{2}-[0-9]{2,3}$`)

// rule reads a rule line: ids, and a text in quotation marks if one is wanted.
func (c *compiler) rule(a *args) error {
	r := Rule{Line: a.Line.Number}
	for a.More() && !a.Words[0].Quoted {
		w, _ := a.Next("")
		id := strings.TrimSuffix(w.Text, ",")
		if !ruleID.MatchString(id) {
			return a.Fault(w, "%q: want the id of a rule, as PK-12, or a text in quotation marks", w.Text)
		}
		r.IDs = append(r.IDs, id)
	}
	if len(r.IDs) == 0 {
		return a.Fault(testbed.ScriptWord{}, "want at least one id, as PK-12")
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
			return &testbed.ScriptFault{Name: c.source.Name, Line: r.Line, Column: 1, Text: fmt.Sprintf("rule %s: want an expect line under it", strings.Join(r.IDs, " "))}
		}
	}
	return nil
}
