package terminal

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
)

// Bounds of the list of shared ports in the text output; --json has all of it.
const (
	sharedPortsShown     = 6
	sharedPortPartitions = 4
)

// SharedPorts names the shared ports, grouped by partitions.
func SharedPorts(p *isolation.Proof) string {
	var order []string
	names := map[string][]string{}
	for i, m := range p.SharedPorts {
		if i == sharedPortsShown {
			break
		}
		over := "the manager"
		if !m.Manager {
			over = strings.Join(m.Partitions[:min(len(m.Partitions), sharedPortPartitions)], ", ")
			if more := len(m.Partitions) - sharedPortPartitions; more > 0 {
				over += fmt.Sprintf(" and %d more", more)
			}
		}
		if names[over] == nil {
			order = append(order, over)
		}
		names[over] = append(names[over], Plain(m.Name))
	}
	var out []string
	for _, over := range order {
		out = append(out, fmt.Sprintf("%s (%s)", strings.Join(names[over], ", "), Plain(over)))
	}
	text := strings.Join(out, "; ")
	if more := p.Counts.SharedPorts - min(len(p.SharedPorts), sharedPortsShown); more > 0 {
		text += fmt.Sprintf("; and %d more ports", more)
	}
	return text
}
