// This file prints the result of `ibwarden trace`, the path of a packet, and knows
// which P_Key a packet has by default.

package look

import (
	"fmt"
	"io"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/lab/compare"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// UsualKey is the first key of a table that another takes, or its first key.
func UsualKey(from, to *observed.Port) ib.PKey {
	first := ib.PKeyDefaultFull
	for _, k := range slices.Backward(from.PKeys) {
		if k.IsValid() {
			first = k
		}
	}
	for _, k := range from.PKeys {
		if slices.ContainsFunc(to.PKeys, k.Matches) {
			return k
		}
	}
	return first
}

// PrintTrace prints a trace, and the packet next to it if there is one.
func PrintTrace(out io.Writer, t reach.Trace, from, to *observed.Port, sent *compare.Report) error {
	key := "no P_Key"
	if t.PKey != nil {
		key = "P_Key " + t.PKey.String()
	}
	fmt.Fprintf(out, "%s to %s (LID %s), %s, SL %d, %s\n\n", terminal.Plain(from), terminal.Plain(to), t.DLID, t.Service, t.SL, key)
	rows := terminal.NewTable("node", "in", "out", "vl", "port", "check", "result", "entry")
	for _, h := range t.Hops {
		var vl any
		if h.VL != nil {
			vl = *h.VL
		}
		node, in, leaves := any(h.Name), any(h.In), any(h.Out)
		for i, check := range h.Checks {
			if i > 0 {
				node, in, leaves, vl = " ", " ", " ", " "
			}
			rows.Add(node, in, leaves, vl, check.Port, check.Rule, check.Result, check.Entry)
		}
	}
	if err := rows.Print(out, "", false); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\ndisposition: %s\n  %s\n", t.Disposition, terminal.Plain(t.Reason))
	if sent != nil {
		printPacket(out, sent)
	}
	return err
}

// gapsShown bounds the gaps that are printed; --json has more.
const gapsShown = 20

// printPacket prints the outcome of the packet that was sent.
func printPacket(out io.Writer, sent *compare.Report) {
	fmt.Fprintf(out, "the packet: %s, %s, after %d hops", sent.Disposition, sent.Reason, len(sent.Hops))
	if sent.Agrees {
		fmt.Fprintln(out, ", as computed")
	} else {
		fmt.Fprintln(out, ", NOT as computed:")
	}
	for _, d := range sent.Differences {
		fmt.Fprintf(out, "  %s\n", terminal.Plain(d))
	}
	for i, g := range sent.Gaps {
		if i == gapsShown {
			fmt.Fprintln(out, "  and more (--json lists them)")
			return
		}
		fmt.Fprintf(out, "  not made as it was read: port %d of node %s: %s\n", g.Port, g.Node, terminal.Plain(g.Why))
	}
}
