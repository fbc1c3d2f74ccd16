package terminal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
)

// server answers a list of end ports, and counts what it was asked.
type server struct {
	rows, page int
	asked      []string
	err        error
	name       string // of every row
}

func (s *server) read(_ context.Context, cursor string) (p Page, err error) {
	s.asked = append(s.asked, cursor)
	first, _ := strconv.Atoi(cursor) // "" is 0
	for i := first; i < min(first+s.page, s.rows); i++ {
		port := Port{strconv.Itoa(i), fmt.Sprintf("host-%05d%s", i, s.name)}
		p.Rows = append(p.Rows, Row{ID: port.GUID, Port: port, Cells: []any{port.Name, s.rows - i, "wide" + s.name}, Open: func() *View { return Text(port.Name, []string{port.Name}) }})
	}
	if first+s.page < s.rows {
		p.Next = strconv.Itoa(first + s.page)
	}
	p.Head = []string{"a head" + s.name}
	return p, s.err
}

// start is a model with a list, and one for the provider, at the size of a terminal.
func (s *server) start(width, height int) *Model {
	columns := []Column{{Name: "host"}, {Name: "number", Right: true}, {Name: "more", Wide: 100}}
	m := &Model{
		Interval: time.Second,
		Head: func(context.Context) (Heading, error) {
			return Heading{Verdict: "isolated" + s.name, Good: true, How: "checked", At: time.Unix(90, 0), Rest: []string{"master" + s.name}}, nil
		},
		Why:  func(a, b Port) *View { return Text("why", []string{a.Name + " and " + b.Name}) },
		Tabs: []*View{{Name: "hosts", Columns: columns, Read: s.read}, {Name: "links", Columns: columns, Read: s.read, Provider: true}},
	}
	m.At(time.Unix(100, 0))
	m.Resize(width, height)
	s.answer(m)
	return m
}

// answer answers until nothing more is wanted, and returns how often.
func (s *server) answer(m *Model) (n int) {
	for ; ; n++ {
		r, some := m.Wants()
		if !some {
			return n
		}
		m.Enter(m.Ask(context.Background(), r))
	}
}

func text(m *Model) string {
	var b strings.Builder
	for _, l := range m.Draw() {
		b.WriteString(l.String() + "\n")
	}
	return b.String()
}

func want(t *testing.T, m *Model, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text(m), w) {
			t.Errorf("no %q in\n%s", w, text(m))
		}
	}
}

func press(m *Model, keys ...string) {
	for _, k := range keys {
		m.Key(k)
	}
}

// Pages are read for what is seen, each once; what is seen is read again once an interval, and all
// pages where the end, an order or a filter needs them.
func TestPages(t *testing.T) {
	s := &server{rows: 10_000, page: 500}
	m := s.start(80, 24)
	if len(s.asked) != 1 || s.answer(m) != 0 {
		t.Errorf("asked %q for the first screen", s.asked)
	}
	m.At(time.Unix(101, 0))
	if s.answer(m) != 1 || s.asked[1] != "" {
		t.Errorf("asked %q in two intervals", s.asked)
	}
	for range 490 {
		press(m, "down")
	}
	if s.answer(m) != 1 || s.asked[2] != "500" {
		t.Errorf("asked %q near the end of the page", s.asked)
	}
	for range 40 {
		press(m, "down")
	}
	m.At(time.Unix(102, 0))
	if s.answer(m) != 1 || s.asked[3] != "500" {
		t.Errorf("asked %q: want the page that is seen", s.asked)
	}
	press(m, "end")
	if n := s.answer(m); n != 18 {
		t.Errorf("%d requests for the other 18 pages", n)
	}
	want(t, m, "> host-09999", "10000 rows\n")
	press(m, "home", "/", "t", "-", "0", "7", "7", "7", "7", "enter")
	want(t, m, "> host-07777 ", "1 row  with t-07777")
	press(m, "esc", "s", "s", "home")
	want(t, m, "NUMBERv", "> host-00000 ")

	// Of a service that is slow no more is asked than once an interval after its answer.
	s = &server{rows: 3, page: 500}
	m = s.start(80, 24)
	m.At(time.Unix(101, 0))
	r, _ := m.Wants()
	m.At(time.Unix(105, 0))
	m.Enter(m.Ask(context.Background(), r))
	if n := s.answer(m); n != 0 {
		t.Errorf("%d requests at once after a slow answer", n)
	}

	// An order reads all; nothing comes of a list without end but so many rows.
	s = &server{rows: 10 * rowsMost, page: 5000}
	m = s.start(80, 24)
	press(m, "s")
	if n := s.answer(m); n != rowsMost/5000-1 {
		t.Errorf("%d requests", n)
	}
	want(t, m, "which are not read")
	m = (&server{}).start(80, 24)
	m.Tabs[0].Read = func(context.Context, string) (Page, error) { return Page{Next: "1"}, nil }
	m.At(time.Unix(101, 0))
	press(m, "end")
	if n := s.answer(m); n != 1 {
		t.Errorf("%d requests for pages without rows", n)
	}
}

// A list that changes keeps the row under the cursor; pages after one that ends elsewhere are read again.
func TestChanges(t *testing.T) {
	s := &server{rows: 30, page: 10}
	m := s.start(80, 40)
	press(m, "down", "down", "down")
	gone := s.read
	m.Tabs[0].Read = func(ctx context.Context, cursor string) (Page, error) {
		p, err := gone(ctx, cursor)
		if cursor == "" {
			p.Rows = p.Rows[1:]
			p.Next = "9"
		}
		return p, err
	}
	m.At(time.Unix(101, 0))
	if n := s.answer(m); n != 4 {
		t.Errorf("%d requests, want the first page and the three after it", n)
	}
	want(t, m, "> host-00003 ", "29 rows\n")
}

func TestKeys(t *testing.T) {
	s := &server{rows: 100, page: 500}
	m := s.start(80, 24)
	for _, x := range []struct{ keys, want string }{
		{"j j k", "> host-00001 "}, {"pgdn", "> host-00019 "}, {"pgup", "> host-00001 "}, {"G", "> host-00099 "}, {"g", "> host-00000 "},
		{"w", "mark two end ports"}, {"space", " * host-00000"}, {"space", " * host-00000 and host-00001"}, {"w", "host-00000 and host-00001"},
		{"esc k space", " * host-00000\n"}, {"w", "host-00000 and host-00002"}, {"esc space space space", " * host-00003 and host-00004"},
		{"enter", "hosts > host-00005"}, {"backspace", "> host-00005"}, {"?", "hosts > keys"}, {"? esc", "100 rows"},
		{"/ Q -", "/Q-_"}, {"backspace backspace H O S T - 0 0 0 4 2", "> host-00042"}, {"enter", "1 row  with HOST-00042"}, {"esc", "100 rows  *"},
		{"/ x esc", "100 rows  *"}, {"s", "HOST^"}, {"s", "NUMBERv"}, {"home", "> host-00000"}, {"s", "NUMBER\n"}, {"2", "[1hosts]"}, {"9", "[1hosts]"}, {"F1", "[1hosts]"},
	} {
		for _, k := range strings.Fields(x.keys) {
			if k == "space" {
				k = " "
			}
			m.Key(k)
		}
		if got := text(m); !strings.Contains(got, x.want) {
			t.Fatalf("%s: no %q in\n%s", x.keys, x.want, got)
		}
	}
	press(m, "/", "q")
	if m.Done {
		t.Error("q in a filter quits")
	}
	press(m, "ctrl-c")
	if !m.Done {
		t.Error("Ctrl-C does not quit")
	}
	m = s.start(200, 50)
	want(t, m, "MORE")
	if press(m, "q"); !m.Done {
		t.Error("q does not quit")
	}
}

// While nobody answers the screen says so, and it asks once an interval; what a caller may not see is
// not shown, and what was refused is said in its place.
func TestUnanswered(t *testing.T) {
	s := &server{rows: 3, page: 500}
	m := s.start(80, 24)
	m.At(time.Unix(101, 0))
	s.err = errors.New("connection refused")
	if n := s.answer(m); n != 1 {
		t.Errorf("%d requests", n)
	}
	m.At(time.Unix(101, 5e8))
	if n := s.answer(m); n != 0 {
		t.Errorf("%d requests more in the same interval", n)
	}
	m.At(time.Unix(105, 0))
	want(t, m, "NO ANSWER for 4s", "isolated, checked 15s ago", "connection refused", "host-00002")
	s.err = nil
	s.answer(m)
	if got := text(m); strings.Contains(got, "NO ANSWER") || strings.Contains(got, "refused") {
		t.Error(got)
	}
	s.err = &Refusal{Text: "counters are not read"}
	m.At(time.Unix(110, 0))
	s.answer(m)
	want(t, m, "counters are not read", "host-00002")

	// What was begun for a view that is not seen any more is asked again.
	m.At(time.Unix(120, 0))
	r, _ := m.Wants()
	m.Enter(Answer{Request: r, Err: fmt.Errorf("x: %w", context.Canceled)})
	if _, some := m.Wants(); !some || strings.Contains(text(m), "NO ANSWER") {
		t.Error("it is not asked again")
	}

	m = s.start(80, 24)
	m.heading.Provider = true
	press(m, "2")
	want(t, m, "[2links]")
	s.err = &Refusal{Text: "for the provider", Forbidden: true}
	s.answer(m)
	want(t, m, "[1hosts]", "for the provider")
	press(m, "2")
	want(t, m, "[1hosts]")
	s.err = nil
	m = s.start(80, 24)
	m.open(&View{Title: "host", Read: s.read})
	s.err = &Refusal{Text: "for the provider", Forbidden: true}
	s.answer(m)
	want(t, m, "hosts  3 rows")
}

// evil is what a host may call itself: it clears the screen, sets the title, turns the text round,
// stacks marks, takes no place, or two.
const evil = "\x1b[2Jevil\x1b]0;x\a\u009b31m\r\n\t\x00\u202e\u200d\u0301\u0301世界\U0001F1E9\U0001F1EA\xff"

// Whatever is answered or typed, at any size, a screen has the lines and places of the terminal, and
// nothing in it that a terminal obeys.
func TestHostile(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}, {40, 10}, {20, 5}, {9, 4}, {3, 3}, {2, 2}, {1, 1}, {0, 0}} {
		s := &server{rows: 30, page: 500, name: evil}
		m := s.start(size[0], size[1])
		check := func(what string) {
			t.Helper()
			lines := m.Draw()
			if len(lines) != max(size[1], 1) {
				t.Errorf("%s at %v: %d lines", what, size, len(lines))
			}
			for _, l := range lines {
				places := 0
				for _, span := range l {
					places += wide(span.Text)
					for _, r := range span.Text {
						if !unicode.IsPrint(r) || unicode.Is(unicode.Mn, r) {
							t.Errorf("%s at %v: %q", what, size, span.Text)
						}
					}
				}
				if places > max(size[0], 1) {
					t.Errorf("%s at %v: %d places: %q", what, size, places, l.String())
				}
			}
		}
		check("a list")
		press(m, " ", " ", "enter")
		check("text")
		press(m, "w")
		check("why")
		press(m, "esc", "esc", "/", "\x1b", "\u202e", "x")
		check("a filter")
		press(m, "esc", "?", "down", "end")
		check("help")
		press(m, "esc")
		for _, err := range []error{errors.New(evil), &Refusal{Text: strings.Repeat(evil, 9)}, &Refusal{Text: evil, Forbidden: true}} {
			s.err = err
			m.At(m.now.Add(time.Hour))
			s.answer(m)
			check("an error")
		}
	}
	s := &server{rows: 3, page: 500, name: evil}
	if m := s.start(200, 24); !strings.Contains(text(m), "host-00000?[2Jevil?]0;x??31m") {
		t.Error(text(m))
	}
}

func TestWrap(t *testing.T) {
	for _, x := range []struct {
		line string
		room int
		want string
	}{
		{"a line", 6, "a line"}, {"a line of words", 6, "a line|  of|  word|  s"}, {"  in one", 7, "  in|    one"},
		{"", 5, ""}, {"abcdefghij", 5, "abcde|  fgh|  ij"}, {"世界世界", 4, "世界|  世|  界"}, {"abc", 1, "abc"},
	} {
		if got := strings.Join(wrap(x.line, x.room), "|"); got != x.want {
			t.Errorf("%q in %d: %q, want %q", x.line, x.room, got, x.want)
		}
	}
}

// Moving costs what is seen, not what there is.
func TestScrolling(t *testing.T) {
	costs := func(rows int) float64 {
		s := &server{rows: rows, page: 500}
		m := s.start(200, 50)
		press(m, "end")
		s.answer(m)
		press(m, "home")
		return testing.AllocsPerRun(100, func() {
			press(m, "pgdn", "down")
			m.Draw()
		})
	}
	if few, many := costs(6000), costs(12_000); many > 1.1*few {
		t.Errorf("%v allocations with 6,000 rows, %v with 12,000", few, many)
	}
}

func BenchmarkScroll(b *testing.B) {
	s := &server{rows: 10_000, page: 500}
	m := s.start(200, 50)
	press(m, "end")
	s.answer(m)
	press(m, "home")
	for b.Loop() {
		press(m, "pgdn")
		m.Draw()
	}
}

func BenchmarkAnswer(b *testing.B) {
	s := &server{rows: 10_000, page: 500}
	m := s.start(200, 50)
	press(m, "s", "s")
	s.answer(m)
	for b.Loop() {
		m.At(m.now.Add(time.Second))
		s.answer(m)
	}
}
