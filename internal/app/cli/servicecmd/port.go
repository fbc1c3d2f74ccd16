package servicecmd

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Port is `ibwarden port`.
func Port() *cobra.Command {
	return group("port list|show|assign|move|offer|release|pool", "List end ports, and assign them to tenants of a running service", portList(), portShow(), portAssign(), portMove(), portOffer(), portRelease(), Pool())
}

func portList() *cobra.Command {
	var owner, node string
	c := reader("list", "List end ports, by GUID", cobra.NoArgs, func(c *cobra.Command, f *serverFlags, to *client.Client, _ []string) error {
		q := only("owner", owner)
		if node != "" {
			q.Set("node", node)
		}
		list, err := client.All[views.Port](c.Context(), to, "/ports", q)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), map[string]any{"ports": list})
		}
		t := terminal.NewTable("guid", "owner", "node", "port", "lid", "state", "partitions")
		for _, p := range list {
			var number, lid any
			if p.Found {
				number, lid = p.Number, p.LID
			}
			t.Add(p.GUID, p.Owner, p.Node, number, lid, p.State, p.Partitions)
		}
		return t.Print(c.OutOrStdout(), "ports", false)
	})
	addTenant(c, &owner, "only those of this tenant")
	c.Flags().StringVar(&node, "node", "", "only those of the node with this description")
	return c
}

func portAssign() *cobra.Command {
	var tenant, bound string
	var yes bool
	c := writer("assign --tenant NAME PORT...", "Assign ports to a tenant, out of the partitions of the policy file", cobra.MinimumNArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		body := api.AssignBody{Tenant: tenant}
		guids, err := f.ports(c, to, args)
		if err != nil {
			return err
		}
		for _, g := range guids {
			body.Ports = append(body.Ports, api.AssignPort{GUID: g})
		}
		if bound != "" {
			at, err := readPlace(bound)
			if err == nil && len(body.Ports) > 1 {
				err = terminal.WithMisuse(errors.New("--bound: want one port: two cannot be in one place"))
			}
			if err != nil {
				return err
			}
			body.Ports[0].Bound = at
		}
		return f.changePorts(c, to, "/ports/assign", guids, body, yes)
	})
	addSeen(c)
	c.Long = `Assign ports to a tenant. A port that a tenant has is in no partition of the policy file,
until it is released: whom that cuts off is shown, and asked for, before it is done, unless --yes
says so. The tenant's own partitions, and what others ask the tenant for, count from then on.
` + portHelp
	c.Flags().BoolVar(&yes, "yes", false, "do not show whom this cuts off, and do not ask")
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant")
	c.Flags().StringVar(&bound, "bound", "", "the only place where the port gets its keys: node GUID of a switch, a colon and the port number, for example 0x0002c90200400001:7")
	_ = c.MarkFlagRequired("tenant") // it is there
	return c
}

func portRelease() *cobra.Command {
	c := writer("release PORT...", "Take ports from their tenants, and give them back to the policy file", cobra.MinimumNArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		guids, err := f.ports(c, to, args)
		if err != nil {
			return err
		}
		return f.changePorts(c, to, "/ports/release", guids, api.ReleaseBody{Ports: guids}, true)
	})
	addSeen(c)
	c.Long = `Take ports from their tenants, and out of all partitions of the service. When that is proved on
the fabric, a revision of its own gives them back to the policy file: they are in those of its
partitions that it puts them in, as before they were assigned.
` + portHelp
	return c
}

func portMove() *cobra.Command {
	var tenant string
	var into []string
	var yes bool
	c := writer("move --tenant NAME [--into PARTITION[=full|limited]]... PORT...", "Move ports to another tenant, and into partitions of it, in one revision", cobra.MinimumNArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		body := api.MoveBody{Tenant: tenant}
		var err error
		if body.Into, err = readInto(c, to, into); err != nil {
			return err
		}
		if body.Ports, err = f.ports(c, to, args); err != nil {
			return err
		}
		return f.changePorts(c, to, "/ports/move", body.Ports, body, yes)
	})
	addSeen(c)
	c.Long = `Move ports to a tenant, whoever has them now: out of all other partitions, and into those of
the tenant that --into names. It is one revision: the manager takes the old P_Keys, reads back that
they are gone, and gives the new ones. Whom that cuts off is shown, and asked for, before it is done,
unless --yes says so. To undo it, move the ports back: a rollback leaves the owners of ports as they are.
` + portHelp
	c.Flags().BoolVar(&yes, "yes", false, "do not show whom this cuts off, and do not ask")
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant")
	c.Flags().StringArrayVar(&into, "into", nil, "a partition of the tenant by name or P_Key, with the membership (default full); as often as needed")
	_ = c.MarkFlagRequired("tenant") // it is there
	return c
}

// readInto reads the partitions that ports are moved into: PARTITION[=full|limited].
func readInto(c *cobra.Command, to *client.Client, list []string) (into []api.MoveInto, err error) {
	for _, text := range list {
		name, membership, said := strings.Cut(text, "=")
		if !said {
			membership = "full"
		}
		pkey, err := find(c.Context(), to, name)
		if err != nil {
			return nil, err
		}
		into = append(into, api.MoveInto{PKey: api.PKey(pkey), MembershipBody: api.MembershipBody{Membership: api.Membership(membership)}})
	}
	return into, nil
}

func portOffer() *cobra.Command {
	var tenant string
	c := writer("offer --tenant NAME PORT...", "Offer your ports to another tenant, who accepts or rejects them", cobra.MinimumNArgs(1), func(c *cobra.Command, f *writeFlags, to *client.Client, args []string) error {
		guids, err := f.ports(c, to, args)
		if err != nil {
			return err
		}
		f.offers = true
		return f.changePorts(c, to, "/ports/offer", guids, api.OfferBody{Tenant: tenant, Ports: guids}, true)
	})
	addSeen(c)
	c.Long = `Offer ports of your tenant to another, for 7 days. That tenant accepts them with ibwarden approval
approve, and --into for partitions of its own, or rejects them; you withdraw them with ibwarden approval
reject. Accepted, they move in one revision, out of all partitions that they are in.
` + portHelp
	c.Flags().StringVar(&tenant, "tenant", "", "the tenant")
	_ = c.MarkFlagRequired("tenant") // it is there
	return c
}

// changePorts makes a change of ports, none of which has changed since what --seen names. Unless yes,
// whom that cuts off is shown, and asked for, before.
func (f *writeFlags) changePorts(c *cobra.Command, to *client.Client, path string, guids []api.GUID, body any, yes bool) error {
	etag, err := portTags(c, to, guids)
	if err != nil {
		return err
	}
	params := f.params(etag)
	if !yes && !f.dryRun {
		if err := f.losing(c, to, path, params, body); err != nil {
			return err
		}
	}
	return f.change(c, to, http.MethodPost, path, params, body)
}

// losing has the service plan a change, and asks whether it is to be made where end ports
// that can talk could no longer.
func (f *writeFlags) losing(c *cobra.Command, to *client.Client, path string, p client.Params, body any) error {
	p.DryRun, p.Wait = true, false
	var out api.Changed
	if err := to.Write(c.Context(), http.MethodPost, path, p, body, &out); err != nil {
		return failed(err)
	}
	if out.Plan == nil || out.Plan.Lost == 0 {
		return nil
	}
	w := c.OutOrStdout()
	if f.json {
		w = c.ErrOrStderr()
	}
	if err := printText(w, out.Plan.Text); err != nil {
		return terminal.WithBad(err)
	}
	cease, because := "cease", ""
	if out.Plan.Lost == 1 {
		cease = "ceases"
	}
	if path == "/ports/assign" {
		because = ": no partition of the policy file counts for these ports until they are released"
	}
	fmt.Fprintf(w, "%s of end ports %s to talk%s\n", terminal.Count(out.Plan.Lost, "pair"), cease, because)
	return Ask(c.Context(), c.InOrStdin(), c.ErrOrStderr())
}

func portShow() *cobra.Command {
	c := reader("show PORT", "Show an end port, with its partitions", cobra.ExactArgs(1), func(c *cobra.Command, f *serverFlags, to *client.Client, args []string) error {
		guids, _, err := findPorts(c, to, args)
		if err != nil {
			return err
		}
		p, _, err := client.Get[views.Port](c.Context(), to, "/ports/"+string(guids[0]), nil)
		if err != nil {
			return err
		}
		if f.json {
			return terminal.JSON(c.OutOrStdout(), p)
		}
		printPort(c.OutOrStdout(), &p)
		return nil
	})
	c.Long = c.Short + ".\n" + portHelp
	return c
}

func printPort(out io.Writer, p *views.Port) {
	owner := "between two owners"
	if p.Owner != "" {
		owner = "of " + terminal.Plain(p.Owner)
	}
	fmt.Fprintf(out, "port %s, %s\n", p.GUID, owner)
	if p.Found {
		fmt.Fprintf(out, "  port %d of %s (node GUID %s), LID %d, %s\n", p.Number, terminal.Plain(p.Node), p.NodeGUID, p.LID, p.State)
	} else {
		fmt.Fprintln(out, "  not seen on the fabric")
	}
	if p.Switch != "" {
		fmt.Fprintf(out, "  connected to port %d of switch %s\n", p.SwitchPort, p.Switch)
	}
	if b := p.Bound; b != nil {
		fmt.Fprintf(out, "  gets its keys only at port %d of switch %s\n", b.Port, b.Switch)
	}
	if p.Released != 0 {
		fmt.Fprintf(out, "  released by its last owner in revision %d\n", p.Released)
	}
	if len(p.Partitions) > 0 {
		fmt.Fprintf(out, "  partitions: %s\n", strings.Join(p.Partitions, " "))
	}
}

// readPlace reads the place of a port: SWITCH:PORT.
func readPlace(text string) (*views.Place, error) {
	guid, num, _ := strings.Cut(text, ":")
	g, err := ib.ParseNodeGUID(guid)
	n, wrong := strconv.ParseUint(num, 10, 8)
	if err != nil || wrong != nil || n == 0 || n == 255 {
		return nil, terminal.WithMisuse(fmt.Errorf("--bound %q: want the node GUID of a switch, a colon and a port number from 1 to 254", text))
	}
	return &views.Place{Switch: g.String(), Port: int(n)}, nil
}

// portTags are the ETags of ports, if the command line says what was seen: each was not
// changed after that, and so none has one that another has by now.
func portTags(c *cobra.Command, to *client.Client, guids []api.GUID) (string, error) {
	var tags []string
	for _, g := range guids {
		tag, err := seenTag(c, to, "/ports/"+string(g), "port "+string(g))
		var p *api.Problem
		if errors.As(err, &p) && p.Status == http.StatusNotFound {
			tag, err = `"0"`, nil // of a port that nobody was given and the fabric does not have
		}
		if err != nil {
			return "", err
		}
		if tag != "" && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return strings.Join(tags, ", "), nil
}
