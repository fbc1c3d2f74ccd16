package server

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// View is an index over an observed.Subnet.
type View struct {
	observed.Subnet
	// Ports are the end ports that have a LID, by LID.
	Ports []*Port

	byLID  []*Port // by LID, every LID of a port
	byGUID map[ib.PortGUID]*Port
	byPort map[*observed.Port]*Port
	places []int32                     // by partition: its place in Partitions, from 1
	named  map[ib.PortGUID]ib.PortGUID // ports by their aliases
	exits  [][]ib.PortNum              // by node and LID; nil but for switches
	wires  [][]wire                    // by node and port
	rests  [][]*restBlock              // by node and LID; nil but for switches
}

// Port is an end port.
type Port struct {
	*observed.Port
	// Index is the port's place in View.Ports.
	Index int
	// Contested reports whether others claim the port's GUID, its node's, or one of
	// its LIDs. It has no keys then.
	Contested bool
	// LID is the first of 1<<LMC.
	LID ib.LID
	LMC ib.LMC
	// Keys are those that the port can use, by partition, each partition once.
	Keys []ib.PKey
	GID  ib.GID

	near
	source
}

// Contains reports whether lid is one of the port's.
func (p *Port) Contains(lid ib.LID) bool {
	return lid >= p.LID && int(lid-p.LID) < p.LMC.Count()
}

// NewView indexes a snapshot.
func NewView(s observed.Subnet) *View {
	v := &View{Subnet: s, byGUID: make(map[ib.PortGUID]*Port), byPort: make(map[*observed.Port]*Port)}
	v.enterPorts()
	v.followPolicy(nil)
	v.enterRoutes()
	return v
}

// After is NewView, and takes over from an earlier view what is the same: ports, routes, and
// the keys of ports whose table and partitions are what they were. The ports of that
// view then have the keys of the new one.
func After(old *View, s observed.Subnet) *View {
	if old == nil || s.Epoch == 0 || old.Fabric != s.Fabric || old.Epoch != s.Epoch || old.GIDPrefix != s.GIDPrefix ||
		!maps.Equal(old.LIDs, s.LIDs) || !maps.Equal(old.Expelled, s.Expelled) {
		return NewView(s)
	}
	v := *old
	v.Subnet = s
	v.followPolicy(old)
	return &v
}

// enterPorts lists the end ports that can be addressed.
func (v *View) enterPorts() {
	top := ib.LID(0)
	claims := make(map[ib.PortGUID]int)
	for _, p := range v.Fabric.EndPorts() {
		if v.Expelled[p] {
			continue
		}
		claims[p.GUID]++
		at, assigned := v.LIDs[p]
		if !assigned {
			at = observed.Assigned{LID: p.Info.LID, LMC: p.Info.LMC}
		}
		if !p.InfoRead || !at.LID.IsUnicast() {
			continue
		}
		x := &Port{Port: p, LID: at.LID, LMC: at.LMC, GID: ib.MakeGID(v.GIDPrefix, p.GUID)}
		v.Ports = append(v.Ports, x)
		top = max(top, x.LID+ib.LID(x.LMC.Count()-1))
	}
	slices.SortStableFunc(v.Ports, func(a, b *Port) int { return cmp.Compare(a.LID, b.LID) })
	v.byLID = make([]*Port, int(top)+1)
	for i, p := range v.Ports {
		p.Index = i
		p.Contested = p.Contested || claims[p.GUID] > 1 || p.Node.Contested
		v.byPort[p.Port] = p
		for i := range p.LMC.Count() {
			at := &v.byLID[int(p.LID)+i]
			if *at == nil {
				*at = p
			} else {
				(*at).Contested, p.Contested = true, true
			}
		}
	}
	for _, p := range v.Ports {
		if !p.Contested {
			v.byGUID[p.GUID] = p
		}
	}
}

// At is the end port with this LID, or nil.
func (v *View) At(lid ib.LID) *Port {
	if int(lid) >= len(v.byLID) {
		return nil
	}
	return v.byLID[lid]
}

// Named is the end port with this GID, or nil.
func (v *View) Named(g ib.GID) *Port {
	if g.Prefix() != v.GIDPrefix && g.Prefix() != ib.DefaultGIDPrefix {
		return nil
	}
	return v.Owner(g.PortGUID())
}

// Owner is the end port with this GUID, or nil; nil also when it is contested.
func (v *View) Owner(g ib.PortGUID) *Port { return v.byGUID[g] }

// Alias is the port to which the policy gives an alias GUID.
func (v *View) Alias(g ib.PortGUID) (port ib.PortGUID, ok bool) {
	port, ok = v.named[g]
	return port, ok
}

// EndOf is the end port that p belongs to: itself, or port 0 of its switch; nil
// when that cannot be addressed.
func (v *View) EndOf(p *observed.Port) *Port {
	if p.Node.Switch != nil {
		p = &p.Node.Ports[0]
	}
	return v.byPort[p]
}

// Partition is the partition with this number, or nil.
func (v *View) Partition(base ib.PKeyBase) *observed.Partition {
	if int(base) < len(v.places) && v.places[base] > 0 {
		return &v.Partitions[v.places[base]-1]
	}
	return nil
}
