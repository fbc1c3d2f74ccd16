package servicecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// History is `ibwarden history`.
func History() *cobra.Command {
	return group("history list|show|decisions|verify|export|accept-restored", "Show who changed what, and check the audit log",
		historyList(), historyShow(), historyDecisions(), historyVerify(), historyExport(), historyAcceptRestored())
}

func historyList() *cobra.Command {
	var limit int
	c := reader("list", "List the last changes, the newest first", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		if limit < 1 {
			return terminal.WithMisuse(fmt.Errorf("--limit %d: want 1 or more", limit))
		}
		list, err := client.Page[views.Revision](c.Context(), to, "/revisions", limit, nil)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"revisions": list})
		}
		for i := range list {
			printRevision(c.OutOrStdout(), &list[i])
		}
		return nil
	})
	c.Flags().IntVar(&limit, "limit", 20, "at most this many")
	return c
}

func printRevision(out io.Writer, r *views.Revision) {
	by := r.By
	if by == "" {
		by = "somebody else"
	}
	if r.Tenant != "" {
		by += " of " + r.Tenant
	}
	fmt.Fprintf(out, "revision %d, %s, by %s: %s%s\n", r.Number, r.At.UTC().Format(time.RFC3339), terminal.Plain(by), r.Action, inWords(r.Outcome))
	if r.Why != "" {
		fmt.Fprintf(out, "  because: %s\n", terminal.Plain(r.Why))
	}
	for _, words := range r.Words {
		fmt.Fprintf(out, "  %s\n", terminal.Plain(words))
	}
}

func historyShow() *cobra.Command {
	return reader("show REVISION", "Show one change, with its objects before and after", cobra.ExactArgs(1), func(c *cobra.Command, f *serverFlags, to *client.Client, args []string) error {
		n, err := strconv.ParseUint(args[0], 10, 53)
		if err != nil || n == 0 {
			return terminal.WithMisuse(fmt.Errorf("revision %q: want a number from 1", args[0]))
		}
		r, _, err := client.Get[views.Revision](c.Context(), to, "/revisions/"+strconv.FormatUint(n, 10), nil)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), r)
		}
		printRevision(c.OutOrStdout(), &r)
		for _, e := range r.Edits {
			fmt.Fprintf(c.OutOrStdout(), "  %s\n", terminal.Plain(e.Key))
			for _, x := range []struct {
				sign  string
				value any
			}{{"-", e.Before}, {"+", e.After}} {
				if x.value != nil {
					data, _ := json.Marshal(x.value) // it came as JSON
					fmt.Fprintf(c.OutOrStdout(), "    %s %s\n", x.sign, terminal.Plain(string(data)))
				}
			}
		}
		return nil
	})
}

func historyVerify() *cobra.Command {
	var heads []string
	c := reader("verify", "Check the audit log, and that the objects are what the revisions wrote", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		q := url.Values{}
		if len(heads) > 0 {
			q.Set("head", strings.Join(heads, ","))
		}
		v, _, err := client.Get[views.Verified](c.Context(), to, "/audit-log/verify", q)
		if err != nil {
			return err
		}
		if f.json {
			if err := terminal.JSON(c.OutOrStdout(), v); err != nil {
				return err
			}
		}
		if v.Head == "" { // else the log is as it was written
			if v.Sequence == 0 {
				return terminal.WithBad(errors.New(terminal.Plain(v.Reason)))
			}
			return terminal.WithBad(fmt.Errorf("the audit log breaks at entry %d: %s", v.Sequence, terminal.Plain(v.Reason)))
		}
		if !f.json {
			printVerified(c.OutOrStdout(), &v)
		}
		if !v.Holds {
			return terminal.WithBad(errors.New(terminal.Plain(v.Reason)))
		}
		return nil
	})
	c.Flags().StringArrayVar(&heads, "head", nil, "a head that was logged earlier, SEQUENCE:HASH: the chain has to pass through it; may be given several times")
	return c
}

// printVerified prints what was checked of a store whose log is as it was written.
func printVerified(w io.Writer, v *views.Verified) {
	fmt.Fprintf(w, "%s, none changed, removed, added or moved\n", terminal.Count(int(v.Entries), "entry"))
	fmt.Fprintf(w, "%s as the revisions wrote them\n", terminal.Count(v.Objects, "object"))
	for _, d := range v.Differences {
		fmt.Fprintln(w, terminal.Plain(d.String()))
	}
	if more := v.Differ - len(v.Differences); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	for _, what := range v.NotCompared {
		fmt.Fprintf(w, "not compared: %s\n", terminal.Plain(what))
	}
	fmt.Fprintf(w, "head %s\n", v.Head)
}

func historyExport() *cobra.Command {
	return printer("export", "Print the audit log as JSON lines, with its hashes", cobra.NoArgs, func(c *cobra.Command, to *client.Client, _ []string) error {
		return to.Fetch(c.Context(), "/audit-log/export", nil, c.OutOrStdout())
	})
}

func historyAcceptRestored() *cobra.Command {
	f := new(serverFlags)
	var why string
	c := &cobra.Command{Use: "accept-restored", Short: "Accept a store that was rolled back, without the revisions that are missing in it", Args: cobra.NoArgs}
	c.Long = c.Short + `.

A manager whose store does not have revisions any more that it has seen gives no port anything
new and takes no changes: /readyz, ibwarden show managers and the log name what is missing. Put the
right store back, if you have it; the manager goes on by itself. Else look with ibwarden history
list what the store ends with, and accept it with a reason. From then on its policy is in
force: who was removed in a revision that is missing has his keys again until he is removed again.`
	c.RunE = func(c *cobra.Command, _ []string) error {
		if why == "" {
			return terminal.WithMisuse(errors.New("want --why REASON"))
		}
		to, err := f.open(c.Context(), c.ErrOrStderr())
		if err != nil {
			return err
		}
		w := writeFlags{serverFlags: *f, why: why}
		return w.change(c, to, http.MethodPost, "/store/accept-restored", w.params(""), nil)
	}
	f.add(c.Flags())
	f.addJSON(c.Flags())
	c.Flags().StringVar(&why, "why", "", "the reason, for the history")
	return c
}

// Events is `ibwarden show events`.
func Events() *cobra.Command {
	var after string
	var follow bool
	f := new(serverFlags)
	c := &cobra.Command{
		Use: "events", Short: "Print events of a running service, and more as they happen", Args: cobra.NoArgs,
		Long: `Print the events that a running service still keeps: changes, what became of them on
the fabric, and what the subnet manager reports. With --follow each is printed as it
happens too; a lost connection is made again, and the events go on where they stopped.
`,
		RunE: func(c *cobra.Command, _ []string) error {
			to, err := f.open(c.Context(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			if follow {
				return failed(followEvents(c, f, to, after))
			}
			for e, err := range to.KeptEvents(c.Context(), after) {
				if err != nil {
					return failed(err)
				}
				printEvent(c, f, &e)
			}
			return nil
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with each event as it happens, until interrupted")
	c.Flags().BoolVar(&f.json, "json", false, "print each event as a line of JSON")
	c.Flags().StringVar(&after, "after", "", "the ID of the last event that you have seen")
	return c
}

func printEvent(c *cobra.Command, f *serverFlags, e *views.Event) {
	if f.json {
		data, _ := json.Marshal(e) // it came as JSON
		fmt.Fprintf(c.OutOrStdout(), "%s\n", data)
		return
	}
	fmt.Fprintf(c.OutOrStdout(), "%s %s %s\n", e.At.UTC().Format(time.RFC3339), e.ID, eventWords(e))
}

// Limits of following: how long it waits before it connects again, and how often it tries
// without an event.
const (
	followPause = time.Second
	followTries = 60
)

func followEvents(c *cobra.Command, f *serverFlags, to *client.Client, after string) error {
	ctx := c.Context()
	for tries := 0; ; tries++ {
		var err error
		for e, problem := range to.Events(ctx, after) {
			if err = problem; err != nil {
				break
			}
			tries, after = 0, e.ID
			printEvent(c, f, &e)
		}
		if ctx.Err() != nil {
			return nil // following ends when it is interrupted
		}
		var p *api.Problem
		if errors.As(err, &p) && p.Status < 500 || tries == followTries || tries == 0 && after == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

func eventWords(e *views.Event) string {
	switch e.Kind {
	case "revision":
		return fmt.Sprintf("revision %d: %s", e.Revision, terminal.Plain(e.Text))
	case "outcome":
		return fmt.Sprintf("revision %d%s", e.Revision, inWords(e.Outcome))
	}
	return e.Kind + ": " + terminal.Plain(e.Text)
}

// Backup is `ibwarden store backup`.
func Backup() *cobra.Command {
	return printer("backup FILE", "Write the whole store of a running service to a file", cobra.ExactArgs(1), func(c *cobra.Command, to *client.Client, args []string) error {
		if err := fetchFile(c.Context(), to, "/backup", args[0]); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: the store of %s\n", args[0], to.Server())
		return nil
	})
}

// fetchFile writes an answer to a file, whole or not at all. Only its owner may read it.
func fetchFile(ctx context.Context, to *client.Client, path, file string) (err error) {
	out, err := os.CreateTemp(filepath.Dir(file), ".ibwarden-*")
	if err != nil {
		return terminal.WithMisuse(err)
	}
	defer func() {
		if err != nil {
			os.Remove(out.Name())
		}
	}()
	err = to.Fetch(ctx, path, nil, out)
	if err == nil {
		err = out.Sync()
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), file)
}

// export is `ibwarden policy export`.
func export() *cobra.Command {
	var applied bool
	c := reader("export", "Print the policy in force as a policy file, in YAML", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		if applied {
			return exportApplied(c, f, to)
		}
		e, _, err := client.Get[api.Export](c.Context(), to, "/export", url.Values{})
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), e)
		}
		_, err = fmt.Fprint(c.OutOrStdout(), strings.TrimRight(e.Text, "\n")+"\n")
		return err
	})
	c.Flags().BoolVar(&applied, "applied", false, "print the policy file that was applied last instead, as it was written")
	return c
}

// exportApplied prints the policy file that was applied last.
func exportApplied(c *cobra.Command, f *serverFlags, to *client.Client) error {
	p, _, err := client.Get[api.PolicyFile](c.Context(), to, "/policy", nil)
	if err != nil {
		return err
	}
	if f.json {
		return terminal.JSON(c.OutOrStdout(), p)
	}
	_, err = io.WriteString(c.OutOrStdout(), p.Text)
	return err
}

func historyDecisions() *cobra.Command {
	var limit int
	var refused bool
	c := reader("decisions", "List the last decisions of the audit log, refusals included, the newest first", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		if limit < 1 {
			return terminal.WithMisuse(fmt.Errorf("--limit %d: want 1 or more", limit))
		}
		decision := ""
		if refused {
			decision = "refused"
		}
		list, err := client.Page[views.Entry](c.Context(), to, "/audit-log", limit, only("decision", decision))
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"decisions": list})
		}
		for i := range list {
			e := &list[i]
			text := fmt.Sprintf("entry %d, %s, by %s of %s: %s: %s", e.Sequence, e.Time.UTC().Format(time.RFC3339), terminal.Plain(e.Caller), terminal.Plain(e.Tenant), terminal.Plain(e.Action), e.Decision)
			if e.Revision != 0 {
				text += fmt.Sprintf(" as revision %d", e.Revision)
			}
			if e.Count > 0 && e.Since != nil {
				text += fmt.Sprintf(" %d times more since %s", e.Count, e.Since.UTC().Format(time.RFC3339))
			}
			if e.Reason != "" {
				text += ": " + terminal.Plain(e.Reason)
			}
			fmt.Fprintln(c.OutOrStdout(), text)
		}
		return nil
	})
	c.Flags().IntVar(&limit, "limit", 20, "at most this many")
	c.Flags().BoolVar(&refused, "refused", false, "only those that were refused")
	return c
}
