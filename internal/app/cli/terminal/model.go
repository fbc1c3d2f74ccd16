package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// rowsMost bounds the rows of a view: no further page is read after them.
	rowsMost = 50_000
	// marksMost is how many ports are marked at once, filterMost the length of a filter in characters.
	marksMost, filterMost = 2, 60
)

// Heading is what the first line says.
type Heading struct {
	Verdict string
	Good    bool
	How     string    // "checked", or "proved" where nothing was read back since
	At      time.Time // when that was; zero for never
	Rest    []string
	// Provider: the views that are for the provider are shown.
	Provider bool
}

// Refusal is an error of a service that answered. A view that is Forbidden is not shown any more.
type Refusal struct {
	Text      string
	Forbidden bool
}

func (r *Refusal) Error() string { return r.Text }

// Request is what is to be read: a page of a view, the heading, or both.
type Request struct {
	View   *View // nil for the heading alone
	Head   bool
	page   int
	cursor string
}

// Answer is what came of a request. An error that is no *Refusal says that nobody answers.
type Answer struct {
	Request
	Heading Heading
	Page    Page
	Err     error
}

// Model is what is shown. Tabs, Head, Why and Interval are set once.
type Model struct {
	Tabs     []*View
	Head     func(context.Context) (Heading, error)
	Why      func(a, b Port) *View // what w opens
	Interval time.Duration         // between two readings of what is seen

	Done bool // the user has quit

	now           time.Time
	width, height int
	tab           int
	stack         []*View // what was opened on the tab, the last is seen
	heading       Heading
	asked         time.Time // when the heading was asked for
	lost          time.Time // since when nobody answers; zero where somebody does
	note, why     string    // for the last line: what a key did not do, why nobody answers
	typing        bool      // a filter is being typed
	marks         []Port
}

// At is the time, Resize the size of the terminal in characters.
func (m *Model) At(now time.Time) { m.now = now }
func (m *Model) Resize(width, height int) {
	m.width, m.height = max(width, 1), max(height, 1)
	m.View().arrange(m.width)
}

// View is the view that is seen.
func (m *Model) View() *View {
	if n := len(m.stack); n > 0 {
		return m.stack[n-1]
	}
	return m.Tabs[m.tab]
}

// shown reports whether a tab is.
func (m *Model) shown(v *View) bool { return !v.denied && (!v.Provider || m.heading.Provider) }

// Wants is what is to be read now. One request is out at a time: Enter takes its answer.
func (m *Model) Wants() (r Request, some bool) {
	v := m.View()
	r.Head = m.asked.IsZero() || m.now.Sub(m.asked) >= m.Interval
	if !m.lost.IsZero() && !r.Head {
		return r, false
	}
	due := v.asked.IsZero() || m.now.Sub(v.asked) >= m.Interval
	if r.page, some = v.wants(due, m.body()); some {
		r.View, r.cursor = v, v.cursorOf(r.page)
		if r.page < max(len(v.pages), 1) {
			v.asked = m.now
			v.turn++
		}
	}
	if r.Head {
		m.asked = m.now
	}
	return r, some || r.Head
}

// Enter takes an answer.
func (m *Model) Enter(a Answer) {
	var refused *Refusal
	if a.Head {
		m.asked = m.now // the interval begins when a service that is slow has answered
	}
	if a.View != nil && a.page < max(len(a.View.pages), 1) {
		a.View.asked = m.now
	}
	switch {
	case errors.Is(a.Err, context.Canceled): // another view is seen: what was not answered is asked again
		if m.asked = (time.Time{}); a.View != nil {
			a.View.asked = time.Time{}
		}
		return
	case a.Err != nil && !errors.As(a.Err, &refused):
		if m.why = a.Err.Error(); m.lost.IsZero() {
			m.lost = m.now
		}
		return
	}
	if m.lost, m.why = (time.Time{}), ""; a.Head {
		m.heading = a.Heading
	}
	switch {
	case a.View == nil:
	case refused == nil:
		a.View.enter(a.page, a.Page)
	case refused.Forbidden:
		a.View.denied, m.note = true, refused.Text
		if i := slices.Index(m.stack, a.View); i >= 0 {
			m.stack = m.stack[:i]
		}
	default:
		a.View.note = refused.Text
	}
	if !m.shown(m.Tabs[m.tab]) {
		m.tab, m.stack = 0, nil
	}
	m.View().arrange(m.width)
}

// Key does what a key is for: a character, or the name of a key.
func (m *Model) Key(key string) {
	m.note = ""
	v := m.View()
	switch {
	case key == "ctrl-c" || key == "q" && !m.typing:
		m.Done = true
	case m.typing:
		m.typed(v, key)
	case v.move(key, m.body()):
		return
	case len(key) == 1 && key >= "1" && key <= "9":
		if i := int(key[0] - '1'); i < len(m.Tabs) && m.shown(m.Tabs[i]) {
			m.tab, m.stack = i, nil
		}
	default:
		m.act(v, key)
	}
	m.View().arrange(m.width)
}

func (m *Model) act(v *View, key string) {
	switch key {
	case "/":
		m.typing = true
	case "esc", "backspace":
		switch {
		case v.filter != "":
			v.filter = ""
		case len(m.stack) > 0:
			m.stack = m.stack[:len(m.stack)-1]
		}
	case "enter":
		if row := v.row(); row != nil && row.Open != nil {
			m.open(row.Open())
		}
	case "s":
		v.sortBy(m.width)
	case " ":
		m.mark(v)
	case "w":
		m.explain(v)
	case "?":
		if v.Title != helpTitle {
			m.open(help())
		}
	}
}

func (m *Model) open(v *View) { m.stack = append(m.stack, v) }

func (m *Model) typed(v *View, key string) {
	switch key {
	case "esc":
		v.filter, m.typing = "", false
	case "enter":
		m.typing = false
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(v.filter)
		v.filter = v.filter[:len(v.filter)-size]
	default:
		if utf8.RuneCountInString(key) == 1 && utf8.RuneCountInString(v.filter) < filterMost {
			v.filter += key
		}
	}
}

// mark marks the port of the row, or takes the mark away; the oldest goes where there are too many.
func (m *Model) mark(v *View) {
	row := v.row()
	if row == nil || row.Port.GUID == "" {
		m.note = "only an end port can be marked: see tenants or hosts"
		return
	}
	if i := slices.Index(m.marks, row.Port); i >= 0 {
		m.marks = slices.Delete(m.marks, i, i+1)
	} else if m.marks = append(m.marks, row.Port); len(m.marks) > marksMost {
		m.marks = m.marks[1:]
	}
	v.move("down", m.body())
}

// explain opens why two ports can or cannot talk: those marked; or one marked, or the one that the
// view is about, and the one of the row.
func (m *Model) explain(v *View) {
	ends := slices.Clone(m.marks)
	if len(ends) == 0 && v.About.GUID != "" {
		ends = []Port{v.About}
	}
	if row := v.row(); len(ends) == 1 && row != nil && row.Port.GUID != "" && row.Port != ends[0] {
		ends = append(ends, row.Port)
	}
	if len(ends) < 2 {
		m.note = "mark two end ports with the space bar, then press w"
		return
	}
	m.open(m.Why(ends[0], ends[1]))
}

const helpTitle = "keys"

// help is the view of keys.
func help() *View {
	return Text(helpTitle, strings.Split(`1 to 9         another view
arrows, j, k   up and down; PageUp, PageDown by a screen
Home, g        the first row
End, G         the last row: all pages are read
Enter          open the row
Esc            back; with a filter, all rows again (also Backspace)
/              only rows with a text; Enter keeps it, Esc ends it
s              sort by the next column
Space          mark an end port; two at most
w              why two end ports can or cannot talk: the two that are marked, or
               the one that is marked or looked at and that of the row
?              this list
q, Ctrl-C      quit

* is before a row that is marked, ~ where a text is cut, ? in place of what a
terminal would obey. What is seen is read again as often as --interval says.`, "\n"))
}

// Text is a view of lines, for which nothing is asked.
func Text(title string, lines []string) *View {
	v := &View{Title: title, fixed: true}
	v.enter(0, TextPage(lines))
	return v
}

// TextPage is the page of a view of lines.
func TextPage(lines []string) (p Page) {
	for i, line := range lines {
		p.Rows = append(p.Rows, Row{ID: fmt.Sprint(i), Cells: []any{line}})
	}
	return p
}
