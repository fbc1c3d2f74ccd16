package daemon

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyyaml"
	"github.com/ibwarden/ibwarden/internal/transport"
	"github.com/ibwarden/ibwarden/internal/transport/ibsim"
)

//go:embed demo.yaml
var demoPolicy []byte

// DemoPolicy is the policy of the demonstration fabric.
func DemoPolicy() (*policy.Policy, error) { return policyyaml.Read(demoPolicy, "demo.yaml") }

// Open opens what a --fabric flag names, at the port with this GUID, or at the
// fabric's own first port when it is zero.
func Open(spec string, guid ib.PortGUID) (transport.Link, error) {
	kind, rest, _ := strings.Cut(spec, ":")
	switch kind {
	case "sim":
		return openSim(rest, guid)
	case "ibsim":
		if guid != 0 {
			return nil, errors.New("--guid: ibsim attaches by node name: set SIM_HOST")
		}
		e := ibsim.EnvironmentFrom(os.Getenv)
		if rest != "" {
			e.SockName = rest
		}
		return ibsim.Dial(e)
	}
	return nil, fmt.Errorf("--fabric %q: want sim, sim:FILE, sim:GENERATOR or ibsim[:SOCKNAME]", spec)
}
func openSim(rest string, guid ib.PortGUID) (transport.Link, error) { return nil, errors.New("wait") }
