package sm

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/partition"
	"github.com/ibwarden/ibwarden/internal/protect"
)

// incapableNamed is how many switch ports a warning about what a fabric cannot do
// names; the proof lists all.
const incapableNamed = 3

// incapable says, before anything is written, where the fabric cannot do what
// the profile is about: hosts behind such a switch port are held by nothing but
// their own tables.
func (d *desired) incapable(e *Engine, lacking []partition.NotEnforced) {
	if e.config.Profile == protect.None {
		return
	}
	count := map[string]int{}
	named := map[string][]string{}
	var order []string
	for _, x := range lacking {
		q := e.port(Place{x.SwitchGUID, x.PortNum})
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
		d.warn("profile %s: nothing but their own tables holds the hosts behind %s: %s", e.config.Profile, at, why)
	}
}
