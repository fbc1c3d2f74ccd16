package isolation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// expected is what two groups of ports are to each other by a look at every two ports: it
// uses nothing of the prover.
func (o *oracle) expected(in []int, a, b int, raw bool) (want Between, over, limited map[int]bool) {
	want, over, limited = Between{Verdict: Isolated}, map[int]bool{}, map[int]bool{}
	for i, p := range o.ports {
		for j, q := range o.ports {
			if i >= j || !(in[i] == a && in[j] == b || in[i] == b && in[j] == a) {
				continue
			}
			want.Pairs++
			may, worst := o.may(p, q), o.worst[[2]ib.PortGUID{p.GUID, q.GUID}]
			talks := worst == Violated
			if !shut(p) && !shut(q) {
				for base := range sharedBases(p, q) {
					if fullIn(p, base) || fullIn(q, base) {
						talks, over[base] = true, true
					} else {
						limited[base] = true
					}
				}
			}
			switch {
			case talks:
				want.Talking++
			case unreadTable(p), unreadTable(q):
				want.Unread++
			}
			for _, x := range []int{i, j} {
				if o.status[x] == Unknown || !may {
					want.Verdict = max(want.Verdict, o.status[x])
				}
			}
			if may {
				want.Allowed++
				continue
			}
			if worst == Violated {
				want.Violations++
			}
			want.Verdict = max(want.Verdict, worst, o.everyone)
			for base, v := range o.byBase {
				inP, _ := o.member(p, base)
				inQ, _ := o.member(q, base)
				if inP || inQ {
					want.Verdict = max(want.Verdict, v)
				}
			}
			sendP, getP := rawWays(p)
			sendQ, getQ := rawWays(q)
			if raw && (sendP && getQ || sendQ && getP) {
				want.Verdict = max(want.Verdict, ByEndPorts)
			}
		}
	}
	return want, over, limited
}

func sharedBases(p, q *observed.Port) map[int]bool {
	out := map[int]bool{}
	for _, x := range readable(p) {
		for _, y := range readable(q) {
			if x&0x7fff == y&0x7fff {
				out[x&0x7fff] = true
			}
		}
	}
	return out
}

func fullIn(p *observed.Port, base int) bool {
	for _, x := range readable(p) {
		if x == base|0x8000 {
			return true
		}
	}
	return false
}

func unreadTable(p *observed.Port) bool {
	return !shut(p) && (!p.InfoRead || !whole(p, int(p.Node.Info.PartitionCap)))
}

// rawWays reports whether raw packets get from an end port into the subnet, and to it.
func rawWays(p *observed.Port) (send, get bool) {
	s := facing(p)
	switch {
	case shut(p), p.Node.Info.NodeType == ib.NodeSwitch, p.Peer == nil:
		return false, false
	case s == nil:
		return true, true
	case !answered(s):
		return false, false
	}
	i := s.Node.Switch.Info
	return !i.FilterRawInboundCap || !s.Info.FilterRawInbound, !i.FilterRawOutboundCap || !s.Info.FilterRawOutbound
}

func bases(m map[int]bool) []ib.PKeyBase {
	var out []ib.PKeyBase
	for b := range m {
		out = append(out, ib.PKeyBase(b))
	}
	slices.Sort(out)
	return out
}

// TestPartiesAgainstEveryTwoPorts holds groups of ports of fabrics with faults against a look
// at every two ports, and against the proof.
func TestPartiesAgainstEveryTwoPorts(t *testing.T) {
	verdicts, talks := map[Verdict]int{}, map[string]int{}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 20))
		s := newSite()
		mutated := NewProver(s.f, s.allowed)
		for range r.IntN(12) {
			mutate(r, s, mutated)
			if r.IntN(3) == 0 {
				h := s.hosts[r.IntN(len(s.hosts))].Peer
				filterRaw(h, r.IntN(2) == 0, r.IntN(2) == 0, true, r.IntN(2) == 0)
			}
			if r.IntN(20) == 0 { // what is behind its link is not read
				h := s.hosts[r.IntN(len(s.hosts))]
				h.Reached, h.InfoRead = false, false
			}
			if h := s.hosts[r.IntN(len(s.hosts))].Peer; r.IntN(10) == 0 { // shut
				clear(h.PKeys)
			}
		}
		raw := r.IntN(2) == 0
		mode := RawIgnored
		if raw {
			mode = RawDenied
		}
		o, p := ask(s.f, s.allowed), NewProver(s.f, s.allowed, mode)
		proof := p.Proof()
		const n = 4
		in := make([]int, len(o.ports))
		for i := range in {
			in[i] = r.IntN(n+1) - 1
		}
		parties := p.Parties(n, in, raw)
		for a := range n {
			for b := a; b < n; b++ {
				want, over, limited := o.expected(in, a, b, raw)
				got := parties.Between(a, b)
				verdicts[got.Verdict]++
				talks[fmt.Sprint(got.Talking > 0, got.Talking == got.Pairs)]++
				if got.Pairs != want.Pairs || got.Talking != want.Talking || got.Unread != want.Unread || got.Allowed != want.Allowed || got.Violations != want.Violations || got.Verdict != want.Verdict || got.TooMany {
					t.Fatalf("seed %d, %d and %d: %+v, want %+v", seed, a, b, got, want)
				}
				if !slices.Equal(got.Over, bases(over)) || !slices.Equal(got.Limited, bases(limited)) {
					t.Fatalf("seed %d, %d and %d: over %v, limited in %v; want %v and %v", seed, a, b, got.Over, got.Limited, bases(over), bases(limited))
				}
				o.checkMeeting(t, in, a, b, &got)
				o.checkReach(t, parties, in, a, b)
			}
		}
		o.checkAll(t, p, proof, raw)
	}
	if len(verdicts) != 4 || len(talks) != 4 {
		t.Errorf("verdicts %v, talks %v: want all of them", verdicts, talks)
	}
}

// checkMeeting holds the witness of two groups against their tables.
func (o *oracle) checkMeeting(t *testing.T, in []int, a, b int, got *Between) {
	t.Helper()
	w := got.Witness
	if (w != nil) != (got.Talking > 0) || (got.Cause == "") != (got.Verdict == Isolated || got.Verdict == Violated) {
		t.Fatalf("%+v: want a witness where two talk, and a cause", got)
	}
	if w == nil {
		return
	}
	i, j := slices.Index(o.ports, w.From), slices.Index(o.ports, w.To)
	if i == j || in[i] != a || in[j] != b || !talks(w.From, w.To) || o.may(w.From, w.To) == (got.Violations > 0) {
		t.Fatalf("witness %v and %v of %+v", w.From, w.To, got)
	}
	if base := int(w.Key.Base()); !sharedBases(w.From, w.To)[base] || !fullIn(w.From, base) && !fullIn(w.To, base) {
		t.Fatalf("witness %v and %v do not talk over %v", w.From, w.To, w.Key)
	}
}

// checkReach holds what is said of single ports of two groups against their tables.
func (o *oracle) checkReach(t *testing.T, parties *Parties, in []int, a, b int) {
	t.Helper()
	var want [3]int
	for i, p := range o.ports {
		talking, unread, violating := 0, 0, 0
		for j, q := range o.ports {
			if in[i] != a || in[j] != b || i == j {
				continue
			}
			alone := make([]int, len(o.ports))
			alone[min(i, j)], alone[max(i, j)] = 1, 2
			two, _, _ := o.expected(alone, 1, 2, parties.raw)
			talking, unread, violating = talking+two.Talking, unread+two.Unread, violating+two.Violations
			got := parties.Two(p, q)
			if (got.Talking > 0) != (two.Talking > 0) || (got.Unread > 0) != (two.Unread > 0) || (got.Allowed > 0) != (two.Allowed > 0) || (got.Violations > 0) != (two.Violations > 0) || got.Verdict != two.Verdict {
				t.Fatalf("%v and %v: %+v, want %+v", p, q, got, two)
			}
		}
		if talking > 0 {
			want[0]++
		} else if unread > 0 {
			want[1]++
		}
		if violating > 0 {
			want[2]++
		}
	}
	talking, unread, violating := parties.Reach(a, b)
	if got := [3]int{talking, unread, violating}; got != want {
		t.Fatalf("%d of %v can talk with %d, are unread, and may not: want %v", got, a, b, want)
	}
}

// checkAll holds all ports in one group against the proof.
func (o *oracle) checkAll(t *testing.T, p *Prover, proof *Proof, raw bool) {
	t.Helper()
	all := p.Parties(1, make([]int, len(o.ports)), raw).Between(0, 0)
	two := map[[2]ib.PortGUID]bool{}
	for _, v := range proof.Violations {
		two[[2]ib.PortGUID{min(v.From, v.To), max(v.From, v.To)}] = true
	}
	if len(two) != all.Violations || (proof.Verdict == Violated) != (all.Verdict == Violated) {
		t.Fatalf("%d violations, %v; the proof has %d, %v", all.Violations, all.Verdict, len(two), proof.Verdict)
	}
	// What weighs on no two ports that are kept apart, the proof alone has.
	if all.Verdict > proof.Verdict {
		t.Fatalf("%+v, worse than the proof: %v, %v", all, proof.Verdict, proof.Reasons)
	}
}

// TestPartiesGiveUp: tables that differ too much are unknown, never fine.
func TestPartiesGiveUp(t *testing.T) {
	s := newTree(64, 18)
	for i, h := range s.hosts {
		subnettest.SetPKeys(h, ib.PKeyBase(0x100+i).Full())
		subnettest.SetPKeys(h.Peer, ib.PKeyBase(0x100+i).Full())
	}
	p := NewProver(s.f, s.allowed)
	group := make([]int, len(p.ports))
	for i := range group {
		group[i] = i % 60 // of each group about 19 kinds
	}
	few := p.Parties(60, group, false)
	clear(group)
	for i := range group {
		group[i] = min(i, 1) * (1 + i%2)
	}
	many := p.Parties(3, group, false)
	many.cells = comparisonsShared
	if got := few.Between(3, 4); got.TooMany || got.Unread != 0 {
		t.Errorf("%+v: want all compared", got)
	}
	if got := many.Between(1, 2); !got.TooMany || got.Verdict < Unknown || got.Unread == 0 || got.Pairs != len(many.ports(1))*len(many.ports(2)) {
		t.Errorf("%+v: want what was not compared unknown", got)
	}
	few.left = 3
	if got := few.Between(3, 4); !got.TooMany || got.Verdict < Unknown {
		t.Errorf("%+v: want what was not compared unknown", got)
	}
}

func (p *Parties) ports(group int) (out []*observed.Port) {
	for _, k := range p.kinds[group] {
		out = append(out, k.ports...)
	}
	return out
}

// BenchmarkParties compares groups of 11,664 hosts: 40 tenants of 18 partitions, the 729
// partitions one by one, and 40 groups that share nothing, as hostile tables could make them.
func BenchmarkParties(b *testing.B) {
	s := newBigSite()
	p := NewProver(s.f, s.allowed)
	at := map[*observed.Port]int{}
	for i, h := range s.hosts {
		at[h] = i
	}
	for name, of := range map[string]func(i int) int{
		"tenants": func(i int) int { return i % bigTenants % 40 }, "partitions": func(i int) int { return i % bigTenants }, "hostile": func(i int) int { return i % 40 },
	} {
		group, n := make([]int, len(p.ports)), 0
		for i, port := range p.ports {
			group[i] = of(at[port])
			n = max(n, group[i]+1)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				parties := p.Parties(n, group, true)
				for i := range n {
					for j := i; j < n; j++ {
						parties.Between(i, j)
					}
				}
			}
		})
	}
}

// BenchmarkNewProver is what comes before, once for each proof.
func BenchmarkNewProver(b *testing.B) {
	s := newBigSite()
	for b.Loop() {
		NewProver(s.f, s.allowed, RawDenied)
	}
}
