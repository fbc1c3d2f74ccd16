package reach

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// oracle says what becomes of a packet by plain reading of the rules, table by
// table; it uses nothing of the package but the names of the dispositions.
// Lanes are left out.
func oracle(from, to *observed.Port, key uint16, raw bool) Disposition {
	const yes, no, dunno = 1, 0, -1
	has := func(p *observed.Port, match func(uint16) bool) int {
		size := int(p.Node.Info.PartitionCap)
		if p.Node.Switch != nil && p.Num > 0 {
			size = int(p.Node.Switch.Info.PartitionEnforcementCap)
		}
		missing := size == 0
		for i := 0; i < size; i++ {
			if i/32 >= len(p.PKeysRead) || !p.PKeysRead[i/32] {
				missing = true
			} else if match(uint16(p.PKeys[i])) {
				return yes
			}
		}
		if missing {
			return dunno
		}
		return no
	}
	matches := func(e uint16) bool {
		return e&0x7fff == key&0x7fff && key&0x7fff != 0 && (e&0x8000 != 0 || key&0x8000 != 0)
	}
	if !raw {
		switch has(from, func(e uint16) bool { return e == key && key&0x7fff != 0 }) {
		case dunno:
			return Unknown
		case no:
			return SourceKey
		}
	}
	if mine := int(from.Info.LID); from.Node.Info.NodeType != ib.NodeSwitch && from.InfoRead && to.InfoRead && from.Info.PortState == smp.PortActive &&
		mine > 0 && mine < 0xC000 && int(to.Info.LID)-mine >= 0 && int(to.Info.LID)-mine < 1<<from.Info.LMC {
		return WrongDestination // does not leave
	}
	at, in := from.Node, 0
	out := int(from.Num)
	type place struct {
		n  *observed.Node
		in int
	}
	been := map[place]bool{}
	for {
		isSwitch := at.Info.NodeType == ib.NodeSwitch
		if at != from.Node || in != 0 {
			if been[place{at, in}] {
				return Loop
			}
			been[place{at, in}] = true
			p := &at.Ports[in]
			if !p.InfoRead {
				return Unknown
			}
			if p.Info.PortState != smp.PortArmed && p.Info.PortState != smp.PortActive {
				return LinkState
			}
			if isSwitch {
				if d := atSwitchPort(p, true, raw, func() int { return has(p, matches) }); d != Delivered {
					return d
				}
			}
		}
		if isSwitch {
			var known bool
			if out, known = lookUp(at, to, in); !known {
				return Unknown
			}
			if to.InfoRead && (to.Info.LID == 0 || to.Info.LID >= 0xC000) {
				return NoRoute
			}
			if out >= len(at.Ports) {
				return NoRoute
			}
			if out == in && in != 0 {
				return Loop
			}
		} else if at != from.Node || in != 0 {
			out = 0
		}
		if out == 0 {
			p := &at.Ports[in]
			if isSwitch {
				p = &at.Ports[0]
			}
			switch {
			case !to.InfoRead, !p.InfoRead:
				return Unknown
			case to.Info.LID == 0 || to.Info.LID >= 0xC000:
				return NoRoute
			case p != to:
				return WrongDestination
			case raw:
				return Delivered
			}
			switch has(p, matches) {
			case yes:
				return Delivered
			case no:
				return DestinationKey
			}
			return Unknown
		}
		p := &at.Ports[out]
		switch {
		case !p.InfoRead:
			return Unknown
		case p.Info.PortState != smp.PortActive:
			return LinkState
		}
		if isSwitch {
			if d := atSwitchPort(p, false, raw, func() int { return has(p, matches) }); d != Delivered {
				return d
			}
		}
		if p.Peer == nil {
			return DeadEnd
		}
		at, in = p.Peer.Node, int(p.Peer.Num)
	}
}

// atSwitchPort is what a switch port makes of a packet, in or out; match looks
// for its key.
func atSwitchPort(p *observed.Port, in, raw bool, match func() int) Disposition {
	s := p.Node.Switch
	if !s.InfoRead {
		return Unknown
	}
	i := s.Info
	type setting struct {
		raw, in bool
	}
	active := map[setting]bool{
		{true, true}:   i.FilterRawInboundCap && p.Info.FilterRawInbound,
		{true, false}:  i.FilterRawOutboundCap && p.Info.FilterRawOutbound,
		{false, true}:  i.PartitionEnforcementCap > 0 && i.InboundEnforcementCap && p.Info.PartitionEnforcementInbound,
		{false, false}: i.PartitionEnforcementCap > 0 && i.OutboundEnforcementCap && p.Info.PartitionEnforcementOutbound,
	}[setting{raw, in}]
	stopped := map[setting]Disposition{
		{true, true}: InboundRaw, {true, false}: OutboundRaw, {false, true}: InboundKey, {false, false}: OutboundKey,
	}[setting{raw, in}]
	switch {
	case !active:
		return Delivered
	case raw:
		return stopped
	}
	switch match() {
	case 1:
		return Delivered
	case 0:
		return stopped
	}
	return Unknown
}

// lookUp is the exit of a switch, 255 when there is none.
func lookUp(n *observed.Node, to *observed.Port, in int) (out int, known bool) {
	s, lid := n.Switch, int(to.Info.LID)
	if !to.InfoRead {
		return 0, false
	}
	if lid == 0 || lid >= 0xC000 {
		return 255, true
	}
	if !s.InfoRead {
		return 0, false
	}
	if s.Info.LinearFDBCap > 0 {
		if lid > int(s.Info.LinearFDBTop) {
			return 255, true
		}
		if lid/64 >= len(s.LFTRead) || !s.LFTRead[lid/64] {
			return 0, false
		}
		return int(s.LFT[lid]), true
	}
	whole := len(s.RFTRead)*16 >= int(s.Info.RandomFDBCap)
	for i, e := range s.RFT {
		if !s.RFTRead[i/16] {
			whole = false
		} else if e.Valid && lid>>e.LMC == int(e.LID)>>e.LMC {
			return int(e.Port), true
		}
	}
	if !whole {
		return 0, false
	}
	if in == int(s.Info.DefaultPort) {
		return 255, true
	}
	return int(s.Info.DefaultPort), true
}

// worlds is how many random fabrics a test looks at: a share, or all of them in
// a long run.
func worlds() uint64 {
	if need.Soak() {
		return 12000
	}
	return need.Share[uint64](20, 120)
}

// Every pair of every random fabric, every key of a small set and raw packets:
// Follow and the oracle agree, and Count is the sum of it.
func TestBruteForce(t *testing.T) {
	var seen Counts
	pairs, counted := 0, 0
	first := need.Seed(t, 1)
	for seed := first; seed < first+worlds(); seed++ {
		w := newWorld(seed, 1+int(seed%6), 2+int(seed*7%50), seed%5 > 0)
		ports := w.f.EndPorts()
		var sum Counts
		for _, a := range ports {
			held := map[ib.PKey]bool{}
			for _, k := range keysOf(a) {
				held[k] = true
			}
			for _, b := range ports {
				if a == b {
					continue
				}
				pairs++
				if !wholeTable(a) {
					sum[Unknown]++
				}
				for base := range ib.PKey(6) {
					for _, k := range []ib.PKey{base, base | 0x8000} {
						d := follow(a, b, k, UD)
						if want := oracle(a, b, uint16(k), false); d != want {
							t.Fatalf("seed %d: %s to %s over %s: %s, the oracle says %s", seed, a, b, k, d, want)
						}
						if full := (Packet{PKey: k, SL: ib.SL(pairs % 16)}); pairs%8 == 0 && Ends(a, b, full) != Follow(a, b, full).Disposition {
							t.Fatalf("seed %d: %s to %s over %s: Ends and Follow differ", seed, a, b, k)
						}
						seen[d]++
						if held[k] {
							sum[d]++
						}
					}
				}
				if d, want := follow(a, b, 0, Raw), oracle(a, b, 0, true); d != want {
					t.Fatalf("seed %d: raw, %s to %s: %s, the oracle says %s", seed, a, b, d, want)
				} else {
					seen[d]++
				}
			}
		}
		if got, ok := Count(w.f); ok {
			counted++
			compareCuts(t, seed, w.f)
			if got != sum {
				t.Fatalf("seed %d: Count %v, one by one %v", seed, got, sum)
			}
		}
	}
	t.Logf("%d pairs of %d fabrics from seed %d; %v", pairs, worlds(), first, seen)
	for d, n := range seen {
		if n == 0 && Disposition(d) != NoLane && Disposition(d) != DestinationQKey {
			t.Errorf("no packet ended as %s", Disposition(d))
		}
	}
	if counted < int(worlds())*9/10 {
		t.Errorf("only %d of %d fabrics were counted", counted, worlds())
	}
}

// compareCuts compares Cuts with a look at every pair.
func compareCuts(t *testing.T, seed uint64, f *observed.Fabric) {
	t.Helper()
	type pair struct{ from, to ib.PortGUID }
	want, got := map[pair]bool{}, map[pair]Disposition{}
	ports := f.EndPorts()
	for _, a := range ports {
		for _, b := range ports {
			for i, k := range a.PKeys {
				if a == b || !k.IsValid() || !a.PKeysRead[i/32] {
					continue
				}
				takes := false
				for j, e := range b.PKeys {
					takes = takes || b.PKeysRead[j/32] && e&0x7fff == k&0x7fff && (e|k)&0x8000 != 0
				}
				if takes && oracle(a, b, uint16(k), false) != Delivered {
					want[pair{a.GUID, b.GUID}] = true
				}
			}
		}
	}
	for _, c := range Cuts(f, 1<<20) {
		if _, twice := got[pair{c.From, c.To}]; twice || !want[pair{c.From, c.To}] {
			t.Errorf("seed %d: cut %+v is listed twice or arrives", seed, c)
		}
		got[pair{c.From, c.To}] = c.Disposition
	}
	if len(got) != len(want) {
		t.Fatalf("seed %d: %d cuts, one by one %d", seed, len(got), len(want))
	}
}

// follow is Follow without virtual lanes, by the walker behind it.
func follow(a, b *observed.Port, k ib.PKey, s Service) Disposition {
	w := walker{packet: Packet{PKey: k, Service: s, AnyVL: true}, from: a, to: b}
	w.trace.Hops = []Hop{}
	w.run()
	return w.trace.Disposition
}
