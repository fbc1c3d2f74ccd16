// Package servicecmd implements the commands that speak to a running service: tenants,
// partitions, members, ports, tokens, history, events and backups.
package servicecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/files"
)

// tokenVariable holds the token of commands that are given no file with one.
const tokenVariable = "IBWARDEN_TOKEN"

// secretMax bounds the files of tokens, certificates and keys, in bytes.
const secretMax = 1 << 20

// serverFlags are the flags that choose a service, and what the command shows of itself.
type serverFlags struct {
	server, tokenFile, ca, certificate, key string
	json                                    bool
	// found is a service that runs on this machine and that nobody named; nil for none.
	found *listen.Server
}

func (f *serverFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.server, "server", "", "the service: unix:PATH, https://HOST:PORT, or http://ADDRESS:PORT on this machine ("+listen.ServerVariable+" names another default; else the socket of a service on this machine)")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with a token, which only its owner may be able to read ("+tokenVariable+" holds the token itself); over the socket, root and the owner of the service need none")
	flags.StringVar(&f.ca, "cacert", "", "file with the CA certificate of the server, PEM (default: the CAs of the system)")
	flags.StringVar(&f.certificate, "cert", "", "file with a client certificate, PEM")
	flags.StringVar(&f.key, "key", "", "file with the key of the client certificate, PEM; only its owner may be able to read it")
}

func (f *serverFlags) addJSON(flags *pflag.FlagSet) {
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
}

// options are what the flags and the environment say of a client.
func (f *serverFlags) options() (o client.Options, err error) {
	o = client.Options{Token: os.Getenv(tokenVariable), Old: func(why string) {
		fmt.Fprintln(os.Stderr, "ibwarden: this may be old:", terminal.Plain(why))
	}}
	if f.tokenFile != "" {
		b, err := files.Secret(f.tokenFile, secretMax)
		if err != nil {
			return o, terminal.WithMisuse(fmt.Errorf("--token-file: %w", err))
		}
		o.Token = strings.TrimSpace(string(b))
	}
	for _, x := range []struct {
		flag, path string
		read       func(string, int64) ([]byte, error)
		to         *[]byte
	}{
		{"--cacert", f.ca, files.Read, &o.CA}, {"--cert", f.certificate, files.Read, &o.Certificate},
		{"--key", f.key, files.Secret, &o.Key},
	} {
		if x.path == "" {
			continue
		}
		if *x.to, err = x.read(x.path, secretMax); err != nil {
			return o, terminal.WithMisuse(fmt.Errorf("%s: %w", x.flag, err))
		}
	}
	return o, nil
}

// open is a client of the service; what is there and not asked is said to w.
func (f *serverFlags) open(ctx context.Context, w io.Writer) (*client.Client, error) {
	s, named, err := f.find(ctx, w)
	if err != nil {
		return nil, err
	}
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	o.OwnOnly = !named
	c, err := client.New(s, o)
	if err != nil {
		return nil, terminal.WithMisuse(err)
	}
	return c, nil
}

// failed gives an error its exit status: what the service says of the request itself is
// misuse.
func failed(err error) error {
	var p *api.Problem
	var done *terminal.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &done), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &p):
		text := p.Detail
		for _, e := range p.Errors {
			if !strings.Contains(text, e.Reason) {
				text += "; " + e.Field + ": " + e.Reason
			}
		}
		if p.Status == http.StatusPreconditionRequired {
			text += " (" + seenFlag + ")"
		}
		err = errors.New(terminal.Plain(text))
		if p.Status == http.StatusBadRequest || p.Status == http.StatusUnprocessableEntity {
			return terminal.WithMisuse(err)
		}
	}
	return terminal.WithBad(err)
}

// writeFlags are those of commands that change something.
type writeFlags struct {
	serverFlags
	dryRun, wait bool
	why          string
	offers       bool // what it makes waits for another tenant
}

func (f *writeFlags) add(flags *pflag.FlagSet) {
	f.serverFlags.add(flags)
	f.addJSON(flags)
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would change, and change nothing")
	flags.BoolVar(&f.wait, "wait", false, "wait until the change is proved on the fabric; status 1 if it is not")
	flags.StringVar(&f.why, "why", "", "the reason, for the history")
}

// params are the parameters of a write; etag is that of the object that it changes.
func (f *writeFlags) params(etag string) client.Params {
	return client.Params{DryRun: f.dryRun, Wait: f.wait, Why: f.why, Match: etag}
}

// change makes a change and says what came of it.
func (f *writeFlags) change(c *cobra.Command, to *client.Client, method, path string, p client.Params, body any) error {
	var out api.Changed
	if err := to.Write(c.Context(), method, path, p, body, &out); err != nil {
		return failed(err)
	}
	return f.say(c, &out)
}

func (f *writeFlags) say(c *cobra.Command, out *api.Changed) error {
	if f.json {
		if err := terminal.JSON(c.OutOrStdout(), out); err != nil {
			return terminal.WithBad(err)
		}
	} else {
		f.inWords(c.OutOrStdout(), out)
	}
	if out.Approval != "" && f.wait && !f.dryRun {
		return terminal.WithBad(fmt.Errorf("it is not done: it waits for the approval of a second person as %s", out.Approval))
	}
	if o := out.Outcome; f.wait && !f.dryRun && o != nil && o.State != "proved" {
		return terminal.WithBad(fmt.Errorf("revision %d is not proved: %s", out.Revision, o.State))
	}
	return nil
}

func (f *writeFlags) inWords(w io.Writer, out *api.Changed) {
	for _, words := range out.Words {
		fmt.Fprintln(w, terminal.Plain(words))
	}
	switch p := out.Plan; {
	case f.dryRun && p != nil && p.Text != "":
		_ = printText(w, p.Text) // as the words before it
	case f.dryRun && p != nil && p.Changes && p.Ports == 0:
		fmt.Fprintln(w, "the fabric would change") // the rest is of others too
	case f.dryRun && p != nil:
		fmt.Fprintf(w, "%s would change, with %s; %d pairs of end ports come to talk, %d cease to\n",
			terminal.Count(p.Ports, "port"), terminal.Count(p.Sets, "write"), p.Gained, p.Lost)
	}
	switch {
	case f.dryRun:
		fmt.Fprintln(w, "nothing was changed (--dry-run)")
	case out.Approval != "" && f.offers:
		fmt.Fprintf(w, "it waits as %s (ibwarden approval list); ibwarden approval reject %s withdraws it\n", out.Approval, out.Approval)
	case out.Approval != "":
		fmt.Fprintf(w, "it waits as %s: somebody else has to approve it (ibwarden approval approve %s)\n", out.Approval, out.Approval)
	case out.Repeated:
		fmt.Fprintf(w, "done before, as revision %d\n", out.Revision)
	case len(out.Words) == 0:
		fmt.Fprintln(w, "nothing to change")
	default:
		fmt.Fprintf(w, "revision %d%s\n", out.Revision, inWords(out.Outcome))
	}
}

// printText prints text of a service line by line, without what a terminal would obey.
func printText(w io.Writer, text string) error {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			line = terminal.Plain(line)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// inWords is an outcome after the number of its revision.
func inWords(o *views.Outcome) string {
	switch {
	case o == nil:
		return ""
	case o.State == "pending":
		return ": stored, not yet proved on the fabric"
	case o.State == "proved":
		return fmt.Sprintf(": proved on the fabric, %s, after %v", o.Verdict, time.Duration(o.Seconds*float64(time.Second)).Round(time.Millisecond))
	}
	text := ": " + o.State
	if o.Verdict != "" && o.State != "refused" {
		text += ", " + o.Verdict
	}
	if len(o.Reasons) > 0 {
		text += ": " + terminal.Plain(o.Reasons[0])
	}
	return text
}

// group is a command that has others below it, which its help and its misuse list.
func group(use, short string, sub ...*cobra.Command) *cobra.Command {
	var names []string
	for _, s := range sub {
		names = append(names, s.Name())
	}
	c := &cobra.Command{
		Use: use, Short: short,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return terminal.WithMisuse(fmt.Errorf("%s has no command %q: want %s", c.CommandPath(), args[0], listed(names)))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return terminal.WithMisuse(fmt.Errorf("%s needs a command: %s", c.Name(), listed(names)))
		},
	}
	c.AddCommand(sub...)
	return c
}

func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// only is the query of a list for what has a value; all of it where that is empty.
func only(name, value string) url.Values {
	if value == "" {
		return url.Values{}
	}
	return url.Values{name: {value}}
}

// printer is a command that reads, and has one form of what it prints.
func printer(use, short string, args cobra.PositionalArgs, run func(c *cobra.Command, to *client.Client, args []string) error) *cobra.Command {
	f := new(serverFlags)
	c := &cobra.Command{Use: use, Short: short, Args: args}
	c.RunE = func(c *cobra.Command, args []string) error {
		to, err := f.open(c.Context(), c.ErrOrStderr())
		if err != nil {
			return err
		}
		return failed(run(c, to, args))
	}
	f.add(c.Flags())
	return c
}

// reader is a command that reads and prints.
func reader(use, short string, args cobra.PositionalArgs, run func(c *cobra.Command, f *serverFlags, to *client.Client, args []string) error) *cobra.Command {
	f := new(serverFlags)
	c := &cobra.Command{Use: use, Short: short, Args: args}
	c.RunE = func(c *cobra.Command, args []string) error {
		to, err := f.open(c.Context(), c.ErrOrStderr())
		if err != nil {
			return err
		}
		return failed(run(c, f, to, args))
	}
	f.add(c.Flags())
	f.addJSON(c.Flags())
	return c
}

// writer is a command that changes something.
func writer(use, short string, args cobra.PositionalArgs, run func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error) *cobra.Command {
	f := new(writeFlags)
	c := &cobra.Command{Use: use, Short: short, Args: args}
	c.RunE = func(c *cobra.Command, args []string) error {
		to, err := f.open(c.Context(), c.ErrOrStderr())
		if err != nil {
			return err
		}
		return failed(run(c, f, to, args))
	}
	f.add(c.Flags())
	return c
}
