package terminal

import (
	"fmt"
	"io"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
)

// classesShown bounds the classes that are printed; --json has them all.
const classesShown = 40

// PrintClasses lists the ports that hold the same keys.
func PrintClasses(out io.Writer, classes []isolation.Class) error {
	t := NewTable("ports", "hold", "first")
	for i, class := range classes {
		if i == classesShown {
			t.Add("...", fmt.Sprintf("%d more (--json has all)", len(classes)-i), nil)
			break
		}
		hold := Plain(class.PKeys)
		if class.Unread {
			hold += " and what was not read"
		}
		t.Add(class.Count, hold, class.Ports[0])
	}
	fmt.Fprintln(out)
	return t.Print(out, "", false)
}

// PrintPackets says where packets end that are sent by the tables as they are.
func PrintPackets(out io.Writer, packets reach.Counts) error {
	t := NewTable("packets, one from each port to each other with each of its keys", "end as")
	for _, d := range reach.Dispositions() {
		if n := packets[d]; n > 0 {
			t.Add(n, d)
		}
	}
	fmt.Fprintln(out)
	return t.Print(out, "", false)
}

// witnessesShown bounds the witnesses that are printed with their way.
const witnessesShown = 5

// PrintWitnesses lists pairs of ports with the entry at fault and their way.
func PrintWitnesses(out io.Writer, what string, list []isolation.Violation, count int) {
	if count == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s two ports %s:\n", Count(count, "time"), what)
	for i, v := range list {
		if i == witnessesShown {
			fmt.Fprintf(out, "  and %d more\n", count-i)
			return
		}
		fmt.Fprintf(out, "  %s to %s over %s, for P_Key index %d of %s is %s\n", v.From, v.To, v.PKey, v.At.Index, Plain(v.At.Name), v.At.PKey)
		if v.Note != "" {
			fmt.Fprintf(out, "    today: %s\n", Plain(v.Note))
		}
		for _, h := range v.Path {
			fmt.Fprintf(out, "    %s, in %d, out %d\n", Plain(h.Name), h.In, h.Out)
		}
	}
}
