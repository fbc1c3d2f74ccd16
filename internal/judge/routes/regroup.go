package routes

import (
	"math/bits"
	"slices"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// kept is what was found of unicast routes, so that multicast groups that change can be
// judged beside them.
type kept struct {
	job *Job
	// alone are the dependencies without groups, all those with them. What groups had
	// that changed since then may still be in there.
	alone, all dependencies
}

// keep keeps the dependencies as they are before groups are entered.
func (r *Result) keep(j *Job, d *dependencies) {
	r.kept = &kept{job: j, alone: d.clone()}
}

// Beside makes later calls of Regroup look up virtual lanes in d, which wants the same ones
// as what was judged: that is not needed any more.
func (r *Result) Beside(d *observed.Desired) {
	in := *r.kept.job.in
	in.Groups = nil
	in.lanesOf(d)
	r.kept.job.in = &in
}

func (d *dependencies) clone() dependencies {
	return dependencies{j: d.j, bits: slices.Clone(d.bits), used: d.used}
}

// Regroup judges multicast groups that have changed, beside the unicast routes and the groups
// that were judged before: whether their packets go round, are dropped for their level, or
// can wait in a circle. all gives every group there is. ok is false where a group has a level
// that nobody had when the routes were judged. Of the Result only Loops, Drops and Deadlock
// count.
func (r *Result) Regroup(changed []Group, all func() []Group) (out *Result, ok bool) {
	k := r.kept
	for i := range changed {
		if changed[i].SLs&^k.job.levels != 0 {
			return nil, false
		}
	}
	f := newFound(k.job)
	k.job.enterGroups(changed, &k.all, &f)
	circle := k.all.circle()
	if circle != nil {
		// Perhaps of what groups had before.
		none := newFound(k.job)
		k.all = k.alone.clone()
		now := all()
		k.job.enterGroups(now, &k.all, &none)
		if circle = k.all.circle(); circle != nil {
			k.job.in.Groups = now // for the packets that are named
		}
	}
	out = &Result{kept: k}
	f.list(out)
	out.finish(k.job, &k.all, circle)
	return out, true
}

// WithGroups judges multicast groups beside the unicast routes that stand, with the lanes that
// d wants. ok is false where a group has a level that nobody had when those were judged. Of
// the Result only Loops, Drops and Deadlock count.
func (s *Standing) WithGroups(d *observed.Desired, groups []Group) (out *Result, ok bool) {
	j, in := *s.j, *s.j.in
	in.lanesOf(d)
	in.Groups, j.in = groups, &in
	for i := range groups {
		if groups[i].SLs&^j.levels != 0 {
			return nil, false
		}
	}
	all := s.dependencies.clone()
	all.j = &j
	f := newFound(&j)
	j.enterGroups(groups, &all, &f)
	out = &Result{}
	f.list(out)
	out.finish(&j, &all, all.circle())
	return out, true
}

// finish enters the lanes in use and a circle.
func (r *Result) finish(j *Job, d *dependencies, circle []int32) {
	r.Dependencies = d.count()
	for set := d.used; set != 0; set &= set - 1 {
		r.VLs = append(r.VLs, j.vls[bits.TrailingZeros16(set)])
	}
	for i, c := range circle {
		r.Deadlock = append(r.Deadlock, j.wait(c, circle[(i+1)%len(circle)]))
	}
}
