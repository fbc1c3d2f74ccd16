package withkeys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// subnet is a fabric in which every end port has a key of its own and every cable leads where
// it led.
func subnet(seed uint64) (*subnettest.Builder, []*observed.Port) {
	b := subnettest.New()
	b.PortInfo.LMC = 1
	random := rand.New(rand.NewPCG(seed, 1))
	switches := make([]*observed.Node, 2+random.IntN(5))
	for i := range switches {
		switches[i] = b.Switch(40, fmt.Sprint("switch-", i))
	}
	b.RandomTree(random.IntN)
	var self *observed.Port
	for i, n := range switches {
		for range 1 + random.IntN(3) {
			self = b.Host(n, fmt.Sprint("host-", i))
		}
	}
	b.ManagedFrom(self)
	for i, p := range b.Fabric.EndPorts() {
		p.Key, p.Info.MKeyProtectBits, p.Info.MKeyLeasePeriod = ib.MKey(0xA000+i), 2, 7
	}
	for _, n := range b.Fabric.Nodes {
		for i := range n.Ports {
			n.Ports[i].Leads = n.Ports[i].Peer != nil
		}
	}
	return b, b.Fabric.EndPorts()
}

func directed(path mad.Path) *[mad.Size]byte {
	m := new([mad.Size]byte)
	m[mad.OffsetClass], m[mad.OffsetMethod], m[mad.OffsetHopCount] = byte(mad.ClassSubnDirected), byte(mad.MethodGet), byte(len(path))
	for i, p := range path {
		m[mad.OffsetInitialPath+1+i] = byte(p)
	}
	binary.BigEndian.PutUint16(m[mad.OffsetDrSLID:], uint16(ib.LIDPermissive))
	binary.BigEndian.PutUint16(m[mad.OffsetDrDLID:], uint16(ib.LIDPermissive))
	return m
}

func routed() *[mad.Size]byte {
	m := new([mad.Size]byte)
	m[mad.OffsetClass], m[mad.OffsetMethod] = byte(mad.ClassSubnLID), byte(mad.MethodGet)
	return m
}

func gateTo(f *observed.Fabric) *Gate {
	g := &Gate{Table: func() (*Table, error) { return Of(f), nil }, Say: func(string) {}, Now: func() time.Time { return time.Unix(1000, 0) }}
	if err := g.Refresh(); err != nil {
		panic(err)
	}
	return g
}

func keyIn(m *[mad.Size]byte) ib.MKey { return ib.MKey(binary.BigEndian.Uint64(m[mad.OffsetMKey:])) }

// Whatever way an SMP takes, it carries the key of the agent that it gets to, and no other.
func TestEachAgentGetsItsKey(t *testing.T) {
	for seed := range uint64(20) {
		b, ends := subnet(seed)
		g := gateTo(b.Fabric)
		send := func(what string, m *[mad.Size]byte, lid ib.LID, want ib.MKey) {
			t.Helper()
			if errno := g.Out(m[:], lid); errno != umad.OK || keyIn(m) != want {
				t.Errorf("seed %d, %s: %v, key %v, want %v", seed, what, errno, keyIn(m), want)
			}
		}
		for _, p := range ends {
			send("by directed route "+p.Path.String(), directed(p.Path), ib.LIDPermissive, p.Key)
			lids := ib.LID(1)
			if p.Node.Switch == nil {
				lids = 2
			}
			for i := range lids {
				send("by LID", routed(), p.Info.LID+i, p.Key)
			}
			for _, from := range portsOf(p) {
				if from.Peer == nil || p.Node.Switch == nil {
					continue
				}
				m := directed(mad.Path{from.Num})
				binary.BigEndian.PutUint16(m[mad.OffsetDrSLID:], 1)
				send("from a switch on", m, p.Info.LID, from.Peer.Agent().Key)
				binary.BigEndian.PutUint16(m[mad.OffsetDrDLID:], uint16(ends[0].Info.LID))
				if far := from.Peer.Agent(); far.Node.Switch != nil {
					send("from a switch on, and by LID", m, p.Info.LID, ends[0].Key)
				}
			}
		}
		send("to nobody's LID", routed(), 0xBFFF, 0)
		send("to the permissive LID", routed(), ib.LIDPermissive, 0)
		send("by a port that is not cabled", directed(mad.Path{99}), ib.LIDPermissive, 0)
		host := ends[slices.IndexFunc(ends, func(p *observed.Port) bool { return p.Node.Switch == nil && p != b.Fabric.Self })]
		send("through a host", directed(append(slices.Clone(host.Path), 1)), ib.LIDPermissive, 0)
		back := directed(host.Path)
		back[mad.OffsetStatus] = directionBit
		send("on its way back", back, ib.LIDPermissive, 0)
		midway := directed(host.Path)
		midway[mad.OffsetHopPointer] = 1
		send("in the middle of its way", midway, ib.LIDPermissive, 0)
		far := directed(host.Path)
		far[mad.OffsetHopCount] = mad.MaxHops + 1
		send("farther than there is a way", far, ib.LIDPermissive, 0)
		host.Via.Leads = false // something else may stand there
		if err := g.Refresh(); err != nil {
			t.Fatal(err)
		}
		send("over a cable that does not lead there any more", directed(host.Path), ib.LIDPermissive, 0)
	}
}

// A program's own key goes where none is known, and nowhere else.
func TestOwnKeyOfTheProgram(t *testing.T) {
	b, ends := subnet(3)
	ends[1].Key = 0
	g := gateTo(b.Fabric)
	for _, p := range ends {
		m, want := directed(p.Path), p.Key
		binary.BigEndian.PutUint64(m[mad.OffsetMKey:], 0x77)
		if want == 0 {
			want = 0x77
		}
		if errno := g.Out(m[:], ib.LIDPermissive); errno != umad.OK || keyIn(m) != want {
			t.Errorf("%s: %v, key %v, want %v", p, errno, keyIn(m), want)
		}
	}
	if g.Keys() != len(ends)-1 {
		t.Errorf("%d keys", g.Keys())
	}
}

// Of all methods of all classes these are let through, and no others.
func TestWhatMayBeSent(t *testing.T) {
	b, ends := subnet(1)
	lid := ends[0].Info.LID
	asks := []mad.Method{mad.MethodGet, mad.MethodGetTable, mad.MethodGetTraceTable, mad.MethodGetMulti}
	for _, write := range []bool{false, true} {
		g := gateTo(b.Fabric)
		g.Write = write
		var said []string
		g.Say = func(text string) { said = append(said, text) }
		for class := range 256 {
			for method := range 256 {
				c, x := mad.Class(class), mad.Method(method)
				m := directed(nil)
				m[mad.OffsetClass], m[mad.OffsetMethod] = byte(class), byte(method)
				binary.BigEndian.PutUint16(m[mad.OffsetAttributeID:], uint16(smp.AttrPKeyTable))
				want := false
				switch c {
				case mad.ClassSubnLID, mad.ClassSubnDirected, mad.ClassPerfMgt:
					want = x == mad.MethodGet || write && x == mad.MethodSet
				case mad.ClassSubnAdm:
					want = slices.Contains(asks, x) || x == mad.MethodReportResp
				default:
					want = slices.Contains(asks, x) || x >= 0x80 || write
				}
				if errno := g.Out(m[:], lid); errno != umad.OK && errno != umad.EPERM || (errno == umad.OK) != want {
					t.Errorf("method 0x%02x of class 0x%02x, --write %v: %v", method, class, write, errno)
				}
				if !want && keyIn(m) != 0 {
					t.Errorf("method 0x%02x of class 0x%02x has a key, and is refused", method, class)
				}
			}
		}
		if n := len(said); n == 0 || len(slices.Compact(slices.Sorted(slices.Values(said)))) != n {
			t.Errorf("%d lines say what is refused, some twice, or none", n)
		}
		for _, class := range []mad.Class{mad.ClassSubnLID, mad.ClassSubnDirected} {
			m := directed(nil)
			m[mad.OffsetClass], m[mad.OffsetMethod] = byte(class), byte(mad.MethodSet)
			binary.BigEndian.PutUint16(m[mad.OffsetAttributeID:], uint16(smp.AttrSMInfo))
			if errno := g.Out(m[:], lid); errno != umad.EPERM {
				t.Errorf("Set(SMInfo), --write %v: %v", write, errno)
			}
		}
		for n := range mad.Size {
			if errno := g.Out(directed(nil)[:n], ib.LIDPermissive); errno == umad.OK {
				t.Errorf("an SMP of %d bytes is sent", n)
			}
		}
	}
}

// No agent of a subnet manager, an administration or a device is registered.
func TestWhoMayAnswer(t *testing.T) {
	g := &Gate{Say: func(string) {}}
	for class := range 256 {
		for method := range mad.Method(0x80) {
			r := umad.Registration{Class: mad.Class(class), Methods: umad.MethodSet(method)}
			want := true
			switch r.Class {
			case mad.ClassSubnLID, mad.ClassSubnDirected, mad.ClassPerfMgt:
				want = false
			case mad.ClassSubnAdm:
				want = method == mad.MethodReport
			}
			if got := g.Register(&r) == umad.OK; got != want {
				t.Errorf("class 0x%02x, method 0x%02x: %v", class, uint8(method), got)
			}
		}
		if errno := g.Register(&umad.Registration{Class: mad.Class(class)}); errno != umad.OK {
			t.Errorf("class 0x%02x, answers alone: %v", class, errno)
		}
	}
}

// A Set of PortInfo leaves the M_Key, its level and its lease as they are, also of the other
// ports of an adapter; where they are not known it is refused.
func TestSetsKeepTheKey(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(8, "switch")
	self := b.Host(sw, "self")
	two := b.Node(ib.NodeCA, 2, "two")
	subnettest.Cable(&two.Ports[1], subnettest.Free(sw))
	subnettest.Cable(&two.Ports[2], subnettest.Free(sw))
	b.ManagedFrom(self)
	for i, p := range b.Fabric.EndPorts() {
		p.Key, p.Info.MKeyProtectBits, p.Info.MKeyLeasePeriod = ib.MKey(0xA000+i), uint8(1+i%3), uint16(10+i)
	}
	for i := range sw.Ports {
		sw.Ports[i].Leads = true
	}
	self.Leads = true
	g := gateTo(b.Fabric)
	g.Write = true
	for _, x := range []struct {
		to   *observed.Port
		num  ib.PortNum
		of   *observed.Port // nil: nothing of a key is there
		fail bool
	}{
		{to: self, of: self}, {to: self, num: 1, of: self}, {to: self, num: 2, fail: true},
		{to: &sw.Ports[0], of: &sw.Ports[0]}, {to: &sw.Ports[0], num: 3},
		{to: &two.Ports[1], of: &two.Ports[1]}, {to: &two.Ports[1], num: 2, of: &two.Ports[2]}, {to: &two.Ports[2], num: 1, of: &two.Ports[1]},
	} {
		m := directed(x.to.Path)
		m[mad.OffsetMethod] = byte(mad.MethodSet)
		binary.BigEndian.PutUint16(m[mad.OffsetAttributeID:], uint16(smp.AttrPortInfo))
		binary.BigEndian.PutUint32(m[mad.OffsetAttributeModifier:], uint32(x.num)|1<<31)
		asked := smp.PortInfo{MKey: 0x66, MKeyProtectBits: 0, MKeyLeasePeriod: 1, LMC: 5, LID: 9, PortState: smp.PortActive, LinkSpeedEnabled: 3}
		data, err := asked.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		copy(m[mad.DataOffset:], data)
		errno := g.Out(m[:], ib.LIDPermissive)
		if (errno == umad.EPERM) != x.fail {
			t.Errorf("%s, port %d: %v", x.to, x.num, errno)
		}
		if x.fail {
			continue
		}
		var got smp.PortInfo
		if err := got.UnmarshalBinary(m[mad.DataOffset : mad.DataOffset+smp.PortInfoSize]); err != nil {
			t.Fatal(err)
		}
		want := asked
		if x.of != nil {
			want.MKey, want.MKeyProtectBits, want.MKeyLeasePeriod = x.of.Key, x.of.Info.MKeyProtectBits, x.of.Info.MKeyLeasePeriod
		}
		if got != want || keyIn(m) != x.to.Key {
			t.Errorf("%s, port %d: key %v, %v, want %v", x.to, x.num, keyIn(m), got, want)
		}
	}
	m := directed(mad.Path{1, 7}) // nobody is there
	m[mad.OffsetMethod] = byte(mad.MethodSet)
	binary.BigEndian.PutUint16(m[mad.OffsetAttributeID:], uint16(smp.AttrPortInfo))
	if errno := g.Out(m[:], ib.LIDPermissive); errno != umad.EPERM {
		t.Errorf("a Set of PortInfo of nobody: %v", errno)
	}
}

// Nothing that a program reads has a key in it, and all else is as it came; nothing that is
// cut short does harm.
func TestKeysAreBlanked(t *testing.T) {
	const key = 0xFEEDFACECAFEBEEF
	g := &Gate{}
	fill := func(class mad.Class, attribute mad.AttributeID, n int) []byte {
		m := make([]byte, n)
		for i := range m {
			m[i] = 0xEE
		}
		m[mad.OffsetClass] = byte(class)
		binary.BigEndian.PutUint16(m[mad.OffsetAttributeID:], uint16(attribute))
		return m
	}
	for name, x := range map[string]struct {
		m    []byte
		keys []int // where they are
	}{
		"an SMP":              {fill(mad.ClassSubnLID, smp.AttrNodeInfo, mad.Size), []int{24}},
		"a directed SMP":      {fill(mad.ClassSubnDirected, smp.AttrPKeyTable, mad.Size), []int{24}},
		"PortInfo":            {fill(mad.ClassSubnLID, smp.AttrPortInfo, mad.Size), []int{24, 64}},
		"directed PortInfo":   {fill(mad.ClassSubnDirected, smp.AttrPortInfo, mad.Size), []int{24, 64}},
		"a trap":              {notice(fill(mad.ClassSubnLID, smp.AttrNotice, mad.Size), mad.DataOffset, 256), []int{24, 64 + 10 + 14}},
		"another trap":        {notice(fill(mad.ClassSubnLID, smp.AttrNotice, mad.Size), mad.DataOffset, 128), []int{24}},
		"a report":            {notice(fill(mad.ClassSubnAdm, smp.AttrNotice, mad.Size), sa.DataOffset, 256), []int{56 + 10 + 14}},
		"PortInfoRecord":      {records(fill(mad.ClassSubnAdm, sa.AttrPortInfoRecord, mad.Size), 0), []int{60}},
		"PortInfoRecords":     {records(fill(mad.ClassSubnAdm, sa.AttrPortInfoRecord, 56+5*72), 9), []int{60, 132, 204, 276, 348}},
		"another record":      {fill(mad.ClassSubnAdm, sa.AttrNodeRecord, mad.Size), nil},
		"performance":         {fill(mad.ClassPerfMgt, smp.AttrPortInfo, mad.Size), nil},
		"a record, cut short": {records(fill(mad.ClassSubnAdm, sa.AttrPortInfoRecord, 62), 9), nil},
	} {
		want := slices.Clone(x.m)
		for _, at := range x.keys {
			binary.BigEndian.PutUint64(x.m[at:], key)
			binary.BigEndian.PutUint64(want[at:], 0)
		}
		if name == "a record, cut short" {
			want[60], want[61] = 0, 0
		}
		whole := slices.Clone(x.m)
		if g.In(0, x.m); !slices.Equal(x.m, want) {
			t.Errorf("%s:\n%x, want\n%x", name, x.m, want)
		}
		for n := range whole {
			cut := slices.Clone(whole[:n])
			g.In(0, cut)
			for _, at := range x.keys {
				if at < n && n >= mad.HeaderSize && cut[at] == byte(key>>56) {
					t.Errorf("%s, cut after %d bytes: some of the key at %d is left", name, n, at)
				}
			}
		}
	}
}

func notice(m []byte, at int, number uint16) []byte {
	binary.BigEndian.PutUint16(m[at+4:], number)
	return m
}

func records(m []byte, size uint16) []byte {
	binary.BigEndian.PutUint16(m[sa.OffsetAttributeOffset:], size)
	return m
}

// The table is read again when it is old, when a request was not answered, and when it does
// not know where a packet goes; never more often than it may; and one that cannot be read
// leaves the last in force.
func TestWhenTheTableIsRead(t *testing.T) {
	b, ends := subnet(5)
	now, reads := time.Unix(1000, 0), 0
	var fails error
	var said []string
	g := &Gate{
		Fresh: time.Minute, Least: time.Second, Now: func() time.Time { return now }, Say: func(text string) { said = append(said, text) },
		Table: func() (*Table, error) { reads++; return Of(b.Fabric), fails },
	}
	send := func(path mad.Path, wantReads int) *[mad.Size]byte {
		t.Helper()
		m := directed(path)
		if errno := g.Out(m[:], ib.LIDPermissive); errno != umad.OK || reads != wantReads {
			t.Errorf("%v, read %d times, want %d", errno, reads, wantReads)
		}
		return m
	}
	send(nil, 1)
	send(mad.Path{99}, 1) // just read
	now = now.Add(2 * time.Second)
	send(nil, 1)
	send(mad.Path{99}, 2)
	send(mad.Path{99}, 2)
	lost := directed(nil)
	g.In(uint32(umad.ETIMEDOUT), lost[:])
	send(nil, 2) // too soon
	now = now.Add(2 * time.Second)
	old := b.Fabric.Self.Key
	for _, p := range ends {
		p.Key += 0x1000
	}
	if m := send(nil, 3); keyIn(m) != old+0x1000 {
		t.Error("another key has come, and the one before is sent")
	}
	g.Refused()
	send(nil, 3) // too soon
	now = now.Add(2 * time.Second)
	send(nil, 4)
	now, fails = now.Add(time.Hour), errors.New("the manager has ended")
	if m := send(nil, 5); keyIn(m) != old+0x1000 || len(said) != 1 || !strings.Contains(said[0], "the manager has ended") {
		t.Errorf("key %v, said %q", keyIn(m), said)
	}
}

// A table of nothing, or one with places that are not in it, leads nowhere.
func TestEmptyTable(t *testing.T) {
	for _, table := range []*Table{Of(nil), Of(observed.NewFabric()), {Ports: []Port{{Cables: []Cable{{1, 5}, {2, -1}}}}}} {
		for _, path := range []mad.Path{{1}, {2}, {3}} {
			if p := table.To(directed(path), ib.LIDPermissive); p != nil {
				t.Errorf("%v", fmt.Sprint(p.Num))
			}
		}
	}
}
