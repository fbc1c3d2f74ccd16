package compare_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/lab/replica"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// goodWorld is a random fabric in order, whose tables are those of a policy:
// three tenants, and storage of which some hosts are full members, the others
// limited ones. Every host is held by its switch port.
func goodWorld(seed uint64) (*world, []observed.Partition) {
	w := newWorld(seed, 1+int(seed%4), 5+int(seed%5), 0)
	const tenants, storage = 3, 4
	allowed := []observed.Partition{{Name: "red", Base: 1}, {Name: "blue", Base: 2}, {Name: "green", Base: 3}, {Name: "storage", Base: storage}}
	w.bits(true)
	for _, n := range w.f.Nodes {
		n.Info.PartitionCap = 8
		if n.Switch != nil {
			n.Switch.Info.PartitionEnforcementCap = 8
			n.Switch.Info.InboundEnforcementCap, n.Switch.Info.OutboundEnforcementCap = true, true
		}
		for i := range n.Ports {
			if p := &n.Ports[i]; i > 0 || n.Switch != nil {
				p.PKeys, p.PKeysRead = make([]ib.PKey, 8), []bool{true}
			}
		}
	}
	for i, p := range hostsOf(w.f) {
		tenant := &allowed[i%tenants]
		tenant.Full = append(tenant.Full, p.GUID)
		keys := []ib.PKey{tenant.Base.Full(), ib.PKeyBase(storage).Limited()}
		if i%5 == 0 {
			keys[1] = ib.PKeyBase(storage).Full()
			allowed[3].Full = append(allowed[3].Full, p.GUID)
		} else {
			allowed[3].Limited = append(allowed[3].Limited, p.GUID)
		}
		copy(p.PKeys, keys)
		for j, k := range keys {
			p.Peer.PKeys[j] = k.Base().Full()
		}
	}
	return w, allowed
}

// hostsOf are the end ports that are not switches, by GUID.
func hostsOf(f *observed.Fabric) []*observed.Port {
	return slices.DeleteFunc(f.EndPorts(), func(p *observed.Port) bool { return p.Node.Switch != nil })
}

// change is one thing that is another in a good fabric.
type change struct {
	what  string
	at    *observed.Port // whose table or bit it is, nil for none
	index int            // of the entry, -1 for none
}

var changes = []string{"entry", "key bit", "enforcement bit", "route", "cable", "GUID"}

// changeOne changes one table entry, one bit, one route, one cable or one GUID.
func changeOne(r *rand.Rand, w *world, what string) change {
	hosts := hostsOf(w.f)
	h, other := hosts[r.IntN(len(hosts))], hosts[r.IntN(len(hosts))]
	port := []*observed.Port{h, h.Peer}[r.IntN(2)]
	m := change{what, port, -1}
	switch what {
	case "entry":
		m.index = r.IntN(4)
		port.PKeys[m.index] = ib.PKey(r.IntN(6)) | ib.PKey(r.IntN(2))<<15
	case "key bit":
		m.index = r.IntN(3)
		port.PKeys[m.index] ^= 1 << []int{0, 1, 2, 15}[r.IntN(4)]
	case "enforcement bit":
		m.at = h.Peer
		if info := &h.Peer.Info; r.IntN(2) == 0 {
			info.PartitionEnforcementInbound = false
		} else {
			info.PartitionEnforcementOutbound = false
		}
	case "route":
		m.at = nil
		n := w.f.Switches()[r.IntN(len(w.f.Switches()))]
		to := ib.PortNum(r.IntN(len(n.Ports)))
		if s := n.Switch; s.Info.LinearFDBCap != 0 {
			s.LFT[h.Info.LID] = to
		} else {
			i := slices.IndexFunc(s.RFT, func(e smp.RandomEntry) bool { return !e.Valid || e.LID == h.Info.LID })
			s.RFT[i] = smp.RandomEntry{LID: h.Info.LID, Valid: true, Port: to}
		}
	case "cable":
		m.at = nil
		if a, b := h.Peer, other.Peer; h != other {
			observed.Connect(h, b)
			observed.Connect(other, a)
		} else { // it is pulled
			h.Peer, a.Peer = nil, nil
			for _, p := range []*observed.Port{h, a} {
				p.Info.PortState, p.Info.PortPhysicalState = smp.PortDown, smp.PhysPolling
			}
		}
	case "GUID":
		m.at = h
		if h.GUID = 0x9999; r.IntN(2) == 0 {
			h.GUID = other.GUID
		}
	}
	return m
}

// talk is a packet over a partition from one place to another.
type talk struct {
	from, to observed.Place
	base     ib.PKeyBase
}

// whoTalks is tried with packets: who reaches whom, and to whom the packets of
// hosts come that forge their tables.
func whoTalks(t *testing.T, seed uint64, w *world) (x *trial, honest, arrived map[talk]bool) {
	x = newTrial(t, seed, w)
	for i := range x.ends {
		for j := range x.ends {
			if i != j {
				x.try(i, j, allKeys(), 0)
			}
		}
	}
	named := func(set map[meeting]bool) map[talk]bool {
		out := map[talk]bool{}
		for m := range set {
			out[talk{x.ends[m.from].Place(), x.ends[m.to].Place(), m.base}] = true
		}
		return out
	}
	return x, named(x.honest), named(x.arrived)
}

// more reports whether one set has what the other has not.
func more(now, before map[talk]bool) bool {
	for k := range now {
		if !before[k] {
			return true
		}
	}
	return false
}

// Each single change of a good fabric that alters who can talk, as packets tell,
// is found, with the change as its witness; in an untouched one nothing is.
func TestEveryChangeIsFound(t *testing.T) {
	rounds := need.Share[uint64](80, 240)
	if need.Soak() {
		rounds = 20_000
	}
	altered, against := map[string]int{}, map[string]int{}
	first := need.Seed(t, 1)
	for seed := first; seed < first+rounds; seed++ {
		w, allowed := goodWorld(seed)
		if p, cuts := isolation.Prove(w.f, allowed), reach.Cuts(w.f, 1); p.Verdict != isolation.Isolated ||
			p.Counts.Missing+p.Counts.Foreign+p.Counts.Exposed+p.Counts.Unenforced+len(cuts) > 0 {
			t.Fatalf("seed %d, untouched: %s, %+v, %v", seed, p.Verdict, p.Counts, cuts)
		}
		_, honest, arrived := whoTalks(t, seed, w)
		m := changeOne(rand.New(rand.NewPCG(seed, 3)), w, changes[seed%uint64(len(changes))])
		x, honestNow, arrivedNow := whoTalks(t, seed, w)
		proof, cuts := isolation.Prove(w.f, allowed), reach.Cuts(w.f, 1<<16)
		x.checkSound(m, proof, cuts, allowed)
		// That who forges reaches fewer is no harm, and needs no word.
		if !more(honestNow, honest) && !more(honest, honestNow) && !more(arrivedNow, arrived) && m.what != "GUID" {
			continue
		}
		altered[m.what]++
		if proof.Verdict == isolation.Isolated && proof.Counts.Missing+proof.Counts.Foreign+len(cuts) == 0 {
			t.Fatalf("seed %d, %s: who can talk has changed, and nothing is said", seed, m.what)
		}
		if x.checkFound(m, proof, allowed) {
			against[m.what]++
		}
		x.checkLost(m, honest, proof, cuts)
		x.checkForged(m, arrived, proof, allowed)
	}
	t.Logf("%d changes from seed %d; altering who can talk %v, of them against the policy %v", rounds, first, altered, against)
	for _, what := range changes {
		if altered[what] == 0 {
			t.Errorf("no change of a %s altered anything", what)
		}
	}
}

// checkSound checks that what is found is there.
func (x *trial) checkSound(m change, proof *isolation.Proof, cuts []reach.Cut, allowed []observed.Partition) {
	x.t.Helper()
	if m.what == "GUID" {
		return // the names of places are those that have changed
	}
	place := map[ib.PortGUID]int{}
	for i, p := range x.ends {
		place[p.GUID] = i
	}
	for _, v := range proof.Violations {
		if v.Note == "" && !x.honest[meeting{place[v.From], place[v.To], v.PKey.Base()}] {
			x.t.Fatalf("seed %d, %s: no packet gets through, and it is a violation: %+v", x.seed, m.what, v)
		}
		if v.At.Node != m.at.Node.GUID() || v.At.Port != m.at.Num || v.At.Index != m.index {
			x.t.Fatalf("seed %d, %s at %s index %d: the witness is %+v", x.seed, m.what, m.at, m.index, v.At)
		}
	}
	for _, c := range cuts {
		a, b := x.ends[place[c.From]], x.ends[place[c.To]]
		if end := x.compare(a, b, reach.Packet{PKey: c.PKey}); string(end) != c.Disposition.String() {
			x.t.Fatalf("seed %d, %s: cut %+v, and the packet ends as %s", x.seed, m.what, c, end)
		}
		hops := x.r.Journey().Hops
		if last := hops[len(hops)-1]; last.Node != c.Node {
			x.t.Fatalf("seed %d, %s: cut %+v, and the packet ends at node %s", x.seed, m.what, c, last.Node)
		}
	}
}

// checkFound checks that every pair that talks against the policy is a
// violation, and that its way is that of the packet.
func (x *trial) checkFound(m change, proof *isolation.Proof, allowed []observed.Partition) (any bool) {
	x.t.Helper()
	for talk := range x.honest {
		a, b := x.ends[talk.from], x.ends[talk.to]
		if may(allowed, a, b) {
			continue
		}
		any = true
		if proof.Verdict != isolation.Violated && !(m.what == "GUID" && proof.Verdict == isolation.Unknown) {
			x.t.Fatalf("seed %d, %s: %s and %s talk, and it is %s", x.seed, m.what, a, b, proof.Verdict)
		}
		i := slices.IndexFunc(proof.Violations, func(v isolation.Violation) bool {
			return v.PKey.Base() == talk.base && (v.From == a.GUID && v.To == b.GUID || v.From == b.GUID && v.To == a.GUID)
		})
		if i < 0 && proof.Counts.Violations == len(proof.Violations) && m.what != "GUID" {
			x.t.Fatalf("seed %d, %s: %s and %s talk over %s, and are not listed", x.seed, m.what, a, b, talk.base)
		}
		if i < 0 || proof.Violations[i].From != a.GUID || m.what == "GUID" {
			continue
		}
		v := proof.Violations[i]
		x.compare(a, b, reach.Packet{PKey: v.PKey})
		hops := x.r.Journey().Hops
		if x.r.Ended() != replica.Delivered || v.Note != "" {
			continue
		}
		if got, want := fmt.Sprint(ways(v.Path)), fmt.Sprint(journey(hops)); got != want {
			x.t.Fatalf("seed %d, %s: the witness goes %s, the packet %s", x.seed, m.what, got, want)
		}
	}
	return any
}

// checkLost checks that every pair that talked and talks no more is cut, or
// lacks a key that is listed.
func (x *trial) checkLost(m change, before map[talk]bool, proof *isolation.Proof, cuts []reach.Cut) {
	x.t.Helper()
	if m.what == "GUID" {
		return
	}
	now := map[[2]observed.Place]bool{}
	at := map[observed.Place]*observed.Port{}
	for _, p := range x.ends {
		at[p.Place()] = p
	}
	for t := range x.honest {
		now[[2]observed.Place{x.ends[t.from].Place(), x.ends[t.to].Place()}] = true
	}
	for t := range before {
		if now[[2]observed.Place{t.from, t.to}] {
			continue
		}
		a, b := at[t.from], at[t.to]
		cut := slices.ContainsFunc(cuts, func(c reach.Cut) bool { return c.From == a.GUID && c.To == b.GUID })
		missing := slices.ContainsFunc(proof.Missing, func(k isolation.MissingKey) bool {
			return k.EndPort == a.GUID || k.EndPort == b.GUID
		})
		if !cut && !missing {
			x.t.Fatalf("seed %d, %s: %s does not reach %s any more, and nothing is said", x.seed, m.what, a, b)
		}
	}
}

// checkForged checks that who can be reached by forging and could not before is
// exposed, or listed as not enforced, where the change was made.
func (x *trial) checkForged(m change, before map[talk]bool, proof *isolation.Proof, allowed []observed.Partition) {
	x.t.Helper()
	if m.what == "GUID" || m.what == "cable" {
		return
	}
	for t := range x.arrived {
		a, b := x.ends[t.from], x.ends[t.to]
		if before[talk{a.Place(), b.Place(), t.base}] || may(allowed, a, b) || a.Node.Switch != nil {
			continue
		}
		at := func(p isolation.Place) bool { return p.Node == m.at.Node.GUID() && p.Port == m.at.Num }
		found := slices.ContainsFunc(proof.Exposed, func(v isolation.Violation) bool { return at(v.At.Place) && v.At.Index == m.index }) ||
			slices.ContainsFunc(proof.Unenforced, func(f isolation.Finding) bool { return at(f.Place) }) ||
			slices.ContainsFunc(proof.Foreign, func(e isolation.Entry) bool { return at(e.Place) && e.Index == m.index })
		if !found {
			x.t.Fatalf("seed %d, %s at %s index %d: forged packets come from %s to %s over %s, and nothing is said of it: %+v",
				x.seed, m.what, m.at, m.index, a, b, t.base, proof.Counts)
		}
	}
}

type step struct {
	node    ib.NodeGUID
	in, out ib.PortNum
}

func ways(path []isolation.Hop) (out []step) {
	for _, h := range path {
		out = append(out, step{h.Node, h.In, h.Out})
	}
	return out
}

func journey(hops []replica.Hop) (out []step) {
	for _, h := range hops {
		out = append(out, step{h.Node, h.In, h.Out})
	}
	return out
}
