package desired

import (
	"fmt"
	"slices"
)

// maxMulticastWarnings bounds the warnings about members that packets of their groups do not
// reach.
const maxMulticastWarnings = 16

// MulticastWarnings says for people which members are not reached and were not among old; of
// many, how many more there are.
func MulticastWarnings(faults, old []MulticastFault) (out []string) {
	more := 0
	for _, f := range faults {
		switch {
		case slices.Contains(old, f):
		case len(out) < maxMulticastWarnings:
			out = append(out, f.String())
		default:
			more++
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("%d more members of multicast groups are not reached", more))
	}
	return out
}
