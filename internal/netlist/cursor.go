package netlist

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// cursor reads one line from left to right. A method that fails leaves the
// cursor where the fault is.
type cursor struct {
	text string
	pos  int
}

// rest is what was not read yet.
func (c *cursor) rest() string { return c.text[c.pos:] }

// peek is the next octet, 0 at the end of the line.
func (c *cursor) peek() byte {
	if c.pos == len(c.text) {
		return 0
	}
	return c.text[c.pos]
}

// skipBlanks moves to the next octet that is no blank and reports whether it
// moved.
func (c *cursor) skipBlanks() bool {
	start := c.pos
	for c.peek() == ' ' || c.peek() == '\t' {
		c.pos++
	}
	return c.pos > start
}

// accept reads s if it comes next.
func (c *cursor) accept(s string) bool {
	if !strings.HasPrefix(c.rest(), s) {
		return false
	}
	c.pos += len(s)
	return true
}

// expect reads s or fails.
func (c *cursor) expect(s string) error {
	if !c.accept(s) {
		return c.want(strconv.Quote(s))
	}
	return nil
}

// want is the error that something else should come next.
func (c *cursor) want(what string) error {
	switch rest := strings.TrimLeft(c.rest(), " \t"); {
	case rest == "":
		return fmt.Errorf("the line ends here: want %s", what)
	case len(rest) > 20:
		return fmt.Errorf("%q...: want %s", rest[:20], what)
	default:
		return fmt.Errorf("%q: want %s", rest, what)
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
// of C (0x hexadecimal, 0 octal, else decimal). what names it in errors.
func (c *cursor) number(what string, base int, lo, hi uint64) (uint64, error) {
	start := c.pos
	for isLetter(c.peek()) || isDigit(c.peek()) {
		c.pos++
	}
	v, err := parseNumber(c.text[start:c.pos], base)
	if err == nil && lo <= v && v <= hi {
		return v, nil
	}
	c.pos = start
	if hi > math.MaxUint16 {
		return 0, c.want(fmt.Sprintf("%s, 0x%x to 0x%x", what, lo, hi))
	}
	return 0, c.want(fmt.Sprintf("%s, %d to %d", what, lo, hi))
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

// quoted reads text in double quotes.
func (c *cursor) quoted(what string) (string, error) {
	c.skipBlanks()
	if c.peek() != '"' {
		return "", c.want(what + " in double quotes")
	}
	end := strings.IndexByte(c.text[c.pos+1:], '"')
	if end < 0 {
		return "", fmt.Errorf("%s without a closing double quote", what)
	}
	s := c.text[c.pos+1 : c.pos+1+end]
	if i := strings.IndexFunc(s, isControl); i >= 0 {
		c.pos += 1 + i
		return "", fmt.Errorf("control character 0x%02x in %s", s[i], what)
	}
	c.pos += end + 2
	return s, nil
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
