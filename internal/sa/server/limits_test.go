package server

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// reportsOf takes what is to leave, answers the reports among it, and returns
// who was told of which trap.
func reportsOf(t *testing.T, s *Server) (told map[ib.LID][]smp.TrapNumber) {
	t.Helper()
	told = map[ib.LID][]smp.TrapNumber{}
	var m [mad.Size]byte
	for to, ok := s.Next(0, &m); ok; to, ok = s.Next(0, &m) {
		if mad.Method(m[mad.OffsetMethod]) != mad.MethodReport {
			continue
		}
		var n sa.Notice
		if err := n.UnmarshalBinary(m[sa.DataOffset:]); err != nil {
			t.Fatal(err)
		}
		told[to.LID] = append(told[to.LID], n.Notice.TrapNumber)
		m[mad.OffsetMethod] = byte(mad.MethodReportResp)
		s.Receive(0, &m, to)
	}
	return told
}

// badKeyTrap is trap 257 of a port.
func badKeyTrap(lid ib.LID) smp.Notice {
	n, _ := smp.NewTrap(smp.TrapBadPKey, 1, lid, &smp.BadKeyDetails{})
	return n
}

// TestOwnReports: of ports that come and go, and of groups, those learn who may
// see them.
func TestOwnReports(t *testing.T) {
	s, w, a, _, other := twoTenants(t, Config{SAKey: 9})
	self := w.fabric.Self.Info.LID // sees everybody
	for _, lid := range []ib.LID{a, other, self} {
		expectStatus(t, "subscription", exchange(t, s, lid, ask(mad.MethodSet, sa.AttrInformInfo, 0, everything(), 0)), mad.StatusOK)
	}
	expect := func(what string, number smp.TrapNumber, want ...ib.LID) {
		t.Helper()
		told := reportsOf(t, s)
		for _, lid := range []ib.LID{a, other, self} {
			if got := slices.Contains(told[lid], number); got != slices.Contains(want, lid) {
				t.Errorf("%s: LID %d is told %v, want only %v to be told of trap %d", what, lid, told[lid], want, number)
			}
		}
	}
	reportsOf(t, s)
	s.Receive(0, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate, join(s, a, ib.GID{0: 0xFF, 1: 0x12, 15: 7}, 1), 0), mad.Address{LID: a, QP: 1})
	expect("a group of tenant 1", smp.TrapMulticastGroupCreated, a)
	leave := &sa.MCMemberRecord{MGID: ib.GID{0: 0xFF, 1: 0x12, 15: 7}, PortGID: s.view.At(a).GID, JoinState: sa.JoinFull}
	s.Receive(0, ask(mad.MethodDelete, sa.AttrMCMemberRecord, sa.MCMemberRecordMGID|sa.MCMemberRecordPortGID|sa.MCMemberRecordJoinState, leave, 0), mad.Address{LID: a, QP: 1})
	expect("its end", smp.TrapMulticastGroupDeleted, a)

	port := w.fabric.Self
	for _, p := range w.hosts {
		if p.Node.Switch == nil && p != w.fabric.Self && p.Info.LID != a && p.Info.LID != other {
			port = p // of tenant 1, as a
		}
	}
	lid := port.Info.LID
	port.Info.LID = 0
	s.SetSubnet(0, w.snapshot())
	expect("a port of tenant 1 that went", smp.TrapGIDOutOfService, a, self)
	port.Info.LID = lid
	s.SetSubnet(0, w.snapshot())
	expect("a port of tenant 1 that came", smp.TrapGIDInService, a, self)
}

// TestForgedPackets: a P_Key that the port does not have, and answers to
// somebody else's reports, are not taken.
func TestForgedPackets(t *testing.T) {
	s, w, a, b, other := twoTenants(t, Config{})
	var m [mad.Size]byte
	for key, want := range map[ib.PKey]mad.Status{0x8001: mad.StatusOK, 0x0001: mad.StatusOK, 0x7FFF: mad.StatusOK, 0x8002: sa.StatusDenied, 0xFFFE: sa.StatusDenied} {
		s.Receive(0, ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil, 0), mad.Address{LID: a, QP: 1, PKey: key})
		if _, ok := s.Next(0, &m); !ok || mad.Status(uint16(m[4])<<8|uint16(m[5])) != want {
			t.Errorf("with P_Key %s: status %#x, want %s", key, m[4:6], want)
		}
	}
	expectStatus(t, "subscription", exchange(t, s, a, ask(mad.MethodSet, sa.AttrInformInfo, 0, everything(), 0)), mad.StatusOK)
	change, _ := smp.NewTrap(smp.TrapLocalChange, 1, b, &smp.LocalChangeDetails{LID: b})
	for _, sender := range []ib.LID{a, other, 999} {
		if s.Notice(0, change, sender); len(s.reports.byID) != 0 {
			t.Errorf("a trap of LID %d was taken from LID %d", b, sender)
		}
	}
	s.Notice(0, change, b)
	to, ok := s.Next(0, &m)
	if !ok || to.LID != a {
		t.Fatalf("no report to LID %d", a)
	}
	m[mad.OffsetMethod] = byte(mad.MethodReportResp)
	s.Receive(0, &m, mad.Address{LID: other, QP: 1})
	if len(s.reports.byID) != 1 {
		t.Error("a report was answered by somebody else")
	}
	s.Receive(0, &m, to)
	if len(s.reports.byID) != 0 {
		t.Error("a report that was answered is still waited for")
	}
	// Trap 259, of a switch, is for the trusted who see the switch.
	self, sw := w.fabric.Self.Info.LID, w.fabric.Switches()[0].Ports[0].Info.LID
	s.config.SAKey = 9
	for _, lid := range []ib.LID{self, b} {
		expectStatus(t, "trusted subscription", exchange(t, s, lid, ask(mad.MethodSet, sa.AttrInformInfo, 0, everything(), 9)), mad.StatusOK)
	}
	breach, _ := smp.NewTrap(smp.TrapSwitchBadPKey, smp.ProducerSwitch, sw, &smp.SwitchBadPKeyDetails{SwitchLID: sw, Port: 1})
	s.Notice(0, breach, sw)
	if told := reportsOf(t, s); len(told) != 1 || !slices.Equal(told[self], []smp.TrapNumber{smp.TrapSwitchBadPKey}) {
		t.Errorf("trap 259 was told to %v, want LID %d", told, self)
	}
}

// TestDuplicates: what comes again while its answer is on the way, or just was,
// is no second request; one that only has the same transaction is.
func TestDuplicates(t *testing.T) {
	s, _, a, _, _ := twoTenants(t, Config{})
	from := mad.Address{LID: a, QP: 1}
	var m [mad.Size]byte
	table := ask(mad.MethodGetTable, sa.AttrNodeRecord, 0, nil, 0)
	for range 3 {
		s.Receive(0, table, from)
	}
	if s.counts.Dropped != 2 || s.rmpp.Busy() != 1 {
		t.Errorf("asked three times for one table: %d dropped, %d under way", s.counts.Dropped, s.rmpp.Busy())
	}
	for _, ok := s.Next(0, &m); ok; _, ok = s.Next(0, &m) {
	}
	own := ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate&^sa.MCMemberRecordMGID, join(s, a, ib.GID{}, 1), 0)
	groups := func() int { return len(s.groups.Groups()) }
	before := groups()
	answer := func(now time.Duration, ask *[mad.Size]byte) (out [mad.Size]byte) {
		t.Helper()
		s.Receive(now, ask, from)
		if _, ok := s.Next(now, &out); !ok {
			t.Fatal("no answer")
		}
		return out
	}
	first, again := answer(0, own), answer(0, own)
	if groups() != before+1 || first != again {
		t.Errorf("one request that came twice made %d groups", groups()-before)
	}
	other := *own
	other[sa.OffsetComponentMask+7] ^= 0x08 // another component: another request, of the same transaction
	if answer(0, &other) == first {
		t.Error("a request that differs got the answer of another")
	}
	before = groups()
	answer(recentTime, own)
	if groups() != before+1 {
		t.Error("after its time a request is still taken for one that came again")
	}
}

// TestOverload: a port that asks faster than it is answered gets BUSY, then
// silence, and its neighbour is answered in its turn all the same.
func TestOverload(t *testing.T) {
	l := DefaultLimits()
	l.WaitingEach, l.WaitingBusy = 4, 3
	s, _, a, b, _ := twoTenants(t, Config{Limits: l})
	info := func(lid ib.LID) {
		s.Receive(0, ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil, 0), mad.Address{LID: lid, QP: 1})
	}
	for range 20 {
		info(a)
	}
	info(b)
	var got []byte
	var to []ib.LID
	var m [mad.Size]byte
	for address, ok := s.Next(0, &m); ok; address, ok = s.Next(0, &m) {
		got, to = append(got, m[mad.OffsetStatus+1]), append(to, address.LID)
	}
	// The first is answered as it comes; four wait, then three for BUSY.
	if !slices.Equal(got, []byte{0, 0, 0, 0, 0, 0, 1, 1, 1}) || s.counts.Dropped != 12 {
		t.Errorf("answers with status %v, %d dropped, want six, three BUSY, and silence", got, s.counts.Dropped)
	}
	if at := slices.Index(to, b); at != 2 {
		t.Errorf("the neighbour is answered after %d others, want 2: one that was on its way, and one turn", at)
	}
	if s.lines.waiting != 0 || !s.isIdle() {
		t.Errorf("%d still wait", s.lines.waiting)
	}
	expectStatus(t, "afterwards", exchange(t, s, a, ask(mad.MethodGet, mad.AttrClassPortInfo, 0, nil, 0)), mad.StatusOK)
}

// TestEachLimit: subscriptions, groups and tables of one port have limits that
// its neighbour does not feel.
func TestEachLimit(t *testing.T) {
	l := DefaultLimits()
	l.Subscriptions, l.Groups.Created, l.Groups.PerPort, l.RMPP.PerPeer = 2, 2, 3, 2
	s, _, a, b, _ := twoTenants(t, Config{Limits: l})
	want := func(n, limit int) mad.Status {
		if n >= limit {
			return sa.StatusNoResources
		}
		return mad.StatusOK
	}
	for n := range 4 {
		info := everything()
		info.TrapNumber = smp.TrapNumber(64 + n)
		expectStatus(t, "subscription", exchange(t, s, a, ask(mad.MethodSet, sa.AttrInformInfo, 0, info, 0)), want(n, 2))
		expectStatus(t, "created group", exchange(t, s, a, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate, join(s, a, ib.GID{0: 0xFF, 1: 0x12, 15: byte(20 + n)}, 1), 0)), want(n, 2))
	}
	expectStatus(t, "a neighbour's subscription", exchange(t, s, b, ask(mad.MethodSet, sa.AttrInformInfo, 0, everything(), 0)), mad.StatusOK)
	expectStatus(t, "a neighbour's group", exchange(t, s, b, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate, join(s, b, ib.GID{0: 0xFF, 1: 0x12, 15: 40}, 1), 0)), mad.StatusOK)
	expectStatus(t, "a third membership", exchange(t, s, a, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelJoin, join(s, a, broadcast(1), 1), 0)), mad.StatusOK)
	expectStatus(t, "a fourth", exchange(t, s, a, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelJoin, join(s, a, ib.GID{0: 0xFF, 1: 0x12, 15: 40}, 1), 0)), sa.StatusNoResources)
	for range 4 {
		s.Receive(0, ask(mad.MethodGetTable, sa.AttrNodeRecord, 0, nil, 0), mad.Address{LID: a, QP: 1})
	}
	reportsOf(t, s)
	if s.rmpp.Busy() != 2 || s.counts.Busy != 2 {
		t.Errorf("four tables at once: %d under way, %d times BUSY", s.rmpp.Busy(), s.counts.Busy)
	}
}

// TestLongByLink: what the link may hold is bounded, for one port and for all,
// and a port that acknowledges nothing gets little.
func TestLongByLink(t *testing.T) {
	limits := rmpp.DefaultLimits()
	limits.SendTotal = 16 << 20
	l := newLong()
	table := rmpp.Message{Body: make([]byte, 1<<20)}
	send := func(now time.Duration, lid ib.LID) (n int) {
		for n < 100 && l.send(now, &limits, lid, mad.Address{LID: lid}, table) {
			n++
		}
		return n
	}
	if n := send(0, 1); n != 3 {
		t.Errorf("one port gets %d tables of 1 MiB, want 3 below 4 MiB", n)
	}
	all := 3
	for lid := ib.LID(2); lid < 10; lid++ {
		all += send(0, lid)
	}
	if all != 7 {
		t.Errorf("all ports get %d tables, want 7 below half of 16 MiB", all)
	}
	for lid := ib.LID(30); l.bytes <= limits.SendTotal/2-limits.SenderLittle; lid++ {
		l.send(0, &limits, lid, mad.Address{LID: lid}, rmpp.Message{Body: make([]byte, limits.SenderLittle)})
	}
	little := rmpp.Message{Body: make([]byte, limits.SenderLittle)}
	if !l.send(0, &limits, 20, mad.Address{LID: 20}, little) || l.send(0, &limits, 20, mad.Address{LID: 20}, little) || l.send(0, &limits, 2, mad.Address{LID: 2}, little) {
		t.Error("beyond half of the room a port that has nothing on its way gets one small table, and nobody more")
	}
	if n := send(longTime-1, 1); n != 0 {
		t.Errorf("too soon there is room for %d", n)
	}
	if n := send(longTime, 1); n != 3 || l.bytes != 3*(len(table.Body)+longOverhead) {
		t.Errorf("later there is room for %d, and %d bytes are held", n, l.bytes)
	}
	l.silent[1] = 10*time.Second + limits.TotalTime
	if n := send(10*time.Second, 1); n != 1 {
		t.Errorf("a port that acknowledges nothing gets %d tables, want one at a time", n)
	}
	if n := send(20*time.Second, 1); n != 0 {
		t.Errorf("and %d more", n)
	}
	if n := send(11*time.Second+limits.TotalTime, 1); n != 3 {
		t.Errorf("after its time it gets %d", n)
	}
}
