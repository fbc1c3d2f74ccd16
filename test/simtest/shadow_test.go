package simtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/judge/shadow"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

const (
	shadowEvery = time.Minute
	shadowReads = 1000 // a second, and shadowBurst at once
	shadowBurst = 10
	// smpOnWire is a management packet with all its headers, in bytes; slowest is the data rate of
	// the slowest link there is, in bits a second.
	smpOnWire, slowest = 290, 2e9
)

// beside is a fabric that a manager brought up and looks at now and then, and beside it who only
// reads: at another host, with his own idea of the policy.
type beside struct {
	*world
	rng     *rand.Rand
	reader  *inproc.Link
	at      place // where it reads
	store   *files.Store
	dir     string
	ledger  *shadow.Ledger
	policy  *policy.Policy
	allowed []observed.Partition
	tenant  map[ib.PortGUID]string
	ends    map[ib.PortGUID]place // all end ports
	// mute and off are devices that do not answer, cut the places of hosts without a cable.
	mute, off map[ib.NodeGUID]bool
	cut       map[place]place
	// was is where an end port was seen last, open the exposures that ought to be, want all of
	// them, by the two ports; before is the last round.
	was    map[ib.PortGUID]place
	open   map[[2]ib.PortGUID]*shadow.Span
	want   []shadow.Span
	before time.Time
	// prev is where hosts were in the last round of this reader, moved are those of which it said
	// that they were elsewhere before: back there they have not moved.
	prev  map[ib.PortGUID]place
	moved map[ib.PortGUID]bool
	worst float64 // share of a port's rate
}

func newBeside(t *testing.T, rng *rand.Rand) *beside {
	x := &beside{
		rng: rng, dir: filepath.Join(t.TempDir(), "shadow"), tenant: map[ib.PortGUID]string{}, ends: map[ib.PortGUID]place{},
		mute: map[ib.NodeGUID]bool{}, off: map[ib.NodeGUID]bool{}, cut: map[place]place{}, was: map[ib.PortGUID]place{}, open: map[[2]ib.PortGUID]*shadow.Span{},
		prev: map[ib.PortGUID]place{}, moved: map[ib.PortGUID]bool{},
	}
	x.allowed = []observed.Partition{{Name: "Default", Base: ib.PKeyBaseDefault}, {Name: "red", Base: 0x10}, {Name: "blue", Base: 0x20}}
	list := generate(t, "demo")
	x.world = newWorld(t, setup{list: list, policy: tenancy{}.policy()})
	for _, n := range list.Nodes {
		at := place{n.GUID, 1}
		if n.Type == ib.NodeSwitch {
			at.num = 0
		}
		raw, _ := x.agent(n.GUID).GUID(at.num, 0)
		guid := ib.PortGUID(raw)
		x.ends[guid] = at
		switch name, _, _ := strings.Cut(n.ID, "-"); name {
		case "red":
			x.allowed[1].Full, x.tenant[guid] = append(x.allowed[1].Full, guid), name
		case "blue":
			x.allowed[2].Full, x.tenant[guid] = append(x.allowed[2].Full, guid), name
		}
		if at == x.self {
			x.allowed[0].Full = append(x.allowed[0].Full, guid)
		} else {
			x.allowed[0].Limited = append(x.allowed[0].Limited, guid)
		}
	}
	x.policy = tenancy{tenants: []tenant{{base: 0x10, full: x.allowed[1].Full}, {base: 0x20, full: x.allowed[2].Full}}}.policy()
	x.restart(x.policy)
	x.settle()
	x.at = x.host("storage-1")
	x.comes()
	x.mum = true
	return x
}

// comes has the reader start, or start again.
func (x *beside) comes() {
	x.t.Helper()
	var err error
	if x.reader, err = inproc.New(x.fabric, x.at.node, x.at.num, false); err != nil {
		x.t.Fatal(err)
	}
	before, damaged, err := files.ReadShadow(x.dir, time.Now())
	if err != nil && x.store != nil || damaged > 0 {
		x.t.Fatalf("%d lines are damaged, %v", damaged, err)
	}
	if x.store, err = files.OpenShadow(x.dir); err != nil {
		x.t.Fatal(err)
	}
	x.ledger = shadow.NewLedger(before)
}

func (x *beside) now() time.Time { return time.Unix(1_700_000_000, 0).UTC().Add(x.fabric.Now()) }

// round is one reading, and what ought to be found by it.
func (x *beside) round() {
	x.t.Helper()
	at, began := x.now(), x.fabric.Now()
	readable, complete := x.readable()
	x.expect(at, readable, complete)
	r, err := daemon.Read(x.t.Context(), link.Paced(x.reader, shadowReads), sweep.Options{Forwarding: true})
	if err != nil {
		x.t.Fatal(err)
	}
	in := shadow.Input{
		At: at, Took: x.fabric.Now() - began, Every: shadowEvery, Reads: r.SMPs.Get, Fabric: r.Fabric, Allowed: x.allowed, Missing: daemon.Unread(r.Faults) > 0,
	}
	if r.SMPs.Set != 0 {
		x.t.Fatalf("%d SubnSet were sent", r.SMPs.Set)
	}
	if most := shadowReads*in.Took.Seconds() + shadowBurst; float64(r.SMPs.Get) > most {
		x.t.Fatalf("%d requests in %v, want at most %.0f", r.SMPs.Get, in.Took, most)
	}
	x.worst = max(x.worst, float64(r.SMPs.Get)*smpOnWire*8/in.Took.Seconds()/slowest)
	records := x.ledger.Round(in)
	if got := records[len(records)-1].Round.Complete; got != complete {
		x.t.Fatalf("%v: complete %v, want %v: %v", at, got, complete, r.Faults)
	}
	x.notices(readable)
	if err := x.store.Append(at, records, x.ledger.Open); err != nil {
		x.t.Fatal(err)
	}
}

// readable are the devices that answer the reader, complete reports whether all do that it meets.
func (x *beside) readable() (answers map[ib.NodeGUID]bool, complete bool) {
	answers, complete = map[ib.NodeGUID]bool{x.at.node: true}, true
	for list := []ib.NodeGUID{x.at.node}; len(list) > 0; list = list[1:] {
		n := x.fabric.Source(list[0])
		for i := range n.Ports {
			far, ok := x.peer(place{n.GUID, ib.PortNum(i)})
			switch {
			case !ok || x.off[far.node] || answers[far.node]:
			case n.Type != ib.NodeSwitch && n.GUID != x.at.node: // it passes nothing on
			case x.mute[far.node]:
				complete = false
			default:
				answers[far.node] = true
				list = append(list, far.node)
			}
		}
	}
	return answers, complete
}

// guard is the switch port before an end port, or the port itself.
func (x *beside) guard(p place) place {
	if far, ok := x.peer(p); ok && p.num != 0 {
		return far
	}
	return p
}

// exposed reports whether the tables of two end ports let them talk and the policy does not.
func (x *beside) exposed(a, b ib.PortGUID) bool {
	if x.tenant[a] != "" && x.tenant[a] == x.tenant[b] || x.ends[a] == x.self || x.ends[b] == x.self {
		return false
	}
	for _, g := range []ib.PortGUID{a, b} { // nothing passes a guard without a key
		at := x.guard(x.ends[g])
		info := x.info(at)
		if at != x.ends[g] && info.PartitionEnforcementInbound && info.PartitionEnforcementOutbound && !slices.ContainsFunc(x.table(at), ib.PKey.IsValid) {
			return false
		}
	}
	for _, k := range x.table(x.ends[a]) {
		for _, m := range x.table(x.ends[b]) {
			if k&0x7fff != 0 && k&0x7fff == m&0x7fff && (k|m)&0x8000 != 0 {
				return true
			}
		}
	}
	return false
}

// expect enters what ought to be found at this time.
func (x *beside) expect(at time.Time, readable map[ib.NodeGUID]bool, complete bool) {
	tells := func(g ib.PortGUID) bool { return readable[x.ends[g].node] || readable[x.was[g].node] }
	for g, p := range x.ends {
		if readable[p.node] {
			x.was[g] = x.guard(p)
		}
	}
	for a, p := range x.ends {
		for b, q := range x.ends {
			if a >= b {
				continue
			}
			k := [2]ib.PortGUID{a, b}
			s, is := x.open[k], readable[p.node] && readable[q.node] && x.exposed(a, b)
			switch {
			case is && s == nil:
				x.open[k] = &shadow.Span{Fact: shadow.Fact{A: shadow.Port{GUID: a}, B: shadow.Port{GUID: b}}, Began: at, After: x.before}
			case !is && s != nil && complete && tells(a) && tells(b):
				s.Ended = at
				x.want = append(x.want, *s)
				delete(x.open, k)
			}
		}
	}
	x.before = at
}

// notices checks what a round found beside exposures.
func (x *beside) notices(readable map[ib.NodeGUID]bool) {
	x.t.Helper()
	found := map[shadow.Kind]map[ib.PortGUID]bool{shadow.MovedHost: {}, shadow.EmptySwitch: {}}
	for _, r := range x.ledger.Open() {
		if r.Span != nil && found[r.Span.Kind] != nil && r.Span.Unseen.IsZero() {
			found[r.Span.Kind][r.Span.A.GUID] = true
		}
	}
	for g, p := range x.ends {
		if !readable[p.node] {
			continue
		}
		if p.num == 0 {
			if empty := x.agent(p.node).SwitchInfo().LinearFDBTop == 0; empty != found[shadow.EmptySwitch][g] {
				x.t.Fatalf("%v: switch %v is empty: %v, found %v", x.now(), g, empty, !empty)
			}
			continue
		}
		at := x.guard(p)
		if was, known := x.prev[g]; known && was != at && !x.moved[g] {
			if !found[shadow.MovedHost][g] {
				x.t.Fatalf("%v: %v moved from %v to %v, and that was not found", x.now(), g, was, at)
			}
		}
		x.prev[g], x.moved[g] = at, found[shadow.MovedHost][g]
	}
}

// heal writes what the policy gives a host, to it and to the switch port before it.
func (x *beside) heal(g ib.PortGUID, more ...ib.PKey) {
	x.t.Helper()
	keys := append([]ib.PKey{0x7fff}, more...)
	switch x.tenant[g] {
	case "red":
		keys = append(keys, 0x8010)
	case "blue":
		keys = append(keys, 0x8020)
	}
	for _, at := range []place{x.ends[g], x.guard(x.ends[g])} {
		if !x.off[at.node] {
			x.setKeys(at, func(t *smp.PKeyTable) { *t = smp.PKeyTable{}; copy(t.Keys[:], keys) })
		}
	}
}

// happens is a fault, or a change, drawn by the seed.
func (x *beside) happens() {
	x.t.Helper()
	must := func(err error) {
		if err != nil {
			x.t.Fatal(err)
		}
	}
	hosts := slices.Sorted(maps.Keys(x.tenant)) // that may be touched
	for who := range x.mute {                   // until the next change
		must(x.fabric.SetFault(who, fabric.Fault{}))
		delete(x.mute, who)
	}
	g := hosts[x.rng.IntN(len(hosts))]
	at := x.ends[g]
	leaf := x.node([]string{"leaf-3", "leaf-4"}[x.rng.IntN(2)]).GUID
	foreign := []ib.PKey{0x8010, 0x8020, 0x0010, 0x0020, 0x8030, 0xffff}[x.rng.IntN(6)]
	switch n := x.rng.IntN(20); {
	case n < 4:
		if !x.off[at.node] {
			x.setKeys(at, func(t *smp.PKeyTable) { t.Keys[2+x.rng.IntN(4)] = foreign })
		}
	case n < 6:
		x.heal(g, foreign)
	case n < 10:
		x.heal(g)
	case n < 12:
		x.power(at.node)
	case n < 13:
		x.power(leaf)
	case n < 14:
		if n := x.list.Nodes[x.rng.IntN(6)]; !x.off[n.GUID] {
			must(x.fabric.Reboot(n.GUID))
		}
	case n < 15:
		if far, is := x.cut[at]; is {
			must(x.fabric.Link(at.node, at.num, far.node, far.num))
			delete(x.cut, at)
		} else {
			x.cut[at] = x.guard(at)
			must(x.fabric.Unlink(at.node, at.num))
		}
	case n < 16:
		other := x.ends[hosts[x.rng.IntN(len(hosts))]]
		_, one := x.cut[at]
		if _, two := x.cut[other]; !one && !two && at != other {
			must(x.fabric.Swap(at.node, at.num, other.node, other.num))
		}
	case n < 18:
		who := at.node
		if n == 16 {
			who = leaf
		}
		x.mute[who] = true
		must(x.fabric.SetFault(who, fabric.Fault{Mute: true}))
	case n < 19: // the other manager looks
		x.restart(x.policy)
		x.settle()
	default: // the reader is gone for a while
		must(x.reader.Close())
		must(x.store.Close())
		x.passes(time.Duration(1+x.rng.IntN(30)) * time.Minute)
		x.comes()
		clear(x.prev)
		clear(x.moved)
	}
}

func (x *beside) power(g ib.NodeGUID) {
	x.t.Helper()
	var err error
	if x.off[g] = !x.off[g]; x.off[g] {
		err = x.fabric.PowerOff(g)
	} else {
		err = x.fabric.PowerOn(g)
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// passes lets time pass in which nobody does anything.
func (x *beside) passes(d time.Duration) { x.fabric.AdvanceTo(x.fabric.Now() + d) }

// TestShadowBesideAnother: a week of faults and changes beside a manager that looks now and then.
// Every exposure is found, from the first round that could show it to the first that showed that
// it was over, through rounds that were not complete and times without any; nothing but
// SubnGet is sent, and little of it.
func TestShadowBesideAnother(t *testing.T) {
	rng := rand.New(rand.NewPCG(need.Seed(t, 1), 0))
	x := newBeside(t, rng)
	changes := need.Share(20, 1000)
	sets := 0
	x.round()
	for range changes {
		x.happens()
		for range 1 + rng.IntN(19) { // a thousand in a week
			x.passes(shadowEvery)
			before := x.fabric.Received(mad.MethodSet, smp.AttrPKeyTable) + x.fabric.Received(mad.MethodSet, smp.AttrPortInfo)
			x.round()
			sets += int(x.fabric.Received(mad.MethodSet, smp.AttrPKeyTable) + x.fabric.Received(mad.MethodSet, smp.AttrPortInfo) - before)
		}
	}
	records, damaged, err := files.ReadShadow(x.dir, time.Time{})
	if err != nil || damaged > 0 {
		t.Fatalf("%d lines are damaged, %v", damaged, err)
	}
	s := shadow.Summarize(records, x.now().Add(-400*24*time.Hour), x.now())
	for _, o := range x.open {
		x.want = append(x.want, *o)
	}
	spell := func(list []shadow.Span) (out []string) {
		for i := range list {
			if o := &list[i]; o.Kind == "" || o.Kind == shadow.Exposure {
				out = append(out, fmt.Sprint(o.A.GUID, o.B.GUID, o.Began, o.After, o.Ended))
			}
		}
		slices.Sort(out)
		return out
	}
	got, want := spell(s.Spans), spell(x.want)
	t.Logf("%d changes in %v: %d rounds, %d of them not complete, %d gaps, %d exposures, %d requests, %.0f a second and %.3f %% of the slowest port at most",
		changes, x.fabric.Now().Round(time.Hour), s.Rounds, s.Incomplete, len(s.Gaps), len(want), s.Reads, s.Fastest, 100*x.worst)
	if !slices.Equal(got, want) {
		t.Errorf("%d exposures, want %d", len(got), len(want))
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("not found: %s", line)
			}
		}
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("found: %s", line)
			}
		}
	}
	if len(want) == 0 || changes > 100 && s.Incomplete == 0 || sets != 0 || x.worst >= 0.01 {
		t.Errorf("%d exposures, %d rounds not complete, want some; %d SubnSet, want none; %.2f %% of a port", len(want), s.Incomplete, sets, 100*x.worst)
	}
}
