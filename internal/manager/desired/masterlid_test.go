package desired

import (
	"maps"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// setAside is a policy that sets a LID aside for the master; 0 for none.
func setAside(l ib.LID) *policy.Policy {
	p := tenants([]int{2, 3}, []int{4})
	s := policy.DefaultSettings()
	s.MasterSMLID = l
	p.Settings = &s
	return p
}

// holding is a star whose devices hold what a result wants, with its tables read.
func holding(r *Result, hosts int) *observed.Fabric {
	f := star(hosts)
	for _, p := range f.EndPorts() {
		want := r.Tables.Port(p)
		p.Info.LID, p.Info.LMC, p.Info.MasterSMLID = want.Info.LID, want.Info.LMC, want.Info.MasterSMLID
		p.Info.PortState = smp.PortActive
	}
	sw := f.Nodes[0].Switch
	sw.InfoRead, sw.LFT, sw.LFTRead = true, r.Tables.Nodes[0].LFT, nil
	for len(sw.LFTRead)*smp.LIDsPerLinearBlock < len(sw.LFT) {
		sw.LFTRead = append(sw.LFTRead, true)
	}
	sw.Info.LinearFDBTop = ib.LID(len(sw.LFT) - 1)
	return f
}

// The LID of the master belongs to no port but that of the manager, which keeps one of its
// own; all name it, and it leads where the own LID of that port does. With another manager
// nothing changes but that, whether or not it remembers what was assigned.
func TestMasterLID(t *testing.T) {
	for _, lmc := range []ib.LMC{0, 2} {
		const m = 9
		first := compute(t, Input{Fabric: star(4), LMC: lmc}, setAside(m))
		f := holding(first, 4)
		owners := map[ib.LID]*observed.Port{}
		for p, at := range first.LIDs() {
			for i := range at.LMC.Count() {
				if owners[at.LID+ib.LID(i)] != nil {
					t.Errorf("LMC %d: two ports have LID %d", lmc, at.LID)
				}
				owners[at.LID+ib.LID(i)] = p
			}
			if want := first.Tables.Port(p); want.Info.MasterSMLID != m {
				t.Errorf("LMC %d: %s names %d", lmc, p, want.Info.MasterSMLID)
			}
		}
		own := first.Assigned.LIDs[guid(1)]
		if p := owners[m]; p == nil || p.GUID != guid(1) || own == 0 || own == m || owners[own] != nil {
			t.Errorf("LMC %d: LID %d is that of %v, whose own is %d", lmc, m, p, own)
		}
		if lft := first.Tables.Nodes[0].LFT; lft[m] != 1 || lft[own] != 1 {
			t.Errorf("LMC %d: it leads to port %d, the own one to %d", lmc, lft[m], lft[own])
		}
		for _, known := range []map[ib.PortGUID]ib.LID{first.Assigned.LIDs, nil} {
			f.Self = host(f, 2)
			second := compute(t, Input{Fabric: f, LMC: lmc, Known: Assigned{LIDs: known}}, setAside(m))
			if !maps.Equal(second.Assigned.LIDs, first.Assigned.LIDs) {
				t.Errorf("LMC %d: assigned %v, before %v", lmc, second.Assigned.LIDs, first.Assigned.LIDs)
			}
			for i, now := range second.Tables.Nodes[0].LFT {
				if before := first.Tables.Nodes[0].LFT[i]; (i == m) == (now == before) {
					t.Errorf("LMC %d: LID %d leads to port %d, before to %d", lmc, i, now, before)
				}
			}
			for _, p := range f.EndPorts() {
				was, is := first.Tables.Port(p).Info, second.Tables.Port(p).Info
				moved := p == host(f, 1) || p == host(f, 2)
				if (was.LID != is.LID || was.LMC != is.LMC) != moved || was.MasterSMLID != is.MasterSMLID {
					t.Errorf("LMC %d: %s goes from LID %d to %d", lmc, p, was.LID, is.LID)
				}
			}
			if at := second.Tables.Port(host(f, 1)).Info; at.LID != own || at.LMC != lmc {
				t.Errorf("LMC %d: the former master gets LID %d with LMC %d, its own is %d", lmc, at.LID, at.LMC, own)
			}
		}
		f.Self = host(f, 1)
		if same := compute(t, Input{Fabric: f, LMC: lmc}, setAside(m)); len(same.Warnings) > 0 || !maps.Equal(same.Assigned.LIDs, first.Assigned.LIDs) {
			t.Errorf("LMC %d: the same manager without memory: %v, %q", lmc, same.Assigned.LIDs, same.Warnings)
		}
	}
}

// A LID for managers is refused where another port was assigned it, where one has it from
// another manager, and where a table has no entry for it; not where a port merely says that
// it has it, nor where it is a manager's already.
func TestMasterLIDThatIsTaken(t *testing.T) {
	base := compute(t, Input{Fabric: star(4)}, setAside(0))
	lid := func(i int) ib.LID { return base.Assigned.LIDs[guid(i)] }
	for _, x := range []struct {
		name string
		m    ib.LID
		edit func(*Input, *observed.Fabric)
		want string // "" is taken
	}{
		{"free", 40, func(*Input, *observed.Fabric) {}, ""},
		{"the manager's own", lid(1), func(*Input, *observed.Fabric) {}, ""},
		{"assigned", lid(3), func(*Input, *observed.Fabric) {}, "host-3"},
		{"assigned to an absent port", 50, func(in *Input, _ *observed.Fabric) { in.Known.LIDs[0x999] = 50 }, "absent"},
		{"beyond the table", 1024, func(*Input, *observed.Fabric) {}, "ends at LID 1023"},
		{"given by another manager", lid(3), func(in *Input, _ *observed.Fabric) { in.Known.LIDs, in.Newcomer = nil, true }, "host-3"},
		{"the same, and somebody waits", lid(3), func(in *Input, _ *observed.Fabric) { in.Known.LIDs = nil }, ""},
		{"claimed", 40, func(in *Input, f *observed.Fabric) { host(f, 3).Info.LID, in.Newcomer = 40, true }, ""},
		{"claimed by one that nobody knows", 40, func(in *Input, f *observed.Fabric) {
			in.Known.LIDs, in.Newcomer, host(f, 3).Info.LID = nil, true, 40
		}, ""},
		{"of the former master", lid(3), func(_ *Input, f *observed.Fabric) { f.Self.Info.MasterSMLID = lid(3) }, ""},
		{"in force", lid(3), func(in *Input, _ *observed.Fabric) { in.Stands = true }, ""},
	} {
		f := holding(base, 4)
		in := Input{Fabric: f, Known: Assigned{LIDs: maps.Clone(base.Assigned.LIDs)}}
		x.edit(&in, f)
		r, err := tryCompute(t, in, setAside(x.m))
		switch {
		case x.want == "" && err != nil, x.want != "" && err == nil:
			t.Errorf("%s: %v", x.name, err)
		case x.want != "" && !strings.Contains(err.Error(), x.want):
			t.Errorf("%s: %v, want %q", x.name, err, x.want)
		case err == nil:
			for p, at := range r.LIDs() {
				if (at.LID == x.m) != (p == f.Self) {
					t.Errorf("%s: %s is assigned LID %d", x.name, p, at.LID)
				}
			}
		}
	}
}
