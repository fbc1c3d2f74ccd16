package servicecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

const (
	// topInterval is the default time between two screens, topLeast the shortest.
	topInterval = 2 * time.Second
	topLeast    = 200 * time.Millisecond
	// topRows bounds the lines of a section, topEvents the events that are kept.
	topRows   = 8
	topEvents = 64
)

// screen is what one screen of `ibwarden top` shows.
type screen struct {
	server  string
	at      time.Time
	status  views.Status
	tenants []api.Tenant
	sweep   *views.Sweep
	busy    []views.PortCounters // those that send most
	faulty  []views.PortCounters // those with most errors
	// unread says why there are no counters.
	unread string
	events []views.Event // the last ones, the oldest first
}

// Top is `ibwarden top`.
func Top() *cobra.Command {
	interval := topInterval
	f := new(serverFlags)
	c := &cobra.Command{
		Use: "top", Short: "Show how the fabric is, as it changes: verdict, links, tenants, load, events", Args: cobra.NoArgs,
		Long: `Show how the fabric is, as it changes: the verdict, what was found, the last sweep, the
tenants, the ports that send most and those with most errors, and the last events. A tenant
sees its own part. In a terminal the screen is drawn again until it is interrupted; where the
output goes elsewhere it is printed once.

Load and errors are known where ibwarden run reads the counters of ports (--metrics).
`,
		RunE: func(c *cobra.Command, _ []string) error {
			if interval < topLeast {
				return terminal.WithMisuse(fmt.Errorf("--interval %v: want at least %v", interval, topLeast))
			}
			to, err := f.open(c.Context(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			return failed(top(c, to, interval))
		},
	}
	f.add(c.Flags())
	c.Flags().DurationVar(&interval, "interval", interval, "time between two screens")
	return c
}

// top draws screens, or one where the output is no terminal.
func top(c *cobra.Command, to *client.Client, interval time.Duration) error {
	ctx, out := c.Context(), c.OutOrStdout()
	var last screen
	for {
		next, err := look(ctx, to, &last)
		switch {
		case ctx.Err() != nil:
			return nil // it ends when it is interrupted
		case err != nil:
			return err
		}
		last = *next
		var text bytes.Buffer
		if err := last.print(&text); err != nil {
			return err
		}
		if !terminal.IsTerminal(out) {
			_, err := out.Write(text.Bytes())
			return err
		}
		if err := redraw(out, text.String()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// look asks the service for a screen; what was on the last one tells which events are new.
func look(ctx context.Context, to *client.Client, last *screen) (*screen, error) {
	s := &screen{server: to.Server(), at: time.Now(), events: last.events}
	var err error
	if s.status, _, err = client.Get[views.Status](ctx, to, "/status", nil); err != nil {
		return nil, err
	}
	if s.tenants, err = client.Page[api.Tenant](ctx, to, "/tenants", topRows+2, nil); err != nil {
		return nil, err
	}
	after := ""
	if n := len(s.events); n > 0 {
		after = s.events[n-1].ID
	}
	for e, err := range to.KeptEvents(ctx, after) {
		if err != nil {
			return nil, err
		}
		if s.events = append(s.events, e); len(s.events) > topEvents {
			s.events = s.events[len(s.events)-topEvents:]
		}
	}
	if s.status.Fabric == nil {
		return s, nil // a tenant
	}
	list, err := client.Page[views.Sweep](ctx, to, "/sweeps", 1, nil)
	if err != nil && !isStatus(err, http.StatusServiceUnavailable) {
		return nil, err
	}
	if len(list) > 0 {
		s.sweep = &list[0]
	}
	for _, x := range []struct {
		order string
		ports *[]views.PortCounters
	}{{views.BySends, &s.busy}, {views.ByErrors, &s.faulty}} {
		*x.ports, err = client.Page[views.PortCounters](ctx, to, "/counters", topRows, url.Values{"order": {x.order}})
		var p *api.Problem
		switch {
		case errors.As(err, &p) && (p.Status == http.StatusConflict || p.Status == http.StatusServiceUnavailable):
			s.unread = p.Detail
		case err != nil:
			return nil, err
		}
	}
	return s, nil
}

func isStatus(err error, status int) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Status == status
}

func (s *screen) print(out io.Writer) error {
	x := &s.status
	fmt.Fprintf(out, "ibwarden %s at %s, %s\n", terminal.Plain(x.Version), terminal.Plain(s.server), s.at.UTC().Format(time.RFC3339))
	fmt.Fprintf(out, "verdict: %s, %s\n", terminal.Plain(x.Verdict), x.When(s.at))
	if f := x.Fabric; f != nil {
		fmt.Fprintf(out, "fabric: switches %d (drained %d), CAs %d, routers %d, links %d (not active %d)\n", f.Switches, f.Drained, f.CAs, f.Routers, f.Links, f.Inactive)
		fmt.Fprintf(out, "policy file: partitions %d\n", f.Declared)
	}
	fmt.Fprintf(out, "service: tenants %d, partitions %d, members %d, ports of tenants %d, approvals waiting %d\n", x.Tenants, x.Partitions, x.Members, x.Ports, x.Approvals)
	if w := s.sweep; w != nil {
		reason := ""
		if w.Reason != "" {
			reason = ": " + terminal.Plain(w.Reason)
		}
		fmt.Fprintf(out, "last sweep: %s, %.3f s, %d packets%s\n", w.Began.UTC().Format(time.RFC3339), w.Seconds, w.Sent, reason)
	}
	if err := s.printTenants(out); err != nil {
		return err
	}
	if x.Fabric != nil {
		if err := s.printLoad(out); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	first := max(0, len(s.events)-topRows)
	for i := range s.events[first:] {
		e := &s.events[first+i]
		fmt.Fprintf(out, "%s %s\n", e.At.UTC().Format(time.TimeOnly), eventWords(e))
	}
	return nil
}

func (s *screen) printTenants(out io.Writer) error {
	t := terminal.NewTable("tenant", "partitions", "ports")
	more := false
	n := 0
	for _, x := range s.tenants {
		if x.Name == "provider" && s.status.Fabric != nil && x.Partitions+x.Ports == 0 {
			continue
		}
		if n++; n > topRows {
			more = true
			break
		}
		t.Add(x.Name, x.Partitions, x.Ports)
	}
	if n == 0 {
		return nil
	}
	fmt.Fprintln(out)
	if err := t.Print(out, "", false); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(out, "and more (ibwarden tenant list)")
	}
	return nil
}

func (s *screen) printLoad(out io.Writer) error {
	fmt.Fprintln(out)
	if s.unread != "" {
		fmt.Fprintln(out, terminal.Plain(s.unread))
		return nil
	}
	busy, faulty := terminal.NewTable("port", "to", "sends", "receives"), terminal.NewTable("port", "to", "errors")
	sending, erring := 0, 0
	for _, p := range s.busy {
		if p.Sends != nil && *p.Sends > 0 {
			sending++
			busy.Add(place(&p), p.Peer, raw(p.Sends), raw(p.Receives))
		}
	}
	for _, p := range s.faulty {
		if p.Errors > 0 {
			erring++
			faulty.Add(place(&p), p.Peer, p.Errors)
		}
	}
	if err := printSome(out, busy, sending, "no port sends anything"); err != nil {
		return err
	}
	return printSome(out, faulty, erring, "no port has counted an error")
}

// printSome prints a table, or why it is empty.
func printSome(out io.Writer, t terminal.Table, rows int, none string) error {
	if rows == 0 {
		_, err := fmt.Fprintln(out, none)
		return err
	}
	return t.Print(out, "", false)
}

func place(p *views.PortCounters) string { return fmt.Sprintf("%s:%d", p.Name, p.Port) }

// bytes is a rate for people.
func raw(rate *float64) string {
	if rate == nil {
		return "-"
	}
	n, unit := *rate, 0
	for ; n >= 999.5 && unit < 4; unit++ {
		n /= 1000
	}
	digits := 0
	if unit > 0 && n < 9.95 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %sB/s", digits, math.Abs(n), [...]string{"", "k", "M", "G", "T"}[unit])
}

// redraw puts a text in place of what the terminal shows, cut to its size.
func redraw(out io.Writer, text string) error {
	rows, columns := 24, 80
	if file, is := out.(*os.File); is {
		if size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ); err == nil && size.Row > 1 && size.Col > 1 {
			rows, columns = int(size.Row), int(size.Col)
		}
	}
	const home, rest, below = "\x1b[H", "\x1b[K\n", "\x1b[J"
	var b strings.Builder
	b.WriteString(home)
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i == rows-1 {
			break
		}
		if runes := []rune(line); len(runes) > columns {
			line = string(runes[:columns])
		}
		b.WriteString(line + rest)
	}
	b.WriteString(below)
	_, err := io.WriteString(out, b.String())
	return err
}
