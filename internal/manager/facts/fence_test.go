package facts

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// pair is switch 1 with host 2 at port 1, something unknown at port 2, and a cable to
// switch 3 at port 3. It cannot check keys.
func pair() (f *observed.Fabric, sw *observed.Node) {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo, b.GUID = 8, smp.SwitchInfo{}, 1
	sw = b.Switch(3, "")
	b.GUID = 2
	b.Host(sw, "")
	b.GUID = 3
	subnettest.Cable(&sw.Ports[3], &b.Switch(1, "").Ports[1])
	sw.Ports[2].Info.PortState, sw.Ports[2].Info.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
	return b.Fabric, sw
}

func TestCanFence(t *testing.T) {
	f, sw := pair()
	host := &f.Node(2).Ports[1]
	for _, x := range []struct {
		name string
		p    *observed.Port
		self *observed.Port
		want bool
	}{
		{"before a host", &sw.Ports[1], nil, true},
		{"before the manager", &sw.Ports[1], host, false},
		{"before who is unknown", &sw.Ports[2], host, true},
		{"before a switch", &sw.Ports[3], host, false},
		{"a host's own", host, nil, false},
		{"port 0", &sw.Ports[0], nil, false},
		{"out of sight", nil, host, true},
	} {
		if got := CanFence(x.p, x.self); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

func TestSet(t *testing.T) {
	f, sw := pair()
	at := sw.Ports[1].Place()
	s := FenceSet{at: RoomReason + ": 3 of 2"}
	if !s.Has(&sw.Ports[1]) || !s.Has(&f.Node(2).Ports[1]) || s.Has(&sw.Ports[3]) || s.Has(&sw.Ports[0]) {
		t.Error("the port and who is behind it are fenced, and nobody else")
	}
	if s.Expels(at) || !(FenceSet{at: "another reason"}).Expels(at) || s.Expels(sw.Ports[2].Place()) {
		t.Error("whose table is too small is a member as soon as it fits; for any other reason nobody is")
	}
	open := FenceSet{sw.Ports[2].Place(): "why"}
	q := &sw.Ports[2]
	if open.Open(f) != 1 || open.IsShutting(q) {
		t.Error("who is unknown passes a port that does not check keys")
	}
	sw.Switch.InfoRead = true
	sw.Switch.Info = smp.SwitchInfo{PartitionEnforcementCap: 8, InboundEnforcementCap: true, OutboundEnforcementCap: true}
	q.Info.PartitionEnforcementInbound, q.Info.PartitionEnforcementOutbound = true, true
	q.PKeys, q.PKeysRead = []ib.PKey{0x8010}, []bool{true}
	if !open.IsShutting(q) || open.IsShut(q) || open.Open(f) != 0 {
		t.Errorf("it checks keys and holds one: shutting %v, shut %v, %d open", open.IsShutting(q), open.IsShut(q), open.Open(f))
	}
	if q.PKeys[0] = 0; !open.IsShut(q) {
		t.Error("it checks keys and holds none")
	}
	if open.IsShutting(nil) || open.IsShut(nil) {
		t.Error("no port is shut")
	}
}

// Fences come and go by the list of cables, and the set that an edit began with
// stays as it is.
func TestHoldToList(t *testing.T) {
	f, sw := pair()
	sw.Ports[2].Stranger = &observed.Stranger{Why: errors.New(CableReason + ": who"), Undeclared: true}
	before := FenceSet{sw.Ports[1].Place(): CableReason + ": earlier", sw.Ports[3].Place(): "a person says so"}
	x := FenceEdit{Fabric: f, Set: before}
	x.HoldToList()
	want := FenceSet{sw.Ports[2].Place(): x.Set[sw.Ports[2].Place()], sw.Ports[3].Place(): "a person says so"}
	// Without a list nothing is undeclared for long: the fence that came is lifted.
	delete(want, sw.Ports[2].Place())
	if d := cmp.Diff(want, x.Set); d != "" {
		t.Errorf("without a list (-want +got)\n%s", d)
	}
	if len(before) != 2 {
		t.Errorf("the set has changed: %v", before)
	}
	var lifted, came int
	for _, c := range x.Changes {
		if c.Lifted {
			lifted++
		} else {
			came++
		}
		if c.Name == "" || c.Reason == "" {
			t.Errorf("%+v: want a name and a reason", c)
		}
	}
	if lifted != 2 || came != 1 {
		t.Errorf("changes %+v", x.Changes)
	}
}

func TestHoldToRoom(t *testing.T) {
	f, sw := pair()
	at, gone := sw.Ports[1].Place(), observed.Place{Node: 9, Port: 1}
	x := FenceEdit{Fabric: f, Set: FenceSet{gone: RoomReason + ": before"}}
	short := []Fence{{At: at, Reason: "3 of 2"}}
	x.HoldToRoom(short)
	x.HoldToRoom(short)
	if d := cmp.Diff(FenceSet{at: RoomReason + ": 3 of 2", gone: RoomReason + ": before"}, x.Set); d != "" || len(x.Changes) != 1 {
		t.Errorf("changes %+v (-want +got)\n%s", x.Changes, d)
	}
	x.HoldToRoom(nil)
	if d := cmp.Diff(FenceSet{gone: RoomReason + ": before"}, x.Set); d != "" {
		t.Errorf("it fits; of who is out of sight nothing is known (-want +got)\n%s", d)
	}
}

// A fence that the list of cables put stands as long as something may be behind the port that is
// not on the list: it goes when what is there is on it, or when the link is down. A link that is
// up with nobody known behind it, and a switch that is not there, keep theirs; fences for other
// reasons are not the list's.
func TestListLiftsNothingBehindALinkThatIsUp(t *testing.T) {
	for _, x := range []struct {
		name   string
		port   ib.PortNum
		change func(p *observed.Port)
		reason string
		stands bool
	}{
		{"the link is up and nobody is known", 2, func(*observed.Port) {}, CableReason, true},
		{"the link is down", 2, func(p *observed.Port) { p.Info.PortState = smp.PortDown }, CableReason, false},
		{"something undeclared is there", 2, func(p *observed.Port) {
			p.Info.PortState, p.Stranger = smp.PortDown, &observed.Stranger{Why: errors.New(CableReason), Undeclared: true}
		}, CableReason, true},
		{"who is there is on the list", 1, func(*observed.Port) {}, CableReason, false},
		{"who is there is fenced for another reason", 1, func(*observed.Port) {}, "a person says so", true},
		{"the link is down, fenced for another reason", 2, func(p *observed.Port) { p.Info.PortState = smp.PortDown }, RoomReason, true},
	} {
		f, sw := pair()
		p := &sw.Ports[x.port]
		x.change(p)
		e := FenceEdit{Fabric: f, Cables: &cables.List{}, Set: FenceSet{p.Place(): x.reason, {Node: 99, Port: 1}: CableReason}}
		e.HoldToList()
		if _, stands := e.Set[p.Place()]; stands != x.stands || (len(e.Changes) == 0) != x.stands {
			t.Errorf("%s: stands %v, want %v; changes %+v", x.name, stands, x.stands, e.Changes)
		}
		if _, stands := e.Set[observed.Place{Node: 99, Port: 1}]; !stands {
			t.Errorf("%s: a fence at a switch that is not there is lifted", x.name)
		}
	}
}

// Whatever a fence is lifted for: where the list of cables asks for one, that comes instead.
func TestLiftLeavesTheListsFence(t *testing.T) {
	for _, undeclared := range []bool{false, true} {
		f, sw := pair()
		p := &sw.Ports[2]
		p.Stranger = &observed.Stranger{Why: errors.New(CableReason + ": who"), Undeclared: undeclared}
		e := FenceEdit{Fabric: f, Cables: &cables.List{}, Set: FenceSet{p.Place(): "a person says so"}}
		e.Lift(p.Place(), "no more")
		if reason, stands := e.Set[p.Place()]; stands != undeclared || stands && !strings.HasPrefix(reason, CableReason) {
			t.Errorf("undeclared %v: %q", undeclared, reason)
		}
		e.HoldToRoom([]Fence{{At: p.Place(), Reason: "3 of 2"}})
		if reason := e.Set[p.Place()]; strings.HasPrefix(reason, RoomReason) == undeclared {
			t.Errorf("undeclared %v: a table that is too small fences for %q", undeclared, reason)
		}
	}
}

// List and Places are in order, and name ports as the fabric does, or by their place.
func TestListInOrder(t *testing.T) {
	f, sw := pair()
	s := FenceSet{{Node: 99, Port: 1}: "far", sw.Ports[2].Place(): "two", sw.Ports[1].Place(): "one"}
	want := []Fence{
		{sw.Ports[1].Place(), sw.Ports[1].String(), "one"}, {sw.Ports[2].Place(), sw.Ports[2].String(), "two"},
		{observed.Place{Node: 99, Port: 1}, observed.Place{Node: 99, Port: 1}.String(), "far"},
	}
	if d := cmp.Diff(want, s.List(f)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A table that is large enough lifts the fences that stood for its size, and no others.
func TestRoomLiftsItsOwnFencesOnly(t *testing.T) {
	f, sw := pair()
	own, listed, person := sw.Ports[1].Place(), sw.Ports[2].Place(), sw.Ports[3].Place()
	x := FenceEdit{Fabric: f, Set: FenceSet{own: RoomReason + ": 3 of 2", listed: CableReason, person: "a person says so"}}
	x.HoldToRoom(nil)
	if d := cmp.Diff(FenceSet{listed: CableReason, person: "a person says so"}, x.Set); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	x.HoldToRoom([]Fence{{At: listed, Reason: "3 of 2"}})
	if x.Set[listed] != CableReason {
		t.Errorf("a table that is too small takes the place of %q: %q", CableReason, x.Set[listed])
	}
}
