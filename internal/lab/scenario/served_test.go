package scenario

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// stage is a fabric with cables that have trained.
type stage struct {
	*testing.T
	l    *topology.Netlist
	f    *fabric.Fabric
	sent []fabric.DataSighting
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, l: topology.Demo()}
	c := fabric.DefaultConfig()
	c.DataTrace = func(d fabric.DataSighting) {
		if d.Origin && d.Outcome == fabric.OutcomeLeft {
			d.Bytes = append([]byte{}, d.Bytes...)
			s.sent = append(s.sent, d)
		}
	}
	var err error
	if s.f, err = fabric.New(s.l, c); err != nil {
		t.Fatal(err)
	}
	s.rest()
	return s
}

func (s *stage) rest() {
	for range 100_000 {
		if !s.f.Step() {
			return
		}
	}
	s.Fatal("the fabric does not come to rest")
}

// do carries out a line as the console does.
func (s *stage) do(line string) error {
	name, arguments, _ := strings.Cut(line, " ")
	for _, x := range Statements() {
		if strings.EqualFold(x.Name, name) {
			return x.Do(s.l, s.f, arguments)
		}
	}
	s.Fatalf("no statement %s", name)
	return nil
}

func (s *stage) must(line string) {
	s.Helper()
	if err := s.do(line); err != nil {
		s.Fatalf("%s: %v", line, err)
	}
	s.rest()
}

func (s *stage) node(name string) *topology.Node {
	n, err := s.l.Find(name)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// TestOwn: values are changed whatever key guards them, with what follows for the link; what
// the device refuses is an error.
func TestOwn(t *testing.T) {
	s := newStage(t)
	red := s.node("red-1")
	port := s.f.Agent(red.GUID).Port(1)
	s.must("own red-1 PortInfo MKey=0x5EC MKeyProtectBits=3 LID=77 MasterSMLID=1")
	s.must("OWN red-1 PortInfo SubnetTimeOut=3")
	if port.MKey != 0x5EC || port.LID != 77 || port.SubnetTimeOut != 3 {
		t.Errorf("%+v", port)
	}
	peer, at, _ := s.f.Peer(red.GUID, 1)
	before := s.f.Agent(peer).Port(at).PortState
	s.must("own red-1 PortInfo PortPhysicalState=Disabled")
	if after := s.f.Agent(peer).Port(at).PortState; before == smp.PortDown || after != smp.PortDown {
		t.Errorf("the other end was %v and is %v", before, after)
	}
	if err := s.do("own red-1 PortInfo LinkWidthEnabled=8"); err == nil || !strings.Contains(err.Error(), "refuses its own Set of PortInfo") {
		t.Error(err)
	}
}

// TestLie: a node's answers say what they are told to, others do not, until none.
func TestLie(t *testing.T) {
	s := newStage(t)
	first := s.node("mgmt-1")
	attached, err := s.f.Attach(first.GUID, 1)
	if err != nil {
		t.Fatal(err)
	}
	ports := func() (n smp.NodeInfo) {
		p := mad.SMP{BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion, Method: mad.MethodGet, AttributeID: smp.AttrNodeInfo, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive}
		var m [mad.Size]byte
		if err := p.Encode(&m); err != nil {
			t.Fatal(err)
		}
		attached.Send(&m, ib.LIDPermissive)
		s.rest()
		var d fabric.Delivery
		if !attached.Receive(&d) || p.UnmarshalBinary(d.MAD[:]) != nil || n.UnmarshalBinary(p.Data[:]) != nil {
			t.Fatal("no answer")
		}
		return n
	}
	s.must("lie mgmt-1 NodeInfo NumPorts=9")
	s.must("lie mgmt-1 NodeInfo DeviceID=5")
	if n := ports(); n.NumPorts != 9 || n.DeviceID != 5 {
		t.Errorf("%+v", n)
	}
	s.must("lie mgmt-1 none")
	if n := ports(); n.NumPorts == 9 || n.DeviceID == 5 {
		t.Errorf("%+v", n)
	}
}

// TestForge: the datagram leaves with what was asked for.
func TestForge(t *testing.T) {
	s := newStage(t)
	s.must("own red-1 PortInfo LID=77 MasterSMLID=1")
	s.must("own red-1 PortInfo PortState=Armed")
	s.must("own red-1 PortInfo PortState=Active")
	s.must("forge red-1 -> 5 9 pkey=0x8007 qkey=0xBAD sl=2 bytes=20")
	if len(s.sent) != 1 {
		t.Fatalf("%d packets left", len(s.sent))
	}
	b := s.sent[0].Bytes
	if b[1]>>4 != 2 || b[2] != 0 || b[3] != 5 || b[6] != 0 || b[7] != 77 || b[10] != 0x80 || b[11] != 0x07 || b[15] != 9 || b[22] != 0x0B || b[23] != 0xAD {
		t.Errorf("left %x", b)
	}
}

// TestSpoil is for switches.
func TestSpoil(t *testing.T) {
	s := newStage(t)
	s.must("spoil on leaf-1")
	s.must("spoil off leaf-1")
}

// TestFaults: each names what is wrong, and nothing is done.
func TestFaults(t *testing.T) {
	s := newStage(t)
	for line, want := range map[string]string{
		"own":                              "want a node",
		"own nobody PortInfo LID=1":        `no node "nobody"`,
		"own red-1 PortInfo":               "want FIELD=VALUE",
		"own red-1 PortInfo Colour=1":      `field "Colour"`,
		"own red-1 PortInfo LID=70000":     "want a number of 16 bits",
		"lie red-1 Nonsense LID=1":         "want an attribute",
		"lie nobody none":                  `no node "nobody"`,
		"spoil maybe leaf-1":               "want on or off",
		"spoil on red-1":                   "want a switch or router",
		"spoil on leaf-1 leaf-2":           "want the end of the line",
		"forge red-1 5 9 pkey=1":           "want ->",
		"forge red-1 -> 5 9":               "want pkey=KEY",
		"forge red-1 -> 70000 9 pkey=1":    "want a number of 16 bits",
		"forge red-1 -> 5 9 pkey=1 vl=3":   "want one of pkey",
		"forge red-1 -> 5 9 pkey=\"1":      "no closing quotation mark",
		"own red-1 PortInfo LID=1 \x01":    "control character",
		"own red-1 PortInfo PortState=Odd": "want a number",
	} {
		if err := s.do(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	if p := s.f.Agent(s.node("red-1").GUID).Port(1); p.LID != 0 || len(s.sent) != 0 {
		t.Errorf("LID %v, %d packets", p.LID, len(s.sent))
	}
}
