package desired

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// aliases wants the tables of GUIDs of all end ports: what the policy gives
// them, and nothing else.
func (r *Result) aliases() {
	if !r.in.Known.KeepsAliases(r.in.Policy) {
		return
	}
	r.Assigned.Aliases = true
	given := make(map[ib.PortGUID][]ib.PortGUID, len(r.Resolution.Aliases))
	for _, a := range r.Resolution.Aliases {
		given[a.Port] = a.GUIDs
	}
	lingering := r.in.lingering()
	for _, port := range r.in.EndPorts {
		if !port.InfoRead {
			continue
		}
		want := []ib.PortGUID{port.GUID}
		if !port.Node.Contested {
			for i, g := range given[port.GUID] {
				if holder := lingering[g]; holder != 0 && holder != port.GUID {
					r.warn("alias GUID %v is not given to %s: port %v may still have it, and does not answer", g, port, holder)
					g = 0
				}
				if i+1 >= int(port.Info.GUIDCap) && g != 0 {
					r.warn("alias GUID %v is not given to %s: GUIDCap is %d, its index would be %d", g, port, port.Info.GUIDCap, i+1)
					continue
				}
				want = append(want, g)
			}
		}
		r.Tables.Port(port).GUIDs = want
	}
}

// sameAliases reports whether the aliases that are wanted are those that another
// policy wants.
func (r *Result) sameAliases(p *policy.Policy, to *policy.Resolution) bool {
	return r.Assigned.KeepsAliases(p) == r.Assigned.Aliases &&
		slices.EqualFunc(r.Resolution.Aliases, to.Aliases, func(a, b policy.PortAliases) bool {
			return a.Port == b.Port && slices.Equal(a.GUIDs, b.GUIDs)
		})
}

// lingering are the aliases that end ports had which are out of sight behind a
// link that may still carry data, by alias.
func (in *Input) lingering() map[ib.PortGUID]ib.PortGUID {
	out := map[ib.PortGUID]ib.PortGUID{}
	for i := range in.Unseen {
		for _, a := range in.Unseen[i].Aliases {
			out[a.GUID] = in.Unseen[i].Identity.PortGUID
		}
	}
	return out
}

// presentAliases are the aliases that the policy wants and the ports showed to
// have, by index from 1.
func (r *Result) standingAliases() map[ib.PortGUID][]ib.PortGUID {
	out := map[ib.PortGUID][]ib.PortGUID{}
	if !r.Assigned.Aliases {
		return out
	}
	for _, port := range r.in.EndPorts {
		want := r.Tables.Port(port).GUIDs
		for _, a := range port.Aliases() {
			if a.Index >= len(want) || want[a.Index] != a.GUID {
				continue
			}
			list := out[port.GUID]
			for len(list) < a.Index {
				list = append(list, 0)
			}
			list[a.Index-1] = a.GUID
			out[port.GUID] = list
		}
	}
	return out
}
