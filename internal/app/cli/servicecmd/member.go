package servicecmd

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Member is `ibwarden partition member`.
func Member() *cobra.Command {
	return group("member list|add|set|remove|refuse", "Show and change the members of partitions of a running service",
		memberList(), memberAdd(), memberSet(), memberRemove(), memberRefuse())
}

func memberList() *cobra.Command {
	var state string
	c := reader("list PARTITION", "List the members of a partition, by GUID", cobra.ExactArgs(1), func(c *cobra.Command, f *serverFlags, to *client.Client, args []string) error {
		k, err := find(c.Context(), to, args[0])
		if err != nil {
			return err
		}
		list, err := client.All[api.Member](c.Context(), to, "/partitions/"+k+"/members", only("state", state))
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"members": list})
		}
		return printMembers(c, list)
	})
	c.Flags().StringVar(&state, "state", "", "only those in this state: member, or waiting for the consent of an owner")
	return c
}

func printMembers(c *cobra.Command, list []api.Member) error {
	t := terminal.NewTable("port", "membership", "owner", "state", "waits_for")
	for _, m := range list {
		t.Add(m.Port, m.Membership, m.Owner, m.State, m.Waits)
	}
	return t.Print(c.OutOrStdout(), "members", false)
}

// readMembers reads PORT=full and PORT=limited. Nothing is taken for either: a member
// that is full by mistake reaches everybody.
func (f *writeFlags) readMembers(c *cobra.Command, to *client.Client, list []string) ([]api.Joined, error) {
	out := []api.Joined{}
	var ports []string
	for _, text := range list {
		port, membership, _ := strings.Cut(text, "=")
		if membership != "full" && membership != "limited" && membership != "both" {
			return nil, terminal.WithMisuse(fmt.Errorf("member %q: want PORT=full, PORT=limited or PORT=both", text))
		}
		ports = append(ports, port)
		out = append(out, api.Joined{MembershipBody: api.MembershipBody{Membership: api.Membership(membership)}})
	}
	guids, err := f.ports(c, to, ports)
	for i, g := range guids {
		out[i].Port = g
	}
	return out, err
}

func readGUID(text string) (api.GUID, error) {
	if !strings.HasPrefix(strings.ToLower(text), "0x") && len(text) == 16 {
		text = "0x" + text
	}
	g, err := ib.ParsePortGUID(text)
	if err != nil {
		return "", terminal.WithMisuse(err)
	}
	return api.GUID(g.String()), nil
}

func memberAdd() *cobra.Command {
	var index0 bool
	c := writer("add PARTITION PORT=full|limited|both...", "Add ports to a partition, or change their membership: all or none", cobra.MinimumNArgs(2), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		members, err := f.readMembers(c, to, args[1:])
		if err != nil {
			return err
		}
		for i := range members {
			members[i].Index0 = index0
		}
		k, etag, err := findSeen(c, to, args[0])
		if err != nil {
			return err
		}
		return f.change(c, to, http.MethodPost, "/partitions/"+k+"/members", f.params(etag), api.MembersBody{Members: members})
	})
	c.Long = c.Short + `.

If another tenant owns a port, the port gets no key until that tenant consents, with the
same command (or declines, with ibwarden partition member refuse). A port that was removed from the
partition is added again only with --seen REVISION, which shows that you know of it.
` + portHelp
	addSeen(c)
	c.Flags().BoolVar(&index0, "index0", false, "put the key at index 0 of the ports' P_Key tables")
	return c
}

// removeMost is how many ports one request removes.
const removeMost = 400

func memberRemove() *cobra.Command {
	c := writer("remove PARTITION PORT...", "Remove ports from a partition; a port that is not a member is skipped", cobra.RangeArgs(2, removeMost+1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		guids, err := f.ports(c, to, args[1:])
		if err != nil {
			return err
		}
		var ports []string
		for _, g := range guids {
			ports = append(ports, string(g))
		}
		k, etag, err := findSeen(c, to, args[0])
		if err != nil {
			return err
		}
		p := f.params(etag)
		p.Query = url.Values{"port": {strings.Join(ports, ",")}}
		return f.change(c, to, http.MethodDelete, "/partitions/"+k+"/members", p, nil)
	})
	addSeen(c)
	return c
}

func memberSet() *cobra.Command {
	c := writer("set PARTITION [PORT=full|limited|both...]", "Replace the members of a partition: ports that are not named are removed", cobra.MinimumNArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		members, err := f.readMembers(c, to, args[1:])
		if err != nil {
			return err
		}
		k, err := find(c.Context(), to, args[0])
		if err != nil {
			return err
		}
		_, etag, err := client.Get[api.Partition](c.Context(), to, "/partitions/"+k, nil)
		if err != nil {
			return err
		}
		if err := unchanged(c, etag, "partition "+k); err != nil {
			return err
		}
		return f.change(c, to, http.MethodPut, "/partitions/"+k+"/members", f.params(etag), api.MembersBody{Members: members})
	})
	addSeen(c)
	return c
}

func memberRefuse() *cobra.Command {
	c := writer("refuse PARTITION PORT", "Decline what the other owner asks for; what both agreed to before stays", cobra.ExactArgs(2), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		guids, err := f.ports(c, to, args[1:])
		if err != nil {
			return err
		}
		k, etag, err := findSeen(c, to, args[0])
		if err != nil {
			return err
		}
		return f.change(c, to, http.MethodPost, "/partitions/"+k+"/members/"+string(guids[0])+"/refuse", f.params(etag), nil)
	})
	c.Long = c.Short + `.

The owner of a port declines that it joins a partition of another tenant, and the owner of
a partition that a port of another tenant joins it (ibwarden partition member list PARTITION
--state waiting).
`
	addSeen(c)
	return c
}
