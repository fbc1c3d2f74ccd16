package desired

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Result is what a policy requires on a fabric.
type Result struct {
	Tables *observed.Desired
	// Settings is what the policy asks of links and devices, Resolution the resolved
	// policy, within bounds.
	Settings   policy.Settings
	Resolution *policy.Resolution
	// Withheld are partitions that nobody may be given.
	Withheld []ib.PKeyBase
	Warnings []string
	// Assigned is Input.Known with LIDs, P_Keys and fences as they are now.
	Assigned Assigned
	// Fences are those that came and went, because of the room in P_Key tables.
	Fences []facts.FenceChange
	// Open counts the fenced ports that let strangers pass.
	Open int
	// Ungrouped are members that packets of their groups do not reach.
	Ungrouped []MulticastFault
	// Compiled is the number of end ports whose tables were worked out.
	Compiled int
	// Routes are to be given to the next call.
	Routes *Routes

	in     Input
	levels *QoSLevels // nil where routes need no virtual lanes
	// moved are the multicast LIDs whose trees have changed since they were judged, and
	// circles is what was found wrong with them then.
	moved   map[ib.LID]bool
	circles string
	// judgedNow reports whether routes were judged, with these groups, by this computation.
	judgedNow bool
	// about are the warnings that are not about the policy; odd says that any is
	// about the tables of a port.
	about []string
	odd   bool
}

// Compute works out every table and setting.
func Compute(in Input) (*Result, error) {
	in.complete()
	for _, b := range in.Bounds {
		if b != nil {
			in.Policy = b.Tight(in.Policy)
		}
	}
	r := &Result{in: in, Tables: observed.NewDesired(in.Fabric), Settings: in.Policy.Asked(), Assigned: in.Known}
	r.Assigned.PKeys = in.PKeys
	if err := r.keys(); err != nil {
		return nil, err
	}
	ofPolicy := len(r.Resolution.Warnings)
	r.in.begin(StepLIDs)
	if err := r.lids(); err != nil {
		return nil, err
	}
	r.in.begin(StepTables)
	if err := r.lanes(); err != nil {
		return nil, err
	}
	r.settings()
	if err := r.Lead(in.Groups); err != nil {
		return nil, err
	}
	if r.judgedNow {
		clear(r.moved)
	}
	if j := r.Routes.judgement; j != nil {
		j.Beside(r.Tables)
	}
	r.about = r.Warnings[ofPolicy:]
	return r, nil
}

// Ordinary reports whether nothing is withheld from anybody and no warning is about
// the tables of a port: only then the result can be updated.
func (r *Result) Ordinary() bool { return len(r.Withheld) == 0 && !r.odd }

// Groups finds the ports of every group of the policy, in the order of the policy;
// nil without a policy.
func (r *Result) Groups() ([]policy.ResolvedGroup, error) {
	if r.in.Policy == nil {
		return nil, nil
	}
	return r.in.Policy.ResolveGroups(r.in.Identities())
}

// Raw is what the policy makes of raw packets.
func (r *Result) Raw() isolation.Raw { return facts.Raw(r.in.Profile, r.in.Policy) }

// GIDPrefix is the subnet prefix: the policy's, or what the manager was told.
func (r *Result) GIDPrefix() uint64 {
	if r.Settings.GIDPrefix != 0 {
		return r.Settings.GIDPrefix
	}
	return r.in.GIDPrefix
}

// port is the port at a place, nil when it was not found.
func (r *Result) port(n ib.NodeGUID, num ib.PortNum) *observed.Port {
	return r.in.Fabric.At(observed.Place{Node: n, Port: num})
}

func (r *Result) warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}
