package servicecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

const (
	// statusRevisions bounds the revisions that are looked at for those not yet proved.
	statusRevisions = 100
	// statusWrong bounds the lines about what is wrong, so that all stays on one screen.
	statusWrong = 10
)

// Overview is what `ibwarden status --json` prints.
type Overview struct {
	Server string       `json:"server"`
	At     time.Time    `json:"at"`
	Status views.Status `json:"status"`
	// Managers are null for a tenant.
	Managers []views.SubnetManager `json:"managers"`
	// Proved is the newest revision that is proved on the fabric, 0 for none of the last
	// statusRevisions; Pending are those that wait for that.
	Proved  uint64   `json:"proved_revision"`
	Pending []uint64 `json:"pending_revisions"`
	Wrong   []Wrong  `json:"wrong"`
}

// Wrong is something that is not as it should be.
type Wrong struct {
	Concerns string `json:"concerns"`
	Text     string `json:"text"`
	Try      string `json:"try"`
}

// Status is `ibwarden status`.
func Status() *cobra.Command {
	f := new(serverFlags)
	var fabric string
	c := &cobra.Command{
		Use: "status", Short: "Show on one screen how the fabric is: verdict, manager, revision, what is wrong", Args: cobra.NoArgs,
		Long: `Show on one screen how the fabric is: the verdict and when it was proved, who manages it, the
revision in force, how much there is, and what is wrong with whom it concerns. A running service
is asked; a tenant sees its own part. ibwarden top shows it as it changes.

Exit status 1 unless tenants are kept apart, and if no service answers.
`,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("fabric") {
				return terminal.WithMisuse(fmt.Errorf("status asks a service, not a fabric: ibwarden audit --fabric %s reads the fabric itself, and writes nothing", terminal.Plain(fabric)))
			}
			to, err := f.open(c.Context(), c.ErrOrStderr())
			if err != nil {
				return unanswered(err)
			}
			o, err := overview(c.Context(), to)
			if err != nil {
				return unanswered(failed(err))
			}
			if f.json {
				err = terminal.JSON(c.OutOrStdout(), o)
			} else {
				err = o.print(c.OutOrStdout())
			}
			switch {
			case err != nil:
				return terminal.WithBad(err)
			case !o.Status.Holds:
				return terminal.WithBad(fmt.Errorf("it is not proved that tenants are kept apart: %s", terminal.Plain(o.Status.Verdict)))
			}
			return nil
		},
	}
	f.add(c.Flags())
	f.addJSON(c.Flags())
	c.Flags().StringVar(&fabric, "fabric", "", "for those who try it: a fabric itself is read by ibwarden audit")
	_ = c.Flags().MarkHidden("fabric") // it is there
	return c
}

// unanswered adds what to try where no service is there to ask.
func unanswered(err error) error {
	if err == nil || !errors.Is(err, errNoService) && !errors.Is(err, client.ErrNone) {
		return err
	}
	return terminal.WithBad(fmt.Errorf("%w; without a service, ibwarden audit --fabric umad reads the fabric itself, and writes nothing", err))
}

// overview asks a service. What only the provider may ask is not asked for a tenant.
func overview(ctx context.Context, to *client.Client) (*Overview, error) {
	o := &Overview{Server: to.Server(), At: time.Now().UTC().Truncate(time.Second), Pending: []uint64{}, Wrong: []Wrong{}}
	var err error
	if o.Status, _, err = client.Get[views.Status](ctx, to, "/status", nil); err != nil {
		return nil, err
	}
	revisions, err := client.Page[views.Revision](ctx, to, "/revisions", statusRevisions, nil)
	if err != nil {
		return nil, err
	}
	if o.Status.Fabric != nil {
		if o.Managers, err = client.All[views.SubnetManager](ctx, to, "/managers", nil); unready(err) {
			err = nil
		}
		if err != nil {
			return nil, err
		}
		differences, err := client.Page[views.Difference](ctx, to, "/cables", statusWrong+1, nil)
		if err != nil && !unready(err) {
			return nil, err
		}
		for _, d := range differences {
			o.wrong(d.Name, "ibwarden topology diff", "%s", d.Text)
		}
	}
	if !o.Status.Holds {
		proof, _, err := client.Get[views.Proof](ctx, to, "/proof", nil)
		if err != nil && !unready(err) {
			return nil, err
		}
		o.unproved(&proof)
	}
	o.counts()
	o.managed()
	o.revised(revisions)
	return o, nil
}

// unready reports whether a service has not read the fabric yet, or has no manager.
func unready(err error) bool { return isStatus(err, http.StatusServiceUnavailable) }

func (o *Overview) wrong(concerns, try, format string, args ...any) {
	o.Wrong = append(o.Wrong, Wrong{concerns, fmt.Sprintf(format, args...), try})
}

// who is whom what the caller asks about concerns, if nobody in particular.
func (o *Overview) who() string {
	if o.Status.Fabric == nil {
		return "you"
	}
	return "all"
}

// unproved enters why the verdict does not hold.
func (o *Overview) unproved(p *views.Proof) {
	for _, v := range p.Violations {
		ports := slices.DeleteFunc([]string{v.From, v.To}, func(s string) bool { return s == "" })
		key := ""
		if v.PKey != "" {
			key = " with P_Key " + v.PKey
		}
		if len(ports) == 2 {
			o.wrong(strings.Join(ports, " and "), fmt.Sprintf("ibwarden why %s %s", v.From, v.To), "they can talk%s, and may not", key)
		} else {
			o.wrong(strings.Join(ports, ""), "", "it can talk%s with a port that it may not talk with", key)
		}
	}
	for _, reason := range p.Reasons {
		o.wrong(o.who(), "ibwarden prove", "%s", reason)
	}
	if more := p.Counts.Violations - len(p.Violations); more > 0 {
		o.wrong(o.who(), "ibwarden prove", "%d more pairs of ports can talk and may not", more)
	}
}

// counts enters what the numbers of the fabric say, and what waits.
func (o *Overview) counts() {
	s := &o.Status
	if s.Store != "" {
		o.wrong("all", "ibwarden history verify", "no change is taken: %s", s.Store)
	}
	if s.Fabric != nil && s.Fabric.Inactive > 0 {
		o.wrong("the hosts and switches at them", "ibwarden show links", "%s not active", areCount(s.Fabric.Inactive, "link"))
	}
	if s.Approvals > 0 {
		o.wrong(o.who(), "ibwarden approval list", "%s to be approved by a second person", areCount(s.Approvals, "change"))
	}
}

func areCount(n int, what string) string {
	if n == 1 {
		return terminal.Count(n, what) + " is"
	}
	return terminal.Count(n, what) + " are"
}

// masters are the managers that are in charge.
func (o *Overview) masters() (list []*views.SubnetManager) {
	for i := range o.Managers {
		if m := &o.Managers[i]; m.State == "master" && m.Missed == 0 {
			list = append(list, m)
		}
	}
	return list
}

// managed enters what is wrong with the managers.
func (o *Overview) managed() {
	if o.Managers == nil {
		return
	}
	if n := len(o.masters()); n != 1 {
		o.wrong("all", "ibwarden show managers", "%d subnet managers are master: want one", n)
	}
	for i := range o.Managers {
		switch m := &o.Managers[i]; {
		case m.Why != "":
			o.wrong(m.Node, "ibwarden show managers", "this subnet manager does not count: %s", m.Why)
		case m.Policy == "other":
			o.wrong(m.Node, "ibwarden show managers", "this subnet manager has another policy")
		}
	}
}

// cameTo says what became of a revision that is not in force.
var cameTo = map[string]string{"failed": "was written, and is not proved", "refused": "was refused by the fabric"}

// revised enters which revision is in force, which wait, and those after it that came to nothing.
func (o *Overview) revised(list []views.Revision) {
	for i := range list { // the newest first
		r := &list[i]
		if r.Outcome == nil {
			continue
		}
		switch r.Outcome.State {
		case "proved":
			o.Proved = r.Number
			return
		case "pending":
			o.Pending = append(o.Pending, r.Number)
		default:
			concerns, reason := r.Tenant, ""
			if concerns == "" {
				concerns = o.who()
			}
			if len(r.Outcome.Reasons) > 0 {
				reason = ": " + r.Outcome.Reasons[0]
			}
			o.wrong(concerns, fmt.Sprintf("ibwarden history show %d", r.Number), "revision %d (%s) %s%s", r.Number, r.Action, cameTo[r.Outcome.State], reason)
		}
	}
}

func (o *Overview) print(out io.Writer) error {
	x := &o.Status
	fmt.Fprintf(out, "service:   ibwarden %s at %s\n", terminal.Plain(x.Version), terminal.Plain(o.Server))
	at := ""
	if !x.ReadAt.IsZero() {
		at = ", at " + x.ReadAt.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(out, "verdict:   %s, %s%s\n", terminal.Plain(x.Verdict), x.When(o.At), at)
	for _, m := range o.masters() {
		self := ""
		if m.Self {
			self = ", which answers this"
		}
		fmt.Fprintf(out, "manager:   %s (%s) is master%s; %s in all\n", terminal.Plain(m.Node), m.Port, self, terminal.Count(len(o.Managers), "manager"))
	}
	fmt.Fprintf(out, "revision:  %s\n", o.revision())
	if f := x.Fabric; f != nil {
		fmt.Fprintf(out, "fabric:    hosts %d, switches %d (drained %d), routers %d, links %d (not active %d)\n", f.CAs, f.Switches, f.Drained, f.Routers, f.Links, f.Inactive)
	}
	fmt.Fprintf(out, "tenants:   %d, with partitions %d, members %d, ports %d\n", x.Tenants, x.Partitions, x.Members, x.Ports)
	if len(o.Wrong) == 0 {
		_, err := fmt.Fprintln(out, "wrong:     nothing is known to be")
		return err
	}
	fmt.Fprintln(out, "wrong:")
	for i, w := range o.Wrong {
		if i == statusWrong {
			_, err := fmt.Fprintf(out, "  and %d more (--json)\n", len(o.Wrong)-i)
			return err
		}
		try := ""
		if w.Try != "" {
			try = " (" + terminal.Plain(w.Try) + ")"
		}
		if _, err := fmt.Fprintf(out, "  %s: %s%s\n", terminal.Plain(w.Concerns), terminal.Plain(w.Text), try); err != nil {
			return err
		}
	}
	return nil
}

// revision is which is in force, and which wait.
func (o *Overview) revision() string {
	text := "none is proved"
	if o.Proved > 0 {
		text = fmt.Sprintf("%d is in force", o.Proved)
	}
	if len(o.Pending) == 0 {
		return text + ", none is pending"
	}
	var list []string
	for _, n := range o.Pending[:min(len(o.Pending), statusWrong)] {
		list = append(list, fmt.Sprint(n))
	}
	if len(o.Pending) > len(list) {
		list = append(list, "...")
	}
	return text + ", pending: " + strings.Join(list, ", ")
}
