package server

import (
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// limited is a world in which partition 1 has levels for services and a rate limit, and
// partition 2 neither.
func limited() *world {
	w := build(2, 1, 4)
	w.tenants(2)
	for i := range w.parts {
		if p := &w.parts[i]; p.Base == 1 {
			p.SL, p.RateLimit = 3, ib.Rate(4) // 20 Gb/s
			p.ByService = []observed.ServiceRange{{First: 0x1060CBC, Last: 0x1060CBC, SL: 5}, {First: 0x100, Last: 0x1FF, SL: 0}}
		}
	}
	return w
}

// A path has the level that the policy gives its partition, or the service in it that the
// query names, and is said to carry no more than the policy allows.
func TestPathsOfServices(t *testing.T) {
	w := limited()
	s := w.serve(t, Config{})
	hosts := map[ib.PKeyBase][]*observed.Port{}
	for _, p := range w.hosts {
		for _, part := range w.parts {
			if part.Base < 3 && p.Node.Switch == nil {
				for _, g := range part.Full {
					if g == p.GUID {
						hosts[part.Base] = append(hosts[part.Base], p)
					}
				}
			}
		}
	}
	const whole = sa.PathRecordServiceID8MSB | sa.PathRecordServiceID56LSB
	rate := func(r ib.Rate) *ib.Rate { return &r }
	for _, c := range []struct {
		base     ib.PKeyBase
		mask     sa.ComponentMask
		id       uint64
		sl       ib.SL // asked with PathRecordSL
		asked    ib.Rate
		selector sa.Selector
		want     ib.SL
		rate     *ib.Rate // nil: no path
	}{
		{base: 1, want: 3, rate: rate(4)},
		{base: 1, mask: whole, id: 0x1060CBC, want: 5, rate: rate(4)},
		{base: 1, mask: whole, id: 0x1FF, want: 0, rate: rate(4)},
		{base: 1, mask: whole, id: 0x200, want: 3, rate: rate(4)},
		{base: 1, mask: sa.PathRecordServiceID56LSB, id: 0x1060CBC, want: 3, rate: rate(4)}, // half of an ID is none
		{base: 1, mask: whole | sa.PathRecordSL, id: 0x1060CBC, sl: 3},
		{base: 1, mask: whole | sa.PathRecordSL, id: 0x1060CBC, sl: 5, want: 5, rate: rate(4)},
		{base: 1, mask: sa.PathRecordSL, sl: 5},
		{base: 1, mask: sa.PathRecordRate | sa.PathRecordRateSelector, selector: sa.SelectExactly, asked: 7}, // 40 Gb/s
		{base: 1, mask: sa.PathRecordRate | sa.PathRecordRateSelector, selector: sa.SelectGreater, asked: 4},
		{base: 1, mask: sa.PathRecordRate | sa.PathRecordRateSelector, selector: sa.SelectBest, want: 3, rate: rate(4)},
		{base: 1, mask: sa.PathRecordRate | sa.PathRecordRateSelector, selector: sa.SelectExactly, asked: 3, want: 3, rate: rate(3)},
		{base: 2, mask: whole, id: 0x1060CBC, want: 0, rate: rate(16)}, // another's service; 100 Gb/s
	} {
		from, to := hosts[c.base][0], hosts[c.base][1]
		r := exchange(t, s, from.Info.LID, ask(mad.MethodGetTable, sa.AttrPathRecord, c.mask|sa.PathRecordSLID|sa.PathRecordDLID|sa.PathRecordPKey,
			&sa.PathRecord{SLID: from.Info.LID, DLID: to.Info.LID, ServiceID: c.id, PathProperties: sa.PathProperties{
				PKey: c.base.Full(), SL: c.sl, RateSelector: c.selector, Rate: c.asked,
			}}, 0))
		if len(r.records) == 0 && c.rate == nil {
			continue
		}
		var got sa.PathRecord
		if len(r.records) != 1 || got.UnmarshalBinary(r.records[0]) != nil || c.rate == nil || got.SL != c.want || got.Rate != *c.rate {
			t.Errorf("%+v: %d paths, SL %d, rate %v", c, len(r.records), got.SL, got.Rate)
		}
	}
}

// Whatever a host asks for, no path has a level that its partition has not, or carries more
// than its limit.
func TestNoQueryWidensAPath(t *testing.T) {
	w := limited()
	s := w.serve(t, Config{})
	r := rand.New(rand.NewPCG(5, 5))
	given := 0
	for range 6000 {
		from, to := w.hosts[r.IntN(len(w.hosts))], w.hosts[r.IntN(len(w.hosts))]
		mask := sa.PathRecordSLID | sa.PathRecordDLID
		for _, c := range []sa.ComponentMask{
			sa.PathRecordServiceID8MSB, sa.PathRecordServiceID56LSB, sa.PathRecordSL, sa.PathRecordRate, sa.PathRecordRateSelector, sa.PathRecordPKey,
			sa.PathRecordTClass, sa.PathRecordQoSClass, sa.PathRecordReversible,
		} {
			if r.IntN(3) > 0 {
				mask |= c
			}
		}
		ids := []uint64{0x1060CBC, 0x100, 0x1FF, 0, r.Uint64()}
		q := sa.PathRecord{SLID: from.Info.LID, DLID: to.Info.LID, ServiceID: ids[r.IntN(len(ids))], PathProperties: sa.PathProperties{
			PKey: ib.PKey(1 + r.IntN(2)), SL: ib.SL(r.IntN(6)), RateSelector: sa.Selector(r.IntN(4)), Rate: ib.Rate(r.IntN(20)), TClass: uint8(r.IntN(256)),
		}}
		for _, b := range exchange(t, s, from.Info.LID, ask(mad.MethodGetTable, sa.AttrPathRecord, mask, &q, 0)).records {
			var got sa.PathRecord
			if err := got.UnmarshalBinary(b); err != nil {
				t.Fatal(err)
			}
			given++
			for i := range w.parts {
				if p := &w.parts[i]; p.Base == got.PKey.Base() && (p.Levels()>>got.SL&1 == 0 || p.RateLimit != 0 && got.Rate.Tenths() > p.RateLimit.Tenths()) {
					t.Fatalf("mask %#x, %+v: %+v", uint64(mask), q, got)
				}
			}
		}
	}
	if given < 300 {
		t.Errorf("%d paths were given: want more to look at", given)
	}
}

// A group that a host creates carries no more than its partition may.
func TestGroupsKeepTheLimit(t *testing.T) {
	w := limited()
	s := w.serve(t, Config{})
	const needs = sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordJoinState | sa.MCMemberRecordQKey | sa.MCMemberRecordPKey |
		sa.MCMemberRecordSL | sa.MCMemberRecordTClass | sa.MCMemberRecordFlowLabel
	for i, c := range []struct {
		mask     sa.ComponentMask
		selector sa.Selector
		rate     ib.Rate
		want     ib.Rate // 0: refused
	}{
		{0, 0, 0, 4},
		{sa.MCMemberRecordRateSelector | sa.MCMemberRecordRate, sa.SelectBest, 0, 4},
		{sa.MCMemberRecordRateSelector | sa.MCMemberRecordRate, sa.SelectExactly, 7, 0},
		{sa.MCMemberRecordRateSelector | sa.MCMemberRecordRate, sa.SelectGreater, 4, 0},
		{sa.MCMemberRecordRateSelector | sa.MCMemberRecordRate, sa.SelectExactly, 3, 3},
	} {
		var host *observed.Port
		for _, p := range w.hosts {
			if host == nil && p.PKeys[1] == ib.PKeyBase(1).Full() && p != w.fabric.Self {
				host = p
			}
		}
		r := exchange(t, s, host.Info.LID, ask(mad.MethodSet, sa.AttrMCMemberRecord, needs|c.mask, &sa.MCMemberRecord{
			MGID: ib.GID{0: 0xFF, 1: 0x12, 15: byte(i + 1)}, PortGID: ib.MakeGID(ib.DefaultGIDPrefix, host.GUID), JoinState: sa.JoinFull,
			QKey: 5, PKey: ib.PKeyBase(1).Full(), RateSelector: c.selector, Rate: c.rate,
		}, 0))
		var got sa.MCMemberRecord
		if refused := r.Status != mad.StatusOK; refused != (c.want == 0) || !refused && (got.UnmarshalBinary(r.Data[:]) != nil || got.Rate != c.want) {
			t.Errorf("%+v: status %v, rate %v", c, r.Status, got.Rate)
		}
	}
}
