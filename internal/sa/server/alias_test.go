package server

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// guidTable asks for the GUIDs of the port with a LID.
func guidTable(t *testing.T, s *Server, from, of ib.LID) [smp.GUIDsPerBlock]uint64 {
	t.Helper()
	got := exchange(t, s, from, ask(mad.MethodGet, sa.AttrGUIDInfoRecord, sa.GUIDInfoRecordLID|sa.GUIDInfoRecordBlockNum, &sa.GUIDInfoRecord{LID: of}, 0))
	expectStatus(t, "GUIDInfoRecord", got, mad.StatusOK)
	var r sa.GUIDInfoRecord
	if err := r.UnmarshalBinary(got.Data[:]); err != nil {
		t.Fatal(err)
	}
	return r.Table.GUIDs
}

// TestPolicyAliases: GI-03, the aliases of the policy are shown and named, and
// no host can take one or put another in its place.
func TestPolicyAliases(t *testing.T) {
	const one, two = ib.PortGUID(0x0200000000000001), ib.PortGUID(0x0200000000000002)
	s, w, a, b, _ := twoTenants(t, Config{AliasGUIDs: true})
	guid := s.view.At(a).GUID
	snapshot := w.snapshot()
	snapshot.Aliases = map[ib.PortGUID][]ib.PortGUID{guid: {one, 0, two}}
	if errs := s.SetSubnet(0, snapshot); errs != nil {
		t.Fatal(errs)
	}
	if got, want := guidTable(t, s, b, a), [8]uint64{uint64(guid), uint64(one), 0, uint64(two)}; got != want {
		t.Errorf("GUIDs %x, want %x", got, want)
	}
	path := &sa.PathRecord{SGID: s.view.At(b).GID, DGID: ib.MakeGID(s.view.GIDPrefix, two)}
	got := exchange(t, s, b, ask(mad.MethodGet, sa.AttrPathRecord, sa.PathRecordSGID|sa.PathRecordDGID, path, 0))
	expectStatus(t, "PathRecord by alias", got, mad.StatusOK)
	var found sa.PathRecord
	if err := found.UnmarshalBinary(got.Data[:]); err != nil || found.DLID != a {
		t.Errorf("the path leads to LID %v (%v), want %v", found.DLID, err, a)
	}
	const mask = sa.GUIDInfoRecordLID | sa.GUIDInfoRecordBlockNum
	set := func(by ib.LID, entry int, g ib.PortGUID) uint64 {
		r := &sa.GUIDInfoRecord{LID: by}
		r.Table.GUIDs[entry] = uint64(g)
		got := exchange(t, s, by, ask(mad.MethodSet, sa.AttrGUIDInfoRecord, mask|sa.GUIDInfoRecordGUID0<<entry, r, 0))
		expectStatus(t, "Set", got, mad.StatusOK)
		if err := r.UnmarshalBinary(got.Data[:]); err != nil {
			t.Fatal(err)
		}
		return r.Table.GUIDs[entry]
	}
	if g := set(b, 1, one); g != 0 {
		t.Errorf("a host got 0x%x, which the policy gives to another", g)
	}
	if g := set(a, 1, 0x0200000000000009); g != 0 {
		t.Errorf("a host put 0x%x in the place of the policy's", g)
	}
	chosen := set(a, 2, 0)
	if chosen&ib.GUIDLocalBit == 0 { // GI-07
		t.Errorf("the server chose 0x%x, which is not locally scoped", chosen)
	}
	if got, want := guidTable(t, s, b, a), [8]uint64{uint64(guid), uint64(one), chosen, uint64(two)}; got != want {
		t.Errorf("GUIDs %x, want %x", got, want)
	}
}
