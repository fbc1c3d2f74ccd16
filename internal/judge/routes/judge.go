package routes

import (
	"math/bits"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Judge judges a routing.
func Judge(in *Input) *Result {
	j := Prepare(in)
	return j.Result(j.work()...)
}

// work does the work of a Job in parts.
func (j *Job) work() []*Part {
	in := j.in
	parts := make([]*Part, min(max(1, in.Parts), max(1, j.Blocks())))
	do := func(i int) {
		parts[i] = j.Part()
		parts[i].Do(i*j.Blocks()/len(parts), (i+1)*j.Blocks()/len(parts))
	}
	if in.Parallel != nil {
		in.Parallel(len(parts), do)
	} else {
		for i := range parts {
			do(i)
		}
	}
	return parts
}

// Result puts together what the parts found, in the order of their blocks, which together
// are all blocks. The parts are of no use afterwards.
func (j *Job) Result(parts ...*Part) *Result {
	all := parts[0]
	for _, p := range parts[1:] {
		all.merge(p)
	}
	return j.result(all)
}

// result is what one part for all blocks found.
func (j *Job) result(all *Part) *Result {
	f, d := &all.found, &all.dependencies
	f.dropAtHosts()
	r := &Result{}
	r.keep(j, d)
	circle := d.circle()
	j.enterGroups(j.in.Groups, d, f)
	r.kept.all = *d
	if circle == nil && len(j.in.Groups) > 0 {
		circle = d.circle()
	}
	f.list(r)
	r.finish(j, d, circle)
	return r
}

func (p *Part) merge(o *Part) {
	p.found.merge(&o.found)
	p.dependencies.merge(&o.dependencies)
}

// channel is the link and lane of a number.
func (j *Job) channel(c int32) Channel {
	lanes := int32(len(j.vls))
	return Channel{j.links[c/lanes].out, j.vls[c%lanes]}
}

// wait is the step of a credit loop from one channel to the next, with a packet that takes
// both.
func (j *Job) wait(from, to int32) Wait {
	w := Wait{Channel: j.channel(from), For: j.channel(to)}
	lanes := int32(len(j.vls))
	first, second := &j.links[from/lanes], &j.links[to/lanes]
	leads := func(l *link, lid ib.LID) bool {
		out, read := j.in.Tables[l.out.Node.Index].exit(lid)
		return read && out == l.out.Num
	}
	// Of packets between CAs and routers people think first.
	for _, hosts := range []bool{true, false} {
		for _, d := range j.dests {
			to := &j.ends[d.end]
			if hosts && to.isSwitch() || !leads(first, d.lid) || !leads(second, d.lid) {
				continue
			}
			for i := range j.ends {
				e := &j.ends[i]
				if e.at < 0 || e == to || hosts && e.isSwitch() || !j.sends(j.audienceOf(to), e) {
					continue
				}
				if sl, ok := j.takes(e, &d, w.Channel, w.For); ok {
					w.From, w.LID, w.To, w.SL = e.port, d.lid, to.port, sl
					return w
				}
			}
		}
	}
	j.waitOfGroup(&w, from, to)
	return w
}

// levelsBetween are the levels of packets from an end port to a LID.
func (j *Job) levelsBetween(from *sender, to *dest) SLs {
	l := &j.in.Levels
	if l.Each != nil {
		return l.Each(from.port, to.lid)
	}
	if end := &j.ends[to.end]; end.at >= 0 && from.at >= 0 {
		return l.of(l.layer(j.switches[from.at], j.switches[end.at]))
	}
	return l.of(0)
}

// takes reports whether packets from an end port to a LID, which do not go round, take one
// channel and then the other, and the level of those that do.
func (j *Job) takes(from *sender, to *dest, first, second Channel) (sl ib.SL, ok bool) {
	for set := j.levelsBetween(from, to); set != 0; set &= set - 1 {
		lid := to.lid
		sl, ok = ib.SL(bits.TrailingZeros16(uint16(set))), false
		at, in := from.at, from.exit
		var before Channel
		steps := 0
		for lost := false; steps <= len(j.switches); steps++ {
			out, read := j.in.Tables[j.switches[at].Index].exit(lid)
			if !read || int(j.slots[at][out]) == j.degree {
				break
			}
			now := Channel{Out: &j.switches[at].Ports[out]}
			if lane := j.mapping(at, in, out)[sl]; lane == dropped {
				lost = true
			} else if now.VL = j.vls[lane]; !lost {
				ok = ok || before == first && now == second
			}
			far := now.Out.Peer
			if t := &j.in.Tables[far.Node.Index]; t.byDefault(lid) {
				if back, _ := t.exit(lid); back == far.Num {
					break
				}
			}
			before, at, in = now, j.number[far.Node.Index], far.Num
		}
		if ok && steps <= len(j.switches) {
			return sl, true
		}
	}
	return 0, false
}

// waitOfGroup finds the group and the level whose packets take two channels, one after the
// other.
func (j *Job) waitOfGroup(w *Wait, from, to int32) {
	for i := range j.in.Groups {
		g := j.in.Groups[i]
		if j.spread(&g).circle() != nil {
			continue
		}
		for set := j.in.Groups[i].SLs; set != 0; set &= set - 1 {
			w.LID, w.SL = g.MLID, ib.SL(bits.TrailingZeros16(uint16(set)))
			g.SLs = SL(w.SL)
			x := j.spread(&g)
			if slices.Contains(x.waits, [2]int32{from, to}) {
				w.From = j.senderOf(x, from)
				return
			}
		}
	}
}

// senderOf is an end port whose packets to a group take a channel.
func (j *Job) senderOf(x *spread, channel int32) *observed.Port {
	lanes := int32(len(j.vls))
	seen := map[int32]bool{channel: true}
	for queue := []int32{channel}; len(queue) > 0; queue = queue[1:] {
		s := j.number[j.links[queue[0]/lanes].out.Node.Index]
		for _, i := range j.at[s] {
			e := &j.ends[i]
			if e.isSwitch() && j.in.Talk == Hosts {
				continue
			}
			for _, out := range x.group.Exits(j.switches[s], e.exit) {
				if j.links[queue[0]/lanes].out.Num == out && j.laneFor(s, e.exit, out, x.group.SLs)>>(queue[0]%lanes)&1 != 0 {
					return e.port
				}
			}
		}
		for _, pair := range x.waits {
			if pair[1] == queue[0] && !seen[pair[0]] {
				seen[pair[0]] = true
				queue = append(queue, pair[0])
			}
		}
	}
	return nil
}

// laneFor is the set of lanes that levels take between two ports of a switch.
func (j *Job) laneFor(s int32, in, out ib.PortNum, set SLs) (lanes uint16) {
	for m := j.mapping(s, in, out); set != 0; set &= set - 1 {
		if lane := m[bits.TrailingZeros16(uint16(set))]; lane != dropped {
			lanes |= 1 << lane
		}
	}
	return lanes
}
