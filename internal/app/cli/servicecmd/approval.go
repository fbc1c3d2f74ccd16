package servicecmd

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/exit"
	"github.com/ibwarden/ibwarden/internal/app/cli/table"
)

// Approval is `ibwarden approval`.
func Approval() *cobra.Command {
	return group("approval list|approve|reject", "Show and decide changes that wait for a second person",
		approvalList(), approvalEnd("approve", "Carry out a change that waits; not for who asked for it"), approvalEnd("reject", "End a change that waits"))
}

func approvalList() *cobra.Command {
	return reader("list", "List the changes that wait for a second person", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		list, err := client.All[api.Approval](c.Context(), to, "/approvals", nil)
		if err != nil {
			return err
		}
		if f.json {
			return table.JSON(c.OutOrStdout(), map[string]any{"approvals": list})
		}
		for _, a := range list {
			fmt.Fprintf(c.OutOrStdout(), "%s, %s, by %s of %s: %s, until %s\n", a.ID, a.At.UTC().Format(time.RFC3339), table.Plain(a.By), table.Plain(a.Tenant), a.Action, a.Expires.UTC().Format(time.RFC3339))
			if a.Why != "" {
				fmt.Fprintf(c.OutOrStdout(), "  because: %s\n", table.Plain(a.Why))
			}
			for _, words := range a.Words {
				fmt.Fprintf(c.OutOrStdout(), "  %s\n", table.Plain(words))
			}
		}
		return nil
	})
}

func approvalEnd(what, short string) *cobra.Command {
	return writer(what+" ID", short, cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		return f.change(c, to, http.MethodPost, "/approvals/"+url.PathEscape(args[0])+"/"+what, f.params(""), nil)
	})
}

// Rollback is `ibwarden rollback`.
func Rollback() *cobra.Command {
	var tenant string
	c := writer("rollback REVISION", "Bring partitions and members back to how they were at a revision", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		n, err := strconv.ParseUint(args[0], 10, 53)
		if err != nil {
			return exit.WithMisuse(fmt.Errorf("revision %q: want a number", args[0]))
		}
		return f.change(c, to, http.MethodPost, "/rollback", f.params(""), api.RollbackBody{To: n, Tenant: tenant})
	})
	c.Long = c.Short + `, and for the provider
the policy file. --dry-run says what that would change. Tenants, tokens and the owners of
ports stay as they are, and nobody gets by it what he may not have today.
`
	c.Flags().StringVar(&tenant, "tenant", "", "this tenant's part alone (a tenant's own in any case)")
	return c
}
