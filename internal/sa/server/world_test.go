package server

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// world is a subnet made by hand: leaf switches with hosts, each cabled to
// every spine.
type world struct {
	fabric *observed.Fabric
	hosts  []*observed.Port // by LID
	parts  []observed.Partition
}

// linkUp is PortInfo of a port with a fast link.
var linkUp = smp.PortInfo{
	NeighborMTU: ib.MTU4096, MTUCap: ib.MTU4096,
	LinkWidthActive: smp.LinkWidth4X, LinkSpeedActive: smp.LinkSpeedQDR, LinkSpeedExtActive: smp.LinkSpeedEDR,
	GIDPrefix: ib.DefaultGIDPrefix, GUIDCap: 8, MKey: 0x1234_5678_9ABC_DEF0, VLCap: 4, OperationalVLs: 4,
}

// build makes a world without partitions: every table is empty.
func build(leaves, spines, perLeaf int) *world {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.NodeInfo.SystemImageGUID = 64, 1
	b.SwitchInfo.PartitionEnforcementCap, b.SwitchInfo.MulticastFDBCap = 64, 1024
	b.PortInfo = linkUp
	var tops []*observed.Node
	for i := range spines {
		tops = append(tops, b.Switch(leaves, fmt.Sprintf("spine%d", i)))
	}
	for i := range leaves {
		leaf := b.Switch(perLeaf+spines, fmt.Sprintf("leaf%d", i))
		for j := range perLeaf {
			b.Host(leaf, fmt.Sprintf("host%d", i*perLeaf+j))
		}
		for _, top := range tops {
			subnettest.Join(leaf, top)
		}
	}
	b.Route()
	w := &world{fabric: b.Fabric, hosts: b.Fabric.EndPorts()}
	w.fabric.Self = w.hosts[len(w.hosts)-1]
	for _, n := range w.fabric.Nodes {
		for i := range n.Ports {
			n.Ports[i].SLToVL = map[ib.PortNum]smp.SLToVLMappingTable{0: {}}
			n.Ports[i].VLArbitration = make([]smp.VLArbitrationTable, 2)
		}
	}
	return w
}

// give makes a port a member in policy and table alike.
func (w *world) give(p *observed.Port, base ib.PKeyBase, full bool) {
	i := slices.IndexFunc(w.parts, func(x observed.Partition) bool { return x.Base == base })
	if i < 0 {
		i = len(w.parts)
		w.parts = append(w.parts, observed.Partition{Base: base, Name: base.String()})
	}
	key := base.Limited()
	if full {
		key = base.Full()
		w.parts[i].Full = append(w.parts[i].Full, p.GUID)
	} else {
		w.parts[i].Limited = append(w.parts[i].Limited, p.GUID)
	}
	p.PKeys[slices.Index(p.PKeys, 0)] = key
}

// tenants makes everybody a limited member of the default partition, the
// manager's port a full one, and puts the hosts into partitions by turns.
func (w *world) tenants(n int) {
	hosts := 0
	for _, p := range w.hosts {
		w.give(p, ib.PKeyBaseDefault, p == w.fabric.Self)
		if p.Node.Switch == nil {
			w.give(p, ib.PKeyBase(1+hosts%n), true)
			hosts++
		}
	}
}

func (w *world) snapshot() observed.Subnet {
	return observed.Subnet{
		Fabric: w.fabric, Partitions: w.parts, GIDPrefix: ib.DefaultGIDPrefix, Lifetime: 18,
		Manager: smp.SMInfo{GUID: w.fabric.Self.GUID, SMKey: 77, SMState: smp.SMMaster},
	}
}

// serve is a server for a world.
func (w *world) serve(t testing.TB, c Config) *Server {
	t.Helper()
	s := New(c)
	if errs := s.SetSubnet(0, w.snapshot()); len(errs) > 0 {
		t.Fatal(errs)
	}
	return s
}

// ask makes a request.
func ask(method mad.Method, id mad.AttributeID, mask sa.ComponentMask, r sa.Record, key ib.SMKey) *[mad.Size]byte {
	m := sa.MAD{
		Header: mad.Header{
			BaseVersion: 1, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion, Method: method,
			TransactionID: nextTID(), AttributeID: id,
		},
		SMKey: key, ComponentMask: mask,
	}
	if r != nil {
		b, err := r.AppendBinary(nil)
		if err != nil {
			panic(err)
		}
		copy(m.Data[:], b)
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	return (*[mad.Size]byte)(b)
}

var tid uint64

func nextTID() uint64 {
	tid++
	return tid
}

// reply is a whole answer.
type reply struct {
	sa.MAD
	records [][]byte
}

// nextNow is Next of a server that is called as often as it wants to be at one moment: a
// request that takes many turns is not done in one call.
func nextNow(s *Server, m *[mad.Size]byte) (to mad.Address, ok bool) {
	const most = 10_000
	for range most {
		to, ok = s.Next(0, m)
		if due, some := s.Deadline(); ok || !some || due > 0 {
			break
		}
	}
	return to, ok
}

// exchange sends a request and joins what comes back.
func exchange(t testing.TB, s *Server, from ib.LID, m *[mad.Size]byte) *reply {
	t.Helper()
	address := mad.Address{LID: from, QP: 1}
	s.Receive(0, m, address)
	var out reply
	var body []byte
	var in [mad.Size]byte
	for got := false; ; got = true {
		to, ok := nextNow(s, &in)
		for ok && mad.Method(in[3]) == mad.MethodReport { // of what the request did, to subscribers
			in[3] = byte(mad.MethodReportResp)
			s.Receive(0, &in, to)
			to, ok = nextNow(s, &in)
		}
		if !ok {
			if !got {
				t.Fatalf("no answer to %s of attribute %#x", mad.Method(m[3]), m[16:18])
			}
			break
		}
		if to != address {
			t.Fatalf("an answer to %+v, want %+v", to, address)
		}
		var part sa.MAD
		if err := part.UnmarshalBinary(in[:]); err != nil {
			t.Fatal(err)
		}
		if part.RMPP.Type == mad.RMPPAck {
			continue
		}
		out.MAD = part
		if part.RMPP.Type != mad.RMPPData {
			continue
		}
		n := sa.DataSize
		if part.RMPP.Flags.Has(mad.RMPPLast) {
			n = int(part.RMPP.Data2) - 20
		}
		body = append(body, part.Data[:n]...)
		ack := in
		ack[3] ^= 0x80
		ack[25], ack[26], ack[27] = byte(mad.RMPPAck), 0x1F<<3|1, 0
		copy(ack[28:36], []byte{in[28], in[29], in[30], in[31], in[28], in[29] + 1, in[30], in[31]})
		s.Receive(0, &ack, address)
	}
	if pitch := int(out.AttributeOffset) * 8; pitch > 0 {
		if len(body)%pitch != 0 {
			t.Fatalf("%d bytes of records of %d", len(body), pitch)
		}
		for at := 0; at < len(body); at += pitch {
			out.records = append(out.records, body[at:at+pitch])
		}
	} else if len(body) > 0 {
		t.Fatalf("%d bytes without a pitch", len(body))
	}
	return &out
}
