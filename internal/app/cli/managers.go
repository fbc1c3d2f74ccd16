// managers*.go: implements the commands about the subnet managers of a fabric:
// which there are, and the handover from one to another.

package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// ManagersOnFabric adds the flags that choose a fabric, and returns what opens it, with the keys
// for reading it.
type ManagersOnFabric func(*pflag.FlagSet) (open func(*cobra.Command) (link.Link, sweep.Options, error))

// newManagers is `ibwarden show managers`; help lists what a fabric may be.
func newManagers(fabric ManagersOnFabric, help string) *cobra.Command {
	var server servicecmd.Server
	c := &cobra.Command{
		Use: "managers", Short: "List every subnet manager of the fabric, and who is in charge", Args: cobra.NoArgs,
		Long: `List every subnet manager of the fabric, and who is in charge.

A running service is asked (--server, or the one on this machine): it knows which
managers are trusted, the epoch of its store, and the revision that it last proved. With
--fabric, or if no service runs, the fabric is read instead: every port that says that
it has a subnet manager is asked for SMInfo, and nothing is written. With the master
secret (--data, --secret-file) the managers that share it are recognised. No key is ever
printed.

Exit status 1 unless exactly one manager is master.

` + help,
	}
	open := fabric(c.Flags())
	server.Add(c.Flags())
	asJSON := c.Flags().Bool("json", false, "print one JSON document")
	c.RunE = func(c *cobra.Command, _ []string) error {
		list, unread, err := managersRead(c, &server, open)
		if err != nil {
			return err
		}
		if *asJSON {
			err = terminal.JSON(c.OutOrStdout(), map[string]any{"managers": list})
		} else {
			err = printed(c.OutOrStdout(), list, time.Now())
		}
		if err != nil {
			return terminal.WithBad(err)
		}
		return inCharge(list, unread)
	}
	return c
}

// managersRead asks a service, or the fabric; unread is how many places of that could not be managersRead.
func managersRead(c *cobra.Command, server *servicecmd.Server, open func(*cobra.Command) (link.Link, sweep.Options, error)) (list []views.SubnetManager, unread int, err error) {
	fabric := c.Flags().Changed("fabric")
	if fabric && c.Flags().Changed("server") {
		return nil, 0, terminal.WithMisuse(errors.New("--server and --fabric: want one or the other"))
	}
	named, runs := false, false
	if !fabric {
		named, runs = server.Find(c)
	}
	if named || runs {
		list, err := ofService(c, server)
		if err == nil || named || !errors.Is(err, client.ErrNone) {
			return list, 0, server.Failed(err)
		}
	}
	to, o, err := open(c)
	if err != nil {
		return nil, 0, err
	}
	defer to.Close()
	found, faults, f, err := daemon.FabricManagers(c.Context(), to, o, terminal.ReadingProgress(c.ErrOrStderr()))
	if err != nil {
		return nil, 0, terminal.WithBad(err)
	}
	for _, x := range faults {
		fmt.Fprintln(c.ErrOrStderr(), "ibwarden:", terminal.Plain(x))
	}
	look.SayGuarded(c.ErrOrStderr(), f, false)
	now := time.Now()
	list = make([]views.SubnetManager, 0, len(found))
	for i := range found {
		list = append(list, views.SubnetManagerOf(&found[i], now))
	}
	return views.WithNamed(list, f), len(faults), nil
}

func ofService(c *cobra.Command, server *servicecmd.Server) ([]views.SubnetManager, error) {
	to, err := server.Open(c)
	if err != nil {
		return nil, err
	}
	return client.All[views.SubnetManager](c.Context(), to, "/managers", nil)
}

// states orders the list: who is in charge comes first.
var states = []string{"master", "standby", "discovering", "not-active", "unknown"}

// printed prints the list for people.
func printed(w io.Writer, list []views.SubnetManager, now time.Time) error {
	slices.SortStableFunc(list, func(a, b views.SubnetManager) int {
		if d := slices.Index(states, a.State) - slices.Index(states, b.State); d != 0 {
			return d
		}
		return strings.Compare(a.Port, b.Port)
	})
	t := terminal.NewTable("node", "port_guid", "lid", "port", "state", "priority", "acting", "trust", "policy", "seen", "end_ports", "epoch", "proved", "store")
	for i := range list {
		m := &list[i]
		t.Add(m.Node, m.Port, m.LID, m.PortNum, m.State, number(m.Priority), yes(m.Acting), trust(m), text(m.Policy), seen(m, now), m.EndPorts, number(m.Epoch), number(m.Proved), m.Store)
	}
	if err := t.Print(w, "managers", false); err != nil {
		return err
	}
	for i := range list {
		if m := &list[i]; m.Why != "" {
			fmt.Fprintf(w, "%s (%s) does not count: %s\n", terminal.Plain(m.Node), m.Port, terminal.Plain(m.Why))
		}
		if m := &list[i]; m.Held != "" {
			fmt.Fprintf(w, "%s (%s) gives no port anything new: %s; put the right store back, or accept this one (ibwarden history accept-restored)\n", terminal.Plain(m.Node), m.Port, terminal.Plain(m.Held))
		}
	}
	return nil
}

func number[T int | uint64](n *T) any {
	if n == nil {
		return nil
	}
	return *n
}

func yes(b *bool) any {
	switch {
	case b == nil:
		return nil
	case *b:
		return "yes"
	}
	return "no"
}

// text is a column that may be empty.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// trust says what a manager is to the one that tells of it.
func trust(m *views.SubnetManager) string {
	if (m.Trust == "none" || m.Trust == "unknown") && m.ShowsKey {
		return m.Trust + ", shows a key"
	}
	return m.Trust
}

func seen(m *views.SubnetManager, now time.Time) any {
	switch {
	case m.Self:
		return "now"
	case m.LastSeen == nil:
		return nil
	case m.Missed > 0:
		return now.Sub(*m.LastSeen).Round(time.Second).String() + " ago, silent since"
	}
	return "now"
}

// inCharge is nil where exactly one manager is master. unread is how many places could not
// be read: a manager may be there.
func inCharge(list []views.SubnetManager, unread int) error {
	masters := []string{}
	for i := range list {
		if m := &list[i]; m.State == "master" && m.Missed == 0 {
			masters = append(masters, terminal.Plain(m.Node)+" ("+m.Port+")")
		}
	}
	switch {
	case len(masters) == 1 && unread == 0:
		return nil
	case len(masters) == 1:
		return terminal.WithBad(fmt.Errorf("%s is master, as far as the fabric was read: %s could not be", masters[0], terminal.Count(unread, "place")))
	case len(masters) == 0 && unread > 0:
		return terminal.WithBad(fmt.Errorf("no subnet manager was found that is master, and %s could not be read", terminal.Count(unread, "place")))
	case len(masters) == 0:
		return terminal.WithBad(errors.New("no subnet manager is master of this fabric"))
	}
	return terminal.WithBad(fmt.Errorf("%d subnet managers are master: %s", len(masters), strings.Join(masters, ", ")))
}
