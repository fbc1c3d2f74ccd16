// This file implements `ibwarden why`, why two end ports can or cannot talk, and
// `ibwarden show reach`, whom an end port can talk with: from a fabric, a file, or a service.

package look

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// WhySource is where the commands look: a fabric or a file, or a service.
type WhySource struct {
	// Add adds the flags that say which.
	Add func(*cobra.Command)
	// Service is the service to ask; nil where a fabric or a file is to be read.
	Service func(*cobra.Command) (*servicecmd.Named, error)
	// Read reads a fabric or a file.
	Read func(*cobra.Command, sweep.Options) (*snapshot.Snapshot, error)
	// View is what the policy of --policy says of partitions.
	View func(*cobra.Command, *observed.Fabric) (reach.View, error)
	// Help says how a fabric is named.
	Help string
}

// errCannotTalk ends `ibwarden why` for two that cannot talk, or of which it is not known.
var errCannotTalk = errors.New("they cannot talk, or it is not known")

// whyFlags are those of both commands.
type whyFlags struct {
	source WhySource
	sl     uint8
	json   bool
}

func (f *whyFlags) add(c *cobra.Command) {
	f.source.Add(c)
	c.Flags().Uint8Var(&f.sl, "sl", 0, "service level of the packets, 0 to 15")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
}

func (f *whyFlags) check() error {
	if f.sl >= smp.SLCount {
		return terminal.WithMisuse(fmt.Errorf("--sl %d: want 0 to %d", f.sl, smp.SLCount-1))
	}
	return nil
}

// view reads a fabric or a file.
func (f *whyFlags) view(c *cobra.Command) (snap *snapshot.Snapshot, v reach.View, err error) {
	if snap, err = f.source.Read(c, sweep.Options{Forwarding: true, QoS: true}); err == nil {
		v, err = f.source.View(c, snap.Fabric)
	}
	v.SL = ib.SL(f.sl)
	return snap, v, err
}

// WhyCommand is `ibwarden why`.
func WhyCommand(source WhySource) *cobra.Command {
	f := whyFlags{source: source}
	c := &cobra.Command{
		Use:   "why A B",
		Short: "Say why two hosts can or cannot talk, and what would change it",
		Long: `Say in a sentence why two end ports can or cannot talk, and what would change
it. The tables of both are looked at, and packets are followed both ways over
each partition that both are in. Only SubnGet is sent. The status is 1 where
they cannot talk. ibwarden trace shows the way of one packet, check by check.

A and B are end ports: a port GUID, a LID, a node description, or
DESCRIPTION:PORT. A service answers tenants too, about their own ports and the
members of partitions that they see.

` + source.Help,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			a, err := f.explain(c, args[0], args[1])
			if err != nil {
				return err
			}
			if f.json {
				err = terminal.JSON(c.OutOrStdout(), a)
			} else {
				err = servicecmd.PrintAnswer(c.OutOrStdout(), &a)
			}
			if err == nil && a.Cause != reach.CauseTalk.String() {
				err = errCannotTalk
			}
			if err != nil {
				return terminal.WithBad(err)
			}
			return nil
		},
	}
	f.add(c)
	return c
}

func (f *whyFlags) explain(c *cobra.Command, from, to string) (a views.Answer, err error) {
	service, err := f.source.Service(c)
	if err != nil {
		return a, err
	}
	if service != nil {
		return service.Why(c, from, to, f.sl)
	}
	snap, v, err := f.view(c)
	if err != nil {
		return a, err
	}
	p, err := EndPort(snap.Fabric, "A", from)
	if err != nil {
		return a, err
	}
	q, err := EndPort(snap.Fabric, "B", to)
	if err != nil {
		return a, err
	}
	if p == q {
		return a, terminal.WithMisuse(fmt.Errorf("both are %s: want two ports", p))
	}
	return views.AnswerOf(p, q, v, snap.ReadAt, func(ib.PKeyBase) bool { return true }), nil
}

// Reach is what `ibwarden show reach --json` prints.
type Reach struct {
	Port  string       `json:"port"`
	Peers []views.Peer `json:"peers"`
}

// NewReach is `ibwarden show reach`.
func NewReach(source WhySource) *cobra.Command {
	f := whyFlags{source: source}
	c := &cobra.Command{
		Use:   "reach HOST",
		Short: "List whom a host can talk with, and over which partitions",
		Long: `List the end ports whose keys match those of a host, over which partitions, and
whether packets get through both ways. Only SubnGet is sent.

HOST is an end port: a port GUID, a LID, a node description, or
DESCRIPTION:PORT. A service answers tenants too, about their own ports and the
members of partitions that they see. ibwarden why says more of a single pair.

` + source.Help,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			peers, err := f.peers(c, args[0])
			if err != nil {
				return err
			}
			if f.json {
				err = terminal.JSON(c.OutOrStdout(), Reach{args[0], peers})
			} else {
				err = printPeers(c.OutOrStdout(), peers)
			}
			if err != nil {
				return terminal.WithBad(err)
			}
			return nil
		},
	}
	f.add(c)
	return c
}

func (f *whyFlags) peers(c *cobra.Command, name string) ([]views.Peer, error) {
	service, err := f.source.Service(c)
	if err != nil {
		return nil, err
	}
	if service != nil {
		return service.Peers(c, name, f.sl)
	}
	snap, v, err := f.view(c)
	if err != nil {
		return nil, err
	}
	p, err := EndPort(snap.Fabric, "HOST", name)
	if err != nil {
		return nil, err
	}
	r := reach.ReachOf(snap.Fabric, p, v)
	if r.Unknown > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "ibwarden: %s may be missing: not every table was read\n", terminal.Count(r.Unknown, "port"))
	}
	return views.PeersOf(r.Peers), nil
}

func printPeers(out io.Writer, peers []views.Peer) error {
	rows := terminal.NewTable("port", "guid", "lid", "over", "packets")
	talks := 0
	for _, p := range peers {
		var over, stopped []string
		for _, o := range p.Over {
			name := o.Name
			if name == "" {
				name = o.PKey
			}
			over = append(over, name)
			for _, d := range []string{o.There, o.Back} {
				if d != "delivered" {
					stopped = append(stopped, fmt.Sprintf("%s over %s", d, name))
					break
				}
			}
		}
		packets := "delivered"
		if len(stopped) > 0 {
			packets = strings.Join(stopped, ", ")
		}
		if p.Talks {
			talks++
		}
		rows.Add(p.Name, p.GUID, p.LID, strings.Join(over, ", "), packets)
	}
	if err := rows.Print(out, "", false); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s, of %d whose keys match\n", terminal.Count(talks, "port")+" to talk with", len(peers))
	return err
}
