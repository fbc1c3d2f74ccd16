package desired

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// TestLeave: a subnet keeps the members that the ports held too, and the trusted ports that are
// trusted still; where more differs it is left alone.
func TestLeave(t *testing.T) {
	then := &policy.Resolution{Partitions: []observed.Partition{{Base: 1, Full: []ib.PortGUID{1, 2, 3}}}, Trusted: []ib.PortGUID{1, 9}}
	now := &policy.Resolution{Partitions: []observed.Partition{{Base: 1, Full: []ib.PortGUID{1, 2, 4}}}, Trusted: []ib.PortGUID{9}}
	b := BoundOf(nil, "", false)
	b.Add(2, []ib.PKey{0x8001})
	s := observed.Subnet{Trusted: map[ib.PortGUID]bool{1: true, 9: true}}
	if !b.Leave(&s, then, now, 7) || !s.Partial || len(s.Partitions) != 1 || !slices.Equal(s.Partitions[0].Full, []ib.PortGUID{2}) || len(s.Trusted) != 1 || !s.Trusted[9] {
		t.Errorf("%+v", s)
	}
	other := *now
	other.AllowBoth = true
	if s = (observed.Subnet{}); b.Leave(&s, then, &other, 7) || s.Partial || s.Partitions != nil {
		t.Errorf("%+v", s)
	}
}

// TestCommon: a member of the policy in force is left where the earlier one had it too; what
// else hosts are told of a partition has to be the same.
func TestCommon(t *testing.T) {
	resolved := func(edit func(*policy.Resolution)) *policy.Resolution {
		r := &policy.Resolution{
			Partitions: []observed.Partition{
				{Base: 1, Full: []ib.PortGUID{1, 2, 3}, Limited: []ib.PortGUID{4, 5}, Index0: []ib.PortGUID{1, 2}},
				{Base: 2, Full: []ib.PortGUID{7, 8}},
			},
			Trusted: []ib.PortGUID{1, 9},
			Aliases: []policy.PortAliases{{Port: 1, GUIDs: []ib.PortGUID{77}}},
		}
		if edit != nil {
			edit(r)
		}
		return r
	}
	nobody := func(p observed.Partition) bool { return len(p.Full)+len(p.Limited)+len(p.Index0) == 0 }
	for name, x := range map[string]struct {
		edit  func(*policy.Resolution)
		other bool
		want  func(r *policy.Resolution) bool
	}{
		"the same": {nil, false, func(r *policy.Resolution) bool {
			return len(r.Partitions) == 2 && len(r.Partitions[0].Full) == 3 && len(r.Partitions[0].Limited) == 2 && len(r.Partitions[0].Index0) == 2 && len(r.Trusted) == 2
		}},
		"members come and go": {func(r *policy.Resolution) {
			r.Partitions[0].Full, r.Partitions[0].Limited, r.Partitions[0].Index0 = []ib.PortGUID{2, 3, 4}, []ib.PortGUID{1, 5}, []ib.PortGUID{2, 4}
		}, false, func(r *policy.Resolution) bool {
			p := r.Partitions[0]
			return slices.Equal(p.Full, []ib.PortGUID{2, 3}) && slices.Equal(p.Limited, []ib.PortGUID{5}) && slices.Equal(p.Index0, []ib.PortGUID{2}) && len(r.Partitions[1].Full) == 2
		}},
		"a partition goes": {func(r *policy.Resolution) { r.Partitions = r.Partitions[:1] }, false, func(r *policy.Resolution) bool { return len(r.Partitions) == 1 }},
		"a partition comes": {func(r *policy.Resolution) { r.Partitions[1].Base = 3 }, false, func(r *policy.Resolution) bool {
			return len(r.Partitions) == 1 && r.Partitions[0].Base == 1
		}},
		"another level":       {func(r *policy.Resolution) { r.Partitions[1].SL = 2 }, false, func(r *policy.Resolution) bool { return nobody(r.Partitions[1]) && !nobody(r.Partitions[0]) }},
		"another rate":        {func(r *policy.Resolution) { r.Partitions[1].RateLimit = 2 }, false, func(r *policy.Resolution) bool { return nobody(r.Partitions[1]) }},
		"levels of services":  {func(r *policy.Resolution) { r.Partitions[1].ByService = []observed.ServiceRange{{SL: 1}} }, false, func(r *policy.Resolution) bool { return nobody(r.Partitions[1]) }},
		"another is trusted":  {func(r *policy.Resolution) { r.Trusted = []ib.PortGUID{1, 2} }, false, func(r *policy.Resolution) bool { return slices.Equal(r.Trusted, []ib.PortGUID{1}) }},
		"an alias moves":      {func(r *policy.Resolution) { r.Aliases[0].Port = 2 }, true, nil},
		"two keys":            {func(r *policy.Resolution) { r.AllowBoth = true }, true, nil},
		"no key by default":   {func(r *policy.Resolution) { r.NoDefault = true }, true, nil},
		"aliases are dropped": {func(r *policy.Resolution) { r.Aliases = nil }, true, nil},
	} {
		r, alike := CommonResolution(resolved(nil), resolved(x.edit))
		if alike == x.other || alike && !x.want(r) {
			t.Errorf("%s: alike %v, %+v", name, alike, r)
		}
	}
}
