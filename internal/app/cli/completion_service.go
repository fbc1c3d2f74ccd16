package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
)

const (
	// revisionsMax is how many revisions are proposed, the last ones.
	revisionsMax = 20
	// aboutMax is how much is shown of what a revision did, in bytes.
	aboutMax = 80
)

// completionNamed are what a list of a running service has, the words by of. What does not answer in
// the time that there is, or is not trusted, is not proposed.
func completionNamed[T any](path string, most int, of func(*T) (word, about string)) function {
	return func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return listed(c, path, most, begun, of), cobra.ShellCompDirectiveNoFileComp
	}
}

func listed[T any](c *cobra.Command, path string, most int, begun string, of func(*T) (word, about string)) (out []string) {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	to := servicecmd.Completing(ctx, c)
	if to == nil {
		return nil
	}
	list, err := client.Page[T](ctx, to, path, most, url.Values{})
	if err != nil {
		return nil
	}
	for i := range list {
		if word, is := offer(of(&list[i])); is && strings.HasPrefix(word, begun) && len(out) < offersMax {
			out = append(out, word)
		}
	}
	return out
}

// What a running service has.
var (
	tenants = completionNamed("/tenants", offersMax, func(t *api.Tenant) (string, string) {
		return t.Name, fmt.Sprintf("%d partitions, %d ports", t.Partitions, t.Ports)
	})
	ports     = completionNamed("/ports", offersMax, portWord)
	pools     = completionNamed("/pools", offersMax, func(p *api.Pool) (string, string) { return p.First, "to " + p.Last + " of " + p.Owner })
	tokens    = completionNamed("/tokens", offersMax, func(t *api.Token) (string, string) { return t.ID, "of " + t.Tenant + " " + t.Note })
	approvals = completionNamed("/approvals", offersMax, func(a *api.Approval) (string, string) { return a.ID, a.Action + " by " + cmp.Or(a.From, a.By) })
	standbys  = completionNamed("/managers", offersMax, func(m *views.SubnetManager) (string, string) {
		if m.State != "standby" {
			return "", ""
		}
		return m.Port, m.Node
	})
)

// revisions are the last ones, the newest first.
func revisions(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return listed(c, "/revisions", revisionsMax, begun, func(r *views.Revision) (string, string) {
		about := strings.Join(r.Words, ", ")
		if len(about) > aboutMax {
			about = about[:aboutMax] + "..."
		}
		return fmt.Sprint(r.Number), about
	}), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func portWord(p *views.Port) (string, string) { return p.GUID, p.Node + " of " + p.Owner }

// partitions are those of a running service, by their names; by their numbers where a
// number was begun.
func partitions(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return listed(c, "/partitions", offersMax, begun, func(p *api.Partition) (string, string) {
		if strings.HasPrefix(begun, "0") {
			return p.PKey, p.Name + " of " + p.Owner
		}
		return p.Name, p.PKey + " of " + p.Owner
	}), cobra.ShellCompDirectiveNoFileComp
}

// members completes a partition, and then the ports that are its members.
func members(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return partitions(c, args, begun)
	}
	if !strings.HasPrefix(args[0], "0x") {
		var pkey string
		listed(c, "/partitions", offersMax, "", func(p *api.Partition) (string, string) {
			if p.Name == args[0] {
				pkey = p.PKey
			}
			return "", ""
		})
		args = append([]string{pkey}, args[1:]...)
	}
	if !harmless(args[0]) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return listed(c, "/partitions/"+url.PathEscape(args[0])+"/members", offersMax, begun, func(m *api.Member) (string, string) {
		return m.Port, m.Membership + " " + m.State
	}), cobra.ShellCompDirectiveNoFileComp
}

// joining completes a partition, and then ports, each of which goes on with =full,
// =limited or =both.
func joining(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return partitions(c, args, begun)
	}
	return listed(c, "/ports", offersMax, begun, func(p *views.Port) (string, string) {
		word, about := portWord(p)
		return word + "=", about
	}), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
