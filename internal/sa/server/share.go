package server

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Asker is who asks: a port, and whether it is trusted with what is kept from
// others about the ports that it sees.
type Asker struct {
	Port    *Port
	Trusted bool
	// All reports whether it may see every port.
	All bool
}

// Key is the port's key of a partition; 0 when it has none.
func (p *Port) Key(base ib.PKeyBase) ib.PKey {
	// Most ports are in few partitions.
	for _, k := range p.Keys {
		if k.Base() == base {
			return k
		}
	}
	return ib.PKeyInvalid
}

// Common calls yield with the keys of a for which b has a key that matches, by
// partition, until it returns false. A port matches itself with its full keys
// only: it checks what it sends to itself as anything else that arrives.
func Common(a, b *Port, yield func(ib.PKey) bool) {
	for i, j := 0, 0; i < len(a.Keys) && j < len(b.Keys); {
		x, y := a.Keys[i], b.Keys[j]
		switch {
		case x.Base() < y.Base():
			i++
		case x.Base() > y.Base():
			j++
		default:
			if x.Matches(y) && !yield(x) {
				return
			}
			i, j = i+1, j+1
		}
	}
}

// share reports whether two ports have matching keys.
func share(a, b *Port) (yes bool) {
	Common(a, b, func(ib.PKey) bool {
		yes = true
		return false
	})
	return yes
}

// Sees reports whether an asker may learn of an end port.
func (a Asker) Sees(p *Port) bool { return p != nil && (a.All || a.Port == p || share(a.Port, p)) }

// Holds reports whether the asker is a member of a partition.
func (a Asker) Holds(base ib.PKeyBase) bool { return a.Port.Key(base).IsValid() }

// Knows reports whether an asker may learn of a partition's groups.
func (a Asker) Knows(base ib.PKeyBase) bool { return a.All || a.Holds(base) }

// SeesPort reports whether an asker may learn of any port: of an external port
// of a switch when it sees the switch and what is behind the cable.
func (v *View) SeesPort(a Asker, p *observed.Port) bool {
	if !a.Sees(v.EndOf(p)) {
		return false
	}
	return p.IsEnd() || p.Peer == nil || a.Sees(v.EndOf(p.Peer))
}

// MayUse reports whether an asker may be told of a path between two ports with this key
// of the first: an end of it may, and a holder of the key as well, so that nobody learns
// which partitions there are between others.
func (v *View) MayUse(a Asker, from, to *Port, key ib.PKey) bool {
	return a.Trusted || a.Port == from || a.Port == to || a.Holds(key.Base())
}

// Members are the ports of the view that hold a key of the partition, by LID.
func (v *View) Members(base ib.PKeyBase) []*Port {
	var out []*Port
	for _, p := range v.Ports {
		if slices.ContainsFunc(p.Keys, func(k ib.PKey) bool { return k.Base() == base }) {
			out = append(out, p)
		}
	}
	return out
}
