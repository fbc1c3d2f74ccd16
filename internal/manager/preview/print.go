package preview

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
)

// Bounds of what plan prints for people; --json has everything.
const (
	planRowsMax     = 60
	planFindingsMax = 20
)

// Print says for people what a plan will do.
func (p *Preview) Print(w io.Writer) error {
	if !p.Changes {
		fmt.Fprintln(w, "nothing to change: the fabric is as the policy wants it")
	}
	if len(p.Ports) > 0 {
		if err := planRows(p).print(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if p.Changes {
		if err := printCost(w, p); err != nil {
			return err
		}
	}
	printRoom(w, p)
	if err := printReach(w, p); err != nil {
		return err
	}
	for i, g := range p.Multicast {
		if i == planFindingsMax {
			fmt.Fprintf(w, "and %d more multicast groups (--json has all)\n", len(p.Multicast)-i)
			break
		}
		fmt.Fprintf(w, "multicast group %s of %s: %s\n", g.MGID, plain(g.Partition), g.Text)
	}
	for i, f := range p.Findings {
		if i == planFindingsMax {
			fmt.Fprintf(w, "and %d more (--json has all)\n", len(p.Findings)-i)
			break
		}
		already := ""
		if f.Already {
			already = " (as before)"
		}
		fmt.Fprintf(w, "%s: %s%s\n", f.Kind, plain(f.Text), already)
	}
	return nil
}

// planRows lists every change of a table, bounded.
func planRows(p *Preview) *table {
	t := newTable("port", "role", "index", "change", "p_key", "was", "used", "capacity")
	more := 0
	for i := range p.Ports {
		x := &p.Ports[i]
		name := fmt.Sprintf("%s:%d", x.Node, x.Num)
		role := x.Role
		if x.Peer != "" && x.PortGUID == 0 {
			role = "switch port to " + x.Peer
		}
		used := fmt.Sprint(x.After)
		if x.Before != x.After {
			used = fmt.Sprintf("%d, was %d", x.After, x.Before)
		}
		for _, k := range x.Keys {
			if len(t.rows) > planRowsMax {
				more++
				continue
			}
			var was any
			switch k.What {
			case Moved:
				was = fmt.Sprintf("index %d", k.FromIndex)
			case Membership:
				was = k.From.String()
			}
			t.add(name, role, k.Index, k.What, k.PKey, was, used, x.Cap)
		}
		for _, a := range x.Aliases {
			if len(t.rows) > planRowsMax {
				more++
				continue
			}
			t.add(name, role, a.Index, "alias "+a.What, a.GUID, "", "", "")
		}
		bits := func(what string, bits []Enforcement) {
			for _, e := range bits {
				if len(t.rows) > planRowsMax {
					more++
					continue
				}
				on := "off"
				if e.On {
					on = "on"
				}
				t.add(name, role, "", what+" "+e.Direction+" "+on, "", "", used, x.Cap)
			}
		}
		bits("check", x.Enforcement)
		bits("raw filter", x.RawFilters)
	}
	if more > 0 {
		t.add(fmt.Sprintf("and %d more (--json has all)", more))
	}
	return t
}

func printCost(w io.Writer, p *Preview) error {
	t := newTable("to send", "set", "read_back")
	for _, a := range p.SMPs.ByAttribute {
		t.add(a.Attribute, a.Set, a.ReadBack)
	}
	t.add("all", p.SMPs.Set, p.SMPs.ReadBack)
	if err := t.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return nil
}

func printRoom(w io.Writer, p *Preview) {
	say := func(what string, r *Room) {
		if r != nil {
			fmt.Fprintf(w, "room left: at least %d of %d entries in the table of every %s (%s)\n", r.Left, r.Cap, what, plain(r.Port))
		}
	}
	say("end port", p.Capacity.EndPorts)
	say("switch port that faces one", p.Capacity.SwitchPorts)
}

// printReach says who can talk, in words and numbers.
func printReach(w io.Writer, p *Preview) error {
	r := &p.Reach
	fmt.Fprintf(w, "pairs of ports that can talk: %d before, %d after (%d gained, %d lost)\n",
		r.PairsBefore, r.PairsAfter, r.Gained, r.Lost)
	if len(r.Groups) == 0 {
		return nil
	}
	t := newTable("group", "and", "pairs_gained", "pairs_lost", "p_key", "example", "effect")
	for i, g := range r.Groups {
		if i == planRowsMax {
			t.add(fmt.Sprintf("and %d more (--json has all)", len(r.Groups)-i))
			break
		}
		t.add(g.A, g.B, g.Gained, g.Lost, g.Over, strings.Join(g.Example[:], " - "), inWords(&g))
	}
	fmt.Fprintln(w)
	if err := t.print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return nil
}

func inWords(g *GroupPair) string {
	switch {
	case g.Opened:
		return "can talk, could not before"
	case g.Closed:
		return "cannot talk any more"
	case g.Gained > 0 && g.Lost > 0:
		return "some more can talk, some cannot any more"
	case g.Gained > 0:
		return "more can talk"
	}
	return "fewer can talk"
}

// table is rows of text under headings.
type table struct{ rows [][]string }

func newTable(columns ...string) *table {
	t := &table{}
	for i, c := range columns {
		columns[i] = strings.ToUpper(strings.ReplaceAll(c, "_", " "))
	}
	t.rows = [][]string{columns}
	return t
}

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		if row[i] = plain(c); row[i] == "" {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// plain is a cell for people: what a device says of itself must not steer a
// terminal.
func plain(cell any) string {
	if cell == nil {
		return ""
	}
	s := fmt.Sprint(cell)
	if bases, ok := cell.([]ib.PKeyBase); ok {
		s = strings.Trim(fmt.Sprint(bases), "[]")
	}
	return names.Printable(s)
}
