package servicecmd

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Approval is `ibwarden approval`.
func Approval() *cobra.Command {
	return group("approval list|approve|reject", "List, approve and reject changes that wait for a second person",
		approvalList(), approvalApprove(), approvalEnd("reject", "Reject a change"))
}

func approvalList() *cobra.Command {
	return reader("list", "List the changes that wait for a second person", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		list, err := client.All[api.Approval](c.Context(), to, "/approvals", nil)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"approvals": list})
		}
		if len(list) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "no change waits for a second person")
		}
		for i := range list {
			printApproval(c.OutOrStdout(), &list[i])
		}
		return nil
	})
}

func printApproval(out io.Writer, a *api.Approval) {
	whose := terminal.Plain(a.By) + " of " + terminal.Plain(a.Tenant)
	if a.From != "" {
		whose = terminal.Plain(a.From) + " to " + terminal.Plain(a.Tenant)
	}
	fmt.Fprintf(out, "%s, %s, by %s: %s, until %s\n", a.ID, a.At.UTC().Format(time.RFC3339), whose, a.Action, a.Expires.UTC().Format(time.RFC3339))
	if a.Why != "" {
		fmt.Fprintf(out, "  because: %s\n", terminal.Plain(a.Why))
	}
	for _, words := range a.Words {
		fmt.Fprintf(out, "  %s\n", terminal.Plain(words))
	}
}

func approvalApprove() *cobra.Command {
	var into []string
	c := writer("approve [--into PARTITION[=full|limited]]... ID", "Approve a change, which is then made; not by the person who asked for it", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		list, err := readInto(c, to, into)
		if err != nil {
			return err
		}
		var body any
		if len(list) > 0 {
			body = api.ApproveBody{Into: list}
		}
		return f.change(c, to, http.MethodPost, "/approvals/"+url.PathEscape(args[0])+"/approve", f.params(""), body)
	})
	c.Flags().StringArrayVar(&into, "into", nil, "of ports that were offered: a partition of yours by name or P_Key, with the membership (default full); as often as needed")
	return c
}

func approvalEnd(what, short string) *cobra.Command {
	return writer(what+" ID", short, cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		return f.change(c, to, http.MethodPost, "/approvals/"+url.PathEscape(args[0])+"/"+what, f.params(""), nil)
	})
}

// Rollback is `ibwarden rollback`.
func Rollback() *cobra.Command {
	var tenant string
	var owners bool
	c := writer("rollback REVISION", "Roll partitions and members back to a revision", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		n, err := strconv.ParseUint(args[0], 10, 53)
		if err != nil {
			return terminal.WithMisuse(fmt.Errorf("revision %q: want a number", args[0]))
		}
		etag := ""
		if seen := seenRevision(c); seen > 0 {
			etag = fmt.Sprintf(`"%d"`, seen)
		}
		return f.change(c, to, http.MethodPost, "/rollback", f.params(etag), api.RollbackBody{To: n, Tenant: tenant, Owners: owners})
	})
	c.Long = c.Short + `; for the provider the policy file too.
--dry-run prints what that would change, and what stays. Tenants, tokens and, without --owners,
the owners of ports stay as they are, and nobody gets anything that the rules of today refuse.
`
	c.Flags().Uint64("seen", 0, "the last revision that you have seen: fails if there is a later one")
	c.Flags().BoolVar(&owners, "owners", false, "give ports back to the tenants that they belonged to, as port move does; for the provider, and for all")
	c.Flags().StringVar(&tenant, "tenant", "", "only this tenant's part (with the token of a tenant it is always only that tenant's)")
	return c
}
