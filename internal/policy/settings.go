package policy

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// LinkLimit is the most that one link may be: both ends of the cable at a place
// get it.
type LinkLimit struct {
	At    Place
	Width Width
	Speed Speed
	Pos   Pos
}

// LinksMax is the most links that a policy limits one by one.
const LinksMax = 1 << 16

// Drained names a switch that is to be drained: At is its GUID or name, without a port.
type Drained struct {
	At  Place
	Pos Pos
}

// Asked are the settings that the policy asks for: those that it states, or the
// usual ones.
func (p *Policy) Asked() Settings {
	if p.Settings == nil {
		return DefaultSettings()
	}
	return *p.Settings
}

// MasterLID is the LID that the policy sets aside for whichever manager is master; 0 for none.
func (p *Policy) MasterLID() ib.LID {
	if p == nil || p.Settings == nil {
		return ib.LIDReserved
	}
	return p.Settings.MasterSMLID
}

// Levels are the service levels that the policy puts packets on, in rising order: 0, of
// whatever has none, those of partitions and their groups, and the level on which the
// manager is asked.
func (p *Policy) Levels() []ib.SL {
	levels := []ib.SL{0, p.Asked().MasterSMSL}
	for i := range p.Partitions {
		levels = append(levels, p.Partitions[i].SL)
		for _, x := range p.Partitions[i].ServiceLevels {
			levels = append(levels, x.SL)
		}
		for _, g := range p.Partitions[i].Multicast {
			levels = append(levels, g.SL)
		}
	}
	slices.Sort(levels)
	return slices.Compact(levels)
}

// GivesShare reports whether a level other than 0 has a share of links by name: it is for those
// to whom the provider gives it.
func (p *Policy) GivesShare(level ib.SL) bool {
	asked := p.Asked()
	return level != 0 && slices.ContainsFunc(asked.Levels, func(l Level) bool { return l.SL == level })
}

// UsesLanes reports whether the policy puts traffic on a service level apart
// from 0, or asks for virtual lanes: else any mapping of levels to virtual lanes will do, and is
// left alone.
func (p *Policy) UsesLanes() bool {
	s := p.Asked()
	return s.UsesLanes() || slices.ContainsFunc(p.Partitions, func(x Partition) bool {
		return x.SL != 0 || slices.ContainsFunc(x.ServiceLevels, func(l ServiceLevel) bool { return l.SL != 0 })
	})
}
