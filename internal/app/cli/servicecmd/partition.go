package servicecmd

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Partition is `ibwarden partition`.
func Partition() *cobra.Command {
	return group("partition list|show|create|set|delete|member", "Show and change the partitions of a running service, and their members",
		partitionList(), partitionShow(), partitionCreate(), partitionSet(), partitionDelete(), Member())
}

// find is the number of a partition, which is named by its number or its name.
func find(ctx context.Context, to *client.Client, text string) (string, error) {
	if strings.HasPrefix(strings.ToLower(text), "0x") {
		k, err := ib.ParsePKeyBase(text)
		if err != nil {
			return "", terminal.WithMisuse(err)
		}
		return k.String(), nil
	}
	list, err := client.All[api.Partition](ctx, to, "/partitions", url.Values{"name": {text}})
	switch {
	case err != nil:
		return "", err
	case len(list) == 0:
		return "", terminal.WithBad(fmt.Errorf("no partition %q", text))
	case len(list) > 1:
		return "", terminal.WithMisuse(fmt.Errorf("%q is %s of %s and %s of %s: give the number", text, list[0].PKey, list[0].Owner, list[1].PKey, list[1].Owner))
	}
	return list[0].PKey, nil
}

func partitionList() *cobra.Command {
	var owner, selector string
	c := reader("list", "List partitions, by number", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		list, err := client.All[api.Partition](c.Context(), to, "/partitions", selecting(only("owner", owner), selector))
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"partitions": list})
		}
		columns := []string{"pkey", "name", "owner", "members", "waiting", "sl", "ip_over_ib", "changed"}
		declared := slices.ContainsFunc(list, func(p api.Partition) bool { return p.File != "" })
		if declared {
			columns = append(columns, "file")
		}
		t := terminal.NewTable(columns...)
		for _, p := range list {
			row := []any{p.PKey, p.Name, p.Owner, p.Members, p.Waiting, p.SL, p.IPoverIB, p.Changed}
			if declared {
				row = append(row, p.File)
			}
			t.Add(row...)
		}
		return t.Print(c.OutOrStdout(), "partitions", false)
	})
	addTenant(c, &owner, "only those of this tenant")
	addSelector(c, &selector)
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
			return terminal.JSON(c.OutOrStdout(), map[string]any{"partition": p, "members": members})
		}
		from := fmt.Sprintf("changed last in revision %d", p.Changed)
		if p.File != "" {
			from = "of the policy file " + p.File + ", where it is changed"
		}
		fmt.Fprintf(c.OutOrStdout(), "partition %s %q of %s: SL %d, %s\n", p.PKey, p.Name, p.Owner, p.SL, from)
		if len(p.Labels) > 0 {
			fmt.Fprintln(c.OutOrStdout(), "labels", labelsText(p.Labels))
		}
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
	label []string
}

func (s *settings) add(c *cobra.Command) {
	c.Flags().IntVar(&s.sl, "sl", 0, "service level, 0 to 15")
	c.Flags().IntVar(&s.mtu, "mtu", 0, "MTU of its multicast groups, in bytes (default: that of the policy)")
	c.Flags().Float64Var(&s.rate, "rate", 0, "rate of its multicast groups, in Gb/s (default: that of the policy)")
	c.Flags().BoolVar(&s.ipoib, "ip-over-ib", false, "make the broadcast group of IP over InfiniBand")
	addLabels(c, &s.label)
}

func partitionCreate() *cobra.Command {
	var s settings
	var pkey, owner string
	var members []string
	c := writer("create NAME", "Create a partition", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		body := api.NewPartitionBody{PKey: api.PKey(pkey), PartitionBody: api.PartitionBody{
			Name: args[0], Owner: owner, SL: s.sl, MTU: s.mtu, Rate: s.rate, IPoverIB: s.ipoib,
		}}
		joined, err := f.readMembers(c, to, members)
		if err != nil {
			return err
		}
		body.Members = joined
		if body.Labels, err = labelled(nil, s.label); err != nil {
			return err
		}
		var out api.Changed
		if err := to.Write(c.Context(), http.MethodPost, "/partitions", f.params(""), body, &out); err != nil {
			return err
		}
		return f.say(c, &out)
	})
	s.add(c)
	c.Flags().StringVar(&pkey, "pkey", "", "partition number (default: the lowest that is free)")
	addTenant(c, &owner, "the tenant that owns it; only the provider may name another (default: your own)")
	c.Flags().StringArrayVar(&members, "member", nil, "PORT=full, PORT=limited or PORT=both; may be given several times")
	return c
}

func partitionSet() *cobra.Command {
	var s settings
	c := writer("set PARTITION", "Change the settings of a partition; its members stay", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
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
		if body.Labels, err = labelled(p.Labels, s.label); err != nil {
			return err
		}
		if err := unchanged(c, etag, "partition "+k); err != nil {
			return err
		}
		return f.change(c, to, http.MethodPut, "/partitions/"+k, f.params(etag), body)
	})
	addSeen(c)
	s.add(c)
	c.Flags().StringVar(&s.name, "name", "", "new name")
	return c
}

func partitionDelete() *cobra.Command {
	c := writer("delete PARTITION", "Delete a partition with its members", cobra.ExactArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		k, etag, err := findSeen(c, to, args[0])
		if err != nil {
			return err
		}
		return f.change(c, to, http.MethodDelete, "/partitions/"+k, f.params(etag), nil)
	})
	addSeen(c)
	return c
}
