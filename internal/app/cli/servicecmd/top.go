package servicecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

const (
	// topInterval is the default time between two readings, topLeast the shortest.
	topInterval = 2 * time.Second
	topLeast    = 200 * time.Millisecond
	// topRows bounds the lines of a section.
	topRows = 8
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
		Use: "top", Short: "Show the fabric on the whole terminal, as it changes: tenants, hosts, links, load, history", Args: cobra.NoArgs,
		Long: `Show how the fabric is, on the whole terminal, as it changes: an overview, tenants with their
hosts, whom a host can talk with and why, links, load, errors, the history with what differs,
plans that wait for a second person, and events. A tenant sees its own part. ? lists the keys,
q quits. Nothing is changed. Where the output is no terminal, or TERM is dumb, the overview is
printed once. NO_COLOR turns colours off; no meaning is in a colour alone.

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
	c.Flags().DurationVar(&interval, "interval", interval, "time between two readings of what is seen")
	return c
}

// top shows a service on the whole terminal, or once where the output is none that can do that.
func top(c *cobra.Command, to *client.Client, interval time.Duration) error {
	ctx, out := c.Context(), c.OutOrStdout()
	s := source{to: to}
	if term := os.Getenv("TERM"); terminal.IsTerminal(out) && term != "" && term != "dumb" {
		if _, err := s.heading(ctx); err != nil {
			return err // before the screen is taken
		}
		return s.model(interval).Run(ctx, os.Getenv("NO_COLOR") == "")
	}
	x := screen{server: to.Server(), at: time.Now()}
	var err error
	if x.status, _, err = client.Get[views.Status](ctx, to, "/status", nil); err == nil {
		err = x.fill(ctx, to)
	}
	if err != nil {
		return err
	}
	return x.print(out)
}

// fill asks a service for what is on the screen besides the status.
func (s *screen) fill(ctx context.Context, to *client.Client) error {
	var err error
	if s.tenants, err = client.Page[api.Tenant](ctx, to, "/tenants", topRows+2, nil); err != nil {
		return err
	}
	if s.events, err = eventsSince(ctx, to, s.events, topKept); err != nil || s.status.Fabric == nil {
		return err // a tenant is shown no more
	}
	list, err := client.Page[views.Sweep](ctx, to, "/sweeps", 1, nil)
	if err != nil && !unready(err) {
		return err
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
			return err
		}
	}
	return nil
}

// eventsSince are the last events, at most that many: those known, and what happened since.
func eventsSince(ctx context.Context, to *client.Client, known []views.Event, most int) ([]views.Event, error) {
	after := ""
	if n := len(known); n > 0 {
		after = known[n-1].ID
	}
	for e, err := range to.KeptEvents(ctx, after) {
		if err != nil {
			return known, err
		}
		if known = append(known, e); len(known) > most {
			known = known[len(known)-most:]
		}
	}
	return known, nil
}

func isStatus(err error, status int) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Status == status
}

func (s *screen) print(out io.Writer) error {
	x := &s.status
	fmt.Fprintf(out, "ibwarden %s at %s, %s\n", terminal.Plain(x.Version), terminal.Plain(s.server), s.at.UTC().Format(time.RFC3339))
	fmt.Fprintf(out, "verdict: %s, %s\n", terminal.Plain(x.Verdict), x.When(s.at))
	return s.printRest(out)
}

// printRest prints what is below the verdict.
func (s *screen) printRest(out io.Writer) error {
	x := &s.status
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
