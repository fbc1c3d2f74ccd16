package sweep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// answers is what stands at the end of each directed route, as a fake subnet:
// the manager's CA, with something behind its port 1.
type answers func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool)

// sweepOver runs a whole discovery over a fake subnet and returns it, with the
// VendorDiag blocks that were asked for in order.
func sweepOver(t *testing.T, o Options, at answers) (d *Discovery, diag []uint32) {
	t.Helper()
	return sweepWatched(t, o, at, func(*Discovery) {})
}

// sweepWatched does that and calls watch before every packet.
func sweepWatched(t *testing.T, o Options, at answers, watch func(*Discovery)) (d *Discovery, diag []uint32) {
	t.Helper()
	w := transact.NewWindow(transact.DefaultLimits())
	d = Discover(w, o)
	return d, drive(t, w, d, at, watch)
}

// drive runs a discovery over a fake subnet to its end.
func drive(t *testing.T, w *transact.Window, d *Discovery, at answers, watch func(*Discovery)) (diag []uint32) {
	t.Helper()
	now := time.Duration(0)
	for range 100_000 {
		if w.Idle() && d.Advance() {
			return diag
		}
		var p mad.SMP
		for w.Next(now, &p) {
			watch(d)
			if p.Method != mad.MethodGet {
				t.Fatalf("a %s was sent", p.Method)
			}
			if p.AttributeID == smp.AttrVendorDiag {
				diag = append(diag, p.AttributeModifier)
			}
			route := make([]string, p.HopCount)
			for i := range route {
				route[i] = fmt.Sprint(p.InitialPath[i+1])
			}
			attribute, status, ok := at(strings.Join(route, ","), &p)
			if !ok {
				continue
			}
			if attribute != nil {
				if err := attribute.Encode(&p.Data); err != nil {
					t.Fatal(err)
				}
			}
			p.MakeResponse(status)
			w.Receive(now, &p)
		}
		now += time.Millisecond
		w.Expire(now)
	}
	t.Fatal("the discovery does not end")
	return nil
}

// host answers for a CA of one port whose cable leads to other.
func host(code uint16, diag map[uint32]*smp.VendorDiag, other answers) answers {
	return func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
		if route != "" {
			return other(route, p)
		}
		switch p.AttributeID {
		case smp.AttrNodeInfo:
			return &smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 1, PortGUID: 2, LocalPortNum: 1, PartitionCap: 32}, 0, true
		case smp.AttrPortInfo:
			return &smp.PortInfo{PortState: smp.PortInit, PortPhysicalState: smp.PhysLinkUp, DiagCode: smp.DiagCode(code)}, 0, true
		case smp.AttrVendorDiag:
			if block := diag[p.AttributeModifier]; block != nil {
				return block, 0, true
			}
			return nil, mad.StatusInvalidField, true
		}
		return nil, 0, true
	}
}

func silence(string, *mad.SMP) (smp.Attribute, mad.Status, bool) { return nil, 0, false }

func faultsOf(d *Discovery) string {
	var out []string
	for _, f := range d.Faults() {
		out = append(out, f.Error())
	}
	return strings.Join(out, "\n")
}

// TestStrangeNodeInfo: what cannot be a device is reported and left out, and
// the rest is found. NI-12 is about the reserved node types.
func TestStrangeNodeInfo(t *testing.T) {
	good := smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 7, PortGUID: 8, LocalPortNum: 1, PartitionCap: 1}
	for name, change := range map[string]func(*smp.NodeInfo){
		"NI-12 node type 0":       func(n *smp.NodeInfo) { n.NodeType = 0 },
		"NI-12 node type 4":       func(n *smp.NodeInfo) { n.NodeType = 4 },
		"NI-12 node type 255":     func(n *smp.NodeInfo) { n.NodeType = 255 },
		"no ports":                func(n *smp.NodeInfo) { n.NumPorts = 0 },
		"255 ports":               func(n *smp.NodeInfo) { n.NumPorts = 255 },
		"local port out of range": func(n *smp.NodeInfo) { n.LocalPortNum = 2 },
		"local port 0 of a CA":    func(n *smp.NodeInfo) { n.LocalPortNum = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			info := good
			change(&info)
			d, _ := sweepOver(t, Options{}, host(0, nil, func(_ string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
				return &info, 0, p.AttributeID == smp.AttrNodeInfo
			}))
			if len(d.Fabric().Nodes) != 1 || d.Fabric().Self == nil {
				t.Errorf("found %d nodes, want the manager's own", len(d.Fabric().Nodes))
			}
			if got := faultsOf(d); !strings.Contains(got, "NodeInfo:") || !strings.Contains(got, "route 0,1") {
				t.Errorf("faults %q, want one that names NodeInfo and the route", got)
			}
		})
	}
	d, _ := sweepOver(t, Options{}, host(0, nil, func(_ string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
		switch p.AttributeID {
		case smp.AttrNodeInfo:
			return &good, 0, true
		case smp.AttrPortInfo:
			return &smp.PortInfo{PortState: smp.PortInit, PortPhysicalState: smp.PhysLinkUp}, 0, true
		}
		return nil, 0, true
	}))
	if len(d.Fabric().Nodes) != 2 || len(d.Faults()) != 0 {
		t.Errorf("a good node: %d nodes, faults %q", len(d.Fabric().Nodes), faultsOf(d))
	}
}

func block(next uint16, first byte) *smp.VendorDiag {
	v := &smp.VendorDiag{NextIndex: next}
	v.DiagData[0] = first
	return v
}

// TestDiagnosis: what a port says of its own health is reported, and the
// vendor's blocks are read when, and where, the code points at them.
func TestDiagnosis(t *testing.T) {
	chain := map[uint32]*smp.VendorDiag{1: block(9, 0xA1), 9: block(4, 0xA9), 4: block(0, 0xA4), 0x7FF: block(0, 0xFF)}
	loop := map[uint32]*smp.VendorDiag{1: block(2, 1), 2: block(1, 2)}
	for _, c := range []struct {
		name   string
		code   uint16
		blocks map[uint32]*smp.VendorDiag
		asked  []uint32
		says   string
	}{
		{"VD-04 healthy", 0, chain, nil, ""},
		{"VD-05 the kind is in the low bits", 0x0001, chain, nil, "self-test"},
		{"VD-05 a code of no meaning is not healthy", 0x0010, chain, nil, "unknown code"},
		{"VD-10 soft error with a vendor code", 0x7FF3, chain, nil, "soft error, port works, vendor code 0x7ff"},
		{"VD-11 VD-12 the code points at block 1", 0x8013, map[uint32]*smp.VendorDiag{1: block(0, 0xA1)}, []uint32{1}, "vendor data a1"},
		{"VD-12 the highest index", 0xFFF4, chain, []uint32{0x7FF}, "hard failure; vendor data ff"},
		{"VD-14 VD-15 a chain of three", 0x8014, chain, []uint32{1, 9, 4}, "vendor data a1"},
		{"VD-14 a chain that breaks off", 0x8014, map[uint32]*smp.VendorDiag{1: block(9, 1)}, []uint32{1, 9}, "VendorDiag block 9"},
		{"VD-15 a chain that points back is cut", 0x8014, loop, []uint32{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2}, "cut after 16 blocks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, asked := sweepOver(t, Options{}, host(c.code, c.blocks, silence))
			if fmt.Sprint(asked) != fmt.Sprint(c.asked) {
				t.Errorf("asked for blocks %v, want %v", asked, c.asked)
			}
			said := ""
			for _, f := range d.Faults() {
				if strings.Contains(f.Error(), "DiagCode") {
					said += f.Error()
				}
			}
			if (c.says == "") != (said == "") || !strings.Contains(said, c.says) {
				t.Errorf("reported %q, want %q", said, c.says)
			}
			if len(asked) == 3 && !strings.Contains(said, "a9") {
				t.Errorf("the second block is not in %q", said)
			}
		})
	}
}

// TestReadingWritesNothing: without ClearChange only SubnGet leaves (sweepOver
// fails on anything else), though a switch reports a change.
func TestReadingWritesNothing(t *testing.T) {
	d, _ := sweepOver(t, Options{Forwarding: true, QoS: true}, host(0, nil, func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
		switch p.AttributeID {
		case smp.AttrNodeInfo:
			return &smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: 2, NodeGUID: 5, PortGUID: 5, LocalPortNum: 1, PartitionCap: 8}, 0, route == "1"
		case smp.AttrSwitchInfo:
			return &smp.SwitchInfo{LinearFDBCap: 128, LinearFDBTop: 100, PartitionEnforcementCap: 33, PortStateChange: true}, 0, true
		case smp.AttrPortInfo:
			return &smp.PortInfo{PortState: smp.PortInit, PortPhysicalState: smp.PhysLinkUp, VLCap: 2, VLArbitrationLowCap: 33, VLArbitrationHighCap: 8}, 0, true
		case smp.AttrPKeyTable:
			var t smp.PKeyTable
			t.Keys[0] = 0x8001
			return &t, 0, true
		}
		return nil, 0, true
	}))
	n := d.Fabric().Node(5)
	if n == nil || !n.Switch.Info.PortStateChange || len(n.Switch.LFTRead) != 2 {
		t.Fatalf("switch %+v", n)
	}
	if p := &n.Ports[1]; !p.PKeysKnown() || len(p.PKeysRead) != 2 || len(p.SLToVL) == 0 || len(p.VLArbitration) == 0 {
		t.Errorf("facing port: keys %v, SLtoVL %d, VLArbitration %d", p.PKeysRead, len(p.SLToVL), len(p.VLArbitration))
	}
}

// However many tables there are, requests for them are made a few thousand ahead
// of the answers, and all of them are made.
func TestTablesAhead(t *testing.T) {
	const hosts, keys = 200, 65535 // of which no more are read than anybody's
	const blocks = (observed.EndPKeysMax + smp.PKeysPerBlock - 1) / smp.PKeysPerBlock
	most := 0
	d, _ := sweepWatched(t, Options{}, func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
		hop := 0
		if _, err := fmt.Sscanf(route, "1,%d", &hop); err != nil && route != "1" {
			hop = hosts + 1 // where the manager is, behind the last port
		}
		at := ib.NodeGUID(0x100 + hop)
		switch p.AttributeID {
		case smp.AttrNodeInfo:
			if route == "1" {
				return &smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: hosts + 1, NodeGUID: 1, PortGUID: 1, LocalPortNum: hosts + 1, PartitionCap: 1}, 0, true
			}
			return &smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: at, PortGUID: ib.PortGUID(at), LocalPortNum: 1, PartitionCap: keys}, 0, true
		case smp.AttrPortInfo:
			return &smp.PortInfo{PortState: smp.PortInit, PortPhysicalState: smp.PhysLinkUp, VLCap: 1}, 0, true
		}
		return nil, 0, true
	}, func(d *Discovery) { most = max(most, d.asked) })
	if len(d.Fabric().EndPorts()) != hosts+2 || len(d.Faults()) > 0 {
		t.Fatalf("%d end ports, %v", len(d.Fabric().EndPorts()), d.Faults())
	}
	for _, p := range d.Fabric().EndPorts() {
		if !p.PKeysKnown() {
			t.Errorf("%s: the P_Key table was not read", p)
		}
		if n := len(p.PKeys); n > observed.EndPKeysMax {
			t.Errorf("%s: %d entries were read of a host that says it has %d, want at most %d", p, n, keys, observed.EndPKeysMax)
		}
	}
	if most < ahead || most >= ahead+2*blocks {
		t.Errorf("%d requests at once, want %d and what one more node takes", most, ahead)
	}
}
