package servicecmd

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
)

// Why asks the service why two end ports can or cannot talk.
func (n *Named) Why(c *cobra.Command, from, to string, sl uint8) (a views.Answer, err error) {
	at, err := n.flags.open(c.Context(), c.ErrOrStderr())
	if err != nil {
		return a, err
	}
	a, _, err = client.Get[views.Answer](c.Context(), at, "/why", url.Values{"from": {from}, "to": {to}, "sl": {strconv.Itoa(int(sl))}})
	return a, failed(err)
}

// Peers asks the service whom an end port can talk with.
func (n *Named) Peers(c *cobra.Command, port string, sl uint8) ([]views.Peer, error) {
	at, err := n.flags.open(c.Context(), c.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	peers, err := client.All[views.Peer](c.Context(), at, "/peers", url.Values{"port": {port}, "sl": {strconv.Itoa(int(sl))}})
	return peers, failed(err)
}

// PrintAnswer prints why two end ports can or cannot talk.
func PrintAnswer(out io.Writer, a *views.Answer) error {
	verdict := map[string]string{reach.CauseTalk.String(): "yes", reach.CauseUnknown.String(): "unknown"}[a.Cause]
	if verdict == "" {
		verdict = "no"
	}
	fmt.Fprintf(out, "%s: %s\n", verdict, terminal.Plain(a.Sentence))
	if len(a.Shared) > 0 {
		rows := terminal.NewTable("partition", "name", a.From.Name, a.To.Name, "there", "back")
		for _, s := range a.Shared {
			rows.Add(s.PKey, s.Name, membership(s.FromFull), membership(s.ToFull), disposition(s.There), disposition(s.Back))
		}
		fmt.Fprintln(out)
		if err := rows.Print(out, "", false); err != nil {
			return err
		}
		for _, s := range a.Shared {
			printWay(out, s.PKey+" there", s.There)
			printWay(out, s.PKey+" back", s.Back)
		}
	}
	if len(a.Remedies) > 0 {
		fmt.Fprintf(out, "\nany one of these would let them talk:\n")
	}
	for _, r := range a.Remedies {
		text := terminal.Plain(r.Text)
		switch {
		case r.PKey == "":
		case r.File:
			text += ", in the policy file"
		default:
			text = fmt.Sprintf("%s:\n      ibwarden partition member add %s %s=full", text, r.PKey, r.Port)
		}
		fmt.Fprintf(out, "  %s\n", text)
	}
	return nil
}

// printWay prints the way of a packet, as far as the caller is told of it.
func printWay(out io.Writer, what string, p *views.Path) {
	if p == nil || len(p.Hops) == 0 {
		return
	}
	hops := make([]string, len(p.Hops))
	for i, h := range p.Hops {
		hops[i] = terminal.Plain(h.Name)
		if h.In > 0 && h.Out > 0 {
			hops[i] += fmt.Sprintf(" (port %d to %d)", h.In, h.Out)
		}
	}
	fmt.Fprintf(out, "\n%s: %s\n", what, strings.Join(hops, ", "))
	if p.Reason != "" && p.Disposition != reach.Delivered.String() {
		fmt.Fprintf(out, "  %s\n", terminal.Plain(p.Reason))
	}
}

func membership(full bool) string {
	if full {
		return "full"
	}
	return "limited"
}

func disposition(p *views.Path) string {
	if p == nil {
		return "no match"
	}
	return p.Disposition
}
