package facts

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// Judged are groups as a proof wants to know them.
func Judged(groups []*group.Group) []isolation.Group {
	out := make([]isolation.Group, 0, len(groups))
	for _, g := range groups {
		x := isolation.Group{MLID: g.MLID, Base: g.Partition, Receivers: make([]ib.PortGUID, 0, len(g.Members))}
		for _, m := range g.Members {
			if m.Receives() {
				x.Receivers = append(x.Receivers, m.Port)
			}
		}
		out = append(out, x)
	}
	return out
}
