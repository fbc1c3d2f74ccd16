package opensm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// bare is a value that YAML reads as that text, or as the number or truth that it says.
var bare = regexp.MustCompile(`^([0-9]{1,9}|[A-Za-z/][A-Za-z0-9_./-]*|[0-9]+(ms|s|m|h))$`)

// ConfigText is ibwarden's configuration as a file.
func (r *Report) ConfigText() []byte {
	var b strings.Builder
	b.WriteString("# What OpenSM's configuration becomes; written by ibwarden migrate opensm.\n")
	for _, s := range r.Configuration {
		value := s.Value
		if !bare.MatchString(value) {
			value = strconv.Quote(value)
		}
		fmt.Fprintf(&b, "%s: %s # %s\n", s.Key, value, plain(s.From))
	}
	return []byte(b.String())
}

// plain is text that stays on its line.
func plain(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
