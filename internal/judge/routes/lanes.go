package routes

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// dropped is the number of no lane: packets of such a level are dropped.
const dropped = 0xFF

// mapping gives the number of the lane by service level, dropped where there is none.
type mapping [smp.SLCount]uint8

// lanes is how service levels become virtual lanes. Lanes that occur have numbers from 0.
type lanes struct {
	levels SLs // that may occur
	vls    []ib.VL
	// flat reports whether between all pairs of ports of all switches a level has the same lane,
	// as in whole, and no switch drops a packet for its level.
	flat  bool
	whole mapping
	// laneSets are, where flat, the lanes of each layer.
	laneSets []uint16
	// everywhere reports whether packets for the LID of a CA start at every switch, all with the
	// same levels.
	everywhere bool

	// Where it is not flat: the mappings, and by switch those of each pair of ports, entry
	// port times number of ports plus exit port.
	mappings []mapping
	dropping []SLs // by mapping: the levels without a lane
	pairs    [][]uint16
	groups   [][]group // by switch
}

// group are senders at a switch whose packets take the same lanes.
type group struct {
	in      ib.PortNum // of one of them
	members []int32    // places in Job.ends
}

// mapLevels finds out which lanes there are.
func (j *Job) mapLevels() {
	j.levels = j.in.Levels.all() | j.in.GroupLevels
	for i := range j.in.Groups {
		j.levels |= j.in.Groups[i].SLs
	}
	if j.isFlat() {
		j.flat = true
		for layer := range max(1, len(j.in.Levels.Of)) {
			j.laneSets = append(j.laneSets, j.lanesOf(j.in.Levels.of(uint8(layer))))
		}
		j.everywhere = j.in.Levels.Each == nil && j.in.Levels.Layer == nil && j.laneSets[0] != 0 && !slices.Contains(j.weights.at[fromAll], 0)
		return
	}
	j.mapPairs()
	j.group()
}

// lanesOf is the set of lanes that a set of levels takes, where flat.
func (j *Job) lanesOf(set SLs) (lanes uint16) {
	for ; set != 0; set &= set - 1 {
		lanes |= 1 << j.whole[bits.TrailingZeros16(uint16(set))]
	}
	return lanes
}

// eachPair calls visit with every exit port of a switch by which packets may leave, and
// every entry port, until it returns false.
func (j *Job) eachPair(visit func(s int, out *observed.Port, in ib.PortNum, m *Mapping) bool) bool {
	for s, n := range j.switches {
		for i := 1; i < len(n.Ports); i++ {
			out := &n.Ports[i]
			if !out.IsTrained() {
				continue
			}
			m := j.in.Lanes(out)
			if m.same() {
				if !visit(s, out, ib.PortNone, &m) {
					return false
				}
				continue
			}
			for in := range n.Ports {
				if in == i && !m.has(out.Num) {
					continue // nothing is read, or written, for a packet that goes back
				}
				if enters(&n.Ports[in]) && !visit(s, out, ib.PortNum(in), &m) {
					return false
				}
			}
		}
	}
	return true
}

// enters reports whether packets come into a switch by p.
func enters(p *observed.Port) bool { return p.Num == 0 || p.IsTrained() }

func (j *Job) isFlat() bool {
	var vls [smp.SLCount]ib.VL
	var first bool
	same := j.eachPair(func(_ int, out *observed.Port, in ib.PortNum, m *Mapping) bool {
		t := m.table(in)
		between := out.Peer.Node.Switch != nil
		if between && !first {
			first, vls = true, t
		}
		have := j.vlsOf(out)
		for set := j.levels; set != 0; set &= set - 1 {
			sl := bits.TrailingZeros16(uint16(set))
			if int(t[sl]) >= have || between && t[sl] != vls[sl] {
				return false
			}
		}
		return true
	})
	if !same {
		return false
	}
	j.number16(func(yield func([smp.SLCount]ib.VL)) { yield(vls) })
	j.whole = j.numbered(vls, smp.SLCount)
	return true
}

// vlsOf is the number of lanes in operation at both ends of a link.
func (j *Job) vlsOf(out *observed.Port) int { return min(j.in.VLs(out), j.in.VLs(out.Peer)) }

// number16 gives numbers to the lanes that tables have for levels that may occur.
func (j *Job) number16(tables func(yield func([smp.SLCount]ib.VL))) {
	var used uint16
	tables(func(t [smp.SLCount]ib.VL) {
		for set := j.levels; set != 0; set &= set - 1 {
			if vl := t[bits.TrailingZeros16(uint16(set))]; vl < ib.VLManagement {
				used |= 1 << vl
			}
		}
	})
	j.vls = nil
	for ; used != 0; used &= used - 1 {
		j.vls = append(j.vls, ib.VL(bits.TrailingZeros16(used)))
	}
	if len(j.vls) == 0 {
		j.vls = []ib.VL{0}
	}
}

// numbered is a table in numbers of lanes, of a link that has so many.
func (j *Job) numbered(t [smp.SLCount]ib.VL, have int) (m mapping) {
	for sl, vl := range t {
		m[sl] = dropped
		for i, x := range j.vls {
			if x == vl && int(vl) < have {
				m[sl] = uint8(i)
			}
		}
	}
	return m
}

// mapPairs enters the mapping of every pair of ports.
func (j *Job) mapPairs() {
	j.number16(func(yield func([smp.SLCount]ib.VL)) {
		j.eachPair(func(_ int, _ *observed.Port, in ib.PortNum, m *Mapping) bool {
			yield(m.table(in))
			return true
		})
	})
	type key struct {
		vls  [smp.SLCount]ib.VL
		have int
	}
	known := map[key]uint16{}
	j.pairs = make([][]uint16, len(j.switches))
	for s, n := range j.switches {
		j.pairs[s] = make([]uint16, len(n.Ports)*len(n.Ports))
	}
	j.enterMapping(j.numbered([smp.SLCount]ib.VL{}, 1))
	j.eachPair(func(s int, out *observed.Port, in ib.PortNum, m *Mapping) bool {
		k := key{m.table(in), j.vlsOf(out)}
		id, ok := known[k]
		if !ok {
			id = uint16(len(j.mappings))
			known[k] = id
			j.enterMapping(j.numbered(k.vls, k.have))
		}
		ports := len(j.switches[s].Ports)
		if in != ib.PortNone {
			j.pairs[s][int(in)*ports+int(out.Num)] = id
			return true
		}
		for in := range ports {
			j.pairs[s][in*ports+int(out.Num)] = id
		}
		return true
	})
	j.sharePairs()
}

// sharePairs lets switches whose tables are the same share one: they are looked at for every
// LID, and should be near.
func (j *Job) sharePairs() {
	known := map[string][]uint16{}
	var key []byte
	for s, table := range j.pairs {
		key = key[:0]
		for _, id := range table {
			key = binary.BigEndian.AppendUint16(key, id)
		}
		if same, ok := known[string(key)]; ok {
			j.pairs[s] = same
		} else {
			known[string(key)] = table
		}
	}
}

func (j *Job) enterMapping(m mapping) {
	set := SLs(0)
	for sl, lane := range m {
		if lane == dropped {
			set |= 1 << sl
		}
	}
	j.mappings, j.dropping = append(j.mappings, m), append(j.dropping, set)
}

// mapping is that of a pair of ports of a switch.
func (j *Job) mapping(s int32, in, out ib.PortNum) *mapping {
	if j.flat {
		return &j.whole
	}
	return &j.mappings[j.pairs[s][int(in)*len(j.switches[s].Ports)+int(out)]]
}

// group puts the senders of each switch together whose packets take the same lanes from
// there.
func (j *Job) group() {
	j.groups = make([][]group, len(j.switches))
	for s, senders := range j.at {
		ports := len(j.switches[s].Ports)
		row := func(in ib.PortNum) []uint16 { return j.pairs[s][int(in)*ports:][:ports] }
	next:
		for _, i := range senders {
			e := &j.ends[i]
			for g := range j.groups[s] {
				if have := &j.groups[s][g]; (have.in == 0) == (e.exit == 0) && slices.Equal(row(have.in), row(e.exit)) {
					have.members = append(have.members, i)
					continue next
				}
			}
			j.groups[s] = append(j.groups[s], group{e.exit, []int32{i}})
		}
	}
}
