package servicecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/service"
)

// policyChange is a policy file on its way to a service. What it prints is what plan and
// apply print that go to the fabric themselves.
type policyChange struct {
	c    *cobra.Command
	to   *client.Client
	file api.PolicyFile
	// seen is what the service had before: what another has applied since is not
	// overwritten unseen.
	seen client.Params
	plan *api.Plan
}

// byItself are the flags of plan and apply that say what a service decides by itself.
var byItself = []string{"resume", "rollback", "batch", "canary", "journal", "keep-routes", "quarantine", "state", "lmc", "routing", "cables"}

// policyFileMax is the largest policy file that is read, in bytes: no service takes more.
const policyFileMax = 1 << 20

// change has the service plan the policy file at a path.
func (n *Named) change(c *cobra.Command, path string, allowBoth bool) (*policyChange, error) {
	for _, name := range byItself {
		if flag := c.Flags().Lookup(name); flag != nil && flag.Changed {
			return nil, terminal.WithMisuse(fmt.Errorf("--%s and a service: the service does this by itself (ibwarden rollback undoes a revision); to do without it, give --fabric", name))
		}
	}
	text, err := files.Read(path, policyFileMax)
	if err != nil {
		return nil, terminal.WithMisuse(err)
	}
	f := api.PolicyFile{Name: path, Text: string(text), AllowBoth: allowBoth}
	to, err := n.flags.open(c.Context(), c.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	x := &policyChange{c: c, to: to, file: f}
	_, x.seen.Match, err = client.Get[api.PolicyFile](c.Context(), to, "/policy", nil)
	var p *api.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		x.seen.None, err = true, nil
	}
	if err == nil {
		err = x.look()
	}
	return x, failed(err)
}

// look has the service plan the file.
func (x *policyChange) look() error {
	var out api.Changed
	params := x.seen
	params.DryRun = true
	if err := x.to.Write(x.c.Context(), http.MethodPut, "/policy", params, x.file, &out); err != nil {
		return err
	}
	if out.Plan == nil || len(out.Plan.Document) == 0 {
		return errors.New("the service sent no plan")
	}
	x.plan = out.Plan
	return nil
}

// print prints the plan as ibwarden plan does.
func (x *policyChange) print(w io.Writer) error {
	if err := printText(w, x.plan.Text); err != nil {
		return err
	}
	var d struct {
		Warnings []string `json:"warnings"`
	}
	if err := json.Unmarshal(x.plan.Document, &d); err != nil {
		return err
	}
	for _, text := range d.Warnings {
		fmt.Fprintf(w, "note: %s\n", terminal.Plain(text))
	}
	_, err := fmt.Fprintln(w, "read with 0 SubnGet and 0 SubnSet")
	return err
}

// Plan has the service plan a policy file, and prints what it says.
func (n *Named) Plan(c *cobra.Command, path string, allowBoth, asJSON bool) error {
	x, err := n.change(c, path, allowBoth)
	if err != nil {
		return err
	}
	if asJSON {
		err = terminal.JSON(c.OutOrStdout(), x.plan.Document)
	} else {
		err = x.print(c.OutOrStdout())
	}
	if err == nil && x.plan.Unread > 0 {
		err = fmt.Errorf("%s could not be read: this may not be all", terminal.Count(x.plan.Unread, "place"))
	}
	if err != nil {
		return terminal.WithBad(err)
	}
	return nil
}

// applied is what apply --json prints of a service.
type applied struct {
	Plan json.RawMessage `json:"plan"`
	*daemon.Report
	Revision uint64 `json:"revision"`
	// Approval is the ID under which the change waits for a second person.
	Approval string `json:"approval,omitempty"`
}

// Apply has the service apply a policy file, when approve, which is nil for who does not
// ask, says so, waits until it is proved, and prints what came of it.
func (n *Named) Apply(c *cobra.Command, path string, allowBoth, asJSON bool, approve func() error) error {
	x, err := n.change(c, path, allowBoth)
	if err != nil {
		return err
	}
	w := c.OutOrStdout()
	if asJSON {
		w = c.ErrOrStderr()
	}
	if !asJSON || approve != nil {
		if err := x.print(w); err != nil {
			return terminal.WithBad(err)
		}
	}
	if approve != nil {
		if err := approve(); err != nil {
			return terminal.WithBad(err)
		}
	}
	params := x.seen
	params.Wait = true
	var out api.Changed
	if err := x.to.Write(c.Context(), http.MethodPut, "/policy", params, x.file, &out); err != nil {
		return failed(err)
	}
	d := applied{x.plan.Document, reportOf(&out), out.Revision, out.Approval}
	if d.Outcome == "nothing" {
		proof, _, err := client.Get[views.Proof](c.Context(), x.to, "/proof", nil)
		if err != nil {
			return failed(err)
		}
		if err := d.Verdict.UnmarshalText([]byte(proof.Verdict)); err != nil {
			return terminal.WithBad(err)
		}
	}
	if asJSON {
		err = terminal.JSON(c.OutOrStdout(), &d)
	} else {
		err = d.print(w, out.Outcome)
	}
	switch {
	case err != nil:
		return terminal.WithBad(err)
	case d.Approval != "":
		return terminal.WithBad(errors.New(d.Reason))
	case d.Outcome == "stopped", !d.Verdict.Holds():
		return terminal.WithBad(terminal.ErrNotProved)
	}
	return nil
}

// reportOf is the answer of a service as the report of an apply.
func reportOf(out *api.Changed) *daemon.Report {
	r := &daemon.Report{
		Outcome: "nothing", Verdict: isolation.Unknown, Steps: []daemon.Step{}, Failures: []string{},
		SMPs: daemon.SMPs{ByAttribute: []daemon.AttributeCount{}}, Phases: []sweep.Phase{},
	}
	o := out.Outcome
	switch {
	case out.Approval != "":
		r.Outcome = "not begun"
		r.Reason = fmt.Sprintf("it waits for the approval of a second person as %s (ibwarden approval approve %s)", out.Approval, out.Approval)
	case len(out.Words) == 0:
	case o == nil:
		r.Outcome, r.Reason = "stopped", "its outcome is not known"
	default:
		if r.Outcome = "done"; o.State != string(service.Proved) {
			r.Outcome, r.Reason = "stopped", o.State
		}
		if r.Verdict.UnmarshalText([]byte(o.Verdict)) != nil { // as of one that is pending
			r.Verdict = isolation.Unknown
		}
		r.Writes, r.SMPs.Set = o.Writes, o.Writes
		if o.State == string(service.Refused) {
			r.Failures = append(r.Failures, o.Reasons...)
		}
	}
	return r
}

// print says how it ended.
func (d *applied) print(w io.Writer, o *views.Outcome) error {
	switch d.Outcome {
	case "nothing":
		fmt.Fprintln(w, "nothing to change")
	case "not begun":
		_, err := fmt.Fprintln(w, "waits for a second person, as approval", d.Approval)
		return err
	default:
		fmt.Fprintf(w, "\nrevision %d%s\nsent %s\n", d.Revision, inWords(o), terminal.Count(d.Writes, "write"))
	}
	_, err := fmt.Fprintf(w, "verdict: %s\n", d.Verdict)
	if o != nil {
		for _, reason := range o.Reasons {
			fmt.Fprintf(w, "  %s\n", terminal.Plain(reason))
		}
	}
	return err
}
