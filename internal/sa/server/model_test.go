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

// model says who may see what, from the tables and the policy alone and by
// trying everything. It shares no code with what it judges.
type model struct {
	*world
	// trusted are the ports that may ask for everything.
	trusted map[*observed.Port]bool
	// all are the ports that there are, where hosts has only some of them.
	all []*observed.Port
}

func (m *model) everybody() []*observed.Port {
	if m.all != nil {
		return m.all
	}
	return m.hosts
}

// key is the membership that a port really has: 0 none, 1 limited, 2 full.
func (m *model) key(p *observed.Port, base ib.PKeyBase) int {
	for _, q := range m.everybody() {
		if q != p && (q.GUID == p.GUID || q.Info.LID == p.Info.LID) {
			return 0
		}
	}
	policy, table := 0, 0
	for _, part := range m.parts {
		if part.Base != base {
			continue
		}
		if slices.Contains(part.Limited, p.GUID) {
			policy = 1
		}
		if slices.Contains(part.Full, p.GUID) {
			policy = 2
		}
	}
	for i, k := range p.PKeys {
		if !p.PKeysRead[i/32] || ib.PKeyBase(k&0x7FFF) != base {
			continue
		}
		if k&0x8000 != 0 {
			table = 2
		} else if table == 0 {
			table = 1
		}
	}
	return min(policy, table)
}

// meet reports whether two ports can talk over a partition.
func (m *model) meet(a, b *observed.Port, base ib.PKeyBase) bool {
	x, y := m.key(a, base), m.key(b, base)
	return x > 0 && y > 0 && x+y > 2
}

func (m *model) sees(a, b *observed.Port) bool {
	if a == b || m.trusted[a] {
		return true
	}
	for base := ib.PKeyBase(1); base < 10; base++ {
		if m.meet(a, b, base) {
			return true
		}
	}
	return m.meet(a, b, ib.PKeyBaseDefault)
}

func end(p *observed.Port) *observed.Port {
	if p.Node.Switch != nil {
		return &p.Node.Ports[0]
	}
	return p
}

func (m *model) seesPort(a, p *observed.Port) bool {
	return m.sees(a, end(p)) && (p.IsEnd() || p.Peer == nil || m.sees(a, end(p.Peer)))
}

// bases are those that random policies use.
func (m *model) bases() []ib.PKeyBase { return []ib.PKeyBase{1, 2, 3, 4, 0x7FFF} }

// randomModel is a world with a random policy, and tables that are not all as
// the policy has them.
func randomModel(t testing.TB, r *rand.Rand) *model {
	m := &model{world: build(1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(3))}
	for _, base := range m.bases() {
		for _, p := range m.hosts {
			if r.IntN(3) > 0 {
				m.give(p, base, r.IntN(2) == 0)
			}
		}
	}
	for _, p := range m.hosts {
		switch r.IntN(8) {
		case 0: // a key was taken from the table
			p.PKeys[r.IntN(5)] = 0
		case 1: // a foreign key was written
			p.PKeys[10] = ib.PKey(0x8000 | 1 + r.IntN(4))
		case 2: // the other membership
			p.PKeys[r.IntN(3)] ^= 0x8000
		case 3: // not read
			p.PKeysRead[0] = false
		case 4: // the other block has one of them
			p.PKeys[40], p.PKeys[0] = p.PKeys[0], 0
		}
	}
	switch hosts := m.hosts; r.IntN(6) {
	case 0:
		hosts[0].GUID = hosts[len(hosts)-1].GUID // two claim one GUID
	case 1:
		hosts[0].Info.LID = hosts[len(hosts)-1].Info.LID
	}
	return m
}

// expect is every record that a requester ought to get, as text.
func (m *model) expect(a *observed.Port, id mad.AttributeID) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, p := range m.hosts {
		if !m.sees(a, p) {
			continue
		}
		switch id {
		case sa.AttrNodeRecord:
			add("%d %s", p.Info.LID, p.GUID)
		case sa.AttrGUIDInfoRecord:
			add("%d %s", p.Info.LID, p.GUID)
		case sa.AttrSMInfoRecord:
			if p == m.fabric.Self {
				add("%d", p.Info.LID)
			}
		case sa.AttrSwitchInfoRecord:
			if p.Node.Switch != nil {
				add("%d", p.Info.LID)
			}
		case sa.AttrLinearForwardingTableRecord:
			m.expectLFT(a, p, add)
		case sa.AttrPathRecord:
			m.expectPaths(a, p, add)
		}
		for i := range p.Node.Ports {
			if q := &p.Node.Ports[i]; (p.Node.Switch != nil || i > 0) && m.seesPort(a, q) {
				m.expectPort(a, p, q, id, add)
			}
		}
	}
	sort.Strings(out)
	return out
}

func (m *model) expectPort(a, p, q *observed.Port, id mad.AttributeID, add func(string, ...any)) {
	switch id {
	case sa.AttrPortInfoRecord:
		add("%d %d mkey 0", p.Info.LID, q.Num)
	case sa.AttrSLToVLMappingTableRecord:
		if p.Node.Switch != nil {
			add("%d %d", p.Info.LID, q.Num)
		} else {
			add("%d 0", p.Info.LID)
		}
	case sa.AttrVLArbitrationTableRecord:
		add("%d %d 1", p.Info.LID, q.Num)
		add("%d %d 2", p.Info.LID, q.Num)
	case sa.AttrLinkRecord:
		if q.Peer != nil && m.sees(a, end(q.Peer)) {
			add("%d %d %d %d", p.Info.LID, q.Num, q.Peer.Num, end(q.Peer).Info.LID)
		}
	}
}

func (m *model) expectLFT(a, p *observed.Port, add func(string, ...any)) {
	if p.Node.Switch == nil {
		return
	}
	for lid, exit := range p.Node.Switch.LFT {
		shown := ib.PortNone
		for _, q := range m.hosts {
			if int(q.Info.LID) == lid && m.sees(a, q) {
				shown = exit
			}
		}
		add("%d %d %d", p.Info.LID, lid, shown)
	}
}

func (m *model) expectPaths(a, from *observed.Port, add func(string, ...any)) {
	for _, to := range m.hosts {
		if !m.sees(a, to) {
			continue
		}
		for _, base := range m.bases() {
			if m.meet(from, to, base) && (a == from || a == to || m.key(a, base) > 0 || m.trusted[a]) {
				key := base.Limited()
				if m.key(from, base) == 2 {
					key = base.Full()
				}
				add("%d %d %s", from.Info.LID, to.Info.LID, key)
				break
			}
		}
	}
}

// text is what the model says of a record that came.
func text(t testing.TB, id mad.AttributeID, b []byte) []string {
	t.Helper()
	read := func(r sa.Record) {
		if err := r.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
	}
	one := func(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }
	switch id {
	case sa.AttrNodeRecord:
		var r sa.NodeRecord
		read(&r)
		return one("%d %s", r.LID, r.NodeInfo.PortGUID)
	case sa.AttrGUIDInfoRecord:
		var r sa.GUIDInfoRecord
		read(&r)
		return one("%d %s", r.LID, ib.PortGUID(r.Table.GUIDs[0]))
	case sa.AttrSMInfoRecord:
		var r sa.SMInfoRecord
		read(&r)
		if r.SMInfo.SMKey != 0 {
			t.Error("the SM_Key was shown")
		}
		return one("%d", r.LID)
	case sa.AttrSwitchInfoRecord:
		var r sa.SwitchInfoRecord
		read(&r)
		return one("%d", r.LID)
	case sa.AttrPortInfoRecord:
		var r sa.PortInfoRecord
		read(&r)
		return one("%d %d mkey %d", r.EndportLID, r.PortNum, r.PortInfo.MKey)
	case sa.AttrSLToVLMappingTableRecord:
		var r sa.SLToVLMappingTableRecord
		read(&r)
		return one("%d %d", r.LID, r.OutputPortNum)
	case sa.AttrVLArbitrationTableRecord:
		var r sa.VLArbitrationTableRecord
		read(&r)
		return one("%d %d %d", r.LID, r.OutputPortNum, r.BlockNum)
	case sa.AttrLinkRecord:
		var r sa.LinkRecord
		read(&r)
		return one("%d %d %d %d", r.FromLID, r.FromPort, r.ToPort, r.ToLID)
	case sa.AttrPathRecord:
		var r sa.PathRecord
		read(&r)
		return one("%d %d %s", r.SLID, r.DLID, r.PKey)
	case sa.AttrLinearForwardingTableRecord:
		var r sa.LinearForwardingTableRecord
		read(&r)
		var out []string
		for i, p := range r.Table.Ports {
			out = append(out, fmt.Sprintf("%d %d %d", r.LID, int(r.BlockNum)*smp.LIDsPerLinearBlock+i, p))
		}
		return out
	}
	t.Fatalf("no text for attribute %#x", id)
	return nil
}

var modelled = []mad.AttributeID{
	sa.AttrNodeRecord, sa.AttrGUIDInfoRecord, sa.AttrSMInfoRecord, sa.AttrSwitchInfoRecord, sa.AttrPortInfoRecord,
	sa.AttrSLToVLMappingTableRecord, sa.AttrVLArbitrationTableRecord, sa.AttrLinkRecord, sa.AttrPathRecord, sa.AttrLinearForwardingTableRecord,
}

// TestVisibility asks, for random policies, as every port for every record, and
// compares with the model both ways: nothing is shown that may not be seen, and
// nothing is kept back.
func TestVisibility(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 11))
		m := randomModel(t, r)
		s := m.serve(t, Config{SAKey: 99})
		for _, a := range m.hosts {
			if m.isContested(a) {
				if got := exchange(t, s, a.Info.LID, ask(mad.MethodGetTable, sa.AttrNodeRecord, 0, nil, 0)); got.Status != sa.StatusRequestInvalid {
					t.Errorf("seed %d: LID %d is contested, and got status %s", seed, a.Info.LID, got.Status)
				}
				continue
			}
			for _, id := range modelled {
				got := exchange(t, s, a.Info.LID, ask(mad.MethodGetTable, id, 0, nil, 0))
				if got.Status != mad.StatusOK {
					t.Fatalf("seed %d: %s as LID %d: %s", seed, sa.AttributeName(id), a.Info.LID, got.Status)
				}
				var have []string
				for _, b := range got.records {
					have = append(have, text(t, id, b)...)
				}
				sort.Strings(have)
				if want := m.expect(a, id); !slices.Equal(have, want) {
					t.Fatalf("seed %d: %s as LID %d:\nhave %q\nwant %q", seed, sa.AttributeName(id), a.Info.LID, have, want)
				}
			}
			if got := exchange(t, s, a.Info.LID, ask(mad.MethodGetTable, sa.AttrPKeyTableRecord, 0, nil, 0)); got.Status != sa.StatusDenied {
				t.Errorf("seed %d: P_KeyTableRecord without trust: %s", seed, got.Status)
			}
			got := exchange(t, s, a.Info.LID, ask(mad.MethodGetTable, sa.AttrPKeyTableRecord, 0, nil, 99))
			for _, b := range got.records {
				var x sa.PKeyTableRecord
				if err := x.UnmarshalBinary(b); err != nil {
					t.Fatal(err)
				}
				for _, p := range m.hosts {
					if p.Info.LID == x.LID && !m.sees(a, p) {
						t.Errorf("seed %d: with trust, LID %d is shown the table of LID %d, which it does not see", seed, a.Info.LID, x.LID)
					}
				}
			}
		}
	}
}

func (m *model) isContested(a *observed.Port) bool {
	for _, q := range m.hosts {
		if q != a && (q.GUID == a.GUID || q.Info.LID == a.Info.LID) {
			return true
		}
	}
	return false
}
