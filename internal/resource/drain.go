package resource

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Drain is a switch that is to carry no packets from one switch to another.
type Drain struct {
	Switch ib.NodeGUID `json:"switch"`
	// Name is what the switch called itself when it was drained.
	Name string `json:"name,omitempty"`
}

// Key implements Object.
func (x *Drain) Key() string { return DrainKey(x.Switch) }

// DrainKey is the key of the drain of a switch.
func DrainKey(g ib.NodeGUID) string { return key(KindDrain, g.String()) }

// Drains are the drained switches, by GUID.
func (s *State) Drains() []*Drain {
	return slices.SortedFunc(maps.Values(s.drains), func(a, b *Drain) int { return cmp.Compare(a.Switch, b.Switch) })
}

// drained are those of the policy file and of the state.
func (s *State) drained() []policy.Drained {
	out := slices.Clone(s.written.policy.Drained)
	for _, x := range s.Drains() {
		out = append(out, policy.Drained{At: policy.Place{Switch: x.Switch}})
	}
	return out
}

// DrainSwitch drains a switch.
type DrainSwitch struct {
	Drain
}

func (DrainSwitch) Action() string { return "drain switch" }

func (c DrainSwitch) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	switch {
	case c.Switch == 0:
		return refuse(Invalid, "switch", "want the node GUID of a switch")
	case d.drains[c.Switch] == nil && len(d.drains) >= DrainsMax:
		return refuse(OverQuota, "", "%d switches are drained: want at most %d", len(d.drains), DrainsMax)
	}
	drain := c.Drain
	d.put(&drain)
	d.say(drain.Key(), "switch %s is to be drained: with 0 routes in `ibwarden drain list` it may be taken out of service", drain.title())
	return nil
}

// UndrainSwitch ends that.
type UndrainSwitch struct {
	Switch ib.NodeGUID `json:"switch"`
}

func (UndrainSwitch) Action() string { return "undrain switch" }

func (c UndrainSwitch) plan(d *draft) error {
	if err := d.provider(); err != nil {
		return err
	}
	x := d.drains[c.Switch]
	if x == nil {
		return refuse(NotFound, "switch", "switch %v is not drained", c.Switch)
	}
	d.remove(x.Key())
	d.say(x.Key(), "switch %s carries packets again", x.title())
	return nil
}

// title is the switch by name and GUID.
func (x *Drain) title() string {
	if x.Name == "" {
		return x.Switch.String()
	}
	return x.Name + " (" + x.Switch.String() + ")"
}
