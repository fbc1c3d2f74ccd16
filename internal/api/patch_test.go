package api

import (
	"fmt"
	"strings"
	"testing"
)

// TestPatch: a merge patch changes what it names and nothing else, null takes back what was said, and
// a PATCH is held to If-Match, to consent and to owners as other writes are.
func TestPatch(t *testing.T) {
	s := newStand(t)
	s.tenants()
	const path = "/partitions/0x0100"
	s.want(201, call{as: "red", method: "PUT", path: path, body: js{"name": "one", "sl": 2, "mtu": 2048, "rate": 100, "ip_over_ib": true, "labels": js{"a": "1", "b": "2"}, "members": joins("full", s.hosts[0], s.hosts[1])["members"]}})
	patch := func(as, path string, body any, header ...string) call {
		c := call{as: as, method: "PATCH", path: path, body: body, header: map[string]string{"Content-Type": "application/merge-patch+json"}}
		for i := 0; i+1 < len(header); i += 2 {
			c.header[header[i]] = header[i+1]
		}
		return c
	}
	is := func() string {
		p := s.want(200, call{as: "red", method: "GET", path: path})["item"].(js)
		return fmt.Sprintln(p["name"], p["sl"], p["mtu"], p["rate"], p["ip_over_ib"], p["labels"], p["members"])
	}
	for _, x := range []struct{ body, want string }{
		{`{}`, "one 2 2048 100 true map[a:1 b:2] 2"},
		{`{"sl":3}`, "one 3 2048 100 true map[a:1 b:2] 2"},
		{`{"name":"two","labels":{"a":null,"c":"3"}}`, "two 3 2048 100 true map[b:2 c:3] 2"},
		{`{"mtu":null,"rate":null,"ip_over_ib":null}`, "two 3 <nil> <nil> false map[b:2 c:3] 2"},
		{`{"sl":null,"labels":null}`, "two 0 <nil> <nil> false <nil> 2"},
	} {
		out := s.want(200, patch("red", path, x.body))
		if got := strings.TrimSpace(is()); got != x.want || out["pkey"] != "0x0100" || out["etag"] == "" {
			t.Errorf("%s: %s of %v, want %s", x.body, got, out, x.want)
		}
	}
	if out := s.want(200, patch("red", path, `{"name":"two"}`)); len(out["words"].([]any)) != 0 || out["etag"] == "" {
		t.Errorf("a patch that changes nothing: %v", out)
	}
	s.want(200, patch("red", path, `{"members":null}`)) // says nothing of them, as a PUT without
	etag := s.want(200, call{as: "red", method: "GET", path: path})["etag"].(string)
	s.want(412, patch("red", path, `{"sl":1}`, "If-Match", `"99999"`))
	s.want(200, patch("red", path, `{"sl":1}`, "If-Match", etag))
	s.want(412, patch("red", path, `{"sl":2}`, "If-Match", etag))
	// A list of members is replaced by who has seen it, and nobody comes back unseen.
	s.want(428, patch("red", path, js{"members": joins("full", s.hosts[0])["members"]}))
	s.want(200, patch("red", path, js{"members": joins("full", s.hosts[0])["members"]}, "If-Match", "*"))
	s.want(428, patch("red", path, js{"members": joins("full", s.hosts[0], s.hosts[1])["members"]}, "If-Match", "*"))
	s.want(200, patch("red", path, js{"members": []any{}}, "If-Match", "*"))
	if got := strings.TrimSpace(is()); got != "two 1 <nil> <nil> false <nil> 0" {
		t.Errorf("at last %s", got)
	}
	for _, x := range []struct {
		status int
		call
	}{
		{422, patch("red", path, `{"name":null}`)}, {422, patch("red", path, `{"owner":"blue"}`)}, {422, patch("red", path, `{"sl":16}`)}, {422, patch("red", path, `[]`)}, {422, patch("red", path, `null`)},
		{422, patch("red", path, `{"labels":{"a b":"c"}}`)}, {400, patch("red", path, `{"sl":1,"sl":2}`)}, {400, patch("red", path, `{"SL":1}`)},
		{404, patch("blue", path, `{"sl":1}`)}, {404, patch("red", "/partitions/0x0177", `{"sl":1}`)}, {403, patch("reader", path, `{"sl":1}`)},
		{403, patch("red", "/tenants/red", `{"quota":{"partitions":3}}`)}, {404, patch("", "/tenants/none", `{"quota":{"partitions":3}}`)},
	} {
		if w := s.do(x.call); w.Code != x.status && !(x.status == 400 && w.Code == 422) {
			t.Errorf("%s %v as %q: %d %s, want %d", x.path, x.body, x.as, w.Code, w.Body, x.status)
		}
	}
	// Who has a port in it neither changes it nor learns its labels.
	s.want(200, patch("red", path, `{"labels":{"secret":"word"}}`))
	s.want(200, call{as: "red", method: "PUT", path: path + "/members/" + s.hosts[4], body: js{"membership": "limited"}})
	if w := s.do(patch("blue", path, `{"sl":1}`)); w.Code != 403 || strings.Contains(w.Body.String(), "word") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.want(200, patch("", "/tenants/blue", `{"quota":{"partitions":3},"labels":{"x":"y"}}`))
	s.want(200, patch("", "/tenants/blue", `{"quota":{"members":5},"approve_removals":true}`))
	x := s.want(200, call{method: "GET", path: "/tenants/blue"})["item"].(js)
	if got := fmt.Sprint(x["keys"], x["quota"], x["approve_removals"], x["labels"]); got != "map[first:0x0200 last:0x02ff] map[members:5 partitions:3] true map[x:y]" {
		t.Errorf("tenant blue: %s", got)
	}
	s.want(200, patch("", "/tenants/blue", `{"quota":null,"labels":{"x":null},"approve_removals":null}`))
	s.want(422, patch("", "/tenants/blue", `{"keys":{"last":"0x01ff"}}`))
}
