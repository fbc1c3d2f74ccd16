package policy

import "github.com/ibwarden/ibwarden/internal/policy/settings"

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
