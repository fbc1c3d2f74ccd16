package facts

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// incapableNamed is how many switch ports a warning about what a fabric cannot do
// names; the proof lists all.
const incapableNamed = 3

// Incapable says where a fabric cannot enforce partitions, for each reason: hosts
// behind such a switch port are held by nothing but their own tables. name gives
// the switch port, nil where there is none.
func Incapable(lacking []partition.NotEnforced, name func(partition.NotEnforced) *observed.Port) (out []string) {
	count := map[string]int{}
	named := map[string][]string{}
	var order []string
	for _, x := range lacking {
		q := name(x)
		if q == nil {
			continue
		}
		reasons := make([]string, len(x.Reasons))
		for i, r := range x.Reasons {
			reasons[i] = r.String()
			if r == partition.TableTooSmall {
				reasons[i] += fmt.Sprintf(" (%d entries, %d needed)", x.Cap, x.Needed)
			}
		}
		why := strings.Join(reasons, ", ")
		if count[why] == 0 {
			order = append(order, why)
		}
		if count[why]++; count[why] <= incapableNamed {
			named[why] = append(named[why], q.String())
		}
	}
	for _, why := range order {
		at := strings.Join(named[why], ", ")
		if more := count[why] - len(named[why]); more > 0 {
			at += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, fmt.Sprintf("nothing but their own tables holds the hosts behind %s: %s", at, why))
	}
	return out
}
