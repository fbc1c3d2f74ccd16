package scenario

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

func hostArgs(t *testing.T, line string) *Operands {
	t.Helper()
	lines, err := testbed.Lines("x.ibs", []byte(line))
	if err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	return &Operands{LineArgs: &testbed.LineArgs{Name: "x.ibs", Line: &lines[0], Words: lines[0].Words}, Topology: topology.Demo()}
}

// up is a fabric that a manager at mgmt-1 has brought up.
func up(t *testing.T) (s *testbed.Testbed, mgmt OperandPlace) {
	t.Helper()
	s, err := testbed.New(topology.Demo(), testbed.Config{Fabric: fabric.DefaultConfig(), Timeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if mgmt, err = hostArgs(t, "mgmt-1").Place(); err == nil {
		if err = s.SendFrom(mgmt.End(), true); err == nil {
			err = s.BringUp(0)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, mgmt
}

// hostID is a host that is not the manager's.
func hostID(t *testing.T) string {
	t.Helper()
	last := ""
	for _, n := range topology.Demo().Nodes {
		if n.Type == ib.NodeCA {
			last = n.ID
		}
	}
	return last
}

// TestOwnAndDescribe: root on a host changes what its own device says of itself.
func TestOwnAndDescribe(t *testing.T) {
	s, _ := up(t)
	id := hostID(t)
	own, err := OwnAction(hostArgs(t, id+" PKeyTable 1=0x8010 2=0x8020"))
	if err != nil {
		t.Fatal(err)
	}
	describe, err := Describe(hostArgs(t, id+` "another name"`))
	if err != nil {
		t.Fatal(err)
	}
	for _, act := range []HostAction{own, describe} {
		if err := act(s); err != nil {
			t.Fatal(err)
		}
	}
	p, err := hostArgs(t, id).Place()
	if err != nil {
		t.Fatal(err)
	}
	agent := s.Fabric.Agent(p.Node.GUID)
	if keys := agent.PKeys(1); !slices.Equal(keys, []ib.PKey{0xFFFF, 0x8010, 0x8020}) {
		t.Errorf("keys %v, want those that were set and the others as they were", keys)
	}
	var name smp.NodeDescription
	if s.Held(p.End(), 0, &name); name.String() != "another name" {
		t.Errorf("it is called %q", name)
	}
	g, err := SA(hostArgs(t, id+" get NodeRecord"))
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := g.Send(s); err != nil || reply.Good() || reply.Outcome() != "timeout" {
		t.Errorf("nobody administers the subnet, and the query has %+v, %v", reply, err)
	}
}

// TestTrap: a forged trap reaches the manager with the fields of the line.
func TestTrap(t *testing.T) {
	s, mgmt := up(t)
	act, err := Trap(hostArgs(t, hostID(t)+" 257 Key=0x1234 IssuerLID=lid(mgmt-1)"))
	if err != nil {
		t.Fatal(err)
	}
	if err := act(s); err != nil {
		t.Fatal(err)
	}
	if err := s.Advance(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	want := s.Fabric.Agent(mgmt.Node.GUID).Port(1).LID
	if len(s.Traps) == 0 || s.Traps[0].TrapNumber != 257 || s.Traps[0].IssuerLID != want {
		t.Fatalf("%s, want trap 257 that names LID %s", s.TrapList(), want)
	}
	// Without a word about it the trap names its sender's LID.
	if act, err = Trap(hostArgs(t, hostID(t)+" 257")); err != nil {
		t.Fatal(err)
	}
	s.Traps = nil
	if err = act(s); err == nil {
		err = s.Advance(time.Millisecond)
	}
	host, _ := hostArgs(t, hostID(t)).Place()
	if want = s.Fabric.Agent(host.Node.GUID).Port(1).LID; err != nil || len(s.Traps) == 0 || s.Traps[0].IssuerLID != want {
		t.Errorf("%s, %v; want one of LID %s", s.TrapList(), err, want)
	}
}

// TestStatementFaults: what is wrong with a line is said before anything runs.
func TestStatementFaults(t *testing.T) {
	id := hostID(t)
	for _, c := range []struct {
		line, want string
		read       func(*Operands) error
	}{
		{id + " PortInfo", "want FIELD=VALUE", func(a *Operands) error { _, err := OwnAction(a); return err }},
		{id + " PortInfo LID=70000", "16 bits", func(a *Operands) error { _, err := OwnAction(a); return err }},
		{"nobody x", "want one of", func(a *Operands) error { _, err := Describe(a); return err }},
		{id + " 70000", "16 bits", func(a *Operands) error { _, err := Trap(a); return err }},
		{id + " 257 Nothing=1", "Nothing", func(a *Operands) error { _, err := Trap(a); return err }},
		{id + " steal PathRecord", "want ", func(a *Operands) error { _, err := SA(a); return err }},
		{id + " get PathRecords", "want a record", func(a *Operands) error { _, err := SA(a); return err }},
		{id + " get PathRecord Preference=1", "want a field that a query can be about", func(a *Operands) error { _, err := SA(a); return err }},
		{id + " get PathRecord sa-key=x", "64 bits", func(a *Operands) error { _, err := SA(a); return err }},
	} {
		if err := c.read(hostArgs(t, c.line)); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "x.ibs:1:") {
			t.Errorf("%s: %v, want %q", c.line, err, c.want)
		}
	}
}

// TestLIDsOfARequest: to-lid and from-lid are two settings; the last of each counts.
func TestLIDsOfARequest(t *testing.T) {
	g, err := SA(hostArgs(t, hostID(t)+" get NodeRecord to-lid=5 to-lid=6"))
	if err != nil {
		t.Fatal(err)
	}
	if g.fromLID != nil || g.toLID == nil || g.toLID.Now(nil) != 6 {
		t.Errorf("to %v, from %v", g.toLID, g.fromLID)
	}
	if g, err = SA(hostArgs(t, hostID(t)+" get NodeRecord from-lid=7")); err != nil || g.toLID != nil || g.fromLID.Now(nil) != 7 {
		t.Errorf("%v, to %v, from %v", err, g.toLID, g.fromLID)
	}
}
