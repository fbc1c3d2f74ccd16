package policy

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// LinesMax is the most lines that a policy file may have.
const LinesMax = 1 << 20

// SourceText is a piece of one line that knows where it stands.
type SourceText struct {
	S   string
	Pos Pos
}

// Cut splits t around the first sep; without one, head is all of t.
func (t SourceText) Cut(sep byte) (head, tail SourceText, found bool) {
	before, after, found := strings.Cut(t.S, string(sep))
	head = SourceText{before, t.Pos}
	tail = SourceText{after, t.Pos}
	tail.Pos.Column += utf8.RuneCountInString(before)
	if found {
		tail.Pos.Column++
	}
	return head, tail, found
}

// Trim takes blanks and tabs off both ends. Nothing but blanks stays where it
// began.
func (t SourceText) Trim() SourceText {
	s := strings.TrimLeft(t.S, " \t")
	if s != "" {
		t.Pos.Column += len(t.S) - len(s)
	}
	t.S = strings.TrimRight(s, " \t")
	return t
}

// ParseNumber reads an unsigned number as C does: hexadecimal with 0x, octal
// with a leading 0, else decimal. Nothing may stand before or after it.
func ParseNumber(s string) (v uint64, octal, ok bool) {
	base, digits := 10, s
	switch {
	case strings.HasPrefix(s, "0x"), strings.HasPrefix(s, "0X"):
		base, digits = 16, s[2:]
	case len(s) > 1 && s[0] == '0':
		base, digits, octal = 8, s[1:], true
	}
	v, err := strconv.ParseUint(digits, base, 64)
	return v, octal, err == nil
}

// NumberRange says which numbers are wanted, for messages.
func NumberRange(low, high uint64) string {
	switch {
	case low == high:
		return fmt.Sprint(low)
	case high < 0x100:
		return fmt.Sprintf("a number from %d to %d", low, high)
	}
	return fmt.Sprintf("a number from %#x to %#x", low, high)
}

// MatchWord finds the word that s stands for among words: itself, or the only
// one that s begins. It gives the candidates when there are several.
func MatchWord(s string, words []string) (word string, candidates []string) {
	for _, w := range words {
		if w == s {
			return w, nil
		}
		if strings.HasPrefix(w, s) {
			candidates = append(candidates, w)
		}
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	return "", candidates
}

// OrList joins words for a message.
func OrList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// Clean notes what no policy file may contain: bytes that are not UTF-8,
// control characters other than tab and line ends, and too much of anything.
// It returns the text without a byte-order mark, and with LF line ends.
func (n *SourceNotes) Clean(data []byte, sizeMax int) string {
	if len(data) > sizeMax {
		n.Fault(Pos{}, "at most "+strconv.Itoa(sizeMax), "file of %d bytes", len(data))
		return ""
	}
	s := strings.TrimPrefix(string(data), "\uFEFF")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if lines := strings.Count(s, "\n"); lines > LinesMax {
		n.Fault(Pos{}, "at most "+strconv.Itoa(LinesMax), "file of %d lines", lines)
		return ""
	}
	at := Pos{Line: 1, Column: 1}
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\n':
			at = Pos{Line: at.Line + 1}
		case r == utf8.RuneError && size == 1:
			n.Fault(at, "UTF-8", "byte 0x%02x", s[i])
		case r < ' ' && r != '\t', r == 0x7F:
			n.Fault(at, "text", "control character 0x%02x", r)
		}
		at.Column++
	}
	return s
}
