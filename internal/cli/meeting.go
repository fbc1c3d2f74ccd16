package cli

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/cli/table"
	"github.com/ibwarden/ibwarden/internal/isolation"
)

// Bounds of what is said for people of where tenants meet; --json has it all.
const (
	meetingsShown     = 6
	meetingPartitions = 4
)

// meetingPlaces names the ports where tenants meet, each with the partitions that
// it is in.
func meetingPlaces(p *isolation.Proof) string {
	var out []string
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
		out = append(out, fmt.Sprintf("%s (%s)", table.Plain(m.Name), table.Plain(over)))
	}
	text := strings.Join(out, ", ")
	if more := p.Counts.Meeting - len(out); more > 0 {
		text += fmt.Sprintf(" and %d more ports", more)
	}
	return text
}
