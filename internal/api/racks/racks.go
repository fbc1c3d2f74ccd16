// Package racks says in which pod and rack each device of a fabric stands, for the map: by a file that the
// operator writes, and for devices that it does not name, by the cables.
//
// A line of the file is about one device, or about all whose node description a regular expression matches:
//
//	gpu-0001            pod=A rack=17
//	0x0002c90300000017  plane=2
//	/^(?<pod>p[0-9]+)-(?<rack>r[0-9]+)-/
//	/^leaf-[0-9]+-(?<rail>[0-9]+)/ pod=A
//
// A device says itself what its description is. So these places arrange a picture, and decide nothing: not
// who may reach whom, nor what a caller of the API is shown.
package racks

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibwarden/ibwarden/internal/names"
)

const (
	// FileSizeMax is the largest file, in bytes.
	FileSizeMax = 16 << 20
	// LineMax is the longest line, in bytes.
	LineMax = 1000
	// RulesMax is the most regular expressions: each may be tried on every device.
	RulesMax = 100
	// faultsMax is how many faults of a file are listed.
	faultsMax = 10
)

// parts are what a line can say of a device. A pod and a plane are boxes of the map; a rack and a rail are
// parts of a box, or boxes where nothing says in which pod they are.
var parts = []string{"pod", "plane", "rack", "rail"}

const wantParts = "pod=, plane=, rack= or rail=, and a name without blanks"

// place is where a device stands: values by parts, "" for what is not known.
type place [4]string

// fill takes from another place what is not known.
func (p *place) fill(o place) {
	for i, v := range o {
		if p[i] == "" {
			p[i] = v
		}
	}
}

// titled is the first of two parts that is known, as the map calls it: "rack 17".
func (p place) titled(first, second int) string {
	for _, i := range []int{first, second} {
		switch v := p[i]; {
		case v == "":
		case strings.HasPrefix(strings.ToLower(v), parts[i]):
			return v
		default:
			return parts[i] + " " + v
		}
	}
	return ""
}

// File is what a file says. A nil File says nothing.
type File struct {
	byGUID map[uint64]place
	byName map[string]place
	rules  []rule
}

type rule struct {
	expression *regexp.Regexp
	named      [4]int // the group of each part; 0 for none
	fixed      place
}

// Read reads a file. The error has the faults of all lines, each with its line and what was expected.
func Read(text []byte, path string) (*File, error) {
	f := &File{byGUID: map[uint64]place{}, byName: map[string]place{}}
	var faults []error
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("%s: no text: want UTF-8", path)
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		n++
		if err := f.line(strings.TrimSpace(line)); err != nil {
			faults = append(faults, fmt.Errorf("%s:%d: %w", path, n, err))
		}
	}
	if more := len(faults) - faultsMax; more > 0 {
		faults = append(faults[:faultsMax], fmt.Errorf("%s: and %d more lines with faults", path, more))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return f, nil
}

// line enters a line.
func (f *File) line(text string) error {
	switch {
	case text == "" || text[0] == '#':
		return nil
	case len(text) > LineMax:
		return fmt.Errorf("a line of %d bytes: want at most %d", len(text), LineMax)
	case text[0] == '/':
		return f.rule(text)
	}
	words := strings.Fields(text)
	p, err := placeOf(words[1:])
	if err != nil {
		return err
	}
	if p == (place{}) {
		return fmt.Errorf("%q says nothing: want a name or a node GUID, then %s", text, wantParts)
	}
	if hex, is := strings.CutPrefix(strings.ToLower(words[0]), "0x"); is {
		guid, err := strconv.ParseUint(hex, 16, 64)
		if err != nil || guid == 0 {
			return fmt.Errorf("%q: want a node GUID, 0x and up to 16 hexadecimal digits, or a name", words[0])
		}
		return enter(f.byGUID, guid, p)
	}
	return enter(f.byName, words[0], p)
}

func enter[K comparable](m map[K]place, key K, p place) error {
	if _, twice := m[key]; twice {
		return errors.New("the device has a line above: want one for each")
	}
	m[key] = p
	return nil
}

// placeOf reads pod=A rack=17.
func placeOf(words []string) (p place, err error) {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		i := slices.Index(parts, name)
		if i < 0 || value == "" {
			return p, fmt.Errorf("%q: want %s", word, wantParts)
		}
		if p[i] != "" {
			return p, fmt.Errorf("%q: %s= is there twice: want it once", word, name)
		}
		p[i] = value
	}
	return p, nil
}

// rule enters /EXPRESSION/, with what it says of all that it matches.
func (f *File) rule(text string) error {
	end := strings.LastIndex(text, "/")
	if end == 0 {
		return fmt.Errorf("%q: want a regular expression between slashes, such as /^(?<pod>p[0-9]+)-/", text)
	}
	if len(f.rules) == RulesMax {
		return fmt.Errorf("too many regular expressions: want at most %d", RulesMax)
	}
	expression, err := regexp.Compile(text[1:end])
	if err != nil {
		return fmt.Errorf("%s: %w: want a regular expression of Go, such as /^(?<pod>p[0-9]+)-/", text[:end+1], err)
	}
	r := rule{expression: expression}
	if r.fixed, err = placeOf(strings.Fields(text[end+1:])); err != nil {
		return err
	}
	some := r.fixed != place{}
	for i, name := range expression.SubexpNames() {
		part := slices.Index(parts, name)
		switch {
		case name == "":
		case part < 0 || r.named[part] > 0 || r.fixed[part] != "":
			return fmt.Errorf("%s: a group named %q: want pod, plane, rack and rail, each once", text[:end+1], name)
		default:
			r.named[part], some = i, true
		}
	}
	if !some {
		return fmt.Errorf("%s says nothing of what it matches: want a group named pod, plane, rack or rail, such as (?<rack>[0-9]+)", text)
	}
	f.rules = append(f.rules, r)
	return nil
}

// of is where a device stands by the file: by its GUID, by its name, and by the regular expressions from
// the first to the last. Each says what those before it do not.
func (f *File) of(guid uint64, description string) (p place) {
	p = f.byGUID[guid]
	p.fill(f.byName[description])
	p.fill(f.byName[names.Short(description)])
	for _, r := range f.rules {
		m := r.expression.FindStringSubmatch(description)
		if m == nil {
			continue
		}
		found := r.fixed
		for part, group := range r.named {
			if group > 0 {
				found[part] = printable(m[group])
			}
		}
		p.fill(found)
	}
	return p
}

// printable is what a device said, without what is no letter.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text))
}
