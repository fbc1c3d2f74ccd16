package fabric_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// patience is how long, in virtual time, a client waits for an answer.
const patience = 10 * time.Millisecond

// chain is a fabric of two hosts with n switches in a row between them: the
// hosts at port 1 of either end, port 2 of each switch to port 1 of the next.
func chain(t testing.TB, n int) *topology.Netlist {
	t.Helper()
	host := func(id string, guid ib.NodeGUID) *topology.Node { return topology.NewNode(ib.NodeCA, id, guid, 2) }
	nodes := []*topology.Node{host("first", hostGUID(1))}
	for i := range n {
		nodes = append(nodes, topology.NewNode(ib.NodeSwitch, fmt.Sprintf("s%d", i+1), switchGUID(i+1), 4))
	}
	nodes = append(nodes, host("last", hostGUID(2)))
	for i := range len(nodes) - 1 {
		out := ib.PortNum(2)
		if i == 0 {
			out = 1
		}
		if err := topology.Connect(nodes[i], out, nodes[i+1], 1); err != nil {
			t.Fatal(err)
		}
	}
	return &topology.Netlist{Nodes: nodes}
}

func hostGUID(i int) ib.NodeGUID   { return ib.NodeGUID(0x10_0000 + 16*i) }
func switchGUID(i int) ib.NodeGUID { return ib.NodeGUID(0x20_0000 + i) }

// along is the directed route from the first host of a chain to the node at
// distance n.
func along(n int) mad.Path {
	path := make(mad.Path, n)
	for i := range path {
		path[i] = 2
	}
	if n > 0 {
		path[0] = 1
	}
	return path
}

func newFabric(t testing.TB, l *topology.Netlist, c fabric.Config) *fabric.Fabric {
	t.Helper()
	f, err := fabric.New(l, c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// client is a manager that asks one question at a time.
type client struct {
	t  testing.TB
	f  *fabric.Fabric
	a  *fabric.Attachment
	id uint64
}

func attach(t testing.TB, f *fabric.Fabric, g ib.NodeGUID, num ib.PortNum) *client {
	t.Helper()
	a, err := f.Attach(g, num)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, f: f, a: a}
}

// directed is a request along a path.
func directed(path mad.Path, m mad.Method, attribute mad.AttributeID, modifier uint32) mad.SMP {
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion, Method: m,
		AttributeID: attribute, AttributeModifier: modifier,
		DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive, HopCount: uint8(len(path)),
	}
	for i, n := range path {
		if i+1 < mad.PathSize {
			p.InitialPath[i+1] = byte(n)
		}
	}
	return p
}

// byLID is a LID-routed request.
func byLID(m mad.Method, attribute mad.AttributeID, modifier uint32) mad.SMP {
	return mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion, Method: m,
		AttributeID: attribute, AttributeModifier: modifier,
	}
}

func (c *client) send(p mad.SMP, dlid ib.LID) {
	c.t.Helper()
	var m [mad.Size]byte
	if err := p.Encode(&m); err != nil {
		c.t.Fatal(err)
	}
	c.a.Send(&m, dlid)
}

// ask sends p and waits for its answer.
func (c *client) ask(p mad.SMP, dlid ib.LID) (answer mad.SMP, slid ib.LID, ok bool) {
	c.t.Helper()
	c.id++
	p.TransactionID = c.id
	c.send(p, dlid)
	until := c.f.Now() + patience
	for {
		var d fabric.Delivery
		for c.a.Receive(&d) {
			if err := answer.UnmarshalBinary(d.MAD[:]); err != nil {
				c.t.Fatal(err)
			}
			if answer.TransactionID == c.id && answer.Method.IsResponse() {
				return answer, d.SLID, true
			}
		}
		if next, ok := c.f.NextEvent(); !ok || next > until {
			c.f.AdvanceTo(until)
			return mad.SMP{}, 0, false
		}
		c.f.Step()
	}
}

// get asks for an attribute by directed route and decodes the answer.
func (c *client) get(path mad.Path, modifier uint32, into smp.Attribute) {
	c.t.Helper()
	c.must(directed(path, mad.MethodGet, into.ID(), modifier), ib.LIDPermissive, into)
}

// set writes an attribute by directed route and decodes the answer into it.
func (c *client) set(path mad.Path, modifier uint32, from smp.Attribute) {
	c.t.Helper()
	p := directed(path, mad.MethodSet, from.ID(), modifier)
	if err := from.Encode(&p.Data); err != nil {
		c.t.Fatal(err)
	}
	c.must(p, ib.LIDPermissive, from)
}

func (c *client) must(p mad.SMP, dlid ib.LID, into smp.Attribute) {
	c.t.Helper()
	answer, _, ok := c.ask(p, dlid)
	if !ok {
		c.t.Fatalf("%s(%s) got no answer; discarded: %s", p.Method, smp.AttributeName(p.AttributeID), discards(c.f))
	}
	if answer.Status != mad.StatusOK {
		c.t.Fatalf("%s(%s) got status %s", p.Method, smp.AttributeName(p.AttributeID), answer.Status)
	}
	if err := into.UnmarshalBinary(answer.Data[:]); err != nil {
		c.t.Fatal(err)
	}
}

// address gives an end port a LID, and the manager's.
func (c *client) address(path mad.Path, lid, manager ib.LID, lmc ib.LMC) {
	c.t.Helper()
	var info smp.PortInfo
	c.get(path, 0, &info)
	info.LID, info.LMC, info.MasterSMLID = lid, lmc, manager
	info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
	c.set(path, 0, &info)
}

// route fills the first block of a linear forwarding table.
func (c *client) route(path mad.Path, exits map[ib.LID]ib.PortNum) {
	c.t.Helper()
	var table smp.LinearForwardingTable
	for i := range table.Ports {
		table.Ports[i] = ib.PortNone
	}
	for lid, exit := range exits {
		table.Ports[lid] = exit
	}
	c.set(path, 0, &table)
	var info smp.SwitchInfo
	c.get(path, 0, &info)
	info.LinearFDBTop = ib.LID(len(table.Ports) - 1)
	c.set(path, 0, &info)
}

// discards lists the reasons for which packets were discarded.
func discards(f *fabric.Fabric) string {
	text := ""
	for why, n := range f.Counts().Discarded {
		if n != 0 {
			text += fmt.Sprintf("%d %v; ", n, fabric.Reason(why))
		}
	}
	return text
}

// wantDiscard checks that one more packet was discarded since the call before,
// and for which reason.
func wantDiscard(t *testing.T, f *fabric.Fabric, before fabric.Counts, why fabric.Reason) {
	t.Helper()
	want := before.Discarded
	want[why]++
	if got := f.Counts().Discarded; got != want {
		t.Errorf("discarded: %s, want one more for %q than %v", discards(f), why, before.Discarded)
	}
}
