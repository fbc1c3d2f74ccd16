package servicecmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Matrix is `ibwarden show matrix`.
func Matrix() *cobra.Command {
	c := reader("matrix [PARTY [PARTY]]", "Show who can talk with whom: tenants, and other end ports by their keys", cobra.MaximumNArgs(2), func(c *cobra.Command, f *serverFlags, to *client.Client, args []string) error {
		m, err := client.Whole[api.MatrixBody](c.Context(), to, "/matrix", nil)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), m)
		}
		if len(args) == 0 {
			return printMatrix(c.OutOrStdout(), &m.Matrix)
		}
		return printParties(c.OutOrStdout(), &m.Matrix, args)
	})
	c.Long = c.Short + `.

A party is a tenant with ports, or the ports of no tenant that hold the same keys. The matrix
has a sign for each two parties, and for the ports of each party among themselves:

  # all pairs of ports can talk     + some can       . none can
  ? it was not read                 ! some can talk and may not

Below it stands what the proof says of parties that are not kept apart as the policy wants it. With one
party its row is printed in sentences, with two their cell. A tenant sees its own row.`
	return c
}

// signs are those of what parties can do.
var signs = map[string]string{"all": "#", "some": "+", "none": ".", "unknown": "?"}

// badness orders verdicts on two parties.
var badness = map[string]int{"unenforced": 1, "unknown": 2, "violated": 3}

const (
	// wrongMost bounds the cells that are printed in sentences below a matrix.
	wrongMost    = 20
	violatedSign = "!"
	absentSign   = " " // of a cell that the caller is not told of
)

// matrixCells are the cells of a matrix by their parties, in either order.
type matrixCells struct {
	*views.Matrix
	at map[[2]int]*views.MatrixCell
}

func cellsOf(m *views.Matrix) matrixCells {
	out := matrixCells{m, map[[2]int]*views.MatrixCell{}}
	for i := range m.Cells {
		c := &m.Cells[i]
		out.at[[2]int{c.A, c.B}], out.at[[2]int{c.B, c.A}] = c, c
	}
	return out
}

func (m matrixCells) sign(a, b int) string {
	switch c := m.at[[2]int{a, b}]; {
	case c == nil && m.Sparse:
		return signs["none"]
	case c == nil:
		return absentSign
	case c.Verdict == "violated":
		return violatedSign
	default:
		return cmp.Or(signs[c.Talk], signs["unknown"])
	}
}

// printMatrix prints the signs of all cells, and what is wrong.
func printMatrix(w io.Writer, m *views.Matrix) error {
	cells := cellsOf(m)
	fmt.Fprintf(w, "who can talk with whom, read %s: %s\n\n", m.ReadAt.UTC().Format(time.RFC3339), terminal.Plain(m.Verdict))
	names, counts := make([]string, len(m.Parties)), make([]string, len(m.Parties))
	wide, long := len("party"), len("ports")
	for i, p := range m.Parties {
		names[i], counts[i] = terminal.Plain(p.Name), fmt.Sprint(p.Ports)
		if p.Kind == "others" || p.Kind == "manager" {
			counts[i] = "-"
		}
		wide, long = max(wide, len(names[i])), max(long, len(counts[i]))
	}
	digits := len(fmt.Sprint(len(names)))
	for place := digits - 1; place >= 0; place-- { // the numbers of the columns, read downwards
		label, ports := "", ""
		if place == 0 {
			label, ports = "party", "ports"
		}
		fmt.Fprintf(w, "%*s  %-*s  %*s  ", digits, "", wide, label, long, ports)
		for i := range names {
			fmt.Fprintf(w, "%c ", fmt.Sprintf("%*d", digits, i+1)[digits-1-place])
		}
		fmt.Fprintln(w)
	}
	for i := range names {
		var line strings.Builder
		for j := range names {
			line.WriteString(cells.sign(i, j) + " ")
		}
		fmt.Fprintf(w, "%*d  %-*s  %*s  %s\n", digits, i+1, wide, names[i], long, counts[i], strings.TrimRight(line.String(), " "))
	}
	fmt.Fprintln(w, "\n# all pairs can talk, + some, . none, ? not read, ! some can talk and may not")
	wrong := slices.DeleteFunc(slices.Clone(m.Cells), func(c views.MatrixCell) bool { return c.Verdict == "kept-apart" })
	slices.SortStableFunc(wrong, func(a, b views.MatrixCell) int { return cmp.Compare(badness[b.Verdict], badness[a.Verdict]) })
	for i := range wrong[:min(len(wrong), wrongMost)] {
		printCell(w, m, &wrong[i])
	}
	if more := len(wrong) - wrongMost; more > 0 {
		fmt.Fprintf(w, "and %d more that are not kept apart as the policy wants it (--json)\n", more)
	}
	return nil
}

// printParties prints the cells of one party, or of two.
func printParties(w io.Writer, m *views.Matrix, args []string) error {
	var at []int
	for _, name := range args {
		i := slices.IndexFunc(m.Parties, func(p views.MatrixParty) bool { return p.Name == name })
		if i < 0 {
			return terminal.WithMisuse(fmt.Errorf("there is no party %q, or none that you see: ibwarden show matrix lists them", name))
		}
		at = append(at, i)
	}
	printed := false
	for i := range m.Cells {
		c := &m.Cells[i]
		if (c.A == at[0] || c.B == at[0]) && (len(at) == 1 || c.A == at[1] && c.B == at[0] || c.A == at[0] && c.B == at[1]) {
			printCell(w, m, c)
			printed = true
		}
	}
	switch {
	case !printed && m.Sparse:
		fmt.Fprintln(w, "none of their ports can talk, and they are kept apart")
	case !printed:
		return terminal.WithBad(fmt.Errorf("how these two stand to each other is not told"))
	}
	return nil
}

func printCell(w io.Writer, m *views.Matrix, c *views.MatrixCell) {
	who := terminal.Plain(m.Parties[c.A].Name) + " among themselves"
	if c.A != c.B {
		who = terminal.Plain(m.Parties[c.A].Name) + " and " + terminal.Plain(m.Parties[c.B].Name)
	}
	fmt.Fprintf(w, "%s: %s; %s\n", who, c.Verdict, terminal.Plain(c.Reason))
	if x := c.Witness; x != nil && x.To != "" {
		kind := "for example"
		if c.Violations > 0 {
			kind = "witness"
		}
		fmt.Fprintf(w, "  %s: %s and %s (ibwarden why %s %s)\n", kind, terminal.Plain(x.From), terminal.Plain(x.To), terminal.Plain(x.From), terminal.Plain(x.To))
	}
}
