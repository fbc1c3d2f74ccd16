package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestTheSameAgainChangesNothing: a write that says what is there already is answered 200, without
// a precondition too, also as a dry run, with the ETag and nothing new; one that says anything else
// is refused as before.
func TestTheSameAgainChangesNothing(t *testing.T) {
	s := newStand(t)
	s.tenants()
	partition := js{"name": "one", "sl": 2, "mtu": 2048, "rate": 100, "ip_over_ib": true, "members": joins("full", s.hosts[0], s.hosts[1])["members"]}
	tenant := js{"keys": js{"first": "0x0100", "last": "0x01ff"}, "quota": js{"partitions": 9}}
	file := js{"name": "p.yaml", "text": "version: 1\ndefault: limited\npartitions:\n  - {name: storage, pkey: 0x0700, members: [{ports: [" + s.hosts[9] + "], as: limited}]}\n"}
	for _, x := range []struct {
		as, path, read, pkey string
		body                 js
		other                map[string]any // each of these is another
	}{
		{"red", "/partitions/0x0100", "/partitions/0x0100", "0x0100", partition,
			js{"name": "two", "sl": 3, "mtu": 4096, "rate": 50, "ip_over_ib": false, "members": []any{}}},
		{"red", "/partitions/0x0100/members", "/partitions/0x0100", "0x0100", js{"members": partition["members"]}, joins("limited", s.hosts[0], s.hosts[1])},
		{"", "/tenants/red", "/tenants/red", "", tenant,
			js{"keys": js{"first": "0x0100", "last": "0x01fe"}, "quota": js{}, "approve_removals": true, "known_ports_only": true}},
		{"", "/policy", "/policy", "", file, js{"text": "version: 1\ndefault: limited\n"}},
	} {
		first := call{as: x.as, method: "PUT", path: x.path, body: x.body, header: map[string]string{"If-Match": "*"}}
		if x.path != "/policy" && s.do(call{as: x.as, method: "GET", path: x.read}).Code == 404 || x.path == "/policy" {
			first.header = nil
		}
		if w := s.do(first); w.Code != 200 && w.Code != 201 {
			t.Fatalf("%s: %d %s", x.path, w.Code, w.Body)
		}
		read := s.want(200, call{as: x.as, method: "GET", path: x.read})
		again := call{as: x.as, method: "PUT", path: x.path, body: x.body}
		for _, path := range []string{x.path, x.path + "?dry_run=true", x.path + "?wait=proved"} {
			again.path = path
			got := s.want(200, again)
			if words := got["words"].([]any); len(words) != 0 || got["revision"] != read["revision"] || got["follow"] != nil || x.pkey != "" && got["pkey"] != x.pkey {
				t.Errorf("%s: %v, want nothing changed at revision %v", path, got, read["revision"])
			}
			if etag := got["etag"]; !strings.Contains(path, "dry_run") && etag != read["etag"] {
				t.Errorf("%s: the ETag is %v, want %v", path, etag, read["etag"])
			}
		}
		again.path = x.path
		for field, v := range x.other {
			changed := js{}
			for k, old := range x.body {
				changed[k] = old
			}
			changed[field] = v
			again.body = changed
			s.want(428, again)
		}
		again.body, again.header = x.body, map[string]string{"If-None-Match": "*"}
		s.want(412, again)
		again.header = map[string]string{"If-Match": `"987654"`}
		s.want(412, again)
	}
	// Who may not change it is not told whether it is the same.
	delete(partition, "members")
	s.want(403, call{as: "blue", method: "PUT", path: "/partitions/0x0100", body: partition})
	s.want(428, call{as: "reader", method: "PUT", path: "/partitions/0x0100", body: partition})
}

// TestPKeyIsAtOnePlace: every answer about one partition has its number as pkey.
func TestPKeyIsAtOnePlace(t *testing.T) {
	s := newStand(t)
	s.tenants()
	const path = "/partitions/0x0100"
	for _, c := range []call{
		{method: "POST", path: "/partitions?dry_run=true", body: js{"name": "one"}},
		{method: "PUT", path: path, body: js{"name": "one"}},
		{method: "PUT", path: path, body: js{"name": "one"}},
		{method: "PUT", path: path + "/members/" + s.hosts[0], body: js{"membership": "full"}},
		{method: "PUT", path: path + "/members/" + s.hosts[0], body: js{"membership": "full"}},
		{method: "POST", path: path + "/members", body: joins("full", s.hosts[0], s.hosts[1])},
		{method: "GET", path: path},
		{method: "GET", path: path + "/members"},
		{method: "GET", path: path + "/members/" + s.hosts[0]},
		{method: "DELETE", path: path + "/members?port=" + s.hosts[1]},
		{method: "DELETE", path: path + "/members/" + s.hosts[0]},
		{method: "DELETE", path: path + "?dry_run=true"},
		{method: "DELETE", path: path},
	} {
		c.as = "red"
		w, answer := s.do(c), js{}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(answer["pkey"]); w.Code/100 != 2 || got != "0x0100" {
			t.Errorf("%s %s: %d, pkey %s in %s", c.method, c.path, w.Code, got, w.Body)
		}
	}
}

// TestAllowIsOneLine: a method that is not there is answered with those that are, in one header.
func TestAllowIsOneLine(t *testing.T) {
	doc, _ := described(t)
	s := newStand(t)
	names := strings.NewReplacer("{pkey}", "0x0100", "{guid}", "0x0000000000000001", "{name}", "red", "{id}", "x", "{port}", "1", "{node}", "1")
	for path := range doc.Paths.Map() {
		at := names.Replace(path)
		there := map[string]bool{} // of every template that the path fits: /ports/assign is also a port's
		for other, item := range doc.Paths.Map() {
			if fits(other, at) {
				for m := range item.Operations() {
					there[m] = true
				}
			}
		}
		there["HEAD"] = there["GET"]
		var want []string
		for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
			if there[m] {
				want = append(want, m)
			}
		}
		w := s.do(call{method: "TRACE", path: at})
		if got := w.Header().Values("Allow"); w.Code != http.StatusMethodNotAllowed || !slices.Equal(got, []string{strings.Join(want, ", ")}) {
			t.Errorf("%s: %d, Allow %q, want %q", at, w.Code, got, want)
		}
	}
}

// fits reports whether a path is one of a template.
func fits(template, path string) bool {
	a, b := strings.Split(template, "/"), strings.Split(path, "/")
	return slices.EqualFunc(a, b, func(x, y string) bool { return x == y || strings.HasPrefix(x, "{") })
}
