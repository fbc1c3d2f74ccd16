package mastership_test

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/ibwarden/ibwarden/ib/smp"
)

func soak() bool { return os.Getenv("IBWARDEN_SOAK") != "" }

// Room for a search that does not come to its end, in CI and in a soak.
const (
	room     = 4_000
	roomSoak = 400_000
)

// look searches, and fails with the trace of what it finds.
func look(t *testing.T, s setup, room int) *search {
	t.Helper()
	r := run(&s, room)
	t.Log(r)
	if r.broken != "" {
		t.Error("found")
	}
	return r
}

// single are the things that may go wrong, once each.
var single = []budget{
	{}, {lose: 1}, {double: 1}, {delay: 1}, {kill: 1, start: 1}, {pause: 1}, {cut: 1}, {commit: 1}, {order: 1},
}

// TestTwoManagers: whatever goes wrong once, in any order with all else, no property
// breaks: all states there are, but for one search that is done in full in a soak.
func TestTwoManagers(t *testing.T) {
	for _, named := range []bool{true, false} {
		for _, priorities := range [][]uint8{{0, 0}, {0, 1}} {
			for i, left := range single {
				if !soak() && named && i > 0 && priorities[1] == 0 {
					continue // as with the other priorities, when both begin at once
				}
				s := setup{name: "two managers", kinds: []kind{ours, ours}, priorities: priorities, again: []uint8{2, 0}, named: named, left: left}
				most := 0
				if named && left.cut > 0 && !soak() {
					most = 2 * room // 48,000 states
				}
				if r := look(t, s, most); !r.whole && most == 0 {
					t.Errorf("%v: not all states", &s)
				}
			}
		}
	}
}

// TestTwoFaults is TestTwoManagers for any two things, and for more of them at once, to the
// depth that there is room for.
func TestTwoFaults(t *testing.T) {
	several := []budget{{lose: 1, pause: 1, kill: 1, start: 1, commit: 1}}
	if soak() {
		for i, a := range single[1:] {
			for _, b := range single[1+i:] {
				several = append(several, a.and(b))
			}
		}
	} else {
		several = append(several, budget{lose: 2}, budget{pause: 1, commit: 1}, budget{order: 1, pause: 1})
	}
	for _, named := range []bool{true, false} {
		for _, left := range several {
			look(t, setup{name: "two managers", kinds: []kind{ours, ours}, priorities: []uint8{1, 0}, named: named, left: left}, space(1, 4))
		}
	}
}

// space is a share of the room that there is.
func space(n, of int) int {
	if soak() {
		return roomSoak * n / of
	}
	return room * n / of
}

// TestThreeManagers: three managers, to the depth that there is room for. In CI half of
// what may go wrong is searched with named managers, half where every manager counts.
func TestThreeManagers(t *testing.T) {
	for _, named := range []bool{true, false} {
		for i, left := range []budget{{}, {lose: 1}, {kill: 1, start: 1}, {pause: 1}, {order: 1}, {cut: 2}} {
			if !soak() && named != (i%2 == 0) {
				continue
			}
			s := setup{name: "three managers", kinds: []kind{ours, ours, ours}, priorities: []uint8{0, 1, 1}, named: named, left: left}
			look(t, s, space(1, 1))
		}
	}
}

// TestBesideOpenSM: managers that are listed and behave as OpenSM does, higher and lower.
func TestBesideOpenSM(t *testing.T) {
	for _, named := range []bool{true, false} {
		for _, priorities := range [][]uint8{{0, 1}, {1, 0}} {
			for _, left := range single[:7] {
				s := setup{name: "one of ours and an OpenSM", kinds: []kind{ours, openSM}, priorities: priorities, named: named, left: left}
				look(t, s, space(1, 1))
			}
		}
		for _, left := range []budget{{}, {kill: 1, start: 1}} {
			s := setup{name: "two of ours and an OpenSM", kinds: []kind{ours, ours, openSM}, priorities: []uint8{0, 1, 2}, named: named, left: left}
			look(t, s, space(1, 2))
		}
	}
}

// TestBesideARogue: a manager of the highest priority that nobody named, which sends every
// control packet to anybody in anybody's name, changes nothing.
func TestBesideARogue(t *testing.T) {
	for _, left := range []budget{{forge: 1}, {forge: 2}, {forge: 1, kill: 1, start: 1}} {
		for _, meek := range []bool{false, true} {
			s := setup{name: "one of ours and a rogue", kinds: []kind{ours, rogue}, priorities: []uint8{0, 15}, named: true, meek: meek, left: left}
			look(t, s, space(1, 2))
			s.name, s.kinds, s.priorities = "two of ours and a rogue", []kind{ours, ours, rogue}, []uint8{0, 1, 15}
			look(t, s, space(1, 1))
		}
	}
}

// TestFaultsAreFound: each property can break, and the search finds how. Every fault is one
// that the managers or the store could have.
func TestFaultsAreFound(t *testing.T) {
	both, three := []kind{ours, ours}, []kind{ours, ours, rogue}
	two, higher := []uint8{0, 0}, []uint8{0, 1}
	back := budget{kill: 1, start: 1}
	for _, c := range []struct {
		wrong wrong
		setup setup
		want  string
	}{
		{mastersUnseen, setup{kinds: both, priorities: higher, left: back, now: true}, "2 managers write as if they were alone"},
		{mastersUnseen, setup{kinds: both, priorities: higher, left: back}, "it may never end that A does not stand by"},
		{othersFirst, setup{kinds: both, priorities: two}, "it may never end that A is not master"},
		{patience, setup{kinds: both, priorities: two, left: budget{kill: 1}}, "agreement may take 10"},
		{endUnseen, setup{kinds: both, priorities: higher, left: back, now: true}, "2 managers write as if they were alone"},
		{stepsDownEarly, setup{kinds: both, priorities: higher, left: back, now: true}, "nobody is master, and nothing has gone wrong"},
		{everybodyCounts, setup{kinds: three, priorities: []uint8{0, 0, 15}, meek: true, now: true}, "to C, which it does not trust"},
		{everybodyCounts, setup{kinds: three, priorities: []uint8{0, 0, 15}}, "it may never end that"},
		{everybodyCounts, setup{kinds: three, priorities: []uint8{0, 0, 15}, left: budget{forge: 1}, now: true}, "DISABLE"},
		{writesOn, setup{kinds: both, priorities: higher, left: back, now: true}, "A writes, and is not master"},
		{epochKept, setup{kinds: both, priorities: two, left: budget{pause: 1}, now: true}, "2 services have the store with epoch 1"},
		{epochsUncompared, setup{kinds: both, priorities: two, left: budget{pause: 1, commit: 1}, now: true}, "the store takes a transaction of A with epoch 1, and B has acquired it since"},
		{storeOnce, setup{kinds: both, priorities: two, left: budget{pause: 1}}, "is master, and its service has not the store"},
	} {
		s := c.setup
		s.name, s.named, s.wrong = c.wrong.String(), true, c.wrong
		r := run(&s, 200_000)
		if testing.Verbose() {
			t.Log(r)
		}
		if !strings.Contains(r.broken, c.want) || len(r.trace) < 3 {
			t.Errorf("%v: found %q after %d moves, want %q", c.wrong, r.broken, len(r.trace)-1, c.want)
		}
	}
}

// TestEveryFieldIsPartOfTheState: two worlds that differ in one field of an engine are two
// states, whatever the field is called. An ActCount counts only as others remember it.
func TestEveryFieldIsPartOfTheState(t *testing.T) {
	w := begin(&setup{kinds: []kind{ours, ours}, priorities: []uint8{0, 0}, named: true})
	var scratch []byte
	before := w.key(&scratch)
	kinds := map[leafKind]int{}
	for _, l := range leaves {
		kinds[l.kind]++
		v := w.copy()
		f := unsafe.Add(unsafe.Pointer(&v.nodes[0].engine), l.offset)
		switch l.kind {
		case deadline:
			*(*int64)(f) = int64(v.time + 2*interval)
		case about:
			(*smp.SMInfo)(f).Priority++
		case text:
			*(*string)(f) = "because"
		case plain:
			*(*byte)(f) ^= 1
		default:
			continue
		}
		if v.key(&scratch) == before {
			t.Errorf("the field at byte %d of election.Engine does not count", l.offset)
		}
	}
	if kinds[count] != 1 || kinds[deadline] < 2 || kinds[about] < 3 || kinds[plain] < 8 {
		t.Errorf("fields by kind: %v: not those of an engine", kinds)
	}
	v := w.copy()
	v.nodes[0].engine.Act(7)
	if v.key(&scratch) != before {
		t.Error("an ActCount that nobody has seen counts")
	}
}
