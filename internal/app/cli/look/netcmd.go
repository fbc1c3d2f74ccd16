// This file implements `ibwarden show topology`, and prints a fabric as ibnetdiscover does.

package look

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// formatIbnetdiscover is --format without being asked.
const formatIbnetdiscover = "ibnetdiscover"

const topologyHelp = `Show the fabric as another program reads it (--format):
  ibnetdiscover   as ibnetdiscover prints it, in the same order and to the same letter but for
                  the time: for Topograph, --fabric sim:FILE and ibwarden topology.
                  ibnetdiscover itself finds nothing where ports have M_Keys, unless
                  ibwarden keys exec runs it
  slurm           topology.conf of Slurm's topology/tree
  slurm-yaml      topology.yaml of Slurm 25.05 and later
  kubernetes      labels of nodes, as Topograph sets them: kubectl apply --server-side -f
  dot, graphml    a graph, for Graphviz, NetworkX, Gephi

A scheduler gets a tree: leaves with their hosts, pods if there are any, and a root. Leaves with
most of their hosts in common (rails, planes) are one, with the name of the first. A host has
the name that its description begins with, and can choose it: a comment says which hosts are
not listed, since another adapter has the same description, the description is no name, or
adapters of one name are at leaves that have little in common.

With --output the file is replaced as a whole, where it changes and the whole fabric could be read;
--every 1m goes on doing so. What reads the file can be told by a path unit of systemd
(PathChanged=), for Slurm to run scontrol reconfigure.

`

// NetCommand returns the command. Add adds the flags that say what is read, read reads it; help says
// how a fabric is named.
func NetCommand(add func(*cobra.Command), read func(*cobra.Command, sweep.Options) (*snapshot.Snapshot, error), help string) *cobra.Command {
	var format, output string
	var every time.Duration
	c := &cobra.Command{
		Use: "topology", Short: "Show the fabric as other programs read it", Args: cobra.NoArgs,
		Long: topologyHelp + help,
		RunE: func(c *cobra.Command, _ []string) error {
			write := formats[format]
			if write == nil {
				return terminal.WithMisuse(fmt.Errorf("--format %q: want one of %s", format, formatNames()))
			}
			if as := c.Flags().Lookup("json"); as != nil && as.Value.String() == "true" {
				return terminal.WithMisuse(fmt.Errorf("--json: --format says how it is printed; ibwarden show nodes --json and show links --json have what is in it"))
			}
			if c.Flags().Changed("every") && (output == "" || every < everyLeast) {
				return terminal.WithMisuse(fmt.Errorf("--every %v: want %v or more, and --output FILE", every, everyLeast))
			}
			once := func() error {
				s, err := read(c, sweep.Options{})
				if err != nil {
					return err
				}
				var lacks error
				if n := len(s.Faults); n > 0 {
					lacks = terminal.WithBad(fmt.Errorf("%s could not be read", terminal.Count(n, "place")))
				}
				if output != "" && lacks == nil {
					return replaceTopology(c, output, write, s)
				} else if output != "" {
					return lacks
				}
				if err := write(c.OutOrStdout(), s.Fabric, s.ReadAt); err != nil {
					return terminal.WithBad(err)
				}
				return lacks
			}
			if every == 0 {
				return once()
			}
			for {
				if err := once(); err != nil {
					fmt.Fprintf(c.ErrOrStderr(), "%s: %s is left as it is: %v\n", time.Now().UTC().Format(time.RFC3339), output, err)
				}
				select {
				case <-c.Context().Done():
					return nil
				case <-time.After(every):
				}
			}
		},
	}
	add(c)
	c.Flags().StringVarP(&output, "output", "o", "", "replace this file, where it changes (default: print)")
	c.Flags().DurationVar(&every, "every", 0, "time between two readings, after each of which the file is replaced where it changes (default: read once)")
	c.Flags().StringVar(&format, "format", formatIbnetdiscover, "how it is printed: "+formatNames())
	return c
}

// everyLeast is the least time between two readings: each asks every device.
const everyLeast = time.Second

// topologyMost bounds a file that is compared, in bytes.
const topologyMost = 256 << 20

// topologyMode is that of a file that was not there: a scheduler runs as another user.
const topologyMode = 0o644

// replaceTopology replaces a file with a fabric in a format, if it has anything else.
func replaceTopology(c *cobra.Command, file string, write func(io.Writer, *observed.Fabric, time.Time) error, s *snapshot.Snapshot) error {
	var text bytes.Buffer
	if err := write(&text, s.Fabric, s.ReadAt); err != nil {
		return terminal.WithBad(err)
	}
	mode := os.FileMode(topologyMode)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
		old, err := files.Read(file, topologyMost)
		if err != nil {
			return terminal.WithBad(fmt.Errorf("--output: %w", err))
		}
		if bytes.Equal(old, text.Bytes()) {
			return nil
		}
	}
	if err := files.ReplaceAs(file, mode, files.Bytes(text.Bytes())); err != nil {
		return terminal.WithBad(fmt.Errorf("--output: %w", err))
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: %s is written\n", s.ReadAt.UTC().Format(time.RFC3339), file)
	return nil
}

// Write writes a fabric that was read at a time as ibnetdiscover prints it.
func Write(w io.Writer, f *observed.Fabric, at time.Time) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "#\n# Topology file: generated on %s\n#\n", at.Format(time.ANSIC))
	if p := f.Self; p != nil {
		fmt.Fprintf(out, "# Initiated from node %016x port %016x\n", uint64(p.Node.GUID()), uint64(p.Agent().GUID))
	}
	nodes := discovered(f)
	slices.Reverse(nodes) // it lists first what it found last
	for _, t := range []ib.NodeType{ib.NodeSwitch, ib.NodeCA, ib.NodeRouter} {
		for _, n := range nodes {
			if n.Type() == t {
				writeNode(out, n)
			}
		}
	}
	return out.Flush()
}

// discovered are the nodes in the order in which ibnetdiscover finds them: it asks one question
// after the other, each answer adding some at the end, and goes on behind each port as that
// says that its link is up. Nodes that no link leads to come last.
func discovered(f *observed.Fabric) (out []*observed.Node) {
	type question struct {
		node *observed.Node
		port *observed.Port // nil: who the node is; else what the port is like
		by   *observed.Port // of the node, by which it was asked
	}
	seen := make(map[*observed.Node]bool)
	var queue []question
	if f.Self != nil {
		queue = append(queue, question{node: f.Self.Node, by: f.Self})
	}
	for ; len(queue) > 0; queue = queue[1:] {
		q := queue[0]
		switch {
		case q.port != nil:
			if q.port.Num != 0 && q.port.Peer != nil && (q.node.Switch != nil && q.port != q.by || q.port == f.Self) {
				queue = append(queue, question{node: q.port.Peer.Node, by: q.port.Peer})
			}
		case !seen[q.node]:
			seen[q.node] = true
			out = append(out, q.node)
			if q.node.Switch == nil {
				queue = append(queue, question{q.node, q.by, q.by})
				continue
			}
			for i := range q.node.Ports {
				queue = append(queue, question{q.node, &q.node.Ports[i], q.by})
			}
		}
	}
	for _, n := range f.Nodes {
		if !seen[n] {
			out = append(out, n)
		}
	}
	return out
}

// words are what a kind of node is called: its keyword, and the setting with its GUID.
var words = map[ib.NodeType][2]string{
	ib.NodeSwitch: {"Switch", "switchguid"}, ib.NodeCA: {"Ca", "caguid"}, ib.NodeRouter: {"Rt", "rtguid"},
}

func writeNode(out io.Writer, n *observed.Node) {
	info := &n.Info
	fmt.Fprintf(out, "\nvendid=0x%x\ndevid=0x%x\n", info.VendorID, info.DeviceID)
	if info.SystemImageGUID != 0 {
		fmt.Fprintf(out, "sysimgguid=0x%x\n", uint64(info.SystemImageGUID))
	}
	fmt.Fprintf(out, "%s=0x%x", words[n.Type()][1], uint64(n.GUID()))
	if n.Switch != nil {
		fmt.Fprintf(out, "(%x)", uint64(n.Ports[0].GUID))
	}
	fmt.Fprintf(out, "\n%s\t%d %s\t\t# %s", words[n.Type()][0], info.NumPorts, named(n), quoted(n))
	if n.Switch != nil {
		kind := "base"
		if n.Switch.Info.EnhancedPort0 {
			kind = "enhanced"
		}
		fmt.Fprintf(out, " %s port 0 lid %d lmc %d", kind, n.Ports[0].Info.LID, n.Ports[0].Info.LMC)
	}
	fmt.Fprintln(out)
	for i := range n.Ports {
		if p := &n.Ports[i]; p.Peer != nil {
			writePort(out, p)
		}
	}
}

func writePort(out io.Writer, p *observed.Port) {
	peer, end := p.Peer, p.Node.Switch == nil
	fmt.Fprintf(out, "[%d]", p.Num)
	if end {
		fmt.Fprintf(out, "(%x) ", uint64(p.GUID))
	}
	fmt.Fprintf(out, "\t%s[%d]", named(peer.Node), peer.Num)
	if peer.Node.Switch == nil {
		if end {
			fmt.Fprint(out, " ")
		}
		fmt.Fprintf(out, "(%x) ", uint64(peer.GUID))
	}
	fmt.Fprint(out, "\t\t# ")
	if end {
		fmt.Fprintf(out, "lid %d lmc %d ", p.Info.LID, p.Info.LMC)
	}
	fmt.Fprintf(out, "%s lid %d %v\n", quoted(peer.Node), peer.Agent().Info.LID, rateOf(p))
}

// rateOf is width and speed of a link as ibnetdiscover prints them.
func rateOf(p *observed.Port) topology.Rates {
	return topology.Rates{Width: uint8(p.Info.LinkWidthActive), Speed: uint8(p.Info.LinkSpeedActive), ExtSpeed: uint8(p.Info.LinkSpeedExtActive)}
}

// named is a node's identifier.
func named(n *observed.Node) string { return `"` + topology.DiscoveredID(n.Type(), n.GUID()) + `"` }

// quoted is a node's description, with blanks for what cannot be printed.
func quoted(n *observed.Node) string {
	text := []byte(n.Description)
	for i, c := range text {
		if c < ' ' || c > '~' {
			text[i] = ' '
		}
	}
	return `"` + string(text) + `"`
}
