package ibsimtest

import (
	"math/rand/v2"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// Load is how CAs load the links between switches, in packets: each sends one in a pattern.
type Load struct {
	// Worst is the load of the fullest link when every CA sends to every other, Mean that
	// of all links that the pattern could use, Hops the mean number of links on a path.
	Worst      int
	Mean, Hops float64
	// Shift and Random are the load of the fullest link when each CA sends to the one that
	// is so many places behind it, or to one of a random permutation: the mean over the
	// patterns, and the worst of them.
	Shift, Random           float64
	WorstShift, WorstRandom int
	// Lost is the number of pairs of a switch and a CA that the tables do not connect.
	Lost int
}

// patterns is the number of shifts and of random permutations that are tried.
const patterns = 100

type link struct {
	from int // Node.Index
	exit ib.PortNum
}

// Measure loads the links of a fabric by forwarding tables, which it indexes by Node.Index.
// The first LID of every CA is what it is sent to.
func Measure(b *routingtest.Builder, linear [][]ib.PortNum) Load {
	var lids []ib.LID
	var at []*observed.Node
	for _, d := range b.Destinations {
		if s := routingtest.Behind(d.Port); s != nil && d.Port.Node.Switch == nil {
			lids, at = append(lids, d.LID), append(at, s)
		}
	}
	var out Load
	send := func(load map[link]int, i, j int) {
		for s, hops := at[i], 0; s != at[j] && hops <= len(b.Fabric.Nodes); hops++ {
			l := link{s.Index, linear[s.Index][lids[j]]}
			next := behind(s, l.exit)
			if next == nil {
				return
			}
			load[l]++
			s = next
		}
	}
	// Everybody to everybody, by switches.
	hosts := map[*observed.Node]int{}
	for _, s := range at {
		hosts[s]++
	}
	load, sum, pairs := map[link]int{}, 0, 0
	for j := range lids {
		for s, n := range hosts {
			pairs += n
			for s != at[j] {
				l := link{s.Index, linear[s.Index][lids[j]]}
				next := behind(s, l.exit)
				if next == nil {
					out.Lost++
					break
				}
				load[l] += n
				sum += n
				s = next
			}
		}
	}
	out.Worst, out.Mean, out.Hops = fullest(load), float64(sum)/float64(max(1, links(b.Fabric))), float64(sum)/float64(max(1, pairs))
	rng := rand.New(rand.NewPCG(18, 18))
	n := len(lids)
	for k := range patterns {
		shift := 1 + k*(n-1)/patterns
		load = map[link]int{}
		for i := range lids {
			send(load, i, (i+shift)%n)
		}
		worst := fullest(load)
		out.Shift += float64(worst) / patterns
		out.WorstShift = max(out.WorstShift, worst)
		load = map[link]int{}
		for i, j := range rng.Perm(n) {
			send(load, i, j)
		}
		worst = fullest(load)
		out.Random += float64(worst) / patterns
		out.WorstRandom = max(out.WorstRandom, worst)
	}
	return out
}

// links counts those between switches, in both directions.
func links(f *observed.Fabric) (count int) {
	for _, s := range f.Switches() {
		for i := 1; i < len(s.Ports); i++ {
			if p := &s.Ports[i]; p.IsTrained() && p.Peer.Node.Switch != nil {
				count++
			}
		}
	}
	return count
}

// behind is the switch that an exit leads to, nil for none.
func behind(s *observed.Node, exit ib.PortNum) *observed.Node {
	if int(exit) >= len(s.Ports) || s.Ports[exit].Peer == nil || s.Ports[exit].Peer.Node.Switch == nil {
		return nil
	}
	return s.Ports[exit].Peer.Node
}

func fullest(load map[link]int) (worst int) {
	for _, n := range load {
		worst = max(worst, n)
	}
	return worst
}
