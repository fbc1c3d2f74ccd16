// table*.go: prints rows with named columns: as aligned columns for people, or
// as one JSON document for programs. It also formats a fabric that was read:
// its nodes, ports, cables, addresses, routes and keys.

package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/ibwarden/ibwarden/internal/names"
)

// Table is rows with named columns: one form for people and one for programs.
type Table struct {
	columns []string
	rows    [][]any
}

// NewTable returns a table without rows. The names of its columns are those of
// fields in JSON: lower case with underscores.
func NewTable(columns ...string) Table { return Table{columns: columns} }

// Add appends a row, a cell for each column.
func (t *Table) Add(cells ...any) { t.rows = append(t.rows, cells) }

// Print writes the table, or with asJSON one document {name: [{column: cell}]}.
func (t Table) Print(w io.Writer, name string, asJSON bool) error {
	if asJSON {
		list := make([]map[string]any, len(t.rows))
		for i, row := range t.rows {
			list[i] = make(map[string]any, len(row))
			for j, cell := range row {
				list[i][t.columns[j]] = cell
			}
		}
		return JSON(w, map[string]any{name: list})
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, c := range t.columns {
		separate(tw, i)
		fmt.Fprint(tw, strings.ToUpper(strings.ReplaceAll(c, "_", " ")))
	}
	fmt.Fprintln(tw)
	for _, row := range t.rows {
		for i, cell := range row {
			separate(tw, i)
			fmt.Fprint(tw, Plain(cell))
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func separate(w io.Writer, column int) {
	if column > 0 {
		fmt.Fprint(w, "\t")
	}
}

// Plain is a value as text for people: nothing reads "-", a list is joined by
// blanks, and a character that could steer a terminal is replaced.
func Plain(cell any) string {
	var s string
	switch c := cell.(type) {
	case nil:
	case []string:
		s = strings.Join(c, " ")
	default:
		s = fmt.Sprint(c)
		if reflect.TypeOf(c).Kind() == reflect.Slice {
			s = s[1 : len(s)-1] // without the brackets around the whole
		}
	}
	if s == "" {
		return "-"
	}
	return names.Printable(s) // what a device says of itself must not steer a terminal
}

// JSON writes one document.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Count says how many of something there are: "1 fault", "2 faults".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, is := strings.CutSuffix(what, "y"); is && !strings.HasSuffix(stem, "e") {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
