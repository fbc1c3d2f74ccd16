package watch

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// asked lets time pass until end, and is when each place is asked.
func asked(x *Mutes, from, end time.Duration) map[observed.Place][]time.Duration {
	out := make(map[observed.Place][]time.Duration)
	for now, some := x.Next(); some && now < end; now, some = x.Next() {
		now = max(now, from)
		x.Due(now, func(at observed.Place, _ Owes) { out[at] = append(out[at], now) })
		from = now + 1
	}
	return out
}

// Who owes an answer is asked soon, and again and again: of one that answers nothing no two
// questions are further apart than muteLast, and of one that answers some no further than a share
// of the time that it has owed the rest. Questions are never closer than muteFirst.
func TestMutesAreAsked(t *testing.T) {
	for what, want := range map[Owes]int{Everything: 506, Read: 98, Write: 98} {
		var x Mutes
		const begin, end = 5 * time.Second, 5*time.Second + 10*time.Minute
		x.Add(begin, place, what)
		x.Add(begin+time.Millisecond, place, what) // which changes nothing
		last, n := begin, 0
		for _, at := range asked(&x, begin, end)[place] {
			most := max(muteFirst, (last-begin)/muteShare)
			if what == Everything {
				most = min(most, muteLast)
			}
			if wait := at - last; wait < muteFirst || wait > most+time.Millisecond {
				t.Errorf("owes %v: asked %v after the last time, %v after it fell silent; want %v to %v", what, wait, at-begin, muteFirst, most)
			}
			last, n = at, n+1
		}
		if n < want-4 || n > want+4 {
			t.Errorf("owes %v: %d questions in 10 min, want about %d", what, n, want)
		}
	}
}

// Who is entered again, as every pass does, has owed it all along: he is asked when he would
// have been.
func TestMutesEnteredAgain(t *testing.T) {
	var once, again Mutes
	once.Add(0, place, Read)
	again.Add(0, place, Read)
	for n := range 100 {
		from, end := time.Duration(n)*time.Second, time.Duration(n+1)*time.Second
		again.Add(from, place, Read)
		if want, got := asked(&once, from, end)[place], asked(&again, from, end)[place]; !slices.Equal(want, got) {
			t.Fatalf("after %v: asked at %v, want %v", from, got, want)
		}
	}
}

// Of many at once each is asked in its turn, mutesMost in muteRound at the most; who has answered
// is asked no more.
func TestManyMutes(t *testing.T) {
	r := rand.New(rand.NewPCG(need.Seed(t, 1), 1))
	var x Mutes
	var all []observed.Place
	for i := range 4 * mutesMost {
		at := observed.Place{Node: ib.NodeGUID(r.Uint64()), Port: ib.PortNum(i % 36)}
		all = append(all, at)
		x.Add(time.Duration(r.IntN(1000))*time.Microsecond, at, Owes(1+r.IntN(3)))
	}
	end := muteFirst + 4*muteRound
	rounds := make(map[time.Duration]int)
	first := asked(&x, 0, end)
	for _, at := range all {
		if len(first[at]) == 0 {
			t.Errorf("%v is not asked in %v", at, end)
		}
		for _, now := range first[at] {
			rounds[now/muteRound]++
		}
	}
	for at, n := range rounds {
		if n > 2*mutesMost {
			t.Errorf("%d questions in the %v after %v, want %d at the most in each round", n, muteRound, at*muteRound, mutesMost)
		}
	}
	x.Keep(func(at observed.Place) bool { return at.Port%2 == 0 })
	for at := range asked(&x, end, end+5*time.Second) {
		if at.Port%2 != 0 {
			t.Errorf("%v is asked, and has answered", at)
		}
	}
	if x.Keep(func(observed.Place) bool { return false }); len(asked(&x, end, time.Hour)) > 0 {
		t.Error("somebody is asked when all have answered")
	}
}
