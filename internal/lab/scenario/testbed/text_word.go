package testbed

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a script.
const (
	MaxScript  = 1 << 20 // bytes of a script
	MaxLine    = 4096    // bytes of a line
	MaxLines   = 20_000  // lines of a script
	MaxAdvance = 365 * 24 * time.Hour
)

// ScriptFault is something wrong with a script: where it stands, what it is and what
// was expected there.
type ScriptFault struct {
	Name         string // of the script
	Line, Column int    // from 1; a column is a character
	Text         string
}

// Error prints place and text.
func (f *ScriptFault) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", f.Name, f.Line, f.Column, f.Text)
}

// ScriptWord is a word of a line.
type ScriptWord struct {
	Text   string
	Column int  // 0 stands for the end of the line
	Quoted bool // it had quotation marks: text, and never a keyword
}

// ScriptLine is a line with at least one word.
type ScriptLine struct {
	Number int
	Text   string
	Words  []ScriptWord
	End    int // column behind the last character
}

// split cuts a line into words. Blanks separate them, quotation marks hold
// blanks together, and # at the beginning of a word begins a remark.
func split(text string) (words []ScriptWord, badColumn int, bad string) {
	column := 0
	inWord, inQuotes := false, false
	var w ScriptWord
	var b strings.Builder
	flush := func() {
		if inWord {
			w.Text = b.String()
			words = append(words, w)
			b.Reset()
			inWord = false
		}
	}
	for _, r := range text {
		column++
		switch {
		case r == utf8.RuneError:
			return nil, column, "want UTF-8"
		case r < ' ' && r != '\t' && r != '\r':
			return nil, column, fmt.Sprintf("control character %#02x: want text", r)
		case inQuotes:
			if r == '"' {
				inQuotes = false
			} else {
				b.WriteRune(r)
			}
		case r == ' ' || r == '\t' || r == '\r':
			flush()
		case r == '#' && !inWord:
			return words, 0, ""
		default:
			if !inWord {
				inWord, w = true, ScriptWord{Column: column}
			}
			if r == '"' {
				inQuotes, w.Quoted = true, true
			} else {
				b.WriteRune(r)
			}
		}
	}
	if inQuotes {
		return nil, w.Column, "no closing quotation mark in this line"
	}
	flush()
	return words, 0, ""
}

// LineArgs reads the words of a statement from left to right.
type LineArgs struct {
	Name  string // of the script
	Line  *ScriptLine
	Words []ScriptWord // not taken yet
}

// Fault is an error at a word; one without a column stands at the line's end.
func (a *LineArgs) Fault(w ScriptWord, format string, values ...any) error {
	column := w.Column
	if column == 0 {
		column = a.Line.End
	}
	return &ScriptFault{Name: a.Name, Line: a.Line.Number, Column: column, Text: fmt.Sprintf(format, values...)}
}

// More reports whether words are left.
func (a *LineArgs) More() bool { return len(a.Words) > 0 }

// Peek is the next word without taking it, empty at the end of the line.
func (a *LineArgs) Peek() string {
	if a.More() && !a.Words[0].Quoted {
		return a.Words[0].Text
	}
	return ""
}

// Next takes a word; what says what it should be.
func (a *LineArgs) Next(what string) (ScriptWord, error) {
	if !a.More() {
		return ScriptWord{}, a.Fault(ScriptWord{}, "the line ends: want %s", what)
	}
	w := a.Words[0]
	a.Words = a.Words[1:]
	return w, nil
}

// Keyword takes the next word if it is this one.
func (a *LineArgs) Keyword(text string) bool {
	if a.Peek() != text {
		return false
	}
	a.Words = a.Words[1:]
	return true
}

// Done refuses what is left of a line.
func (a *LineArgs) Done() error {
	if a.More() {
		return a.Fault(a.Words[0], "%q: want the end of the line", a.Words[0].Text)
	}
	return nil
}

// Pick takes one of some words.
func (a *LineArgs) Pick(choices ...string) (string, error) {
	w, err := a.Next(strings.Join(choices, " or "))
	if err != nil {
		return "", err
	}
	for _, c := range choices {
		if w.Text == c {
			return c, nil
		}
	}
	return "", a.Fault(w, "%q: want %s", w.Text, strings.Join(choices, " or "))
}

// Number takes a number of so many bits.
func (a *LineArgs) Number(what string, width int) (uint64, error) {
	w, err := a.Next(what)
	if err != nil {
		return 0, err
	}
	return a.ToNumber(w, w.Text, what, width)
}

// ToNumber reads a number of so many bits.
func (a *LineArgs) ToNumber(w ScriptWord, text, what string, width int) (uint64, error) {
	n, err := ParseNumber(text)
	if err != nil || bits.Len64(n) > width {
		return 0, a.Fault(w, "%s %q: want a number of %d bits, as 5, 0x1F or 0b101", what, text, width)
	}
	return n, nil
}

// ParseNumber reads a number: decimal, 0x or 0b.
func ParseNumber(text string) (uint64, error) {
	if len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' {
		return 0, fmt.Errorf("%q: want no leading zero", text) // neither octal nor a guess
	}
	return strconv.ParseUint(text, 0, 64)
}

// Duration takes a time with its unit.
func (a *LineArgs) Duration(what string) (time.Duration, error) {
	w, err := a.Next(what)
	if err != nil {
		return 0, err
	}
	return a.ToDuration(w, w.Text, what)
}

// ToDuration reads a time with its unit.
func (a *LineArgs) ToDuration(w ScriptWord, text, what string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > MaxAdvance {
		return 0, a.Fault(w, "%s %q: want a time with its unit up to %v, as 4096ns, 10us, 10ms or 2s", what, text, MaxAdvance)
	}
	return d, nil
}

// ToOnOff reads a switch.
func (a *LineArgs) ToOnOff(w ScriptWord, text, what string) (bool, error) {
	switch text {
	case "on", "true", "1":
		return true, nil
	case "off", "false", "0":
		return false, nil
	}
	return false, a.Fault(w, "%s %q: want on or off", what, text)
}

// ToShare reads a probability.
func (a *LineArgs) ToShare(w ScriptWord, text, what string) (float64, error) {
	p, err := strconv.ParseFloat(text, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, a.Fault(w, "%s %q: want a share from 0 to 1, as 0.05", what, text)
	}
	return p, nil
}

// ScriptSetting is name=value.
type ScriptSetting struct {
	ScriptWord
	Name, Value string
	Relation    string // =, !=, >=, <=
}

// relations in the order in which they are looked for.
var relations = []string{"!=", ">=", "<=", "="}

// Setting takes a name=value word; only = unless comparisons are wanted.
func (a *LineArgs) Setting(what string, comparisons bool) (ScriptSetting, error) {
	w, err := a.Next(what)
	if err != nil {
		return ScriptSetting{}, err
	}
	for _, r := range relations {
		name, value, ok := strings.Cut(w.Text, r)
		if ok && name != "" && (comparisons || r == "=") {
			return ScriptSetting{w, name, value, r}, nil
		}
	}
	return ScriptSetting{}, a.Fault(w, "%q: want %s", w.Text, what)
}

// Lines cuts a script into the lines that have words.
func Lines(name string, script []byte) ([]ScriptLine, error) {
	if len(script) > MaxScript {
		return nil, &ScriptFault{name, 1, 1, fmt.Sprintf("%d bytes: want a script of up to %d", len(script), MaxScript)}
	}
	var lines []ScriptLine
	for i, text := range strings.Split(string(script), "\n") {
		number := i + 1
		if i >= MaxLines || len(text) > MaxLine {
			return nil, &ScriptFault{name, number, 1, fmt.Sprintf("want up to %d lines of up to %d bytes", MaxLines, MaxLine)}
		}
		words, column, bad := split(text)
		if bad != "" {
			return nil, &ScriptFault{name, number, column, bad}
		}
		if len(words) > 0 {
			end := len([]rune(strings.TrimRight(text, " \t\r"))) + 1
			lines = append(lines, ScriptLine{number, strings.TrimSpace(text), words, end})
		}
	}
	return lines, nil
}
