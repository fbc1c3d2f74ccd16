package isolation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// oracle answers the same questions as the prover by looking at every two end
// ports, entry by entry; it uses nothing of the prover.
type oracle struct {
	ports      []*observed.Port
	allowed    []observed.Partition
	violations map[meeting]bool
	exposed    map[meeting]bool
	worst      map[[2]ib.PortGUID]Verdict // of each two end ports, the lower first
	foreign    map[string]bool            // "port, index, key"
	missing    map[string]bool            // "port, key"
	unenforced map[string]bool
	status     []Verdict
	everyone   Verdict // what strangers leave of every pair
	byBase     map[int]Verdict
	pairs      map[[2]string]Verdict
	verdict    Verdict
}

// blocks of 32 entries that were read; entry values with their index.
func readable(p *observed.Port) map[int]int {
	out := make(map[int]int)
	for i, k := range p.PKeys {
		if i/32 < len(p.PKeysRead) && p.PKeysRead[i/32] && k&0x7fff != 0 {
			out[i] = int(k)
		}
	}
	return out
}

func whole(p *observed.Port, entries int) bool {
	for b := 0; b*32 < entries; b++ {
		if b >= len(p.PKeysRead) || !p.PKeysRead[b] {
			return false
		}
	}
	return entries > 0
}

func (o *oracle) member(p *observed.Port, base int) (in, full bool) {
	for _, a := range o.allowed {
		if int(a.Base) == base {
			full = full || slices.Contains(a.Full, p.GUID)
			in = in || full || slices.Contains(a.Limited, p.GUID)
		}
	}
	return in, full
}

func (o *oracle) may(a, b *observed.Port) bool {
	for _, part := range o.allowed {
		inA, fullA := o.member(a, int(part.Base))
		inB, fullB := o.member(b, int(part.Base))
		if inA && inB && (fullA || fullB) {
			return true
		}
	}
	return false
}

// talks reports whether the tables of two ports, as far as they were read, let
// them talk.
func talks(a, b *observed.Port) bool {
	for _, x := range readable(a) {
		for _, y := range readable(b) {
			if x&0x7fff == y&0x7fff && (x|y)&0x8000 != 0 {
				return true
			}
		}
	}
	return false
}

// keepsApart reports whether two limited members of a partition, a host among
// them, may not talk.
func (o *oracle) keepsApart(part observed.Partition) bool {
	for i, a := range o.ports {
		for _, b := range o.ports[i+1:] {
			inA, fullA := o.member(a, int(part.Base))
			inB, fullB := o.member(b, int(part.Base))
			hosts := a.Node.Info.NodeType != ib.NodeSwitch || b.Node.Info.NodeType != ib.NodeSwitch
			if inA && inB && !fullA && !fullB && hosts && !o.may(a, b) {
				return true
			}
		}
	}
	return false
}

// facing is the switch port before p.
func facing(p *observed.Port) *observed.Port {
	if p.Node.Info.NodeType == ib.NodeSwitch || p.Peer == nil || p.Peer.Node.Info.NodeType != ib.NodeSwitch {
		return nil
	}
	return p.Peer
}

func enforces(s *observed.Port) bool {
	i := s.Node.Switch.Info
	return i.PartitionEnforcementCap != 0 && i.InboundEnforcementCap && i.OutboundEnforcementCap &&
		s.Info.PartitionEnforcementInbound && s.Info.PartitionEnforcementOutbound
}

func answered(s *observed.Port) bool {
	return s.InfoRead && s.Node.Switch.InfoRead
}

func ask(f *observed.Fabric, allowed []observed.Partition) *oracle {
	o := &oracle{
		allowed: allowed, foreign: map[string]bool{},
		violations: map[meeting]bool{}, exposed: map[meeting]bool{}, worst: map[[2]ib.PortGUID]Verdict{},
		missing: map[string]bool{}, unenforced: map[string]bool{}, byBase: map[int]Verdict{},
		pairs: map[[2]string]Verdict{}, verdict: Isolated, everyone: Isolated,
	}
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if p.Reached && (n.Info.NodeType == ib.NodeSwitch) == (i == 0) {
				o.ports = append(o.ports, p)
			}
		}
	}
	slices.SortFunc(o.ports, func(a, b *observed.Port) int { return int(int64(a.GUID) - int64(b.GUID)) })
	for _, p := range o.ports {
		o.judge(p)
	}
	o.strangers(f)
	for i, a := range o.ports {
		for j := i + 1; j < len(o.ports); j++ {
			o.meet(a, o.ports[j])
		}
	}
	o.sum()
	return o
}

func (o *oracle) judge(p *observed.Port) {
	v := Isolated
	if !p.InfoRead || !whole(p, int(p.Node.Info.PartitionCap)) {
		v = Unknown
	}
	s := facing(p)
	switch {
	case p.Node.Info.NodeType == ib.NodeSwitch || p.Peer == nil:
	case s == nil:
		v = max(v, ByEndPorts)
		o.unenforced[p.String()] = true
	case !answered(s):
		v = Unknown
	case !enforces(s):
		v = max(v, ByEndPorts)
		o.unenforced[s.String()] = true
	case !whole(s, int(s.Node.Switch.Info.PartitionEnforcementCap)):
		v = Unknown
	}
	if shut(p) {
		v = Isolated
	}
	o.status = append(o.status, v)
	held, guarded := map[int]bool{}, map[int]bool{}
	for i, k := range readable(p) {
		in, full := o.member(p, k&0x7fff)
		held[k&0x7fff] = held[k&0x7fff] || k&0x8000 != 0
		if !in || (k&0x8000 != 0 && !full) {
			o.foreign[fmt.Sprintf("%s %d %#x", p, i, k)] = true
		}
	}
	if s != nil {
		for i, k := range readable(s) {
			guarded[k&0x7fff] = true
			if in, _ := o.member(p, k&0x7fff); !in {
				o.foreign[fmt.Sprintf("%s %d %#x", s, i, k)] = true
			}
		}
	}
	for _, a := range o.allowed {
		base := int(a.Base)
		in, full := o.member(p, base)
		key := base
		if full {
			key |= 0x8000
		}
		if has, ok := held[base]; in && whole(p, int(p.Node.Info.PartitionCap)) && (!ok || full && !has) {
			o.missing[fmt.Sprintf("%s %#x", p, key)] = true
		}
		if in && s != nil && answered(s) && enforces(s) &&
			whole(s, int(s.Node.Switch.Info.PartitionEnforcementCap)) && !guarded[base] {
			o.missing[fmt.Sprintf("%s %#x", s, key)] = true
		}
	}
}

// shut reports whether the switch port before p lets nothing pass.
func shut(p *observed.Port) bool {
	s := facing(p)
	return s != nil && answered(s) && enforces(s) && whole(s, int(s.Node.Switch.Info.PartitionEnforcementCap)) && len(readable(s)) == 0
}

func (o *oracle) strangers(f *observed.Fabric) {
	for _, n := range f.Nodes {
		for i := 1; i < len(n.Ports); i++ {
			s := &n.Ports[i]
			if !s.Reached || s.Peer != nil && (s.Peer.Reached || s.Peer.Node.Switch != nil) {
				continue
			}
			if s.InfoRead && s.Info.PortState < smp.PortArmed {
				continue
			}
			if n.Switch != nil && answered(s) && enforces(s) && whole(s, int(n.Switch.Info.PartitionEnforcementCap)) {
				for _, k := range readable(s) {
					o.byBase[k&0x7fff] = Unknown
					o.verdict = Unknown
				}
				continue
			}
			o.everyone, o.verdict = Unknown, Unknown
		}
	}
}

// usable tells the partitions that p can use when it forges its table, as far
// as a guard tells.
func (o *oracle) usable(p *observed.Port) (bases map[int]bool, guarded bool) {
	from := p
	s := facing(p)
	if s != nil && answered(s) && enforces(s) && whole(s, int(s.Node.Switch.Info.PartitionEnforcementCap)) {
		from, guarded = s, true
	}
	bases = map[int]bool{}
	for _, k := range readable(from) {
		bases[k&0x7fff] = true
	}
	return bases, guarded
}

func (o *oracle) meet(a, b *observed.Port) {
	if o.may(a, b) || shut(a) || shut(b) {
		return
	}
	for _, x := range readable(a) {
		for _, y := range readable(b) {
			if x&0x7fff == y&0x7fff && (x|y)&0x8000 != 0 {
				o.violations[meet(a.GUID, b.GUID, x)] = true
				o.worst[[2]ib.PortGUID{a.GUID, b.GUID}] = Violated
			}
		}
	}
	usableA, guardedA := o.usable(a)
	usableB, guardedB := o.usable(b)
	for base := range usableA {
		inA, _ := o.member(a, base)
		inB, _ := o.member(b, base)
		if usableB[base] && (guardedA && !inA || guardedB && !inB) {
			o.exposed[meet(a.GUID, b.GUID, base)] = true
			two := [2]ib.PortGUID{a.GUID, b.GUID}
			o.worst[two] = max(o.worst[two], ByEndPorts)
		}
	}
}

// meeting is two end ports, the lower first, and a partition.
type meeting struct {
	a, b ib.PortGUID
	base int
}

func meet(a, b ib.PortGUID, key int) meeting { return meeting{min(a, b), max(a, b), key & 0x7fff} }

func (o *oracle) sum() {
	for _, v := range o.status {
		o.verdict = max(o.verdict, v)
	}
	if len(o.exposed) > 0 {
		o.verdict = max(o.verdict, ByEndPorts)
	}
	if len(o.violations) > 0 {
		o.verdict = Violated
	}
	for _, p := range o.allowed {
		for _, q := range o.allowed {
			if p.Base < q.Base {
				o.pairs[[2]string{p.Name, q.Name}] = o.pair(int(p.Base), int(q.Base))
			}
		}
	}
}

func (o *oracle) pair(p, q int) Verdict {
	v := max(o.everyone, o.byBase[p], o.byBase[q])
	for i, a := range o.ports {
		inP, _ := o.member(a, p)
		inQ, _ := o.member(a, q)
		if inP || inQ {
			v = max(v, o.status[i])
		}
		for _, b := range o.ports {
			if in, _ := o.member(b, q); !inP || !in || a == b {
				continue
			}
			v = max(v, o.worst[[2]ib.PortGUID{min(a.GUID, b.GUID), max(a.GUID, b.GUID)}])
		}
	}
	return v
}

// check holds a proof against the oracle.
func check(t *testing.T, f *observed.Fabric, allowed []observed.Partition) *Proof {
	t.Helper()
	o, p := ask(f, allowed), Prove(f, allowed)
	if p.Verdict != o.verdict {
		t.Errorf("verdict %s, want %s: %v", p.Verdict, o.verdict, p.Reasons)
	}
	if (p.Verdict == Isolated) != (len(p.Reasons) == 0) {
		t.Errorf("%s with reasons %v", p.Verdict, p.Reasons)
	}
	got := map[[2]string]Verdict{}
	for _, pair := range p.Pairs {
		got[[2]string{pair.A, pair.B}] = pair.Verdict
		if (pair.Verdict == Isolated) != (pair.Reason == "") {
			t.Errorf("%s and %s are %s because of %q", pair.A, pair.B, pair.Verdict, pair.Reason)
		}
	}
	if !maps.Equal(got, o.pairs) {
		t.Errorf("pairs %v, want %v", got, o.pairs)
	}
	counts := map[Verdict]int{}
	for _, v := range o.pairs {
		counts[v]++
	}
	if want := (PairCounts{counts[Isolated], counts[ByEndPorts], counts[Unknown], counts[Violated]}); p.Counts.Pairs != want {
		t.Errorf("pair counts %v, want %v", p.Counts.Pairs, want)
	}
	checkWitnesses(t, "violations", p.Violations, p.Counts.Violations, o.violations)
	checkWitnesses(t, "exposed", p.Exposed, p.Counts.Exposed, o.exposed)
	checkSet(t, "foreign", p.Foreign, o.foreign, func(e Entry) string {
		return fmt.Sprintf("%s %d %#x", e.Name, e.Index, uint16(e.PKey))
	})
	checkSet(t, "missing", p.Missing, o.missing, func(m MissingKey) string {
		return fmt.Sprintf("%s %#x", m.Name, uint16(m.PKey))
	})
	met := map[string]bool{}
	for _, s := range o.ports {
		for _, a := range o.ports {
			for _, b := range o.ports {
				if a != b && a != s && b != s && !shut(s) && !shut(a) && !shut(b) && talks(s, a) && talks(s, b) && !talks(a, b) {
					met[s.String()] = true
				}
			}
		}
	}
	checkSet(t, "meeting", p.SharedPorts, met, func(m SharedPort) string { return m.Name })
	checkCaveats(t, o, p)
	checkSet(t, "unenforced", p.Unenforced, o.unenforced, func(x Finding) string { return x.Name })
	return p
}

// checkCaveats holds what a proof says of limited members against the oracle.
func checkCaveats(t *testing.T, o *oracle, p *Proof) {
	t.Helper()
	names := map[int]string{}
	for _, part := range o.allowed {
		if names[int(part.Base)] == "" && part.Base.IsValid() && o.keepsApart(part) {
			names[int(part.Base)] = fmt.Sprintf("%s (%s)", part.Name, part.Base)
		}
	}
	var want []string
	for _, base := range slices.Sorted(maps.Keys(names)) {
		want = append(want, names[base])
	}
	more := ""
	if len(want) > 3 {
		more = fmt.Sprintf(" and %d more", len(want)-3)
		want = want[:3]
	}
	got := strings.Join(p.Caveats, "\n")
	if len(want) == 0 && got != "" || len(want) > 0 && !strings.HasSuffix(got, "membership: "+strings.Join(want, ", ")+more) {
		t.Errorf("caveats %q, want %v%s", got, want, more)
	}
}

func checkSet[T any](t *testing.T, what string, list []T, want map[string]bool, name func(T) string) {
	t.Helper()
	got := map[string]bool{}
	for _, x := range list {
		got[name(x)] = true
	}
	if !maps.Equal(got, want) || len(got) != len(list) {
		t.Errorf("%s %v, want %v", what, list, want)
	}
}

func checkWitnesses(t *testing.T, what string, list []Violation, count int, want map[meeting]bool) {
	t.Helper()
	if count != len(want) {
		t.Errorf("%s: counted %d, want %d", what, count, len(want))
	}
	seen := map[meeting]bool{}
	for _, v := range list {
		m := meet(v.From, v.To, int(v.PKey))
		if !want[m] || seen[m] {
			t.Errorf("%s: witness %+v is wrong or twice", what, v)
		}
		seen[m] = true
		if v.At.Index < 0 || v.At.EndPort != v.From || v.At.PKey.Base() != v.PKey.Base() {
			t.Errorf("%s: witness %+v blames %+v", what, v, v.At)
		}
	}
	if len(list) < min(count, MaxWitnessesPerKey) {
		t.Errorf("%s: %d witnesses of %d", what, len(list), count)
	}
}
