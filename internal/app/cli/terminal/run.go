package terminal

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/mattn/go-runewidth"
)

const (
	// clock is the time between two screens while nothing happens: times on it are in seconds.
	clock = time.Second
	// answerTimeout bounds a request, so that the screen says so where nobody answers.
	answerTimeout = 30 * time.Second
)

// Run shows the model on the terminal of this process until its user quits or ctx ends, and leaves
// the terminal as it was. The error says that the terminal cannot be used, or is gone.
func (m *Model) Run(ctx context.Context, colour bool) error {
	tcell.SetEncodingFallback(tcell.EncodingFallbackASCII)
	s, err := tcell.NewTerminfoScreen()
	if err == nil {
		err = s.Init()
	}
	if err != nil {
		return fmt.Errorf("full screen with TERM %q: %w", os.Getenv("TERM"), err)
	}
	defer s.Fini()
	events, quit := make(chan tcell.Event), make(chan struct{})
	go s.ChannelEvents(events, quit)
	defer close(quit)
	tick := time.NewTicker(min(clock, m.Interval))
	defer tick.Stop()
	answers := make(chan Answer, 1)
	var out *Request // the one that is not answered
	stop := func() {}
	defer func() { stop() }()
	m.Resize(s.Size())
	for !m.Done {
		m.At(time.Now())
		if out != nil && out.View != nil && out.View != m.View() {
			stop()
		}
		if out == nil {
			if r, some := m.Wants(); some {
				within, cancel := context.WithTimeout(ctx, answerTimeout)
				out, stop = &r, cancel
				go func() { answers <- m.Ask(within, r) }()
			}
		}
		m.paint(s, colour)
		select {
		case <-ctx.Done():
			return nil
		case a := <-answers:
			stop()
			out = nil
			m.At(time.Now())
			m.Enter(a)
		case e := <-events:
			if err := m.event(s, e); err != nil {
				return err
			}
		case <-tick.C:
		}
	}
	return nil
}

// Ask asks what a request wants.
func (m *Model) Ask(ctx context.Context, r Request) Answer {
	a := Answer{Request: r}
	if r.Head {
		a.Heading, a.Err = m.Head(ctx)
	}
	if r.View != nil && a.Err == nil {
		a.Page, a.Err = r.View.Read(ctx, r.cursor)
	}
	return a
}

// keys are the names of those that are no character.
var keys = map[tcell.Key]string{
	tcell.KeyUp: "up", tcell.KeyDown: "down",
	tcell.KeyPgUp: "pgup", tcell.KeyPgDn: "pgdn", tcell.KeyHome: "home", tcell.KeyEnd: "end",
	tcell.KeyEnter: "enter", tcell.KeyEscape: "esc", tcell.KeyBackspace: "backspace", tcell.KeyBackspace2: "backspace", tcell.KeyCtrlC: "ctrl-c",
}

func (m *Model) event(s tcell.Screen, e tcell.Event) error {
	switch e := e.(type) {
	case *tcell.EventResize:
		s.Sync()
		m.Resize(e.Size())
	case *tcell.EventKey:
		name := keys[e.Key()]
		if e.Key() == tcell.KeyRune {
			name = string(e.Rune())
		}
		m.Key(name)
	case *tcell.EventError:
		return e
	}
	return nil
}

func (m *Model) paint(s tcell.Screen, colour bool) {
	for y, line := range m.Draw() {
		x := 0
		for _, span := range line {
			style := styleOf(span, colour)
			for _, r := range span.Text {
				s.SetContent(x, y, r, nil, style)
				x += runewidth.RuneWidth(r)
			}
		}
		for ; x < m.width; x++ {
			s.SetContent(x, y, ' ', nil, tcell.StyleDefault)
		}
	}
	s.Show()
}

func styleOf(s Span, colour bool) tcell.Style {
	style := tcell.StyleDefault.Reverse(s.Picked).Bold(s.Tone == Strong || s.Tone == ToneBad).Dim(s.Tone == Faint)
	if c, some := map[Tone]tcell.Color{Good: tcell.ColorGreen, Warn: tcell.ColorOlive, ToneBad: tcell.ColorMaroon}[s.Tone]; some && colour {
		style = style.Foreground(c) // of the sixteen that a terminal's owner chooses
	}
	return style
}
