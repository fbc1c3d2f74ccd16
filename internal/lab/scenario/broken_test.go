package scenario_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/lab/scenario"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

// TestBrokenExpectationsFail breaks every expect line of every script that ships, operand by
// operand: another value, another place, another count, the opposite. Each has to fail then:
// one that does not holds whatever it says.
func TestBrokenExpectationsFail(t *testing.T) {
	for name, script := range stories(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, tried := strings.Split(script, "\n"), 0
			for nth := 0; ; nth++ {
				broken := map[int]string{} // by line, from 1
				for i, line := range lines {
					if v := breaks(line); nth < len(v) {
						broken[i+1] = v[nth]
					}
				}
				if len(broken) == 0 {
					break
				}
				for _, n := range still(t, name, lines, broken) {
					t.Errorf("%s:%d: %q holds, and so does %q", name, n, lines[n-1], broken[n])
				}
				tried += len(broken)
			}
			if tried == 0 {
				t.Error("no expect line could be broken")
			}
		})
	}
}

// atOnce is how many broken lines a run has: fewer than the failures that end one.
const atOnce = 40

// still lists the broken lines that hold. Many are tried in one run; since one may change what
// another is about, those that hold there are tried again alone.
func still(t *testing.T, name string, lines []string, broken map[int]string) (out []int) {
	var all []int
	for n := range broken {
		all = append(all, n)
	}
	slices.Sort(all)
	for batch := range slices.Chunk(all, atOnce) {
		for _, n := range holding(t, name, lines, broken, batch) {
			out = append(out, holding(t, name, lines, broken, []int{n})...)
		}
	}
	return out
}

// holding are those of some lines that do not fail, being broken all together.
func holding(t *testing.T, name string, lines []string, broken map[int]string, which []int) (out []int) {
	changed := slices.Clone(lines)
	for _, n := range which {
		changed[n-1] = broken[n]
	}
	s, err := compile(name, strings.Join(changed, "\n"))
	if err != nil {
		t.Fatalf("%v\n%v", err, which)
	}
	r, err := s.Run()
	if err != nil {
		t.Fatalf("%v\n%v", err, which)
	}
	for _, n := range which {
		if !slices.ContainsFunc(r.Failures, func(f scenario.Failure) bool { return f.Line == n }) {
			out = append(out, n)
		}
	}
	return out
}

// breaks are the ways in which an expect line is broken; none for another line, and for what
// has no operand.
func breaks(line string) (out []string) {
	words, err := testbed.Lines("", []byte(strings.TrimSpace(line)))
	if err != nil || len(words) != 1 || words[0].Words[0].Text != "expect" {
		return nil
	}
	var w []string
	for _, x := range words[0].Words {
		if x.Quoted {
			x.Text = strconv.Quote(x.Text)
		}
		w = append(w, x.Text)
	}
	change := func(i int, to string) {
		c := slices.Clone(w)
		c[i] = to
		out = append(out, strings.Join(c, " "))
	}
	fields := func(from int) {
		for i := from; i < len(w); i++ {
			if to, ok := otherField(w[i]); ok {
				change(i, to)
			}
		}
	}
	switch w[1] {
	case "status":
		change(2, otherStatus(w[2]))
	case "timeout":
		out = append(out, "expect status ok")
	case "nothing":
		out = append(out, "expect received "+w[2]+" 1")
	case "no":
		if w[2] == "trap" && len(w) > 3 {
			out = append(out, "expect trap "+w[3])
		}
	case "counter":
		change(4, next(w[4]))
	case "trap":
		out = append(out, "expect trap "+next(w[2])) // whose fields are others
		fields(3)
	case "drop":
		change(4, map[bool]string{true: `"MTU"`, false: "lost"}[w[4] == "lost"])
	case "cable":
		out = append(out, "expect no cable "+w[2])
	case "received":
		change(3, next(w[3]))
		knobs(w, 4, change)
	case "qp", "sent":
		knobs(w, 3, change)
	case "requests":
		change(4, map[bool]string{true: "0", false: next(w[4])}[w[4] == "some"])
	case "verdict":
		change(3, map[bool]string{true: "violated", false: "isolated"}[w[3] == "isolated"])
	case "key":
		change(3, map[bool]string{true: "unknown", false: "known"}[w[3] == "known"])
	case "reply":
		switch w[2] {
		case "status":
			change(3, otherStatus(w[3]))
		case "none":
			out = append(out, "expect reply status ok")
		case "records":
			change(3, map[bool]string{true: "0", false: next(w[3])}[w[3] == "some"])
		}
	case "answer":
		fields(2)
	case "refused", "completion", "event", "keys", "heard":
	default:
		fields(3)
	}
	return out
}

// otherStatus is a status that an answer with the given one does not have.
func otherStatus(s string) string {
	if s == "ok" {
		return "0x0004"
	}
	return "ok"
}

// next is another number.
func next(n string) string {
	v, err := strconv.ParseUint(n, 0, 64)
	if err != nil {
		return n
	}
	return fmt.Sprint(v ^ 1)
}

// otherField is a comparison that does not hold where the given one does; one with >= or <=
// and what is not a number has none.
func otherField(f string) (string, bool) {
	for _, x := range []struct{ is, not string }{{"!=", "="}, {">=", "<="}, {"<=", ">="}, {"=", "!="}} {
		name, value, ok := strings.Cut(f, x.is)
		if !ok {
			continue
		}
		if name == "sl" { // the level of a trap is compared for = only
			return name + "=" + next(value), true
		}
		if x.is != ">=" && x.is != "<=" {
			return name + x.not + value, true
		}
		v, err := strconv.ParseUint(value, 0, 64)
		if err != nil || v == 0 && x.is == ">=" {
			return "", false
		}
		return name + x.not + fmt.Sprint(map[bool]uint64{true: v - 1, false: v + 1}[x.is == ">="]), true
	}
	return "", false
}

// knobs breaks the settings from a word on.
func knobs(w []string, from int, change func(int, string)) {
	for i := from; i < len(w); i++ {
		switch name, value, ok := strings.Cut(w[i], "="); {
		case ok && name == "state":
			change(i, name+"="+map[bool]string{true: "RESET", false: "RTS"}[value == "RTS"])
		case ok:
			change(i, name+"="+next(value))
		}
	}
}

// TestAbortedScript: a script that ends early says so, and nothing of what it did not come to
// the end of holds.
func TestAbortedScript(t *testing.T) {
	script := small + "rule PK-01 \"done\"\nexpect B NodeInfo NumPorts=1\nrule PK-02 \"under way\"\nexpect B NodeInfo NumPorts=1\n" +
		"set S1 PortInfo LID=5\nlink S1:1 S1:2\nexpect B NodeInfo NumPorts=1\nrule PK-03 \"later\"\nexpect B NodeInfo NumPorts=1\n"
	s, err := compile("short", script)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run()
	var fault *testbed.ScriptFault
	if !errors.As(err, &fault) || fault.Line != 17 || r.Good() || r.Aborted != 17 {
		t.Fatalf("%v, %+v", err, r)
	}
	want := []string{"holds  line 12   PK-01  done\n", "ABORTS  line 14   PK-02  under way\n", "not run  line 19", "short:17: aborted here, after 2 expectations that held"}
	for _, part := range want {
		if out := printed(r); !strings.Contains(out, part) || strings.Contains(out, "expectations hold;") {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	many := small + "rule PK-01\n" + strings.Repeat("expect B NodeInfo NumPorts=2\n", scenario.MaxFailures+1)
	if s, err = compile("many", many); err != nil {
		t.Fatal(err)
	}
	if r, err = s.Run(); err != nil || r.Aborted == 0 {
		t.Errorf("%v; aborted at line %d, want after %d failures", err, r.Aborted, scenario.MaxFailures)
	}
}
