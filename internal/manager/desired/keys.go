package desired

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// keys compiles the policy into P_Key tables and enforcement.
func (r *Result) keys() error {
	resolution, withheld := r.in.withinBounds()
	r.resolved(resolution)
	r.Warnings = append(r.Warnings, withheld...)
	known := r.in.facts()
	out, err := partition.Compile(partition.Input{Ports: known, Resolution: resolution, Fence: r.in.mayCutShort()})
	if err != nil {
		return err
	}
	r.Compiled = len(known)
	r.Warnings, r.odd = append(r.Warnings, out.Warnings...), len(out.Warnings)+len(out.Fenced) > 0
	r.cutShort(out.Fenced)
	r.incapable(out.NotEnforced)
	for _, x := range out.EndPorts {
		if port := r.port(x.NodeGUID, x.PortNum); port != nil && port.Reached {
			r.Tables.Port(port).PKeys = x.Table
		}
	}
	for _, x := range out.SwitchPorts {
		r.guard(x)
	}
	r.fenceOff()
	r.between()
	if r.in.Profile != protect.None {
		FilterRaw(r.in.Fabric, r.in.Policy.AllowRaw, r.fences().Has, r.Tables)
	}
	r.Withheld, r.Open = r.withheld(out.EndPorts), r.fences().Open(r.in.Fabric)
	if doubtful := observed.StrangersPartitions(r.in.Fabric, r.Tables, r.knowsBehind); len(doubtful) > 0 {
		r.Withheld = append(r.Withheld, doubtful...)
		r.warn("a device that does not answer is behind a link that carries data: partitions that it may use are given to no port (for example %s)", doubtful[0])
	}
	r.aliases()
	return nil
}

// fences are those that stand, with those that came and without those that went.
func (r *Result) fences() facts.FenceSet { return r.Assigned.Fences }

// resolved takes over what the policy says of partitions.
func (r *Result) resolved(to *policy.Resolution) {
	r.Resolution, r.Warnings = to, nil
	for _, w := range to.Warnings {
		r.Warnings = append(r.Warnings, "policy: "+w.String())
	}
}

// guard wants what a switch port that faces an end port ought to hold.
func (r *Result) guard(x partition.SwitchPort) {
	want := r.Tables.Port(r.port(x.SwitchGUID, x.PortNum))
	want.PKeys = nil
	if x.HasTable {
		want.PKeys = x.Table
	}
	want.Elements |= observed.ElementEnforcement
	want.Info.PartitionEnforcementInbound = x.Inbound && r.Settings.EnforceInbound
	want.Info.PartitionEnforcementOutbound = x.Outbound && r.Settings.EnforceOutbound
}

// between sets whether ports between switches enforce partitions: there every key of the
// ports behind has to pass. With a list of cables only what is on it is found there;
// without one devices are believed only if the profile protects nobody from them. A port
// without a known device behind it keeps its setting.
func (r *Result) between() {
	if s := &r.Settings; s.EnforceBetweenSwitches {
		r.Warnings = append(r.Warnings, CheckBetweenSwitches(r.in.Fabric, s.EnforceInbound, s.EnforceOutbound, r.Tables)...)
		return
	}
	if r.in.Cables != nil || r.in.Profile == protect.None {
		UncheckedBetweenSwitches(r.in.Fabric, r.Tables)
	}
}

// incapable says, before anything is written, where the fabric cannot do what
// the profile is about.
func (r *Result) incapable(lacking []partition.NotEnforced) {
	if r.in.Profile == protect.None {
		return
	}
	at := func(x partition.NotEnforced) *observed.Port { return r.port(x.SwitchGUID, x.PortNum) }
	for _, text := range facts.Incapable(lacking, at) {
		r.warn("profile %s: %s", r.in.Profile, text)
	}
}

// mayCutShort reports for which ports a table too small is no reason to refuse the
// policy. A new policy is refused as a whole, since its author can correct it. A policy
// in force does not fail because of a device that was added, or that now reports
// something else of itself; nor does a new one because of a device that is cut short
// already. With a profile no policy fails because of a host that reports less room than
// most: it may do so to keep what was revoked. The manager's own port is never cut short.
func (in *Input) mayCutShort() func(ib.PortGUID) bool {
	var odd map[ib.PortGUID]bool
	if in.Profile != protect.None {
		odd = facts.SmallTables(in.EndPorts)
	}
	return func(g ib.PortGUID) bool {
		return g != in.Fabric.Self.GUID && (in.Stands || in.Known.Fenced[g] || odd[g])
	}
}

// cutShort says which ports are cut short and remembers them. With a profile they
// are fenced: what a device says of its own room takes no port out of what the
// policy wants of it.
func (r *Result) cutShort(over []partition.Overflow) {
	r.Assigned.Fenced = make(map[ib.PortGUID]bool, len(over))
	var short []facts.Fence
	for _, o := range over {
		r.Assigned.Fenced[o.PortGUID] = true
		if r.in.Profile == protect.None {
			r.warn("fenced: it gets the default partition only until it fits: %v", o)
			continue
		}
		p := r.port(o.NodeGUID, o.PortNum)
		if p == nil || p.Peer == nil || !p.Peer.FacesEnd() {
			r.warn("it gets no more than fits, and is behind no switch port that could be fenced: %v", o)
			continue
		}
		short = append(short, facts.Fence{At: p.Peer.Place(), Reason: fmt.Sprint(o)})
	}
	x := facts.FenceEdit{Fabric: r.in.Fabric, Cables: r.in.Cables, Set: r.in.Known.Fences}
	x.HoldToRoom(short)
	r.Assigned.Fences, r.Fences = x.Set, x.Changes
}

// fenceOff wants fenced switch ports to let nothing pass. A switch that cannot
// check keys, or holds no table, can only leave the link inactive.
func (r *Result) fenceOff() {
	for _, at := range r.fences().Places() {
		q := r.in.Fabric.At(at)
		if q == nil || q.IsEnd() || q.Peer != nil && q.Peer.Node.Switch != nil {
			continue
		}
		info := &q.Node.Switch.Info
		want := r.Tables.Port(q)
		want.PKeys = nil
		if q.PKeyCap() > 0 {
			want.PKeys = []ib.PKey{}
		}
		want.Elements |= observed.ElementEnforcement
		want.Info.PartitionEnforcementInbound = info.InboundEnforcementCap && q.PKeyCap() > 0
		want.Info.PartitionEnforcementOutbound = info.OutboundEnforcementCap && q.PKeyCap() > 0
		if !want.Info.PartitionEnforcementInbound || !want.Info.PartitionEnforcementOutbound {
			r.warn("%s is fenced, but its switch cannot check keys: only a link that is not Active yet is kept so", q)
		}
	}
}

// withheld lists the partitions that unseen ports may still use, or use as full
// members, and should not, with no switch port before them that sees to it.
// tables are those that end ports ought to hold.
func (r *Result) withheld(tables []partition.EndPort) []ib.PKeyBase {
	var out []ib.PKeyBase
	for i := range r.in.Unseen {
		u := &r.in.Unseen[i]
		if r.fences().IsShutting(r.in.Fabric.At(u.Behind)) {
			continue
		}
		q := r.in.Fabric.At(u.At)
		guarded := q != nil && q.FacesStranger() && q.Enforces() && r.Tables.Port(q).PKeys != nil
		for _, x := range tables {
			if x.PortGUID != u.Identity.PortGUID {
				continue
			}
			for _, k := range u.Keys {
				// A switch port takes a partition away; that its host is a
				// limited member now it cannot see to.
				if k.IsValid() && !x.Table.Allows(k) && !(guarded && !x.Table.Holds(k.Base())) {
					out = append(out, k.Base())
				}
			}
			for _, k := range u.Guard {
				if q == nil && k.IsValid() && !x.Table.Holds(k.Base()) {
					out = append(out, k.Base())
				}
			}
		}
	}
	return out
}

// knowsBehind reports whether the keys of the device behind a port where the sweep found
// none are known: the device was known before, or the port is fenced.
func (r *Result) knowsBehind(p *observed.Port) bool {
	for i := range r.in.Unseen {
		if r.in.Unseen[i].Behind == p.Place() {
			return true
		}
	}
	return r.fences().IsShutting(p)
}
