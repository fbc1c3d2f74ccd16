package desired

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// Input is all that desired values are worked out from.
type Input struct {
	// Fabric is the subnet as it was read, with its Self. EndPorts are its end
	// ports by GUID; Compute works them out where they are nil.
	Fabric   *observed.Fabric
	EndPorts []*observed.Port
	// Resolved is the policy, as Resolve gives it. Stands says that it is the one
	// that stands on the subnet already: it does not fall because of a device
	// that has come, or says something else of itself, since then.
	Resolved
	Stands bool
	// Known is what was assigned before, and what an earlier run learned.
	Known Assigned
	// Unseen are end ports out of sight that may still use what they had.
	Unseen []facts.UnseenPort
	// Bounds are the most that ports may get, whatever the policy gives; nil ones
	// bind nobody.
	Bounds []*Bound
	// Cables is the list of cables; nil where devices are believed.
	Cables *cables.List

	// Profile says how far the subnet is held against hosts.
	Profile protect.Profile
	// Newcomer reports whether nobody waits for this manager, which has never managed the
	// subnet: it takes no LID for managers that a port has from somebody else.
	Newcomer bool
	// GIDPrefix is the subnet prefix where the policy has none; 0 stands for
	// ib.DefaultGIDPrefix.
	GIDPrefix uint64
	// LMC gives every CA and router port 2^LMC LIDs, Routing is the routing engine.
	LMC     ib.LMC
	Routing routing.Engine
	// RoutingFile are the forwarding tables for routing.File.
	RoutingFile *observed.LFTs
	// Workers may take parts of routing and of the judgement of routes.
	Workers graph.Workers
	// MKey guards every port; 0 for none. OwnKeys says that every port has an
	// M_Key of its own, which is not given here.
	MKey    ib.MKey
	OwnKeys bool
	// ProtectBits is the least M_KeyProtectBits of ports with an M_Key, 0 to 3.
	ProtectBits uint8
	// Reregister has every host that is up register again.
	Reregister bool
	// Asked tells which were asked already; nil for none.
	Asked func(ib.PortGUID) bool
	// Registered reports whether what hosts registered with the master before this one is known
	// to subnet administration: another master alone makes nobody register again.
	Registered bool
	// Groups are the multicast groups with their members; nil leaves multicast
	// tables as they are.
	Groups []*group.Group
	// Routes are those of an earlier Result: they are taken where fabric and
	// addresses are still the same. nil works them out.
	Routes *Routes
	// Began, when set, is told of each step of Compute as it begins.
	Began func(step string)
}

// The steps of Compute; the first, the P_Keys of the policy, has no name.
const (
	StepLIDs    = "LIDs"
	StepRouting = "routing"
	StepJudge   = "judge routes"
	StepTables  = "tables" // of lanes, links and multicast
)

func (in *Input) begin(step string) {
	if in.Began != nil {
		in.Began(step)
	}
}

// Resolved is a policy resolved on the end ports of a fabric.
type Resolved struct {
	Policy     *policy.Policy
	Resolution *policy.Resolution
	// PKeys are the numbers of its partitions.
	PKeys map[string]ib.PKeyBase
}

// Resolve gives the partitions of p their numbers, those that they had before if
// they had any, finds their members among ports, and has the names that p uses
// vetted: the error may be a *policy.AbsentError. site is called where a name
// finds nobody.
func Resolve(p *policy.Policy, among *policy.Resolver, names *facts.PolicyNames, before map[string]ib.PKeyBase, site func() *policy.Site) (Resolved, error) {
	numbers, err := policy.Allocate(p, before)
	if err != nil {
		return Resolved{}, err
	}
	resolution, err := among.Resolve(p, numbers)
	if err != nil {
		return Resolved{}, err
	}
	if err := names.Vet(p, resolution, site); err != nil {
		return Resolved{}, err
	}
	return Resolved{p, resolution, numbers}, nil
}

// complete fills in what was left out.
func (in *Input) complete() {
	if in.EndPorts == nil {
		in.EndPorts = in.Fabric.EndPorts()
	}
	if in.GIDPrefix == 0 {
		in.GIDPrefix = ib.DefaultGIDPrefix
	}
}

// Identities are those of all end ports, unseen ones included: a policy is resolved among
// them. A port whose GUID another device claims too is left out, as is one behind a
// fenced port; it gets what an unknown port gets.
func (in *Input) Identities() []policy.EndPort {
	in.complete()
	out := make([]policy.EndPort, 0, len(in.EndPorts)+len(in.Unseen))
	for _, p := range in.EndPorts {
		if !p.Node.Contested && (p.Peer == nil || !in.Known.Fences.Expels(p.Peer.Place())) {
			out = append(out, facts.Named(facts.Identity(p, p == in.Fabric.Self), in.Cables))
		}
	}
	for i := range in.Unseen {
		out = append(out, in.Unseen[i].Identity)
	}
	return out
}

// Site is all that the names of a policy can mean.
func (in *Input) Site() *policy.Site {
	in.complete()
	return facts.Site(in.Fabric, in.EndPorts, in.Cables)
}

// factsOf are those of an end port.
func (in *Input) factsOf(p *observed.Port) partition.PortFacts {
	x := facts.OfEnd(p)
	x.Manager = p == in.Fabric.Self
	return x
}

// facts are those of all end ports, unseen ones included.
func (in *Input) facts() []partition.PortFacts {
	out := make([]partition.PortFacts, 0, len(in.EndPorts)+len(in.Unseen))
	for _, p := range in.EndPorts {
		out = append(out, in.factsOf(p))
	}
	for i := range in.Unseen {
		out = append(out, in.Unseen[i].Facts(in.Fabric))
	}
	return out
}

// withinBounds leaves out of the resolution who would get more than ports held,
// and says so.
func (in *Input) withinBounds() (*policy.Resolution, []string) {
	r := in.Resolution
	var warnings []string
	for _, b := range in.Bounds {
		if b == nil {
			continue
		}
		var text string
		if r, text = b.Within(r, in.Fabric.Self.GUID); text != "" {
			warnings = append(warnings, text)
		}
	}
	return r, warnings
}
