package sweep

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// at is a moment so many seconds after the start, and ten times as late by the fabric.
func at(seconds int, c transact.Counts) Moment {
	d := time.Duration(seconds) * time.Second
	return Moment{Clock: time.Unix(1000, 0).Add(d), Fabric: 10 * d, Counts: c}
}

// TestSweeps: a sweep has the phases between two rests, each with its own times and packets.
func TestSweeps(t *testing.T) {
	var r PhaseRecord
	r.End(at(0, transact.Counts{})) // a rest before anything
	if got := r.Sweeps(at(0, transact.Counts{})); len(got) != 0 {
		t.Fatalf("before the first phase there are %v", got)
	}
	r.Because("a link came up")
	r.Because("and another")
	r.Begin("discover", at(1, transact.Counts{Sent: 5, Answered: 5}))
	r.Begin("prove", at(3, transact.Counts{Sent: 25, Answered: 20, Retried: 2, Extra: 1, Failed: 1}))
	discover := Phase{Name: "discover", Seconds: 2, FabricSeconds: 20, Sent: 20, Answered: 15, Repeated: 3, Lost: 1}
	got := r.Sweeps(at(4, transact.Counts{Sent: 26, Answered: 21, Retried: 2, Extra: 1, Failed: 1}))
	want := []SweepPhases{{Number: 1, Reason: "a link came up", Began: at(1, transact.Counts{}).Clock, Phases: []Phase{
		discover, {Name: "prove", Seconds: 1, FabricSeconds: 10, Sent: 1, Answered: 1},
	}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("under way:\n%+v\nwant\n%+v", got, want)
	}
	end := at(5, transact.Counts{Sent: 27, Answered: 22, Retried: 2, Extra: 1, Failed: 1})
	r.End(end)
	r.End(at(6, end.Counts))
	r.Begin("discover", at(9, end.Counts))
	got = r.Sweeps(at(9, end.Counts))
	if len(got) != 2 || got[0].Number != 2 || got[0].Reason != "" || got[0].Done || !got[1].Done {
		t.Fatalf("after a second sweep began: %+v", got)
	}
	if s := SumPhases(got[1].Phases); s.Seconds != 4 || s.Sent != 22 {
		t.Errorf("the first took %v s and %d packets, want 4 and 22: the rest after it is not its own", s.Seconds, s.Sent)
	}
	got[1].Phases[0].Name = "x"
	if r.Sweeps(at(9, end.Counts))[1].Phases[0] != discover {
		t.Error("who was told of a sweep can change it")
	}
}

// TestTake: each phase is taken once, also that during which it was taken.
func TestTake(t *testing.T) {
	var r PhaseRecord
	r.Begin("discover", at(0, transact.Counts{}))
	r.Begin("prove", at(1, transact.Counts{}))
	names := func(list []Phase) (out []string) {
		for _, p := range list {
			out = append(out, p.Name)
		}
		return out
	}
	if got := names(r.Take(at(2, transact.Counts{}))); !slices.Equal(got, []string{"discover", "prove"}) {
		t.Errorf("at first %v", got)
	}
	r.End(at(3, transact.Counts{}))
	r.Begin("plan", at(4, transact.Counts{}))
	if got := names(r.Take(at(5, transact.Counts{}))); !slices.Equal(got, []string{"plan"}) {
		t.Errorf("then %v, want plan alone", got)
	}
	if got := r.Totals(); len(got) != 2 || got[0].Name != "discover" || got[1] != (Phase{Name: "prove", Seconds: 2, FabricSeconds: 20}) {
		t.Errorf("in all %+v: want what has ended", got)
	}
}

// TestBounds: a manager that never rests, whose clocks go back and whose windows are new,
// keeps a bounded record without nonsense.
func TestBounds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	x := rand.New(rand.NewPCG(seed, 0))
	var r PhaseRecord
	begun := 0
	for range 20_000 {
		m := at(x.IntN(100), transact.Counts{Sent: x.Uint64N(100), Answered: x.Uint64N(100), Failed: x.Uint64N(9)})
		if x.IntN(200) == 0 {
			r.End(m)
			continue
		}
		begun++
		r.Because(strings.Repeat("é", x.IntN(300)))
		r.Begin(fmt.Sprint("phase ", x.IntN(5)), m)
	}
	sweeps := r.Sweeps(at(0, transact.Counts{}))
	if len(sweeps) > SweepsMax || len(r.Take(at(0, transact.Counts{}))) > PhasesMax || begun == 0 {
		t.Errorf("%d sweeps are kept", len(sweeps))
	}
	for i, s := range sweeps {
		if len(s.Phases) > PhasesMax || len(s.Reason) > PhaseReasonMax || strings.ToValidUTF8(s.Reason, "?") != s.Reason {
			t.Errorf("sweep %d: %d phases, reason %q", s.Number, len(s.Phases), s.Reason)
		}
		if i > 0 && s.Number != sweeps[i-1].Number-1 {
			t.Errorf("sweep %d comes after %d", s.Number, sweeps[i-1].Number)
		}
		for _, p := range s.Phases {
			if p.Seconds < 0 || p.FabricSeconds < 0 || p.Sent > 100*uint64(begun) {
				t.Errorf("sweep %d: %+v", s.Number, p)
			}
		}
	}
}
