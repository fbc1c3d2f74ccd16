package routes

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
)

// randomInput is a small fabric with tables of any kind: good ones, with faults planted, or
// made up.
func randomInput(rng *rand.Rand) *Input {
	b := subnettest.New()
	intN := rng.IntN
	for i := range 1 + intN(7) {
		b.Switch(40, fmt.Sprint("s", i))
	}
	all := b.Fabric.Nodes
	for i := 1; i < len(all); i++ {
		if intN(12) > 0 { // else an island begins
			subnettest.Join(all[i], all[intN(i)])
		}
	}
	for range intN(2 * len(all)) {
		subnettest.Join(all[intN(len(all))], all[intN(len(all))]) // or a switch with itself
	}
	if intN(20) == 0 && len(all) > 1 { // more than 64 links at one switch
		for range 2 {
			b.Switch(80, fmt.Sprint("wide", len(b.Fabric.Nodes)))
		}
		n := len(b.Fabric.Nodes)
		for range 70 {
			subnettest.Join(b.Fabric.Nodes[n-1], b.Fabric.Nodes[n-2])
		}
		subnettest.Join(b.Fabric.Nodes[n-1], all[0])
		all = b.Fabric.Switches()
	}
	b.PortInfo.LMC = ib.LMC(intN(8) / 6)
	hosts := 1 + intN(8)
	if intN(10) == 0 {
		hosts = 60 // several blocks of LIDs
	}
	for i := range hosts {
		s := all[intN(len(all))]
		kind := ib.NodeCA
		if intN(10) == 0 {
			kind = ib.NodeRouter
		}
		n := b.Node(kind, 2, fmt.Sprint("h", i))
		if intN(15) > 0 && hasRoom(s) {
			subnettest.Cable(&n.Ports[1], subnettest.Free(s))
		}
		if t := all[intN(len(all))]; intN(4) == 0 && hasRoom(t) {
			subnettest.Cable(&n.Ports[2], subnettest.Free(t))
		}
	}
	if intN(10) == 0 {
		subnettest.Join(b.Node(ib.NodeCA, 1, "pair a"), b.Node(ib.NodeCA, 1, "pair b"))
	}
	b.Route()
	for range intN(3) {
		n := b.Fabric.Nodes[intN(len(b.Fabric.Nodes))]
		if p := &n.Ports[1+intN(len(n.Ports)-1)]; p.Peer != nil && intN(2) == 0 {
			subnettest.SetLink(p, smp.PortDown, smp.PhysPolling)
		}
	}
	if ends := b.Fabric.EndPorts(); intN(2) == 0 {
		b.Fabric.Self = ends[intN(len(ends))]
	}
	in := Read(b.Fabric)
	in.Talk = Talk(intN(3))
	spoil(rng, b, in)
	randomLanes(rng, b, in)
	if intN(2) == 0 {
		in.Parts = 1 + intN(3)
	}
	return in
}

func hasRoom(n *observed.Node) bool {
	return slices.ContainsFunc(n.Ports[1:], func(p observed.Port) bool { return p.Peer == nil })
}

// spoil makes tables worse.
func spoil(rng *rand.Rand, b *subnettest.Builder, in *Input) {
	intN := rng.IntN
	exit := func(n *observed.Node) ib.PortNum {
		switch intN(20) {
		case 0:
			return ib.PortNone
		case 1:
			return 0
		case 2:
			return ib.PortNum(intN(256))
		}
		for range 50 {
			if p := &n.Ports[1+intN(len(n.Ports)-1)]; p.Peer != nil {
				return p.Num
			}
		}
		return 1
	}
	kind := intN(5)
	for _, n := range b.Fabric.Switches() {
		t := &in.Tables[n.Index]
		t.Exits, t.Unread = slices.Clone(t.Exits), slices.Clone(t.Unread)
		switch kind {
		case 0: // as they are
		case 1, 2: // a few entries
			for range intN(4) {
				t.Exits[1+intN(int(b.LID)-1)] = exit(n)
			}
		case 3: // all
			for lid := range t.Exits {
				t.Exits[lid] = exit(n)
			}
		case 4: // a way round for many
			for lid := range t.Exits {
				if intN(3) == 0 {
					t.Exits[lid] = exit(n)
				}
			}
		}
		switch intN(12) {
		case 0:
			t.Unread[intN(len(t.Unread))] = true
		case 1:
			t.Default = make([]bool, len(t.Exits))
			for lid := range t.Default {
				t.Default[lid] = intN(2) == 0
			}
		case 2:
			t.Exits = t.Exits[:intN(len(t.Exits)+1)]
		}
	}
	if intN(3) == 0 { // every LID by a tree of its own
		for _, e := range in.Ends {
			for lid := e.LID; lid <= e.last(); lid++ {
				randomTree(rng, in, e.Port, lid)
			}
		}
	}
}

// randomTree routes a LID by a random tree, of which no path need be short.
func randomTree(rng *rand.Rand, in *Input, to *observed.Port, lid ib.LID) {
	root, exit := firstSwitch(to)
	if root == nil {
		return
	}
	set := func(n *observed.Node, out ib.PortNum) {
		if t := &in.Tables[n.Index]; int(lid) < len(t.Exits) {
			t.Exits[lid] = out
		}
	}
	set(root, exit)
	have := map[*observed.Node]bool{root: true}
	for {
		var more []*observed.Port
		for _, n := range in.Fabric.Switches() {
			for i := 1; i < len(n.Ports) && !have[n]; i++ {
				if p := &n.Ports[i]; p.IsTrained() && have[p.Peer.Node] {
					more = append(more, p)
				}
			}
		}
		if len(more) == 0 {
			return
		}
		p := more[rng.IntN(len(more))]
		have[p.Node] = true
		set(p.Node, p.Num)
	}
}

// randomLanes gives packets levels, ports mappings, and groups exits.
func randomLanes(rng *rand.Rand, b *subnettest.Builder, in *Input) {
	intN := rng.IntN
	lanes := 1 << intN(3)
	in.VLs = func(*observed.Port) int { return lanes }
	var every smp.SLToVLMappingTable
	for sl := range every.VLs {
		every.VLs[sl] = ib.VL(sl % lanes)
	}
	of := func() SLs {
		a, b := intN(4), intN(4)
		return SLs(1<<a | 1<<b)
	}
	switch intN(4) {
	case 0:
	case 1:
		in.Levels.Of = []SLs{of()}
	case 2:
		layers := 1 + intN(4)
		for range layers {
			in.Levels.Of = append(in.Levels.Of, of())
		}
		if intN(6) == 0 {
			layers++ // one has no level
		}
		switches := in.Fabric.Switches()
		in.Levels.Place = make([]int32, len(in.Fabric.Nodes))
		for i, n := range switches {
			in.Levels.Place[n.Index] = int32(len(switches) - 1 - i)
			row := make([]uint8, len(switches)-intN(2)) // what it does not have is layer 0
			for to := range row {
				row[to] = uint8(intN(layers))
			}
			in.Levels.Layer = append(in.Levels.Layer, row)
		}
	case 3:
		salt := rng.Uint64()
		in.Levels.Each = func(from *observed.Port, to ib.LID) SLs {
			return SLs(1 << ((uint64(from.GUID)*31 + uint64(to)*17 + salt) % 5))
		}
	}
	mappings := map[*observed.Port]Mapping{}
	kind := intN(4)
	for _, n := range in.Fabric.Nodes {
		for i := range n.Ports {
			m := Mapping{Every: &every}
			switch {
			case kind == 0:
				m = Mapping{}
			case kind == 2 && intN(3) == 0, kind == 3:
				m.In = map[ib.PortNum]smp.SLToVLMappingTable{}
				for in := range n.Ports {
					t := every
					for sl := range t.VLs {
						switch intN(30) {
						case 0:
							t.VLs[sl] = ib.VLManagement
						case 1:
							t.VLs[sl] = ib.VL(intN(15))
						case 2, 3, 4, 5:
							t.VLs[sl] = ib.VL(intN(lanes))
						}
					}
					m.In[ib.PortNum(in)] = t
				}
			}
			mappings[&n.Ports[i]] = m
		}
	}
	in.Lanes = func(p *observed.Port) Mapping { return mappings[p] }
	for i := range intN(3) {
		masks := map[*observed.Node][]ib.PortNum{}
		tree := intN(3) > 0
		for k, n := range in.Fabric.Switches() {
			for num := range n.Ports {
				p := &n.Ports[num]
				if !tree && intN(3) == 0 || tree && (p.FacesEnd() || p.Peer != nil && isTreeEdge(in.Fabric.Switches(), k, p)) {
					masks[n] = append(masks[n], ib.PortNum(num))
				}
			}
		}
		in.Groups = append(in.Groups, Group{MLID: ib.LIDMulticastMin + ib.LID(i), SLs: of(), Exits: func(n *observed.Node, in ib.PortNum) []ib.PortNum {
			return slices.DeleteFunc(slices.Clone(masks[n]), func(p ib.PortNum) bool { return p == in })
		}})
	}
}

// isTreeEdge reports whether p is one end of the first cable from a switch to one before
// it.
func isTreeEdge(switches []*observed.Node, at int, p *observed.Port) bool {
	first := func(n *observed.Node) *observed.Port {
		for i := range n.Ports {
			if q := n.Ports[i].Peer; q != nil && q.Node.Switch != nil && slices.Index(switches, q.Node) < slices.Index(switches, n) {
				return &n.Ports[i]
			}
		}
		return nil
	}
	return p == first(switches[at]) || p.Peer.Node.Switch != nil && p.Peer == first(p.Peer.Node)
}

// soak is how many random fabrics are judged: few, or SOAK_RUNS, or 50,000 with
// IBWARDEN_SOAK=1.
func soak() (runs int, seed uint64) {
	runs, seed = need.Share(500, 1500), 1
	if os.Getenv("IBWARDEN_SOAK") == "1" {
		runs = 50_000
	}
	if n, err := strconv.ParseUint(os.Getenv("SOAK_SEED"), 10, 64); err == nil {
		seed = n
	}
	return runs, seed
}

// What the judge says of random fabrics is what following every packet shows.
func TestJudgeEqualsBruteForce(t *testing.T) {
	runs, first := soak()
	seen := map[string]int{}
	for seed := first; seed < first+uint64(runs); seed++ {
		in := randomInput(rand.New(rand.NewPCG(seed, 18)))
		want, got := brute(in), Judge(in)
		if bad := compare(in, want, got); bad != "" {
			t.Fatalf("seed %d: %s", seed, bad)
		}
		for what, is := range map[string]bool{
			"right": got.Right(), "deadlock": got.Deadlock != nil, "loops": got.Counts.Loops > 0, "drops": got.Counts.Drops > 0,
			"unreachable": got.Unreachable > 0, "unleveled": got.Counts.Unleveled > 0, "apart": got.Apart > 0, "lanes": len(got.VLs) > 1,
			"flat": Prepare(in).flat, "deadlock with lanes": got.Deadlock != nil && len(got.VLs) > 1,
			"deadlock of a group": got.ByGroups(),
		} {
			if is {
				seen[what]++
			}
		}
	}
	t.Logf("seeds from %d: %v of %d", first, seen, runs)
	for _, what := range []string{"right", "deadlock", "loops", "drops", "unreachable", "unleveled", "apart", "lanes", "flat", "deadlock with lanes", "deadlock of a group"} {
		if seen[what] < runs/500 {
			t.Errorf("only %d of %d fabrics: %s", seen[what], runs, what)
		}
	}
}

// compare says what is different, or empty.
func compare(in *Input, want *opinion, got *Result) string {
	if got.Pairs != want.pairs || got.Reached != want.reached || got.Apart != want.apart || got.Unreachable != want.pairs-want.reached ||
		got.Links != want.links || got.Longest != want.longest {
		return fmt.Sprintf("counts %+v, want %d pairs, %d reached, %d apart, %d links, longest %d", got.Counts, want.pairs, want.reached, want.apart, want.links, want.longest)
	}
	var vls []ib.VL
	for vl := range want.used {
		vls = append(vls, vl)
	}
	slices.Sort(vls)
	if !slices.Equal(vls, got.VLs) {
		return fmt.Sprintf("VLs %v, want %v", got.VLs, vls)
	}
	if bad := compareLists(want, got); bad != "" {
		return bad
	}
	if int(got.Dependencies) != len(want.waits) {
		return fmt.Sprintf("%d dependencies, want %d", got.Dependencies, len(want.waits))
	}
	if want.deadlocks() != (got.Deadlock != nil) {
		return fmt.Sprintf("deadlock %v, want %v", got.Deadlock, want.deadlocks())
	}
	if alone := *in; got.Deadlock != nil {
		alone.Groups = nil
		if got.ByGroups() == brute(&alone).deadlocks() {
			return "the groups' part in the credit loop"
		}
	}
	for i, w := range got.Deadlock {
		next := got.Deadlock[(i+1)%len(got.Deadlock)]
		if w.For != next.Channel || !want.waits[[2]Channel{w.Channel, w.For}] || w.Out.Peer.Node != w.For.Out.Node {
			return fmt.Sprintf("step %d: %s is none", i, w)
		}
		if bad := witness(in, w); bad != "" {
			return fmt.Sprintf("step %d: %s: %s", i, w, bad)
		}
	}
	return faults(in, got)
}

// witness follows the packet of a step.
func witness(in *Input, w Wait) string {
	if w.From == nil {
		return "nobody sends"
	}
	only := *in
	if w.To == nil {
		only.Ends = slices.DeleteFunc(slices.Clone(in.Ends), func(e End) bool { return e.Port != w.From })
		only.Groups = slices.DeleteFunc(slices.Clone(in.Groups), func(g Group) bool { return g.MLID != w.LID })
		only.Groups[0].SLs &= SL(w.SL)
	} else {
		only.Groups = nil
		only.Ends = []End{{Port: w.From, LID: 0xB000}, {Port: w.To, LID: w.LID}}
		only.Levels.Each = func(from *observed.Port, to ib.LID) SLs {
			if from != w.From {
				return 0
			}
			return levelsOf(in, from, w.To, to) & SL(w.SL)
		}
	}
	if !brute(&only).waits[[2]Channel{w.Channel, w.For}] {
		return "that packet does not go that way"
	}
	return ""
}

// levelsOf are the levels of packets by the Input.
func levelsOf(in *Input, from, to *observed.Port, lid ib.LID) SLs {
	l := in.Levels
	a, _ := firstSwitch(from)
	b, _ := firstSwitch(to)
	switch {
	case l.Each != nil:
		return l.Each(from, lid)
	case l.Layer != nil && b != nil:
		if row := l.Layer[l.Place[a.Index]]; int(l.Place[b.Index]) < len(row) {
			return append(slices.Clone(l.Of), 0)[row[l.Place[b.Index]]]
		}
	}
	return append(slices.Clone(l.Of), SL(0))[0]
}

func compareLists(want *opinion, got *Result) string {
	have := map[string]int{}
	for _, c := range got.Loops {
		if c.To == nil {
			have[fmt.Sprintf("group %d", c.LID)] = 1
			continue
		}
		var names []string
		for _, p := range c.Exits {
			names = append(names, fmt.Sprintf("%d:%d", p.Node.Index, p.Num))
		}
		have[turned(names)] = c.LIDs
	}
	if got.Counts.Loops <= MaxListed && fmt.Sprint(have) != fmt.Sprint(want.loops) || got.Counts.Loops != len(want.loops) {
		return fmt.Sprintf("loops %v, want %v", have, want.loops)
	}
	var drops []string
	for _, d := range got.Drops {
		drops = append(drops, fmt.Sprintf("%d:%d from %d SL %d", d.Out.Node.Index, d.Out.Num, d.In, d.SL))
	}
	sort.Strings(drops)
	if all := keys(want.drops); got.Counts.Drops != len(all) || len(drops) < MaxListed && !slices.Equal(drops, all) {
		return fmt.Sprintf("drops\n%s\nwant\n%s", strings.Join(drops, "\n"), strings.Join(all, "\n"))
	}
	var unleveled []string
	for _, u := range got.Unleveled {
		unleveled = append(unleveled, u.From.Name())
	}
	sort.Strings(unleveled)
	if all := keys(want.unleveled); !slices.Equal(unleveled, all) {
		return fmt.Sprintf("unleveled %v, want %v", unleveled, all)
	}
	return ""
}

func keys(m map[string]bool) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// faults checks each by its sender.
func faults(in *Input, got *Result) string {
	pairs := uint64(0)
	for _, f := range got.Unreached {
		pairs += f.Pairs
		o := &opinion{in: in}
		at, num := firstSwitch(f.From)
		steps, why := o.route(at, num, f.To, f.LID, map[string]bool{})
		if why != f.Why {
			return fmt.Sprintf("%s: it ends otherwise: %d", f, why)
		}
		if why == Loop {
			continue
		}
		for _, s := range steps {
			if s.between {
				at = s.out.Peer.Node
			}
		}
		if at != f.At {
			return fmt.Sprintf("%s: it ends at %s", f, at.Name())
		}
	}
	if got.Counts.Faults <= MaxListed && pairs != got.Unreachable || (got.Unreachable > 0) != (len(got.Unreached) > 0) {
		return fmt.Sprintf("%d pairs listed, %d are not reached", pairs, got.Unreachable)
	}
	return ""
}
