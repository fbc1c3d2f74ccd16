// Package names finds the device that a name refers to, and suggests similar names when
// there is none.
//
// A device is known by its whole NodeDescription, and by the first word of it:
// "red-1" is "red-1 HCA-1". Every command, policy and scenario looks names up by
// these rules, so that a name which works in one works in all.
package names

import (
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
)

// Short is the part of a description by which people know a device: all before
// the first blank.
func Short(description string) string {
	word, _, _ := strings.Cut(description, " ")
	return word
}

// Fits reports whether name is that of a device with this description. No name
// fits nobody.
func Fits(name, description string) bool {
	return name != "" && (name == description || name == Short(description))
}

// One finds whom a person means who can mean only one: the one with this whole
// description, or else the one with this first word. The answer are the places in
// descriptions of those that it may be; it is clear only when there is one.
func One(name string, descriptions []string) []int {
	var whole, first []int
	for i, d := range descriptions {
		switch {
		case name == "":
		case d == name:
			whole = append(whole, i)
		case Short(d) == name:
			first = append(first, i)
		}
	}
	if len(whole) > 0 {
		return whole
	}
	return first
}

const (
	// lengthMax is the longest name, in bytes, for which a similar one is looked
	// for, and the longest that is proposed.
	lengthMax = 128
	// wrongMax is the most letters that may be missing, too many or others.
	wrongMax = 3
)

// Nearest is the one of some names that a person may have meant by name, ok when
// there is one: it, or its first word, differs in few letters, or begins with name.
// Of several that are as near the first counts.
func Nearest(name string, among []string) (nearest string, ok bool) {
	name = strings.ToLower(name)
	if name == "" || len(name) > lengthMax {
		return "", false
	}
	best := min(1+(len(name)+1)/4, wrongMax) + 1
	for _, whole := range among {
		if whole == "" || len(whole) > lengthMax {
			continue
		}
		lower := strings.ToLower(whole)
		far := min(distance(name, lower), distance(name, Short(lower)))
		if strings.HasPrefix(lower, name) {
			far = min(far, 1)
		}
		if far < best && far < len(name) {
			nearest, best, ok = whole, far, true
		}
	}
	return nearest, ok
}

// distance counts the letters in which two names differ.
func distance(a, b string) int { return levenshtein.ComputeDistance(a, b) }

// DidYouMean is a proposal to be put behind a message about a name that nobody
// has, and empty when no name is similar.
func DidYouMean(name string, among []string) string {
	if nearest, ok := Nearest(name, among); ok {
		return Proposal(nearest)
	}
	return ""
}

// Proposal proposes a name, to be put behind a message.
func Proposal(name string) string { return "; did you mean '" + Printable(name) + "'?" }

// Printable is a name as a message may show it: devices say what they like.
func Printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}
