package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// holds gives a host of a stand these keys, and the switch port before it the full ones.
func (s *stand) holds(host string, keys ...ib.PKey) *observed.Port {
	s.Helper()
	for _, p := range s.manager.snap.Fabric.EndPorts() {
		if p.GUID.String() == host {
			guard := slices.Clone(keys)
			for i := range guard {
				guard[i] |= 0x8000
			}
			subnettest.SetPKeys(p, keys...)
			subnettest.SetPKeys(p.Peer, guard...)
			return p
		}
	}
	s.Fatalf("no host %s", host)
	return nil
}

// members makes a tenant's partition with these ports, to which everybody agrees.
func (s *stand) members(tenant, pkey, name string, hosts ...string) {
	s.Helper()
	s.want(201, call{as: tenant, method: "PUT", path: "/partitions/" + pkey, body: js{"name": name}})
	for _, h := range hosts {
		for _, as := range []string{tenant, "red", "blue", "provider"} {
			s.do(call{as: as, method: "PUT", path: "/partitions/" + pkey + "/members/" + h, body: js{"membership": "full"}})
		}
	}
}

func (s *stand) why(status int, as, from, to string) map[string]any {
	s.Helper()
	out := s.want(status, call{as: as, method: "GET", path: "/why?from=" + from + "&to=" + to})
	if status != 200 {
		return out
	}
	return out["item"].(map[string]any)
}

// What a tenant is told of two ports is about partitions that it sees, and nothing of what
// lies between; the provider is told everything.
func TestWhyAsWhom(t *testing.T) {
	s := newStand(t)
	s.tenants()
	mine, theirs, hidden := s.hosts[0], s.hosts[4], s.hosts[5]
	s.members("red", "0x0100", "red-net", mine, theirs)
	s.members("blue", "0x0200", "blue-net", theirs, hidden)
	s.holds(mine, 0x7fff, 0x8100, 0x8200) // the last by mistake
	s.holds(theirs, 0x7fff, 0x8100, 0x8200)
	s.holds(hidden, 0x7fff, 0x8200)

	a := s.why(200, "", mine, theirs)
	text, _ := json.Marshal(a)
	if a["cause"] != "talk" || !strings.Contains(string(text), "blue-net") || !strings.Contains(string(text), `"hops":[{`) {
		t.Errorf("the provider is told %s", text)
	}
	a = s.why(200, "red", mine, theirs)
	text, _ = json.Marshal(a)
	if a["cause"] != "talk" || !strings.Contains(a["sentence"].(string), "red-net") {
		t.Errorf("red is told %s", text)
	}
	for _, secret := range []string{"0x0200", "0x8200", "blue-net", "leaf", "spine", `"hops":[{`, "inbound", "reason"} {
		if strings.Contains(strings.ToLower(string(text)), secret) {
			t.Errorf("red is told of %q: %s", secret, text)
		}
	}
	// Of a port that it may not ask about a tenant hears what it hears of one that is none.
	none := "0x00000000deadbeef"
	for _, ends := range [][2]string{{mine, hidden}, {hidden, mine}} {
		got := s.do(call{as: "red", method: "GET", path: "/why?from=" + ends[0] + "&to=" + ends[1]})
		want := s.do(call{as: "red", method: "GET", path: "/why?from=" + strings.ReplaceAll(ends[0], hidden, none) + "&to=" + strings.ReplaceAll(ends[1], hidden, none)})
		if got.Code != 404 || strings.ReplaceAll(got.Body.String(), hidden, none) != want.Body.String() {
			t.Errorf("%d %s, want %s", got.Code, got.Body, want.Body)
		}
	}
	// A guard that refuses is the provider's business.
	s.holds(theirs, 0x7fff, 0x8100)
	for _, p := range s.manager.snap.Fabric.EndPorts() {
		if p.GUID.String() == theirs {
			subnettest.SetPKeys(p.Peer, 0x7fff)
		}
	}
	if a := s.why(200, "", mine, theirs); a["cause"] != "stopped" || !strings.Contains(a["sentence"].(string), "P_Key") {
		t.Errorf("%v", a)
	}
	a = s.why(200, "red", mine, theirs)
	if text, _ := json.Marshal(a); a["cause"] != "stopped" || !strings.Contains(string(text), "ask the provider") || strings.Contains(string(text), "no entry matches") {
		t.Errorf("%s", text)
	}
	s.why(422, "", mine, mine)
	s.want(422, call{method: "GET", path: "/why?from=" + mine})
	s.want(422, call{method: "GET", path: "/why?from=" + mine + "&to=" + theirs + "&sl=16"})
}

// Peers are the ports whose keys match; a tenant sees those that it may ask about.
func TestPeersAsWhom(t *testing.T) {
	s := newStand(t)
	s.tenants()
	for _, h := range s.hosts {
		s.holds(h, 0x7fff)
	}
	mine, theirs, hidden := s.hosts[0], s.hosts[4], s.hosts[5]
	s.members("red", "0x0100", "red-net", mine, s.hosts[1], theirs)
	s.members("blue", "0x0200", "blue-net", theirs, hidden)
	s.holds(mine, 0x7fff, 0x8100, 0x8200)
	s.holds(s.hosts[1], 0x7fff, 0x0100)
	s.holds(theirs, 0x7fff, 0x8100, 0x8200)
	s.holds(hidden, 0xffff, 0x8200)
	peers := func(as string) map[string][]string {
		out := map[string][]string{}
		for _, x := range s.want(200, call{as: as, method: "GET", path: "/peers?port=" + mine})["items"].([]any) {
			p := x.(map[string]any)
			for _, o := range p["over"].([]any) {
				out[p["guid"].(string)] = append(out[p["guid"].(string)], o.(map[string]any)["pkey"].(string))
			}
			if p["talks"] != true {
				t.Errorf("%s: %v does not talk", as, p)
			}
		}
		return out
	}
	if got := peers("red"); len(got) != 2 || !slices.Equal(got[s.hosts[1]], []string{"0x0100"}) || !slices.Equal(got[theirs], []string{"0x0100"}) {
		t.Errorf("red: %v", got)
	}
	got := peers("provider")
	if !slices.Equal(got[theirs], []string{"0x0100", "0x0200"}) || !slices.Equal(got[hidden], []string{"0x0200", "0x7fff"}) {
		t.Errorf("provider: %v", got)
	}
	s.want(404, call{as: "blue", method: "GET", path: "/peers?port=" + mine})
	s.want(404, call{as: "red", method: "GET", path: "/peers?port=" + hidden})
}

// To ask for a port opens nothing of it, whosever it is: only what its owner agreed to does, and
// only until one of the two ends it.
func TestAnInvitationOpensNothing(t *testing.T) {
	s := newStand(t)
	s.tenants()
	for _, h := range s.hosts {
		s.holds(h, 0x7fff)
	}
	s.members("red", "0x0100", "red-net", s.hosts[0])
	s.holds(s.hosts[0], 0xffff, 0x8100) // a key of the default partition that talks with all
	foreign := []string{s.hosts[4], s.hosts[5], s.hosts[12], s.manager.snap.Fabric.Switches()[0].Ports[0].GUID.String()}
	unseen := func(step string) {
		t.Helper()
		for i, g := range foreign {
			for _, path := range []string{"/why?from=" + s.hosts[0] + "&to=" + g, "/why?from=" + g + "&to=" + foreign[(i+1)%len(foreign)], "/peers?port=" + g} {
				if w := s.do(call{as: "red", method: "GET", path: path}); w.Code != 404 {
					t.Errorf("%s: %s: %d %s", step, path, w.Code, w.Body)
				}
			}
			for _, path := range []string{"/peers?port=" + s.hosts[0], "/matrix"} {
				if body := s.do(call{as: "red", method: "GET", path: path}).Body.String(); strings.Contains(body, g) {
					t.Errorf("%s: %s tells of %s: %s", step, path, g, body)
				}
			}
		}
	}
	unseen("at first")
	for _, g := range foreign {
		s.want(200, call{as: "red", method: "PUT", path: "/partitions/0x0100/members/" + g, body: js{"membership": "full"}})
	}
	unseen("invited")
	for _, g := range foreign {
		for _, as := range []string{"blue", "provider"} {
			s.do(call{as: as, method: "PUT", path: "/partitions/0x0100/members/" + g, body: js{"membership": "full"}})
		}
	}
	for _, g := range foreign {
		s.want(200, call{as: "red", method: "GET", path: "/why?from=" + s.hosts[0] + "&to=" + g})
	}
	for _, g := range foreign {
		s.want(200, call{as: "red", method: "DELETE", path: "/partitions/0x0100/members/" + g})
	}
	unseen("ended")
}
