package routes

import (
	"math/bits"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// Standing is a routing that was judged right. A later one of the same subnet is judged by
// what differs from it: where exits for a LID differ, the packets that they concern are
// followed to their end, and what they wait for is added to what waited before. Nobody has to
// say what differs: all tables and links are compared. The tables of the Input must not
// change, since they are kept.
type Standing struct {
	j *Job
	// dependencies of packets to unicast LIDs; some of them may be gone since.
	dependencies
}

// JudgeAndKeep is Judge; standing is nil where the routing is not right, and where it cannot
// be judged by what differs: it has layers, lanes that depend on ports, or tables that were
// not read or are random ones.
func JudgeAndKeep(in *Input) (r *Result, standing *Standing) {
	j := Prepare(in)
	parts := j.work()
	all := parts[0]
	for _, p := range parts[1:] {
		all.merge(p)
	}
	var unicast []uint64
	if j.isPlain() {
		unicast = slices.Clone(all.bits)
	}
	r = j.result(all)
	if unicast == nil || !r.Right() {
		return r, nil
	}
	return r, stand(j, dependencies{j: j, bits: unicast, used: all.used})
}

// stand keeps what later judgements need; not what the caller wants of ports, whose lanes are
// known.
func stand(j *Job, d dependencies) *Standing {
	in := *j.in
	in.Ends, in.Lanes, in.VLs, in.Groups = nil, nil, nil, nil
	j.in = &in
	return &Standing{j, d}
}

// isPlain reports whether packets take the same lanes everywhere, by linear tables.
func (j *Job) isPlain() bool {
	if !j.flat || j.in.Levels.Each != nil || j.in.Levels.Layer != nil || len(j.laneSets) == 0 {
		return false
	}
	for i := range j.in.Tables {
		if t := &j.in.Tables[i]; t.Default != nil || slices.Contains(t.Unread, true) {
			return false
		}
	}
	return true
}

// Again reports whether a later routing can be seen to be right by what differs from the one
// that stands; then it stands. false says nothing: Judge has to tell.
func (s *Standing) Again(in *Input) bool {
	j := Prepare(in)
	if !j.isPlain() || !s.covers(j) {
		return false
	}
	f := newFound(j)
	f.dropAtHosts()
	return len(f.drops) == 0 && s.follow(j)
}

// Around is Again for other tables of the very subnet of the Standing, from which links
// between switches may have gone since, or are back: the links are read again, and the end
// ports, LIDs and lanes are those that were judged.
func (s *Standing) Around(tables []Table, groups []Group) bool {
	in := *s.j.in
	in.Tables, in.Groups = tables, groups
	j := *s.j
	j.in, j.links, j.islands = &in, nil, 0
	j.connect()
	if j.findIslands(); !j.isPlain() || j.words != s.j.words || !slices.Equal(j.island, s.j.island) {
		return false
	}
	return s.follow(&j)
}

// follow judges by what differs.
func (s *Standing) follow(j *Job) bool {
	in := j.in
	a := again{j: j, old: s.j, dependencies: s.moved(j)}
	if !a.follow() || a.more && a.anyCircle() != nil {
		return false
	}
	f := newFound(j)
	if len(in.Groups) > 0 {
		all := dependencies{j: j, bits: slices.Clone(a.bits), used: a.used}
		j.enterGroups(in.Groups, &all, &f)
		if all.anyCircle() != nil {
			return false
		}
	}
	if len(f.drops) > 0 || len(f.loops) > 0 {
		return false
	}
	*s = *stand(j, a.dependencies)
	return true
}

// covers reports whether a subnet has the same switches and islands, no sender and no LID that
// the one judged before had not, and takes the same lanes.
func (s *Standing) covers(j *Job) bool {
	old := s.j
	if len(j.switches) != len(old.switches) || !slices.Equal(j.island, old.island) || j.in.Talk != old.in.Talk ||
		!slices.Equal(j.vls, old.vls) || !slices.Equal(j.laneSets, old.laneSets) || j.words != old.words {
		return false
	}
	for i, n := range j.switches {
		if n.GUID() != old.switches[i].GUID() {
			return false
		}
	}
	for who := range j.weights.at {
		for i, n := range j.weights.at[who] {
			if n > old.weights.at[who][i] {
				return false
			}
		}
	}
	known := old.dests
	for _, d := range j.dests {
		for len(known) > 0 && known[0].lid < d.lid {
			known = known[1:]
		}
		if len(known) == 0 || known[0].lid != d.lid {
			return false
		}
		now, was := &j.ends[d.end], &old.ends[known[0].end]
		if now.at != was.at || now.exit != was.exit || now.port.GUID != was.port.GUID || j.audienceOf(now) != old.audienceOf(was) {
			return false
		}
	}
	return true
}

// moved are the dependencies between the links that there are still.
func (s *Standing) moved(j *Job) dependencies {
	old := s.j
	d := newDependencies(j)
	d.used = s.used
	now := make([]int32, len(old.links)) // the number of a link in j
	whole := make([]bool, len(old.switches))
	for at := range old.switches {
		whole[at] = old.firstLink[at+1]-old.firstLink[at] == j.firstLink[at+1]-j.firstLink[at]
		for l := old.firstLink[at]; l < old.firstLink[at+1]; l++ {
			if now[l] = j.same(int32(at), &old.links[l]); now[l]-j.firstLink[at] != l-old.firstLink[at] {
				whole[at] = false
			}
		}
	}
	lanes := len(j.vls)
	for l := range old.links {
		if now[l] < 0 {
			continue
		}
		to := old.links[l].to
		from, width := s.row(int32(l), 0, 0), lanes*j.words
		if whole[to] { // with the same slots
			copy(d.bits[d.row(now[l], 0, 0):][:width], s.bits[from:][:width])
			continue
		}
		for lane := range uint8(lanes) {
			s.next(int32(l)*int32(lanes)+int32(lane), func(c int32) bool {
				if next := now[c/int32(lanes)]; next >= 0 {
					d.add(now[l], lane, next, lane)
				}
				return true
			})
		}
	}
	return d
}

// same is the number of the link of switch at that an earlier Job had; -1 for none.
func (j *Job) same(at int32, was *link) int32 {
	num := was.out.Num
	slot := int(j.slots[at][num])
	if slot == j.degree {
		return -1
	}
	l := j.firstLink[at] + int32(slot)
	if now := &j.links[l]; now.to != was.to || now.out.Peer.Num != was.out.Peer.Num {
		return -1
	}
	return l
}

// again follows what differs.
type again struct {
	j, old *Job
	dependencies
	// more reports whether some packets wait that did not.
	more bool
}

// follow follows the packets for each LID from each switch where its exit, or the link behind
// that, is not what it was. Where all of them arrive, those of all other switches do: they
// arrived before, and go as before until they come to one of these, if ever.
func (a *again) follow() bool {
	j := a.j
	byLID := slices.Repeat([]int32{-1}, int(ib.LIDUnicastMax)+1)
	for i, d := range j.dests {
		byLID[d.lid] = int32(i)
	}
	for s, n := range j.switches {
		now, was := j.in.Tables[n.Index].Exits, a.old.in.Tables[a.old.switches[s].Index].Exits
		other, some := a.otherLinks(int32(s))
		if !some && len(now) == len(was) && (len(now) == 0 || &now[0] == &was[0]) {
			continue
		}
		for first := 0; first < len(now) || first < len(was); first += blockLIDs {
			x, y := blockOf(now, first), blockOf(was, first)
			if !some && string(x) == string(y) {
				continue
			}
			for i := range blockLIDs {
				exit, before := ib.PortNone, ib.PortNone
				if i < len(x) {
					exit = x[i]
				}
				if i < len(y) {
					before = y[i]
				}
				if exit == before && !other[exit] || first+i >= len(byLID) || byLID[first+i] < 0 {
					continue
				}
				if !a.arrives(int32(s), &j.dests[byLID[first+i]]) {
					return false
				}
			}
		}
	}
	return true
}

// otherLinks are the ports of a switch whose link to another is not the one that there was.
func (a *again) otherLinks(s int32) (other [256]bool, some bool) {
	for _, pair := range [2][2]*Job{{a.old, a.j}, {a.j, a.old}} {
		from, to := pair[0], pair[1]
		for l := from.firstLink[s]; l < from.firstLink[s+1]; l++ {
			if to.same(s, &from.links[l]) < 0 {
				other[from.links[l].out.Num], some = true, true
			}
		}
	}
	return other, some
}

// arrives follows packets for a LID from a switch, and from those before it that send them
// there, and adds what they wait for.
func (a *again) arrives(s int32, d *dest) bool {
	j := a.j
	to := &j.ends[d.end]
	if to.at < 0 || j.island[s] != j.island[to.at] {
		return false // another judgement says what becomes of those
	}
	before := int32(-1)
	for at, steps := s, 0; ; steps++ {
		out, read := j.in.Tables[j.switches[at].Index].exit(d.lid)
		if !read || steps > len(j.switches) {
			return false
		}
		slot := int(j.slots[at][out])
		if slot == j.degree {
			return at == to.at && out == to.exit
		}
		if at == to.at {
			return false
		}
		h := j.hops[int(at)*(j.degree+1)+slot]
		if before >= 0 {
			a.wait(before, h.link)
		} else {
			a.sendersBefore(s, d.lid, h.link)
		}
		before, at = h.link, h.next
	}
}

// sendersBefore adds that the packets which neighbours send to a switch for a LID wait for its
// link.
func (a *again) sendersBefore(s int32, lid ib.LID, next int32) {
	j := a.j
	for l := j.firstLink[s]; l < j.firstLink[s+1]; l++ {
		far := j.links[l].out.Peer
		if out, read := j.in.Tables[far.Node.Index].exit(lid); read && out == far.Num {
			from := j.links[l].to
			a.wait(j.firstLink[from]+int32(j.slots[from][far.Num]), next)
		}
	}
}

// wait adds that packets on one link wait for the next, on each lane.
func (a *again) wait(link, next int32) {
	for set := a.j.laneSets[0]; set != 0; set &= set - 1 {
		lane := uint8(bits.TrailingZeros16(set))
		slot := next - a.j.firstLink[a.j.links[link].to]
		if word := &a.bits[a.row(link, lane, lane)+int(slot)/64]; *word>>(slot%64)&1 == 0 {
			*word |= 1 << (slot % 64)
			a.more = true
		}
		a.used |= 1 << lane
	}
}

// blockOf are the exits of a block of LIDs, as far as a table has them.
func blockOf(exits []ib.PortNum, first int) []ib.PortNum {
	return exits[min(first, len(exits)):min(first+blockLIDs, len(exits))]
}
