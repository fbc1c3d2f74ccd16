package qos

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
	// unitBlocks is a packet of 4096 octets with its headers, in units of a weight.
	unitBlocks = 65
	// unitsMost is the most packets of an entry; the last of four begins within weightMost.
	unitsMost  = 4
	weightMost = 255
	// excess is by how much packets of mixed sizes exceed a weight in the mean, in units of
	// a weight: half a packet of 2048 octets.
	excess = 16
	// shareFaultPercent is by how much of itself a share may be missed unsaid.
	shareFaultPercent = 5
)

// share is what a virtual lane ought to have of a link, in any unit.
type share struct {
	vl   ib.VL
	want float64
}

// arbitrate is a table of at most so many entries that gives virtual lanes their shares, and
// by how much it misses them: the largest error of one, as a part of it. There are at least
// as many entries as shares.
func arbitrate(shares []share, entries int) (table []smp.VLArbitrationEntry, missed float64) {
	sum, missed := 0.0, math.Inf(1)
	for _, s := range shares {
		sum += s.want
	}
	var best []int
	for total := len(shares); total <= unitsMost*entries; total++ {
		units, room := make([]int, len(shares)), entries
		for i, s := range shares {
			units[i] = max(1, int(math.Round(float64(total)*s.want/sum)))
			room -= entriesFor(units[i])
		}
		if room < 0 {
			continue
		}
		if m := misses(shares, sum, units); m < missed-1e-9 {
			best, missed = units, m
		}
	}
	return interleaved(shares, best), missed
}

func entriesFor(units int) int { return (units + unitsMost - 1) / unitsMost }

// misses is the largest error of a share when lanes have so many units: with packets that
// fill their weights, and with packets that exceed them.
func misses(shares []share, sum float64, units []int) (most float64) {
	for _, over := range []float64{0, excess} {
		got, all := make([]float64, len(units)), 0.0
		for i, u := range units {
			got[i] = unitBlocks*float64(u) + over*float64(entriesFor(u))
			all += got[i]
		}
		for i, s := range shares {
			want := s.want / sum
			most = max(most, math.Abs(got[i]/all-want)/want)
		}
	}
	return most
}

// interleaved is a table with these units, the entries of a lane as far apart as can be.
func interleaved(shares []share, units []int) []smp.VLArbitrationEntry {
	type turn struct {
		at float64 // of the round
		smp.VLArbitrationEntry
	}
	var turns []turn
	for i, s := range shares {
		n := entriesFor(units[i])
		for k := range n {
			u := (units[i]*(k+1))/n - (units[i]*k)/n
			turns = append(turns, turn{(float64(k) + 0.5) / float64(n), smp.VLArbitrationEntry{VL: s.vl, Weight: uint8(min(weightMost, u*unitBlocks))}})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	table := make([]smp.VLArbitrationEntry, len(turns))
	for i, t := range turns {
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
func (l *Levels) sharesAt(p *observed.Port, lanes int) (out []share) {
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
func (l *Levels) steps(use []uint64, group int) (steps []int, sum int) {
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
		sum += steps[lane]
	}
	return steps, sum
}

// Short is a port that cannot give levels the shares that they are to have.
type Short struct {
	Port *observed.Port
	// Lanes is the number of virtual lanes of its link, Levels how many levels have shares.
	Lanes, Levels int
	// Entries is the number of entries of its arbitration table, Percent by how much of
	// itself the worst share is missed.
	Entries, Percent int
}

// String says what the port lacks.
func (s Short) String() string {
	if s.Lanes < s.Levels {
		return fmt.Sprintf("%s: qos_levels gives shares to %d levels, its link has %d VLs: some levels share one", s.Port, s.Levels, s.Lanes)
	}
	return fmt.Sprintf("%s: with %d entries in its VLArbitrationTable a share of qos_levels is missed by %d %% of itself", s.Port, s.Entries, s.Percent)
}
