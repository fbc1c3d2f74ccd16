package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// cabled is a list of cables and fences of a test.
type cabled struct {
	is  views.Cabling
	err error
}

func (c *cabled) Cabling(context.Context) (*views.Cabling, error) { return &c.is, c.err }

// listOf is the list of all cables of a fabric.
func listOf(f *observed.Fabric) *views.MapList {
	l := &views.MapList{}
	for _, n := range f.Nodes {
		l.Devices = append(l.Devices, views.MapDevice{GUID: n.GUID(), Type: n.Type(), Name: n.Description})
	}
	for _, x := range f.Links() {
		l.Cables = append(l.Cables, views.Cable{A: x.B.Place(), B: x.A.Place()})
	}
	return l
}

// mapFor reads a map.
func (s *stand) mapFor(as string) (m views.Map, header http.Header) {
	s.Helper()
	w := s.do(call{as: as, method: "GET", path: "/map"})
	if w.Code != 200 {
		s.Fatalf("map for %q: %d %s", as, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		s.Fatal(err)
	}
	for _, column := range [][]int{m.Nodes.Type, m.Nodes.LID, m.Nodes.Level, m.Nodes.Group, m.Nodes.Owner, m.Nodes.State, m.Nodes.Verdict} {
		if len(column) != len(m.Nodes.GUID) || len(m.Nodes.Name) != len(m.Nodes.GUID) {
			s.Fatalf("columns of nodes are not of one length: %+v", m.Nodes)
		}
	}
	for _, column := range [][]int{m.Links.APort, m.Links.B, m.Links.BPort, m.Links.State} {
		if len(column) != len(m.Links.A) {
			s.Fatalf("columns of links are not of one length: %+v", m.Links)
		}
	}
	return m, w.Header()
}

// TestMapIsTheSnapshot: every column says of every device and cable what the snapshot says.
func TestMapIsTheSnapshot(t *testing.T) {
	s := newStand(t)
	s.tenants()
	f := s.manager.snap.Fabric
	var hosts, switches []*observed.Node
	for _, n := range f.Nodes {
		if n.Switch != nil {
			switches = append(switches, n)
		} else {
			hosts = append(hosts, n)
		}
	}
	s.want(200, call{method: "POST", path: "/drains", body: js{"switch": switches[1].GUID().String()}})
	hosts[3].Ports[1].Info.PortState = smp.PortInit
	hosts[4].Ports[1].PKeysRead[0] = false
	hosts[5].Ports[1].Info.PortPhysicalState, hosts[5].Ports[1].Info.PortState = smp.PhysPolling, smp.PortDown
	hosts[6].Ports[1].Peer.PKeys[0] = 0 // on a switch: nobody's state
	fence := hosts[7].Ports[1].Peer.Place()
	c := &cabled{is: views.Cabling{List: listOf(f), Fences: []views.Fence{{At: fence, Reason: "a test"}}}}
	gone := views.MapDevice{GUID: 0xdead, Type: ib.NodeCA, Name: "gone"}
	c.is.List.Devices = append(c.is.List.Devices, gone)
	lost := c.is.List.Cables[0]
	c.is.List.Cables[0] = views.Cable{A: observed.Place{Node: gone.GUID, Port: 1}, B: observed.Place{Node: switches[0].GUID(), Port: 8}}
	s.api.options.Cabling = c
	proof, _, err := s.api.options.Judge.Proof(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	m, _ := s.mapFor("")
	if len(m.Nodes.GUID) != len(f.Nodes)+1 || !slices.IsSorted(m.Nodes.GUID) || !m.Listed || !m.ReadAt.Equal(s.manager.snap.ReadAt) {
		t.Fatalf("%d nodes of %d, listed %v, read %v", len(m.Nodes.GUID), len(f.Nodes), m.Listed, m.ReadAt)
	}
	states := map[string]int{}
	for i, guid := range m.Nodes.GUID {
		state := m.States[m.Nodes.State[i]]
		states[state]++
		if guid == gone.GUID.String() {
			if state != "missing" || m.Nodes.Name[i] != "gone" || m.Verdicts[m.Nodes.Verdict[i]] != "unknown" || m.Nodes.Owner[i] != -1 || m.Nodes.Level[i] != 0 {
				t.Errorf("what is listed and was not found is %s", state)
			}
			continue
		}
		g, err := ib.ParseNodeGUID(guid)
		n := f.Node(g)
		if err != nil || n == nil {
			t.Fatalf("no node %s", guid)
		}
		end := &n.Ports[0]
		if n.Switch == nil {
			end = &n.Ports[1]
		}
		owner := "nobody"
		if m.Nodes.Owner[i] >= 0 {
			owner = m.Owners[m.Nodes.Owner[i]]
		}
		wantOwner, wantState, wantLevel := "nobody", "active", 2
		var wantType int
		switch {
		case n.Switch == nil:
			wantLevel = 0
			wantOwner = s.want(200, call{method: "GET", path: "/ports/" + end.GUID.String()})["item"].(js)["owner"].(string)
		case strings.HasPrefix(n.Description, "leaf"):
			wantLevel, wantType = 1, 1
		default:
			wantType = 1
		}
		switch n {
		case switches[1]:
			wantState = "drained"
		case hosts[3]:
			wantState = "inactive"
		case hosts[4]:
			wantState = "unread"
		case hosts[5]:
			wantState = "down"
		case hosts[7]:
			wantState = "fenced"
		}
		wantVerdict := map[string]string{"isolated": "kept-apart", "unknown": "unknown", "violated": "violated", "isolated-by-end-ports": "unenforced"}[proof.VerdictOn(end.GUID).String()]
		if party := m.Nodes.Party[i]; n.Switch != nil {
			if party != -1 {
				t.Errorf("switch %s is in party %d", n.Description, party)
			}
		} else if name := m.Parties[party]; !slices.Contains(s.partyOf(name), end.GUID.String()) || wantOwner != "provider" && name != wantOwner {
			t.Errorf("%s of %s is in %q", n.Description, wantOwner, name)
		}
		group := m.Groups[m.Nodes.Group[i]].Name
		wantGroup := "spines"
		if n.Switch == nil {
			wantGroup = end.Peer.Node.Description
		} else if wantLevel == 1 {
			wantGroup = n.Description
		}
		if m.Nodes.Name[i] != n.Description || m.Nodes.Type[i] != wantType || m.Nodes.LID[i] != int(end.Info.LID) || m.Nodes.Level[i] != wantLevel ||
			group != wantGroup || owner != wantOwner || state != wantState || m.Verdicts[m.Nodes.Verdict[i]] != wantVerdict {
			t.Errorf("%s: %s, type %d, LID %d, level %d, group %s, owner %s, %s, %s; want group %s, owner %s, %s, %s", n.Description, m.Nodes.Name[i], m.Nodes.Type[i],
				m.Nodes.LID[i], m.Nodes.Level[i], group, owner, state, m.Verdicts[m.Nodes.Verdict[i]], wantGroup, wantOwner, wantState, wantVerdict)
		}
	}
	if len(m.Parties) < 2 {
		t.Errorf("parties %q: want a tenant and others", m.Parties)
	}
	if len(states) != 7 {
		t.Errorf("states %v: want all seven", states)
	}

	want := map[[4]any]string{}
	for _, l := range f.Links() {
		state := "active"
		switch (views.Cable{A: l.B.Place(), B: l.A.Place()}) {
		case lost:
			state = "unlisted"
		default:
			if l.A.Info.PortState != smp.PortActive || l.B.Info.PortState != smp.PortActive {
				state = "inactive"
			}
		}
		want[[4]any{l.A.Node.GUID().String(), int(l.A.Num), l.B.Node.GUID().String(), int(l.B.Num)}] = state
	}
	want[[4]any{gone.GUID.String(), 1, switches[0].GUID().String(), 8}] = "missing"
	for i := range m.Links.A {
		k := [4]any{m.Nodes.GUID[m.Links.A[i]], m.Links.APort[i], m.Nodes.GUID[m.Links.B[i]], m.Links.BPort[i]}
		if got := m.LinkStates[m.Links.State[i]]; got != want[k] {
			t.Errorf("cable %v: %s, want %s", k, got, want[k])
		}
		delete(want, k)
	}
	if len(want) > 0 {
		t.Errorf("cables that are not on the map: %v", want)
	}
}

// TestMapOfATenant: nothing on it is of others, whatever others do.
func TestMapOfATenant(t *testing.T) {
	s := newStand(t)
	s.tenants()
	f := s.manager.snap.Fabric
	s.api.options.Cabling = &cabled{is: views.Cabling{List: listOf(f)}}
	own := map[string]bool{}
	for _, g := range s.hosts[:4] {
		own[g] = true
	}
	look := func() (string, http.Header) {
		w := s.do(call{as: "red", method: "GET", path: "/map"})
		if w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return w.Body.String(), w.Header()
	}
	text, header := look()
	for _, n := range f.Nodes {
		mine := n.Switch == nil && own[n.Ports[1].GUID.String()]
		for _, word := range []string{n.GUID().String(), `"` + n.Description + `"`} {
			if strings.Contains(text, word) != mine {
				t.Errorf("%s stands in the map of red: %v, is red's: %v", word, !mine, mine)
			}
		}
	}
	m, _ := s.mapFor("red")
	if len(m.Nodes.GUID) != 4 || len(m.Links.A) > 0 || m.Listed || !slices.Equal(m.Owners, []string{"red"}) || len(m.Groups) != 1 || m.Groups[0].Name != "" {
		t.Errorf("the map of red: %+v", m)
	}
	if m, _ := s.mapFor("reader"); len(m.Nodes.GUID) != 4 {
		t.Errorf("the reader of red sees %v", m.Nodes.Name)
	}
	// What others do, and what is done to them, changes nothing but the revision.
	for _, n := range f.Nodes {
		if n.Switch == nil && own[n.Ports[1].GUID.String()] {
			continue
		}
		n.Description += " renamed"
	}
	s.want(201, call{method: "PUT", path: "/tenants/green", body: js{}})
	s.want(200, call{method: "POST", path: "/ports/assign", body: js{"tenant": "green", "ports": []js{{"guid": s.hosts[12]}}}})
	s.want(200, call{method: "POST", path: "/drains", body: js{"switch": "0x0000000000200000"}})
	if _, after := look(); after.Get("ETag") != header.Get("ETag") {
		t.Error("the map of red shows what others do")
	}
	// Two of its hosts that are cabled to each other show that cable; to another's, none.
	a, b, other := &f.Node(1 << 20).Ports[1], (*observed.Port)(nil), (*observed.Port)(nil)
	for _, p := range f.EndPorts() {
		switch {
		case p.Node.Switch != nil:
		case own[p.GUID.String()] && a.Node != p.Node:
			b = p
		case !own[p.GUID.String()]:
			other = p
		}
	}
	if !own[a.GUID.String()] {
		t.Fatal("the first host is not red's")
	}
	observed.Connect(a, b)
	s.fresh()
	if m, _ := s.mapFor("red"); len(m.Links.A) != 1 || m.Nodes.GUID[m.Links.A[0]] == m.Nodes.GUID[m.Links.B[0]] {
		t.Errorf("%+v: want the cable between two of red's hosts", m.Links)
	}
	observed.Connect(a, other)
	s.fresh()
	if m, _ := s.mapFor("red"); len(m.Links.A) != 0 {
		t.Errorf("%+v: want no cable", m.Links)
	}
}

// fresh makes another snapshot of the same fabric, as after a pass.
func (s *stand) fresh() {
	again := *s.manager.snap
	s.manager.snap = &again
}

// TestMapAgain: an ETag is of what is on the map, and what is sent by gzip is the same.
func TestMapAgain(t *testing.T) {
	s := newStand(t)
	s.tenants()
	read := func(header map[string]string) (*http.Response, []byte) {
		w := s.do(call{method: "GET", path: "/map", header: header}).Result()
		body, err := io.ReadAll(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		return w, body
	}
	first, plain := read(nil)
	tag := first.Header.Get("ETag")
	if tag == "" || first.Header.Get("Content-Encoding") != "" || first.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("%v", first.Header)
	}
	for accept, zipped := range map[string]bool{"gzip": true, "deflate, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.000": false, "": false, "identity": false} {
		w, body := read(map[string]string{"Accept-Encoding": accept})
		if got := w.Header.Get("Content-Encoding") == "gzip"; got != zipped {
			t.Errorf("Accept-Encoding: %s: %v", accept, w.Header)
			continue
		}
		if zipped {
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(body, plain) {
			t.Errorf("Accept-Encoding: %s: another map", accept)
		}
	}
	none := func(tag string) int {
		w, body := read(map[string]string{"If-None-Match": tag})
		if w.StatusCode == 304 && (len(body) > 0 || w.Header.Get("Ibwarden-Read-At") != "2001-09-09T01:46:40Z") {
			t.Errorf("%d bytes, read at %q", len(body), w.Header.Get("Ibwarden-Read-At"))
		}
		return w.StatusCode
	}
	for header, status := range map[string]int{tag: 304, `"x", ` + tag: 304, strings.TrimPrefix(tag, "W/"): 304, "*": 304, `"x"`: 200, `"1"`: 200} {
		if got := none(header); got != status {
			t.Errorf("If-None-Match: %s: %d, want %d", header, got, status)
		}
	}
	s.fresh()
	if none(tag) != 304 {
		t.Error("a fabric that was read again and is the same is another map")
	}
	s.manager.snap.Fabric.Nodes[0].Ports[1].Info.PortState = smp.PortInit
	s.fresh()
	if none(tag) != 200 {
		t.Error("a link that is not active any more leaves the map as it was")
	}
	s.want(200, call{method: "POST", path: "/ports/assign", body: js{"tenant": "red", "ports": []js{{"guid": s.hosts[12]}}}})
	if m, _ := s.mapFor(""); m.Owners[m.Nodes.Owner[slices.Index(m.Nodes.Name, nodeOf(s, s.hosts[12]))]] != "red" {
		t.Error("a port that was given away is not on the map")
	}
	s.api.options.Cabling = &cabled{err: errors.New("no pass is over yet")}
	if m, _ := s.mapFor(""); m.Listed {
		t.Error("there is a list that nobody knows")
	}
}

// endOf is an end port by its GUID.
func endOf(s *stand, guid string) *observed.Port {
	s.Helper()
	for _, p := range s.manager.snap.Fabric.EndPorts() {
		if p.GUID.String() == guid {
			return p
		}
	}
	s.Fatalf("no port %s", guid)
	return nil
}

// partyOf are the GUIDs of the ports of a party, as the matrix has them.
func (s *stand) partyOf(name string) (guids []string) {
	s.Helper()
	for _, row := range s.want(200, call{method: "GET", path: "/matrix/ports?a=" + url.QueryEscape(name) + "&b=" + url.QueryEscape(name)})["rows"].([]any) {
		guids = append(guids, row.(js)["guid"].(string))
	}
	return guids
}

// nodeOf is the name of the node of an end port, nodeGUIDOf its GUID.
func nodeOf(s *stand, guid string) string     { return endOf(s, guid).Node.Description }
func nodeGUIDOf(s *stand, guid string) string { return endOf(s, guid).Node.GUID().String() }
