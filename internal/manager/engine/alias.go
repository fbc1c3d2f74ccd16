package engine

import (
	"github.com/ibwarden/ibwarden/ib"
)

// readsAliases reports whether a sweep reads the tables of GUIDs.
func (e *Engine) readsAliases() bool {
	return e.config.ReadAliases || e.known.KeepsAliases(e.wanted())
}

// lacksAliases reports whether the policy that is wanted is about tables that
// nobody has read.
func (e *Engine) lacksAliases() bool { return e.readsAliases() && !e.aliasesRead }

// standingAliases are the aliases that the policy wants and the ports showed to
// have, by index from 1.
func (e *Engine) standingAliases() map[ib.PortGUID][]ib.PortGUID {
	out := map[ib.PortGUID][]ib.PortGUID{}
	if !e.known.Aliases {
		return out
	}
	for _, port := range e.ends {
		want := e.desired.Tables.Port(port).GUIDs
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
