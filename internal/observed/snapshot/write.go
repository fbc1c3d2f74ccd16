package snapshot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Write writes s. The same snapshot gives the same bytes.
func Write(w io.Writer, s *Snapshot) error { return write(w, s, nil) }

// write writes s, with a's values where a is not nil.
func write(w io.Writer, s *Snapshot, a *anonymizer) error {
	out := writer{to: bufio.NewWriter(w)}
	h := head{
		Version: Version, ReadAt: s.ReadAt, Source: s.Source,
		Asked: append([]string{}, s.Asked...), Nodes: len(s.Fabric.Nodes), Faults: append([]Fault{}, s.Faults...), Hidden: s.Concealed,
	}
	if s.Fabric.Self != nil {
		h.Self = placeOf(s.Fabric.Self)
	}
	if a != nil {
		a.place(h.Self)
	}
	if err := out.line(h); err != nil {
		return err
	}
	for _, n := range s.Fabric.Nodes {
		line, err := nodeOf(n)
		if err == nil && a != nil {
			err = a.node(line)
		}
		if err != nil {
			return fmt.Errorf("snapshot of %s: %w", n.Name(), err)
		}
		if err := out.line(nodeLine{line}); err != nil {
			return err
		}
	}
	var e endLine
	e.End.Nodes = len(s.Fabric.Nodes)
	if err := out.line(e); err != nil {
		return err
	}
	return out.to.Flush()
}

type writer struct {
	to  *bufio.Writer
	sum chain
}

func (w *writer) line(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(body)+sumTail > MaxLine {
		return fmt.Errorf("snapshot: a line of %d bytes, at most %d", len(body)+sumTail, MaxLine)
	}
	sum := w.sum.add(body)
	_, err := fmt.Fprintf(w.to, "%s%s%s\"}\n", body[:len(body)-1], sumField, sum)
	return err
}

func placeOf(p *observed.Port) *place { return &place{guid(p.Node.GUID()), p.Num} }

func nodeOf(n *observed.Node) (*node, error) {
	var info [mad.DataSize]byte
	err := n.Info.Encode(&info)
	if err != nil {
		return nil, err
	}
	out := &node{Info: trimmed(info[:]), Description: n.Description, Contested: n.Contested, Ports: []port{}}
	for i := range n.Ports {
		p := &n.Ports[i]
		if n.Switch != nil && (p.Reached != n.Ports[0].Reached || !slices.Equal(p.Path, n.Ports[0].Path)) {
			return nil, fmt.Errorf("%s is reached otherwise than port 0 of its switch", p)
		}
		line := port{Port: p.Num, GUID: guid(p.GUID), Silent: p.Silent, Forgets: p.Forgets.Names()}
		if p.Reached && (n.Switch == nil || i == 0) {
			route := make([]int, len(p.Path))
			for hop, num := range p.Path {
				route[hop] = int(num)
			}
			line.Route = &route
		}
		if p.Peer != nil {
			line.Peer = placeOf(p.Peer)
		}
		if x := p.Stranger; x != nil {
			var raw [mad.DataSize]byte
			if err := x.Info.Encode(&raw); err != nil {
				return nil, fmt.Errorf("%s: the NodeInfo behind it: %w", p, err)
			}
			line.Stranger = &stranger{trimmed(raw[:]), x.Why.Error(), x.Undeclared}
		}
		if line.Stranger != nil || line.GUID != 0 || line.Route != nil || line.Peer != nil || line.Silent || len(line.Forgets) > 0 {
			out.Ports = append(out.Ports, line)
		}
	}
	out.Answers, err = answersOf(n)
	return out, err
}

// trimmed is the bytes of an attribute without the zeros at their end; never nil.
func trimmed(raw []byte) []byte {
	return raw[:len(bytes.TrimRight(raw, "\x00"))]
}

// answers collects what one node answered, equal answers once.
type answers struct {
	list  []answer
	known map[key]int
	err   error
}

// key is what makes two answers of a node equal.
type key struct {
	asked     ib.PortNum
	attribute mad.AttributeID
	read      bool
	data      [mad.DataSize]byte
}

func (a *answers) add(b observed.Block, v smp.Attribute, read bool) {
	p := b.Port
	k := key{asked: p.Num, attribute: b.Attribute, read: read}
	if err := v.Encode(&k.data); err != nil {
		if a.err == nil {
			a.err = fmt.Errorf("%s: %w", p, err)
		}
		return
	}
	if p.Node.Switch != nil {
		k.asked = 0
	}
	i, ok := a.known[k]
	if !ok {
		i = len(a.list)
		a.known[k] = i
		a.list = append(a.list, answer{
			Port: k.asked, Attribute: smp.AttributeName(k.attribute), Data: slices.Clone(trimmed(k.data[:])), Stale: !read,
		})
	}
	a.list[i].Modifiers = append(a.list[i].Modifiers, b.Modifier)
}

// answersOf takes apart again what Absorb put together.
func answersOf(n *observed.Node) ([]answer, error) {
	a := answers{list: []answer{}, known: make(map[key]int)}
	n.Answers(a.add)
	return a.list, a.err
}
