package policy

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
)

// enterPlace notes where the i-th port is cabled to.
func (x *index) enterPlace(i int32) {
	p := &x.ports[i]
	if p.Switch == 0 {
		return
	}
	at := Place{Switch: p.Switch, Port: p.SwitchPort}
	x.byPlace[at] = append(x.byPlace[at], i)
	for _, name := range []string{p.SwitchName, names.Short(p.SwitchName)} {
		if named := x.switches[name]; name != "" && !slices.Contains(named, p.Switch) {
			x.switches[name] = append(named, p.Switch)
		}
	}
}

// findPlace gives the end port that is cabled to a place. Where two are said to
// be, or two switches have the name, it cannot be told which is meant: then it
// is neither.
func (x *lookup) findPlace(s Selector) []int32 {
	at := s.At
	if at.Switch == 0 {
		named := x.switches[at.Name]
		if len(named) != 1 {
			return nil
		}
		at.Switch, at.Name = named[0], ""
	}
	found := x.byPlace[at]
	if len(found) != 1 {
		return nil
	}
	if s.GUID != 0 {
		if named := x.findPort(ib.PortGUID(s.GUID)); len(named) == 0 || named[0] != found[0] {
			return nil
		}
	}
	return found
}
