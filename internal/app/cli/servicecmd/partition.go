package servicecmd

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/exit"
	"github.com/ibwarden/ibwarden/internal/app/cli/table"
)

// Partition is `ibwarden partition`.
func Partition() *cobra.Command {
	return group("partition list|show|create|set|delete", "Show and change the partitions of a running service",
		partitionList(), partitionShow(), partitionCreate(), partitionSet(), partitionDelete())
}

// find is the number of a partition, which is named by its number or its name.
func find(ctx context.Context, to *client.Client, text string) (string, error) {
	if strings.HasPrefix(strings.ToLower(text), "0x") {
		k, err := ib.ParsePKeyBase(text)
		if err != nil {
			return "", exit.WithMisuse(err)
		}
		return k.String(), nil
	}
	list, err := client.All[api.Partition](ctx, to, "/partitions", url.Values{"name": {text}})
	switch {
	case err != nil:
		return "", err
	case len(list) == 0:
		return "", exit.WithBad(fmt.Errorf("no partition %q", text))
	case len(list) > 1:
		return "", exit.WithMisuse(fmt.Errorf("%q is %s of %s and %s of %s: give the number", text, list[0].PKey, list[0].Owner, list[1].PKey, list[1].Owner))
	}
	return list[0].PKey, nil
}

func partitionList() *cobra.Command {
	var owner string
	c := reader("list", "List partitions, by number", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		q := url.Values{}
		if owner != "" {
			q.Set("owner", owner)
		}
		list, err := client.All[api.Partition](c.Context(), to, "/partitions", q)
		if err != nil {
			return err
		}
		if f.json {
			return table.JSON(c.OutOrStdout(), map[string]any{"partitions": list})
		}
		t := table.New("pkey", "name", "owner", "members", "waiting", "sl", "ip_over_ib", "changed")
		for _, p := range list {
			t.Add(p.PKey, p.Name, p.Owner, p.Members, p.Waiting, p.SL, p.IPoverIB, p.Changed)
		}
		return t.Print(c.OutOrStdout(), "partitions", false)
	})
	c.Flags().StringVar(&owner, "owner", "", "those of this tenant")
	return c
}

func partitionShow() *cobra.Command {
	return reader("show PARTITION", "Show a partition with its members", cobra.ExactArgs(1), func(c *cobra.Command, f *serverFlags, to *client.Client, args []string) error {
		k, err := find(c.Context(), to, args[0])
		if err != nil {
			return err
		}
		p, _, err := client.Get[api.Partition](c.Context(), to, "/partitions/"+k, nil)
		if err != nil {
			return err
		}
		members, err := client.All[api.Member](c.Context(), to, "/partitions/"+k+"/members", nil)
		if err != nil {
			return err
		}
		if f.json {
			return table.JSON(c.OutOrStdout(), map[string]any{"partition": p, "members": members})
		}
		fmt.Fprintf(c.OutOrStdout(), "partition %s %q of %s: SL %d, changed last in revision %d\n", p.PKey, p.Name, p.Owner, p.SL, p.Changed)
		return printMembers(c, members)
	})
}

// settings are the flags for what a partition has.
type settings struct {
	name  string
	sl    int
	mtu   int
	rate  float64
	ipoib bool
}

func (s *settings) add(c *cobra.Command) {
	c.Flags().IntVar(&s.sl, "sl", 0, "service level, 0 to 15")
	c.Flags().IntVar(&s.mtu, "mtu", 0, "MTU of its multicast groups, in octets (default: that of the policy)")
	c.Flags().Float64Var(&s.rate, "rate", 0, "rate of its multicast groups, in Gb/s (default: that of the policy)")
	c.Flags().BoolVar(&s.ipoib, "ip-over-ib", false, "make the broadcast group of IP over InfiniBand")
}

func partitionCreate() *cobra.Command {
	var s settings
	var pkey, owner string
	var members []string
	c := writer("create NAME", "Make a partition", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		body := api.NewPartitionBody{PKey: api.PKey(pkey), PartitionBody: api.PartitionBody{
			Name: args[0], Owner: owner, SL: s.sl, MTU: s.mtu, Rate: s.rate, IPoverIB: s.ipoib,
		}}
		joined, err := readMembers(members)
		if err != nil {
			return err
		}
		body.Members = joined
		var out api.Changed
		if err := to.Write(c.Context(), http.MethodPost, "/partitions", f.params(""), body, &out); err != nil {
			return err
		}
		return f.say(c, &out)
	})
	s.add(c)
	c.Flags().StringVar(&pkey, "pkey", "", "its number (default: the lowest that is free)")
	c.Flags().StringVar(&owner, "owner", "", "the tenant whose it is; for the provider (default: your own)")
	c.Flags().StringArrayVar(&members, "member", nil, "GUID=full or GUID=limited; may be given several times")
	return c
}

func partitionSet() *cobra.Command {
	var s settings
	c := writer("set PARTITION", "Change what a partition has; its members stay", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		k, err := find(c.Context(), to, args[0])
		if err != nil {
			return err
		}
		p, etag, err := client.Get[api.Partition](c.Context(), to, "/partitions/"+k, nil)
		if err != nil {
			return err
		}
		body := api.PartitionBody{Name: p.Name, Owner: p.Owner, SL: p.SL, MTU: p.MTU, Rate: p.Rate, IPoverIB: p.IPoverIB}
		changed := c.Flags().Changed
		if changed("name") {
			body.Name = s.name
		}
		if changed("sl") {
			body.SL = s.sl
		}
		if changed("mtu") {
			body.MTU = s.mtu
		}
		if changed("rate") {
			body.Rate = s.rate
		}
		if changed("ip-over-ib") {
			body.IPoverIB = s.ipoib
		}
		return f.change(c, to, http.MethodPut, "/partitions/"+k, f.params(etag), body)
	})
	s.add(c)
	c.Flags().StringVar(&s.name, "name", "", "another name")
	return c
}

func partitionDelete() *cobra.Command {
	return writer("delete PARTITION", "Delete a partition with its members", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		k, err := find(c.Context(), to, args[0])
		if err != nil {
			return err
		}
		return f.change(c, to, http.MethodDelete, "/partitions/"+k, f.params(""), nil)
	})
}

// Member is `ibwarden member`.
func Member() *cobra.Command {
	return group("member list|add|remove", "Show and change the members of partitions of a running service", memberList(), memberAdd(), memberRemove())
}

func memberList() *cobra.Command {
	return reader("list PARTITION", "List the members of a partition, by GUID", cobra.ExactArgs(1), func(c *cobra.Command, f *serverFlags, to *client.Client, args []string) error {
		k, err := find(c.Context(), to, args[0])
		if err != nil {
			return err
		}
		list, err := client.All[api.Member](c.Context(), to, "/partitions/"+k+"/members", nil)
		if err != nil {
			return err
		}
		if f.json {
			return table.JSON(c.OutOrStdout(), map[string]any{"members": list})
		}
		return printMembers(c, list)
	})
}

func printMembers(c *cobra.Command, list []api.Member) error {
	t := table.New("port", "membership", "owner", "state", "waits_for")
	for _, m := range list {
		t.Add(m.Port, m.Membership, m.Owner, m.State, m.Waits)
	}
	return t.Print(c.OutOrStdout(), "members", false)
}

// readMembers reads GUID=full and GUID=limited. Nothing is taken for either: a member
// that is full by mistake reaches everybody.
func readMembers(list []string) ([]api.Joined, error) {
	var out []api.Joined
	for _, text := range list {
		guid, membership, _ := strings.Cut(text, "=")
		if membership != "full" && membership != "limited" && membership != "both" {
			return nil, exit.WithMisuse(fmt.Errorf("member %q: want GUID=full or GUID=limited", text))
		}
		g, err := readGUID(guid)
		if err != nil {
			return nil, err
		}
		out = append(out, api.Joined{Port: g, MembershipBody: api.MembershipBody{Membership: api.Membership(membership)}})
	}
	return out, nil
}

func readGUID(text string) (api.GUID, error) {
	if !strings.HasPrefix(strings.ToLower(text), "0x") && len(text) == 16 {
		text = "0x" + text
	}
	g, err := ib.ParsePortGUID(text)
	if err != nil {
		return "", exit.WithMisuse(err)
	}
	return api.GUID(g.String()), nil
}

func memberAdd() *cobra.Command {
	c := writer("add PARTITION GUID=full|limited...", "Add ports to a partition, or change their membership: all or none", cobra.MinimumNArgs(2), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		members, err := readMembers(args[1:])
		if err != nil {
			return err
		}
		k, err := find(c.Context(), to, args[0])
		if err != nil {
			return err
		}
		return f.change(c, to, http.MethodPost, "/partitions/"+k+"/members", f.params(""), api.MembersBody{Members: members})
	})
	c.Long = c.Short + `.

A port that another tenant owns waits for the consent of its owner, who gives it with
the same command, and has no key until then. A port that was removed from the
partition comes back only with --seen REVISION, which shows that you know of it.
`
	return c
}

// removeMost is how many ports one request removes.
const removeMost = 400

func memberRemove() *cobra.Command {
	return writer("remove PARTITION GUID...", "Remove ports from a partition; one that is no member is passed over", cobra.RangeArgs(2, removeMost+1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		var guids []string
		for _, text := range args[1:] {
			g, err := readGUID(text)
			if err != nil {
				return err
			}
			guids = append(guids, string(g))
		}
		k, err := find(c.Context(), to, args[0])
		if err != nil {
			return err
		}
		p := f.params("")
		p.Query = url.Values{"port": {strings.Join(guids, ",")}}
		return f.change(c, to, http.MethodDelete, "/partitions/"+k+"/members", p, nil)
	})
}
