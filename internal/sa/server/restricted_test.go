package server

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// openTo is what a port that nobody trusts may ask for in a restricted profile,
// said once more.
var openTo = map[mad.AttributeID]string{
	mad.AttrClassPortInfo: "G", sa.AttrPathRecord: "GT", sa.AttrMultiPathRecord: "M", sa.AttrMCMemberRecord: "GTSD",
	sa.AttrServiceRecord: "GTSD", sa.AttrInformInfo: "S", sa.AttrInformInfoRecord: "GT", sa.AttrGUIDInfoRecord: "GTSD",
	sa.AttrNodeRecord: "GT", sa.AttrPortInfoRecord: "GT",
}

var letters = map[mad.Method]string{
	mad.MethodGet: "G", mad.MethodGetTable: "T", mad.MethodSet: "S", mad.MethodDelete: "D", mad.MethodGetMulti: "M", mad.MethodGetTraceTable: "R",
}

// shortTurns makes answers of some records take several turns.
func shortTurns(r *rand.Rand, l Limits) Limits {
	l.Turn = 1 + r.IntN(8)
	return l
}

// restrict makes a server of a profile for a model, in which the manager's port
// and one more are trusted.
func (m *model) restrict(t testing.TB, r *rand.Rand, p protect.Profile) *Server {
	t.Helper()
	named := m.hosts[r.IntN(len(m.hosts))]
	m.trusted = map[*observed.Port]bool{}
	for _, x := range []*observed.Port{m.fabric.Self, named} {
		m.trusted[x] = !m.isContested(x)
	}
	s := New(Config{SAKey: 99, AliasGUIDs: true, Profile: p, Limits: shortTurns(r, LimitsOf(p))})
	snapshot := m.snapshot()
	snapshot.Trusted = map[ib.PortGUID]bool{named.GUID: true}
	if errs := s.SetSubnet(0, snapshot); len(errs) > 0 {
		t.Fatal(errs)
	}
	return s
}

// TestRestrictedVisibility asks in the profiles tenant and strict, as every port
// by every method for every record, and compares with the model both ways.
func TestRestrictedVisibility(t *testing.T) {
	rounds := uint64(40)
	if testing.Short() {
		rounds = 8
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 17))
		m := randomModel(t, r)
		s := m.restrict(t, r, []protect.Profile{protect.Tenant, protect.Strict}[seed%2])
		for _, a := range m.hosts {
			if m.isContested(a) {
				continue
			}
			for id := range mad.AttributeID(0x100) {
				for method, letter := range letters {
					if method == mad.MethodSet || method == mad.MethodDelete {
						continue // what is registered has tests of its own
					}
					got := exchange(t, s, a.Info.LID, ask(method, id, 0, nil, 0))
					known := got.Status != mad.StatusUnsupportedAttrib && got.Status != mad.StatusUnsupportedMethod
					denied := known && !m.trusted[a] && !strings.Contains(openTo[id], letter)
					if denied != (got.Status == sa.StatusDenied) {
						t.Fatalf("seed %d: %s of %#x as LID %d, trusted %v: %s", seed, method, id, a.Info.LID, m.trusted[a], got.Status)
					}
				}
			}
			m.compareRestricted(t, s, a, seed)
			m.comparePairs(t, s, a, r, seed)
		}
	}
}

// compareRestricted asks as a port for whole tables.
func (m *model) compareRestricted(t *testing.T, s *Server, a *observed.Port, seed uint64) {
	t.Helper()
	for _, id := range modelled {
		if !m.trusted[a] && !strings.Contains(openTo[id], "T") {
			continue
		}
		got := exchange(t, s, a.Info.LID, ask(mad.MethodGetTable, id, 0, nil, 0))
		if got.Status != mad.StatusOK {
			t.Fatalf("seed %d: %s as LID %d: %s", seed, sa.AttributeName(id), a.Info.LID, got.Status)
		}
		var have []string
		for _, b := range got.records {
			have = append(have, text(t, id, b)...)
		}
		sort.Strings(have)
		want := m.expect(a, id)
		if id == sa.AttrPathRecord && !m.trusted[a] { // its own, since it names no end
			want = slices.DeleteFunc(want, func(x string) bool { return !strings.HasPrefix(x, fmt.Sprintf("%d ", a.Info.LID)) })
		}
		if !slices.Equal(have, want) {
			t.Fatalf("seed %d: %s as LID %d:\nhave %q\nwant %q", seed, sa.AttributeName(id), a.Info.LID, have, want)
		}
	}
}

// comparePairs asks as a port for the path between every two, by GIDs or LIDs, and
// from one to many.
func (m *model) comparePairs(t *testing.T, s *Server, a *observed.Port, r *rand.Rand, seed uint64) {
	t.Helper()
	for _, x := range m.hosts {
		for _, y := range m.hosts {
			if m.isContested(x) || m.isContested(y) {
				continue
			}
			query, mask := &sa.PathRecord{SLID: x.Info.LID, DLID: y.Info.LID}, sa.PathRecordSLID|sa.PathRecordDLID
			if r.IntN(2) == 0 {
				query, mask = &sa.PathRecord{SGID: gidOf(x), DGID: gidOf(y)}, sa.PathRecordSGID|sa.PathRecordDGID
			}
			want := sa.StatusNoRecords
			paths := map[string]bool{}
			m.expectPath(a, x, y, func(format string, args ...any) { paths[fmt.Sprintf(format, args...)] = true })
			switch {
			case !m.sees(a, x) || !m.sees(a, y):
			case !m.trusted[a] && a != x && a != y:
				want = sa.StatusDenied
			case len(paths) > 0:
				want = mad.StatusOK
			}
			got := exchange(t, s, a.Info.LID, ask(mad.MethodGet, sa.AttrPathRecord, mask, query, 0))
			if got.Status != want || want == mad.StatusOK && !paths[text(t, sa.AttrPathRecord, got.Data[:])[0]] {
				t.Fatalf("seed %d: path from LID %d to %d as LID %d: %s, want %s of %v", seed, x.Info.LID, y.Info.LID, a.Info.LID, got.Status, want, paths)
			}
			if multi := exchange(t, s, a.Info.LID, ask(mad.MethodGetMulti, sa.AttrMultiPathRecord, sa.MultiPathRecordSGIDCount|sa.MultiPathRecordDGIDCount,
				&sa.MultiPathRecord{SGIDs: []ib.GID{gidOf(x)}, DGIDs: []ib.GID{gidOf(y)}}, 0)); (len(multi.records) > 0) != (want == mad.StatusOK) {
				t.Fatalf("seed %d: MultiPathRecord from LID %d to %d as LID %d: %s, %d paths, want %s", seed, x.Info.LID, y.Info.LID, a.Info.LID, multi.Status, len(multi.records), want)
			}
		}
	}
}

// expectPath is the path between two ports that a may learn of, as text.
func (m *model) expectPath(a, from, to *observed.Port, add func(string, ...any)) {
	w := &model{world: &world{fabric: m.fabric, hosts: []*observed.Port{to}, parts: m.parts}, trusted: m.trusted}
	w.all = m.everybody()
	w.expectPaths(a, from, add)
}

// TestRestrictedRegistrations: services, memberships, subscriptions and alias
// GUIDs are a port's own, whoever asks; a port that the policy trusts may
// register for others, and so may whoever has the SA_Key. The manager's own
// port may not: everybody shares a key with it.
func TestRestrictedRegistrations(t *testing.T) {
	s, w, a, b, other := twoTenants(t, Config{SAKey: 9, AliasGUIDs: true, Profile: protect.Tenant})
	self := w.fabric.Self.Info.LID
	set := func(from ib.LID, id mad.AttributeID, mask sa.ComponentMask, r sa.Record, key ib.SMKey) mad.Status {
		return exchange(t, s, from, ask(mad.MethodSet, id, mask, r, key)).Status
	}
	trust := func(lids ...ib.LID) {
		snapshot := w.snapshot()
		snapshot.Trusted = map[ib.PortGUID]bool{}
		for _, lid := range lids {
			snapshot.Trusted[s.view.At(lid).GUID] = true
		}
		if errs := s.SetSubnet(0, withGroups(snapshot, 1, 2)); errs != nil {
			t.Fatal(errs)
		}
	}
	for _, c := range []struct {
		from    ib.LID
		key     ib.SMKey
		trusted bool
		want    mad.Status
	}{
		{a, 0, false, mad.StatusOK},
		{b, 0, false, sa.StatusInvalidGID},
		{other, 0, false, sa.StatusInvalidGID},
		{self, 0, false, sa.StatusInvalidGID},
		{self, 9, false, mad.StatusOK},
		{b, 9, false, mad.StatusOK},
		{other, 9, false, sa.StatusInvalidGID}, // it does not see the port
		{other, 0, true, mad.StatusOK},
	} {
		trust()
		if c.trusted {
			trust(c.from)
		}
		if got := set(c.from, sa.AttrMCMemberRecord, kernelJoin, join(s, a, broadcast(1), 1), c.key); got != c.want {
			t.Errorf("LID %d joins LID %d to a group with key %d, trusted %v: %s, want %s", c.from, a, c.key, c.trusted, got, c.want)
		}
	}
	trust()
	service := &sa.ServiceRecord{ServiceID: 1, ServiceGID: s.view.At(a).GID}
	alias := &sa.GUIDInfoRecord{LID: a}
	for lid, want := range map[ib.LID]bool{a: true, b: false, other: false, self: false} {
		if got := set(lid, sa.AttrServiceRecord, serviceNeeds, service, 0); (got == mad.StatusOK) != want {
			t.Errorf("LID %d registers a service of LID %d: %s", lid, a, got)
		}
		if got := set(lid, sa.AttrGUIDInfoRecord, aliasNeeds|sa.GUIDInfoRecordGUID1, alias, 0); (got == mad.StatusOK) != want {
			t.Errorf("LID %d registers an alias GUID of LID %d: %s", lid, a, got)
		}
	}
	// The alias GUID of a neighbour, and its own GUID as one's alias.
	owned := s.aliasesOf(s.view.At(a).GUID)[0]
	for what, guid := range map[string]uint64{"alias": uint64(owned), "GUID": uint64(s.view.At(a).GUID)} {
		steal := &sa.GUIDInfoRecord{LID: b}
		steal.Table.GUIDs[1] = guid
		got := exchange(t, s, b, ask(mad.MethodSet, sa.AttrGUIDInfoRecord, aliasNeeds|sa.GUIDInfoRecordGUID1, steal, 0))
		var x sa.GUIDInfoRecord
		if x.UnmarshalBinary(got.Data[:]) != nil || got.Status == mad.StatusOK && x.Table.GUIDs[1] != 0 {
			t.Errorf("the %s of a neighbour was registered: %s", what, got.Status)
		}
	}
	if owner, _ := s.ownerOf(owned); owner != s.view.At(a).GUID {
		t.Errorf("the alias belongs to %s now", owner)
	}
}

// TestTrustEnds: what a port may learn because the policy trusts it ends with
// that, for subscriptions too.
func TestTrustEnds(t *testing.T) {
	s, w, a, b, _ := twoTenants(t, Config{Profile: protect.Tenant})
	snapshot := w.snapshot()
	snapshot.Trusted = map[ib.PortGUID]bool{s.view.At(a).GUID: true}
	s.SetSubnet(0, snapshot)
	security := everything()
	expectStatus(t, "subscription of a trusted port", exchange(t, s, a, ask(mad.MethodSet, sa.AttrInformInfo, 0, security, 0)), mad.StatusOK)
	breach := badKeyTrap(b)
	s.Notice(0, breach, b)
	if told := reportsOf(t, s); len(told[a]) != 1 {
		t.Errorf("told %v, want the trusted port", told)
	}
	s.SetSubnet(0, w.snapshot())
	s.Notice(0, breach, b)
	if told := reportsOf(t, s); len(told) != 0 {
		t.Errorf("told %v after the policy ceased to trust it", told)
	}
	for _, id := range []mad.AttributeID{sa.AttrPKeyTableRecord, sa.AttrSwitchInfoRecord} {
		expectStatus(t, "its tables", exchange(t, s, a, ask(mad.MethodGetTable, id, 0, nil, 0)), sa.StatusDenied)
	}
}

// TestNoKeysShown: in no profile but none does anybody learn an M_Key or the
// SM_Key, not by the SA_Key either.
func TestNoKeysShown(t *testing.T) {
	for _, p := range []protect.Profile{protect.None, protect.Basic, protect.Tenant, protect.Strict} {
		s, w, _, _, _ := twoTenants(t, Config{SAKey: 9, Profile: p})
		shown := 0
		for _, b := range exchange(t, s, w.fabric.Self.Info.LID, ask(mad.MethodGetTable, sa.AttrPortInfoRecord, 0, nil, 9)).records {
			var r sa.PortInfoRecord
			if r.UnmarshalBinary(b) != nil || r.PortInfo.MKey != 0 {
				shown++
			}
		}
		for _, b := range exchange(t, s, w.fabric.Self.Info.LID, ask(mad.MethodGetTable, sa.AttrSMInfoRecord, 0, nil, 9)).records {
			var r sa.SMInfoRecord
			if r.UnmarshalBinary(b) != nil || r.SMInfo.SMKey != 0 {
				shown++
			}
		}
		if (shown > 0) != (p == protect.None) {
			t.Errorf("profile %s: %d keys were shown", p, shown)
		}
	}
}

// TestExpelledTwin: a port that claims another's GUID takes what that registered
// away as long as nobody knows which of them is right; once it is expelled it is
// nobody, and the other is as before.
func TestExpelledTwin(t *testing.T) {
	s, w, a, _, _ := twoTenants(t, Config{Profile: protect.Tenant})
	var right, twin *observed.Port
	for _, p := range w.hosts {
		switch {
		case p.Info.LID == a:
			right = p
		case p.Node.Switch == nil && p != w.fabric.Self:
			twin = p
		}
	}
	expectStatus(t, "join", exchange(t, s, a, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelJoin, join(s, a, broadcast(1), 1), 0)), mad.StatusOK)
	twin.GUID = right.GUID
	snapshot := w.snapshot()
	snapshot.Expelled = map[*observed.Port]bool{twin: true}
	s.SetSubnet(0, withGroups(snapshot, 1, 2))
	if g := s.groups.Group(broadcast(1)); len(g.Members) != 1 {
		t.Errorf("the members are %+v", g.Members)
	}
	info := func(lid ib.LID) *reply {
		return exchange(t, s, lid, ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil, 0))
	}
	expectStatus(t, "the rightful port", info(a), mad.StatusOK)
	expectStatus(t, "the other", info(twin.Info.LID), sa.StatusRequestInvalid)
	s.SetSubnet(0, withGroups(w.snapshot(), 1, 2))
	for _, p := range []*observed.Port{right, twin} {
		expectStatus(t, "when neither is expelled", info(p.Info.LID), sa.StatusRequestInvalid)
	}
}
