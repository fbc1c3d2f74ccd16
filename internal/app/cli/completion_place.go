package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

const (
	// patience is how long a person waits for a completion at the most: what a
	// completionFabric does not answer in it is not proposed.
	patience = 3 * time.Second
	// offersMax is how many words are proposed at the most.
	offersMax = 2000
	// socketsMax is the longest list of sockets that is read, in bytes.
	socketsMax = 64 << 20
	// policyMax is the largest policy that is read, in bytes.
	policyMax = 16 << 20
)

// generators are those of simulated fabrics, each as it may be given.
var generators = []string{
	"fattree,radix=36,levels=2", "torus,x=4,y=4", "dragonfly,", "random,seed=7,switches=8,hosts=20",
}

// fabrics are the demonstration, generators, the simulators that run on this machine
// and its adapters.
func fabrics(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	out := []string{"sim\tthe demonstration"}
	for _, g := range generators {
		out = append(out, "sim:"+g+"\tgenerated")
	}
	for _, s := range served() {
		out = append(out, "ibsim:"+s+"\ta running simulator")
	}
	out = append(out, "umad\tthe first port that is up")
	devices, err := daemon.Devices()
	for _, d := range devices {
		for _, p := range d.Ports {
			if err == nil {
				out = append(out, fmt.Sprintf("umad:%s/%d", d.Name, p.Num))
			}
		}
	}
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	if strings.HasPrefix(begun, "sim:") {
		directive = cobra.ShellCompDirectiveDefault // or a topology file
	}
	return beginning(out, begun), directive
}

// topologies are those of ibwarden sim: a generator, or a file.
func topologies(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return beginning(generators, begun), cobra.ShellCompDirectiveDefault
}

// sockets are the names of the simulators that run on this machine.
func sockets(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return beginning(served(), begun), cobra.ShellCompDirectiveNoFileComp
}

// served are the names of the simulators that run on this machine: each has a
// control socket "NAME:ctl" in the abstract namespace of Linux.
func served() []string {
	text, err := files.Read("/proc/net/unix", socketsMax)
	if err != nil {
		return nil // not Linux
	}
	return simulators(string(text))
}

// simulators finds them in the kernel's list of sockets, one a line, the name last.
// In a name that begins with @ a zero byte is shown as @ too.
func simulators(list string) (out []string) {
	for line := range strings.Lines(list) {
		_, name, ok := strings.Cut(strings.TrimSpace(line), " @")
		if name, ends := strings.CutSuffix(strings.TrimRight(name, "@"), ":ctl"); ok && ends && harmless(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// flag is the value of a flag, or nothing where the command has none.
func flag(c *cobra.Command, name string) string {
	if f := c.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// completionFabric reads the completionFabric or the snapshot that the command line names so far; nil
// when that cannot be read in the time that there is.
func completionFabric(c *cobra.Command) *observed.Fabric {
	if file := flag(c, "snapshot"); file != "" {
		if s, err := daemon.LoadSnapshot(file); err == nil {
			return s.Fabric
		}
		return nil
	}
	return completionRead(c, flag(c, "fabric"))
}

func completionRead(c *cobra.Command, spec string) *observed.Fabric {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	link, err := daemon.Open(spec, 0)
	if err != nil {
		return nil
	}
	defer link.Close()
	r, err := daemon.Read(ctx, link, sweep.Options{})
	if err != nil {
		return nil
	}
	return r.Fabric
}

// harmless reports whether a word may go to a shell: it has nothing that a shell
// expands. bash's completion hands what is proposed to compgen -W, which carries out
// $(...), and what a device, another user's simulator or a policy is called is
// theirs to choose.
func harmless(word string) bool {
	return word != "" && strings.Trim(word, shellSafe) == ""
}

// shellSafe are the characters of words and of what is said about them.
const shellSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:,=/@+-"

// offer returns a word and its description, for shells that show it. A word with
// characters that are special to a shell is not proposed.
func offer(word, about string) (string, bool) {
	about = strings.Map(func(r rune) rune {
		if r == ' ' || strings.ContainsRune(shellSafe, r) {
			return r
		}
		return '_'
	}, about)
	return word + "\t" + about, harmless(word)
}

// offers makes words of ports.
func offers(ports []*observed.Port, begun string, of func(*observed.Port) (word, about string)) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, p := range ports {
		if w, ok := offer(of(p)); ok && strings.HasPrefix(w, begun) && len(out) < offersMax {
			out = append(out, w)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// endPorts are those of the fabric of the command line.
func endPorts(c *cobra.Command) []*observed.Port {
	if f := completionFabric(c); f != nil {
		return f.EndPorts()
	}
	return nil
}

// hosts are end ports by the first word of what their nodes are called.
func hosts(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return offers(endPorts(c), begun, func(p *observed.Port) (string, string) {
		first, _, _ := strings.Cut(p.Node.Description, " ")
		if p.Node.Switch == nil && len(p.Node.Ports) > 2 {
			first = fmt.Sprintf("%s:%d", first, p.Num)
		}
		return first, p.GUID.String()
	})
}

// devices are hosts and switches, by the first word of what they are called.
func devices(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	f := completionFabric(c)
	if f == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ports []*observed.Port
	for _, n := range f.Nodes {
		if n.Switch != nil {
			ports = append(ports, &n.Ports[0])
			for i := 1; strings.Contains(begun, ":") && i < len(n.Ports); i++ {
				ports = append(ports, &n.Ports[i])
			}
		}
	}
	return offers(append(slices.DeleteFunc(f.EndPorts(), func(p *observed.Port) bool { return p.Node.Switch != nil }), ports...), begun, func(p *observed.Port) (string, string) {
		first, _, _ := strings.Cut(p.Node.Description, " ")
		if p.Num != 0 && (p.Node.Switch != nil || len(p.Node.Ports) > 2) {
			first = fmt.Sprintf("%s:%d", first, p.Num)
		}
		return first, p.Node.GUID().String()
	})
}

// portGUIDs are those of end ports.
func portGUIDs(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return offers(endPorts(c), begun, func(p *observed.Port) (string, string) { return p.GUID.String(), p.String() })
}

// switchPorts are the external ports of switches.
func switchPorts(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var ports []*observed.Port
	if f := completionFabric(c); f != nil {
		for _, n := range f.Switches() {
			for i := 1; i < len(n.Ports); i++ {
				ports = append(ports, &n.Ports[i])
			}
		}
	}
	return offers(ports, begun, func(p *observed.Port) (string, string) {
		if p.Peer == nil {
			return p.String(), "nothing known behind it"
		}
		return p.String(), "to " + p.Peer.String()
	})
}

// simulatedNodes are those of the simulator that --socket names.
func simulatedNodes(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	var ports []*observed.Port
	if f := completionRead(c, "ibsim:"+flag(c, "socket")); f != nil {
		ports = f.EndPorts()
	}
	return offers(ports, begun, func(p *observed.Port) (string, string) {
		first, _, _ := strings.Cut(p.Node.Description, " ")
		return first, p.Node.GUID().String()
	})
}

// groups are those of the policy of the command line.
func groups(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	file := flag(c, "policy")
	data, err := files.Read(file, policyMax)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	p, err := policyfile.Read(data, file, policyfile.Options{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, g := range p.Groups {
		if harmless(g.Name) {
			out = append(out, g.Name)
		}
	}
	return beginning(out, begun), cobra.ShellCompDirectiveNoFileComp
}
