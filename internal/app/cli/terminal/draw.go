package terminal

import (
	"fmt"
	"strings"
	"time"
)

// Span is text in one look.
type Span struct {
	Text   string
	Tone   Tone
	Picked bool // the row under the cursor, the tab that is seen
}

// Line is a line of the screen.
type Line []Span

func (l Line) String() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// headMost bounds the lines above a table, as a part of the screen.
const headMost = 3

// head are the lines above a table.
func (m *Model) head(v *View) (lines []string) {
	if v.note != "" {
		lines = wrap(clean(v.note), m.width)
	}
	if len(v.pages) > 0 {
		for _, line := range v.pages[0].Head {
			lines = append(lines, wrap(clean(line), m.width)...)
		}
	}
	return lines[:min(len(lines), m.height/headMost)]
}

// body is how many rows have room.
func (m *Model) body() int {
	v := m.View()
	n := m.height - 4 - len(m.head(v)) // heading, tabs, title; keys
	if !v.text() {
		n--
	}
	return max(n, 1)
}

// Draw is the screen: as many lines as the terminal has, none of which is wider. No character in it
// steers a terminal, whatever was answered.
func (m *Model) Draw() []Line {
	v := m.View()
	v.settle(m.body())
	lines := []Line{m.headLine(), m.tabLine(), m.titleLine(v)}
	for _, text := range m.head(v) {
		lines = append(lines, Line{{Text: text, Tone: noteTone(v)}})
	}
	shown := m.columns(v)
	if !v.text() {
		lines = append(lines, m.tableHead(v, shown))
	}
	for i := v.top; i < min(v.top+m.body(), len(v.rows)); i++ {
		lines = append(lines, m.rowLine(v, shown, i))
	}
	for len(lines) < m.height-1 {
		lines = append(lines, nil)
	}
	lines = append(lines[:max(m.height-1, 0)], m.lastLine(v))
	for i := range lines {
		lines[i] = cut(lines[i], m.width)
	}
	return lines
}

func noteTone(v *View) Tone {
	if v.note != "" {
		return Warn
	}
	return TonePlain
}

// cut makes a line no wider than the terminal, and safe for it.
func cut(l Line, room int) Line {
	for i := range l {
		if l[i].Text = clean(l[i].Text); wide(l[i].Text) > room {
			if room < 1 {
				return l[:i]
			}
			l[i].Text = fit(l[i].Text, room, false)
			return l[:i+1]
		}
		room -= wide(l[i].Text)
	}
	return l
}

func (m *Model) headLine() (l Line) {
	h := &m.heading
	if !m.lost.IsZero() {
		l = append(l, Span{Text: fmt.Sprintf("NO ANSWER for %v, asking on", m.ago(m.lost)), Tone: ToneBad}, Span{Text: " | "})
	}
	if h.Verdict == "" {
		return append(l, Span{Text: "asking"})
	}
	tone := ToneBad
	if h.Good {
		tone = Good
	}
	l = append(l, Span{Text: h.Verdict, Tone: tone})
	if h.At.IsZero() {
		l = append(l, Span{Text: ", not proved yet"})
	} else {
		l = append(l, Span{Text: fmt.Sprintf(", %s %v ago", h.How, m.ago(h.At))})
	}
	for _, text := range h.Rest {
		l = append(l, Span{Text: " | " + text})
	}
	return l
}

func (m *Model) ago(t time.Time) time.Duration { return max(m.now.Sub(t).Round(time.Second), 0) }

func (m *Model) tabLine() (l Line) {
	for i, v := range m.Tabs {
		switch {
		case !m.shown(v):
		case i == m.tab:
			l = append(l, Span{Text: fmt.Sprintf("[%d%s]", i+1, v.Name), Tone: Strong, Picked: true})
		default:
			l = append(l, Span{Text: fmt.Sprintf(" %d%s ", i+1, v.Name)})
		}
	}
	return l
}

// titleLine says what is seen: from which view on, how many rows, and which.
func (m *Model) titleLine(v *View) Line {
	path := []string{m.Tabs[m.tab].Name}
	for _, x := range m.stack {
		path = append(path, x.Title)
	}
	rest := ""
	if !v.text() {
		rest = "  " + Count(len(v.rows), "row")
		if n := len(v.pages); n > 0 && v.pages[n-1].Next != "" {
			rest += " and more"
			if v.count() >= rowsMost {
				rest += ", which are not read"
			}
		}
	}
	if len(v.pages) == 0 && v.note == "" {
		rest = "  asking"
	}
	if v.filter != "" {
		rest += "  with " + v.filter
	}
	for i, p := range m.marks {
		rest += []string{"  * ", " and "}[i] + p.Name
	}
	return Line{{Text: strings.Join(path, " > "), Tone: Strong}, {Text: rest, Tone: Faint}}
}

// columns are the widths of the columns of a view: 0 for those that are not shown. Where there is
// no room for all, the widest are cut.
func (m *Model) columns(v *View) []int {
	widths := make([]int, len(v.Columns))
	room := m.width - 2
	for i, c := range v.Columns {
		if c.Wide <= m.width {
			widths[i] = v.widths[i]
			room -= widths[i] + 2
		}
	}
	for room += 2; room < 0; room++ {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		widths[widest]--
	}
	return widths
}

func (m *Model) tableHead(v *View, widths []int) Line {
	cells := make([]any, len(v.Columns))
	for i, c := range v.Columns {
		name := strings.ToUpper(c.Name)
		if v.sort == i+1 {
			name += map[bool]string{true: "v", false: "^"}[c.Right] // numbers with the greatest first
		}
		cells[i] = name
	}
	return Line{{Text: "  " + table(v, cells, widths), Tone: Strong}}
}

func (m *Model) rowLine(v *View, widths []int, i int) Line {
	r := v.rows[i]
	if v.text() {
		return Line{{Text: fmt.Sprint(r.Cells[0]), Tone: r.Tone}}
	}
	mark := []byte("  ")
	if i == v.cursor {
		mark[0] = '>'
	}
	for _, p := range m.marks {
		if p == r.Port {
			mark[1] = '*'
		}
	}
	return Line{{Text: fit(string(mark)+table(v, r.Cells, widths), m.width, false), Tone: r.Tone, Picked: i == v.cursor}}
}

// table is a row of a table.
func table(v *View, cells []any, widths []int) string {
	var b strings.Builder
	for i, w := range widths {
		if w <= 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		b.WriteString(fit(show(cells[i]), w, v.Columns[i].Right))
	}
	return b.String()
}

// lastLine is what is typed, what to know, or the keys.
func (m *Model) lastLine(v *View) Line {
	switch {
	case m.typing:
		return Line{{Text: "/" + v.filter + "_", Tone: Strong}}
	case m.why != "":
		return Line{{Text: m.why, Tone: ToneBad}}
	case m.note != "":
		return Line{{Text: m.note, Tone: Warn}}
	}
	text := "Esc back  ? keys  q quit"
	if !v.text() {
		text = "Enter open  / filter  s sort  Space mark  w why  " + text
	}
	return Line{{Text: text, Tone: Faint}}
}
