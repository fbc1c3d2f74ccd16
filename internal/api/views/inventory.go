// inventory*.go: shows the devices, end ports, cables and routes of a fabric to callers of the API, and finds
// the switch or the end port that a caller names.

package views

import (
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Link is a cable.
type Link struct {
	A     End    `json:"a"`
	B     End    `json:"b"`
	Width string `json:"width"`
	State string `json:"state"`
}

// End is an end of a cable.
type End struct {
	Node string `json:"node" doc:"node GUID"`
	Port int    `json:"port"`
	Name string `json:"name" doc:"what the node says of itself"`
}

// Route is an entry of a forwarding table.
type Route struct {
	Switch string `json:"switch" doc:"node GUID"`
	LID    int    `json:"lid"`
	Port   int    `json:"port" doc:"where packets to the LID leave"`
}

func endOf(p *observed.Port) End {
	return End{p.Node.GUID().String(), int(p.Num), p.Node.Name()}
}

// LinkOf is a cable for the API.
func LinkOf(l observed.Link) Link {
	return Link{endOf(l.A), endOf(l.B), l.A.Info.LinkWidthActive.String(), l.A.Info.PortState.String()}
}

// LinkKey orders cables.
func LinkKey(l observed.Link) string { return fmt.Sprintf("%v/%03d", l.A.Node.GUID(), l.A.Num) }

// RouteKey orders routes.
func RouteKey(r Route) string { return fmt.Sprintf("%s/%05d", r.Switch, r.LID) }

// Routes are the routes of one switch, or of all for 0, to one LID or to all.
func Routes(f *observed.Fabric, only ib.NodeGUID, to ib.LID) (out []Route) {
	for _, n := range f.Switches() {
		if only != 0 && n.GUID() != only {
			continue
		}
		add := func(lid ib.LID, port ib.PortNum) {
			if to == 0 || lid == to {
				out = append(out, Route{n.GUID().String(), int(lid), int(port)})
			}
		}
		for lid, port := range n.Switch.LFT {
			if lid > 0 && lid <= int(n.Switch.Info.LinearFDBTop) && port != ib.PortNone {
				add(ib.LID(lid), port)
			}
		}
		for _, e := range n.Switch.RFT {
			if e.Valid {
				add(e.LID, e.Port)
			}
		}
	}
	return out
}

// RoutesOver counts the entries of forwarding tables by which other switches send packets over
// a switch that are neither for it nor for an end port at it.
func RoutesOver(f *observed.Fabric, guid ib.NodeGUID) (count int) {
	own := make(map[ib.LID]bool)
	takes := func(p *observed.Port) {
		for i := range p.Info.LMC.Count() {
			own[p.Info.LID+ib.LID(i)] = true
		}
	}
	toward := make(map[ib.NodeGUID]map[int]bool) // ports that lead to the switch
	for _, n := range f.Switches() {
		if n.GUID() != guid {
			continue
		}
		for i := range n.Ports {
			switch p := &n.Ports[i]; {
			case i == 0:
				takes(p)
			case p.Peer == nil:
			case p.Peer.Node.Switch == nil:
				takes(p.Peer)
			default:
				other := p.Peer.Node.GUID()
				if toward[other] == nil {
					toward[other] = make(map[int]bool)
				}
				toward[other][int(p.Peer.Num)] = true
			}
		}
	}
	for other, ports := range toward {
		for _, r := range Routes(f, other, 0) {
			if ports[r.Port] && !own[ib.LID(r.LID)] {
				count++
			}
		}
	}
	return count
}

// FindSwitch is the switch with a node GUID or a name. The error says why there is none; several
// says that more than one has the name.
func FindSwitch(f *observed.Fabric, name string) (n *observed.Node, several bool, err error) {
	var descriptions []string
	switches := f.Switches()
	for _, n := range switches {
		if n.GUID().String() == name {
			return n, false, nil
		}
		descriptions = append(descriptions, n.Description)
	}
	switch found := names.One(name, descriptions); len(found) {
	case 1:
		return switches[found[0]], false, nil
	case 0:
		return nil, false, errors.New("no switch " + names.Printable(name) + names.DidYouMean(name, descriptions))
	default:
		return nil, true, errors.New("several switches are called " + names.Printable(name) + ": name one by its node GUID")
	}
}
