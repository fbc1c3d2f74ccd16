package verbsd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// TestFind: a program is on the node that it names, or on the first host.
func TestFind(t *testing.T) {
	l := topology.Demo()
	var hosts, switches []*topology.Node
	for _, n := range l.Nodes {
		if n.Type == ib.NodeCA {
			hosts = append(hosts, n)
		} else {
			switches = append(switches, n)
		}
	}
	if n, err := find(l, ""); err != nil || n != hosts[0] {
		t.Errorf("no name: %v, %v", n, err)
	}
	mixed := &topology.Netlist{Nodes: []*topology.Node{switches[0], hosts[1], hosts[0]}}
	if n, err := find(mixed, ""); err != nil || n != hosts[1] {
		t.Errorf("a switch is first: %v, %v", n, err)
	}
	for _, n := range []*topology.Node{hosts[2], switches[0]} {
		if got, err := find(l, n.ID); err != nil || got != n {
			t.Errorf("%s: %v, %v", n.ID, got, err)
		}
	}
	if n, err := find(l, "nobody"); n != nil || !errors.Is(err, verbs.ErrNode) {
		t.Errorf("a name of nobody: %v, %v", n, err)
	}
	if n, err := find(&topology.Netlist{Nodes: switches}, ""); n != nil || !errors.Is(err, verbs.ErrNode) || err.Error() != "the fabric has no CA: "+verbs.ErrNode.Error() {
		t.Errorf("no host: %v, %v", n, err)
	}
}

// TestJoined: what the administration answers is the group, each of its values, or why not.
func TestJoined(t *testing.T) {
	record := sa.MCMemberRecord{MGID: ib.GID{0xFF, 0x12, 15: 1}, MLID: 0xC001, QKey: 0xB1B, PKey: 0x8010, MTU: ib.MTU2048, SL: 3, HopLimit: 7}
	body, err := record.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	var m sa.MAD
	copy(m.Data[:], body)
	var out verbs.Answer
	if err := joined(&m, &out); err != nil {
		t.Fatal(err)
	}
	if want := (verbs.MulticastGroup{MGID: record.MGID, MLID: 0xC001, QKey: 0xB1B, PKey: 0x8010, MTU: ib.MTU2048, SL: 3, HopLimit: 7}); out.Group == nil || *out.Group != want {
		t.Errorf("%+v, want %+v", out.Group, want)
	}
	for _, status := range []mad.Status{sa.StatusDenied, mad.StatusBusy} {
		var out verbs.Answer
		m.Status = status
		if err := joined(&m, &out); !errors.Is(err, verbs.ErrPermission) || out.Group != nil {
			t.Errorf("%v: %v, %+v", status, err, out.Group)
		}
	}
}

// TestProgramsOfAHost: programs on one node share its host, and those on another have theirs.
func TestProgramsOfAHost(t *testing.T) {
	b := newBench(t)
	for range 2 {
		b.open(t, "red-1")
	}
	b.open(t, "blue-1")
	_ = b.Do(func(*fabric.Fabric) { // a bench does not end
		var got []string
		for _, h := range b.server.hosts {
			got = append(got, fmt.Sprint(h.node.Description, " ", len(h.sessions)))
		}
		if len(got) != 2 || got[0] != "red-1 HCA-1 2" || got[1] != "blue-1 HCA-1 1" {
			t.Errorf("programs by host: %q", got)
		}
	})
}
