package resource

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// LabelSelector chooses objects by their labels: all of its requirements have to hold.
type LabelSelector []requirement

// requirement is about the label with a key: whether it is there, and with one of some values.
type requirement struct {
	key string
	// not turns it round: the label is not there, or has none of the values.
	not bool
	// values are those that it may have; nil where only that it is there counts.
	values []string
}

var bySet = regexp.MustCompile(`^(\S+)\s+(in|notin)\s*\(([^()]*)\)$`)

// ParseSelector reads a selector as kubectl takes it: requirements with commas between, each key=value (or ==),
// key!=value, "key in (a, b)", "key notin (a, b)", key or !key. "" chooses everything.
func ParseSelector(text string) (LabelSelector, error) {
	if len(text) > SelectorMax {
		return nil, fmt.Errorf("a selector of %d bytes: want at most %d", len(text), SelectorMax)
	}
	var out LabelSelector
	if strings.TrimSpace(text) == "" {
		return out, nil
	}
	for _, part := range split(text) {
		r, err := parseOne(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if out = append(out, r); len(out) > RequirementsMax {
			return nil, fmt.Errorf("a selector of more than %d requirements", RequirementsMax)
		}
	}
	return out, nil
}

// split splits at the commas that are in no parentheses.
func split(text string) (parts []string) {
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

func parseOne(text string) (r requirement, err error) {
	if m := bySet.FindStringSubmatch(text); m != nil {
		r = requirement{key: m[1], not: m[2] == "notin"}
		for _, v := range strings.Split(m[3], ",") {
			r.values = append(r.values, strings.TrimSpace(v))
		}
	} else if key, value, is := strings.Cut(text, "!="); is {
		r = requirement{strings.TrimSpace(key), true, []string{strings.TrimSpace(value)}}
	} else if key, value, is := strings.Cut(text, "="); is {
		r = requirement{strings.TrimSpace(key), false, []string{strings.TrimSpace(strings.TrimPrefix(value, "="))}}
	} else if key, is := strings.CutPrefix(text, "!"); is {
		r = requirement{key: strings.TrimSpace(key), not: true}
	} else {
		r = requirement{key: text}
	}
	if err = checkKey(r.key); err != nil {
		return r, fmt.Errorf("selector %.80q: %w", text, err)
	}
	if len(r.values) > ValuesMax {
		return r, fmt.Errorf("selector %.80q: %d values, want at most %d", text, len(r.values), ValuesMax)
	}
	for _, v := range r.values {
		if err = checkValue(v); err != nil {
			return r, fmt.Errorf("selector %.80q: %w", text, err)
		}
	}
	return r, nil
}

// Chooses reports whether an object with these labels is chosen. As for kubectl, what has no label with
// the key differs from every value.
func (s LabelSelector) Chooses(of LabelSet) bool {
	if len(s) == 0 {
		return true
	}
	labels := of.Map()
	for _, r := range s {
		v, there := labels[r.key]
		if holds := there && (r.values == nil || slices.Contains(r.values, v)); holds == r.not {
			return false
		}
	}
	return true
}
