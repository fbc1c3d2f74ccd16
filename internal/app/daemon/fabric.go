package daemon

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/link/ibsim"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	linkumad "github.com/ibwarden/ibwarden/internal/link/umad"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

//go:embed demo.yaml
var demoPolicy []byte

// Demonstration is the name of the fabric that is embedded.
const Demonstration = "sim"

// DemoPolicy is the policy of the demonstration fabric.
func DemoPolicy() (*policy.Policy, error) { return policyfile.ReadYAML(demoPolicy, "demo.yaml") }

// ErrUnreachable says that a fabric was named rightly and is not there.
var ErrUnreachable = errors.New("fabric cannot be reached")

// Open opens what a --fabric flag names, at the port with this GUID, or at the
// fabric's own first port when it is zero.
func Open(spec string, guid ib.PortGUID) (link.Link, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "sim":
		return openSim(rest, guid)
	case "umad":
		return openUMAD(rest, guid)
	case "ibsim":
		if guid != 0 {
			return nil, errors.New("--guid: ibsim attaches by node name: set SIM_HOST")
		}
		e := ibsim.EnvironmentFrom(os.Getenv)
		if rest != "" {
			e.SockName = rest
		}
		link, err := ibsim.Dial(e)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		return link, nil
	}
	return nil, fmt.Errorf("--fabric %q: want sim, sim:FILE, sim:GENERATOR, ibsim[:SOCKNAME] or umad[:DEVICE[/PORT]]", spec)
}

// RootVariable names a directory that stands for / when adapters are looked
// for: a container's, or a test's.
const RootVariable = "IBWARDEN_ROOT"

// Root is the directory that stands for / when adapters are looked for.
func Root() string {
	if r := os.Getenv(RootVariable); r != "" {
		return r
	}
	return "/"
}

// Devices lists the adapters of this machine.
func Devices() ([]umad.Device, error) { return umad.Devices(Root()) }

// notice tells the person at the terminal of what opening a fabric came across.
func notice(text string) { fmt.Fprintln(os.Stderr, "ibwarden:", text) }

// openUMAD opens a port of this machine.
func openUMAD(rest string, guid ib.PortGUID) (link.Link, error) {
	place, err := umad.ParsePlace(rest)
	if err != nil {
		return nil, err
	}
	place.GUID = guid
	link, err := linkumad.Open(linkumad.NewMachine(Root()), place, linkumad.Options{
		Notice: notice,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return link, nil
}

// openSim makes a simulated fabric and attaches to it.
func openSim(rest string, guid ib.PortGUID) (link.Link, error) {
	topology, warnings, err := FindTopology(rest)
	for _, w := range warnings {
		notice(w.String())
	}
	if err != nil {
		return nil, fmt.Errorf("sim:%w", err)
	}
	f, err := fabric.New(topology, fabric.DefaultConfig())
	if err != nil {
		return nil, err
	}
	node, num := firstEndPort(topology)
	if guid != 0 {
		var ok bool
		if node, num, ok = f.EndPort(guid); !ok {
			return nil, fmt.Errorf("--guid: no port of this fabric has GUID %s", guid)
		}
	}
	return inproc.New(f, node, num, true)
}

// CheckLIDs reports an error when the fabric behind a link is simulated here, so that all of
// it is known, and needs more unicast LIDs than a subnet has, with 2^lmc for each end port.
// Of any other fabric the manager says so once it has swept it.
func CheckLIDs(to link.Link, lmc ib.LMC) error {
	l, simulated := to.(*inproc.Link)
	if !simulated {
		return nil
	}
	own, _ := l.Own()
	return l.Fabric().Source(own).CheckLIDs(lmc)
}

// firstEndPort is where a client of ibsim that names no node attaches: the
// first node, at port 0 of a switch and port 1 of anything else.
func firstEndPort(l *topology.Netlist) (ib.NodeGUID, ib.PortNum) {
	n := l.Nodes[0]
	if n.Type == ib.NodeSwitch {
		return n.GUID, 0
	}
	return n.GUID, 1
}
