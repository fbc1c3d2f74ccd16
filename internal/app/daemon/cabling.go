package daemon

import (
	"context"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Cabling implements views.MapSource.
func (s *Served) Cabling(context.Context) (*views.Cabling, error) {
	j, err := s.judged()
	if err != nil {
		return nil, err
	}
	out := &views.Cabling{List: s.listed(j.cables)}
	for _, x := range j.result.Fences {
		out.Fences = append(out.Fences, views.Fence{At: x.At, Reason: x.Reason})
	}
	if j.cables != nil {
		out.Differences = func(f *observed.Fabric) []views.Difference { return differences(j.cables, f) }
	}
	return out, nil
}

// drawn is the last list of cables as the API has it, and the list itself.
type drawn struct {
	list *views.MapList
	of   *cables.List
}

// listed is a list of cables as the API has it, made once.
func (s *Served) listed(l *cables.List) *views.MapList {
	if l == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn.of == l {
		return s.drawn.list
	}
	out := &views.MapList{}
	for _, d := range l.Devices() {
		out.Devices = append(out.Devices, views.MapDevice{GUID: d.GUID, Type: d.Type, Name: d.Description})
	}
	for _, c := range l.All() {
		out.Cables = append(out.Cables, views.Cable{A: c.From, B: c.To})
	}
	s.drawn = drawn{out, l}
	return out
}

// differences are where a fabric is not as a list says.
func differences(l *cables.List, f *observed.Fabric) []views.Difference {
	out := []views.Difference{}
	for _, d := range l.Diff(f) {
		name := d.At.Node.String()
		if x, is := l.Device(d.At.Node); is {
			name = x.Name()
		} else if n := f.Node(d.At.Node); n != nil {
			name = n.Name()
		}
		out = append(out, views.Difference{Node: d.At.Node.String(), Name: name, Port: int(d.At.Port), Kind: string(d.Kind), Text: d.What, Ports: listedPorts(l, d.At)})
	}
	return out
}

// listedPorts are the end ports that a list has at a place, or at the other end of its cable.
func listedPorts(l *cables.List, at observed.Place) (out []string) {
	places := []observed.Place{at}
	if d, is := l.Device(at.Node); is && at.Port == 0 && d.Type != ib.NodeSwitch {
		for n := range d.Ports {
			places = append(places, observed.Place{Node: at.Node, Port: ib.PortNum(n + 1)})
		}
	} else if peer, is := l.Peer(at); is {
		places = append(places, peer)
	}
	for _, p := range places {
		if g := l.PortGUID(p); g != 0 {
			out = append(out, g.String())
		}
	}
	return out
}
