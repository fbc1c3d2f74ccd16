package opensm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibwarden/ibwarden/internal/policy"
)

// ConfSizeMax is the largest opensm.conf that is read, in bytes.
const ConfSizeMax = 1 << 20

// lineMax is the longest line that OpenSM reads whole, in bytes without the line end; it
// takes what follows for another line.
const lineMax = 1022

// null is how OpenSM writes a text that is not set.
const null = "(null)"

// option is one line of opensm.conf with an option.
type option struct {
	line  int
	name  string
	value string // as OpenSM cuts it out
	// overruled is the later line that counts in place of this one; 0 for none.
	overruled int
	// ignored says why OpenSM goes on with what it had; empty where it takes the value.
	ignored string
}

// Conf is an opensm.conf as OpenSM reads it.
type Conf struct {
	path    string
	options []option
	// last is the option in force of each name that the file sets, as its index.
	last map[string]int
}

// ReadConf reads an opensm.conf. The error is a *policy.Error: of text that OpenSM would take
// for something else than what stands there.
func ReadConf(t Text) (*Conf, error) {
	c := &Conf{path: t.Path, last: map[string]int{}}
	var n policy.SourceNotes
	text := n.Clean(t.Data, ConfSizeMax)
	for i, line := range strings.Split(text, "\n") {
		if len(line) > lineMax {
			n.Fault(policy.Pos{Line: i + 1, Column: 1}, fmt.Sprintf("at most %d: OpenSM takes the rest for another line", lineMax), "a line of %d bytes", len(line))
		}
		c.read(i+1, line)
	}
	if err := n.Err(t.Path); err != nil {
		return nil, err
	}
	c.validate()
	return c, nil
}

func (c *Conf) read(number int, line string) {
	line, _, _ = strings.Cut(line, "#")
	line = strings.Trim(line, " \t\r")
	if line == "" {
		return
	}
	o := option{line: number, name: line}
	if at := strings.IndexAny(line, " \t"); at >= 0 {
		o.name, o.value = line[:at], unquote(strings.Trim(line[at:], " \t"))
	}
	s, ok := known[o.name]
	if ok {
		o.ignored = s.unreadable(o.value)
	}
	c.options = append(c.options, o)
	if ok && o.ignored == "" {
		if was, again := c.last[o.name]; again && s.kind != perLevel {
			c.options[was].overruled = number
		}
		c.last[o.name] = len(c.options) - 1
	}
}

// unquote takes off quotes that are around the whole value; one alone is around nothing.
func unquote(v string) string {
	if v == `"` || v == "'" {
		return ""
	}
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		return v[1 : len(v)-1]
	}
	return v
}

// validate finds values that OpenSM reads and then replaces by its default.
func (c *Conf) validate() {
	for name, i := range c.last {
		s, o := known[name], &c.options[i]
		if s.refuses != nil && s.refuses(o.value) {
			o.ignored = "OpenSM does not take this value and uses its default, " + s.def
			delete(c.last, name)
		}
	}
}

// kind is how OpenSM reads a value.
type kind uint8

const (
	text kind = iota
	flag      // TRUE is TRUE, everything else FALSE
	u8
	u16
	u32
	i32 // a high limit
	u64
	perLevel // a service level and a number; each line counts
)

// spec is what is known of an option.
type spec struct {
	name, def string
	kind      kind
	secret    bool
	refuses   func(string) bool // that OpenSM replaces by the default
}

// number reads a number as OpenSM does.
func (s *spec) number(v string) (uint64, bool) {
	if s.kind == i32 {
		return limit(v), true
	}
	bits := map[kind]int{u8: 8, u16: 16, u32: 32, u64: 64}[s.kind]
	digits, negative := strings.CutPrefix(v, "-")
	n, _, ok := policy.ParseNumber(strings.TrimPrefix(digits, "+"))
	if negative {
		return -n, ok && bits == 64 && digits[0] != '+'
	}
	return n, ok && (bits == 64 || n < 1<<bits)
}

// noLimit is a high limit that is not set.
const noLimit = math.MaxUint64

// limit reads a high limit: OpenSM takes as many digits as there are, with 32 bits of the
// number, and everything below 0 for its default.
func limit(v string) uint64 {
	sign := uint64(1)
	switch {
	case strings.HasPrefix(v, "-"):
		sign, v = math.MaxUint64, v[1:]
	case strings.HasPrefix(v, "+"):
		v = v[1:]
	}
	for n := len(v); n > 0; n-- {
		if x, _, ok := policy.ParseNumber(v[:n]); ok {
			if x = uint64(uint32(min(x, math.MaxInt64) * sign)); x <= math.MaxInt32 {
				return x
			}
			return noLimit
		}
	}
	return 0
}

// unreadable says why OpenSM cannot read a value.
func (s *spec) unreadable(v string) string {
	switch s.kind {
	case text, flag, perLevel:
		return ""
	}
	if _, ok := s.number(v); !ok {
		return "OpenSM reads no number of its range here and goes on with what it had"
	}
	return ""
}

// isDefault reports whether a value means the default.
func (s *spec) isDefault(v string) bool {
	switch s.kind {
	case text:
		return v == s.def || v == "" && s.def == null
	case perLevel:
		return strings.Join(strings.Fields(v), " ") == s.def
	case flag:
		return (v == "TRUE") == (s.def == "TRUE")
	}
	a, ok := s.number(v)
	b, _ := s.number(s.def)
	return ok && a == b
}

// value is what is in force of an option.
func (c *Conf) value(name string) string {
	if i, ok := c.last[name]; ok {
		return c.options[i].value
	}
	return known[name].def
}

// isSet reports whether an option has another value in force than OpenSM's default.
func (c *Conf) isSet(name string) bool { return !known[name].isDefault(c.value(name)) }

func (c *Conf) truth(name string) bool { return c.value(name) == "TRUE" }

func (c *Conf) number(name string) uint64 {
	n, _ := known[name].number(c.value(name))
	if most, ok := clamped[name]; ok && n > most.above {
		n = most.to
	}
	return n
}

// clamped are numbers in place of which OpenSM takes another one.
var clamped = map[string]struct{ above, to uint64 }{"m_key_protection_level": {3, 2}}

// text is the value of an option that is a text, empty where it is not set.
func (c *Conf) text(name string) string {
	if v := c.value(name); v != null {
		return v
	}
	return ""
}

// shown is a line of the file without keys.
func (o *option) shown() string {
	s, ok := known[o.name]
	switch {
	case !ok:
		return cut(o.name) // what stands behind a name that nobody knows may be a key
	case s.secret:
		return o.name + " (a key)"
	case o.value == "":
		return o.name
	}
	return cut(o.name + " " + o.value)
}

// shownMax is how much of a line is shown, in bytes.
const shownMax = 120

func cut(s string) string {
	if len(s) <= shownMax {
		return s
	}
	at := shownMax
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + "..."
}

// above refuses numbers above a limit.
func above(limit uint64) func(string) bool {
	return func(v string) bool {
		n, err := strconv.ParseUint(v, 0, 64)
		return err == nil && n > limit
	}
}
