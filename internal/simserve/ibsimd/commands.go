package ibsimd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

func (c *Console) dump(w *words) error {
	nodes := c.server.topology.Nodes
	if strings.TrimSpace(w.rest) != "" {
		n, _, err := w.where(c.server.topology)
		if err != nil {
			return err
		}
		nodes = []*topology.Node{n}
	}
	for _, n := range nodes {
		c.dumpNode(n)
	}
	return nil
}

func (c *Console) dumpNode(n *topology.Node) {
	f := c.server.fabric
	agent := f.Agent(n.GUID)
	fmt.Fprintf(&c.text, "%v %q %d ports, GUID %v, %q\n", n.Type, n.ID, n.NumPorts(), n.GUID, n.Description)
	if info := agent.SwitchInfo(); info != nil {
		for lid := ib.LIDUnicastMin; lid <= min(info.LinearFDBTop, ib.LIDUnicastMax); lid++ {
			if exit, ok := agent.UnicastExit(0, lid); ok {
				fmt.Fprintf(&c.text, "\tLID %v by port %d\n", lid, exit)
			}
		}
	}
	for i := range n.Ports {
		port := ib.PortNum(i)
		p := agent.Port(port)
		if p == nil {
			continue
		}
		fmt.Fprintf(&c.text, "\t[%d]", i)
		if g, at, ok := f.Peer(n.GUID, port); ok {
			fmt.Fprintf(&c.text, " %q[%d]", c.server.counters.Node(g).ID, at)
		}
		if n.IsEndPort(i) {
			fmt.Fprintf(&c.text, " LID %v LMC %d", p.LID, p.LMC)
		}
		fmt.Fprintf(&c.text, " %v %v %v/%v\n", p.LinkWidthActive, p.Speed().Gbps(), p.PortState, p.PortPhysicalState)
	}
}

// endPort takes the name of an end port, or its LID.
func (c *Console) endPort(w *words) (at end, lid ib.LID, err error) {
	s := c.server
	saved := *w
	if n, err := strconv.ParseUint(w.word(), 0, 16); err == nil {
		for _, node := range s.topology.Nodes {
			for p := range node.Ports {
				if node.IsEndPort(p) && s.fabric.Agent(node.GUID).HasLID(ib.PortNum(p), ib.LID(n)) {
					return end{node.GUID, ib.PortNum(p)}, ib.LID(n), nil
				}
			}
		}
		return end{}, 0, fmt.Errorf("no port has LID %d", n)
	}
	*w = saved
	n, port, err := w.where(s.topology)
	if err != nil {
		return end{}, 0, err
	}
	if n.Type == ib.NodeSwitch {
		port = 0
	} else if port < 1 {
		port = 1
	}
	return end{n.GUID, ib.PortNum(port)}, s.fabric.Agent(n.GUID).Port(ib.PortNum(port)).LID, nil
}

func (c *Console) route(w *words) error {
	from, _, err := c.endPort(w)
	if err != nil {
		return err
	}
	to, lid, err := c.endPort(w)
	if err != nil {
		return err
	}
	node := func(g ib.NodeGUID) string { return c.server.counters.Node(g).ID }
	fmt.Fprintf(&c.text, "from %q to LID %v\n", node(from.node), lid)
	reached, ok := c.server.walk(from, lid, func(e end) {
		peer, port, _ := c.server.fabric.Peer(e.node, e.port)
		fmt.Fprintf(&c.text, "\t%q[%d] to %q[%d]\n", node(e.node), e.port, node(peer), port)
	})
	if !ok || reached != to {
		fmt.Fprintf(&c.text, "\tand no further: %q is not reached\n", node(to.node))
	}
	return nil
}

func (c *Console) link(w *words) error {
	a, p, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	b, q, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	if p < 1 || q < 1 {
		return errors.New("both ends need a port from 1 up")
	}
	if err := c.server.fabric.Link(a.GUID, ib.PortNum(p), b.GUID, ib.PortNum(q)); err != nil {
		return err
	}
	delete(c.unlinked, end{a.GUID, ib.PortNum(p)})
	delete(c.unlinked, end{b.GUID, ib.PortNum(q)})
	return nil
}

func (c *Console) unlink(w *words) error {
	n, port, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	pulled := 0
	for _, e := range ports(n, port) {
		g, at, ok := c.server.fabric.Peer(e.node, e.port)
		if !ok {
			continue
		}
		if err := c.server.fabric.Unlink(e.node, e.port); err != nil {
			return err
		}
		peer := end{g, at}
		c.unlinked[e], c.unlinked[peer] = peer, e
		pulled++
	}
	if pulled == 0 {
		return errors.New("there is no cable")
	}
	return nil
}

func (c *Console) relink(w *words) error {
	n, port, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	laid := 0
	for _, e := range ports(n, port) {
		peer, ok := c.unlinked[e]
		if !ok || c.unlinked[peer] != e {
			continue // or the other end has another cable now
		}
		if err := c.server.fabric.Link(e.node, e.port, peer.node, peer.port); err != nil {
			return err
		}
		delete(c.unlinked, e)
		delete(c.unlinked, peer)
		laid++
	}
	if laid == 0 {
		return errors.New("no cable was pulled there")
	}
	return nil
}

func (c *Console) reboot(w *words) error {
	n, _, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	if err := c.server.fabric.Reboot(n.GUID); err != nil {
		return err
	}
	for _, p := range c.server.places {
		if p.node == n && p.manager() != nil {
			p.attachment.SetIsSM(true) // its manager is still there
		}
	}
	return nil
}

// loss makes ports lose packets that come in.
func (c *Console) loss(w *words) error {
	n, port, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	rule := lossRule{}
	if rule.percent, err = w.number("percent", 100); err != nil {
		return err
	}
	if strings.TrimSpace(w.rest) != "" {
		if rule.attribute, err = w.number("attribute", 0xFFFF); err != nil {
			return err
		}
	}
	rules := c.losses[n.GUID]
	if rules == nil {
		rules = make(map[ib.PortNum]lossRule)
		c.losses[n.GUID] = rules
	}
	for _, e := range ports(n, port) {
		rules[e.port] = rule
	}
	return c.server.fabric.ChangeFault(n.GUID, func(f *fabric.Fault) {
		f.Drop = func(_ time.Duration, in ib.PortNum, m *[mad.Size]byte) bool {
			return rules[in].loses((*madBytes)(m)) && c.random.Uint64N(100) < rules[in].percent
		}
	})
}

// loses reports whether a packet is one that the rule is about. A rule with an
// attribute is about requests at the end of their way, as far as that can be
// told: LID-routed ones anywhere.
func (r lossRule) loses(m *madBytes) bool {
	if r.attribute == 0 {
		return true
	}
	here := !m.isDirected() || m[mad.OffsetHopPointer] == m[mad.OffsetHopCount]
	return uint64(m.attribute()) == r.attribute && !m.method().IsResponse() && here
}

func (c *Console) performanceSet(w *words) error {
	n, port, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	name, text, ok := strings.Cut(strings.TrimSpace(w.rest), "=")
	attribute, counter, dotted := strings.Cut(name, ".")
	value, err := strconv.ParseUint(strings.TrimSpace(text), 0, 64)
	if !ok || !dotted || err != nil {
		return fmt.Errorf("%q: want a counter and a number", strings.TrimSpace(w.rest))
	}
	for _, e := range ports(n, port) {
		p := c.server.counters.Agent(e.node).Port(e.port)
		if p == nil {
			return fmt.Errorf("%q has no port %d", n.ID, e.port)
		}
		if err := p.Set(strings.TrimSpace(attribute), strings.TrimSpace(counter), value); err != nil {
			return err
		}
	}
	return nil
}

// baseLID gives an end port an address, the way a manager would.
func (c *Console) baseLID(w *words) error {
	n, port, err := w.where(c.server.topology)
	if err != nil {
		return err
	}
	lid, err := w.number("LID", uint64(ib.LIDUnicastMax))
	if err != nil {
		return err
	}
	lmc := uint64(0)
	if strings.TrimSpace(w.rest) != "" {
		if lmc, err = w.number("LMC", uint64(ib.LMCMax)); err != nil {
			return err
		}
	}
	agent := c.server.fabric.Agent(n.GUID)
	if port < 0 || !n.IsEndPort(port) {
		return errors.New("want an end port: [0] of a switch, [1] and up of another node")
	}
	number := ib.PortNum(port)
	info := *agent.Port(number)
	info.LID, info.LMC = ib.LID(lid), ib.LMC(lmc)
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
	set := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion, MKey: info.MKey,
		Method: mad.MethodSet, AttributeID: smp.AttrPortInfo, AttributeModifier: uint32(number),
	}
	if err := info.Encode(&set.Data); err != nil {
		return err
	}
	agent.Handle(c.server.fabric.Now(), sma.Ingress{Port: number}, &set)
	if is := agent.Port(number); is.LID != ib.LID(lid) || is.LMC != ib.LMC(lmc) && n.Type != ib.NodeSwitch {
		return fmt.Errorf("LID %d with LMC %d is none", lid, lmc)
	}
	return nil
}
