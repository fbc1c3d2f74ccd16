package servicecmd

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// Named are the flags of commands that ask a service where one is named or runs, and else
// go to the fabric themselves (Choose).
type Named struct{ flags serverFlags }

// Add adds the flags.
func (n *Named) Add(flags *pflag.FlagSet) {
	flags.StringVar(&n.flags.server, "server", "", "ask this service, which knows the fabric, instead of reading the fabric: unix:PATH, https://HOST:PORT, or http://ADDRESS:PORT on this machine; none asks none (default: "+listen.ServerVariable+"; where neither that nor a fabric is named, the service that runs on this machine, if one does)")
	flags.StringVar(&n.flags.tokenFile, "token-file", "", "file with the token for the service ("+tokenVariable+" holds the token itself)")
	flags.StringVar(&n.flags.ca, "cacert", "", "file with the CA of the service's certificate, PEM (default: those of the system)")
}

// Snapshot is the fabric as the manager of the service last read it. What options ask for
// and the manager does not read for itself is read now.
func (n *Named) Snapshot(c *cobra.Command, o sweep.Options) (*snapshot.Snapshot, error) {
	to, err := n.flags.open(c.Context(), c.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, part := range []struct {
		name string
		on   bool
	}{{"qos", o.QoS}, {"aliases", o.Aliases}, {"audit", o.Audit}} {
		if part.on {
			parts = append(parts, part.name)
		}
	}
	query := url.Values{}
	if len(parts) > 0 {
		query.Set("read", strings.Join(parts, ","))
	}
	var snap *snapshot.Snapshot
	err = terminal.During(c.ErrOrStderr(), "asking the service", func() (err error) {
		snap, err = fetch(c.Context(), to, query)
		return err
	})
	return snap, failed(err)
}

// fetch reads a snapshot as it comes.
func fetch(ctx context.Context, to *client.Client, query url.Values) (*snapshot.Snapshot, error) {
	r, w := io.Pipe()
	fetched := make(chan error, 1)
	go func() {
		err := to.Fetch(ctx, "/snapshot", query, w)
		w.CloseWithError(err)
		fetched <- err
	}()
	snap, err := snapshot.Read(r)
	r.CloseWithError(err)
	if e := <-fetched; e != nil && err != nil {
		err = e
	}
	return snap, err
}

// Show shows what a service knows of its fabric.
func (n *Named) Show(c *cobra.Command, reads sweep.Options, show func(*observed.Fabric) error) error {
	snap, err := n.Snapshot(c, reads)
	if err != nil {
		return err
	}
	for _, f := range snap.Faults {
		fmt.Fprintln(c.ErrOrStderr(), "ibwarden:", terminal.Plain(f))
	}
	if err := show(snap.Fabric); err != nil {
		return terminal.WithBad(err)
	}
	if len(snap.Faults) > 0 {
		return terminal.WithBad(fmt.Errorf("%s could not be read", terminal.Count(len(snap.Faults), "place")))
	}
	return nil
}
