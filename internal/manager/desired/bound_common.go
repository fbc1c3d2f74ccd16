package desired

import (
	"maps"
	"reflect"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// CommonResolution is what two resolutions of a policy, an earlier one and that in force, both say: the
// partitions that both have, with the members and the trusted ports of both. A partition whose
// paths are others than before has no members. alike is false where they differ in more than
// that: in alias GUIDs, or in who may hold two keys of a partition.
func CommonResolution(then, now *policy.Resolution) (r *policy.Resolution, alike bool) {
	if then.AllowBoth != now.AllowBoth || then.NoDefault != now.NoDefault || !reflect.DeepEqual(then.Aliases, now.Aliases) {
		return nil, false
	}
	out := *now
	out.Partitions = nil
	for _, x := range now.Partitions {
		i := slices.IndexFunc(then.Partitions, func(y observed.Partition) bool { return y.Base == x.Base })
		if i < 0 {
			continue
		}
		y := &then.Partitions[i]
		if x.SL != y.SL || x.RateLimit != y.RateLimit || !reflect.DeepEqual(x.ByService, y.ByService) {
			x.Full, x.Limited, x.Index0 = nil, nil, nil
		} else {
			x.Full, x.Limited, x.Index0 = both(x.Full, y.Full), both(x.Limited, y.Limited), both(x.Index0, y.Index0)
		}
		out.Partitions = append(out.Partitions, x)
	}
	out.Trusted = both(now.Trusted, then.Trusted)
	return &out, true
}

// Leave leaves in a subnet, which stood by an earlier resolution of the policy, what that in
// force and the ports within b have in common with it. It reports false, and leaves
// the subnet as it is, where they differ in more than partitions and trust.
func (b *Bound) Leave(s *observed.Subnet, then, now *policy.Resolution, self ib.PortGUID) bool {
	same, alike := CommonResolution(then, now)
	if !alike {
		return false
	}
	same, _ = b.Within(same, self)
	s.Partitions, s.Partial = same.Partitions, true
	maps.DeleteFunc(s.Trusted, func(g ib.PortGUID, _ bool) bool { return !slices.Contains(same.Trusted, g) })
	return true
}

// both are the ports that are in two sorted lists.
func both(a, b []ib.PortGUID) (out []ib.PortGUID) {
	for _, g := range a {
		if _, is := slices.BinarySearch(b, g); is {
			out = append(out, g)
		}
	}
	return out
}
