package policyfile

import (
	"bytes"
	"fmt"
	"math"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// aliases reads the further GUIDs of ports.
func (r *yamlReader) aliases(node ast.Node) {
	r.policy.Aliases = []policy.PortAliases{}
	ports, guids := map[ib.PortGUID]policy.Pos{}, map[ib.PortGUID]policy.Pos{}
	for _, entry := range r.List(node, "aliases") {
		if r.Full() {
			return
		}
		a := policy.PortAliases{Pos: YAMLPos(entry)}
		var list ast.Node
		faults := len(r.Faults)
		r.Fields(entry, "an entry of aliases", map[string]func(ast.Node){
			"port": func(v ast.Node) {
				a.Port, a.Pos = ib.PortGUID(r.Numeral(v, "a GUID", 1, math.MaxUint64)), YAMLPos(v)
			},
			"guids": func(v ast.Node) { list = v },
		})
		if (a.Port == 0 || list == nil) && len(r.Faults) == faults {
			r.Fault(YAMLPos(entry), "port and guids", "an incomplete entry of aliases")
		}
		if first, again := ports[a.Port]; again && a.Port != 0 {
			r.Fault(a.Pos, "each port once", "aliases of port %v again, as at %v", a.Port, first)
		}
		ports[a.Port] = a.Pos
		if list != nil {
			a.GUIDs = r.aliasList(list, guids)
		}
		r.policy.Aliases = append(r.policy.Aliases, a)
	}
	for _, a := range r.policy.Aliases {
		if at, both := guids[a.Port]; both {
			r.Fault(at, "a GUID that is no port's own", "alias GUID %v, which is the port at %v", a.Port, a.Pos)
		}
	}
}

// aliasList reads the aliases of one port; seen are those of all so far.
func (r *yamlReader) aliasList(node ast.Node, seen map[ib.PortGUID]policy.Pos) (out []ib.PortGUID) {
	for i, item := range r.List(node, "guids") {
		at := YAMLPos(item)
		if i == policy.AliasesMax {
			r.Fault(at, "fewer", "more than %d alias GUIDs of one port", policy.AliasesMax)
			return nil
		}
		if r.Full() {
			return nil
		}
		digits, ok := r.Scalar(item, "an alias GUID", policy.AliasRule)
		if !ok {
			continue
		}
		v, octal, ok := policy.ParseNumber(digits.S)
		guid := ib.PortGUID(v)
		if ok && !octal && guid == 0 {
			out = append(out, 0) // an entry that stays empty
			continue
		}
		bad := policy.BadAlias(guid)
		if !ok || octal {
			bad = fmt.Sprintf("%q", digits.S)
		}
		if bad != "" {
			r.Fault(at, policy.AliasRule+", or 0 for an entry that stays empty", "%s for an alias GUID", bad)
			continue
		}
		if first, again := seen[guid]; again {
			r.Fault(at, "each GUID once", "alias GUID %v again, as at %v", guid, first)
			continue
		}
		seen[guid] = at
		out = append(out, guid)
	}
	return out
}

func writeAliases(w *bytes.Buffer, list []policy.PortAliases) {
	switch {
	case list == nil:
		return
	case len(list) == 0:
		w.WriteString("aliases: []\n")
		return
	}
	w.WriteString("aliases:\n")
	for _, a := range list {
		fmt.Fprintf(w, "  - port: %v\n    guids: [", a.Port)
		for i, g := range a.GUIDs {
			if i > 0 {
				w.WriteString(", ")
			}
			if g == 0 {
				w.WriteString("0")
			} else {
				fmt.Fprintf(w, "%v", g)
			}
		}
		w.WriteString("]\n")
	}
}
