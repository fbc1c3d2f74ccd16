package desired

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Arbitration serves a virtual lane until the weight of its entry is used up, and the last
// packet may exceed it. So a weight counts as whole packets of the largest MTU, and lanes
// get their shares by how many entries they have, more than by weights.
const (
	// unitBlocks is a packet of 4096 bytes with its headers, in units of a weight.
	unitBlocks = 65
	// unitsMost is the most packets of an entry; the last of four begins within weightMost.
	unitsMost  = 4
	weightMost = 255
	// excess is by how much packets of mixed sizes exceed a weight in the mean, in units of
	// a weight: the more, the more of the bytes are in large packets.
	excess = 24
	// shareFaultPercent is by how much of itself a share may be missed unsaid.
	shareFaultPercent = 5
)

// share is what a virtual lane ought to have of a link, in any unit.
type share struct {
	vl   ib.VL
	want float64
}

// arbitrate is a table of at most so many entries that gives virtual lanes their shares, and
// by how much it misses them: the largest error of the ratio of two, as a part of it. There
// are at least as many entries as shares.
func arbitrate(shares []share, entries int) (table []smp.VLArbitrationEntry, missed float64) {
	sum, missed := 0.0, math.Inf(1)
	for _, s := range shares {
		sum += s.want
	}
	var best []turns
	for total := len(shares); total <= unitsMost*entries; total++ {
		for each := unitsMost; each > 0; each-- {
			lanes, room := make([]turns, len(shares)), entries
			for i, s := range shares {
				units := max(1, int(math.Round(float64(total)*s.want/sum)))
				lanes[i] = turns{units, max((units+unitsMost-1)/unitsMost, (units+each/2)/each)}
				room -= lanes[i].entries
			}
			if room < 0 {
				break
			}
			if m := misses(shares, lanes); m < missed-1e-9 {
				best, missed = lanes, m
			}
		}
	}
	return interleaved(shares, best), missed
}

// turns is what a lane has of a table: packets, over some entries.
type turns struct{ units, entries int }

// misses is the largest error of the ratio of two shares when lanes have these turns: with
// packets that fill their weights, and with packets that exceed them. A lane may be idle, and
// the others then have its share in their own ratio.
func misses(shares []share, lanes []turns) (most float64) {
	for _, over := range []float64{0, excess} {
		low, high := math.Inf(1), 0.0
		for i, l := range lanes {
			got := (unitBlocks*float64(l.units) + over*float64(l.entries)) / shares[i].want
			low, high = min(low, got), max(high, got)
		}
		most = max(most, high/low-1)
	}
	return most
}

// interleaved is a table of these turns, the entries of a lane as far apart as can be.
func interleaved(shares []share, lanes []turns) []smp.VLArbitrationEntry {
	type turn struct {
		at float64 // of the round
		smp.VLArbitrationEntry
	}
	var round []turn
	for i, s := range shares {
		n := lanes[i].entries
		for k := range n {
			units := (lanes[i].units*(k+1))/n - (lanes[i].units*k)/n
			round = append(round, turn{(float64(k) + 0.5) / float64(n), smp.VLArbitrationEntry{VL: s.vl, Weight: uint8(min(weightMost, units*unitBlocks))}})
		}
	}
	slices.SortStableFunc(round, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	table := make([]smp.VLArbitrationEntry, len(round))
	for i, t := range round {
		table[i] = t.VLArbitrationEntry
	}
	return table
}

// useSteps is in how many steps the share of a level is divided among its lanes, so that a
// host which comes or goes changes few tables.
const useSteps = 32

// idleWeight is the weight of a lane that no packets are meant to take: one that comes all
// the same must not wait for ever.
const idleWeight = 1

// sharesAt are the shares of the virtual lanes of p's link, on so many of them. The share of
// a level is divided among the lanes of the routes as the pairs of hosts are whose packets
// take them there: where all of these have more to send than they can, each lane does.
func (l *QoSLevels) sharesAt(p *observed.Port, lanes int) (out []share) {
	var want [ib.VLManagement]float64
	short, use := l.isShort(p), l.useOf(p)
	for group, percent := range l.share {
		if short || l.vls == 1 {
			want[l.laneOf(ib.VL(group), 0, short, lanes)] += float64(percent)
			continue
		}
		steps, sum := l.steps(use, group)
		for lane, n := range steps {
			if n == 0 {
				continue
			}
			want[l.laneOf(ib.VL(group), ib.VL(lane), false, lanes)] += float64(percent) * float64(n) / float64(sum)
		}
	}
	for vl, w := range want {
		if w > 0 {
			out = append(out, share{ib.VL(vl), w})
		}
	}
	return out
}

// steps is how the share of a group is divided among its lanes: 0 for one that its packets
// do not take.
func (l *QoSLevels) steps(use []uint64, group int) (steps []int, sum int) {
	steps = make([]int, l.vls)
	all := uint64(0)
	if use != nil {
		for _, n := range use[group*l.vls : (group+1)*l.vls] {
			all += n
		}
	}
	for lane := range steps {
		steps[lane] = 1
		if all > 0 {
			n := use[group*l.vls+lane]
			steps[lane] = max(int(min(n, 1)), int((n*useSteps*2+all)/(2*all)))
		}
		if l.lanes.Groups && lane == l.lanes.VLs {
			steps[lane] = max(1, steps[lane]) // of multicast packets, which are not counted
		}
		sum += steps[lane]
	}
	return steps, sum
}

// MissedShares is a port that cannot give levels the shares that they are to have.
type MissedShares struct {
	Port *observed.Port
	// Lanes is the number of virtual lanes of its link, Levels how many levels have shares.
	Lanes, Levels int
	// Entries is the number of entries of its arbitration table, Percent by how much of
	// itself the worst share is missed.
	Entries, Percent int
}

// String says what the port lacks.
func (s MissedShares) String() string {
	if s.Lanes < s.Levels {
		return fmt.Sprintf("%s: qos_levels gives shares to %d levels, its link has %d VLs: some levels share one", s.Port, s.Levels, s.Lanes)
	}
	return fmt.Sprintf("%s: with %d entries in its VLArbitrationTable a share of qos_levels is missed by %d %% of itself", s.Port, s.Entries, s.Percent)
}
