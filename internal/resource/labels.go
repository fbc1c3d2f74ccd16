// labels*.go: is the labels of objects and the selectors that choose objects by them, in the syntax
// of kubectl. Labels say nothing of who may do what.

package resource

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Limits of labels and selectors.
const (
	// LabelsMax is the most labels of one object.
	LabelsMax = 32
	// NameMax is the longest name of a key, and the longest value; PrefixMax that of the prefix of a
	// key, before its slash. In bytes.
	NameMax, PrefixMax = 63, 253
	// SelectorMax is the longest selector, in bytes, RequirementsMax the most requirements that it
	// has, and ValuesMax the most values of one.
	SelectorMax, RequirementsMax, ValuesMax = 1024, 32, 32
)

// LabelSet is the labels of an object, key=value sorted by key with commas between; "" for none. Two are the
// same if their labels are.
type LabelSet string

var (
	labelsGoodName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
	goodPrefix     = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

// checkKey refuses what is no key of a label.
func checkKey(key string) error {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		name = key
	}
	if len(name) > NameMax || !labelsGoodName.MatchString(name) || prefixed && (len(prefix) > PrefixMax || !goodPrefix.MatchString(prefix)) {
		return fmt.Errorf("key %.80q: want 1 to %d letters, digits, '-', '_' or '.', the first and last a letter or digit, with or without a DNS name and '/' before them", key, NameMax)
	}
	return nil
}

func checkValue(value string) error {
	if value != "" && (len(value) > NameMax || !labelsGoodName.MatchString(value)) {
		return fmt.Errorf("value %.80q: want at most %d letters, digits, '-', '_' or '.', the first and last a letter or digit, or nothing", value, NameMax)
	}
	return nil
}

// MakeLabels makes a Set of labels, or says what is wrong with one.
func MakeLabels(of map[string]string) (LabelSet, error) {
	if len(of) > LabelsMax {
		return "", fmt.Errorf("%d labels: want at most %d", len(of), LabelsMax)
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		if err := checkKey(k); err != nil {
			return "", err
		}
		if err := checkValue(of[k]); err != nil {
			return "", fmt.Errorf("label %s: %w", k, err)
		}
		list = append(list, k+"="+of[k])
	}
	return LabelSet(strings.Join(list, ",")), nil
}

// Map is the labels by key; nil for none.
func (s LabelSet) Map() map[string]string {
	if s == "" {
		return nil
	}
	out := map[string]string{}
	for _, l := range strings.Split(string(s), ",") {
		k, v, _ := strings.Cut(l, "=")
		out[k] = v
	}
	return out
}

// After is the labels after some words; "" where there are none.
func (s LabelSet) After(words string) string {
	if s == "" {
		return ""
	}
	return words + string(s)
}

// Check refuses what Make would not have made.
func (s LabelSet) Check() error {
	made, err := MakeLabels(s.Map())
	if err == nil && made != s {
		err = errors.New("the labels are not in their order")
	}
	return err
}

// MarshalJSON writes an object of values by key.
func (s LabelSet) MarshalJSON() ([]byte, error) {
	of := s.Map()
	if of == nil {
		of = map[string]string{}
	}
	return json.Marshal(of)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *LabelSet) UnmarshalJSON(data []byte) error {
	var of map[string]string
	err := json.Unmarshal(data, &of)
	if err == nil {
		*s, err = MakeLabels(of)
	}
	return err
}
