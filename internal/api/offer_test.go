package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// offering is a stand where red's first port is in partitions of red, of blue and of green; its last is in none.
func offering(t *testing.T) *stand {
	s := newStand(t)
	s.tenants()
	s.want(201, call{method: "PUT", path: "/tenants/green", body: js{"keys": js{"first": "0x0300", "last": "0x03ff"}}})
	s.tokens["green"] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": "green"}})["secret"].(string)
	for k, who := range map[string]string{"0x0100": "red", "0x0200": "blue", "0x0300": "green"} {
		s.want(201, call{as: who, method: "PUT", path: "/partitions/" + k, body: js{"name": who + "-lab"}})
		for _, as := range []string{who, "red"} {
			s.want(200, call{as: as, method: "PUT", path: "/partitions/" + k + "/members/" + s.hosts[0], body: js{"membership": "full"}})
		}
	}
	return s
}

// offer offers ports of red, and returns the ID.
func (s *stand) offer(to string, ports ...string) string {
	s.Helper()
	made := s.want(202, call{as: "red", method: "POST", path: "/ports/offer", body: js{"tenant": to, "ports": ports}, header: map[string]string{"Why": "red's reason"}})
	if made["outcome"] != nil {
		s.Errorf("an offer has an outcome: %v", made)
	}
	return made["approval"].(string)
}

// all is everything that a caller can read of offers: what waits, the history with every revision, and events.
func (s *stand) all(as string) string {
	s.Helper()
	var out strings.Builder
	for _, path := range []string{"/approvals", "/revisions?limit=500", "/events?kept=true"} {
		out.Write(s.do(call{as: as, method: "GET", path: path}).Body.Bytes())
	}
	for _, line := range strings.Split(s.do(call{as: as, method: "GET", path: "/revisions?limit=500"}).Body.String(), "\n") {
		var r struct{ Revision uint64 }
		if json.Unmarshal([]byte(line), &r) == nil && r.Revision > 0 {
			out.Write(s.do(call{as: as, method: "GET", path: fmt.Sprint("/revisions/", r.Revision)}).Body.Bytes())
		}
	}
	return out.String()
}

// TestOfferedPortsMove: AU-10 one tenant offers, the other tries it, takes it into a partition, and asks again: it is told
// its own part each time, and neither reads in the history who of the other did what, or of third tenants.
func TestOfferedPortsMove(t *testing.T) {
	s := offering(t)
	s.manager.lost = 17
	red, blue := s.idOf("red"), s.idOf("blue")
	id := s.offer("blue", s.hosts[0])
	s.want(404, call{as: "green", method: "POST", path: "/approvals/" + id + "/approve"})
	s.want(404, call{as: "green", method: "POST", path: "/approvals/" + id + "/reject"})
	s.want(403, call{as: "red", method: "POST", path: "/approvals/" + id + "/approve"})
	never := map[string][]string{
		"blue":  {red, "red's reason", "red-lab", "0x0100", "green", "0x0300"},
		"red":   {blue, "blue's reason", `"limited"`},
		"green": {red, blue, "blue-lab", "0x0200", "red-lab", "0x0100", id},
	}
	read := func() {
		for as, list := range never {
			told := s.all(as)
			for _, x := range list {
				if strings.Contains(told, x) {
					t.Errorf("%s reads %q in\n%s", as, x, told)
				}
			}
		}
	}
	read()
	into := js{"into": []js{{"pkey": "0x0200", "membership": "limited"}}}
	foreign := js{"into": []js{{"pkey": "0x0300", "membership": "full"}}}
	none := js{"into": []js{{"pkey": "0x02aa", "membership": "full"}}}
	path := "/approvals/" + id + "/approve"
	a, b := s.do(call{as: "blue", method: "POST", path: path, body: foreign}), s.do(call{as: "blue", method: "POST", path: path, body: none})
	if a.Code != 404 || strings.ReplaceAll(a.Body.String(), "0x0300", "") != strings.ReplaceAll(b.Body.String(), "0x02aa", "") {
		t.Errorf("into a partition of green: %s, into none: %s", a.Body, b.Body)
	}
	tried := s.want(200, call{as: "blue", method: "POST", path: path + "?dry_run=true", body: into})
	if plan := fmt.Sprint(tried["plan"]); plan != "map[changes:true gained:0 lost:0 ports:0 read_back:0 set:0]" {
		t.Errorf("blue's plan is %s", plan)
	}
	if plan := fmt.Sprint(s.want(200, call{method: "POST", path: path + "?dry_run=true"})["plan"]); !strings.Contains(plan, "lost:17") {
		t.Errorf("the provider's plan is %s", plan)
	}
	accept := call{as: "blue", method: "POST", path: path, body: into, header: map[string]string{"Idempotency-Key": "take", "Why": "blue's reason"}}
	first, again := s.want(200, accept), s.want(200, accept)
	if again["repeated"] != true {
		t.Errorf("%v", again)
	}
	for _, x := range []js{tried, first, again} {
		words := fmt.Sprint(x["words"])
		for _, want := range []string{"is tenant blue's", `is a limited member of 0x0200 "blue-lab"`, "tenant blue accepts what tenant red offered"} {
			if !strings.Contains(words, want) {
				t.Errorf("%q is not in %s", want, words)
			}
		}
		for _, never := range []string{"0x0100", "red-lab", "0x0300", "green"} {
			if strings.Contains(words, never) {
				t.Errorf("blue is told of %q: %s", never, words)
			}
		}
	}
	delete(accept.header, "Idempotency-Key")
	s.want(404, accept)
	read()
	port := s.want(200, call{as: "blue", method: "GET", path: "/ports/" + s.hosts[0]})["item"].(js)
	if port["owner"] != "blue" || fmt.Sprint(port["partitions"]) != "[0x0200]" {
		t.Errorf("%v", port)
	}
	s.want(404, call{as: "red", method: "GET", path: "/ports/" + s.hosts[0]})
	// Taken back by the provider, it cannot be accepted again.
	last := s.want(200, call{method: "GET", path: "/revisions?limit=1"})["items"].([]any)[0].(js)["revision"].(float64)
	s.want(200, call{method: "POST", path: "/rollback", body: js{"to": last - 1, "owners": true}})
	s.want(200, call{as: "red", method: "GET", path: "/ports/" + s.hosts[0]})
	s.want(404, accept)
}

// TestOffersTellNothingOfTenants: AU-10 the answers to an offer, and all that its maker reads afterwards, are the same whether
// there is such a tenant or not; also when it is deleted.
func TestOffersTellNothingOfTenants(t *testing.T) {
	s := offering(t)
	answers := func(to string) (out []string) {
		for _, c := range []call{
			{method: "POST", path: "/ports/offer?dry_run=true", body: js{"tenant": to, "ports": []string{s.hosts[3]}}},
			{method: "POST", path: "/ports/offer", body: js{"tenant": to, "ports": []string{s.hosts[3]}}},
			{method: "GET", path: "/approvals"}, {method: "GET", path: "/revisions?limit=1"}, {method: "GET", path: "/status"},
		} {
			c.as = "red"
			w := s.do(c)
			var body map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err, w.Body)
			}
			if id, is := body["approval"].(string); is {
				defer s.want(200, call{as: "red", method: "POST", path: "/approvals/" + id + "/reject"})
			}
			out = append(out, fmt.Sprint(w.Code, shapeOf(body, to)))
		}
		return out
	}
	there, none := answers("blue"), answers("grey")
	if !slices.Equal(there, none) {
		t.Errorf("to a tenant that is there:\n%s\nto one that is not:\n%s", strings.Join(there, "\n"), strings.Join(none, "\n"))
	}
	// A port of blue, one of nobody, and one that is not there.
	var refused []string
	for _, g := range []string{s.hosts[4], s.hosts[9], "0x00000000000f0001"} {
		w := s.do(call{as: "red", method: "POST", path: "/ports/offer", body: js{"tenant": "green", "ports": []string{g}}})
		refused = append(refused, strings.ReplaceAll(fmt.Sprint(w.Code, w.Body), g, "GUID"))
	}
	if len(slices.Compact(refused)) != 1 || !strings.HasPrefix(refused[0], "404") {
		t.Errorf("%v", refused)
	}
	// The provider deletes blue, or ends the offer: the same for red.
	ended := func(to string, end func(id string)) string {
		end(s.offer(to, s.hosts[3]))
		if list := s.want(200, call{as: "red", method: "GET", path: "/approvals"})["items"].([]any); len(list) != 0 {
			t.Errorf("%v", list)
		}
		return fmt.Sprint(shapeOf(s.want(200, call{as: "red", method: "GET", path: "/revisions?limit=1"}), to))
	}
	s.want(201, call{method: "PUT", path: "/tenants/empty", body: js{}})
	gone := ended("empty", func(string) { s.want(200, call{method: "DELETE", path: "/tenants/empty"}) })
	rejected := ended("grey", func(id string) { s.want(200, call{method: "POST", path: "/approvals/" + id + "/reject"}) })
	if gone != rejected {
		t.Errorf("a tenant was deleted: %s\nan offer was rejected: %s", gone, rejected)
	}
}

// shapeOf is an answer without what differs each time: IDs, times, revisions, and the name of a tenant.
func shapeOf(x any, tenant string) any {
	switch x := x.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range x {
			switch k {
			case "id", "approval", "at", "expires", "revision", "changed", "follow", "seconds", "next", "read_at", "uptime", "started":
				out[k] = "-"
			default:
				out[k] = shapeOf(v, tenant)
			}
		}
		return out
	case []any:
		var out []any
		for _, v := range x {
			out = append(out, shapeOf(v, tenant))
		}
		return out
	case string:
		if strings.HasPrefix(x, "approval/") {
			return "approval/ID" + x[strings.IndexByte(x+" ", ' '):]
		}
		return strings.ReplaceAll(x, tenant, "TENANT")
	}
	return x
}
