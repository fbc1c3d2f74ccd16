// Package links lists the links and devices that appeared or disappeared between two
// snapshots.
package links

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// End is one end of a link: a port, by the name of its device.
type End struct {
	Name string      `json:"name"`
	Node ib.NodeGUID `json:"node_guid"`
	Port ib.PortNum  `json:"port"`
}

// Link is a cable.
type Link struct {
	A End `json:"a"`
	B End `json:"b"`
}

// Device is a node.
type Device struct {
	Name string      `json:"name"`
	GUID ib.NodeGUID `json:"node_guid"`
}

// Down is an event: links went down, and devices with them.
type Down struct {
	Links []Link   `json:"links"`
	Gone  []Device `json:"gone"`
}

// Up is an event: links came up, and devices with them.
type Up struct {
	Links []Link   `json:"links"`
	New   []Device `json:"new"`
}

// Again is an event: links were looked at again, and lead where they led. Reason is
// that of the first.
type Again struct {
	Links  []Link `json:"links"`
	Reason string `json:"reason"`
}

// Add adds the link of a port, if it has one that is in a new snapshot too.
func (e *Again) Add(now *observed.Fabric, p *observed.Port, reason string) {
	if !leads(now, p) || slices.Contains(e.Links, LinkOf(p)) {
		return // or both its ends have moved
	}
	if e.Links = append(e.Links, LinkOf(p)); len(e.Links) == 1 {
		e.Reason = reason
	}
}

// place is a port.
type place struct {
	node ib.NodeGUID
	num  ib.PortNum
}

// Compare says what is otherwise in a new snapshot than it was in an old one.
// There is nothing to tell where both lists of Down, or of Up, are empty.
func Compare(old, now *observed.Fabric) (down Down, up Up) {
	was, is := cabled(old), cabled(now)
	for _, l := range old.Links() {
		if is[at(l.A)] != at(l.B) {
			down.Links = append(down.Links, LinkOf(l.A))
		}
	}
	for _, l := range now.Links() {
		if was[at(l.A)] != at(l.B) {
			up.Links = append(up.Links, LinkOf(l.A))
		}
	}
	for _, n := range old.Nodes {
		if now.Node(n.GUID()) == nil {
			down.Gone = append(down.Gone, Device{n.Name(), n.GUID()})
		}
	}
	for _, n := range now.Nodes {
		if old.Node(n.GUID()) == nil {
			up.New = append(up.New, Device{n.Name(), n.GUID()})
		}
	}
	return down, up
}

func at(p *observed.Port) place { return place{p.Node.GUID(), p.Num} }

func cabled(f *observed.Fabric) map[place]place {
	out := make(map[place]place)
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil {
				out[at(p)] = at(p.Peer)
			}
		}
	}
	return out
}

// LinkOf is the link of a port that has one: its switch port first, or that of the
// switch with the lower GUID.
func LinkOf(p *observed.Port) Link {
	q := p.Peer
	ends, switches := p.Node.Switch == nil && q.Node.Switch != nil, p.Node.Switch != nil && q.Node.Switch != nil
	if ends || switches && q.Node.GUID() < p.Node.GUID() {
		p, q = q, p
	}
	return Link{end(p), end(q)}
}

// leads reports whether the link of a port of another snapshot is in this one too.
func leads(f *observed.Fabric, p *observed.Port) bool {
	n := f.Node(p.Node.GUID())
	if n == nil || p.Peer == nil {
		return false
	}
	same := n.Port(p.Num)
	return same != nil && same.Peer != nil && at(same.Peer) == at(p.Peer)
}

func end(p *observed.Port) End { return End{p.String(), p.Node.GUID(), p.Num} }

func (l Link) String() string { return l.A.Name + " - " + l.B.Name }

func (d Device) String() string { return fmt.Sprintf("%s (%s)", d.Name, d.GUID) }

// named is how many links, or devices, a sentence names.
const named = 4

// list names some of what there is.
func list[T fmt.Stringer](all []T) string {
	var out []string
	for i, x := range all {
		if i == named {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", len(all)-named)
		}
		out = append(out, x.String())
	}
	return strings.Join(out, ", ")
}

func count(n int, thing, things string) string {
	if n == 1 {
		return thing
	}
	return fmt.Sprintf("%d %s", n, things)
}

func say(links []Link, way string, devices []Device, them string) string {
	var parts []string
	if len(links) > 0 {
		parts = append(parts, count(len(links), "link", "links")+" "+way+": "+list(links))
	}
	if len(devices) > 0 {
		parts = append(parts, them+": "+list(devices))
	}
	return strings.Join(parts, "; ")
}

func (e Down) String() string { return say(e.Links, "down", e.Gone, "gone") }
func (e Up) String() string   { return say(e.Links, "up", e.New, "new") }

func (e Again) String() string {
	return count(len(e.Links), "link", "links") + " looked at again: " + list(e.Links) + "; " + e.Reason
}
