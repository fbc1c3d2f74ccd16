package servicecmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// storeName is the directory of the store in a data directory.
const storeName = "store"

// Token is `ibwarden tenant token`.
func Token() *cobra.Command {
	return group("token list|create|delete", "List, create and delete the tokens of programs and people", tokenList(), tokenCreate(), tokenDelete())
}

func tokenList() *cobra.Command {
	var tenant string
	c := reader("list", "List tokens and registered certificates; secrets are not kept", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		list, err := client.All[api.Token](c.Context(), to, "/tokens", only("tenant", tenant))
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"tokens": list})
		}
		t := terminal.NewTable("id", "kind", "tenant", "read_only", "created", "expires", "made_by", "note")
		for _, x := range list {
			var expires any
			if x.Expires != nil {
				expires = x.Expires.UTC().Format(time.RFC3339)
			}
			t.Add(x.ID, x.Kind, x.Tenant, x.ReadOnly, x.Created.UTC().Format(time.RFC3339), expires, x.By, x.Note)
		}
		return t.Print(c.OutOrStdout(), "tokens", false)
	})
	c.Flags().StringVar(&tenant, "tenant", "", "only those of this tenant")
	return c
}

func tokenDelete() *cobra.Command {
	var keep bool
	c := writer("delete ID", "Delete a token, or the registration of a certificate, and the tokens made with it", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		p := f.params("")
		if keep {
			p.Query = url.Values{"keep_made": {"true"}}
		}
		return f.change(c, to, http.MethodDelete, "/tokens/"+url.PathEscape(args[0]), p, nil)
	})
	c.Flags().BoolVar(&keep, "keep-made", false, "leave the tokens that were made with it")
	return c
}

func tokenCreate() *cobra.Command {
	var body api.TokenBody
	var data, certificate, keys, output string
	var lasts time.Duration
	c := &cobra.Command{Use: "create", Short: "Create a token, and print it and nothing else", Args: cobra.NoArgs}
	c.Long = c.Short + `.

The service keeps only the SHA-256 of a token, so that it cannot be printed again. With
--data DIR the token is created in the store of a data directory that no service has open:
the first token of a service that will be reached only over the network.

With --output FILE the token is written to a new file that only its owner can read, and nothing
is printed: a shell that redirects the output makes a file that others can read.

With --certificate FILE or --uri URI no token is made: a client certificate is
registered for the tenant, and its ID is printed.
`
	f := new(writeFlags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if lasts < 0 {
			return terminal.WithMisuse(fmt.Errorf("--expires-in %v: want a time that is not negative", lasts))
		}
		if lasts > 0 {
			body.Expires = time.Now().Add(lasts).UTC().Truncate(time.Second)
		}
		if certificate != "" {
			b, err := files.Read(certificate, secretMax)
			if err != nil {
				return terminal.WithMisuse(fmt.Errorf("--certificate: %w", err))
			}
			body.Certificate = string(b)
		}
		if output != "" && (f.dryRun || certificate != "" || body.URI != "") {
			return terminal.WithMisuse(errors.New("--output: with --dry-run, --certificate and --uri there is no token to write"))
		}
		if keys != "" {
			first, last, both := strings.Cut(keys, "-")
			if !both {
				return terminal.WithMisuse(fmt.Errorf("--keys %q: want two numbers, such as 0x0100-0x01ff", keys))
			}
			body.Keys = &api.KeyRange{First: api.PKey(first), Last: api.PKey(last)}
		}
		if data != "" {
			for _, name := range []string{"dry-run", "wait", "server"} {
				if c.Flags().Changed(name) {
					return terminal.WithMisuse(fmt.Errorf("--%s and --data: want one or the other", name))
				}
			}
		}
		return printed(c, output, f.json, func() (*api.TokenMade, error) {
			if data != "" {
				return inStore(c, data, body, f)
			}
			return inService(c, body, f)
		})
	}
	f.add(c.Flags())
	c.Flags().StringVar(&body.Tenant, "tenant", "", "the tenant that it acts for; "+resource.Provider+" is the provider (default: your own)")
	c.Flags().BoolVar(&body.ReadOnly, "read-only", false, "it can read and not write")
	c.Flags().StringVar(&keys, "keys", "", "limit it to these partition numbers, for example 0x0100-0x010f: it sees and changes nothing else")
	c.Flags().StringVar(&body.Note, "note", "", "what it is for")
	c.Flags().DurationVar(&lasts, "expires-in", 0, "lifetime, for example 720h (default: unlimited)")
	c.Flags().StringVar(&certificate, "certificate", "", "register this client certificate instead, PEM")
	c.Flags().StringVar(&body.URI, "uri", "", "register client certificates with this URI instead")
	c.Flags().StringVar(&output, "output", "", "write the token to this new file, mode 0600, and print nothing")
	c.Flags().StringVar(&data, "data", "", "create it in the store of this data directory, which no service has open")
	return c
}

// printed makes a token and prints it, or writes it to a file: one that is there before the
// token is, so that no token is made that nobody gets to know.
func printed(c *cobra.Command, output string, asJSON bool, make func() (*api.TokenMade, error)) error {
	if output == "" {
		out, err := make()
		if err != nil || out == nil {
			return err
		}
		return printToken(c, asJSON, out)
	}
	file, err := files.NewSecret(output)
	if err != nil {
		return terminal.WithMisuse(fmt.Errorf("--output: %w", err))
	}
	out, err := make()
	if err == nil {
		_, err = fmt.Fprintln(file, out.Secret)
	}
	if e := errors.Join(file.Sync(), file.Close()); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(output)
		return err
	}
	if out.Secret = ""; asJSON {
		return failed(terminal.JSON(c.OutOrStdout(), out))
	}
	return nil
}

func printToken(c *cobra.Command, asJSON bool, out *api.TokenMade) error {
	if asJSON {
		return failed(terminal.JSON(c.OutOrStdout(), out))
	}
	text := out.Secret
	if text == "" {
		text = out.Token.ID
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), text)
	return failed(err)
}

// inService has the service make a token; of a dry run it says what came of it, and returns
// none.
func inService(c *cobra.Command, body api.TokenBody, f *writeFlags) (*api.TokenMade, error) {
	to, err := f.open(c.Context(), c.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	var out api.TokenMade
	if err := to.Write(c.Context(), http.MethodPost, "/tokens", f.params(""), body, &out); err != nil {
		return nil, failed(err)
	}
	if f.dryRun {
		return nil, failed(f.say(c, &out.Changed))
	}
	return &out, nil
}

// inStore makes a token in a store that no service has open.
func inStore(c *cobra.Command, data string, body api.TokenBody, f *writeFlags) (*api.TokenMade, error) {
	s, done, err := openStore(c.Context(), data)
	if err != nil {
		return nil, err
	}
	defer done()
	if body.Tenant == "" {
		body.Tenant = resource.Provider
	}
	token, secret, err := api.NewToken(body, time.Now())
	if err != nil {
		return nil, failed(err)
	}
	by := resource.Caller{Name: fmt.Sprintf("uid %d, in the store", os.Geteuid()), Tenant: resource.Provider}
	if _, err := s.Do(c.Context(), service.Request{Change: resource.PutToken{Token: token}, By: by, Why: f.why, Seen: resource.Unseen}); err != nil {
		return nil, failed(err)
	}
	return &api.TokenMade{Token: api.TokenOf(&token), Secret: secret}, nil
}

// openStore opens the store of a data directory without a manager.
func openStore(ctx context.Context, data string) (*service.Service, func(), error) {
	dir, err := daemon.OpenDataDir(data)
	if err != nil {
		return nil, nil, terminal.WithMisuse(err)
	}
	db, err := bolt.Open(dir.File(storeName))
	if errors.Is(err, store.ErrLocked) {
		return nil, nil, terminal.WithMisuse(fmt.Errorf("%w: leave out --data, so that the service makes the token", err))
	}
	if err != nil {
		return nil, nil, terminal.WithMisuse(err)
	}
	s, err := service.Open(ctx, service.Config{Store: db, Manager: absent{}, Base: &policy.Policy{}, Owner: "ibwarden tenant token", Now: time.Now})
	if err != nil {
		db.Close()
		return nil, nil, terminal.WithBad(err)
	}
	return s, func() { s.Close(); db.Close() }, nil
}

// absent is the manager where none runs: the next one begins with what is stored.
type absent struct{}

var errAbsent = errors.New("no manager runs")

func (absent) SetPolicy(uint64, *policy.Policy)    {}
func (absent) FollowPolicy(uint64, *policy.Policy) {}
func (absent) HoldBack(string, bool)               {}
func (absent) Predict(context.Context, *policy.Policy) (*service.Plan, error) {
	return nil, errAbsent
}
func (absent) Snapshot(context.Context) (*snapshot.Snapshot, error) { return nil, errAbsent }

// backupMax bounds the file of a backup, in bytes.
const backupMax = 64 << 30

// Restore is `ibwarden store restore`.
func Restore() *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "restore FILE --data DIR", Short: "Read a backup into a data directory that has no store", Args: cobra.ExactArgs(1),
		Long: `Read a backup, as ibwarden store backup wrote it, into a data directory that has no store
yet and that no service has open. The next ibwarden run --data DIR goes on from it.
`,
		RunE: func(c *cobra.Command, args []string) error {
			in, err := files.Open(args[0], backupMax)
			if err != nil {
				return terminal.WithMisuse(err)
			}
			defer in.Close()
			dir, err := daemon.OpenDataDir(data)
			if err != nil {
				return terminal.WithMisuse(err)
			}
			db, err := bolt.Open(dir.File(storeName))
			if err != nil {
				return terminal.WithMisuse(err)
			}
			defer db.Close()
			state, err := store.Restore(c.Context(), db, in, args[0])
			if err != nil {
				return terminal.WithMisuse(err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: as of revision %d\nhead %s\n", dir.File(storeName), state.Revision, state.Audit)
			return nil
		},
	}
	c.Flags().StringVar(&data, "data", "", "the data directory")
	_ = c.MarkFlagRequired("data") // it is there
	return c
}

var _ service.SubnetManager = absent{}
