package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/need"
)

// shared makes red and blue with partitions of their own, and one of red's that a port of
// blue is in as a limited member.
func (s *stand) shared() {
	s.Helper()
	s.tenants()
	for _, x := range []struct {
		as, key, name, membership string
		ports                     []string
	}{
		{"red", "0x0100", "crimson", "full", s.hosts[:4]}, {"blue", "0x0200", "azure", "full", s.hosts[4:8]},
		{"red", "0x0110", "purple", "full", s.hosts[:2]}, {"red", "0x0110", "", "limited", []string{s.hosts[2], s.hosts[4]}}, {"blue", "0x0110", "", "limited", s.hosts[4:5]},
	} {
		if x.name != "" {
			s.want(201, call{as: x.as, method: "PUT", path: "/partitions/" + x.key, body: js{"name": x.name}})
		}
		s.want(200, call{as: x.as, method: "POST", path: "/partitions/" + x.key + "/members", body: joins(x.membership, x.ports...)})
	}
	s.asAllowed()
}

// another gives the manager a copy of its snapshot, to be changed.
func (s *stand) another() *observed.Fabric {
	s.Helper()
	var buf bytes.Buffer
	err := snapshot.Write(&buf, s.manager.snap)
	if err == nil {
		s.manager.snap, err = snapshot.Read(&buf)
	}
	if err != nil {
		s.Fatal(err)
	}
	return s.manager.snap.Fabric
}

// allowed is the policy that the judge goes by.
func (s *stand) allowed() []observed.Partition {
	s.Helper()
	list, err := s.api.options.Judge.Allowed(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return list
}

// asAllowed writes the tables as the policy wants them.
func (s *stand) asAllowed() *observed.Fabric {
	s.Helper()
	f := s.another()
	for _, p := range f.EndPorts() {
		keys := subnettest.PKeys(s.allowed(), p.GUID)
		subnettest.SetPKeys(p, keys...)
		if p.Node.Switch == nil {
			for i, k := range keys {
				keys[i] = k.Base().Full()
			}
			subnettest.SetPKeys(p.Peer, keys...)
		}
	}
	return f
}

// tableOf are the keys of a port that were read, and whether that is all of them.
func tableOf(p *observed.Port) (full map[ib.PKeyBase]bool, all bool) {
	full, all = map[ib.PKeyBase]bool{}, p.InfoRead
	for i, k := range p.PKeys {
		if b := i / 32; b >= len(p.PKeysRead) || !p.PKeysRead[b] {
			all = false
		} else if base := ib.PKeyBase(k & 0x7fff); base != 0 {
			full[base] = full[base] || k&0x8000 != 0
		}
	}
	return full, all
}

// overOf are the partitions over which two ports can talk, by a plain look at both tables.
func overOf(p, q *observed.Port) (over []ib.PKeyBase, unread bool) {
	mine, all := tableOf(p)
	theirs, whole := tableOf(q)
	for base, full := range mine {
		if other, shared := theirs[base]; shared && (full || other) {
			over = append(over, base)
		}
	}
	slices.Sort(over)
	return over, !all || !whole
}

// mayTalk reports whether the policy lets two ports talk.
func mayTalk(allowed []observed.Partition, p, q *observed.Port) bool {
	for _, a := range allowed {
		in := func(x *observed.Port) bool {
			return slices.Contains(a.Full, x.GUID) || slices.Contains(a.Limited, x.GUID)
		}
		if in(p) && in(q) && (slices.Contains(a.Full, p.GUID) || slices.Contains(a.Full, q.GUID)) {
			return true
		}
	}
	return false
}

// matrixOf is the matrix that a caller is told, and the text of it without what another
// revision or reading changes.
func (s *stand) matrixOf(as string) (m views.Matrix, text string) {
	s.Helper()
	w := s.do(call{as: as, method: "GET", path: "/matrix"})
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != 200 {
		s.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	stable := m
	stable.ReadAt = time.Time{}
	b, _ := json.Marshal(stable)
	return m, string(b)
}

func (s *stand) portsOf(as, a, b string, limit int) (m views.MatrixPorts) {
	s.Helper()
	w := s.do(call{as: as, method: "GET", path: fmt.Sprintf("/matrix/ports?a=%s&b=%s&limit=%d", url.QueryEscape(a), url.QueryEscape(b), limit)})
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || w.Code != 200 {
		s.Fatalf("%s and %s: %d %s: %v", a, b, w.Code, w.Body, err)
	}
	return m
}

// spoil changes something of a fabric.
func spoil(r *rand.Rand, f *observed.Fabric, allowed []observed.Partition) {
	ends := slices.DeleteFunc(f.EndPorts(), func(p *observed.Port) bool { return p.Node.Switch != nil })
	p := ends[r.IntN(len(ends))]
	key := allowed[r.IntN(len(allowed))].Base.Limited() | ib.PKey(r.IntN(2)<<15)
	switch r.IntN(5) {
	case 0:
		p.PKeysRead[r.IntN(len(p.PKeysRead))] = false
	case 1:
		p.Peer.Info.PartitionEnforcementInbound = false
	case 2:
		p.Peer.PKeys[r.IntN(len(p.Peer.PKeys))] = key
	default:
		p.PKeys[r.IntN(6)] = key
	}
}

// TestMatrixAgainstEveryTwoPorts: each party has the ports that it should, and each cell says
// what a look at every two ports does; and what the proof says.
func TestMatrixAgainstEveryTwoPorts(t *testing.T) {
	s := newStand(t)
	s.shared()
	seed := need.Seed(t, 1)
	r := rand.New(rand.NewPCG(seed, seed))
	rounds := 12
	if need.Soak() {
		rounds = 300
	}
	verdicts := map[string]int{}
	for range rounds {
		f := s.asAllowed()
		for range r.IntN(5) {
			spoil(r, f, s.allowed())
		}
		m, _ := s.matrixOf("")
		members := s.partyPorts(f, &m)
		seen := map[[2]int]bool{}
		violated := 0
		for _, c := range m.Cells {
			seen[[2]int{c.A, c.B}] = true
			s.checkCell(&m, &c, members[c.A], members[c.B])
			verdicts[c.Verdict]++
			violated += c.Violations
		}
		if n := len(m.Parties); len(seen) != n*(n+1)/2 || len(m.Cells) != len(seen) || m.Sparse {
			t.Fatalf("%d cells of %d parties", len(m.Cells), n)
		}
		s.checkProof(&m, members, violated)
	}
	if len(verdicts) != 4 {
		t.Errorf("verdicts %v: want all four", verdicts)
	}
}

// partyPorts are the ports of each party, as they are listed port by port.
func (s *stand) partyPorts(f *observed.Fabric, m *views.Matrix) (out [][]*observed.Port) {
	s.Helper()
	at := map[string]*observed.Port{}
	for _, p := range f.EndPorts() {
		at[p.GUID.String()] = p
	}
	all := len(at)
	for _, party := range m.Parties {
		var list []*observed.Port
		for _, row := range s.portsOf("", party.Name, party.Name, 200).Rows {
			p := at[row.GUID]
			delete(at, row.GUID)
			if p == nil {
				s.Fatalf("%s is in two parties, or in none", row.GUID)
			}
			list = append(list, p)
			var owner string
			s.service.Read(func(st *resource.State) { owner = st.Owner(p.GUID) })
			if owner != party.Owner || (party.Kind == "tenant") != (owner == "red" || owner == "blue") {
				s.Fatalf("%s of %s is in %+v", row.GUID, owner, party)
			}
			mine, whole := tableOf(p)
			first, also := tableOf(list[0])
			if party.Kind == "ports" && (fmt.Sprint(mine) != fmt.Sprint(first) || whole != also) {
				s.Fatalf("%s has the keys %v, the first of %s has %v", row.GUID, mine, party.Name, first)
			}
		}
		if len(list) != party.Ports || !slices.ContainsFunc(list, func(p *observed.Port) bool { return p.GUID.String() == party.Example }) {
			s.Fatalf("%+v has %d ports", party, len(list))
		}
		out = append(out, list)
	}
	if len(at) > 0 {
		s.Fatalf("%d of %d ports are in no party", len(at), all)
	}
	return out
}

// checkCell holds a cell, and the ports of its parties, against a look at every two ports.
func (s *stand) checkCell(m *views.Matrix, c *views.MatrixCell, a, b []*observed.Port) {
	s.Helper()
	allowed := s.allowed()
	var pairs, talking, unread, may, wrong int
	names := map[string]bool{}
	known := true
	single := s.portsOf("", m.Parties[c.A].Name, m.Parties[c.B].Name, 200)
	for i, row := range single.Rows {
		for j, column := range single.Columns {
			p, q := endPortOf(a, row.GUID), endPortOf(b, column.GUID)
			cell := single.Cells[i][j]
			if p == q {
				continue
			}
			over, lacks := overOf(p, q)
			want := map[bool]string{true: "all", false: "none"}[len(over) > 0]
			if lacks && len(over) == 0 {
				want = "unknown"
			}
			ok := mayTalk(allowed, p, q)
			if cell.Talk != want || len(cell.Partitions) != len(over) || (cell.Verdict == "violated") != (len(over) > 0 && !ok) || lacks && cell.Verdict != "unknown" && cell.Verdict != "violated" {
				s.Fatalf("%v and %v: %+v, want %s over %v, allowed %v, not read %v", p, q, cell, want, over, ok, lacks)
			}
			if c.A == c.B && i > j {
				continue
			}
			known = known && !lacks
			pairs++
			for _, k := range over {
				names[nameOf(allowed, k)] = true
			}
			switch {
			case len(over) > 0:
				talking++
			case lacks:
				unread++
			}
			if ok {
				may++
			} else if len(over) > 0 {
				wrong++
			}
		}
	}
	if c.Pairs != pairs || c.Talking != talking || c.Unread != unread || *c.Allowed != may || c.Violations != wrong || len(c.Partitions) != min(len(names), 16) {
		s.Fatalf("%s and %s: %+v, want %d pairs, %d talking over %v, %d unread, %d allowed, %d wrong", m.Parties[c.A].Name, m.Parties[c.B].Name, c, pairs, talking, names, unread, may, wrong)
	}
	for _, name := range c.Partitions {
		if !names[name] {
			s.Fatalf("%+v: want %v", c, names)
		}
	}
	want := map[bool]string{true: "all", false: "some"}[talking == pairs]
	switch {
	case talking == 0 && unread > 0:
		want = "unknown"
	case talking == 0:
		want = "none"
	}
	if c.Talk != want || (c.Verdict == "violated") != (wrong > 0) || !known && c.Verdict != "unknown" && c.Verdict != "violated" || (c.Witness != nil) != (talking > 0) || c.Reason == "" {
		s.Fatalf("%+v: want %s, and all known: %v", c, want, known)
	}
	if c.Witness != nil {
		p, q := endPortOf(a, c.Witness.From), endPortOf(b, c.Witness.To)
		if over, _ := overOf(p, q); len(over) == 0 || mayTalk(allowed, p, q) == (wrong > 0) || !slices.ContainsFunc(over, func(k ib.PKeyBase) bool { return strings.HasSuffix(k.Full().String(), c.Witness.PKey[3:]) }) {
			s.Fatalf("%+v is no witness of %+v: %v", c.Witness, c, over)
		}
	}
}

func endPortOf(list []*observed.Port, guid string) *observed.Port {
	return list[slices.IndexFunc(list, func(p *observed.Port) bool { return p.GUID.String() == guid })]
}

func nameOf(allowed []observed.Partition, k ib.PKeyBase) string {
	for _, a := range allowed {
		if a.Base == k {
			return a.Name
		}
	}
	return k.String()
}

// checkProof holds the matrix against GET /proof: the same verdict, and every violation is in
// a cell that says so.
func (s *stand) checkProof(m *views.Matrix, members [][]*observed.Port, violated int) {
	s.Helper()
	proof := s.want(200, call{method: "GET", path: "/proof"})["item"].(map[string]any)
	party := func(guid any) int {
		return slices.IndexFunc(members, func(list []*observed.Port) bool {
			return slices.ContainsFunc(list, func(p *observed.Port) bool { return p.GUID.String() == guid })
		})
	}
	two := map[string]bool{}
	list := proof["violations"].([]any)
	for _, x := range list {
		v := x.(map[string]any)
		a, b := party(v["from"]), party(v["to"])
		for _, c := range m.Cells {
			if c.A == min(a, b) && c.B == max(a, b) && c.Verdict != "violated" {
				s.Fatalf("the proof has %v, the matrix %+v", v, c)
			}
		}
		pair := []string{fmt.Sprint(v["from"]), fmt.Sprint(v["to"])}
		slices.Sort(pair)
		two[fmt.Sprint(pair)] = true
	}
	whole := float64(len(list)) == proof["counts"].(map[string]any)["violations"]
	if m.Verdict != proof["verdict"] || (violated > 0) != (m.Verdict == "violated") || len(two) > violated || whole && len(two) != violated {
		s.Fatalf("%s with %d violations; the proof is %v with %d", m.Verdict, violated, proof["verdict"], len(two))
	}
}

// TestMatrixOfATenant: it sees its own ports and those of others in its partitions, and how it
// stands to all others in a word; nothing names these or counts them.
func TestMatrixOfATenant(t *testing.T) {
	s := newStand(t)
	s.shared()
	m, before := s.matrixOf("red")
	if len(m.Parties) != 3 || m.Parties[0].Name != "red" || m.Parties[0].Ports != 4 || m.Parties[1].Ports != 1 || m.Parties[1].Owner != "" || m.Parties[2].Kind != "others" || len(m.Cells) != 3 {
		t.Fatalf("%+v", m)
	}
	if c := m.Cells[1]; c.Pairs != 4 || c.Talking != 2 || c.Partitions[0] != "purple" {
		t.Errorf("%+v: want the two full members of purple to talk with blue's port", c)
	}
	hidden := s.hidden(s.manager.snap.Fabric)
	look := func(when, text string) {
		t.Helper()
		for _, x := range hidden {
			if strings.Contains(text, x) {
				t.Errorf("%s: red is told of %q: %s", when, x, text)
			}
		}
	}
	look("at first", before)
	ports := s.portsOf("red", "red", m.Parties[1].Name, 200)
	text, _ := json.Marshal(ports)
	look("port by port", string(text))
	if len(ports.Rows) != 4 || len(ports.Columns) != 1 {
		t.Errorf("%+v", ports)
	}
	for _, x := range [][2]string{{"red", "blue"}, {"blue", "red"}, {"red", "all others"}, {"all others", "all others"}, {m.Parties[1].Name, m.Parties[1].Name}, {"provider", "red"}, {"red", "switches in default"}} {
		got := s.do(call{as: "red", method: "GET", path: "/matrix/ports?a=" + url.QueryEscape(x[0]) + "&b=" + url.QueryEscape(x[1])})
		none := s.do(call{as: "red", method: "GET", path: "/matrix/ports?a=red&b=nobody"})
		if got.Code != 404 || got.Body.String() != none.Body.String() {
			t.Errorf("%v: %d %s, want what is said of a party that is not there", x, got.Code, got.Body)
		}
	}
	// What is others' makes no difference: their names, keys, number and links.
	s.want(200, call{as: "blue", method: "DELETE", path: "/partitions/0x0200/members/" + s.hosts[6]})
	s.want(201, call{method: "PUT", path: "/tenants/green", body: js{"keys": js{"first": "0x0300", "last": "0x03ff"}}})
	s.want(200, call{method: "POST", path: "/ports/assign", body: js{"tenant": "green", "ports": []js{{"guid": s.hosts[9]}, {"guid": s.hosts[10]}}}})
	f := s.asAllowed()
	for _, n := range f.Nodes {
		if n.Description != "" && slices.ContainsFunc(hidden, func(x string) bool { return x == n.Description }) {
			n.Description = "renamed " + n.Description
		}
	}
	if _, after := s.matrixOf("red"); after != before {
		t.Errorf("%s\nwas before others changed:\n%s", after, before)
	}
	// A host of blue's that red does not see takes a key of red's: red is told that it is
	// not kept apart, and of its own port. The policy lets one of its four, the manager's, talk
	// with all over the default partition.
	f = s.asAllowed()
	p := endPortOf(f.EndPorts(), s.hosts[5])
	p.PKeys[5] = 0x8100
	m, text2 := s.matrixOf("red")
	look("a violation", text2)
	c := m.Cells[2]
	if m.Verdict != "violated" || c.Verdict != "violated" || c.Violations != 3 || c.Talk != "all" || c.Witness == nil || c.Witness.To != "" || !slices.Contains(s.hosts[:4], c.Witness.From) || c.Witness.PKey == "" {
		t.Errorf("%s %+v %+v", m.Verdict, c, c.Witness)
	}
	if m, _ := s.matrixOf("blue"); m.Verdict != "violated" || m.Cells[len(m.Cells)-1].Verdict != "violated" {
		t.Errorf("blue is told %+v", m)
	}
	// Something of others was not read: that is unknown, and not more.
	f = s.asAllowed()
	clear(endPortOf(f.EndPorts(), s.hosts[5]).PKeysRead)
	m, text2 = s.matrixOf("red")
	look("unread", text2)
	if m.Cells[2].Verdict != "unknown" || m.Cells[0].Verdict != "kept-apart" {
		t.Errorf("%+v", m.Cells)
	}
	// One that has no port here sees itself and nothing else.
	s.tokens["green"] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": "green"}})["secret"].(string)
	s.want(200, call{method: "POST", path: "/ports/release", body: js{"ports": []string{s.hosts[9], s.hosts[10]}}})
	if m, _ := s.matrixOf("green"); len(m.Parties) != 3 || m.Parties[0].Ports != 0 || m.Cells[2].Verdict != "kept-apart" || m.Cells[2].Talk != "none" {
		t.Errorf("%+v", m)
	}
}

// hidden are names and GUIDs that red must not be told.
func (s *stand) hidden(f *observed.Fabric) (out []string) {
	out = []string{"blue", "azure", "provider", "0x0200", "0x8200"}
	for _, p := range f.EndPorts() {
		if g := p.GUID.String(); !slices.Contains(s.hosts[:5], g) {
			out = append(out, g, p.Node.Description, p.Node.GUID().String())
		}
	}
	return out
}

// BenchmarkMatrix asks for the matrix of 11,664 hosts in 40 tenants with two partitions each:
// first after a pass of the manager, and again.
func BenchmarkMatrix(b *testing.B) {
	s := newStand(b)
	const tenants, leaves, perLeaf = 40, 648, 18
	s.manager.snap = bigSnapshot(leaves, perLeaf)
	ends := slices.DeleteFunc(s.manager.snap.Fabric.EndPorts(), func(p *observed.Port) bool { return p.Node.Switch != nil })
	each := len(ends) / tenants
	for i := range tenants {
		name := fmt.Sprintf("tenant-%d", i)
		s.want(201, call{method: "PUT", path: "/tenants/" + name, body: js{"keys": js{"first": fmt.Sprintf("0x%02x00", i+1), "last": fmt.Sprintf("0x%02xff", i+1)}, "quota": js{"members": 10000}}})
		mine := ends[i*each : (i+1)*each]
		s.want(200, call{method: "POST", path: "/pools", body: js{"tenant": name, "first": mine[0].GUID.String(), "last": mine[each-1].GUID.String()}})
		secret := s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": name}})["secret"].(string)
		s.tokens[name] = secret
		for j, list := range [][]*observed.Port{mine, mine[:each/2]} {
			path := fmt.Sprintf("/partitions/0x%02x%02x", i+1, j)
			s.want(201, call{as: name, method: "PUT", path: path, body: js{"name": fmt.Sprintf("part-%d-%d", i, j)}})
			var guids []string
			for _, p := range list {
				guids = append(guids, p.GUID.String())
			}
			s.want(200, call{as: name, method: "POST", path: path + "/members", body: joins("full", guids...)})
		}
	}
	s.asAllowed()
	for _, as := range []string{"", "tenant-7"} {
		m, text := s.matrixOf(as)
		b.Run(map[bool]string{true: "first", false: "first-tenant"}[as == ""], func(b *testing.B) {
			for b.Loop() {
				s.api.talks = views.MatrixCache{}
				s.matrixOf(as)
			}
			b.ReportMetric(float64(len(text)), "bytes")
			b.ReportMetric(float64(len(m.Parties)), "parties")
		})
		b.Run(map[bool]string{true: "again", false: "again-tenant"}[as == ""], func(b *testing.B) {
			for b.Loop() {
				s.matrixOf(as)
			}
		})
	}
	b.Run("ports", func(b *testing.B) {
		for b.Loop() {
			s.portsOf("", "tenant-7", "tenant-9", 200)
		}
	})
}

// bigSnapshot is of hosts at leaves below spines.
func bigSnapshot(leaves, perLeaf int) *snapshot.Snapshot {
	w := subnettest.New()
	const perSpine = 200
	var spine *observed.Node
	for l := range leaves {
		if l%perSpine == 0 {
			spine = w.Switch(perSpine, fmt.Sprintf("spine-%d", l/perSpine))
			w.Fabric.Self = &spine.Ports[0]
		}
		leaf := w.Switch(perLeaf+1, fmt.Sprintf("leaf-%d", l))
		subnettest.Join(leaf, spine)
		for h := range perLeaf {
			w.Host(leaf, fmt.Sprintf("host-%d HCA-1", l*perLeaf+h))
		}
	}
	return &snapshot.Snapshot{ReadAt: time.Unix(1e9, 0).UTC(), Source: "test", Fabric: w.Fabric, Faults: []snapshot.Fault{}}
}

// TestManyAskForTheMatrix at once, each what it sees; -race looks on.
func TestManyAskForTheMatrix(t *testing.T) {
	s := newStand(t)
	s.shared()
	var all sync.WaitGroup
	for _, as := range []string{"", "red", "blue", "reader", "provider"} {
		_, want := s.matrixOf(as)
		all.Go(func() {
			for range 4 {
				w := s.do(call{as: as, method: "GET", path: "/matrix"})
				var m views.Matrix
				err := json.Unmarshal(w.Body.Bytes(), &m)
				m.ReadAt = time.Time{}
				if got, _ := json.Marshal(m); err != nil || string(got) != want {
					t.Errorf("%q: %d %s, %v; want %s", as, w.Code, got, err, want)
				}
				if w := s.do(call{as: as, method: "GET", path: "/matrix/ports?a=red&b=red"}); (w.Code == 200) != (as != "blue") {
					t.Errorf("%q: %d %s", as, w.Code, w.Body)
				}
			}
		})
	}
	all.Wait()
}
