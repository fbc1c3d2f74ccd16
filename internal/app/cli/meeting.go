package cli

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/app/cli/table"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
)

// Bounds of what is said for people of where tenants meet; --json has it all.
const (
	meetingsShown     = 6
	meetingPartitions = 4
)

// meetingPlaces names the ports where tenants meet, those of the same partitions
// together.
func meetingPlaces(p *isolation.Proof) string {
	var order []string
	names := map[string][]string{}
	for i, m := range p.Meeting {
		if i == meetingsShown {
			break
		}
		over := "the manager"
		if !m.Manager {
			over = strings.Join(m.Partitions[:min(len(m.Partitions), meetingPartitions)], ", ")
			if more := len(m.Partitions) - meetingPartitions; more > 0 {
				over += fmt.Sprintf(" and %d more", more)
			}
		}
		if names[over] == nil {
			order = append(order, over)
		}
		names[over] = append(names[over], table.Plain(m.Name))
	}
	var out []string
	for _, over := range order {
		out = append(out, fmt.Sprintf("%s (%s)", strings.Join(names[over], ", "), table.Plain(over)))
	}
	text := strings.Join(out, "; ")
	if more := p.Counts.Meeting - min(len(p.Meeting), meetingsShown); more > 0 {
		text += fmt.Sprintf("; and %d more ports", more)
	}
	return text
}
