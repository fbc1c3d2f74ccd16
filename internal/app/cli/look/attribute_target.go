package look

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// AttributeTarget is what a person names: a device, or one port of it.
type AttributeTarget struct {
	Node *observed.Node
	// Port is the port that was named; nil where only the device was.
	Port *observed.Port
}

// String names the target for people.
func (t AttributeTarget) String() string {
	if t.Port != nil {
		return t.Port.String()
	}
	return t.Node.Name()
}

// Locate finds DEVICE[:PORT]: a description of a node, or its first word, or a node GUID, with the
// number of a port behind a colon; or the GUID or the LID of an end port.
func Locate(f *observed.Fabric, text string) (AttributeTarget, error) {
	if t, found, err := locate(f, text); found || err != nil {
		return t, err
	}
	colon := strings.LastIndexByte(text, ':')
	if colon > 0 {
		num, err := strconv.ParseUint(text[colon+1:], 10, 8)
		t, found, ambiguous := locate(f, text[:colon])
		switch {
		case ambiguous != nil:
			return t, ambiguous
		case found && err != nil:
			return t, fmt.Errorf("%q: want the number of a port behind the colon", text)
		case found:
			if t.Port = t.Node.Port(ib.PortNum(num)); t.Port == nil {
				return t, fmt.Errorf("%s has no port %d: want %d to %d", t.Node.Name(), num, lowest(t.Node), len(t.Node.Ports)-1)
			}
			return t, nil
		}
	}
	return AttributeTarget{}, fmt.Errorf("no device %q was found%s", text, suggestion(f, text, colon))
}

// suggestion proposes the name of a device, with the port that was named.
func suggestion(f *observed.Fabric, text string, colon int) string {
	all := make([]string, len(f.Nodes))
	for i, n := range f.Nodes {
		all[i] = n.Description
	}
	if colon > 0 {
		if nearest, ok := names.Nearest(text[:colon], all); ok {
			return names.Proposal(names.Short(nearest) + text[colon:])
		}
	}
	return names.DidYouMean(text, all)
}

func lowest(n *observed.Node) int {
	if n.Switch != nil {
		return 0
	}
	return 1
}

// locate finds a device or an end port without a number of a port.
func locate(f *observed.Fabric, text string) (t AttributeTarget, found bool, err error) {
	if guid, err := ib.ParsePortGUID(text); err == nil && strings.HasPrefix(text, "0x") {
		if n := f.Node(ib.NodeGUID(guid)); n != nil {
			return AttributeTarget{Node: n}, true, nil
		}
		for _, p := range f.EndPorts() {
			if p.GUID == guid {
				return AttributeTarget{p.Node, p}, true, nil
			}
		}
		return t, false, nil
	}
	if lid, err := ib.ParseLID(text); err == nil && lid.IsUnicast() {
		for _, p := range f.EndPorts() {
			if p.InfoRead && p.Info.LID == lid {
				return AttributeTarget{p.Node, p}, true, nil
			}
		}
	}
	all := make([]string, len(f.Nodes))
	for i, n := range f.Nodes {
		all[i] = n.Description
	}
	which := names.One(text, all)
	switch len(which) {
	case 0:
		return t, false, nil
	case 1:
		return AttributeTarget{Node: f.Nodes[which[0]]}, true, nil
	}
	may := make([]string, len(which))
	for i, w := range which {
		may[i] = fmt.Sprintf("%s (%s)", f.Nodes[w].Name(), f.Nodes[w].GUID())
	}
	slices.Sort(may)
	return t, false, fmt.Errorf("%q may be any of %s: want a node GUID", text, strings.Join(may, ", "))
}

// port is the port whose attribute is meant, and an error where the device does not have it.
func (t AttributeTarget) port(k AttributeKind) (*observed.Port, error) {
	if k.Layout.Of == smp.OfSwitch && k.Known && !k.Performance && t.Node.Switch == nil {
		return nil, fmt.Errorf("%s has no %s: it is a %s, and only switches have one", t, k.Name, t.Node.Type())
	}
	if t.Port != nil {
		p := t.Port
		if !k.Performance && k.Layout.Of == smp.OfEndPort && k.Known && !p.IsEnd() {
			return nil, fmt.Errorf("%s has no %s: it is an external port of a switch, and only end ports have one (port 0 of the switch has)", p, k.Name)
		}
		return p, nil
	}
	if t.Node.Switch != nil {
		if k.Performance && k.Name != "ClassPortInfo" {
			return nil, fmt.Errorf("%s is a switch, and counts for each port: want %s:PORT", t, names.Short(t.Node.Name()))
		}
		return &t.Node.Ports[0], nil
	}
	var some []*observed.Port
	for i := 1; i < len(t.Node.Ports); i++ {
		if t.Node.Ports[i].Reached {
			some = append(some, &t.Node.Ports[i])
		}
	}
	switch {
	case len(some) == 0:
		return nil, fmt.Errorf("no port of %s was reached", t)
	case len(some) > 1 && (k.Performance || k.Layout.Of != smp.OfNode):
		return nil, fmt.Errorf("%s has %d ports: want %s:PORT", t, len(t.Node.Ports)-1, names.Short(t.Node.Name()))
	}
	return some[0], nil
}
