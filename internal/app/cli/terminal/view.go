package terminal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/ibwarden/ibwarden/internal/names"
)

// Tone is how text looks. It says nothing that the text does not say.
type Tone uint8

// Tones.
const (
	TonePlain Tone = iota
	Good
	Warn
	ToneBad
	Faint
	Strong
)

// Port is an end port.
type Port struct{ GUID, Name string }

// Column is a column of a table.
type Column struct {
	Name string
	// Wide is the least width of the terminal at which it is shown; 0 for any.
	Wide int
	// Right: it holds numbers, and is sorted with the greatest first.
	Right bool
}

// Row is a row of a table, or a line of text (one cell).
type Row struct {
	ID    string // tells rows of one view apart
	Cells []any  // a cell for each column: text, a number, or an Ordered; hidden ones are searched too
	Tone  Tone
	Port  Port         // which it stands for; none for ""
	Open  func() *View // what Enter opens; nil for nothing
}

// Ordered is a cell that is sorted by a number.
type Ordered interface{ Order() float64 }

// Page is a part of a list as it was answered.
type Page struct {
	Head []string // lines above the table
	Rows []Row
	Next string // cursor of the next page, "" on the last
}

// View is a table, or text where it has no columns.
type View struct {
	Name, Title string // in the line of tabs, and where it was opened from
	Columns     []Column
	Provider    bool // for the provider alone
	About       Port // which the view is about; none for ""
	// Read reads a page: the first for "". An error that is no *Refusal says that nobody answers.
	Read func(ctx context.Context, cursor string) (Page, error)

	fixed  bool // it is not read
	denied bool
	note   string
	asked  time.Time // when a page was read again
	turn   int       // counts that
	pages  []Page
	rows   []item // that are shown, in order
	widths []int  // of columns

	cursor, top int
	chosen      string // ID of the row under the cursor
	toEnd       bool
	filter      string
	sort        int // 1 for the first column, 0 for the order of the service
}

// item is a row, and which page it is of.
type item struct {
	*Row
	page int
}

func (v *View) text() bool { return len(v.Columns) == 0 }

// wants is the page that is to be read now. Those of what is seen are read again in turn, one in each
// interval; a further one is read where what is seen may hold some of it.
func (v *View) wants(due bool, body int) (page int, some bool) {
	if v.fixed || len(v.pages) == 0 || v.note != "" {
		return 0, !v.fixed && due
	}
	n := len(v.pages)
	all := v.filter != "" || v.sort > 0 || v.toEnd
	if v.pages[n-1].Next != "" && v.count() < rowsMost && (all || v.top+2*body >= len(v.rows)) {
		return n, true
	}
	if seen := v.rows[min(v.top, len(v.rows)):min(v.top+body, len(v.rows))]; len(seen) > 0 {
		page = seen[v.turn%len(seen)].page
	}
	return page, due
}

func (v *View) count() (n int) {
	for _, p := range v.pages {
		n += len(p.Rows)
	}
	return n
}

func (v *View) cursorOf(page int) string {
	if page == 0 {
		return ""
	}
	return v.pages[page-1].Next
}

// enter takes a page. Where it ends elsewhere than before, those after it are read again when they are seen.
func (v *View) enter(page int, p Page) {
	if v.note = ""; len(p.Rows) == 0 {
		p.Next = "" // whatever it is, there is no end to pages without rows
	}
	switch {
	case page > len(v.pages):
		return // those before it have changed
	case page == len(v.pages):
		v.pages = append(v.pages, p)
	default:
		if v.pages[page].Next != p.Next {
			v.pages = v.pages[:page+1]
		}
		v.pages[page] = p
	}
}

// arrange makes the rows that are shown, for a width.
func (v *View) arrange(width int) {
	v.rows = v.rows[:0]
	seen := make(map[string]bool)
	want := strings.ToLower(v.filter)
	for i, p := range v.pages {
		for j := range p.Rows {
			r := &p.Rows[j]
			switch {
			case seen[r.ID] || !r.has(want):
			case v.text():
				for _, line := range wrap(clean(fmt.Sprint(r.Cells[0])), width) {
					v.rows = append(v.rows, item{&Row{Cells: []any{line}, Tone: r.Tone}, i})
				}
			default:
				v.rows = append(v.rows, item{r, i})
			}
			seen[r.ID] = true
		}
	}
	if c := v.sort - 1; c >= 0 {
		slices.SortStableFunc(v.rows, func(a, b item) int {
			by := compare(a.Cells[c], b.Cells[c])
			if v.Columns[c].Right {
				return -by
			}
			return by
		})
	}
	v.widths = make([]int, len(v.Columns))
	for i, c := range v.Columns {
		v.widths[i] = len(c.Name) + 1 // the mark of the order
		for _, r := range v.rows {
			v.widths[i] = max(v.widths[i], wide(clean(show(r.Cells[i]))))
		}
	}
	if i := slices.IndexFunc(v.rows, func(r item) bool { return r.ID == v.chosen }); i >= 0 && !v.text() {
		v.cursor = i
	}
}

func (r *Row) has(text string) bool {
	return text == "" || slices.ContainsFunc(r.Cells, func(c any) bool { return strings.Contains(strings.ToLower(show(c)), text) })
}

// compare orders two cells: by number where both have one.
func compare(a, b any) int {
	x, xn := order(a)
	y, yn := order(b)
	if xn && yn {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(show(a), show(b))
}

func order(c any) (float64, bool) {
	switch n := c.(type) {
	case int:
		return float64(n), true
	case uint64:
		return float64(n), true
	case Ordered:
		return n.Order(), true
	}
	return 0, false
}

func show(c any) string {
	if s, is := c.(string); is {
		if s == "" {
			return "-"
		}
		return s
	}
	return fmt.Sprint(c)
}

// clean replaces what could steer a terminal, and what takes no place in a line of one.
func clean(s string) string {
	if plain(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if runewidth.RuneWidth(r) == 0 {
			return '?'
		}
		return r
	}, names.Printable(s))
}

// plain reports whether a text is of ASCII's printable characters alone, as most are.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// wide is how many places of a terminal a clean text takes.
func wide(s string) (n int) {
	if plain(s) {
		return len(s)
	}
	for _, r := range s {
		n += runewidth.RuneWidth(r)
	}
	return n
}

// head is the length in bytes of the part of a text that has room in some places.
func head(s string, room int) int {
	for i, r := range s {
		if room -= runewidth.RuneWidth(r); room < 0 {
			return i
		}
	}
	return len(s)
}

// fit makes a text as wide as its room, which is 1 at least.
func fit(s string, room int, right bool) string {
	s = clean(s)
	if n := head(s, room); n < len(s) {
		s = s[:head(s, room-1)] + "~"
	}
	space := strings.Repeat(" ", room-wide(s))
	if right {
		return space + s
	}
	return s + space
}

// wrap breaks a line between words. Further lines are indented more than the first.
func wrap(line string, room int) (out []string) {
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))] + "  "
	for wide(line) > room && room > len(indent)+1 {
		n := head(line, room)
		if i := strings.LastIndex(line[:min(n+1, len(line))], " "); i > 0 && strings.TrimLeft(line[:i], " ") != "" {
			n = i
		}
		out, line = append(out, line[:n]), indent+strings.TrimLeft(line[n:], " ")
	}
	return append(out, line)
}

func (v *View) row() *Row {
	if v.text() || v.cursor >= len(v.rows) {
		return nil
	}
	return v.rows[v.cursor].Row
}

// move moves the cursor, or text, where the key is one that does.
func (v *View) move(key string, body int) bool {
	last := len(v.rows) - 1
	at := &v.cursor
	if v.text() {
		last, at = len(v.rows)-body, &v.top
	}
	by, is := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -body, "pgdn": body, "home": -last, "g": -last, "end": last, "G": last}[key]
	if !is {
		return false
	}
	v.toEnd = key == "end" || key == "G"
	switch key {
	case "home", "g":
		*at = 0
	case "end", "G":
		*at = last
	default:
		*at += by
	}
	*at = max(min(*at, last), 0)
	if row := v.row(); row != nil {
		v.chosen = row.ID
	}
	v.settle(body)
	return true
}

// settle has the cursor on a row, and that row on the screen.
func (v *View) settle(body int) {
	last := max(len(v.rows)-1, 0)
	if v.toEnd && v.cursor < last && !v.text() {
		v.cursor, v.chosen = last, v.rows[last].ID
	}
	v.cursor = min(v.cursor, last)
	if v.text() {
		v.top = max(min(v.top, len(v.rows)-body), 0)
		return
	}
	v.top = max(min(v.top, v.cursor, len(v.rows)-body), v.cursor-body+1, 0)
}

// sortBy sorts by the next column that is shown; after the last one as the service does.
func (v *View) sortBy(width int) {
	for v.sort++; v.sort <= len(v.Columns) && v.Columns[v.sort-1].Wide > width; v.sort++ {
	}
	if v.sort > len(v.Columns) {
		v.sort = 0
	}
}
