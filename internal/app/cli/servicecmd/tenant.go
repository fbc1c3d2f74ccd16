package servicecmd

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Tenant is `ibwarden tenant`.
func Tenant() *cobra.Command {
	return group("tenant list|show|create|set|delete|token", "Show and change the tenants of a running service, and their tokens", tenantList(), tenantShow(), tenantCreate(), tenantSet(), tenantDelete(), Token())
}

func tenantList() *cobra.Command {
	var selector string
	c := reader("list", "List tenants, by name", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		list, err := client.All[api.Tenant](c.Context(), to, "/tenants", selecting(url.Values{}, selector))
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"tenants": list})
		}
		t := terminal.NewTable("name", "keys", "partitions", "ports", "changed")
		for _, x := range list {
			var keys any
			if x.Keys != nil {
				keys = string(x.Keys.First) + "-" + string(x.Keys.Last)
			}
			t.Add(x.Name, keys, x.Partitions, x.Ports, x.Changed)
		}
		return t.Print(c.OutOrStdout(), "tenants", false)
	})
	addSelector(c, &selector)
	return c
}

// tenantFlags say what a tenant may have.
type tenantFlags struct {
	keys    string
	quota   api.Quota
	approve bool
	known   bool
	label   []string
}

func (f *tenantFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.keys, "keys", "", "the partition numbers that it may use, for example 0x0100-0x01ff")
	flags.IntVar(&f.quota.Partitions, "partitions", 0, "at most this many partitions (0: no limit)")
	flags.IntVar(&f.quota.Members, "members", 0, "at most this many members in all its partitions (0: no limit)")
	flags.IntVar(&f.quota.KeysPerPort, "keys-per-port", 0, "at most this many partitions for each of its ports (0: no limit)")
	flags.IntVar(&f.quota.ChangesPerMinute, "changes-per-minute", 0, "at most this many changes in 60 s (0: no limit)")
	flags.BoolVar(&f.approve, "approve-removals", false, "removals wait until a second person approves them")
	flags.BoolVar(&f.known, "known-ports-only", false, "refuse port GUIDs that the fabric has not seen")
}

// body is what the flags say, over what was there.
func (f *tenantFlags) body(flags *pflag.FlagSet, old api.TenantBody) (api.TenantBody, error) {
	if flags.Changed("keys") {
		first, last, both := strings.Cut(f.keys, "-")
		if !both {
			return old, terminal.WithMisuse(fmt.Errorf("--keys %q: want two numbers, such as 0x0100-0x01ff", f.keys))
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
	var err error
	old.Labels, err = labelled(old.Labels, f.label)
	return old, err
}

func tenantCreate() *cobra.Command {
	var t tenantFlags
	c := writer("create NAME", "Create a tenant", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		body, err := t.body(c.Flags(), api.TenantBody{})
		if err != nil {
			return err
		}
		p := f.params("")
		p.None = true
		return f.change(c, to, http.MethodPut, "/tenants/"+url.PathEscape(args[0]), p, body)
	})
	t.add(c.Flags())
	addLabels(c, &t.label)
	return c
}

func tenantSet() *cobra.Command {
	var t tenantFlags
	c := writer("set NAME", "Change the keys and quotas of a tenant", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		path := "/tenants/" + url.PathEscape(args[0])
		old, etag, err := client.Get[api.Tenant](c.Context(), to, path, nil)
		if err != nil {
			return err
		}
		body, err := t.body(c.Flags(), api.TenantBody{Keys: old.Keys, Quota: old.Quota, ApproveRemovals: old.ApproveRemovals, KnownPortsOnly: old.KnownPortsOnly, Labels: old.Labels})
		if err != nil {
			return err
		}
		if err := unchanged(c, etag, "tenant "+args[0]); err != nil {
			return err
		}
		return f.change(c, to, http.MethodPut, path, f.params(etag), body)
	})
	addSeen(c)
	t.add(c.Flags())
	addLabels(c, &t.label)
	return c
}

func tenantDelete() *cobra.Command {
	c := writer("delete NAME", "Delete a tenant and its tokens; it must have no partitions, ports or pools left", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		path := "/tenants/" + url.PathEscape(args[0])
		etag, err := seenTag(c, to, path, "tenant "+args[0])
		if err != nil {
			return err
		}
		return f.change(c, to, http.MethodDelete, path, f.params(etag), nil)
	})
	addSeen(c)
	return c
}

func tenantShow() *cobra.Command {
	return reader("show NAME", "Show a tenant with its quotas", cobra.ExactArgs(1), func(c *cobra.Command, f *serverFlags, to *client.Client, args []string) error {
		x, _, err := client.Get[api.Tenant](c.Context(), to, "/tenants/"+url.PathEscape(args[0]), nil)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), x)
		}
		fmt.Fprintf(c.OutOrStdout(), "tenant %s, changed last in revision %d\n", terminal.Plain(x.Name), x.Changed)
		if len(x.Labels) > 0 {
			fmt.Fprintln(c.OutOrStdout(), "labels", labelsText(x.Labels))
		}
		t := terminal.NewTable("setting", "limit", "used")
		var keys any
		if x.Keys != nil {
			keys = string(x.Keys.First) + "-" + string(x.Keys.Last)
		}
		t.Add("partition numbers", keys, nil)
		limit := func(n int) any {
			if n == 0 {
				return nil
			}
			return n
		}
		t.Add("partitions", limit(x.Quota.Partitions), x.Partitions)
		t.Add("ports", nil, x.Ports)
		t.Add("members", limit(x.Quota.Members), nil)
		t.Add("partitions of a port", limit(x.Quota.KeysPerPort), nil)
		t.Add("changes in 60 s", limit(x.Quota.ChangesPerMinute), nil)
		if err := t.Print(c.OutOrStdout(), "tenant", false); err != nil {
			return err
		}
		if x.ApproveRemovals {
			fmt.Fprintln(c.OutOrStdout(), "removals wait until a second person approves them")
		}
		if x.KnownPortsOnly {
			fmt.Fprintln(c.OutOrStdout(), "port GUIDs that the fabric has not seen are refused")
		}
		return nil
	})
}
