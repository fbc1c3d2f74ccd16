package engine

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// keepsAliases reports whether the tables of GUIDs are the manager's to keep:
// the policy speaks of aliases, or an earlier one did, whose aliases have to go.
func keepsAliases(p *policy.Policy, known Assigned) bool {
	return p.Aliases != nil || known.Aliases
}

// readsAliases reports whether a sweep reads the tables of GUIDs.
func (e *Engine) readsAliases() bool {
	return e.config.ReadAliases || keepsAliases(e.wanted(), e.known)
}

// lacksAliases reports whether the policy that is wanted is about tables that
// nobody has read.
func (e *Engine) lacksAliases() bool { return e.readsAliases() && !e.aliasesRead }

// aliases wants the tables of GUIDs of all end ports: what the policy gives
// them, and nothing else.
func (d *desired) aliases(e *Engine, p *policy.Policy, r *policy.Resolution) {
	if !keepsAliases(p, e.known) {
		return
	}
	d.assigned.Aliases = true
	given := make(map[ib.PortGUID][]ib.PortGUID, len(r.Aliases))
	for _, a := range r.Aliases {
		given[a.Port] = a.GUIDs
	}
	lingering := e.lingering()
	for _, port := range e.ends {
		if !port.InfoRead {
			continue
		}
		want := []ib.PortGUID{port.GUID}
		if !port.Node.Contested {
			for i, g := range given[port.GUID] {
				if holder := lingering[g]; holder != 0 && holder != port.GUID {
					d.warn("alias GUID %v is not given to %s: port %v may still have it, and does not answer", g, port, holder)
					g = 0
				}
				if i+1 >= int(port.Info.GUIDCap) && g != 0 {
					d.warn("alias GUID %v is not given to %s: GUIDCap is %d, its index would be %d", g, port, port.Info.GUIDCap, i+1)
					continue
				}
				want = append(want, g)
			}
		}
		d.tables.Port(port).GUIDs = want
	}
}

// sameAliases reports whether the aliases that were wanted before are those that
// another policy wants.
func (d *desired) sameAliases(e *Engine, p *policy.Policy, r *policy.Resolution) bool {
	return keepsAliases(p, e.known) == d.assigned.Aliases &&
		slices.EqualFunc(d.resolution.Aliases, r.Aliases, func(a, b policy.PortAliases) bool {
			return a.Port == b.Port && slices.Equal(a.GUIDs, b.GUIDs)
		})
}

func (d *desired) warn(format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf(format, args...))
}

// lingering are the aliases that end ports had which are out of sight behind a
// link that may still carry data, by alias.
func (e *Engine) lingering() map[ib.PortGUID]ib.PortGUID {
	out := map[ib.PortGUID]ib.PortGUID{}
	for i := range e.unseen {
		for _, a := range e.unseen[i].aliases {
			out[a.GUID] = e.unseen[i].identity.PortGUID
		}
	}
	return out
}

// standingAliases are the aliases that the policy wants and the ports showed to
// have, by index from 1.
func (e *Engine) standingAliases() map[ib.PortGUID][]ib.PortGUID {
	out := map[ib.PortGUID][]ib.PortGUID{}
	if !e.known.Aliases {
		return out
	}
	for _, port := range e.ends {
		want := e.desired.tables.Port(port).GUIDs
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
