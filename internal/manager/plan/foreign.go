package plan

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Foreign lists what a second reading of a subnet, now, shows that somebody else wrote since the first,
// old: keys and enforcement that give a port more than was wants of it, where old had them as wanted,
// or has the change already: drifted are these ports of old. A port that is not Active with the LID that
// it had is left out, for its device may have restarted. The Desired is what was wants of the ports in
// the list, in terms of now; both are nil when there is none.
func Foreign(old *observed.Fabric, was *observed.Desired, drifted []*observed.Port, now *observed.Fabric) ([]Op, *observed.Desired) {
	var ports []*observed.Port
	var d *observed.Desired
	for _, n := range now.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			q := old.At(p.Place())
			if q == nil || !p.Reached || p.Info.PortState != smp.PortActive || p.Info.LID != q.Info.LID {
				continue
			}
			want := was.Port(q)
			if !slices.Contains(drifted, q) && (sameIsolation(p, q) || !asWanted(q, want)) {
				continue
			}
			if d == nil {
				d = observed.NewDesired(now)
			}
			to := d.Port(p)
			to.PKeys, to.Elements, to.Info = want.PKeys, want.Elements&observed.ElementEnforcement, want.Info
			ports = append(ports, p)
		}
	}
	if len(ports) == 0 {
		return nil, nil
	}
	var ops []Op
	for _, s := range DiffAt(now, d, ports).Stages {
		for _, op := range s.Ops {
			same := func(o Op) bool { return o.Port == op.Port && o.Attribute == op.Attribute && o.Modifier == op.Modifier }
			if Widened(op, d) && !slices.ContainsFunc(ops, same) {
				ops = append(ops, op)
			}
		}
	}
	return ops, d
}

// sameIsolation reports whether two readings of a port have the same keys and enforcement, as far as
// the later one has them.
func sameIsolation(now, before *observed.Port) bool {
	return (!now.PKeysKnown() || slices.Equal(now.PKeys, before.PKeys)) && observed.ElementEnforcement.Differ(&now.Info, &before.Info) == 0
}

// asWanted reports whether a port was read, and had the keys and enforcement that are wanted.
func asWanted(p *observed.Port, want *observed.DesiredPort) bool {
	return p.InfoRead && (want.PKeys == nil || p.PKeysKnown()) && !portDiffers(p, want)
}
