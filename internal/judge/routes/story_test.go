package routes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// words is all that a Result says.
func words(r *Result) string {
	if r == nil {
		return "none"
	}
	var unleveled []string
	for _, u := range r.Unleveled {
		unleveled = append(unleveled, fmt.Sprint(u.From.Name(), " to ", u.LID))
	}
	return fmt.Sprintf("%+v, right %v, arrives %v, by groups %v, links %v, lanes %v, %d dependencies, unleveled %v, deadlock %v, drops %v, loops %v:\n%s",
		r.Counts, r.Right(), r.Arrives(), r.ByGroups(), r.MeanLinks(), r.VLs, r.Dependencies, unleveled, r.Deadlock, r.Drops, r.Loops, strings.Join(r.Reasons(), "\n"))
}

// What the judge says of random fabrics, in words and in numbers, is what it said when the file
// below testdata was written, and so is the load on their links.
func TestJudgeInWords(t *testing.T) {
	var s golden.Story
	for seed := range uint64(160) {
		rng := rand.New(rand.NewPCG(seed, 27))
		in := randomInput(rng)
		var hosts []*observed.Port
		for _, e := range in.Ends {
			hosts = append(hosts, e.Port)
		}
		j := Prepare(in)
		first, standing := JudgeAndKeep(in)
		text := fmt.Sprint(words(first), " plain ", j.isPlain(), ", stands ", standing != nil, ", blocks ", j.Blocks(), "\n")
		for _, l := range []Load{j.AllToAll(), j.Shift(3), j.Bisection(2, seed), j.Tenants([]Tenant{{Full: hosts[:len(hosts)/2], Limited: hosts[len(hosts)/2:]}})} {
			text += fmt.Sprintf("%+v mean path %v\n", l, l.MeanPath())
		}
		stopped, open := Guarded(in, func(end *observed.Port) SLs { return SL(ib.SL(end.Num)) })
		s.Add(fmt.Sprint("fabric ", seed), text+fmt.Sprint(stopped, open))
	}
	s.Check(t, "words.txt")
}

// changing is a routing that is right, of switches that are cabled at random, and changes.
type changing struct {
	*subnettest.Builder
	rng    *rand.Rand
	cables []*observed.Port
}

func newChanging(rng *rand.Rand) *changing {
	c := &changing{Builder: subnettest.New(), rng: rng}
	for i := range 3 + rng.IntN(5) {
		c.Switch(60, fmt.Sprint("s", i))
	}
	all := slices.Clone(c.Fabric.Nodes)
	for i := 1; i < len(all); i++ {
		c.cables = append(c.cables, subnettest.Join(all[i], all[rng.IntN(i)]))
	}
	for range rng.IntN(2 * len(all)) {
		if a, b := all[rng.IntN(len(all))], all[rng.IntN(len(all))]; a != b {
			c.cables = append(c.cables, subnettest.Join(a, b))
		}
	}
	c.PortInfo.LMC = ib.LMC(rng.IntN(6) / 5)
	for i := range 4 + rng.IntN(40) {
		c.Host(all[rng.IntN(len(all))], fmt.Sprint("h", i))
	}
	c.Route()
	c.ManagedFrom(c.Fabric.EndPorts()[rng.IntN(len(c.Fabric.EndPorts()))])
	return c
}

// input is what the judge is given, of tables that nobody changes afterwards.
func (c *changing) input(talk Talk) *Input {
	in := Read(c.Fabric)
	in.Talk = talk
	for i := range in.Tables {
		in.Tables[i].Exits, in.Tables[i].Unread = slices.Clone(in.Tables[i].Exits), nil
	}
	return in
}

// change changes the subnet, or some of the tables.
func (c *changing) change(in *Input) string {
	rng := c.rng
	switch n := rng.IntN(10); {
	case n < 3: // another way for a LID
		e := in.Ends[rng.IntN(len(in.Ends))]
		randomTree(rng, in, e.Port, e.LID)
		return fmt.Sprint("a random tree to ", e.LID)
	case n < 5:
		p := c.cables[rng.IntN(len(c.cables))]
		if p.IsTrained() {
			subnettest.SetLink(p, smp.PortDown, smp.PhysPolling)
		} else {
			subnettest.SetLink(p, smp.PortActive, smp.PhysLinkUp)
		}
		for _, e := range in.Ends {
			for lid := e.LID; lid <= e.last(); lid++ {
				randomTree(rng, in, e.Port, lid)
			}
		}
		return fmt.Sprint("the link of ", p, " is up: ", p.IsTrained())
	case n < 6:
		t := &in.Tables[c.Fabric.Switches()[rng.IntN(len(c.Fabric.Switches()))].Index]
		lid := 1 + rng.IntN(len(t.Exits)-1)
		t.Exits[lid] = ib.PortNum(rng.IntN(8))
		return fmt.Sprint("one exit for ", lid)
	case n < 7: // as after a LID of nobody
		for i := range in.Tables {
			if t := &in.Tables[i]; len(t.Exits) > 0 {
				t.Exits = append(t.Exits, ib.PortNum(rng.IntN(3)))
			}
		}
		return "longer tables"
	case n < 8 && len(in.Ends) > 3:
		in.Ends = slices.Delete(slices.Clone(in.Ends), 1, 2)
		return "an end port less"
	case n < 9:
		in.Talk = Talk(rng.IntN(3))
		return fmt.Sprint("who talks: ", in.Talk)
	}
	return "nothing"
}

// groups are some of random forwarding tables of switches.
func (c *changing) groups() []Group {
	rng := c.rng
	for _, n := range c.Fabric.Switches() {
		n.Switch.Info.MulticastFDBCap, n.Switch.Info.MulticastFDBTop = 64, 0
		n.Switch.Info.DefaultMulticastPrimaryPort, n.Switch.Info.DefaultMulticastNotPrimaryPort = ib.PortNum(rng.IntN(5)), ib.PortNum(rng.IntN(5))
		n.Switch.MFT = map[uint32]smp.MulticastForwardingTable{}
		for position := range uint8(2) {
			var b smp.MulticastForwardingTable
			for i := range 3 {
				for range rng.IntN(3) {
					b.Masks[i] |= 1 << rng.IntN(16)
				}
			}
			n.Switch.MFT[smp.MFTModifier(0, position)] = b
		}
	}
	return ReadGroups(c.Fabric, func(l ib.LID) SLs { return SL(ib.SL(l % 2)) })
}

// What is judged by what differs is right by the judgement of the whole, and what can be judged
// so is what could when the file below testdata was written. So is what is said of groups beside
// routes that stand.
func TestStandingEqualsTheWhole(t *testing.T) {
	var s golden.Story
	stood := 0
	for seed := range uint64(80) {
		c := newChanging(rand.New(rand.NewPCG(seed, 28)))
		in := c.input(Talk(seed % 3))
		in.GroupLevels = SL(0) | SL(ib.SL(seed%3))
		r, standing := JudgeAndKeep(in)
		if (standing != nil) != r.Right() {
			t.Errorf("seed %d: right %v, stands %v", seed, r.Right(), standing != nil)
		}
		if standing == nil {
			continue
		}
		for range 6 {
			next := c.input(in.Talk)
			for i := range next.Tables {
				next.Tables[i].Exits = slices.Clone(in.Tables[i].Exits)
			}
			what := c.change(next)
			if c.rng.IntN(3) == 0 {
				next.Groups = c.groups()
			}
			whole, around, again := Judge(next), *standing, *standing
			text := fmt.Sprint("around ", around.Around(next.Tables, next.Groups), ", again ", again.Again(next))
			for name, now := range map[string]*Standing{"around": &around, "again": &again} {
				if now.j != standing.j && !whole.Right() && !(name == "around" && len(next.Ends) != len(in.Ends)) && next.Talk == in.Talk {
					t.Errorf("seed %d, %s: by what differs it is right (%s), by the whole: %v", seed, what, name, whole.Reasons())
				}
			}
			if again.j != standing.j {
				stood++
				standing, in = &again, next
			}
			s.Add(fmt.Sprint(seed, " ", what), text+c.beside(r, standing))
		}
	}
	if stood < 120 {
		t.Errorf("%d of 480 stood by what differs", stood)
	}
	s.Check(t, "standing.txt")
}

// What was not read, and default ports, are never judged by what differs.
func TestAgainTakesReadTables(t *testing.T) {
	for seed := range uint64(20) {
		c := newChanging(rand.New(rand.NewPCG(seed, 28)))
		in := c.input(Talk(0))
		_, standing := JudgeAndKeep(in)
		if standing == nil {
			continue
		}
		for what, change := range map[string]func(*Table){
			"":               func(*Table) {},
			"unread":         func(x *Table) { x.Unread = []bool{true} },
			"a default port": func(x *Table) { x.Default = make([]bool, len(x.Exits)) },
		} {
			next := c.input(in.Talk)
			for i := range next.Tables {
				next.Tables[i].Exits = slices.Clone(in.Tables[i].Exits)
			}
			change(&next.Tables[0])
			now := *standing
			if got := now.Again(next); got != (what == "") {
				t.Errorf("seed %d: with a table that has %q: %v", seed, what, got)
			}
		}
		return
	}
	t.Fatal("none of the seeds is right")
}

// beside is what is said of groups beside routes that were judged.
func (c *changing) beside(r *Result, standing *Standing) string {
	groups := c.groups()
	var text strings.Builder
	for i := range groups {
		fmt.Fprint(&text, groups[i].MLID, groups[i].SLs)
		for _, n := range c.Fabric.Switches() {
			for in := range ib.PortNum(6) {
				fmt.Fprint(&text, groups[i].Exits(n, in), " ")
			}
		}
	}
	d := observed.NewDesired(c.Fabric)
	r.Beside(d)
	for _, changed := range [][]Group{groups, groups[:len(groups)/2], nil} {
		out, ok := r.Regroup(changed, func() []Group { return changed })
		fmt.Fprint(&text, "\nregroup ", ok, " ", words(out))
		out, ok = standing.WithGroups(d, changed)
		fmt.Fprint(&text, "\nwith groups ", ok, " ", words(out))
	}
	return text.String()
}
