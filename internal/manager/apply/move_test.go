package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// movedLID is the LID that moves, at an entry of the second block of a table.
const movedLID = ib.LID(70)

// row is three switches x, y and z in a row, the new master at x, the former one, which has the LID, at z.
func row() *observed.Fabric {
	b := subnettest.New()
	b.SwitchInfo.LinearFDBCap = 128
	x, y, z := b.Switch(4, "x"), b.Switch(4, "y"), b.Switch(4, "z")
	self := b.Host(x, "self")
	subnettest.Join(x, y) // x:2 y:1
	subnettest.Join(y, z) // y:2 z:1
	b.LID = movedLID
	b.Host(z, "former") // z:2
	b.Route()
	b.ManagedFrom(self)
	for _, n := range b.Fabric.Switches() {
		n.Switch.LFT, n.Switch.LFTRead = append(n.Switch.LFT, make([]ib.PortNum, 128)...)[:128], []bool{true, true}
		n.Switch.LFT[movedLID+1] = 3 // what stays in the block
		n.Switch.Info.LinearFDBTop = 127
	}
	return b.Fabric
}

// told is a move as it went: what was asked of whom, what failed, and what took.
type told struct {
	*devices
	to   LIDMove
	text []string
}

func newMove(t *testing.T) *told {
	limits := transact.Limits{Window: 32, Tries: 2, FirstTimeout: time.Second, MinTimeout: time.Second, MaxTimeout: time.Second}
	m := &told{devices: &devices{T: t, known: row(), are: row(), window: transact.NewWindow(limits)}}
	exits := map[string]ib.PortNum{"x": 1, "y": 1, "z": 1}
	m.to = LIDMove{
		LID: movedLID, To: m.known.Self, From: map[*observed.Port]observed.Assigned{host(m.known, "former"): {LID: 9, LMC: 1}},
		Exit:    func(n *observed.Node) ib.PortNum { return exits[n.Description] },
		Stopped: func() bool { return false },
		Failed:  func(f Failure) { m.text = append(m.text, "failed "+f.Error()) },
		Took: func(p *observed.Port, a mad.AttributeID, modifier uint32, data []byte) {
			m.text = append(m.text, fmt.Sprintf("took %s %d at %s, %x", smp.AttributeName(a), modifier, p, part[a](data)))
		},
	}
	m.outcome = func(r request) outcome {
		// How often a request is sent is the window's: one that is sent again counts once.
		if line := fmt.Sprintf("%s %s %d at %s", r.method, smp.AttributeName(r.attribute), r.modifier, r.port); !slices.Contains(m.text, line) {
			m.text = append(m.text, line)
		}
		return obeyed
	}
	return m
}

func (m *told) run() string {
	Move(m.window, m.known, m.to)
	m.exchange()
	return strings.Join(m.text, "\n")
}

// fails has a request at a device come to nothing.
func (m *told) fails(method mad.Method, a mad.AttributeID, name string, how outcome) {
	say := m.outcome
	m.outcome = func(r request) outcome {
		say(r)
		if r.method == method && r.attribute == a && r.port.Node.Description == name {
			return how
		}
		return obeyed
	}
}

// part is what of an answer a test shows: the LID of a port, the exit of the LID.
var part = map[mad.AttributeID]func([]byte) []byte{
	smp.AttrPortInfo:              func(data []byte) []byte { return data[16:18] },
	smp.AttrLinearForwardingTable: func(data []byte) []byte { return data[movedLID%64 : movedLID%64+1] },
}

const (
	leaves = "Set PortInfo 0 at former\ntook PortInfo 0 at former, 0009\n"
	comes  = "Set PortInfo 0 at self\ntook PortInfo 0 at self, 0046\n"
	xLearn = "Get LinearForwardingTable 1 at x:0\nSet LinearForwardingTable 1 at x:0\ntook LinearForwardingTable 1 at x:0, 01\n"
	yLearn = "Get LinearForwardingTable 1 at y:0\nSet LinearForwardingTable 1 at y:0\ntook LinearForwardingTable 1 at y:0, 01\n"
	zLearn = "Get LinearForwardingTable 1 at z:0\nSet LinearForwardingTable 1 at z:0\ntook LinearForwardingTable 1 at z:0, 01\n"
)

// TestMove lets the LID of the master go from one host to another: the former loses it, the new one gets
// it, and each switch learns of it after the next one on the way. Who does not answer keeps what it has.
func TestMove(t *testing.T) {
	set := func(m *told, name string) *observed.Switch { return nodeNamed(m.known, name).Switch }
	for _, x := range []struct {
		name   string
		change func(m *told)
		want   string
	}{
		{"in order", func(*told) {}, leaves + comes + xLearn + yLearn + zLearn},
		{"nobody has it", func(m *told) { m.to.From = nil }, comes + xLearn + yLearn + zLearn},
		{"the port has it itself", func(m *told) {
			m.to.From = map[*observed.Port]observed.Assigned{m.to.To: {LID: 9}}
			m.to.To.Info.LID = movedLID
		}, xLearn + yLearn + zLearn},
		{"the port has it among others", func(m *told) { m.to.From, m.to.To.Info.LID, m.to.To.Info.LMC = nil, movedLID, 1 }, comes + xLearn + yLearn + zLearn},
		{"the former master is mute", func(m *told) { m.fails(mad.MethodSet, smp.AttrPortInfo, "former", lost) },
			"Set PortInfo 0 at former\nfailed former: PortInfo: no answer after 2 tries\n" + comes + xLearn + yLearn + zLearn},
		{"the port refuses it", func(m *told) { m.fails(mad.MethodSet, smp.AttrPortInfo, "self", refused) },
			leaves + "Set PortInfo 0 at self\nfailed self: PortInfo: answered with status 0x001c (invalid value in attribute or modifier)"},
		{"the port keeps what it had", func(m *told) { m.fails(mad.MethodSet, smp.AttrPortInfo, "self", forgets) },
			leaves + "Set PortInfo 0 at self\nfailed self: PortInfo: kept LID 4 with LMC 0, want 70 with 0"},
		{"a switch knows already", func(m *told) { nodeNamed(m.are, "y").Switch.LFT[movedLID] = 1 },
			leaves + comes + xLearn + "Get LinearForwardingTable 1 at y:0\n" + zLearn},
		{"a switch is mute", func(m *told) { m.fails(mad.MethodGet, smp.AttrLinearForwardingTable, "y", lost) },
			leaves + comes + xLearn + "Get LinearForwardingTable 1 at y:0\nfailed y:0: LinearForwardingTable: no answer after 2 tries"},
		{"a write is lost", func(m *told) { m.fails(mad.MethodSet, smp.AttrLinearForwardingTable, "y", lost) },
			leaves + comes + xLearn + "Get LinearForwardingTable 1 at y:0\nSet LinearForwardingTable 1 at y:0\nfailed y:0: LinearForwardingTable: no answer after 2 tries"},
		{"a switch keeps its own", func(m *told) { m.fails(mad.MethodSet, smp.AttrLinearForwardingTable, "y", forgets) },
			leaves + comes + xLearn + "Get LinearForwardingTable 1 at y:0\nSet LinearForwardingTable 1 at y:0\nfailed y:0: LinearForwardingTable: block 1 reads back differently from what was written"},
		{"a switch of which nothing was read", func(m *told) { set(m, "y").InfoRead = false }, leaves + comes + xLearn},
		{"a switch without a linear table", func(m *told) { set(m, "y").Info.LinearFDBCap = 0 }, leaves + comes + xLearn},
		{"a table that ends before the LID", func(m *told) { set(m, "y").Info.LinearFDBTop = movedLID - 1 }, leaves + comes + xLearn},
		{"a table that ends with the LID", func(m *told) { set(m, "y").Info.LinearFDBTop = movedLID }, leaves + comes + xLearn + yLearn + zLearn},
		{"a switch that is to stay as it is", func(m *told) { m.exit("y", ib.PortNone) }, leaves + comes + xLearn},
		{"an exit that the switch has not", func(m *told) { m.exit("y", 5) }, leaves + comes + xLearn},
		{"an exit without a cable", func(m *told) { m.exit("y", 4) }, leaves + comes + xLearn},
		{"an exit to a host", func(m *told) { m.exit("z", 2) }, leaves + comes + xLearn + yLearn},
		{"the switch itself", func(m *told) { m.exit("y", 0) }, leaves + comes + xLearn},
		{"a link that is down", func(m *told) { subnettest.SetLink(&nodeNamed(m.known, "y").Ports[1], smp.PortDown, smp.PhysPolling) }, leaves + comes + xLearn},
		{"to a switch", func(m *told) { m.to.To = &nodeNamed(m.known, "x").Ports[0]; m.exit("x", 0) },
			leaves + strings.ReplaceAll(comes, "self", "x:0") + strings.Replace(xLearn, ", 01", ", 00", 1) + yLearn + zLearn},
		{"stopped before anything", func(m *told) { m.stopAfter(0) }, ""},
		{"stopped after the former has lost it", func(m *told) { m.stopAfter(2) }, leaves},
		{"stopped after the port has it", func(m *told) { m.stopAfter(4) }, leaves + comes},
		{"stopped after a table was read", func(m *told) { m.stopAfter(5) }, leaves + comes + "Get LinearForwardingTable 1 at x:0"},
		{"stopped after one switch", func(m *told) { m.stopAfter(7) }, leaves + comes + xLearn},
	} {
		m := newMove(t)
		x.change(m)
		if got, want := m.run(), strings.TrimSpace(x.want); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", x.name, got, want)
		}
	}
}

// TestMoveWrites compares what devices hold after a move: addresses, and one entry of each table.
func TestMoveWrites(t *testing.T) {
	m := newMove(t)
	former := host(m.are, "former")
	former.Info.MasterSMLID, former.Info.HOQLife = 5, 3
	f := host(m.known, "former")
	f.Info.MasterSMLID, f.Info.HOQLife, f.Info.ClientReregister, f.Info.LinkDownDefaultState = 5, 3, true, 2
	m.run()
	if x := former.Info; x.LID != 9 || x.LMC != 1 || x.MasterSMLID != 5 || x.HOQLife != 3 || x.ClientReregister || x.LinkDownDefaultState != 0 || x.PortState != smp.PortActive {
		t.Errorf("the former: %+v", x)
	}
	if x := host(m.are, "self").Info; x.LID != movedLID || x.LMC != 0 {
		t.Errorf("the port: LID %d, LMC %d", x.LID, x.LMC)
	}
	if x := m.to.To.Info; x.LID != movedLID {
		t.Errorf("the snapshot has LID %d", x.LID)
	}
	for _, n := range m.are.Switches() {
		if lft := n.Switch.LFT; lft[movedLID] != 1 || lft[movedLID+1] != 3 {
			t.Errorf("%s: %v", n.Description, lft[movedLID:movedLID+2])
		}
	}
}

func (m *told) exit(name string, to ib.PortNum) {
	was := m.to.Exit
	m.to.Exit = func(n *observed.Node) ib.PortNum {
		if n.Description == name {
			return to
		}
		return was(n)
	}
}

// stopAfter stops when so many lines have been told.
func (m *told) stopAfter(lines int) { m.to.Stopped = func() bool { return len(m.text) >= lines } }

func nodeNamed(f *observed.Fabric, name string) *observed.Node {
	for _, n := range f.Nodes {
		if n.Description == name {
			return n
		}
	}
	panic(name)
}
