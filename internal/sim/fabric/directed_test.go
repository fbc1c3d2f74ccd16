package fabric

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

var (
	atOrigin      = DirectedLocation{Ports: 2, In: 1, Origin: true}
	atSwitchSM    = DirectedLocation{IsSwitch: true, Ports: 36, In: 0, Origin: true}
	atSwitch      = DirectedLocation{IsSwitch: true, Ports: 36, In: 7}
	atCA          = DirectedLocation{Ports: 2, In: 1}
	atSwitchByLID = DirectedLocation{IsSwitch: true, Ports: 36, In: 7, ByLID: true}
	atCAByLID     = DirectedLocation{Ports: 2, In: 1, ByLID: true}
)

// Each row is one clause of the directed-route rules, at the sender, in the
// middle or at the end. The paths are 0, 1, 2, 3, ... and 0, 1, 2, 3, ... in
// either direction unless a row says otherwise, so that a port number is the
// hop's number.
func TestDirectedRouteRules(t *testing.T) {
	const permissive = ib.LIDPermissive
	type packet struct {
		back           bool
		pointer, count uint8
		drSLID, drDLID ib.LID
		path           map[int]byte // overrides of the path that is read
	}
	out := func(pointer, count uint8) packet { return packet{false, pointer, count, permissive, permissive, nil} }
	back := func(pointer, count uint8) packet { return packet{true, pointer, count, permissive, permissive, nil} }
	with := func(p packet, index int, port byte) packet { p.path = map[int]byte{index: port}; return p }
	from := func(p packet, lid ib.LID) packet { p.drSLID = lid; return p }
	to := func(p packet, lid ib.LID) packet { p.drDLID = lid; return p }

	tests := []struct {
		name    string
		at      DirectedLocation
		packet  packet
		want    DirectedDecision
		pointer uint8 // afterwards; not looked at when discarded
		entry   byte  // ReturnPath[pointer before] afterwards, 0 when not written
	}{
		{"first step of the originator", atOrigin, out(0, 3), DirectedDecision{Leave, 1, 0}, 1, 0},
		{"first step of a switch's own manager", atSwitchSM, with(out(0, 3), 1, 36), DirectedDecision{Leave, 36, 0}, 1, 0},
		{"first step by another port of the CA", atOrigin, with(out(0, 3), 1, 2), DirectedDecision{}, 0, 0},
		{"first step by port 0", atSwitchSM, with(out(0, 3), 1, 0), DirectedDecision{}, 0, 0},
		{"first step by a port that is not there", atSwitchSM, with(out(0, 3), 1, 37), DirectedDecision{}, 0, 0},
		{"pointer 0 from the wire at a switch", atSwitch, out(0, 3), DirectedDecision{}, 0, 0},
		{"pointer 0 from the wire at a CA", atCA, out(0, 3), DirectedDecision{}, 0, 0},
		{"pointer 0 where the LID-routed part ends", atSwitchByLID, out(0, 3), DirectedDecision{Leave, 1, 0}, 1, 0},
		{"pointer 0 where the LID-routed part ends at a CA", atCAByLID, out(0, 3), DirectedDecision{}, 0, 0},

		{"a hop in the middle", atSwitch, out(1, 3), DirectedDecision{Leave, 2, 0}, 2, 7},
		{"the last hop but one", atSwitch, out(2, 3), DirectedDecision{Leave, 3, 0}, 3, 7},
		{"a hop in the middle at a CA", atCA, out(1, 3), DirectedDecision{}, 0, 0},
		{"a hop out of port 0", atSwitch, with(out(1, 3), 2, 0), DirectedDecision{}, 0, 0},
		{"a hop out of port NumPorts", atSwitch, with(out(1, 3), 2, 36), DirectedDecision{Leave, 36, 0}, 2, 7},
		{"a hop out of port NumPorts+1", atSwitch, with(out(1, 3), 2, 37), DirectedDecision{}, 0, 0},
		{"a hop out of port 255", atSwitch, with(out(1, 3), 2, 255), DirectedDecision{}, 0, 0},

		{"the end, at a switch", atSwitch, out(3, 3), DirectedDecision{Take, 0, 0}, 4, 7},
		{"the end, at a CA", atCA, out(3, 3), DirectedDecision{Take, 0, 0}, 4, 1},
		{"no hops at all", atOrigin, out(0, 0), DirectedDecision{Take, 0, 0}, 1, 0},
		{"the end, a LID-routed part follows", atSwitch, to(out(3, 3), 9), DirectedDecision{RouteByLID, 0, 9}, 4, 7},
		{"the end at a CA, a LID-routed part follows", atCA, to(out(3, 3), 9), DirectedDecision{}, 0, 0},
		{"no hops, LID-routed from a switch", atSwitchSM, to(out(0, 0), 9), DirectedDecision{RouteByLID, 0, 9}, 1, 0},
		{"behind the LID-routed part", atCAByLID, to(out(4, 3), 9), DirectedDecision{Take, 0, 0}, 4, 0},
		{"one past the end", atSwitch, out(4, 3), DirectedDecision{Take, 0, 0}, 4, 0},
		{"two past the end", atSwitch, out(5, 3), DirectedDecision{}, 0, 0},
		{"pointer 255", atSwitch, out(255, 3), DirectedDecision{}, 0, 0},

		{"63 hops, the last", atCA, out(63, 63), DirectedDecision{Take, 0, 0}, 64, 1},
		{"63 hops, the last but one", atSwitch, with(out(62, 63), 63, 5), DirectedDecision{Leave, 5, 0}, 63, 7},
		{"64 hops at the originator", atOrigin, out(0, 64), DirectedDecision{}, 0, 0},
		{"64 hops in the middle", atSwitch, out(1, 64), DirectedDecision{}, 0, 0},
		{"64 hops at the end", atSwitch, out(64, 64), DirectedDecision{}, 0, 0},
		{"255 hops on the way back", atSwitch, back(3, 255), DirectedDecision{}, 0, 0},

		{"the answer leaves a CA", atOrigin, with(back(4, 3), 3, 1), DirectedDecision{Leave, 1, 0}, 3, 0},
		{"the answer leaves a CA by another port", atOrigin, with(back(4, 3), 3, 2), DirectedDecision{}, 0, 0},
		{"the answer leaves a switch", atSwitchSM, back(4, 3), DirectedDecision{Leave, 3, 0}, 3, 0},
		{"the answer from the wire still at its start", atSwitch, back(4, 3), DirectedDecision{}, 0, 0},
		{"the answer where its LID-routed part ends", atSwitchByLID, back(4, 3), DirectedDecision{Leave, 3, 0}, 3, 0},
		{"the answer where its LID-routed part ends at a CA", atCAByLID, back(4, 3), DirectedDecision{}, 0, 0},
		{"back, in the middle", atSwitch, back(3, 3), DirectedDecision{Leave, 2, 0}, 2, 0},
		{"back, the last switch", atSwitch, back(2, 3), DirectedDecision{Leave, 1, 0}, 1, 0},
		{"back, in the middle at a CA", atCA, back(2, 3), DirectedDecision{}, 0, 0},
		{"back out of port 0", atSwitch, with(back(3, 3), 2, 0), DirectedDecision{}, 0, 0},
		{"back out of a port that is not there", atSwitch, with(back(3, 3), 2, 37), DirectedDecision{}, 0, 0},
		{"home", atCA, back(1, 3), DirectedDecision{TakeByManager, 0, 0}, 0, 0},
		{"home at a switch", atSwitch, back(1, 3), DirectedDecision{TakeByManager, 0, 0}, 0, 0},
		{"home without hops", atOrigin, back(1, 0), DirectedDecision{TakeByManager, 0, 0}, 0, 0},
		{"a LID-routed part home follows", atSwitch, from(back(1, 3), 4), DirectedDecision{RouteByLID, 0, 4}, 0, 0},
		{"a LID-routed part home from a CA in the middle", atCA, from(back(1, 3), 4), DirectedDecision{}, 0, 0},
		{"a LID-routed answer without hops", atOrigin, from(back(1, 0), 4), DirectedDecision{RouteByLID, 0, 4}, 0, 0},
		{"home over the LID-routed part", atCAByLID, from(back(0, 3), 4), DirectedDecision{TakeByManager, 0, 0}, 0, 0},
		{"back, two past the start", atSwitchSM, back(5, 3), DirectedDecision{}, 0, 0},
		{"back, no hops, pointer 2", atSwitchSM, back(2, 0), DirectedDecision{}, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := mad.SMP{
				BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion,
				Method: mad.MethodGet, Direction: test.packet.back,
				HopPointer: test.packet.pointer, HopCount: test.packet.count,
				DrSLID: test.packet.drSLID, DrDLID: test.packet.drDLID,
			}
			path := &p.InitialPath
			if p.Direction {
				path = &p.ReturnPath
			}
			for i := range path {
				path[i] = byte(i)
			}
			for i, port := range test.packet.path {
				path[i] = port
			}
			var m [mad.Size]byte
			if err := p.Encode(&m); err != nil {
				t.Fatal(err)
			}
			if got := Direct(&m, test.at); got != test.want {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
			if test.want.Action == Discard {
				return
			}
			want := p
			want.HopPointer = test.pointer
			if test.entry != 0 {
				want.ReturnPath[p.HopPointer] = test.entry
			}
			var got mad.SMP
			if err := got.UnmarshalBinary(m[:]); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("the packet afterwards is\n%+v, want\n%+v", got, want)
			}
		})
	}
}
