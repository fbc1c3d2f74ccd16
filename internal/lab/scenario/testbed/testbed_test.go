package testbed

import (
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

func bed(t *testing.T) *Testbed {
	t.Helper()
	s, err := New(topology.Demo(), Config{Fabric: fabric.DefaultConfig(), Timeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Testbed) port(t *testing.T, name string) observed.Place {
	t.Helper()
	n, err := s.Topology.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return observed.Place{Node: n.GUID, Port: EndPorts(n)[0]}
}

// TestBringUp: afterwards every end port has a LID of its own, every link is Active, and
// packets travel between hosts; without it they do not.
func TestBringUp(t *testing.T) {
	s := bed(t)
	if err := s.SendFrom(s.port(t, "mgmt-1"), true); err != nil {
		t.Fatal(err)
	}
	if err := s.BringUp(0); err != nil {
		t.Fatal(err)
	}
	seen := map[ib.LID]string{}
	var hosts []observed.Place
	for _, n := range s.Topology.Nodes {
		for _, num := range EndPorts(n) {
			p := observed.Place{Node: n.GUID, Port: num}
			info := s.Fabric.Agent(n.GUID).Port(num)
			if other := seen[info.LID]; other != "" || !info.LID.IsUnicast() {
				t.Errorf("%s has LID %s, as %q", s.Name(p), info.LID, other)
			}
			seen[info.LID] = s.Name(p)
			if n.Type == ib.NodeCA {
				hosts = append(hosts, p)
				if info.PortState != smp.PortActive {
					t.Errorf("%s is %s", s.Name(p), info.PortState)
				}
			}
		}
	}
	a, err := s.CreateQP(hosts[0], endpoint.UD, endpoint.Kernel, 0, 7)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.CreateQP(hosts[len(hosts)-1], endpoint.UD, endpoint.Kernel, 0, 7)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(a, b, Message{Bytes: 64, Count: 1}); err != nil || len(s.Drops) != 0 || len(s.Sent) == 0 {
		t.Errorf("sent %d, %s, %v", len(s.Sent), s.DropList(), err)
	}
	wrong := ib.QKey(8)
	if err := s.Send(a, b, Message{Bytes: 64, Count: 1, QKey: &wrong}); err != nil || len(s.Drops) != 1 || !strings.Contains(s.DropList(), s.Name(b.At)) {
		t.Errorf("with a wrong Q_Key: %s, %v", s.DropList(), err)
	}
}

// TestAsk: a Get by the shortest directed route, by a route of the caller's, and into the
// void; Held reads the same without a packet.
func TestAsk(t *testing.T) {
	s := bed(t)
	host, leaf := s.port(t, "mgmt-1"), observed.Place{}
	for _, n := range s.Topology.Nodes {
		if n.Type == ib.NodeSwitch {
			leaf = observed.Place{Node: n.GUID}
			break
		}
	}
	if err := s.SendFrom(host, false); err != nil {
		t.Fatal(err)
	}
	r, err := s.Ask(Question{To: leaf, Attribute: new(smp.NodeInfo)})
	if err != nil || !r.Good() || r.Attribute.(*smp.NodeInfo).NodeGUID != leaf.Node || r.Outcome() != "status ok" {
		t.Fatalf("%+v, %v", r, err)
	}
	before := s.Fabric.Counts().Sent
	var held smp.SwitchInfo
	if s.Held(leaf, 0, &held); held.LinearFDBCap == 0 || s.Fabric.Counts().Sent != before {
		t.Errorf("held %+v, %d packets", held, s.Fabric.Counts().Sent-before)
	}
	r, err = s.Ask(Question{To: leaf, Attribute: new(smp.SwitchInfo)})
	asked := r.Attribute.(*smp.SwitchInfo)
	if asked.PortStateChange = false; err != nil || *asked != held { // where a Set means "clear", Held says nothing
		t.Errorf("asked %+v, held %+v, %v", asked, held, err)
	}
	if r, err = s.Ask(Question{Route: []ib.PortNum{1, 200}, To: leaf, Attribute: new(smp.NodeInfo)}); err != nil || r.Outcome() != "timeout" || len(s.Drops) == 0 {
		t.Errorf("by a port that the switch does not have: %+v, %s, %v", r, s.DropList(), err)
	}
	if err := s.PowerOff(leaf.Node); err != nil {
		t.Fatal(err)
	}
	if r, err = s.Ask(Question{To: leaf, Attribute: new(smp.NodeInfo)}); err != nil || r.Answered {
		t.Errorf("a switch without power: %+v, %v", r, err)
	}
	if err := s.PowerOn(leaf.Node); err != nil {
		t.Fatal(err)
	}
	if err := s.Rest(); err != nil {
		t.Fatal(err)
	}
	if r, err = s.Ask(Question{To: leaf, Attribute: new(smp.NodeInfo)}); err != nil || !r.Good() {
		t.Errorf("a switch that is on again: %+v, %v", r, err)
	}
}

// TestGuess: guesses differ from each other, and repeat with the seed.
func TestGuess(t *testing.T) {
	a, b := bed(t), bed(t)
	first, second := a.Guess(), a.Guess()
	if first == second || b.Guess() != first || b.Guess() != second {
		t.Error("guesses do not follow from the seed alone")
	}
	if _, err := New(&topology.Netlist{}, Config{}); err == nil {
		t.Error("a fabric without nodes was made")
	}
}
