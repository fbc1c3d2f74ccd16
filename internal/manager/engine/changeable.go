package engine

import "github.com/ibwarden/ibwarden/internal/judge/isolation"

// grounds are the places where a host could change what was proved, as long as
// the subnet reads as it did when they were worked out.
type grounds struct {
	known bool
	epoch uint64
	found []isolation.Finding
}

// changeable lists the places where a host could change what is proved.
func (e *Engine) changeable() []isolation.Finding {
	if g := &e.grounds; !g.known || g.epoch != e.epoch || e.standing == nil {
		*g = grounds{true, e.epoch, isolation.Changeable(e.fabric, e.cabling.list.Declares())}
	}
	return e.grounds.found
}
