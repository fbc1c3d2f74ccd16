package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ChangedNodes lists the devices with end ports whose keys, or the keys or
// enforcement of the switch port before them, are to change, ordered by GUID.
func ChangedNodes(f *observed.Fabric, full *observed.Desired) []*observed.Node {
	var out []*observed.Node
	for _, p := range f.EndPorts() {
		changes := portDiffers(p, full.Port(p))
		if p.Peer != nil && p.Peer.FacesEnd() {
			changes = changes || portDiffers(p.Peer, full.Port(p.Peer))
		}
		if changes && !slices.Contains(out, p.Node) {
			out = append(out, p.Node)
		}
	}
	slices.SortFunc(out, func(a, b *observed.Node) int { return cmp.Compare(a.GUID(), b.GUID()) })
	return out
}

func portDiffers(p *observed.Port, want *observed.DesiredPort) bool {
	if (want.Elements&observed.ElementEnforcement).Differ(&p.Info, &want.Info) != 0 {
		return true
	}
	if want.PKeys == nil {
		return false
	}
	for i := range max(len(p.PKeys), len(want.PKeys)) {
		if keyAt(p.PKeys, i) != keyAt(want.PKeys, i) {
			return true
		}
	}
	return false
}

func keyAt(t []ib.PKey, i int) ib.PKey {
	if i < len(t) {
		return t[i]
	}
	return ib.PKeyInvalid
}

// NextStep cuts from full the part that concerns the devices in done: their keys,
// and the keys and enforcement of the switch ports before them. It leaves
// everything else alone, and enforcement that full turns off.
//
// A device gets nothing of a partition from which another, that is not in done,
// has still to be taken: the two could talk then, and neither the old policy
// nor the new one may want that. What waits is given by a later step; how many
// keys wait is the second result.
//
// The manager's own device is in every step, and keeps what it is to lose until
// the last, where KeepManagers finds that nobody is to get it: those who have
// their new keys and those who wait can both ask subnet administration.
func NextStep(f *observed.Fabric, full *observed.Desired, done map[*observed.Node]bool) (*observed.Desired, int) {
	d := observed.NewDesired(f)
	last := !slices.ContainsFunc(ChangedNodes(f, full), func(n *observed.Node) bool { return !done[n] })
	if f.Self != nil && len(done) > 0 {
		done = maps.Clone(done)
		done[f.Self.Node] = true
	}
	held := leavingKeys(f, full, done)
	waiting := 0
	take := func(p *observed.Port) {
		want, whole := d.Port(p), full.Port(p)
		if whole.PKeys != nil {
			want.PKeys = slices.Clone(whole.PKeys)
			for i, k := range want.PKeys {
				if k.IsValid() && held[k.Base()] {
					if want.PKeys[i] = Permitted(p.PKeys, k); want.PKeys[i] != k {
						waiting++
					}
				}
			}
		}
		if !turnsOff(p, whole) {
			want.Elements = whole.Elements & observed.ElementEnforcement
			want.Elements.Copy(&want.Info, &whole.Info)
		}
	}
	for _, p := range f.EndPorts() {
		if !done[p.Node] {
			continue
		}
		take(p)
		if p.Peer != nil && p.Peer.FacesEnd() {
			take(p.Peer)
		}
	}
	if !last {
		KeepManagers(f, full, d)
	}
	return d, waiting
}

// leavingKeys are the partitions that a port not in done is still in, or more in, than full
// wants.
func leavingKeys(f *observed.Fabric, full *observed.Desired, done map[*observed.Node]bool) map[ib.PKeyBase]bool {
	out := map[ib.PKeyBase]bool{}
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			want := full.Port(p)
			owner := n
			if p.FacesEnd() {
				owner = p.Peer.Node
			}
			if want.PKeys == nil || done[owner] {
				continue
			}
			for _, k := range p.PKeys {
				if k.IsValid() && Permitted(want.PKeys, k) != k {
					out[k.Base()] = true
				}
			}
		}
	}
	return out
}

func turnsOff(p *observed.Port, want *observed.DesiredPort) bool {
	if want.Elements&observed.ElementEnforcement == 0 {
		return false
	}
	return p.Info.PartitionEnforcementInbound && !want.Info.PartitionEnforcementInbound ||
		p.Info.PartitionEnforcementOutbound && !want.Info.PartitionEnforcementOutbound
}
