package snapshot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Read reads what Write wrote. A file that is cut short, was changed, or has
// another version is an error that names the line, and gives no snapshot.
func Read(r io.Reader) (*Snapshot, error) {
	in := reader{from: bufio.NewReaderSize(r, 1<<16)}
	s, err := in.snapshot()
	if err != nil {
		return nil, fmt.Errorf("snapshot, line %d: %w", in.number, err)
	}
	return s, nil
}

type reader struct {
	from   *bufio.Reader
	sum    chain
	number int // of the line, from 1
	fabric *observed.Fabric
	cables []cable
}

// cable is what one port says of its other end, and the line where it does.
type cable struct {
	line int
	port *observed.Port
	peer place
}

func (r *reader) snapshot() (*Snapshot, error) {
	body, err := r.line("the head of a snapshot")
	if err != nil {
		return nil, err
	}
	var version struct {
		Version *int `json:"ibwarden_snapshot"`
	}
	if err := json.Unmarshal(body, &version); err != nil || version.Version == nil {
		return nil, errors.New(`no "ibwarden_snapshot": this is no snapshot of ibwarden`)
	}
	if *version.Version != Version {
		return nil, fmt.Errorf("version %d, want %d", *version.Version, Version)
	}
	var h head
	if err := strict(body, &h); err != nil {
		return nil, err
	}
	if h.Nodes < 0 || h.Nodes > MaxNodes {
		return nil, fmt.Errorf("%d nodes, want 0 to %d", h.Nodes, MaxNodes)
	}
	r.fabric = observed.NewFabric()
	for i := range h.Nodes {
		if err := r.node(fmt.Sprintf("node %d of %d", i+1, h.Nodes)); err != nil {
			return nil, err
		}
	}
	if err := r.end(h.Nodes); err != nil {
		return nil, err
	}
	if err := r.connect(); err != nil {
		return nil, err
	}
	if h.Self != nil {
		if r.fabric.Self = r.port(*h.Self); r.fabric.Self == nil {
			r.number = 1
			return nil, fmt.Errorf("self is port %d of %s, which is not in the snapshot", h.Self.Port, ib.NodeGUID(h.Self.Node))
		}
	}
	return &Snapshot{ReadAt: h.ReadAt, Source: h.Source, Asked: h.Asked, Fabric: r.fabric, Faults: h.Faults, Concealed: h.Hidden}, nil
}

// line is the next line without its sum, which was checked.
func (r *reader) line(want string) ([]byte, error) {
	r.number++
	var text []byte
	for {
		part, err := r.from.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > MaxLine:
			return nil, fmt.Errorf("longer than %d bytes", MaxLine)
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(text) == 0:
			return nil, fmt.Errorf("the file ends here, want %s: it was cut short", want)
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("the file ends within the line, want %s: it was cut short", want)
		default:
			return nil, err
		}
		break
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	split := len(text) - sumTail
	if split < 1 || !bytes.HasPrefix(text[split:], []byte(sumField)) || !bytes.HasSuffix(text, []byte(`"}`)) {
		if r.number == 1 {
			return nil, errors.New(`want an object that ends with "sum": this is no snapshot of ibwarden`)
		}
		return nil, fmt.Errorf(`want %s, an object that ends with "sum" of %d digits: the file was changed`, want, 2*sumBytes)
	}
	said := string(text[split+len(sumField) : len(text)-len(`"}`)])
	body := append(text[:split:split], '}')
	if is := r.sum.add(body); is != said {
		return nil, fmt.Errorf("sum %s, but the line and those before it add up to %s: the file was changed", said, is)
	}
	return body, nil
}

// strict decodes one document that has no fields but those of v.
func strict(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func (r *reader) end(nodes int) error {
	body, err := r.line("the end")
	if err != nil {
		return err
	}
	var e endLine
	if err := strict(body, &e); err != nil {
		return fmt.Errorf("want the end after %d nodes: %w", nodes, err)
	}
	if e.End.Nodes != nodes {
		return fmt.Errorf("the end counts %d nodes, the head %d", e.End.Nodes, nodes)
	}
	if _, err := r.from.ReadByte(); err == nil {
		r.number++
		return errors.New("something follows the end, want nothing")
	}
	return nil
}

func (r *reader) node(want string) error {
	body, err := r.line(want)
	if err != nil {
		return err
	}
	var line nodeLine
	if err := strict(body, &line); err != nil {
		return fmt.Errorf("%s: %w", want, err)
	}
	if line.Node == nil {
		return fmt.Errorf("want %s", want)
	}
	var info smp.NodeInfo
	if err := info.UnmarshalBinary(padded(line.Node.Info)); err != nil {
		return fmt.Errorf("%s: %w", want, err)
	}
	switch {
	case info.NodeType < ib.NodeCA || info.NodeType > ib.NodeRouter:
		return fmt.Errorf("%s is a %s", info.NodeGUID, info.NodeType)
	case info.NumPorts == 0 || info.NumPorts == uint8(ib.PortNone):
		return fmt.Errorf("%s has %d ports, want 1 to 254", info.NodeGUID, info.NumPorts)
	case r.fabric.Node(info.NodeGUID) != nil:
		return fmt.Errorf("%s was there before", info.NodeGUID)
	}
	n := r.fabric.AddNode(info)
	n.Description, n.Contested = line.Node.Description, line.Node.Contested
	for _, p := range line.Node.Ports {
		if err := r.enterPort(n, p); err != nil {
			return fmt.Errorf("%s: %w", info.NodeGUID, err)
		}
	}
	for i, a := range line.Node.Answers {
		if err := absorb(n, a); err != nil {
			return fmt.Errorf("%s: answer %d: %w", info.NodeGUID, i+1, err)
		}
	}
	return nil
}

func (r *reader) enterPort(n *observed.Node, line port) error {
	p := n.Port(line.Port)
	if p == nil {
		return fmt.Errorf("port %d, the %s has %d", line.Port, n.Type(), n.Info.NumPorts)
	}
	p.GUID, p.Silent = ib.PortGUID(line.GUID), line.Silent
	if x := line.Stranger; x != nil {
		p.Stranger = &observed.Stranger{Why: errors.New(x.Why), Undeclared: x.Undeclared}
		if err := p.Stranger.Info.UnmarshalBinary(padded(x.Info)); err != nil {
			return fmt.Errorf("port %d: who is behind it: %w", line.Port, err)
		}
	}
	if line.Route != nil {
		var path mad.Path
		for _, num := range *line.Route {
			if num < 0 || num > int(ib.PortNone) || len(path) >= mad.MaxHops {
				return fmt.Errorf("port %d: route %v, want at most %d ports", line.Port, *line.Route, mad.MaxHops)
			}
			path = append(path, ib.PortNum(num))
		}
		reached := []*observed.Port{p}
		if n.Switch != nil {
			reached = reached[:0]
			for i := range n.Ports {
				reached = append(reached, &n.Ports[i])
			}
		}
		for _, q := range reached {
			q.Reached, q.Path = true, path
		}
	}
	var ok bool
	if p.Forgets, ok = observed.ParseElements(line.Forgets); !ok {
		return fmt.Errorf("port %d forgets %q, want names of PortInfo elements", line.Port, line.Forgets)
	}
	if line.Peer != nil {
		r.cables = append(r.cables, cable{r.number, p, *line.Peer})
	}
	return nil
}

// padded gives back the zeros that trimmed took.
func padded(raw []byte) []byte {
	if len(raw) >= mad.DataSize {
		return raw
	}
	return append(raw, make([]byte, mad.DataSize-len(raw))...)
}

// kept are the attributes that a snapshot may hold as answers, by name; the description
// of a node has a field of its own.
var kept = func() map[string]mad.AttributeID {
	out := make(map[string]mad.AttributeID)
	for _, d := range smp.Attributes() {
		if observed.Keeps(d.ID) && d.ID != smp.AttrNodeDescription {
			out[d.Name] = d.ID
		}
	}
	return out
}()

// absorb enters an answer as a sweep does.
func absorb(n *observed.Node, a answer) error {
	p := n.Port(a.Port)
	id, known := kept[a.Attribute]
	switch {
	case p == nil:
		return fmt.Errorf("of port %d, the %s has %d", a.Port, n.Type(), n.Info.NumPorts)
	case !known:
		return fmt.Errorf("attribute %q is none that a snapshot holds", a.Attribute)
	}
	data := padded(a.Data)
	for _, modifier := range a.Modifiers {
		if err := p.Absorb(id, modifier, data); err != nil {
			return fmt.Errorf("%s (modifier 0x%08x): %w", a.Attribute, modifier, err)
		}
		if a.Stale {
			p.MarkUnread(id, modifier)
		}
	}
	return nil
}

func (r *reader) port(at place) *observed.Port {
	if n := r.fabric.Node(ib.NodeGUID(at.Node)); n != nil {
		return n.Port(at.Port)
	}
	return nil
}

// connect lays the cables, each of which both its ends have named.
func (r *reader) connect() error {
	named := make(map[*observed.Port]*observed.Port, len(r.cables))
	for _, c := range r.cables {
		named[c.port] = r.port(c.peer)
	}
	for _, c := range r.cables {
		peer := named[c.port]
		if peer == nil || named[peer] != c.port {
			r.number = c.line
			return fmt.Errorf("%s says it is cabled to port %d of %s, which does not say so",
				c.port, c.peer.Port, ib.NodeGUID(c.peer.Node))
		}
		observed.Connect(c.port, peer)
	}
	return nil
}
