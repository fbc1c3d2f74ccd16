package desired

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// levelsOf are the service levels of paths over routes, nil where they need no virtual lanes
// and no level has a share.
func (r *Result) levelsOf(x *Routes, used []ib.SL) (*QoSLevels, error) {
	if !x.UsesLanes() && r.Settings.Levels == nil {
		return nil, nil
	}
	return NewQoSLevels(r.in.Fabric, &r.Settings, used, x.routed.Graph, x.routed.Lanes)
}

// usesLanes reports whether the tables of virtual lanes are wanted.
func (r *Result) usesLanes(levels *QoSLevels) bool { return r.in.Policy.UsesLanes() || levels != nil }

// lanes wants the settings of links and, where the policy uses more than one
// service level or the routes more than one virtual lane, the tables that map levels to virtual lanes.
func (r *Result) lanes() error {
	faults, err := EnterLinks(r.in.Fabric, &r.Settings, r.Tables)
	if err != nil {
		return err
	}
	if r.usesLanes(r.levels) {
		if r.levels.Divides() {
			r.levels.Count(r.Routes.routed.Linear, r.talks())
		}
		more, short, err := EnterLanes(r.in.Fabric, &r.Settings, r.levels, r.allowed(), r.Tables)
		if err != nil {
			return err
		}
		faults = append(faults, more...)
		if n := len(short); n > 0 {
			r.warn("%s%s", short[0], others(n-1))
		}
		if err := r.guarded(); err != nil {
			return err
		}
	}
	for _, f := range faults {
		r.Warnings = append(r.Warnings, f.String())
	}
	return nil
}

// others says that there are more ports than the one that is named.
func others(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more ports)", n)
}

// talks are the ports that send to each other on levels of the policy.
func (r *Result) talks() (out []TalkingPorts) {
	for i := range r.Resolution.Partitions {
		p := &r.Resolution.Partitions[i]
		out = append(out, TalkingPorts{Levels: p.Levels(), Full: p.Full, Limited: p.Limited})
	}
	return out
}

// allowed are the levels on which each end port may send, nil where none is stopped: those of
// its partitions' paths and groups, in every layer of the routes, and that on which the
// manager is asked. The manager's own port may send on all.
func (r *Result) allowed() func(end *observed.Port) uint16 {
	if !r.Settings.EnforceLevels {
		return nil
	}
	sets := make(map[ib.PortGUID]uint16)
	for i := range r.Resolution.Partitions {
		p := &r.Resolution.Partitions[i]
		set := r.layers(p.Levels())
		for _, members := range [][]ib.PortGUID{p.Full, p.Limited} {
			for _, g := range members {
				sets[g] |= set
			}
		}
	}
	asks := r.levels.Layers(r.Settings.MasterSMSL)
	return func(end *observed.Port) uint16 {
		if end == r.in.Fabric.Self {
			return uint16(routes.AllSLs)
		}
		return sets[end.GUID] | asks
	}
}

// layers is a set of levels in every layer.
func (r *Result) layers(levels uint16) (set uint16) {
	for sl := range ib.SL(16) {
		if levels>>sl&1 != 0 {
			set |= r.levels.Layers(sl)
		}
	}
	return set
}

// guarded has the judge look at what switches drop of what end ports send: on the levels of
// its partitions nothing, for each port by itself; and it is said where a switch drops
// nothing.
func (r *Result) guarded() error {
	if !r.Settings.EnforceLevels {
		return nil
	}
	byKey := make(map[ib.PKeyBase]routes.SLs, len(r.Resolution.Partitions))
	for i := range r.Resolution.Partitions {
		p := &r.Resolution.Partitions[i]
		byKey[p.Base] = routes.SLs(r.layers(p.Levels()))
	}
	asked := r.Settings.MasterSMSL
	stopped, open := routes.Guarded(routes.Wanted(r.in.Fabric, r.Tables), func(end *observed.Port) routes.SLs {
		if end == r.in.Fabric.Self {
			return routes.AllSLs
		}
		set := routes.SLs(r.levels.Layers(asked))
		for _, k := range r.Resolution.KeysOf(end.GUID) {
			set |= byKey[k.Base()]
		}
		return set
	})
	if len(stopped) > 0 {
		return fmt.Errorf("the tables of virtual lanes would stop what a partition sends: %s", stopped[0])
	}
	if n := len(open); n > 0 {
		r.warn("qos_enforce: %s lets every service level pass: it has no mapping for each input port%s", open[0], others(n-1))
	}
	return nil
}
