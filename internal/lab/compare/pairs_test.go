package compare_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/lab/compare"
	"github.com/ibwarden/ibwarden/internal/lab/replica"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// pairsWanted is how many ordered pairs of end ports are tried.
func pairsWanted() int {
	if need.Soak() {
		return 10_000_000
	}
	return need.Share(20_000, 60_000)
}

// allKeys are all that anybody in a world holds.
func allKeys() []ib.PKey {
	var out []ib.PKey
	for base := ib.PKey(1); base < bases; base++ {
		out = append(out, base, base|0x8000)
	}
	return out
}

// trial is a random fabric with the packets that are sent in it.
type trial struct {
	t    *testing.T
	seed uint64
	w    *world
	r    *replica.Replica
	ends []*observed.Port
	buf  []byte
	mad  [mad.Size]byte

	packets             int
	violations, exposed int // that were counted both ways
	seen                map[reach.Disposition]int
	// honest are the pairs, by place in ends, and partitions over which a packet
	// arrives that the sender's adapter lets go.
	honest map[meeting]bool
	// arrived are those over which a packet of any host, forging or not, comes
	// to a host, or is taken by port 0 of a switch.
	arrived map[meeting]bool
}

type meeting struct {
	from, to int
	base     ib.PKeyBase
}

func newTrial(t *testing.T, seed uint64, w *world) *trial {
	r, err := replica.Build(w.f)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if g := r.Gaps(); len(g) > 0 {
		t.Fatalf("seed %d: %+v", seed, g[0])
	}
	return &trial{t: t, seed: seed, w: w, r: r, ends: w.f.EndPorts(), seen: map[reach.Disposition]int{}, honest: map[meeting]bool{}, arrived: map[meeting]bool{}}
}

// try sends a packet with each key from a to b: by a's adapter where a's table
// has the key, and as a host that forges it otherwise. One packet more has
// another service.
func (x *trial) try(i, j int, keys []ib.PKey, sl ib.SL) {
	a, b := x.ends[i], x.ends[j]
	for _, k := range keys {
		p := reach.Packet{PKey: k, SL: sl}
		end, m := replica.End(""), meeting{i, j, k.Base()}
		if !slices.Contains(a.PKeys, k) {
			end = x.forge(a, b, p)
		} else if end = x.compare(a, b, p); end == replica.Delivered {
			x.honest[m] = true
		}
		if end == replica.Delivered || end == replica.DestinationKey && b.Node.Switch == nil {
			x.arrived[m] = true
		}
	}
	n := i*len(x.ends) + j
	x.compare(a, b, reach.Packet{Service: []reach.Service{reach.RC, reach.UC, reach.RD, reach.Raw}[n%4], PKey: keys[n/4%len(keys)], SL: sl})
}

func (x *trial) compare(a, b *observed.Port, p reach.Packet) replica.End {
	if err := x.r.Send(a.Place(), b.Place(), packetOf(p)); err != nil {
		x.t.Fatalf("seed %d: %s to %s, %s over %s, SL %d: %v", x.seed, a, b, p.Service, p.PKey, p.SL, err)
	}
	x.judge(a, b, p, false)
	return x.r.Ended()
}

func packetOf(p reach.Packet) replica.Packet {
	service := map[reach.Service]replica.Service{
		reach.UD: replica.UD, reach.RC: replica.RC, reach.UC: replica.UC, reach.RD: replica.RD, reach.Raw: replica.Raw,
	}[p.Service]
	return replica.Packet{Service: service, PKey: p.PKey, SL: p.SL}
}

// forge puts a packet on the wire whatever a's table and state are. Port 0 of a
// switch and a port without a cable have no wire to put it on.
func (x *trial) forge(a, b *observed.Port, p reach.Packet) replica.End {
	lane := ib.VL(0)
	if t, read := a.SLToVL[0]; read {
		lane = t.VLs[p.SL]
	}
	if a.Node.Switch != nil || !a.IsUp() || int(lane) >= smp.DataVLs(a.Info.OperationalVLs) {
		return replica.SourceKey
	}
	m := packet.MADPacket{QP: ib.QP1, SLID: a.Info.LID, DLID: b.Info.LID, SL: p.SL, VL: lane, PKey: p.PKey, MAD: x.mad[:]}
	var err error
	if x.buf, err = m.AppendBinary(x.buf[:0]); err != nil {
		x.t.Fatal(err)
	}
	if err := x.r.Forge(a.Place(), b.Place(), x.buf); err != nil {
		x.t.Fatalf("seed %d: %s to %s over %s: %v", x.seed, a, b, p.PKey, err)
	}
	// The host's own port is what the host says it is.
	was := *a
	a.PKeys, a.PKeysRead = []ib.PKey{p.PKey}, []bool{true}
	a.Info.PortState, a.Info.LID = smp.PortActive, 0
	x.judge(a, b, p, true)
	*a = was
	return x.r.Ended()
}

func (x *trial) judge(a, b *observed.Port, p reach.Packet, forged bool) {
	ends, got := reach.Ends(a, b, p), x.r.Ended()
	x.packets++
	x.seen[ends]++
	if ends.String() != string(got) {
		want, j := reach.Follow(a, b, p), x.r.Journey()
		if d := compare.Compare(&want, &j); d != nil {
			x.t.Fatalf("seed %d: %s to %s, %s over %s, SL %d, forged %v: %q", x.seed, a, b, p.Service, p.PKey, p.SL, forged, d)
		}
	}
}

// proofs holds what isolation says beside the packets that arrived: against a
// policy in which each partition has some ports.
func (x *trial) proofs(allowed []observed.Partition) {
	x.t.Helper()
	proof := isolation.Prove(x.w.f, allowed)
	place := map[ib.PortGUID]int{}
	for i, p := range x.ends {
		place[p.GUID] = i
	}
	against := 0
	for m := range x.honest {
		if !may(allowed, x.ends[m.from], x.ends[m.to]) {
			against++
		}
	}
	if (against > 0) && proof.Verdict != isolation.Violated {
		x.t.Fatalf("seed %d: %d pairs talk against the policy, and it is %s", x.seed, against, proof.Verdict)
	}
	for _, v := range proof.Violations {
		from, to := place[v.From], place[v.To]
		if may(allowed, x.ends[from], x.ends[to]) {
			x.t.Fatalf("seed %d: %s and %s may talk, and are a violation", x.seed, v.From, v.To)
		}
		p := reach.Packet{PKey: v.PKey}
		if v.Note != "" && x.compare(x.ends[from], x.ends[to], p) == replica.Delivered {
			x.t.Fatalf("seed %d: %s reaches %s over %s, and the note says %q", x.seed, v.From, v.To, v.PKey, v.Note)
		}
	}
}

// may is what a policy says of two ports.
func may(allowed []observed.Partition, a, b *observed.Port) bool {
	for _, part := range allowed {
		in := func(p *observed.Port, list []ib.PortGUID) bool {
			for _, g := range list {
				if g == p.GUID {
					return true
				}
			}
			return false
		}
		fullA, fullB := in(a, part.Full), in(b, part.Full)
		if fullA && (fullB || in(b, part.Limited)) || fullB && in(a, part.Limited) {
			return true
		}
	}
	return false
}

// somePolicy gives each partition some ports.
func (x *trial) somePolicy() []observed.Partition {
	var out []observed.Partition
	for base := ib.PKeyBase(1); base < bases; base++ {
		part := observed.Partition{Name: fmt.Sprint(base), Base: base}
		for _, p := range x.ends {
			switch x.w.r.IntN(3) {
			case 0:
				part.Full = append(part.Full, p.GUID)
			case 1:
				part.Limited = append(part.Limited, p.GUID)
			}
		}
		out = append(out, part)
	}
	return out
}

// From every end port to every other of random fabrics of up to 200 end ports, a
// packet with every key: where it ends is what was computed, and who talks is
// what the proof says.
func TestEveryPair(t *testing.T) {
	seen, pairs, packets, arrived, fabrics := map[reach.Disposition]int{}, 0, 0, 0, 0
	violations, exposed := 0, 0
	keys := allKeys()
	first := need.Seed(t, 1)
	for seed := first; pairs < pairsWanted(); seed++ {
		size := 10 + int(seed*37%191)
		w := newWorld(seed, 1+int(seed%6), max(size-1-int(seed%6)-size/10, 2), []int{1, 4, 0, 0}[seed%4])
		switch seed % 4 {
		case 2:
			w.open()
		case 3:
			w.guard()
		}
		x := newTrial(t, seed, w)
		for i := range x.ends {
			for j := range x.ends {
				if i != j {
					x.try(i, j, keys, ib.SL(w.r.IntN(16)))
				}
			}
		}
		x.proofs(x.somePolicy())
		x.proofs(isolation.AsTables(w.f))
		switch seed % 4 {
		case 2:
			x.countViolations()
		case 3:
			x.countExposed()
		}
		fabrics++
		pairs += len(x.ends) * (len(x.ends) - 1)
		packets += x.packets
		arrived += len(x.honest)
		violations += x.violations
		exposed += x.exposed
		for d, n := range x.seen {
			seen[d] += n
		}
	}
	t.Logf("%d pairs in %d fabrics from seed %d, %d packets; over %d pairs and partitions somebody gets through; %d violations and %d exposed counted by packets; %v",
		pairs, fabrics, first, packets, arrived, violations, exposed, seen)
	if arrived == 0 || violations == 0 || exposed == 0 {
		t.Error("nothing was there to be found")
	}
}

// open makes a fabric in which nothing but the tables of end ports keeps anybody
// from anybody.
func (w *world) open() { w.bits(false) }

// guard makes one in which every host is held by the switch port before it.
func (w *world) guard() {
	for _, n := range w.f.Switches() {
		n.Switch.Info.InboundEnforcementCap, n.Switch.Info.OutboundEnforcementCap = true, true
		if n.Switch.Info.PartitionEnforcementCap == 0 {
			n.Switch.Info.PartitionEnforcementCap = 8
			for i := 1; i < len(n.Ports); i++ {
				w.keys(&n.Ports[i])
			}
		}
	}
	w.bits(true)
}

// bits turns enforcement on or off before all hosts, and everything else off.
func (w *world) bits(on bool) {
	for _, n := range w.f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			check := on && p.FacesEnd()
			p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound = check, check
			p.Info.FilterRawInbound, p.Info.FilterRawOutbound = false, false
			p.Info.VLCap, p.Info.OperationalVLs, p.SLToVL = 1, 1, nil
		}
	}
}

// countViolations holds, in an open fabric, the number of pairs that the proof finds
// against a policy to the number of pairs between which packets arrived.
func (x *trial) countViolations() {
	x.t.Helper()
	allowed := x.somePolicy()
	want := map[meeting]bool{}
	for m := range x.honest {
		if !may(allowed, x.ends[m.from], x.ends[m.to]) {
			want[meeting{min(m.from, m.to), max(m.from, m.to), m.base}] = true
		}
	}
	x.violations += len(want)
	if got := isolation.Prove(x.w.f, allowed).Counts.Violations; got != len(want) {
		x.t.Fatalf("seed %d: %d violations, packets arrived against the policy between %d pairs", x.seed, got, len(want))
	}
}

// countExposed holds, in a fabric whose switches hold every host, the number of
// pairs that a host could reach against the policy by forging its table to the
// number that packets of such hosts came to. A host may use what it is given;
// and one that is reached may forge its table too.
func (x *trial) countExposed() {
	x.t.Helper()
	allowed := x.somePolicy()
	given := func(p *observed.Port, base ib.PKeyBase) bool {
		part := allowed[base-1]
		return slices.Contains(part.Full, p.GUID) || slices.Contains(part.Limited, p.GUID)
	}
	want := map[meeting]bool{}
	for m := range x.arrived {
		a, b := x.ends[m.from], x.ends[m.to]
		if a.Node.Switch == nil && !given(a, m.base) && !may(allowed, a, b) {
			want[meeting{min(m.from, m.to), max(m.from, m.to), m.base}] = true
		}
	}
	x.exposed += len(want)
	if got := isolation.Prove(x.w.f, allowed).Counts.Exposed; got != len(want) {
		x.t.Fatalf("seed %d: %d exposed, forged packets came against the policy between %d pairs", x.seed, got, len(want))
	}
}
