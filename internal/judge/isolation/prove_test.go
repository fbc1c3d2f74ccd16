package isolation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
)

func TestGoodFabricIsIsolated(t *testing.T) {
	s := newSite()
	p := check(t, s.f, s.allowed)
	if p.Verdict != Isolated || len(p.Violations)+len(p.Exposed)+len(p.Missing)+len(p.Foreign)+len(p.Unenforced)+len(p.Unknown) > 0 {
		t.Fatalf("proof %+v", p)
	}
	if len(p.Pairs) != 6 || p.Counts.EndPorts != 11 || p.Counts.Partitions != 4 {
		t.Errorf("%d pairs, counts %+v", len(p.Pairs), p.Counts)
	}
	for _, pair := range p.Pairs {
		// Storage and h7 see everybody; the tenants have only limited members
		// in common partitions.
		if want := pair.A != "red" || pair.B != "blue"; pair.Joined != want {
			t.Errorf("%s and %s joined: %t", pair.A, pair.B, pair.Joined)
		}
	}
	if len(p.Caveats) != 1 || !strings.Contains(p.Caveats[0], "storage (0x0200), default (0x7fff)") {
		t.Errorf("caveats %q", p.Caveats)
	}
}

func TestEveryBitOfEveryTable(t *testing.T) {
	s := newSite()
	for _, end := range s.f.EndPorts() {
		tables := []*observed.Port{end}
		if end.Node.Switch == nil {
			tables = append(tables, end.Peer)
		}
		for _, table := range tables {
			for index := range table.PKeys {
				if index > 4 && index < len(table.PKeys)-1 {
					continue // empty as those around it
				}
				for bit := range 16 {
					t.Run(fmt.Sprintf("%s/%d/%d", table, index, bit), func(t *testing.T) {
						before := table.PKeys[index]
						defer func() { table.PKeys[index] = before }()
						table.PKeys[index] ^= 1 << bit
						p := check(t, s.f, s.allowed)
						for _, v := range slices.Concat(p.Violations, p.Exposed) {
							if v.From != end.GUID || v.At.Place != placeOf(table) || v.At.Index != index {
								t.Errorf("%s entry %d was changed, blamed is %+v", table, index, v)
							}
						}
					})
				}
			}
		}
	}
}

func TestForeignKeyIsFound(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(s *site) *observed.Port
		key    ib.PKey
		want   Verdict
		pairs  int // of end ports
		first  string
	}{
		{"red key at a blue host", func(s *site) *observed.Port { return s.hosts[2] }, baseRed.Full(), Violated, 3, "violated"},
		{"limited red key at a blue host", func(s *site) *observed.Port { return s.hosts[2] }, baseRed.Limited(), Violated, 3, "violated"},
		{"full default key", func(s *site) *observed.Port { return s.hosts[0] }, ib.PKeyDefaultFull, Violated, 6, "violated"},
		{"full storage key", func(s *site) *observed.Port { return s.hosts[0] }, baseStorage.Full(), Violated, 3, "violated"},
		{"red key at a switch", func(s *site) *observed.Port { return &s.spine.Ports[0] }, baseRed.Full(), Violated, 3, "violated"},
		{"key of nobody", func(s *site) *observed.Port { return s.hosts[0] }, 0x8123, Isolated, 0, ""},
		{"red key before a blue host", func(s *site) *observed.Port { return s.hosts[2].Peer }, baseRed.Full(), ByEndPorts, 3, "isolated-by-end-ports"},
		{"full default key before a host", func(s *site) *observed.Port { return s.hosts[2].Peer }, ib.PKeyDefaultFull, Isolated, 0, ""},
		{"key of nobody before a host", func(s *site) *observed.Port { return s.hosts[2].Peer }, 0x8123, Isolated, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite()
			at := tc.change(s)
			at.PKeys[9] = tc.key
			p := check(t, s.f, s.allowed)
			if p.Verdict != tc.want || p.Counts.Violations+p.Counts.Exposed != tc.pairs {
				t.Fatalf("%s, %d violations, %d exposed; want %s, %d", p.Verdict, p.Counts.Violations, p.Counts.Exposed, tc.want, tc.pairs)
			}
		})
	}
}

func TestWitness(t *testing.T) {
	s := newSite()
	blue := s.hosts[5] // on leaf1
	blue.PKeys[7] = baseRed.Full()
	p := Prove(s.f, s.allowed)
	if len(p.Violations) != 3 {
		t.Fatalf("violations %+v", p.Violations)
	}
	v := p.Violations[0]
	if v.From != blue.GUID || v.To != s.hosts[0].GUID || v.PKey != 0x8101 || v.At.Name != "h5" || v.At.Index != 7 {
		t.Errorf("witness %+v", v)
	}
	var path []string
	for _, h := range v.Path {
		path = append(path, fmt.Sprintf("%d[%s]%d", h.In, h.Name, h.Out))
	}
	if got := strings.Join(path, " "); got != "0[h5]1 2[leaf1]5 2[spine]1 5[leaf0]1 1[h0]0" {
		t.Errorf("path %s", got)
	}
	if v.Note != "stopped inbound at leaf1:2" {
		t.Errorf("note %q", v.Note)
	}
	if want := "end ports can talk against the policy in 3 cases, first h5 and h0 over 0x8101 (P_Key index 7 of h5)"; p.Reasons[0] != want {
		t.Errorf("reason %q, want %q", p.Reasons[0], want)
	}

	out, err := json.Marshal(v)
	for _, part := range []string{
		fmt.Sprintf(`{"from":"%s","to":"%s","pkey":"0x8101","path":[{"node":`, v.From, v.To),
		`"name":"h5","end_port":"` + v.From.String() + `","index":7,"pkey":"0x8101"},"note":"stopped inbound at leaf1:2"}`,
	} {
		if err != nil || !strings.Contains(string(out), part) {
			t.Errorf("JSON %s, %v; want %s in it", out, err, part)
		}
	}

	// Without the red key at h0's switch port, and with one at h5's.
	blue.Peer.PKeys[7] = baseRed.Full()
	subnettest.SetPKeys(s.hosts[0].Peer, ib.PKeyDefaultLimited)
	s.spine.Switch.LFT[s.hosts[0].Info.LID] = ib.PortNone
	v = Prove(s.f, s.allowed).Violations[0]
	if want := fmt.Sprintf("stopped outbound at leaf0:1; no route: spine has none for LID %s", s.hosts[0].Info.LID); v.Note != want {
		t.Errorf("note %q, want %q", v.Note, want)
	}
}

func TestEnforcement(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(s *site)
		want   string
	}{
		{"no table", func(s *site) { s.leaves[0].Switch.Info.PartitionEnforcementCap = 0 },
			"no switch enforces partitions, PartitionEnforcementCap is 0: leaf0:1, leaf0:2, leaf0:3 and 1 more"},
		{"cannot inbound", func(s *site) { s.leaves[0].Switch.Info.InboundEnforcementCap = false },
			"no switch enforces partitions, InboundEnforcementCap is 0: leaf0:1, leaf0:2, leaf0:3 and 1 more"},
		{"cannot outbound", func(s *site) { s.leaves[1].Switch.Info.OutboundEnforcementCap = false },
			"no switch enforces partitions, OutboundEnforcementCap is 0: leaf1:1, leaf1:2, leaf1:3 and 1 more"},
		{"inbound off", func(s *site) { subnettest.Enforce(s.hosts[3].Peer, false, true) },
			"no switch enforces partitions, PartitionEnforcementInbound is 0: leaf0:4"},
		{"outbound off", func(s *site) { subnettest.Enforce(s.hosts[3].Peer, true, false) },
			"no switch enforces partitions, PartitionEnforcementOutbound is 0: leaf0:4"},
		{"not kept", func(s *site) {
			subnettest.Enforce(s.hosts[3].Peer, true, false)
			s.hosts[3].Peer.Forgets = observed.ElementEnforcement
		}, "no switch enforces partitions, PartitionEnforcementOutbound is 0: the switch does not keep it: leaf0:4"},
		{"direct cable", func(s *site) {
			a, b := s.Host(nil, "a"), s.Host(nil, "b")
			subnettest.Cable(a, b)
			subnettest.SetPKeys(a, ib.PKeyDefaultLimited)
			subnettest.SetPKeys(b, ib.PKeyDefaultLimited)
			s.allowed[0].Limited = append(s.allowed[0].Limited, a.GUID, b.GUID)
		}, "no switch enforces partitions, cabled to b without a switch between them: a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite()
			tc.change(s)
			p := check(t, s.f, s.allowed)
			if p.Verdict != ByEndPorts || !slices.Contains(p.Reasons, tc.want) {
				t.Errorf("%s: %q, want %q", p.Verdict, p.Reasons, tc.want)
			}
		})
	}
}

func TestCableToPortZero(t *testing.T) {
	s := newSite()
	observed.Connect(s.hosts[0], &s.spine.Ports[0])
	if p := Prove(s.f, s.allowed); p.Verdict == Isolated {
		t.Errorf("%s", p.Verdict)
	}
}

// TestDroppedReads takes away one read after the other.
func TestDroppedReads(t *testing.T) {
	s := newSite()
	unknown := func(name string, drop func() (restore func())) {
		t.Run(name, func(t *testing.T) {
			restore := drop()
			defer restore()
			p := check(t, s.f, s.allowed)
			if p.Verdict != Unknown || len(p.Unknown) == 0 {
				t.Errorf("%s, unknown %v", p.Verdict, p.Unknown)
			}
		})
	}
	dropped := func(flag *bool) func() (restore func()) {
		return func() func() {
			*flag = false
			return func() { *flag = true }
		}
	}
	for _, n := range s.f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if p.Peer != nil && p.Node.Switch != nil && p.Peer.Node.Switch != nil || !p.Reached {
				continue
			}
			unknown(fmt.Sprintf("PortInfo of %s", p), dropped(&p.InfoRead))
			for b := range p.PKeysRead {
				unknown(fmt.Sprintf("block %d of %s", b, p), dropped(&p.PKeysRead[b]))
			}
			if p.PKeys != nil {
				unknown(fmt.Sprintf("table of %s", p), func() func() {
					keys, read := p.PKeys, p.PKeysRead
					p.PKeys, p.PKeysRead = nil, nil
					return func() { p.PKeys, p.PKeysRead = keys, read }
				})
			}
			if n.Switch == nil {
				unknown(fmt.Sprintf("NodeInfo of %s", p), func() func() {
					s := p.Peer
					p.Reached, s.Peer = false, nil
					return func() { p.Reached, s.Peer = true, p }
				})
			}
		}
	}
	for _, leaf := range s.leaves {
		unknown("SwitchInfo of "+leaf.Name(), func() func() {
			leaf.Switch.InfoRead = false
			return func() { leaf.Switch.InfoRead = true }
		})
	}
	check(t, s.f, s.allowed)
}

func TestWhatTheVerdictDoesNotRestOn(t *testing.T) {
	s := newSite()
	uplink := &s.leaves[0].Ports[5]
	uplink.InfoRead = false
	for _, n := range s.f.Switches() {
		n.Switch.LFT, n.Switch.LFTRead = nil, nil
	}
	stranger := &s.leaves[0].Ports[6]
	stranger.Info.PortState = smp.PortInit // carries no data
	if p := check(t, s.f, s.allowed); p.Verdict != Isolated {
		t.Errorf("%s: %v", p.Verdict, p.Reasons)
	}
}

func TestStrangers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(p *observed.Port)
		verdict Verdict
		unknown int // pairs
	}{
		{"free", func(p *observed.Port) { up(p) }, Unknown, 6},
		{"armed", func(p *observed.Port) { p.Info.PortState = smp.PortArmed }, Unknown, 6},
		{"held to nothing", func(p *observed.Port) { up(p); subnettest.Enforce(p, true, true); subnettest.SetPKeys(p) }, Isolated, 0},
		{"held to red", func(p *observed.Port) { up(p); subnettest.Enforce(p, true, true); subnettest.SetPKeys(p, 0x8101) }, Unknown, 3},
		{"held to a table that was not read", func(p *observed.Port) { up(p); subnettest.Enforce(p, true, true) }, Unknown, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite()
			tc.change(&s.leaves[0].Ports[6])
			p := check(t, s.f, s.allowed)
			if p.Verdict != tc.verdict || p.Counts.Pairs.Unknown != tc.unknown {
				t.Errorf("%s, %d pairs unknown; want %s, %d", p.Verdict, p.Counts.Pairs.Unknown, tc.verdict, tc.unknown)
			}
		})
	}
}

func TestViolationOutranksUnknown(t *testing.T) {
	s := newSite()
	s.hosts[0].PKeysRead[1] = false
	s.hosts[0].PKeys[4] = baseBlue.Full()
	if p := check(t, s.f, s.allowed); p.Verdict != Violated {
		t.Errorf("%s", p.Verdict)
	}
	// An entry of a block that was not read is no evidence.
	s.hosts[0].PKeysRead[0] = false
	if p := check(t, s.f, s.allowed); p.Verdict != Unknown {
		t.Errorf("%s", p.Verdict)
	}
}

func TestEmpty(t *testing.T) {
	p := Prove(observed.NewFabric(), nil)
	if p.Verdict != Unknown || !slices.Equal(p.Reasons, []string{"no end port was read"}) {
		t.Errorf("%+v", p)
	}
	s := newSite()
	if p := check(t, s.f, nil); p.Verdict != Violated {
		t.Errorf("nothing is allowed, and the fabric is %s", p.Verdict)
	}
	if p := Prove(s.f, []observed.Partition{{Name: "zero", Base: 0}, {Name: "beyond", Base: 0x8001}}); p.Counts.Partitions != 0 {
		t.Errorf("partitions %d", p.Counts.Partitions)
	}
}

func TestPartitionsOfOneBase(t *testing.T) {
	s := newSite()
	red := &s.allowed[2]
	s.allowed = append(s.allowed, observed.Partition{Name: "more red", Base: baseRed, Full: red.Full[1:], Limited: red.Full})
	red.Full = red.Full[:1]
	p := Prove(s.f, s.allowed)
	if p.Verdict != Isolated || p.Counts.Partitions != 4 || p.Pairs[0].A != "red" {
		t.Errorf("%s: %v %+v", p.Verdict, p.Reasons, p.Pairs)
	}
}

func TestVerdictText(t *testing.T) {
	out, err := json.Marshal([]Verdict{0, Isolated, ByEndPorts, Unknown, Violated, 9})
	if want := `["unknown","isolated","isolated-by-end-ports","unknown","violated","unknown"]`; err != nil || string(out) != want {
		t.Errorf("%s, %v", out, err)
	}
	if Verdict(0).Holds() || !Isolated.Holds() || !ByEndPorts.Holds() || Unknown.Holds() || Violated.Holds() {
		t.Error("Holds")
	}
}

// TestAgainstOracle compares proofs of random fabrics, most of them in
// disorder, with the oracle.
func TestAgainstOracle(t *testing.T) {
	fabrics := need.Share(800, 10000)
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	verdicts := map[Verdict]int{}
	for i := range uint64(fabrics) {
		f, allowed := randomSite(rand.New(rand.NewPCG(seed, i)))
		verdicts[check(t, f, allowed).Verdict]++
		if t.Failed() {
			t.Fatalf("seed %#x, fabric %d", seed, i)
		}
	}
	t.Logf("%v", verdicts)
	for _, v := range []Verdict{Isolated, ByEndPorts, Unknown, Violated} {
		if verdicts[v] < fabrics/100 {
			t.Errorf("only %d fabrics are %s", verdicts[v], v)
		}
	}
	if n := verdicts[Unguarded]; n > 0 {
		t.Errorf("%d fabrics are %s by their tables, which cannot tell", n, Unguarded)
	}
}

// randomSite is a fabric with a random policy, programmed rightly and then
// spoilt in a random number of places.
func randomSite(r *rand.Rand) (*observed.Fabric, []observed.Partition) {
	s := newTree(1+r.IntN(3), 1+r.IntN(4))
	if r.IntN(8) == 0 {
		subnettest.Cable(s.Host(nil, "left"), s.Host(nil, "right"))
	}
	ends := s.f.EndPorts()
	bases := []ib.PKeyBase{1, 2, 3, 4, 5, ib.PKeyBaseDefault}
	for _, b := range bases[r.IntN(4):] {
		part := observed.Partition{Name: b.String(), Base: b}
		for _, p := range ends {
			switch r.IntN(5) {
			case 0:
				part.Full = append(part.Full, p.GUID)
			case 1:
				part.Limited = append(part.Limited, p.GUID)
			}
		}
		s.allowed = append(s.allowed, part)
	}
	program(s.f, s.allowed)
	for range []int{0, 0, 1, 2, 5, 12}[r.IntN(6)] {
		spoil(r, s, bases)
	}
	return s.f, s.allowed
}

func spoil(r *rand.Rand, s *site, bases []ib.PKeyBase) {
	ends := s.f.EndPorts()
	if len(ends) == 0 {
		return
	}
	end := ends[r.IntN(len(ends))]
	p := end
	if end.Peer != nil && r.IntN(2) == 0 {
		p = end.Peer
	}
	leaf := s.leaves[r.IntN(len(s.leaves))]
	switch kind := r.IntN(16); {
	case kind < 6 && len(p.PKeys) > 0:
		p.PKeys[r.IntN(len(p.PKeys))] = ib.PKey(bases[r.IntN(len(bases))]) | ib.PKey(r.IntN(2))<<15
	case kind < 8 && len(p.PKeys) > 0:
		p.PKeys[r.IntN(min(3, len(p.PKeys)))] ^= 1 << r.IntN(16)
	case kind == 8 && len(p.PKeysRead) > 0:
		p.PKeysRead[r.IntN(len(p.PKeysRead))] = false
	case kind == 9 && r.IntN(3) == 0:
		p.InfoRead = false
	case kind == 10 && p != end:
		subnettest.Enforce(p, r.IntN(2) == 0, r.IntN(2) == 0)
	case kind == 11:
		leaf.Switch.Info.InboundEnforcementCap = r.IntN(2) == 0
		leaf.Switch.Info.OutboundEnforcementCap = r.IntN(2) == 0
	case kind == 12 && r.IntN(2) == 0:
		// The tables stay as they were read, longer than they should be.
		leaf.Switch.Info.PartitionEnforcementCap = 0
	case kind == 13 && r.IntN(2) == 0:
		leaf.Switch.InfoRead = false
	case kind == 14 && end.Node.Switch == nil && r.IntN(2) == 0:
		end.Reached = false
	case kind == 15:
		free := &leaf.Ports[len(leaf.Ports)-1]
		up(free)
		if subnettest.Enforce(free, true, true); leaf.Switch.Info.PartitionEnforcementCap > 0 {
			subnettest.SetPKeys(free, ib.PKey(r.IntN(7)), ib.PKey(r.IntN(7)))
		}
	}
}

// TestKeyPorts: a port counts once for each fault, wherever that is.
func TestKeyPorts(t *testing.T) {
	s := newSite()
	if p := Prove(s.f, s.allowed); p.Counts.Keys != (KeyPorts{}) {
		t.Errorf("in order: %+v", p.Counts.Keys)
	}
	drop := func(p *observed.Port, base ib.PKeyBase) {
		for i, k := range p.PKeys {
			if k.Base() == base {
				p.PKeys[i] = 0
			}
		}
	}
	h := s.hosts
	h[2].PKeys[9], h[2].Peer.PKeys[9], h[2].Peer.PKeys[10] = baseRed.Full(), baseRed.Full(), baseRed.Full() // unexpected
	h[0].Peer.PKeys[9] = 0x8123                                                                             // unknown
	for _, p := range []*observed.Port{h[0], h[0].Peer, h[1]} {
		drop(p, baseRed)
	}
	if p, want := Prove(s.f, s.allowed), (KeyPorts{Missing: 2, Unexpected: 2, Unknown: 1}); p.Counts.Keys != want {
		t.Errorf("got %+v, want %+v", p.Counts.Keys, want)
	}
}
