package topology

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// cursor reads one line from left to right. The first failure stays in err,
// with pos where it is; after it, nothing more is read.
type cursor struct {
	text string
	pos  int
	err  error
}

// rest is what was not read yet.
func (c *cursor) rest() string { return c.text[c.pos:] }

// peek is the next byte, 0 at the end of the line.
func (c *cursor) peek() byte {
	if c.pos == len(c.text) {
		return 0
	}
	return c.text[c.pos]
}

// skipBlanks moves to the next byte that is no blank and reports whether it
// moved.
func (c *cursor) skipBlanks() bool {
	start := c.pos
	for c.err == nil && (c.peek() == ' ' || c.peek() == '\t') {
		c.pos++
	}
	return c.pos > start
}

// skipWord moves to the next blank or comment.
func (c *cursor) skipWord() {
	for c.peek() != 0 && c.peek() != ' ' && c.peek() != '\t' && c.peek() != '#' {
		c.pos++
	}
}

// accept reads s if it comes next.
func (c *cursor) accept(s string) bool {
	if c.err != nil || !strings.HasPrefix(c.rest(), s) {
		return false
	}
	c.pos += len(s)
	return true
}

// expect reads s or fails.
func (c *cursor) expect(s string) {
	if !c.accept(s) {
		c.want(strconv.Quote(s))
	}
}

// fail notes a failure at pos.
func (c *cursor) fail(pos int, format string, args ...any) {
	if c.err == nil {
		c.pos, c.err = pos, fmt.Errorf(format, args...)
	}
}

// want fails because something else should come next.
func (c *cursor) want(what string) {
	switch rest := strings.TrimLeft(c.rest(), " \t"); {
	case rest == "":
		c.fail(c.pos, "the line ends here: want %s", what)
	case len(rest) > 20:
		c.fail(c.pos, "%q...: want %s", rest[:20], what)
	default:
		c.fail(c.pos, "%q: want %s", rest, what)
	}
}

// word reads letters.
func (c *cursor) word() string {
	start := c.pos
	for isLetter(c.peek()) {
		c.pos++
	}
	return c.text[start:c.pos]
}

// number reads a number from lo to hi: base 16, base 10, or base 0 for the rule
// of C (0x hexadecimal, 0 octal, else decimal). what names it in errors. It
// returns 0 if it fails.
func (c *cursor) number(what string, base int, lo, hi uint64) uint64 {
	if c.err != nil {
		return 0
	}
	start := c.pos
	for isLetter(c.peek()) || isDigit(c.peek()) {
		c.pos++
	}
	v, err := parseNumber(c.text[start:c.pos], base)
	if err == nil && lo <= v && v <= hi {
		return v
	}
	c.pos = start
	if hi > math.MaxUint16 {
		c.want(fmt.Sprintf("%s, 0x%x to 0x%x", what, lo, hi))
	} else {
		c.want(fmt.Sprintf("%s, %d to %d", what, lo, hi))
	}
	return 0
}

func parseNumber(digits string, base int) (uint64, error) {
	hex, isHex := strings.CutPrefix(strings.ToLower(digits), "0x")
	switch {
	case isHex && base != 10:
		digits, base = hex, 16
	case base == 0 && len(digits) > 1 && digits[0] == '0':
		digits, base = digits[1:], 8
	case base == 0:
		base = 10
	}
	return strconv.ParseUint(digits, base, 64)
}

// quoted reads text in double quotes. It returns "" if it fails.
func (c *cursor) quoted(what string) string {
	if c.skipBlanks(); c.peek() != '"' {
		c.want(what + " in double quotes")
	}
	if c.err != nil {
		return ""
	}
	start := c.pos + 1
	length := strings.IndexByte(c.text[start:], '"')
	if length < 0 {
		c.fail(c.pos, "%s without a closing double quote", what)
		return ""
	}
	s := c.text[start : start+length]
	c.pos = start + length + 1
	c.refuseControl(what, s, start)
	return s
}

// refuseControl fails if s, which begins at start, has a control character.
func (c *cursor) refuseControl(what, s string, start int) {
	if i := strings.IndexFunc(s, isControl); i >= 0 {
		c.fail(start+i, "control character 0x%02x in %s", s[i], what)
	}
}

// seek moves to the value of key: after the next "key " that begins a word and
// is followed by a digit. It reports whether there is one.
func (c *cursor) seek(key string) bool {
	for i := c.pos; i < len(c.text); {
		k := strings.Index(c.text[i:], key+" ")
		if k < 0 {
			return false
		}
		start, end := i+k, i+k+len(key)+1
		if (start == 0 || !isLetter(c.text[start-1])) && end < len(c.text) && isDigit(c.text[end]) {
			c.pos = end
			return true
		}
		i = end
	}
	return false
}

func isLetter(b byte) bool { return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' }

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
