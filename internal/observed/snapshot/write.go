package snapshot

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Write writes s. The same snapshot gives the same octets.
func Write(w io.Writer, s *Snapshot) error {
	out := writer{to: bufio.NewWriter(w)}
	h := head{
		Version: Version, ReadAt: s.ReadAt, Source: s.Source,
		Asked: append([]string{}, s.Asked...), Nodes: len(s.Fabric.Nodes), Faults: append([]Fault{}, s.Faults...), Hidden: s.Concealed,
	}
	if s.Fabric.Self != nil {
		h.Self = placeOf(s.Fabric.Self)
	}
	if err := out.line(h); err != nil {
		return err
	}
	for _, n := range s.Fabric.Nodes {
		line, err := nodeOf(n)
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
		return fmt.Errorf("snapshot: a line of %d octets, at most %d", len(body)+sumTail, MaxLine)
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
			var octets [mad.DataSize]byte
			if err := x.Info.Encode(&octets); err != nil {
				return nil, fmt.Errorf("%s: the NodeInfo behind it: %w", p, err)
			}
			line.Stranger = &stranger{trimmed(octets[:]), x.Why.Error(), x.Undeclared}
		}
		if line.Stranger != nil || line.GUID != 0 || line.Route != nil || line.Peer != nil || line.Silent || len(line.Forgets) > 0 {
			out.Ports = append(out.Ports, line)
		}
	}
	out.Answers, err = answersOf(n)
	return out, err
}

// trimmed is the octets of an attribute without the zeros at their end; never nil.
func trimmed(octets []byte) []byte {
	return octets[:len(bytes.TrimRight(octets, "\x00"))]
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

func (a *answers) add(p *observed.Port, modifier uint32, v smp.Attribute, read bool) {
	k := key{asked: p.Num, attribute: v.ID(), read: read}
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
	a.list[i].Modifiers = append(a.list[i].Modifiers, modifier)
}

// answersOf takes apart again what Absorb put together. SwitchInfo comes
// first: it has the sizes of the tables.
func answersOf(n *observed.Node) ([]answer, error) {
	a := answers{list: []answer{}, known: make(map[key]int)}
	agents := n.Ports[1:]
	if n.Switch != nil {
		agents = n.Ports[:1]
	}
	if s := n.Switch; s != nil && (s.InfoRead || s.Info != (smp.SwitchInfo{})) {
		a.add(&agents[0], 0, &s.Info, s.InfoRead)
	}
	for i := range n.Ports {
		a.addPort(&n.Ports[i])
	}
	if n.Switch != nil {
		a.addForwarding(n)
	}
	return a.list, a.err
}

func (a *answers) addPort(p *observed.Port) {
	selector := uint32(0) // of the port itself on a CA or router
	if p.Node.Switch != nil {
		selector = uint32(p.Num)
	}
	if p.InfoRead || p.Info != (smp.PortInfo{}) {
		a.add(p, selector, &p.Info, p.InfoRead)
	}
	for block, read := range p.PKeysRead {
		var t smp.PKeyTable
		copy(t.Keys[:], p.PKeys[min(block*smp.PKeysPerBlock, len(p.PKeys)):])
		a.add(p, smp.PKeyModifier(ib.PortNum(selector), uint16(block)), &t, read)
	}
	for part, t := range p.VLArbitration {
		a.add(p, smp.VLArbModifier(smp.VLArbPart(part+1), ib.PortNum(selector)), &t, true)
	}
	for _, in := range slices.Sorted(maps.Keys(p.SLToVL)) {
		t := p.SLToVL[in]
		modifier := uint32(0)
		if p.Node.Switch != nil {
			modifier = smp.SLToVLModifier(in, p.Num)
		}
		a.add(p, modifier, &t, true)
	}
	if p.SMInfoRead || p.SMInfo != (smp.SMInfo{}) {
		a.add(p, 0, &p.SMInfo, p.SMInfoRead)
	}
	for _, block := range slices.Sorted(maps.Keys(p.GUIDInfo)) {
		t := p.GUIDInfo[block]
		a.add(p, block, &t, true)
	}
	for _, index := range slices.Sorted(maps.Keys(p.VendorDiag)) {
		t := p.VendorDiag[index]
		a.add(p, index, &t, true)
	}
}

func (a *answers) addForwarding(n *observed.Node) {
	s, management := n.Switch, &n.Ports[0]
	for block, read := range s.LFTRead {
		var t smp.LinearForwardingTable
		copy(t.Ports[:], s.LFT[block*smp.LIDsPerLinearBlock:])
		a.add(management, uint32(block), &t, read)
	}
	for block, read := range s.RFTRead {
		var t smp.RandomForwardingTable
		copy(t.Entries[:], s.RFT[block*smp.RandomEntriesPerBlock:])
		a.add(management, uint32(block), &t, read)
	}
	for _, modifier := range slices.Sorted(maps.Keys(s.MFT)) {
		t := s.MFT[modifier]
		a.add(management, modifier, &t, true)
	}
}
