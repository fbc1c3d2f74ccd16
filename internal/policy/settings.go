package policy

import (
	"slices"

	"github.com/ibwarden/ibwarden/internal/policy/settings"
)

// LinkLimit is the most that one link may be: both ends of the cable at a place
// get it.
type LinkLimit struct {
	At    Place
	Width settings.Width
	Speed settings.Speed
	Pos   Pos
}

// LinksMax is the most links that a policy limits one by one.
const LinksMax = 1 << 16

// Asked are the settings that the policy asks for: those that it states, or the
// usual ones.
func (p *Policy) Asked() settings.Settings {
	if p.Settings == nil {
		return settings.Default()
	}
	return *p.Settings
}

// UsesLanes reports whether the policy puts traffic on a service level apart
// from 0, or asks for virtual lanes: else any mapping of levels to virtual lanes will do, and is
// left alone.
func (p *Policy) UsesLanes() bool {
	s := p.Asked()
	return s.UsesLanes() || slices.ContainsFunc(p.Partitions, func(x Partition) bool { return x.SL != 0 })
}
