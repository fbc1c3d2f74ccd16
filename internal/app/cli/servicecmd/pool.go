package servicecmd

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Pool is `ibwarden port pool`.
func Pool() *cobra.Command {
	return group("pool list|assign|release", "List ranges of port GUIDs, and assign them to tenants, for virtual functions", poolList(), poolAssign(), poolRelease())
}

func poolList() *cobra.Command {
	return reader("list", "List the ranges of port GUIDs that tenants have, by their first GUID", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		list, err := client.All[api.Pool](c.Context(), to, "/pools", nil)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"pools": list})
		}
		t := terminal.NewTable("first", "last", "owner", "released")
		for _, p := range list {
			var released any
			if p.Released != 0 {
				released = p.Released
			}
			t.Add(p.First, p.Last, p.Owner, released)
		}
		return t.Print(c.OutOrStdout(), "pools", false)
	})
}

func poolAssign() *cobra.Command {
	var tenant string
	c := writer("assign --tenant NAME FIRST-LAST", "Assign a range of port GUIDs to a tenant", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		first, last, both := strings.Cut(args[0], "-")
		if !both {
			return terminal.WithMisuse(fmt.Errorf("range %q: want two GUIDs, FIRST-LAST", args[0]))
		}
		body := api.PoolBody{Tenant: tenant}
		var err error
		if body.First, err = readGUID(first); err == nil {
			body.Last, err = readGUID(last)
		}
		if err != nil {
			return err
		}
		return f.change(c, to, http.MethodPost, "/pools", f.params(""), body)
	})
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant")
	_ = c.MarkFlagRequired("tenant") // it is there
	return c
}

func poolRelease() *cobra.Command {
	return writer("release FIRST", "Take a range of port GUIDs from its tenant, and its ports out of all partitions", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		g, err := readGUID(args[0])
		if err != nil {
			return err
		}
		return f.change(c, to, http.MethodDelete, "/pools/"+string(g), f.params(""), nil)
	})
}
