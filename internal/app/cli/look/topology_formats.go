// This file prints a fabric for other programs: Slurm, Kubernetes, and what draws graphs.

package look

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// formats are the values of --format.
var formats = map[string]func(io.Writer, *observed.Fabric, time.Time) error{
	formatIbnetdiscover: Write,
	"slurm":             ofTree(writeSlurm),
	"slurm-yaml":        ofTree(writeSlurmYAML),
	"kubernetes":        ofTree(writeKubernetes),
	"dot":               writeDot,
	"graphml":           writeGraphML,
}

func formatNames() string { return strings.Join(slices.Sorted(maps.Keys(formats)), ", ") }

// ofTree is a format that shows the tree, after what is not in it as comments.
func ofTree(write func(io.Writer, *tree)) func(io.Writer, *observed.Fabric, time.Time) error {
	return func(w io.Writer, f *observed.Fabric, _ time.Time) error {
		out, t := bufio.NewWriter(w), treeOf(f)
		for _, text := range t.left {
			fmt.Fprintf(out, "# not listed: %s\n", text)
		}
		write(out, &t)
		return out.Flush()
	}
}

// above calls yield with each switch that has switches below it, the root last; not for a single leaf.
func (t *tree) above(yield func(name string, below []string)) {
	var top []string
	for _, g := range t.groups {
		yield(g.name, g.leaves)
		top = append(top, g.name)
	}
	if t.groups == nil {
		for i := range t.leaves {
			top = append(top, t.leaves[i].name)
		}
	}
	if len(top) > 1 {
		yield(treeRoot, top)
	}
}

// writeSlurm writes topology.conf of the plugin topology/tree.
func writeSlurm(out io.Writer, t *tree) {
	for _, l := range t.leaves {
		fmt.Fprintf(out, "SwitchName=%s Nodes=%s\n", l.name, strings.Join(l.hosts, ","))
	}
	t.above(func(name string, below []string) {
		fmt.Fprintf(out, "SwitchName=%s Switches=%s\n", name, strings.Join(below, ","))
	})
}

// writeSlurmYAML writes topology.yaml, which Slurm 25.05 and later read.
func writeSlurmYAML(out io.Writer, t *tree) {
	fmt.Fprint(out, "---\n- topology: ibwarden\n  cluster_default: true\n  tree:\n    switches:\n")
	for _, l := range t.leaves {
		fmt.Fprintf(out, "      - switch: %q\n        nodes: %q\n", l.name, strings.Join(l.hosts, ","))
	}
	t.above(func(name string, below []string) {
		fmt.Fprintf(out, "      - switch: %q\n        children: %q\n", name, strings.Join(below, ","))
	})
}

// nodeLabel begins the labels of nodes that NVIDIA's Topograph sets too.
const nodeLabel = "network.topology.nvidia.com/"

// writeKubernetes writes the labels of each node, for kubectl apply --server-side.
func writeKubernetes(out io.Writer, t *tree) {
	for _, l := range t.leaves {
		for _, host := range l.hosts {
			fmt.Fprintf(out, "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: %q\n  labels:\n    %sleaf: %q\n", strings.ToLower(host), nodeLabel, l.name)
			if t.groups != nil {
				fmt.Fprintf(out, "    %sspine: %q\n", nodeLabel, t.groups[l.group].name)
			}
		}
	}
}

// cables calls yield with each cable once.
func cables(f *observed.Fabric, yield func(a, b *observed.Port)) {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			a := &n.Ports[i]
			if b := a.Peer; b != nil && (a.Node.GUID() < b.Node.GUID() || a.Node == b.Node && a.Num < b.Num) {
				yield(a, b)
			}
		}
	}
}

// writeDot writes a graph for Graphviz, each node by its GUID.
func writeDot(w io.Writer, f *observed.Fabric, _ time.Time) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, "graph fabric {")
	for _, n := range f.Nodes {
		shape := "ellipse"
		if n.Switch != nil {
			shape = "box"
		}
		text := strings.NewReplacer(`\`, ` `, `"`, `'`).Replace(strings.Trim(quoted(n), `"`))
		fmt.Fprintf(out, "  \"%v\" [label=\"%s\", shape=%s];\n", n.GUID(), text, shape)
	}
	cables(f, func(a, b *observed.Port) {
		fmt.Fprintf(out, "  \"%v\" -- \"%v\" [taillabel=\"%d\", headlabel=\"%d\", label=\"%v\"];\n", a.Node.GUID(), b.Node.GUID(), a.Num, b.Num, rateOf(a))
	})
	fmt.Fprintln(out, "}")
	return out.Flush()
}

// writeGraphML writes a graph that NetworkX, Gephi and yEd read.
func writeGraphML(w io.Writer, f *observed.Fabric, _ time.Time) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, xml.Header, `<graphml xmlns="http://graphml.graphdrawing.org/xmlns">`, "\n")
	for _, key := range [][2]string{{"node", "name"}, {"node", "type"}, {"edge", "source_port"}, {"edge", "target_port"}, {"edge", "rate"}} {
		fmt.Fprintf(out, "<key id=\"%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"string\"/>\n", key[1], key[0], key[1])
	}
	fmt.Fprintln(out, `<graph edgedefault="undirected">`)
	for _, n := range f.Nodes {
		fmt.Fprintf(out, "<node id=\"%v\"><data key=\"name\">", n.GUID())
		if err := xml.EscapeText(out, []byte(strings.Trim(quoted(n), `"`))); err != nil {
			return err
		}
		fmt.Fprintf(out, "</data><data key=\"type\">%v</data></node>\n", n.Type())
	}
	cables(f, func(a, b *observed.Port) {
		fmt.Fprintf(out, "<edge source=\"%v\" target=\"%v\"><data key=\"source_port\">%d</data><data key=\"target_port\">%d</data><data key=\"rate\">%v</data></edge>\n",
			a.Node.GUID(), b.Node.GUID(), a.Num, b.Num, rateOf(a))
	})
	fmt.Fprintln(out, "</graph>\n</graphml>")
	return out.Flush()
}
