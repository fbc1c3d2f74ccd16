package servicecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/address"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/exit"
	"github.com/ibwarden/ibwarden/internal/app/cli/table"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Named are the flags of commands that ask a service only where one is named, and else
// go to the fabric themselves.
type Named struct{ flags serverFlags }

// Add adds the flags.
func (n *Named) Add(flags *pflag.FlagSet) {
	flags.StringVar(&n.flags.server, "server", "", "ask this service, which knows the fabric, instead of reading the fabric: unix:PATH, https://HOST:PORT, or http://ADDRESS:PORT on this machine ("+address.Variable+" names one where --fabric is not given)")
	flags.StringVar(&n.flags.tokenFile, "token-file", "", "file with the token for the service ("+tokenVariable+" holds the token itself)")
	flags.StringVar(&n.flags.ca, "cacert", "", "file with the CA of the service's certificate, PEM (default: those of the system)")
}

// Is reports whether a service is named: by the flag, or by the environment where no
// fabric is.
func (n *Named) Is(fabric bool) bool {
	return n.flags.server != "" || !fabric && os.Getenv(address.Variable) != ""
}

// Snapshot is the fabric as the manager of the service last read it.
func (n *Named) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	c, err := n.flags.open()
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	fetched := make(chan error, 1)
	go func() {
		err := c.Fetch(ctx, "/snapshot", nil, w)
		w.CloseWithError(err)
		fetched <- err
	}()
	snap, err := snapshot.Read(r)
	r.CloseWithError(err)
	if e := <-fetched; e != nil && err != nil {
		err = e
	}
	return snap, failed(err)
}

// apply has the service apply a policy file: a dry run plans it and changes nothing, else
// the answer comes when it is proved.
func (n *Named) apply(ctx context.Context, f api.PolicyFile, dry bool) (*api.Changed, error) {
	c, err := n.flags.open()
	if err != nil {
		return nil, err
	}
	params := client.Params{DryRun: dry, Wait: !dry}
	// What another has applied since is not overwritten unseen.
	_, params.Match, err = client.Get[api.PolicyFile](ctx, c, "/policy", nil)
	var p *api.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		params.None, err = true, nil
	}
	var out api.Changed
	if err == nil {
		err = c.Write(ctx, http.MethodPut, "/policy", params, f, &out)
	}
	return &out, failed(err)
}

// Plan has the service plan a policy file, and prints what it says.
func (n *Named) Plan(c *cobra.Command, f api.PolicyFile, asJSON bool) error {
	planned, err := n.apply(c.Context(), f, true)
	if err != nil {
		return err
	}
	if asJSON {
		return table.JSON(c.OutOrStdout(), planned)
	}
	for _, text := range planned.Words {
		fmt.Fprintln(c.OutOrStdout(), table.Plain(text))
	}
	if planned.Plan == nil {
		return exit.WithBad(errors.New("the service sent no plan"))
	}
	_, err = fmt.Fprint(c.OutOrStdout(), planned.Plan.Text)
	return err
}

// Apply has the service apply a policy file, prints what came of it, and reports whether
// it is proved, or needs no proof: it changed nothing, or waits for a second person.
func (n *Named) Apply(c *cobra.Command, f api.PolicyFile, asJSON bool) (proved bool, err error) {
	done, err := n.apply(c.Context(), f, false)
	if err != nil {
		return false, err
	}
	o, w := done.Outcome, c.OutOrStdout()
	proved = done.Approval != "" || len(done.Words) == 0 || o != nil && o.State == string(service.Proved)
	if asJSON {
		return proved, table.JSON(w, done)
	}
	for _, text := range done.Words {
		fmt.Fprintln(w, table.Plain(text))
	}
	switch {
	case done.Approval != "":
		_, err = fmt.Fprintf(w, "waits for a second person, as approval %s\n", done.Approval)
	case len(done.Words) == 0:
		_, err = fmt.Fprintln(w, "nothing to change")
	case o != nil:
		_, err = fmt.Fprintf(w, "revision %d: %s, verdict: %s, %s\n", done.Revision, o.State, o.Verdict, table.Count(o.Writes, "write"))
	}
	return proved, err
}
