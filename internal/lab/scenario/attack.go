// This file reads the catalogue of attacks: scenarios that run once for each
// protection profile, with the expected outcome of the attacker's goals under each.

package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// Attack is one story of the catalogue.
type Attack struct {
	Number int
	Title  string
	// Stopped are the profiles under which no goal is reached; under every other
	// all are.
	Stopped []protect.Profile
	// Because says why the attack is not stopped where one might expect it.
	Because string
	// But says which M_Keys hosts hear in spite of that it is stopped; empty for
	// none but their own.
	But string
	// Served are two hosts that reach each other in spite of it; empty for none.
	Served [2]string

	lines []string
}

// AttackProfiles are what each attack is run under.
func AttackProfiles() []protect.Profile {
	return []protect.Profile{protect.None, protect.Basic, protect.Tenant, protect.Strict}
}

// IsAttack reports whether a script is one of an attack: its first statement says so.
func IsAttack(script []byte) bool {
	for line := range strings.Lines(string(script)) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			return words[0] == "attack"
		}
	}
	return false
}

// Parse reads the lines of a script that describe the attack as a whole: attack, stopped,
// served, but and because. The compiler for a profile reads the others. The error is a
// *testbed.ScriptFault.
func Parse(name string, script []byte) (*Attack, error) {
	lines, err := testbed.Lines(name, script)
	if err != nil {
		return nil, err
	}
	a := &Attack{lines: strings.Split(string(script), "\n")}
	stopped := false
	for i := range lines {
		l := &lines[i]
		r := &testbed.LineArgs{Name: name, Line: l, Words: l.Words}
		w, _ := r.Next("a statement") // a line has a word
		switch {
		case i == 0 && (w.Text != "attack" || w.Quoted):
			return nil, r.Fault(w, "%q: want attack NUMBER \"TITLE\" first", w.Text)
		case w.Quoted:
			continue
		case w.Text == "attack":
			if i > 0 {
				return nil, r.Fault(w, "attack: want it once")
			}
			err = a.title(r)
		case w.Text == "stopped":
			stopped = true
			err = a.stopped(r)
		case w.Text == "served":
			for i := range a.Served {
				if err == nil {
					host, e := r.Next("two hosts")
					a.Served[i], err = host.Text, e
				}
			}
		case w.Text == "but":
			what, e := r.Next("in quotation marks, which keys are heard")
			a.But, err = what.Text, e
		case w.Text == "because":
			why, e := r.Next("a reason in quotation marks")
			a.Because, err = why.Text, e
		case w.Text == "under":
			_, err = profiles(r)
			if err == nil && !r.More() {
				err = r.Fault(testbed.ScriptWord{}, "want a statement")
			}
			continue
		default:
			continue
		}
		if err == nil {
			err = r.Done()
		}
		if err != nil {
			return nil, err
		}
		a.lines[l.Number-1] = ""
	}
	if !stopped {
		return nil, &testbed.ScriptFault{Name: name, Line: 1, Column: 1, Text: "want a line such as: stopped tenant strict, or: stopped nowhere"}
	}
	return a, err
}

func (a *Attack) title(r *testbed.LineArgs) error {
	n, err := r.Number("a number", 10)
	if err != nil {
		return err
	}
	t, err := r.Next("a title in quotation marks")
	a.Number, a.Title = int(n), t.Text
	return err
}

func (a *Attack) stopped(r *testbed.LineArgs) error {
	if r.Keyword("nowhere") {
		return nil
	}
	for first := true; first || r.More(); first = false {
		w, err := r.Next("a profile")
		if err != nil {
			return err
		}
		p, err := profile(w.Text)
		if err != nil {
			return r.Fault(w, "%v", err)
		}
		a.Stopped = append(a.Stopped, p)
	}
	return nil
}

// profile reads the name of a profile, none included.
func profile(name string) (protect.Profile, error) {
	if name == protect.None.String() {
		return protect.None, nil
	}
	return protect.Parse(name)
}

// profiles takes the profiles of an under line, with commas between them.
func profiles(r *testbed.LineArgs) (out []protect.Profile, err error) {
	w, err := r.Next("profiles, as none,basic")
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Split(w.Text, ",") {
		p, err := profile(name)
		if err != nil {
			return nil, r.Fault(w, "%v", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// Under is the script as it is compiled for a profile, every statement in its
// place: without the lines of other profiles, and, where the attack is stopped,
// with the expectations that who is to be served is, and that no host has heard a
// key that is not its own.
func (a *Attack) Under(p protect.Profile) []byte {
	lines := slices.Clone(a.lines)
	for i, line := range lines {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "under" {
			continue
		}
		if !slices.Contains(strings.Split(words[1], ","), p.String()) {
			lines[i] = ""
			continue
		}
		head := strings.Index(line, words[1]) + len(words[1])
		lines[i] = strings.Repeat(" ", head) + line[head:]
	}
	if slices.Contains(a.Stopped, p) && a.Served[0] != "" {
		lines = append(lines, fmt.Sprintf("qp served-from on %s service=UD qkey=9 ; qp served-to on %s service=UD qkey=9 ; "+
			"send served-from -> served-to ; expect received served-to 1", a.Served[0], a.Served[1]))
	}
	if slices.Contains(a.Stopped, p) && p >= protect.Tenant && a.But == "" {
		lines = append(lines, "expect keys safe")
	}
	return []byte(strings.Join(lines, "\n"))
}

// AttackOutcome is the outcome of an attacker's goals.
type AttackOutcome uint8

// The outcomes. An attack that reaches some goals and not others has neither
// succeeded nor been stopped.
const (
	Stopped AttackOutcome = iota
	Partly
	Succeeded
)

// String says it as the table does.
func (o AttackOutcome) String() string {
	switch o {
	case Stopped:
		return "stopped"
	case Partly:
		return "partly"
	case Succeeded:
		return "succeeds"
	}
	return "outcome " + strconv.Itoa(int(o))
}

// Expected is what is to become of the attack under a profile.
func (a *Attack) Expected(p protect.Profile) AttackOutcome {
	if slices.Contains(a.Stopped, p) {
		return Stopped
	}
	return Succeeded
}

// Judge returns the outcome of a run. The error names an expectation of the script, other
// than a goal, that did not hold.
func Judge(r *Report) (AttackOutcome, error) {
	reached := 0
	for _, g := range r.Goals {
		if g.Reached {
			reached++
		}
	}
	o := Partly
	switch reached {
	case 0:
		o = Stopped
	case len(r.Goals):
		o = Succeeded
	}
	if len(r.Goals) == 0 {
		return o, fmt.Errorf("%s: want a goal line", r.Name)
	}
	if r.Aborted != 0 {
		return o, fmt.Errorf("%s:%d: aborted", r.Name, r.Aborted)
	}
	if !r.Good() {
		f := r.Failures[0]
		return o, fmt.Errorf("%s:%d: %s: expected %s, got %s", r.Name, f.Line, f.Statement, f.Expected, f.Got)
	}
	return o, nil
}
