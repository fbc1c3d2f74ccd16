package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// twoTenants is a server with tenants 1 and 2, each with IPoIB, and two hosts
// of tenant 1 and one of tenant 2.
func twoTenants(t testing.TB, c Config) (s *Server, w *world, a, b, other ib.LID) {
	w = build(1, 1, 4)
	w.tenants(2)
	s = New(c)
	if errs := s.SetSubnet(0, withGroups(w.snapshot(), 1, 2)); errs != nil {
		t.Fatal(errs)
	}
	var hosts []ib.LID
	for _, p := range w.hosts {
		if p.Node.Switch == nil {
			hosts = append(hosts, p.Info.LID)
		}
	}
	return s, w, hosts[0], hosts[2], hosts[1]
}

// withGroups is a subnet whose policy has broadcast groups in some partitions.
func withGroups(s observed.Subnet, bases ...ib.PKeyBase) observed.Subnet {
	s.Partitions = slices.Clone(s.Partitions)
	for i := range s.Partitions {
		if base := s.Partitions[i].Base; slices.Contains(bases, base) {
			s.Partitions[i].Multicast = []group.Group{{MGID: broadcast(base), Partition: base, Settings: group.Settings{QKey: 0xB1B, MTU: ib.MTU2048, Rate: 3, Lifetime: 18}}}
		}
	}
	return s
}

func broadcast(base ib.PKeyBase) ib.GID {
	k := base.Full()
	return ib.GID{0: 0xFF, 1: 0x12, 2: 0x40, 3: 0x1B, 4: byte(k >> 8), 5: byte(k), 12: 0xFF, 13: 0xFF, 14: 0xFF, 15: 0xFF}
}

const kernelJoin = sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordJoinState | sa.MCMemberRecordPKey

// kernelCreate is what the kernel's IPoIB states of a group that may not exist.
const kernelCreate = kernelJoin | sa.MCMemberRecordQKey | sa.MCMemberRecordTClass | sa.MCMemberRecordSL |
	sa.MCMemberRecordFlowLabel | sa.MCMemberRecordHopLimit | sa.MCMemberRecordMTUSelector | sa.MCMemberRecordMTU |
	sa.MCMemberRecordRateSelector | sa.MCMemberRecordRate

func join(s *Server, lid ib.LID, mgid ib.GID, base ib.PKeyBase) *sa.MCMemberRecord {
	return &sa.MCMemberRecord{
		MGID: mgid, PortGID: s.view.At(lid).GID, PKey: base.Full(), QKey: 0xB1B, JoinState: sa.JoinFull,
		MTUSelector: sa.SelectExactly, MTU: ib.MTU2048, RateSelector: sa.SelectExactly, Rate: 3,
	}
}

func expectStatus(t *testing.T, what string, got *reply, want mad.Status) {
	t.Helper()
	if got.Status != want {
		t.Errorf("%s: %s, want %s", what, got.Status, want)
	}
}

// TestIPoIBJoins plays what the kernel does, and what a neighbour would like to.
func TestIPoIBJoins(t *testing.T) {
	s, _, a, b, other := twoTenants(t, Config{})
	set := func(lid ib.LID, mask sa.ComponentMask, r *sa.MCMemberRecord) *reply {
		return exchange(t, s, lid, ask(mad.MethodSet, sa.AttrMCMemberRecord, mask, r, 0))
	}
	got := set(a, kernelJoin, join(s, a, broadcast(1), 1))
	expectStatus(t, "join of the broadcast group", got, mad.StatusOK)
	var r sa.MCMemberRecord
	if err := r.UnmarshalBinary(got.Data[:]); err != nil || r.QKey != 0xB1B || !r.MLID.IsMulticast() || r.JoinState != sa.JoinFull {
		t.Errorf("the group is %+v (%v)", r, err)
	}
	allNodes := broadcast(1)
	allNodes[12], allNodes[13], allNodes[14], allNodes[15] = 0, 0, 0, 1
	expectStatus(t, "create beside the broadcast group", set(b, kernelCreate, join(s, b, allNodes, 1)), mad.StatusOK)
	expectStatus(t, "join of the neighbours' group", set(other, kernelJoin, join(s, other, broadcast(1), 1)), sa.StatusRequestInvalid)
	expectStatus(t, "join for somebody else's port", set(other, kernelJoin, join(s, a, broadcast(1), 1)), sa.StatusInvalidGID)
	bad := join(s, a, broadcast(1), 1)
	bad.QKey = 7
	expectStatus(t, "join with another Q_Key", set(a, kernelCreate, bad), sa.StatusRequestInvalid)
	stray := allNodes
	stray[5] = 9
	expectStatus(t, "create in a partition without broadcast group", set(a, kernelCreate, join(s, a, stray, 1)), sa.StatusRequestInvalid)
	expectStatus(t, "create without enough", set(a, kernelJoin, join(s, a, ib.GID{0: 0xFF, 1: 0x12, 15: 9}, 1)), sa.StatusInsufficientComponents)

	// Groups of an own choosing: a request that comes again makes no second one.
	own := ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate&^sa.MCMemberRecordMGID, join(s, a, ib.GID{}, 1), 0)
	first, again := exchange(t, s, a, own), exchange(t, s, a, own)
	if first.Status != mad.StatusOK || first.Data != again.Data || len(s.groups.Groups()) != 4 {
		t.Errorf("asked twice: %s, %d groups, want 4", first.Status, len(s.groups.Groups()))
	}

	// The neighbour sees its own partition's group only.
	for lid, want := range map[ib.LID]int{a: 3, b: 3, other: 1} {
		if got := exchange(t, s, lid, ask(mad.MethodGetTable, sa.AttrMCMemberRecord, 0, nil, 0)); len(got.records) != want {
			t.Errorf("LID %d is shown %d groups, want %d", lid, len(got.records), want)
		}
	}
	leave := &sa.MCMemberRecord{MGID: allNodes, PortGID: s.view.At(b).GID, JoinState: sa.JoinFull}
	const leaving = sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordJoinState
	mlid := s.groups.Group(allNodes).MLID
	expectStatus(t, "leave", exchange(t, s, b, ask(mad.MethodDelete, sa.AttrMCMemberRecord, leaving, leave, 0)), mad.StatusOK)
	expectStatus(t, "leave again", exchange(t, s, b, ask(mad.MethodDelete, sa.AttrMCMemberRecord, leaving, leave, 0)), sa.StatusRequestInvalid)
	// Its MLID does not pass to the neighbours while tables may lead it to us.
	multicast := ib.GID{0: 0xFF, 1: 0x12, 15: 77}
	expectStatus(t, "the neighbour's group", set(other, kernelCreate, join(s, other, multicast, 2)), mad.StatusOK)
	if s.groups.Group(multicast).MLID == mlid {
		t.Errorf("MLID %s passed from one partition to another", mlid)
	}
}

// TestStateOutlivesTheServer hands everything to a new server, which answers as
// the old one did; members that lost the partition are dropped then.
func TestStateOutlivesTheServer(t *testing.T) {
	s, w, a, b, _ := twoTenants(t, Config{AliasGUIDs: true})
	ok := func(what string, m *[mad.Size]byte, lid ib.LID) {
		expectStatus(t, what, exchange(t, s, lid, m), mad.StatusOK)
	}
	ok("join", ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelJoin, join(s, a, broadcast(1), 1), 0), a)
	service := &sa.ServiceRecord{ServiceID: 5, ServiceGID: s.view.At(a).GID, ServicePKey: 0x8001, ServiceLease: 60}
	const states = sa.ServiceRecordServiceID | sa.ServiceRecordServiceGID | sa.ServiceRecordServicePKey | sa.ServiceRecordServiceLease
	ok("service", ask(mad.MethodSet, sa.AttrServiceRecord, states, service, 0), a)
	ok("subscription", ask(mad.MethodSet, sa.AttrInformInfo, 0, everything(), 0), b)
	ok("alias", ask(mad.MethodSet, sa.AttrGUIDInfoRecord, sa.GUIDInfoRecordLID|sa.GUIDInfoRecordBlockNum|sa.GUIDInfoRecordGUID1, &sa.GUIDInfoRecord{LID: a}, 0), a)
	state := s.State(0)
	fresh := New(Config{AliasGUIDs: true})
	if err := fresh.Restore(0, state); err != nil {
		t.Fatal(err)
	}
	if errs := fresh.SetSubnet(0, w.snapshot()); errs != nil {
		t.Fatal(errs)
	}
	if g := fresh.Groups().Group(broadcast(1)); g == nil || len(g.Members) != 1 {
		t.Errorf("the group is %+v after the restart", g)
	}
	for what, id := range map[string]mad.AttributeID{"services": sa.AttrServiceRecord, "GUIDs": sa.AttrGUIDInfoRecord, "subscriptions": sa.AttrInformInfoRecord} {
		x, y := exchange(t, s, b, ask(mad.MethodGetTable, id, 0, nil, 0)), exchange(t, fresh, b, ask(mad.MethodGetTable, id, 0, nil, 0))
		if len(x.records) == 0 || len(x.records) != len(y.records) {
			t.Errorf("%s: %d records before, %d after", what, len(x.records), len(y.records))
		}
	}
	fresh.Expire(61 * time.Second)
	if n := len(fresh.store.services); n != 0 {
		t.Errorf("%d services after their lease", n)
	}
	for i := range w.parts {
		w.parts[i].Full = nil
	}
	fresh.SetSubnet(0, w.snapshot())
	if g := fresh.Groups().Group(broadcast(1)); g != nil {
		t.Errorf("a group without partition or members stayed: %+v", g)
	}
}

func everything() *sa.InformInfo {
	return &sa.InformInfo{LIDRangeBegin: 0xFFFF, LIDRangeEnd: 0xFFFF, IsGeneric: 1, Subscribe: 1, Type: anyType, TrapNumber: anyTrap, Producer: anyProducer, QPN: 1}
}

// TestReports: who may see the subject is told, again until it answers; security
// traps need trust.
func TestReports(t *testing.T) {
	s, _, a, b, other := twoTenants(t, Config{SAKey: 9})
	for _, lid := range []ib.LID{a, other} {
		expectStatus(t, "subscription", exchange(t, s, lid, ask(mad.MethodSet, sa.AttrInformInfo, 0, everything(), 0)), mad.StatusOK)
	}
	security := everything()
	security.TrapNumber = smp.TrapBadPKey
	expectStatus(t, "security traps without trust", exchange(t, s, a, ask(mad.MethodSet, sa.AttrInformInfo, 0, security, 0)), sa.StatusDenied)
	expectStatus(t, "security traps with trust", exchange(t, s, b, ask(mad.MethodSet, sa.AttrInformInfo, 0, security, 9)), mad.StatusOK)
	told := func(n smp.Notice) (lids []ib.LID) {
		s.Notice(0, n, n.IssuerLID)
		var m [mad.Size]byte
		for {
			to, ok := s.Next(0, &m)
			if !ok {
				return lids
			}
			if m[3] == byte(mad.MethodReport) {
				lids = append(lids, to.LID)
				m[3] = byte(mad.MethodReportResp)
				s.Receive(0, &m, to)
			}
		}
	}
	change, _ := smp.NewTrap(smp.TrapLocalChange, 1, b, &smp.LocalChangeDetails{LID: b})
	if got := told(change); len(got) != 1 || got[0] != a {
		t.Errorf("trap 144 of LID %d was reported to %v, want %d", b, got, a)
	}
	breach, _ := smp.NewTrap(smp.TrapBadPKey, 1, a, &smp.BadKeyDetails{})
	if got := told(breach); len(got) != 1 || got[0] != b {
		t.Errorf("trap 257 of LID %d was reported to %v, want %d", a, got, b)
	}
	// Nobody answers: so many tries, and the subscription ends at last.
	var m [mad.Size]byte
	sent := 0
	for now := time.Duration(0); now < time.Minute; now += 100 * time.Millisecond {
		if len(s.reports.byID) == 0 && len(s.store.subscriptions) == 3 {
			s.Notice(now, change, b)
		}
		for {
			if _, ok := s.Next(now, &m); !ok {
				break
			}
			sent++
		}
		s.Expire(now)
	}
	if len(s.store.subscriptions) != 2 || sent != failuresMax*DefaultLimits().ReportTries {
		t.Errorf("%d subscriptions after %d reports without an answer", len(s.store.subscriptions), sent)
	}
}

// TestNeverSilence: every method and attribute is answered, with a status that
// fits; limits answer too.
func TestNeverSilence(t *testing.T) {
	s, w, a, _, _ := twoTenants(t, Config{SAKey: 9})
	for method := 1; method < 0x40; method++ {
		if m := mad.Method(method); m == mad.MethodTrap || m == mad.MethodTrapRepress {
			continue
		}
		for _, id := range []mad.AttributeID{1, 2, 3, 0x11, 0x19, 0x30, 0x31, 0x33, 0x35, 0x38, 0x39, 0x3A, 0x3B, 0xF3, 0xFFFF} {
			exchange(t, s, a, ask(mad.Method(method), id, 0, nil, 0)) // fails when nothing comes
		}
	}
	expectStatus(t, "unknown attribute", exchange(t, s, a, ask(mad.MethodGet, 0x3B, 0, nil, 0)), mad.StatusUnsupportedAttrib)
	expectStatus(t, "unknown method", exchange(t, s, a, ask(0x30, sa.AttrNodeRecord, 0, nil, 0)), mad.StatusUnsupportedMethod)
	expectStatus(t, "wrong SA_Key", exchange(t, s, a, ask(mad.MethodGet, sa.AttrNodeRecord, 0, nil, 8)), sa.StatusDenied)
	expectStatus(t, "unknown LID", exchange(t, s, 999, ask(mad.MethodGet, sa.AttrNodeRecord, 0, nil, 0)), sa.StatusRequestInvalid)
	old := ask(mad.MethodGet, sa.AttrNodeRecord, 0, nil, 0)
	old[2] = 1
	expectStatus(t, "class version 1", exchange(t, s, a, old), mad.StatusBadVersion)
	expectStatus(t, "Get of many", exchange(t, s, a, ask(mad.MethodGet, sa.AttrNodeRecord, 0, nil, 0)), sa.StatusTooManyRecords)
	expectStatus(t, "Get of none", exchange(t, s, a, ask(mad.MethodGet, sa.AttrNodeRecord, sa.NodeRecordLID, &sa.NodeRecord{LID: 99}, 0)), sa.StatusNoRecords)
	none := ask(mad.MethodGet, sa.AttrNodeRecord, sa.NodeRecordLID, &sa.NodeRecord{LID: 99}, 0)
	for _, partial := range []bool{true, false} { // who is not in it may be there
		whole := withGroups(w.snapshot(), 1, 2)
		whole.Partial = partial
		s.SetSubnet(0, whole)
		want := sa.StatusNoRecords
		if partial {
			want = mad.StatusBusy
		}
		expectStatus(t, "Get of none in a part of the subnet", exchange(t, s, a, none), want)
		expectStatus(t, "Get of many in a part of the subnet", exchange(t, s, a, ask(mad.MethodGet, sa.AttrNodeRecord, 0, nil, 0)), sa.StatusTooManyRecords)
	}
	s.Suspend()
	expectStatus(t, "while not master", exchange(t, s, a, ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil, 0)), mad.StatusBusy)
}

func TestRequesterLimits(t *testing.T) {
	l := DefaultLimits()
	l.QueriesBurst, l.QueriesPerSecond, l.Services = 5, 5, 2
	s, _, a, b, _ := twoTenants(t, Config{Limits: l})
	for i := range 7 {
		want := mad.StatusOK
		if i >= 5 {
			want = mad.StatusBusy
		}
		expectStatus(t, "query", exchange(t, s, a, ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil, 0)), want)
	}
	for i := range 3 {
		want := mad.StatusOK
		if i >= 2 {
			want = sa.StatusNoResources
		}
		service := &sa.ServiceRecord{ServiceID: uint64(i), ServiceGID: s.view.At(b).GID}
		expectStatus(t, "service", exchange(t, s, b, ask(mad.MethodSet, sa.AttrServiceRecord, serviceNeeds, service, 0)), want)
	}
	foreign := &sa.ServiceRecord{ServiceID: 8, ServiceGID: s.view.At(a).GID}
	expectStatus(t, "service at another port", exchange(t, s, b, ask(mad.MethodSet, sa.AttrServiceRecord, serviceNeeds, foreign, 0)), sa.StatusInvalidGID)
	var m [mad.Size]byte
	s.Receive(0, ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil, 0), mad.Address{LID: b, QP: 1, GID: s.view.At(a).GID})
	if _, ok := s.Next(0, &m); !ok || m[4] != 5 {
		t.Errorf("a route header with another's GID: status %#x", m[4:6])
	}
}

// A subscription follows its port to another LID, as that of a manager, and goes with it.
func TestSubscriptionFollowsItsPort(t *testing.T) {
	s, _, a, _, other := twoTenants(t, Config{})
	if got := at(t, s, 0, a, ask(mad.MethodSet, sa.AttrInformInfo, 0, everything(), 0)); got != mad.StatusOK {
		t.Fatal(got)
	}
	const elsewhere = ib.LID(200)
	port := s.view.At(a).Port
	move := func(edit func(*observed.Subnet)) {
		n := s.view.Subnet
		n.LIDs, n.Epoch = map[*observed.Port]observed.Assigned{}, n.Epoch+1
		for _, p := range s.view.Ports {
			n.LIDs[p.Port] = observed.Assigned{LID: p.LID, LMC: p.LMC}
		}
		edit(&n)
		if errs := s.SetSubnet(0, n); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	before := s.Version()
	move(func(n *observed.Subnet) { n.LIDs[port] = observed.Assigned{LID: elsewhere} })
	if list := s.store.subscriptions; len(list) != 1 || list[0].Address.LID != elsewhere || s.Version() == before {
		t.Errorf("%d subscriptions, version %d, before %d", len(list), s.Version(), before)
	}
	move(func(n *observed.Subnet) {
		n.LIDs[port], n.LIDs[s.view.At(other).Port] = observed.Assigned{LID: other}, observed.Assigned{LID: elsewhere}
	})
	if list := s.store.subscriptions; len(list) != 1 || list[0].Address.LID != other || list[0].Port != port.GUID {
		t.Errorf("after two ports have changed places: %+v", list)
	}
	move(func(n *observed.Subnet) { n.Expelled = map[*observed.Port]bool{port: true} })
	if n := len(s.store.subscriptions); n != 0 {
		t.Errorf("%d subscriptions of a port that is expelled", n)
	}
}

// Where groups have service levels of their own, records name these, and hosts may ask for
// them: the broadcast group's in groups beside it too. A host that asks for a level which
// unicast paths have, or still knows the one from before, gets the group's.
func TestLevelsOfGroups(t *testing.T) {
	s, w, a, b, _ := twoTenants(t, Config{})
	x := withGroups(w.snapshot(), 1, 2)
	x.Levels = &observed.ServiceLevels{Multicast: &observed.GroupLevels{}}
	for sl := range ib.SL(16) {
		x.Levels.Multicast.Wire[sl] = 15 // 0 and all that no partition has
		x.Levels.Multicast.Level[sl] = sl
	}
	x.Levels.Multicast.Level[15] = 0
	x.Levels.Multicast.Level[1] = 0 // of the second layer of paths
	if errs := s.SetSubnet(0, x); errs != nil {
		t.Fatal(errs)
	}
	beside := broadcast(1)
	beside[15] = 1
	own := ib.GID{0: 0xFF, 1: 0x12, 15: 9}
	for i, c := range []struct {
		lid    ib.LID
		mask   sa.ComponentMask
		mgid   ib.GID
		sl     ib.SL
		status mad.Status
	}{
		{a, kernelJoin, broadcast(1), 0, mad.StatusOK},
		{a, kernelJoin | sa.MCMemberRecordSL, broadcast(1), 15, mad.StatusOK},
		{a, kernelJoin | sa.MCMemberRecordSL, broadcast(1), 0, mad.StatusOK},
		{a, kernelJoin | sa.MCMemberRecordSL, broadcast(1), 1, mad.StatusOK},
		{a, kernelJoin | sa.MCMemberRecordSL, broadcast(1), 5, sa.StatusRequestInvalid},
		{b, kernelCreate, beside, 15, mad.StatusOK},
		{b, kernelCreate, own, 1, mad.StatusOK},
	} {
		r := join(s, c.lid, c.mgid, 1)
		r.SL = c.sl
		got := exchange(t, s, c.lid, ask(mad.MethodSet, sa.AttrMCMemberRecord, c.mask, r, 0))
		expectStatus(t, fmt.Sprint("case ", i), got, c.status)
		if err := r.UnmarshalBinary(got.Data[:]); c.status == mad.StatusOK && (err != nil || r.SL != 15) {
			t.Errorf("case %d: the record has SL %d (%v), want 15", i, r.SL, err)
		}
	}
	got := exchange(t, s, a, ask(mad.MethodGetTable, sa.AttrMCMemberRecord, 0, nil, 0))
	if len(got.records) == 0 {
		t.Error("no groups are listed")
	}
	for _, b := range got.records {
		var r sa.MCMemberRecord
		if err := r.UnmarshalBinary(b); err != nil || r.SL != 15 {
			t.Errorf("a group is listed with SL %d (%v)", r.SL, err)
		}
	}
}
