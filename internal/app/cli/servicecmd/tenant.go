package servicecmd

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/exit"
	"github.com/ibwarden/ibwarden/internal/app/cli/table"
)

// Tenant is `ibwarden tenant`.
func Tenant() *cobra.Command {
	return group("tenant list|create|set|delete", "Show and change the tenants of a running service", tenantList(), tenantCreate(), tenantSet(), tenantDelete())
}

func tenantList() *cobra.Command {
	return reader("list", "List tenants, by name", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		list, err := client.All[api.Tenant](c.Context(), to, "/tenants", nil)
		if err != nil {
			return err
		}
		if f.json {
			return table.JSON(c.OutOrStdout(), map[string]any{"tenants": list})
		}
		t := table.New("name", "keys", "partitions", "ports", "changed")
		for _, x := range list {
			var keys any
			if x.Keys != nil {
				keys = string(x.Keys.First) + "-" + string(x.Keys.Last)
			}
			t.Add(x.Name, keys, x.Partitions, x.Ports, x.Changed)
		}
		return t.Print(c.OutOrStdout(), "tenants", false)
	})
}

// tenantFlags say what a tenant may have.
type tenantFlags struct {
	keys    string
	quota   api.Quota
	approve bool
	known   bool
}

func (f *tenantFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.keys, "keys", "", "the numbers that its partitions may have, as 0x0100-0x01ff")
	flags.IntVar(&f.quota.Partitions, "partitions", 0, "how many partitions it may have (0: any number)")
	flags.IntVar(&f.quota.Members, "members", 0, "how many members they may have together (0: any number)")
	flags.IntVar(&f.quota.KeysPerPort, "keys-per-port", 0, "how many partitions one of its ports may be in (0: any number)")
	flags.IntVar(&f.quota.ChangesPerMinute, "changes-per-minute", 0, "how many changes it may make in 60 s (0: any number)")
	flags.BoolVar(&f.approve, "approve-removals", false, "removals wait until a second person approves them")
	flags.BoolVar(&f.known, "known-ports-only", false, "GUIDs that the fabric has not seen are refused")
}

// body is what the flags say, over what was there.
func (f *tenantFlags) body(flags *pflag.FlagSet, old api.TenantBody) (api.TenantBody, error) {
	if flags.Changed("keys") {
		first, last, both := strings.Cut(f.keys, "-")
		if !both {
			return old, exit.WithMisuse(fmt.Errorf("--keys %q: want two numbers, as 0x0100-0x01ff", f.keys))
		}
		old.Keys = &api.KeyRange{First: api.PKey(first), Last: api.PKey(last)}
	}
	for _, x := range []struct {
		flag     string
		from, to *int
	}{
		{"partitions", &f.quota.Partitions, &old.Quota.Partitions}, {"members", &f.quota.Members, &old.Quota.Members},
		{"keys-per-port", &f.quota.KeysPerPort, &old.Quota.KeysPerPort}, {"changes-per-minute", &f.quota.ChangesPerMinute, &old.Quota.ChangesPerMinute},
	} {
		if flags.Changed(x.flag) {
			*x.to = *x.from
		}
	}
	if flags.Changed("approve-removals") {
		old.ApproveRemovals = f.approve
	}
	if flags.Changed("known-ports-only") {
		old.KnownPortsOnly = f.known
	}
	return old, nil
}

func tenantCreate() *cobra.Command {
	var t tenantFlags
	c := writer("create NAME", "Make a tenant", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		body, err := t.body(c.Flags(), api.TenantBody{})
		if err != nil {
			return err
		}
		p := f.params("")
		p.None = true
		return f.change(c, to, http.MethodPut, "/tenants/"+url.PathEscape(args[0]), p, body)
	})
	t.add(c.Flags())
	return c
}

func tenantSet() *cobra.Command {
	var t tenantFlags
	c := writer("set NAME", "Change what a tenant may have", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		path := "/tenants/" + url.PathEscape(args[0])
		old, etag, err := client.Get[api.Tenant](c.Context(), to, path, nil)
		if err != nil {
			return err
		}
		body, err := t.body(c.Flags(), api.TenantBody{Keys: old.Keys, Quota: old.Quota, ApproveRemovals: old.ApproveRemovals, KnownPortsOnly: old.KnownPortsOnly})
		if err != nil {
			return err
		}
		return f.change(c, to, http.MethodPut, path, f.params(etag), body)
	})
	t.add(c.Flags())
	return c
}

func tenantDelete() *cobra.Command {
	return writer("delete NAME", "Delete a tenant that has no partition and no port any more, with its tokens", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		return f.change(c, to, http.MethodDelete, "/tenants/"+url.PathEscape(args[0]), f.params(""), nil)
	})
}

// Port is `ibwarden port`.
func Port() *cobra.Command {
	return group("port list|assign|release", "Show end ports, and give them to tenants of a running service", portList(), portAssign(), portRelease())
}

func portList() *cobra.Command {
	var owner string
	c := reader("list", "List end ports, by GUID", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		q := url.Values{}
		if owner != "" {
			q.Set("owner", owner)
		}
		list, err := client.All[api.Port](c.Context(), to, "/ports", q)
		if err != nil {
			return err
		}
		if f.json {
			return table.JSON(c.OutOrStdout(), map[string]any{"ports": list})
		}
		t := table.New("guid", "owner", "node", "port", "lid", "state", "partitions")
		for _, p := range list {
			var number, lid any
			if p.Found {
				number, lid = p.Number, p.LID
			}
			t.Add(p.GUID, p.Owner, p.Node, number, lid, p.State, p.Partitions)
		}
		return t.Print(c.OutOrStdout(), "ports", false)
	})
	c.Flags().StringVar(&owner, "owner", "", "those of this tenant")
	return c
}

func portAssign() *cobra.Command {
	var tenant string
	c := writer("assign --tenant NAME GUID...", "Give ports to a tenant", cobra.MinimumNArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		body := api.AssignBody{Tenant: tenant}
		for _, text := range args {
			g, err := readGUID(text)
			if err != nil {
				return err
			}
			body.Ports = append(body.Ports, api.AssignPort{GUID: g})
		}
		return f.change(c, to, http.MethodPost, "/ports/assign", f.params(""), body)
	})
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant")
	_ = c.MarkFlagRequired("tenant") // it is there
	return c
}

func portRelease() *cobra.Command {
	return writer("release GUID...", "Take ports from their tenants, and out of all partitions", cobra.MinimumNArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		body := api.ReleaseBody{}
		for _, text := range args {
			g, err := readGUID(text)
			if err != nil {
				return err
			}
			body.Ports = append(body.Ports, g)
		}
		return f.change(c, to, http.MethodPost, "/ports/release", f.params(""), body)
	})
}

// Token is `ibwarden token`.
func Token() *cobra.Command {
	return group("token list|create|delete", "Show, make and end the tokens of programs and people", tokenList(), tokenCreate(), tokenDelete())
}

func tokenList() *cobra.Command {
	var tenant string
	c := reader("list", "List tokens and registered certificates; secrets are not kept", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		q := url.Values{}
		if tenant != "" {
			q.Set("tenant", tenant)
		}
		list, err := client.All[api.Token](c.Context(), to, "/tokens", q)
		if err != nil {
			return err
		}
		if f.json {
			return table.JSON(c.OutOrStdout(), map[string]any{"tokens": list})
		}
		t := table.New("id", "kind", "tenant", "read_only", "created", "expires", "note")
		for _, x := range list {
			var expires any
			if x.Expires != nil {
				expires = x.Expires.UTC().Format(time.RFC3339)
			}
			t.Add(x.ID, x.Kind, x.Tenant, x.ReadOnly, x.Created.UTC().Format(time.RFC3339), expires, x.Note)
		}
		return t.Print(c.OutOrStdout(), "tokens", false)
	})
	c.Flags().StringVar(&tenant, "tenant", "", "those of this tenant")
	return c
}

func tokenDelete() *cobra.Command {
	return writer("delete ID", "End a token, or the registration of a certificate", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		return f.change(c, to, http.MethodDelete, "/tokens/"+url.PathEscape(args[0]), f.params(""), nil)
	})
}
