package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// star is one switch with hosts; guarded says which of its ports enforce.
func star(hosts int, guarded func(int) bool, state smp.PortState) *observed.Fabric {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo.PartitionEnforcementCap, b.SwitchInfo.LinearFDBCap = 40, 40, 1024
	sw := b.Switch(hosts, "switch")
	for i := 1; i <= hosts; i++ {
		p := b.Host(sw, fmt.Sprint("host-", i))
		subnettest.SetLink(p, state, smp.PhysLinkUp)
		subnettest.Enforce(p.Peer, guarded(i), guarded(i))
	}
	return b.Fabric
}

// set fills a host's table, and that of the port it faces, from memberships.
func tables(member map[ib.PKeyBase]bool) (end, guard []ib.PKey) {
	end, guard = []ib.PKey{}, []ib.PKey{} // empty, not nil: nil leaves a table alone
	for b := ib.PKeyBase(1); b <= 6; b++ {
		full, in := member[b]
		if !in {
			end = append(end, ib.PKeyInvalid) // keys keep their index
			continue
		}
		k := b.Limited()
		if full {
			k = b.Full()
		}
		end, guard = append(end, k), append(guard, b.Full())
	}
	return end, guard
}

// passes reports whether key k gets through a port's table.
func passes(table []ib.PKey, k ib.PKey) bool {
	return slices.ContainsFunc(table, func(e ib.PKey) bool { return k.Matches(e) })
}

// reach lists who can send to whom with which base: as the tables stand, and
// when both ends forge theirs.
func reach(f *observed.Fabric) map[string]bool {
	out := map[string]bool{}
	sw := f.Nodes[0]
	guard := func(i int, k ib.PKey) bool {
		q := &sw.Ports[i]
		return !q.Info.PartitionEnforcementInbound || passes(q.PKeys, k)
	}
	for a := 1; a < len(sw.Ports); a++ {
		for b := 1; b < len(sw.Ports); b++ {
			if a == b {
				continue
			}
			for base := ib.PKeyBase(1); base <= 6; base++ {
				for _, k := range []ib.PKey{base.Full(), base.Limited()} {
					through := guard(a, k) && guard(b, k)
					if through && slices.Contains(sw.Ports[a].Peer.PKeys, k) && passes(sw.Ports[b].Peer.PKeys, k) {
						out[fmt.Sprint(a, ">", b, " ", base)] = true
					}
					both := sw.Ports[a].Info.PartitionEnforcementInbound && sw.Ports[b].Info.PartitionEnforcementInbound
					if both && through {
						out[fmt.Sprint(a, ">", b, " ", base, " forged")] = true
					}
				}
			}
		}
	}
	return out
}

// TestNoStepOpensAnything carries out random moves, write by write in random
// order within each stage: after no write may anybody reach anybody that
// neither the tables before nor those after allow, forged tables included.
func TestNoStepOpensAnything(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	steps := 0
	for round := range 400 {
		const hosts = 5
		guardAll := round%2 == 0
		guarded := func(i int) bool { return guardAll || i%2 == 0 }
		f := star(hosts, guarded, smp.PortActive)
		d := observed.NewDesired(f)
		// Some switch ports give up guarding: their tables have no room.
		quits := func(i int) bool { return guarded(i) && round%3 == 0 && i%3 == 1 }
		after := star(hosts, func(i int) bool { return guarded(i) && !quits(i) }, smp.PortActive)
		for i := 1; i <= hosts; i++ {
			now, then := membership(rng), membership(rng)
			p, q := f.Nodes[0].Ports[i].Peer, &f.Nodes[0].Ports[i]
			end, guard := tables(now)
			copy(p.PKeys, end)
			copy(q.PKeys, guard)
			end, guard = tables(then)
			d.Port(p).PKeys, d.Port(q).PKeys = end, guard
			copy(after.Nodes[0].Ports[i].Peer.PKeys, end)
			copy(after.Nodes[0].Ports[i].PKeys, guard)
			if quits(i) {
				d.Port(q).PKeys, d.Port(q).Elements = nil, observed.ElementEnforcement
			}
		}
		aboutQuitters := func(k string) bool {
			var a, b, base int
			n, _ := fmt.Sscanf(k, "%d>%d %d", &a, &b, &base)
			return n != 3 || quits(a) || quits(b)
		}
		allowed := reach(f)
		for k := range reach(after) {
			allowed[k] = true
		}
		plan := Diff(f, d)
		for _, stage := range plan.Stages {
			rng.Shuffle(len(stage.Ops), func(i, j int) { stage.Ops[i], stage.Ops[j] = stage.Ops[j], stage.Ops[i] })
			for _, op := range stage.Ops {
				carryOut(t, plan, op)
				steps++
				for k := range reach(f) {
					if strings.HasSuffix(k, "forged") && aboutQuitters(k) {
						continue // nobody will hold that host any more
					}
					if !allowed[k] {
						for i := 1; i <= hosts; i++ {
							t.Log(i, f.Nodes[0].Ports[i].PKeys[:8], "want", d.Port(&f.Nodes[0].Ports[i]).PKeys)
						}
						t.Fatalf("seed %d round %d: stage %q, %s modifier 0x%x: opens %s", seed, round, stage.Name, op.Port, op.Modifier, k)
					}
				}
			}
		}
		if left := Diff(f, d); left.Len() != 0 {
			t.Fatalf("seed %d round %d: %d writes left after the plan", seed, round, left.Len())
		}
	}
	if steps < 1000 {
		t.Errorf("only %d writes were looked at", steps)
	}
}

func membership(rng *rand.Rand) map[ib.PKeyBase]bool {
	m := map[ib.PKeyBase]bool{}
	for b := ib.PKeyBase(1); b <= 6; b++ {
		if rng.IntN(3) == 0 {
			m[b] = rng.IntN(2) == 0
		}
	}
	return m
}

func carryOut(t *testing.T, p *Plan, op Op) Write {
	t.Helper()
	w, err := p.Fill(op)
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Port.Absorb(op.Attribute, op.Modifier, w.Data[:]); err != nil {
		t.Fatal(err)
	}
	return w
}

func TestOneMoveIsAFewWrites(t *testing.T) {
	f := star(4, func(int) bool { return true }, smp.PortActive)
	d := observed.NewDesired(f)
	red, blue := ib.PKeyBase(2), ib.PKeyBase(3)
	for i := 1; i <= 4; i++ {
		p, q := f.Nodes[0].Ports[i].Peer, &f.Nodes[0].Ports[i]
		p.PKeys[0], q.PKeys[0] = red.Full(), red.Full()
		d.Port(p).PKeys, d.Port(q).PKeys = []ib.PKey{red.Full()}, []ib.PKey{red.Full()}
	}
	moved := f.Nodes[0].Ports[2].Peer
	d.Port(moved).PKeys, d.Port(moved.Peer).PKeys = []ib.PKey{blue.Full()}, []ib.PKey{blue.Full()}
	p := Diff(f, d)
	var got []string
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			got = append(got, fmt.Sprintf("%s: %s", s.Name, op.Port))
		}
	}
	sw, host := moved.Peer.String(), moved.String()
	want := []string{"narrow switch ports: " + sw, "guarded end port keys: " + host, "switch port keys: " + sw}
	if !slices.Equal(got, want) {
		t.Errorf("writes %q\nwant   %q", got, want)
	}
}

func TestIdleLinksAreNotNarrowed(t *testing.T) {
	f := star(2, func(int) bool { return false }, smp.PortInit)
	d := observed.NewDesired(f)
	for i := 1; i <= 2; i++ {
		q := &f.Nodes[0].Ports[i]
		q.PKeys[0], q.Peer.PKeys[0] = ib.PKeyDefaultFull, ib.PKeyDefaultFull
		for _, p := range []*observed.Port{q, q.Peer} {
			want := d.Port(p)
			want.PKeys, want.Activate = []ib.PKey{ib.PKeyDefaultLimited}, true
		}
		d.Port(q).Elements = observed.ElementEnforcement
		d.Port(q).Info.PartitionEnforcementInbound, d.Port(q).Info.PartitionEnforcementOutbound = true, true
	}
	var names []string
	p := Diff(f, d)
	for _, s := range p.Stages {
		names = append(names, s.Name)
	}
	want := []string{"end port keys", "switch port keys", "port settings", "activate"}
	if !slices.Equal(names, want) {
		t.Errorf("stages %q, want %q", names, want)
	}
	w, err := p.Fill(p.Stages[2].Ops[0])
	if err != nil {
		t.Fatal(err)
	}
	var info smp.PortInfo
	if err := info.UnmarshalBinary(w.Data[:]); err != nil {
		t.Fatal(err)
	}
	if info.PortState != smp.PortArmed || !info.PartitionEnforcementInbound || !w.ReadBack {
		t.Errorf("settings of an idle port: %+v", w)
	}
}

func TestEnforcementGoesOnBeforeAndOffAfter(t *testing.T) {
	f := star(2, func(i int) bool { return i == 2 }, smp.PortActive)
	d := observed.NewDesired(f)
	for i := 1; i <= 2; i++ {
		want := d.Port(&f.Nodes[0].Ports[i])
		want.Elements = observed.ElementEnforcement
		want.Info.PartitionEnforcementInbound, want.Info.PartitionEnforcementOutbound = i == 1, i == 1
	}
	p := Diff(f, d)
	if len(p.Stages) != 2 || p.Stages[0].Ops[0].Kind != Enforce || p.Stages[0].Ops[0].Port.Num != 1 ||
		p.Stages[1].Ops[0].Kind != Settings || p.Stages[1].Ops[0].Port.Num != 2 {
		t.Errorf("plan %+v", p.Stages)
	}
}

// Each bit of a guard goes on before anything widens, and off after: when one
// port gets some and loses others, in two writes.
func TestGuardBitsGoOnFirstAndOffLast(t *testing.T) {
	bits := []struct {
		element observed.Element
		of      func(*smp.PortInfo) *bool
	}{
		{observed.ElementPartitionEnforcementInbound, func(i *smp.PortInfo) *bool { return &i.PartitionEnforcementInbound }},
		{observed.ElementPartitionEnforcementOutbound, func(i *smp.PortInfo) *bool { return &i.PartitionEnforcementOutbound }},
		{observed.ElementFilterRawInbound, func(i *smp.PortInfo) *bool { return &i.FilterRawInbound }},
		{observed.ElementFilterRawOutbound, func(i *smp.PortInfo) *bool { return &i.FilterRawOutbound }},
	}
	const all = 1<<4 - 1
	for now := range all + 1 {
		for then := range all + 1 {
			f := star(1, func(int) bool { return false }, smp.PortActive)
			d := observed.NewDesired(f)
			q := &f.Nodes[0].Ports[1]
			f.Nodes[0].Switch.Info.FilterRawInboundCap, f.Nodes[0].Switch.Info.FilterRawOutboundCap = true, true
			d.Port(q).Elements = observed.ElementGuard
			for i, b := range bits {
				*b.of(&q.Info), *b.of(&d.Port(q).Info) = now>>i&1 == 1, then>>i&1 == 1
			}
			p := Diff(f, d)
			if got, want := p.Guards(q), then&^now != 0; got != want {
				t.Errorf("%04b to %04b: Guards says %v", now, then, got)
			}
			held := func() (n int) {
				for i, b := range bits {
					if *b.of(&q.Info) {
						n |= 1 << i
					}
				}
				return n
			}
			for _, s := range p.Stages {
				for _, op := range s.Ops {
					if w := carryOut(t, p, op); !w.ReadBack {
						t.Errorf("%04b to %04b: %s is not read back", now, then, s.Name)
					}
					if op.Kind == Enforce && held() != now|then {
						t.Errorf("%04b to %04b: enforcing makes it %04b", now, then, held())
					}
				}
			}
			if held() != then || Diff(f, d).Len() != 0 {
				t.Errorf("%04b to %04b ends at %04b", now, then, held())
			}
			writes := 0
			if then&^now != 0 {
				writes++
			}
			if now&^then != 0 {
				writes++
			}
			if p.Len() != writes {
				t.Errorf("%04b to %04b: %d writes, want %d", now, then, p.Len(), writes)
			}
		}
	}
}

func TestForgottenElementsAreNotAskedForAgain(t *testing.T) {
	f := star(1, func(int) bool { return false }, smp.PortActive)
	d := observed.NewDesired(f)
	q := &f.Nodes[0].Ports[1]
	d.Port(q).Elements = observed.ElementNeighborMTU | observed.ElementOperationalVLs
	d.Port(q).Info.NeighborMTU, d.Port(q).Info.OperationalVLs = ib.MTU4096, 2
	q.Forgets = observed.ElementNeighborMTU
	p := Diff(f, d)
	if p.Len() != 1 {
		t.Fatalf("%d writes, want 1", p.Len())
	}
	w, err := p.Fill(p.Stages[0].Ops[0])
	if err != nil || w.Elements != observed.ElementOperationalVLs {
		t.Errorf("elements %v, %v", w.Elements.Names(), err)
	}
}

func TestForwardingBeforeTopAndTopKeepsPortStateChange(t *testing.T) {
	f := star(1, func(int) bool { return false }, smp.PortActive)
	f.Nodes[0].Switch.Info.PortStateChange = true
	d := observed.NewDesired(f)
	d.Nodes[0].LFT = make([]ib.PortNum, 130)
	p := Diff(f, d)
	if len(p.Stages) != 2 || len(p.Stages[0].Ops) != 3 || p.Stages[1].Ops[0].Attribute != smp.AttrSwitchInfo {
		t.Fatalf("plan %+v", p.Stages)
	}
	w, err := p.Fill(p.Stages[1].Ops[0])
	if err != nil {
		t.Fatal(err)
	}
	var info smp.SwitchInfo
	if err := info.UnmarshalBinary(w.Data[:]); err != nil {
		t.Fatal(err)
	}
	if info.LinearFDBTop != 129 || info.PortStateChange { // a one would clear it
		t.Errorf("SwitchInfo %+v, want top 129 and PortStateChange left alone", info)
	}
	d.Nodes[0].LFT = nil
	if n := Diff(f, d).Len(); n != 0 {
		t.Errorf("%d writes for PortStateChange alone", n)
	}
}

// PI-110: only a port that announces ClientReregister is asked to register again.
func TestReregistration(t *testing.T) {
	for capable, want := range map[bool]int{true: 1, false: 0} {
		f := star(1, func(int) bool { return false }, smp.PortActive)
		p := f.Nodes[0].Ports[1].Peer
		if capable {
			p.Info.CapabilityMask = smp.CapClientReregistration
		}
		d := observed.NewDesired(f)
		d.Port(p).Reregister = true
		if n := Diff(f, d).Len(); n != want {
			t.Errorf("announced %v: %d writes, want %d", capable, n, want)
		}
	}
}

func TestUnreadBlocksAreWritten(t *testing.T) {
	f := star(1, func(int) bool { return false }, smp.PortActive)
	d := observed.NewDesired(f)
	p := f.Nodes[0].Ports[1].Peer
	d.Port(p).PKeys = []ib.PKey{}
	if n := Diff(f, d).Len(); n != 0 {
		t.Fatalf("%d writes for an empty table that reads as empty", n)
	}
	p.MarkUnread(smp.AttrPKeyTable, 1)
	plan := Diff(f, d)
	if plan.Len() == 0 || plan.Stages[0].Ops[0].Modifier != 1 {
		t.Fatalf("a block that was not read is not written: %+v", plan.Stages)
	}
	if w, _ := plan.Fill(plan.Stages[0].Ops[0]); w.Data != [mad.DataSize]byte{} {
		t.Errorf("writes %x, want zeros", w.Data)
	}
}
