package policy

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// In a pattern * stands for any characters, ? for one, [a-z0-9] for one of a
// set, [!a-z] for one that is not in it, and \ takes the meaning from the
// character after it. The pattern must fit the whole description.
const globSpecial = `*?[\`

// IsPattern reports whether s holds any character that has a meaning of its
// own in a pattern.
func IsPattern(s string) bool { return strings.ContainsAny(s, globSpecial) }

// CheckPattern tells what is wrong with a pattern.
func CheckPattern(pattern string) error {
	_, err := compileGlob(pattern)
	return err
}

// glob is a pattern, taken apart.
type glob struct {
	parts []globPart
	// prefix is what every match begins with.
	prefix string
}

// globPart matches one character, or with many set, any number of any.
type globPart struct {
	many   bool
	negate bool
	ranges [][2]rune // of the characters that match; none: every character
}

// compileGlob takes a pattern apart.
func compileGlob(pattern string) (*glob, error) {
	g := &glob{}
	for plain := true; pattern != ""; {
		r, size := utf8.DecodeRuneInString(pattern)
		pattern = pattern[size:]
		part := globPart{}
		switch r {
		case '*':
			part.many = true
		case '?':
		case '[':
			var err error
			if pattern, err = part.set(pattern); err != nil {
				return nil, err
			}
		case '\\':
			if pattern == "" {
				return nil, errors.New(`\ at the end`)
			}
			r, size = utf8.DecodeRuneInString(pattern)
			pattern = pattern[size:]
			fallthrough
		default:
			part.ranges = [][2]rune{{r, r}}
			if plain {
				g.prefix += string(r)
			}
			g.parts = append(g.parts, part)
			continue
		}
		plain = false
		g.parts = append(g.parts, part)
	}
	return g, nil
}

// set reads the characters of a set up to its ] and returns what follows.
func (p *globPart) set(pattern string) (rest string, err error) {
	body, rest, found := strings.Cut(pattern, "]")
	body, p.negate = strings.CutPrefix(body, "!")
	runes := []rune(body)
	if !found || len(runes) == 0 {
		return "", errors.New("[ without a set and ]")
	}
	for len(runes) > 0 {
		low, high, used := runes[0], runes[0], 1
		if len(runes) >= 3 && runes[1] == '-' {
			high, used = runes[2], 3
		}
		if low > high {
			return "", errors.New("a range that runs backwards")
		}
		p.ranges = append(p.ranges, [2]rune{low, high})
		runes = runes[used:]
	}
	return rest, nil
}

func (p *globPart) fits(r rune) bool {
	if len(p.ranges) == 0 {
		return true
	}
	for _, x := range p.ranges {
		if x[0] <= r && r <= x[1] {
			return !p.negate
		}
	}
	return p.negate
}

// match reports whether the whole of s fits. Its time is at most the product
// of the two lengths.
func (g *glob) match(s string) bool {
	at, star, retry := 0, -1, ""
	for {
		switch {
		case at < len(g.parts) && g.parts[at].many:
			star, retry = at, s
			at++
			continue
		case s == "" && at == len(g.parts):
			return true
		case s != "" && at < len(g.parts):
			r, size := utf8.DecodeRuneInString(s)
			if g.parts[at].fits(r) {
				at, s = at+1, s[size:]
				continue
			}
		}
		if star < 0 || retry == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(retry)
		retry = retry[size:]
		at, s = star+1, retry
	}
}
