package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// AliasesMax is the most alias GUIDs of one port: PortInfo.GUIDCap counts up to
// 255 entries, and entry 0 is the port's own.
const AliasesMax = 254

// PortAliases gives a port further GUIDs.
type PortAliases struct {
	Port ib.PortGUID
	// GUIDs stand by their index in the port's table, from 1; zero leaves an
	// entry empty.
	GUIDs []ib.PortGUID
	Pos   Pos
}

// BadAlias tells what is wrong with an alias GUID, or nothing. Those that a
// subnet manager assigns are locally scoped: they cannot be what a maker burned
// into another device.
func BadAlias(guid ib.PortGUID) string {
	switch {
	case guid == 0:
		return "no GUID"
	case uint64(guid)&ib.GUIDLocalBit == 0:
		return fmt.Sprintf("%v, which is not locally scoped", guid)
	}
	return ""
}

// AliasRule is what BadAlias asks of an alias GUID, for messages.
const AliasRule = "a GUID with the local bit (0x0200000000000000) set"

// AliasesByPort are the aliases of ports by index from 1; nil when the policy
// does not speak of them.
func (p *Policy) AliasesByPort() map[ib.PortGUID][]ib.PortGUID {
	if p.Aliases == nil {
		return nil
	}
	out := make(map[ib.PortGUID][]ib.PortGUID, len(p.Aliases))
	for _, a := range p.Aliases {
		out[a.Port] = append(out[a.Port], a.GUIDs...)
	}
	return out
}

// owners maps every alias GUID to its port.
func (p *Policy) owners() (map[ib.PortGUID]ib.PortGUID, error) {
	out := map[ib.PortGUID]ib.PortGUID{}
	for _, a := range p.Aliases {
		for _, g := range a.GUIDs {
			if g == 0 {
				continue
			}
			if bad := BadAlias(g); bad != "" {
				return nil, fmt.Errorf("alias GUID of port %v: %s, want %s", a.Port, bad, AliasRule)
			}
			if first, again := out[g]; again {
				return nil, fmt.Errorf("alias GUID %v: of port %v and of port %v", g, first, a.Port)
			}
			out[g] = a.Port
		}
	}
	return out, nil
}

// resolveAliases finds out which aliases the end ports there are can be given.
// One that a port claims as its own GUID is given to nobody: two ports would
// have the same GID. A port GUID that two ports claim gets none.
func (p *Policy) resolveAliases(x *lookup) (out []PortAliases) {
	seen := map[ib.PortGUID]int{}
	for _, a := range p.Aliases {
		i, found := x.byGUID(a.Port)
		switch {
		case !found:
			x.note(Selector{Kind: SelectPort, GUID: uint64(a.Port)}, nil, a.Pos, false, "aliases")
			continue
		case x.doubled[a.Port]:
			x.warn(a.Pos, "aliases: two ports claim to be %v; neither gets an alias", a.Port)
			continue
		}
		at, again := seen[a.Port]
		if !again {
			at = len(out)
			seen[a.Port] = at
			out = append(out, PortAliases{Port: x.ports[i].PortGUID, Pos: a.Pos})
		}
		for _, g := range a.GUIDs {
			if _, taken := x.byGUID(g); taken && g != 0 {
				x.warn(a.Pos, "alias GUID %v of port %v is the GUID of a port: it is not given", g, a.Port)
				g = 0
			}
			out[at].GUIDs = append(out[at].GUIDs, g)
		}
	}
	slices.SortFunc(out, func(a, b PortAliases) int { return cmp.Compare(a.Port, b.Port) })
	return out
}

// byGUID is the place of the end port with this GUID of its own.
func (x *index) byGUID(guid ib.PortGUID) (int, bool) {
	return slices.BinarySearch(x.guids, guid)
}
