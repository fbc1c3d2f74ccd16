package server

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// peopled is a model whose hosts registered things, and what the test knows of
// them by having made them.
type peopled struct {
	*model
	services []madeService
	subs     []madeSub
	groups   []*madeGroup
	aliases  map[*observed.Port]ib.PortGUID
}

type madeService struct {
	owner *observed.Port
	id    uint64
	base  ib.PKeyBase
}

type madeSub struct {
	owner *observed.Port
	trap  smp.TrapNumber
}

type madeGroup struct {
	mgid    ib.GID
	mlid    ib.LID
	base    ib.PKeyBase
	members []*observed.Port
}

func gidOf(p *observed.Port) ib.GID { return ib.MakeGID(ib.DefaultGIDPrefix, p.GUID) }

// people has every host of a random model register by chance, and holds each
// answer against what it ought to be.
func people(t testing.TB, m *model, s *Server, r *rand.Rand) *peopled {
	t.Helper()
	w := &peopled{model: m, aliases: map[*observed.Port]ib.PortGUID{}}
	some := func() ib.PKeyBase { return m.bases()[r.IntN(len(m.bases()))] }
	for i, p := range m.hosts {
		if m.isContested(p) {
			continue
		}
		lid := p.Info.LID
		for n := range r.IntN(3) {
			x := madeService{p, uint64(i*10 + n), some()}
			if r.IntN(4) == 0 {
				x.base = 0
			}
			record := &sa.ServiceRecord{ServiceID: x.id, ServiceGID: gidOf(p), ServicePKey: x.base.Full(), ServiceKey: [16]byte{7}}
			if x.base == 0 {
				record.ServicePKey = 0
			}
			const states = serviceNeeds | sa.ServiceRecordServicePKey | sa.ServiceRecordServiceKey
			got := exchange(t, s, lid, ask(mad.MethodSet, sa.AttrServiceRecord, states, record, 0))
			if may := x.base == 0 || m.key(p, x.base) > 0; may != (got.Status == mad.StatusOK) {
				t.Fatalf("service in partition %s by LID %d: %s, and it may: %v", x.base, lid, got.Status, may)
			} else if may {
				w.services = append(w.services, x)
			}
		}
		if r.IntN(2) == 0 {
			x := madeSub{p, smp.TrapNumber(64 + r.IntN(4))}
			info := everything()
			info.TrapNumber = x.trap
			if got := exchange(t, s, lid, ask(mad.MethodSet, sa.AttrInformInfo, 0, info, 0)); got.Status != mad.StatusOK {
				t.Fatalf("subscription by LID %d: %s", lid, got.Status)
			}
			w.subs = append(w.subs, x)
		}
		w.join(t, s, p, some(), r)
		if r.IntN(2) == 0 {
			got := exchange(t, s, lid, ask(mad.MethodSet, sa.AttrGUIDInfoRecord, aliasNeeds|sa.GUIDInfoRecordGUID1, &sa.GUIDInfoRecord{LID: lid}, 0))
			var x sa.GUIDInfoRecord
			if got.Status != mad.StatusOK || x.UnmarshalBinary(got.Data[:]) != nil || x.Table.GUIDs[1] == 0 {
				t.Fatalf("alias GUID of LID %d: %s", lid, got.Status)
			}
			w.aliases[p] = ib.PortGUID(x.Table.GUIDs[1])
		}
	}
	w.tables(s, r)
	return w
}

// join makes a group, or joins one, which only members of the partition may.
func (w *peopled) join(t testing.TB, s *Server, p *observed.Port, base ib.PKeyBase, r *rand.Rand) {
	t.Helper()
	mgid := ib.GID{0: 0xFF, 1: 0x12, 14: byte(base), 15: byte(r.IntN(2))}
	record := &sa.MCMemberRecord{MGID: mgid, PortGID: gidOf(p), PKey: base.Full(), QKey: 5, JoinState: sa.JoinFull}
	got := exchange(t, s, p.Info.LID, ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate&^(sa.MCMemberRecordMTUSelector|sa.MCMemberRecordMTU|sa.MCMemberRecordRateSelector|sa.MCMemberRecordRate), record, 0))
	if may := w.key(p, base) > 0; may != (got.Status == mad.StatusOK) {
		t.Fatalf("join of a group of partition %s by LID %d: %s, and it may: %v", base, p.Info.LID, got.Status, may)
	} else if !may {
		return
	}
	var x sa.MCMemberRecord
	if err := x.UnmarshalBinary(got.Data[:]); err != nil {
		t.Fatal(err)
	}
	if !x.MLID.IsMulticast() {
		t.Fatalf("the group is %+v", x)
	}
	i := slices.IndexFunc(w.groups, func(g *madeGroup) bool { return g.mgid == mgid })
	if i < 0 {
		i = len(w.groups)
		w.groups = append(w.groups, &madeGroup{mgid: mgid, mlid: x.MLID, base: base})
	}
	w.groups[i].members = append(w.groups[i].members, p)
}

// tables gives switches multicast and random forwarding tables.
func (w *peopled) tables(s *Server, r *rand.Rand) {
	for _, n := range w.fabric.Switches() {
		var block smp.MulticastForwardingTable
		for i := range block.Masks {
			block.Masks[i] = uint16(r.IntN(1<<16)) | 1
		}
		n.Switch.MFT = map[uint32]smp.MulticastForwardingTable{0: block}
		n.Switch.RFT = make([]smp.RandomEntry, smp.RandomEntriesPerBlock)
		n.Switch.RFTRead = []bool{true}
		for i := range n.Switch.RFT {
			n.Switch.RFT[i] = smp.RandomEntry{LID: ib.LID(1 + r.IntN(len(w.hosts)+2)), Valid: true, Port: ib.PortNum(1 + r.IntN(2))}
		}
	}
	s.SetSubnet(0, w.snapshot())
}

// peopledKinds are the records that expect knows of whoever is registered.
var peopledKinds = []mad.AttributeID{
	sa.AttrServiceRecord, sa.AttrInformInfoRecord, sa.AttrMCMemberRecord, sa.AttrGUIDInfoRecord,
	sa.AttrMulticastForwardingTableRecord, sa.AttrRandomForwardingTableRecord,
}

// expect is what a requester ought to get of what was registered, as text.
func (w *peopled) expect(a *observed.Port, id mad.AttributeID, trusted bool) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch id {
	case sa.AttrServiceRecord:
		for _, x := range w.services {
			if w.sees(a, x.owner) && (x.base == 0 || a == x.owner || w.meet(a, x.owner, x.base)) {
				add("%d %s key %d", x.id, gidOf(x.owner), map[bool]int{true: 7}[trusted || a == x.owner])
			}
		}
	case sa.AttrInformInfoRecord:
		for _, x := range w.subs {
			if a == x.owner || trusted && w.sees(a, x.owner) {
				add("%s %d", gidOf(x.owner), x.trap)
			}
		}
	case sa.AttrMCMemberRecord:
		w.expectGroups(a, trusted, add)
	case sa.AttrGUIDInfoRecord:
		for _, p := range w.hosts {
			if w.sees(a, p) {
				add("%d %s %s", p.Info.LID, p.GUID, w.aliases[p])
			}
		}
	case sa.AttrMulticastForwardingTableRecord:
		for _, n := range w.fabric.Switches() {
			block := n.Switch.MFT[0]
			masks, any := make([]uint16, len(block.Masks)), false
			for _, g := range w.groups {
				if w.key(a, g.base) > 0 {
					masks[g.mlid-ib.LIDMulticastMin], any = block.Masks[g.mlid-ib.LIDMulticastMin], true
				}
			}
			// Blocks end with the last one that has a group of the asker's.
			if p := &n.Ports[0]; any && w.sees(a, p) {
				add("%d %v", p.Info.LID, masks)
			}
		}
	case sa.AttrRandomForwardingTableRecord:
		for _, n := range w.fabric.Switches() {
			p := &n.Ports[0]
			if !w.sees(a, p) {
				continue
			}
			entries := slices.Clone(n.Switch.RFT)
			for i, e := range entries {
				if !slices.ContainsFunc(w.hosts, func(q *observed.Port) bool { return q.Info.LID == e.LID && w.sees(a, q) }) {
					entries[i] = smp.RandomEntry{}
				}
			}
			add("%d %v", p.Info.LID, entries)
		}
	}
	sort.Strings(out)
	return out
}

func (w *peopled) expectGroups(a *observed.Port, trusted bool, add func(string, ...any)) {
	for _, g := range w.groups {
		switch {
		case trusted:
			for _, p := range g.members {
				if w.sees(a, p) {
					add("%s %s", g.mgid, gidOf(p))
				}
			}
		case w.key(a, g.base) > 0:
			add("%s %s", g.mgid, ib.GID{})
		}
	}
}

// peopledText is what expect says of a record that came.
func peopledText(t testing.TB, id mad.AttributeID, b []byte) string {
	t.Helper()
	read := func(r sa.Record) {
		if err := r.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
	}
	switch id {
	case sa.AttrServiceRecord:
		var r sa.ServiceRecord
		read(&r)
		return fmt.Sprintf("%d %s key %d", r.ServiceID, r.ServiceGID, r.ServiceKey[0])
	case sa.AttrInformInfoRecord:
		var r sa.InformInfoRecord
		read(&r)
		return fmt.Sprintf("%s %d", r.SubscriberGID, r.InformInfo.TrapNumber)
	case sa.AttrMCMemberRecord:
		var r sa.MCMemberRecord
		read(&r)
		return fmt.Sprintf("%s %s", r.MGID, r.PortGID)
	case sa.AttrGUIDInfoRecord:
		var r sa.GUIDInfoRecord
		read(&r)
		return fmt.Sprintf("%d %s %s", r.LID, ib.PortGUID(r.Table.GUIDs[0]), ib.PortGUID(r.Table.GUIDs[1]))
	case sa.AttrMulticastForwardingTableRecord:
		var r sa.MulticastForwardingTableRecord
		read(&r)
		return fmt.Sprintf("%d %v", r.LID, r.Table.Masks[:])
	case sa.AttrRandomForwardingTableRecord:
		var r sa.RandomForwardingTableRecord
		read(&r)
		return fmt.Sprintf("%d %v", r.LID, r.Table.Entries[:])
	}
	t.Fatalf("no text for attribute %#x", id)
	return ""
}

// TestVisibilityOfWhatIsRegistered asks as every port, without trust and with
// it, for everything that hosts registered and for the tables that lead to it,
// and compares both ways.
func TestVisibilityOfWhatIsRegistered(t *testing.T) {
	rounds := uint64(40)
	if testing.Short() {
		rounds = 8
	}
	found := map[mad.AttributeID]int{}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 13))
		m := randomModel(t, r)
		s := m.serve(t, Config{SAKey: 99, AliasGUIDs: true, Limits: shortTurns(r, DefaultLimits())})
		w := people(t, m, s, r)
		for _, a := range m.hosts {
			if m.isContested(a) {
				continue
			}
			for _, id := range peopledKinds {
				for _, key := range []ib.SMKey{0, 99} {
					got := exchange(t, s, a.Info.LID, ask(mad.MethodGetTable, id, 0, nil, key))
					if got.Status != mad.StatusOK {
						t.Fatalf("seed %d: %s as LID %d: %s", seed, sa.AttributeName(id), a.Info.LID, got.Status)
					}
					var have []string
					for _, b := range got.records {
						have = append(have, peopledText(t, id, b))
					}
					sort.Strings(have)
					if want := w.expect(a, id, key != 0); !slices.Equal(have, want) {
						t.Fatalf("seed %d: %s as LID %d with key %d:\nhave %q\nwant %q", seed, sa.AttributeName(id), a.Info.LID, key, have, want)
					}
					found[id] += len(have)
				}
			}
			w.askPairs(t, s, a, r)
		}
	}
	for _, id := range peopledKinds {
		if found[id] < 50 {
			t.Errorf("%s: only %d records in all: that proves little", sa.AttributeName(id), found[id])
		}
	}
}

// askPairs asks for paths between lists of ports, some by their alias GUIDs, and
// for the devices on a path.
func (w *peopled) askPairs(t testing.TB, s *Server, a *observed.Port, r *rand.Rand) {
	t.Helper()
	const multi = sa.MultiPathRecordSGIDCount | sa.MultiPathRecordDGIDCount
	q := &sa.MultiPathRecord{}
	var from, to []*observed.Port
	for range 3 {
		x, y := w.hosts[r.IntN(len(w.hosts))], w.hosts[r.IntN(len(w.hosts))]
		if slices.Contains(from, x) || slices.Contains(to, y) || w.isContested(x) || w.isContested(y) {
			continue
		}
		from, to = append(from, x), append(to, y)
		q.SGIDs, q.DGIDs = append(q.SGIDs, w.named(x)), append(q.DGIDs, w.named(y))
	}
	if len(from) == 0 {
		return
	}
	var want []string
	for _, x := range from {
		for _, y := range to {
			if p := w.path(a, x, y); p != "" {
				want = append(want, p)
			}
		}
	}
	got := exchange(t, s, a.Info.LID, ask(mad.MethodGetMulti, sa.AttrMultiPathRecord, multi, q, 0))
	var have []string
	for _, b := range got.records {
		have = append(have, text(t, sa.AttrPathRecord, b)...)
	}
	sort.Strings(have)
	sort.Strings(want)
	if !slices.Equal(have, want) {
		t.Fatalf("MultiPathRecord as LID %d: have %q, want %q", a.Info.LID, have, want)
	}
	x, y := from[0], to[0]
	got = exchange(t, s, a.Info.LID, ask(mad.MethodGetTraceTable, sa.AttrPathRecord, sa.PathRecordSGID|sa.PathRecordDGID,
		&sa.PathRecord{SGID: w.named(x), DGID: w.named(y)}, 0))
	if (len(got.records) > 0) != (w.path(a, x, y) != "") {
		t.Fatalf("TraceRecord as LID %d from %d to %d: %d devices, and the path is %q", a.Info.LID, x.Info.LID, y.Info.LID, len(got.records), w.path(a, x, y))
	}
	w.judgeTrace(t, a, got.records)
}

// judgeTrace: no device is named that the requester does not see.
func (w *peopled) judgeTrace(t testing.TB, a *observed.Port, records [][]byte) {
	t.Helper()
	for _, b := range records {
		var d sa.TraceRecord
		if err := d.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		for _, p := range w.hosts {
			named := d.NodeID == uint64(p.Node.GUID()) || d.EntryPortID == uint64(p.GUID) || d.ExitPortID == uint64(p.GUID)
			if named && !w.sees(a, p) && !w.isContested(p) {
				t.Fatalf("TraceRecord as LID %d names LID %d, which it does not see: %+v", a.Info.LID, p.Info.LID, d)
			}
		}
	}
}

// named is the GID of a port, by its alias if it has one.
func (w *peopled) named(p *observed.Port) ib.GID {
	if alias := w.aliases[p]; alias != 0 {
		return ib.MakeGID(ib.DefaultGIDPrefix, alias)
	}
	return gidOf(p)
}

// path is the path that a may learn of, as text.
func (w *peopled) path(a, x, y *observed.Port) string {
	if !w.sees(a, x) || !w.sees(a, y) {
		return ""
	}
	for _, base := range w.bases() {
		if w.meet(x, y, base) && (a == x || a == y || w.key(a, base) > 0) {
			key := base.Limited()
			if w.key(x, base) == 2 {
				key = base.Full()
			}
			return fmt.Sprintf("%d %d %s", x.Info.LID, y.Info.LID, key)
		}
	}
	return ""
}
