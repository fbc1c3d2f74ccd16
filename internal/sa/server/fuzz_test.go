package server

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// FuzzRequest: no request makes the server panic, stay silent, or show what the
// model says the requester may not see, of the subnet or of what hosts
// registered. What is refused tells nothing but what was asked.
func FuzzRequest(f *testing.F) {
	const get, table, multi, trace = mad.MethodGet, mad.MethodGetTable, mad.MethodGetMulti, mad.MethodGetTraceTable
	f.Add(uint64(1), ask(table, sa.AttrNodeRecord, 0, nil, 0)[:])
	f.Add(uint64(2), ask(table, sa.AttrPathRecord, 0, nil, 0)[:])
	f.Add(uint64(3), ask(get, sa.AttrPortInfoRecord, 1, &sa.PortInfoRecord{EndportLID: 2}, 0)[:])
	f.Add(uint64(4), ask(multi, sa.AttrMultiPathRecord, 3<<19, &sa.MultiPathRecord{SGIDs: make([]ib.GID, 2), DGIDs: make([]ib.GID, 2)}, 0)[:])
	f.Add(uint64(5), ask(mad.MethodSet, sa.AttrMCMemberRecord, kernelCreate, nil, 0)[:])
	f.Add(uint64(6), ask(mad.MethodSet, sa.AttrInformInfo, 0, everything(), 0)[:])
	f.Add(uint64(7), ask(trace, sa.AttrPathRecord, sa.PathRecordSLID|sa.PathRecordDLID, &sa.PathRecord{SLID: 2, DLID: 3}, 0)[:])
	for i, id := range append(slices.Clone(peopledKinds), modelled...) {
		f.Add(uint64(8+i), ask(table, id, 0, nil, 0)[:])
		f.Add(uint64(8+i), ask(get, id, 1, nil, 0)[:])
	}
	f.Fuzz(func(t *testing.T, seed uint64, raw []byte) {
		r := rand.New(rand.NewPCG(seed%64, 11))
		m := randomModel(t, r)
		a := m.hosts[seed%uint64(len(m.hosts))]
		p := []protect.Profile{protect.None, protect.Basic, protect.Tenant, protect.Strict}[seed/64%4]
		if a == m.fabric.Self {
			p = protect.None // it may see everything in the others
		}
		s := m.serve(t, Config{SAKey: 99, AliasGUIDs: true, Profile: p, Limits: shortTurns(r, DefaultLimits())})
		w := people(t, m, s, r)
		var in [mad.Size]byte
		copy(in[:], raw)
		in[0], in[1], in[2] = 1, byte(mad.ClassSubnAdm), sa.ClassVersion
		clear(in[sa.OffsetSMKey : sa.OffsetSMKey+8]) // no trust
		clear(in[24:36])                             // no segments: rmpp has a fuzz of its own
		method := mad.Method(in[3])
		id := mad.AttributeID(in[16])<<8 | mad.AttributeID(in[17])
		if method.IsResponse() || method == mad.MethodTrap || method == mad.MethodTrapRepress {
			s.Receive(0, &in, mad.Address{LID: a.Info.LID, QP: 1})
			return
		}
		if p >= protect.Tenant && !m.isContested(a) && !strings.Contains(openTo[id], letters[method]) {
			if got := exchange(t, s, a.Info.LID, &in); got.Status == mad.StatusOK {
				t.Fatalf("profile %s: %s of %#x was answered", p, method, id)
			}
			return
		}
		got := exchange(t, s, a.Info.LID, &in)
		if got.Status != mad.StatusOK && len(got.records) == 0 {
			if !bytes.Equal(got.Data[:], in[sa.DataOffset:]) {
				t.Fatalf("status %s, and the data are not what was asked: % x", got.Status, got.Data)
			}
			return
		}
		records := got.records
		if method == mad.MethodGet {
			records = [][]byte{got.Data[:]}
		}
		w.judge(t, a, method, id, records)
	})
}

// judge holds records against what their requester, which showed no key, may see.
func (w *peopled) judge(t *testing.T, a *observed.Port, method mad.Method, id mad.AttributeID, records [][]byte) {
	t.Helper()
	switch method {
	case mad.MethodGetTraceTable:
		w.judgeTrace(t, a, records)
		return
	case mad.MethodGetMulti:
		id = sa.AttrPathRecord
	case mad.MethodGet, mad.MethodGetTable:
	default:
		return // answers to Set and Delete say what is the requester's own
	}
	var say func([]byte) []string
	may := map[string]bool{}
	switch {
	case slices.Contains(peopledKinds, id):
		say = func(b []byte) []string { return []string{peopledText(t, id, b)} }
		for _, x := range w.expect(a, id, false) {
			may[x] = true
		}
		for _, g := range w.groups { // its own membership, when it asks for that
			if slices.Contains(g.members, a) {
				may[g.mgid.String()+" "+gidOf(a).String()] = true
			}
		}
		if id == sa.AttrGUIDInfoRecord { // further blocks are empty
			for _, p := range w.hosts {
				if w.sees(a, p) {
					may[peopledText(t, id, onWire(&sa.GUIDInfoRecord{LID: p.Info.LID}))] = true
				}
			}
		}
	case id == sa.AttrPathRecord:
		say = func(b []byte) []string { return text(t, id, b) }
		w.allPaths(t, a, may)
	case id == sa.AttrLinearForwardingTableRecord, !slices.Contains(modelled, id):
		return // TestVisibility has the tables, which a fuzzed block number cuts
	default:
		say = func(b []byte) []string { return text(t, id, b) }
		for _, x := range w.model.expect(a, id) {
			may[x] = true
		}
	}
	for _, b := range records {
		for _, x := range say(b) {
			if !may[x] && !w.isGroupPath(a, id, b) {
				t.Fatalf("%s was shown to LID %d: %s", sa.AttributeName(id), a.Info.LID, x)
			}
		}
	}
}

func onWire(r sa.Record) []byte {
	b, _ := r.AppendBinary(nil)
	return b
}

// isGroupPath reports whether a record is a path to a group of a's partitions.
func (w *peopled) isGroupPath(a *observed.Port, id mad.AttributeID, b []byte) bool {
	var r sa.PathRecord
	if id != sa.AttrPathRecord || r.UnmarshalBinary(b) != nil {
		return false
	}
	return slices.ContainsFunc(w.groups, func(g *madeGroup) bool {
		return g.mgid == r.DGID && w.key(a, g.base) > 0
	})
}

// allPaths enters every path that a may learn of: with a key in the query any
// common one may be named.
func (w *peopled) allPaths(t *testing.T, a *observed.Port, may map[string]bool) {
	for _, from := range w.hosts {
		for _, to := range w.hosts {
			for _, base := range w.bases() {
				if !w.sees(a, from) || !w.sees(a, to) || !w.meet(from, to, base) || a != from && a != to && w.key(a, base) == 0 {
					continue
				}
				one := sa.PathRecord{SLID: from.Info.LID, DLID: to.Info.LID}
				one.PKey = base.Limited()
				if w.key(from, base) == 2 {
					one.PKey = base.Full()
				}
				may[text(t, sa.AttrPathRecord, onWire(&one))[0]] = true
			}
		}
	}
}
