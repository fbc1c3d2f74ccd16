package mastership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// party is a manager with a clock of its own.
type party struct {
	keeper *Keeper
	origin time.Duration // of its clock
	rate   float64
	cut    time.Duration // its renewals do not arrive until then; of the world's time, as what follows
	writes []span
}

type span struct{ from, until time.Duration }

func (p *party) now(world time.Duration) time.Duration {
	return p.origin + time.Duration(float64(world)*p.rate)
}

func (p *party) world(own time.Duration) time.Duration {
	return time.Duration(float64(own-p.origin) / p.rate)
}

// Whatever is lost and however late it is, and though clocks run at different rates, what one
// holder may do has ended before the next one may begin.
func TestNoTwoHoldTheRight(t *testing.T) {
	const seed, runs, steps, ttl = 17, 1000, 1000, DefaultTTL
	// How far the rates of clocks are apart, at the most: nearly as far as Margin allows. (1-apart/2)
	// / (1+apart/2) is more than 1-1/margins.
	const apart = 1 / float64(margins)
	r := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	holders := 0
	for run := range runs {
		parties := make([]*party, 3)
		for i := range parties {
			parties[i] = &party{keeper: NewKeeper(ttl), origin: time.Duration(r.Int64N(int64(time.Hour))), rate: 1 + apart/2*float64(r.IntN(3)-1)}
		}
		var record Record
		var world time.Duration
		type message struct {
			at time.Duration
			do func()
		}
		var under []message
		late := func(do func()) {
			switch r.IntN(5) {
			case 0: // it is lost
			case 1, 2:
				do()
			default:
				under = append(under, message{world + time.Duration(r.Int64N(int64(ttl))), do})
			}
		}
		written := func() { record.Version, record.TTL = record.Version+1, ttl }
		for range steps {
			world += time.Duration(r.Int64N(int64(ttl / 16)))
			slices.SortStableFunc(under, func(a, b message) int { return int(a.at - b.at) })
			for len(under) > 0 && under[0].at <= world {
				do := under[0].do
				under = under[1:]
				do()
			}
			p := parties[r.IntN(len(parties))]
			k, sent := p.keeper, p.now(world)
			late(func() {
				now := record
				late(func() { k.See(p.now(world), now) })
			})
			if r.IntN(50) == 0 {
				p.cut = world + time.Duration(r.Int64N(int64(3*ttl)))
			}
			if term := k.Term(); term != 0 {
				late(func() {
					if world >= p.cut && record.Term == term && !record.Given {
						written()
						late(func() { k.Renewed(sent, term) })
					}
				})
				if r.IntN(20) == 0 {
					k.Lost() // it is given up
					late(func() {
						if record.Term == term {
							record.Given = true
							written()
						}
					})
					if n := len(p.writes); n > 0 {
						p.writes[n-1].until = min(p.writes[n-1].until, world)
					}
				}
			} else if at, known := k.Free(); known && sent >= at {
				before, _ := k.Record()
				late(func() {
					if record.Version != before.Version {
						return
					}
					record.Term, record.Given = record.Term+1, false
					written()
					term := record.Term
					late(func() { k.Took(sent, term, before) })
				})
			}
			if g := k.Grant(); g.Term != 0 && g.Until > p.now(world) {
				if n := len(p.writes); n > 0 && p.writes[n-1].until >= world {
					p.writes[n-1].until = max(p.writes[n-1].until, p.world(g.Until))
				} else {
					p.writes = append(p.writes, span{world, p.world(g.Until)})
				}
			}
		}
		for i, p := range parties {
			holders += len(p.writes)
			for _, q := range parties[i+1:] {
				for _, a := range p.writes {
					for _, b := range q.writes {
						if a.from < b.until && b.from < a.until {
							t.Fatalf("run %d: one may write from %v until %v, another from %v until %v", run, a.from, a.until, b.from, b.until)
						}
					}
				}
			}
		}
	}
	if holders < runs {
		t.Errorf("%d times somebody might write in %d runs: the test shows nothing", holders, runs)
	}
}

// What a holder may do ends a margin before its TTL, counted from when the request was sent that
// took or renewed the record; by a renewal it never ends sooner, and that of another term, or of
// none, gives nothing.
func TestWhatAHolderGets(t *testing.T) {
	for _, ttl := range []time.Duration{MinTTL, DefaultTTL, MaxTTL} {
		const sent = time.Minute
		k := NewKeeper(ttl)
		has := func(what string, want Grant) {
			t.Helper()
			if got := k.Grant(); got != want || k.Term() != want.Term {
				t.Errorf("TTL %v, %s: %+v of term %d, want %+v", ttl, what, got, k.Term(), want)
			}
		}
		left := ttl - ttl/margins
		k.Renewed(sent, 0)
		has("a renewal of no term, held by nobody", Grant{})
		k.Renewed(sent, 7)
		has("a renewal of a term, held by nobody", Grant{})
		k.Took(sent, 7, Record{Version: 1})
		has("taken, nobody had it before", Grant{Term: 7, Until: sent + left})
		k.Renewed(sent+time.Second, 6)
		has("the renewal of an earlier term", Grant{Term: 7, Until: sent + left})
		k.Renewed(sent+time.Second, 8)
		has("the renewal of a later term", Grant{Term: 7, Until: sent + left})
		k.Renewed(sent+time.Second, 0)
		has("a renewal of no term", Grant{Term: 7, Until: sent + left})
		k.Renewed(sent+time.Second, 7)
		has("renewed", Grant{Term: 7, Until: sent + time.Second + left})
		k.Renewed(sent, 7)
		has("an earlier renewal that is answered later", Grant{Term: 7, Until: sent + time.Second + left})
		k.Lost()
		has("lost", Grant{})
		k.Renewed(sent+2*time.Second, 7)
		has("a renewal from before it was lost", Grant{})
		k.Took(sent+2*time.Second, 9, Record{Version: 5, Term: 8})
		has("taken from another", Grant{Term: 9, Since: sent + 2*time.Second, Until: sent + 2*time.Second + left})
		k.Renewed(sent+3*time.Second, 7)
		has("the renewal of its own earlier term", Grant{Term: 9, Since: sent + 2*time.Second, Until: sent + 2*time.Second + left})
		k.See(sent+3*time.Second, Record{Version: 6, Term: 9, TTL: ttl})
		has("its own record", Grant{Term: 9, Since: sent + 2*time.Second, Until: sent + 2*time.Second + left})
		k.See(sent+3*time.Second, Record{Version: 7, Term: 10, TTL: ttl})
		has("the record of another", Grant{})
	}
}

// A record that was given up, and one that nobody had, are free at once; one with a longer
// term than this manager's stands for that one.
func TestFree(t *testing.T) {
	k := NewKeeper(DefaultTTL)
	if _, known := k.Free(); known {
		t.Error("a record that was not seen is free")
	}
	for _, x := range []struct {
		r    Record
		want time.Duration
	}{
		{Record{Version: 1}, 0},
		{Record{Version: 2, Term: 1, TTL: MinTTL}, time.Second + DefaultTTL},
		{Record{Version: 3, Term: 1, TTL: 2 * time.Second}, 3 * time.Second},
		{Record{Version: 4, Term: 1, Given: true}, 0},
	} {
		k.See(time.Second, x.r)
		k.See(2*time.Second, x.r) // the same: it counts from when it was first seen
		if at, known := k.Free(); !known || at != x.want {
			t.Errorf("%+v: free at %v, want %v", x.r, at, x.want)
		}
	}
}

// After the store was rolled back a record has a lower version: it counts as it is, from
// then on, and can be taken; whoever held another one holds nothing.
func TestRolledBack(t *testing.T) {
	standby, holder := NewKeeper(DefaultTTL), NewKeeper(DefaultTTL)
	old := Record{Version: 10, Term: 1, TTL: DefaultTTL}
	for _, k := range []*Keeper{standby, holder} {
		k.See(0, Record{Version: 40, Term: 1, TTL: DefaultTTL})
	}
	holder.Took(time.Second, 2, Record{Version: 40, Term: 1})
	holder.See(time.Second, Record{Version: 41, Term: 2, TTL: DefaultTTL})
	standby.See(time.Second, Record{Version: 41, Term: 2, TTL: DefaultTTL})
	for _, k := range []*Keeper{standby, holder} {
		k.See(3*time.Second, old)
		if r, _ := k.Record(); r != old || k.Term() != 0 {
			t.Errorf("it has %+v, and term %d", r, k.Term())
		}
		if at, known := k.Free(); !known || at != 3*time.Second+DefaultTTL {
			t.Errorf("free at %v, want %v after it was seen", at, DefaultTTL)
		}
	}
}

// others are other managers that do as they are told.
type others struct {
	said             time.Duration
	all              bool
	promised         time.Duration
	asks, pings, rds int
}

func (o *others) AskOthers(time.Duration)               { o.asks++ }
func (o *others) Said() (time.Duration, bool)           { return o.said, o.all }
func (o *others) Promised() (at time.Duration, ok bool) { return o.promised, o.promised > 0 }
func (o *others) Ping()                                 { o.pings++ }
func (o *others) AskRound()                             { o.rds++ }

// driven calls a Right when it wants to be called, until a time.
func driven(t *testing.T, r *Right, o *others, now *time.Duration, until time.Duration) (changes []string) {
	t.Helper()
	for calls := 0; *now < until; calls++ {
		if c := r.Look(*now, o); c != Same {
			changes = append(changes, fmt.Sprint(c, *now))
		}
		at, some := r.At(*now)
		if !some {
			at = until
		}
		if at <= *now {
			at = *now + time.Millisecond
		}
		if calls > 10_000 {
			t.Fatal("it wants to be called without an end")
		}
		*now = min(at, until)
	}
	return changes
}

func TestRight(t *testing.T) {
	var zero Right
	if !zero.May(5) || !zero.Had() || zero.Halted() || !zero.Stands() {
		t.Error("a manager that shares no store has no right to write")
	}
	limits := transact.DefaultLimits()
	w := transact.NewWindow(limits)
	var r Right
	r.Require(w)
	o := &others{}
	leaves := func(now time.Duration) bool {
		w.Forget()
		w.Do(transact.Request{LID: 1, Method: mad.MethodSet, Attribute: smp.AttrPKeyTable}, func(transact.Reply) {})
		var p mad.SMP
		return w.Next(now, &p)
	}
	now := time.Second
	r.Set(Grant{Term: 1, Until: time.Hour})
	if r.May(now) || leaves(now) {
		t.Fatal("a standby may write")
	}
	o.promised = now // it has told the master that it is not
	r.Look(now, o)
	r.Master(now, true)
	if begins, since := r.Set(Grant{Term: 2, Since: now, Until: now + 400*time.Millisecond}); !begins || since != now+AnswerTTL {
		t.Errorf("begins %v since %v, want what was promised, %v", begins, since, now+AnswerTTL)
	}
	if r.May(now+AnswerTTL-1) || leaves(now+AnswerTTL-1) {
		t.Error("it writes before the end of its promise")
	}
	r.Set(Grant{Term: 2, Since: now, Until: now + 900*time.Millisecond})
	now += AnswerTTL
	if !r.May(now) || !leaves(now) || r.May(now+400*time.Millisecond) || leaves(now+400*time.Millisecond) {
		t.Error("it does not write from the end of its promise to the end of its right")
	}
	// The store does not answer, and the others say that they stand by, until one does not.
	for end := now + 5*time.Second; now < end; {
		r.Heard(now)
		o.said, o.all = now, true
		if changes := driven(t, &r, o, &now, now+100*time.Millisecond); len(changes) > 0 || !r.May(now) {
			t.Fatalf("%v: %v, may write %v", now, changes, r.May(now))
		}
	}
	if o.asks == 0 {
		t.Error("nobody was asked")
	}
	last, lapse := now, o.said+AnswerTTL-Margin(AnswerTTL)
	for r.May(now) {
		driven(t, &r, o, &now, now+time.Millisecond)
	}
	if now != lapse && now-lapse > time.Millisecond || leaves(now) {
		t.Errorf("it writes until %v, want %v", now-last, lapse-last)
	}
	rounds := o.rds
	changes := driven(t, &r, o, &now, now+2*Patience)
	if len(changes) != 1 || !r.Halted() || o.rds == rounds {
		t.Errorf("%v, halted %v, %d rounds: want Halted once, and rounds of questions", changes, r.Halted(), o.rds-rounds)
	}
	if !r.Deaf() || o.pings == 0 || !r.Heard(now) || r.Deaf() {
		t.Error("it has heard nothing, and is not deaf until it does")
	}
	if begins, _ := r.Set(Grant{Term: 2, Since: time.Second, Until: now + time.Second}); begins {
		t.Error("the same term begins again")
	}
	if got := r.Look(now, o); got != Resumed || !leaves(now) {
		t.Errorf("%v, want Resumed", got)
	}
	if begins, since := r.Set(Grant{Term: 3, Since: now, Until: now + time.Second}); !begins || since != now {
		t.Error("a new term does not begin")
	}
	r.Set(Grant{})
	o.said, o.all = now, true
	r.Look(now, o)
	if r.May(now) || r.Had() || leaves(now) {
		t.Error("others say that they stand by, though another has taken the right: it writes")
	}
	r.Master(now, false)
	if _, some := r.At(now); some || r.May(now) {
		t.Error("a standby has the right, or something to do")
	}
}
