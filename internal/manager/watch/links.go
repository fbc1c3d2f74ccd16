// CompareLinks lists the links and devices that appeared or disappeared between two
// snapshots.

package watch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// LinkEnd is one end of a link: a port, by the name of its device.
type LinkEnd struct {
	Name string      `json:"name"`
	Node ib.NodeGUID `json:"node_guid"`
	Port ib.PortNum  `json:"port"`
}

// Link is a cable.
type Link struct {
	A LinkEnd `json:"a"`
	B LinkEnd `json:"b"`
}

// Device is a node.
type Device struct {
	Name string      `json:"name"`
	GUID ib.NodeGUID `json:"node_guid"`
}

// LinksDown is an event: links went down, and devices with them.
type LinksDown struct {
	Links []Link   `json:"links"`
	Gone  []Device `json:"gone"`
}

// LinksUp is an event: links came up, and devices with them.
type LinksUp struct {
	Links []Link   `json:"links"`
	New   []Device `json:"new"`
}

// LinksAgain is an event: links were looked at again, and lead where they led. Reason is
// that of the first.
type LinksAgain struct {
	Links  []Link `json:"links"`
	Reason string `json:"reason"`
}

// Add adds the link of a port, if it has one that is in a new snapshot too.
func (e *LinksAgain) Add(now *observed.Fabric, p *observed.Port, reason string) {
	if !leads(now, p) || slices.Contains(e.Links, LinkOf(p)) {
		return // or both its ends have moved
	}
	if e.Links = append(e.Links, LinkOf(p)); len(e.Links) == 1 {
		e.Reason = reason
	}
}

// portPlace is a port.
type portPlace struct {
	node ib.NodeGUID
	num  ib.PortNum
}

// CompareLinks says what is otherwise in a new snapshot than it was in an old one.
// There is nothing to tell where both lists of LinksDown, or of LinksUp, are empty.
func CompareLinks(old, now *observed.Fabric) (down LinksDown, up LinksUp) {
	was, is := cabled(old), cabled(now)
	for _, l := range old.Links() {
		if is[placeOf(l.A)] != placeOf(l.B) {
			down.Links = append(down.Links, LinkOf(l.A))
		}
	}
	for _, l := range now.Links() {
		if was[placeOf(l.A)] != placeOf(l.B) {
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

func placeOf(p *observed.Port) portPlace { return portPlace{p.Node.GUID(), p.Num} }

func cabled(f *observed.Fabric) map[portPlace]portPlace {
	out := make(map[portPlace]portPlace)
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil {
				out[placeOf(p)] = placeOf(p.Peer)
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
	return Link{linkEnd(p), linkEnd(q)}
}

// leads reports whether the link of a port of another snapshot is in this one too.
func leads(f *observed.Fabric, p *observed.Port) bool {
	n := f.Node(p.Node.GUID())
	if n == nil || p.Peer == nil {
		return false
	}
	same := n.Port(p.Num)
	return same != nil && same.Peer != nil && placeOf(same.Peer) == placeOf(p.Peer)
}

func linkEnd(p *observed.Port) LinkEnd { return LinkEnd{p.String(), p.Node.GUID(), p.Num} }

func (l Link) String() string { return l.A.Name + " - " + l.B.Name }

func (d Device) String() string { return fmt.Sprintf("%s (%s)", d.Name, d.GUID) }

// linksNamed is how many links, or devices, a sentence names.
const linksNamed = 4

// listed names some of what there is.
func listed[T fmt.Stringer](all []T) string {
	var out []string
	for i, x := range all {
		if i == linksNamed {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", len(all)-linksNamed)
		}
		out = append(out, x.String())
	}
	return strings.Join(out, ", ")
}

func counted(n int, thing, things string) string {
	if n == 1 {
		return thing
	}
	return fmt.Sprintf("%d %s", n, things)
}

func sayLinks(links []Link, way string, devices []Device, them string) string {
	var parts []string
	if len(links) > 0 {
		parts = append(parts, counted(len(links), "link", "links")+" "+way+": "+listed(links))
	}
	if len(devices) > 0 {
		parts = append(parts, them+": "+listed(devices))
	}
	return strings.Join(parts, "; ")
}

func (e LinksDown) String() string { return sayLinks(e.Links, "down", e.Gone, "gone") }
func (e LinksUp) String() string   { return sayLinks(e.Links, "up", e.New, "new") }

func (e LinksAgain) String() string {
	return counted(len(e.Links), "link", "links") + " looked at again: " + listed(e.Links) + "; " + e.Reason
}
