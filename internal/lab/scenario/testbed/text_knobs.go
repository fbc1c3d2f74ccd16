// text*.go: splits a script into lines and words, and parses numbers, times and
// name=value. Every error is a *Fault with the line and the column, in
// characters from 1, and says what was expected. It knows no statement.

package testbed

import (
	"slices"
	"strings"
)

// Knobs are name=value words whose values are numbers.
type Knobs map[string]uint64

// knobBits is how wide each of them is; 1 is on or off.
var knobBits = map[string]int{
	"pkey-index": 16, "qkey": 32, "pkey": 16, "bytes": 12, "count": 5, "sl": 4, "privileged": 1, "packets": 16, "vl": 4, "hops": 8,
}

// Knobs takes the rest of a line as settings with these names.
func (a *LineArgs) Knobs(names ...string) (Knobs, error) {
	out := Knobs{}
	for a.More() {
		s, err := a.Setting(strings.Join(names, "=, ")+"=", false)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, s.Name) {
			return nil, a.Fault(s.ScriptWord, "%q: want one of %s", s.Name, strings.Join(names, ", "))
		}
		if knobBits[s.Name] > 1 {
			if out[s.Name], err = a.ToNumber(s.ScriptWord, s.Value, s.Name, knobBits[s.Name]); err != nil {
				return nil, err
			}
			continue
		}
		on, err := a.ToOnOff(s.ScriptWord, s.Value, s.Name)
		if err != nil {
			return nil, err
		}
		if out[s.Name] = 0; on {
			out[s.Name] = 1
		}
	}
	return out, nil
}

// Or is a knob, or what stands when it was not turned.
func (k Knobs) Or(name string, otherwise uint64) uint64 {
	if n, ok := k[name]; ok {
		return n
	}
	return otherwise
}
