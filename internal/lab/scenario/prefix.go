package scenario

import (
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

// maxRepeat bounds what one line does.
const maxRepeat = 1 << 16

// Prefixes lists the words that can stand before a statement: name, arguments
// and what it is for.
func Prefixes() [][3]string {
	return [][3]string{
		{"try", "STATEMENT", "whatever its result"},
		{"repeat", "N [every=TIME] STATEMENT", "so many times"},
	}
}

// prefixed takes the words before a statement, and gives what they make of its
// action.
func (a *args) prefixed() (wrap func(action) action, err error) {
	wrap = func(run action) action { return run }
	for {
		outer := wrap
		switch {
		case a.Keyword("try"):
			wrap = func(run action) action { return outer(try(run)) }
		case a.Keyword("repeat"):
			n, err := a.Number("a number of times", 17)
			if err != nil || n < 1 || n > maxRepeat {
				return nil, a.Fault(a.Line.Words[0], "repeat: want a number from 1 to %d", maxRepeat)
			}
			var every time.Duration
			if s, ok := a.keyed("every"); ok {
				if every, err = a.ToDuration(s.ScriptWord, s.Value, s.Name); err != nil {
					return nil, err
				}
			}
			wrap = func(run action) action { return outer(repeat(int(n), every, run)) }
		default:
			return wrap, nil
		}
	}
}

// try forgives a statement everything.
func try(run action) action {
	return func(w *world) error {
		w.trying = true
		_ = run(w) // that it cannot be done is as good as refused
		w.trying = false
		w.forgive()
		return nil
	}
}

// forgive checks the result of the last request, verb and reply.
func (w *world) forgive() {
	if w.last != nil {
		w.last.judged = true
	}
	if w.verb != nil {
		w.verb.judged = true
	}
	if w.reply != nil {
		w.reply.judged = true
	}
}

func repeat(n int, every time.Duration, run action) action {
	return func(w *world) error {
		for i := range n {
			w.settleLast()
			if err := run(w); err != nil {
				return err
			}
			if every > 0 && i+1 < n {
				if err := w.Advance(every); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// compileGoal reads an expectation that an attacker has.
func compileGoal(a *args) (action, error) {
	run, err := compileExpect(a)
	if err != nil {
		return nil, err
	}
	return func(w *world) error {
		w.goal = &Goal{Line: w.step.line.Number, Statement: w.step.line.Text, Reached: true}
		err := run(w)
		if err != nil {
			w.goal.Reached, w.goal.Got = false, err.Error()
		}
		w.report.Goals = append(w.report.Goals, *w.goal)
		w.goal = nil
		return nil
	}, nil
}

// keyed takes the next word if it is a setting of this name.
func (a *args) keyed(name string) (testbed.ScriptSetting, bool) {
	if !strings.HasPrefix(a.Peek(), name+"=") {
		return testbed.ScriptSetting{}, false
	}
	s, err := a.Setting(name+"=", false)
	return s, err == nil
}
