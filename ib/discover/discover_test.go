package discover_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/discover"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/umadtest"
)

func agentOn(t *testing.T, l *topology.Netlist, name string) (*umadtest.Host, *discover.Agent) {
	t.Helper()
	h, err := umadtest.New(l, name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := h.OpenMAD()
	if err != nil {
		t.Fatal(err)
	}
	c, err := umad.NewConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	a, err := discover.NewAgent(c)
	if err != nil {
		t.Fatal(err)
	}
	return h, a
}

// The list has every node and every cable of the topology, from whichever host it is
// made.
func TestList(t *testing.T) {
	for _, name := range []string{"", "red-1", "mgmt-1"} {
		l := topology.Demo()
		_, a := agentOn(t, l, name)
		f, err := discover.List(a)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Faults) != 0 || len(f.Nodes) != len(l.Nodes) || len(f.Links()) != len(l.Links()) {
			t.Errorf("from %q: %d of %d nodes, %d of %d cables, faults %v", name, len(f.Nodes), len(l.Nodes), len(f.Links()), len(l.Links()), f.Faults)
		}
		for _, want := range l.Links() {
			i := slices.IndexFunc(f.Nodes, func(n *discover.Node) bool { return n.Info.NodeGUID == want.A })
			if i < 0 {
				t.Fatalf("no node %v", want.A)
			}
			p := f.Nodes[i].Ports[want.APort]
			if p.Peer == nil || p.Peer.Node.Info.NodeGUID != want.B || p.Peer.Num != want.BPort || p.Info == nil {
				t.Errorf("%v leads to %v, want %v:%d", &p, p.Peer, want.B, want.BPort)
			}
		}
		for _, n := range f.Nodes {
			if n.Description == "" || (n.Switch != nil) != (n.Info.NodeType == ib.NodeSwitch) {
				t.Errorf("%v: %q, %+v", n.Info.NodeGUID, n.Description, n.Switch)
			}
		}
	}
}

// Where nobody is the kernel says so, and the next request is answered.
func TestNoAnswer(t *testing.T) {
	h, a := agentOn(t, topology.Demo(), "")
	before := h.Fabric.Now()
	if _, err := a.Ask(discover.Get(mad.Path{1, 200}, smp.AttrNodeInfo, 0)); !errors.Is(err, discover.ErrNoAnswer) {
		t.Errorf("where nobody is: %v", err)
	}
	if took, want := h.Fabric.Now()-before, (discover.Retries+1)*discover.AnswerTime; took != want {
		t.Errorf("it took %v, want %v", took, want)
	}
	if p, err := a.Ask(discover.Get(mad.Path{1}, smp.AttrNodeInfo, 0)); err != nil || p.Method != mad.MethodGetResp {
		t.Errorf("where a switch is: %v, %v", p, err)
	}
}

// Devices that are guarded answer who knows their key, and nobody else.
func TestGuarded(t *testing.T) {
	l := topology.Demo()
	h, a := agentOn(t, l, "red-1")
	for _, n := range l.Nodes {
		num := ib.PortNum(1)
		if n.Type == ib.NodeSwitch {
			num = 0
		}
		info := *h.Fabric.Agent(n.GUID).Port(num)
		info.MKey, info.MKeyProtectBits = 0x1234, 2
		info.PortState, info.PortPhysicalState = smp.PortStateNoChange, smp.PhysNoChange
		set := mad.SMP{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion,
			Method: mad.MethodSet, AttributeID: smp.AttrPortInfo, AttributeModifier: uint32(num),
		}
		if err := info.Encode(&set.Data); err != nil {
			t.Fatal(err)
		}
		h.Fabric.Agent(n.GUID).Handle(h.Fabric.Now(), sma.Ingress{Port: num}, &set)
	}
	if _, err := discover.List(a); !errors.Is(err, discover.ErrNoAnswer) {
		t.Errorf("without the key: %v", err)
	}
	a.MKey = 0x1234
	if f, err := discover.List(a); err != nil || len(f.Nodes) != len(l.Nodes) || len(f.Faults) != 0 {
		t.Errorf("with the key: %v, %v", f, err)
	}
}

// An adapter that goes away is an error, and no list.
func TestGone(t *testing.T) {
	h, a := agentOn(t, topology.Demo(), "")
	h.Remove()
	if f, err := discover.List(a); err == nil || f != nil {
		t.Errorf("%v, %v", f, err)
	}
}

// liar changes the answers on their way.
type liar struct {
	discover.Asker
	change func(request, answer *mad.SMP) error
	asked  int
}

func (l *liar) Ask(r *mad.SMP) (*mad.SMP, error) {
	if l.asked++; r.Method != mad.MethodGet {
		return nil, errors.New("it asks for something else than Get")
	}
	answer, err := l.Asker.Ask(r)
	if err == nil {
		err = l.change(r, answer)
	}
	return answer, err
}

// What does not answer, or answers what makes no sense, is a fault that names it; the
// rest is listed. A device that claims to be others ends nothing and does not go on
// for ever.
func TestFaults(t *testing.T) {
	const leaf = 2 // hops: the first switch and what is behind it
	rewrite := func(answer *mad.SMP, a smp.Attribute, change func()) error {
		if err := a.UnmarshalBinary(answer.Data[:]); err != nil {
			return err
		}
		change()
		return a.Encode(&answer.Data)
	}
	for name, x := range map[string]struct {
		change func(r, a *mad.SMP) error
		fault  string
	}{
		"silent hosts": {func(r, a *mad.SMP) error {
			if r.AttributeID == smp.AttrNodeInfo && r.HopCount == leaf {
				return discover.ErrNoAnswer
			}
			return nil
		}, "no answer"},
		"status": {func(r, a *mad.SMP) error {
			if r.AttributeID == smp.AttrNodeDescription {
				a.Status = mad.StatusInvalidField
			}
			return nil
		}, "NodeDescription"},
		"no such type": {func(r, a *mad.SMP) error {
			var n smp.NodeInfo
			if r.AttributeID != smp.AttrNodeInfo || r.HopCount < leaf {
				return nil
			}
			return rewrite(a, &n, func() { n.NodeType = 9 })
		}, "unknown node type 9"},
		"a port that it has not": {func(r, a *mad.SMP) error {
			var n smp.NodeInfo
			if r.AttributeID != smp.AttrNodeInfo || r.HopCount < leaf {
				return nil
			}
			return rewrite(a, &n, func() { n.LocalPortNum = 255 })
		}, "port 255"},
		"one GUID for all": {func(r, a *mad.SMP) error {
			var n smp.NodeInfo
			if r.AttributeID != smp.AttrNodeInfo || r.HopCount < leaf {
				return nil
			}
			return rewrite(a, &n, func() { n.NodeGUID = 5 })
		}, "also that of"},
	} {
		_, a := agentOn(t, topology.Demo(), "")
		l := &liar{Asker: a, change: x.change}
		f, err := discover.List(l)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(f.Nodes) < 2 || !slices.ContainsFunc(f.Faults, func(err error) bool { return strings.Contains(err.Error(), x.fault) }) {
			t.Errorf("%s: %d nodes, faults %v", name, len(f.Nodes), f.Faults)
		}
	}
}

// A fabric that never ends is listed to the longest route and no further.
func TestEndless(t *testing.T) {
	a := &endless{}
	f, err := discover.List(a)
	if err != nil {
		t.Fatal(err)
	}
	if want := mad.MaxHops + 1; len(f.Nodes) != want {
		t.Errorf("%d nodes, want %d", len(f.Nodes), want)
	}
}

// endless is a chain of switches of two ports, as long as anybody asks.
type endless struct{}

func (*endless) Ask(r *mad.SMP) (*mad.SMP, error) {
	var a smp.Attribute
	switch r.AttributeID {
	case smp.AttrNodeInfo:
		a = &smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: 2, NodeGUID: ib.NodeGUID(r.HopCount) + 1, LocalPortNum: 1}
	case smp.AttrPortInfo:
		info := &smp.PortInfo{PortPhysicalState: smp.PhysLinkUp}
		if r.AttributeModifier == 1 {
			info.PortPhysicalState = smp.PhysPolling
		}
		a = info
	case smp.AttrSwitchInfo:
		a = new(smp.SwitchInfo)
	default:
		a = new(smp.NodeDescription)
	}
	out := *r
	out.MakeResponse(mad.StatusOK)
	return &out, a.Encode(&out.Data)
}

// Of devices that hide extended speeds from who does not know them, every port is listed with them;
// those that refuse the bit of the modifier are listed as they say without it, and who has no extended
// speeds is never asked with it.
func TestExtendedSpeeds(t *testing.T) {
	for _, kind := range []string{"hides", "refuses", "has none"} {
		_, a := agentOn(t, topology.Demo(), "")
		l := &liar{Asker: a, change: func(r, answer *mad.SMP) error {
			var info smp.PortInfo
			if r.AttributeID != smp.AttrPortInfo || info.UnmarshalBinary(answer.Data[:]) != nil {
				return nil
			}
			_, bit, _ := smp.SplitPortInfoModifier(r.AttributeModifier)
			switch {
			case kind == "has none" && bit:
				t.Error("asked for extended speeds that the device does not have")
			case kind == "has none":
				info.CapabilityMask &^= smp.CapExtendedSpeeds
			case kind == "refuses" && bit:
				answer.Status = mad.StatusInvalidField
			case kind == "hides" && !bit:
				info.LinkSpeedExtActive, info.LinkSpeedExtSupported, info.LinkSpeedExtEnabled = 0, 0, 0
			}
			return info.Encode(&answer.Data)
		}}
		f, err := discover.List(l)
		if err != nil || len(f.Faults) != 0 {
			t.Fatalf("%s: %v, faults %v", kind, err, f)
		}
		seen := 0
		for _, n := range f.Nodes {
			for i := range n.Ports {
				if p := &n.Ports[i]; p.Peer != nil && p.Info != nil {
					if seen++; p.Info.LinkSpeedExtActive != smp.LinkSpeedHDR || p.Info.LinkSpeedExtEnabled == 0 {
						t.Errorf("%s: %v runs at %v, with %v enabled", kind, p, p.Info.LinkSpeedExtActive, p.Info.LinkSpeedExtEnabled)
					}
				}
			}
		}
		if seen == 0 {
			t.Errorf("%s: no port was seen", kind)
		}
	}
}
