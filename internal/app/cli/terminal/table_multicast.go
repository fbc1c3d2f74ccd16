package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
)

// Bounds of what PrintMulticast prints.
const (
	spreadsShown = 20
	reasonsShown = 20
)

// PrintMulticast says to whom packets of groups are led; nothing of a nil proof.
func PrintMulticast(out io.Writer, m *isolation.Multicast) error {
	if m == nil {
		return nil
	}
	if len(m.Spreads) > 0 {
		t := NewTable("mlid", "ports", "first", "within", "verdict")
		for i, s := range m.Spreads {
			if i == spreadsShown {
				t.Add("...", fmt.Sprintf("%d more (--json has them)", m.LIDs-i), nil, nil, nil)
				break
			}
			t.Add(fmt.Sprintf("0x%04x", uint16(s.MLID)), s.Ports, s.First, strings.Join(s.Partitions, ", "), s.Verdict)
		}
		fmt.Fprintln(out)
		if err := t.Print(out, "", false); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "multicast: %s, %d multicast LIDs lead somewhere\n", m.Verdict, m.LIDs)
	for i, reason := range m.Reasons {
		if i == reasonsShown {
			fmt.Fprintf(out, "  and %d more (--json has all)\n", len(m.Reasons)-i)
			break
		}
		fmt.Fprintf(out, "  %s\n", Plain(reason))
	}
	if m.Missing > 0 {
		fmt.Fprintf(out, "  %d members are not reached by packets of their groups\n", m.Missing)
	}
	return err
}

// PrintCopies prints the disposition of each copy of a packet to a group.
func PrintCopies(out io.Writer, copies []reach.Trace) error {
	t, delivered := NewTable("to", "way", "disposition", "reason"), 0
	for i := range copies {
		c := &copies[i]
		if c.Disposition == reach.Delivered {
			delivered++
		}
		t.Add(c.To, wayOf(c), c.Disposition, c.Reason)
	}
	if err := t.Print(out, "", false); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d copies, %d delivered\n", len(copies), delivered)
	return err
}

// wayOf names the nodes of a way, each between the ports in and out.
func wayOf(t *reach.Trace) string {
	var parts []string
	for _, h := range t.Hops {
		name, _, _ := strings.Cut(h.Name, " ")
		parts = append(parts, fmt.Sprintf("%d:%s:%d", h.In, name, h.Out))
	}
	return strings.Join(parts, " ")
}
