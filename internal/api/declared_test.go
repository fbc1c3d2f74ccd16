package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestPartitionsOfTheFile: the provider reads the partitions of a policy file, and those of its
// services, in every list in which those of the API are, with the file and the line; nobody else
// reads anything of them, and a write to one names the file.
func TestPartitionsOfTheFile(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.tokens["bound"] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": "provider", "keys": js{"first": "0x0700", "last": "0x0700"}}})["secret"].(string)
	h := s.hosts[8:]
	s.want(201, call{method: "PUT", path: "/partitions/0x0800", body: js{"name": "made"}})
	file := fmt.Sprintf(`version: 1
default: limited
partitions:
  - name: storage
    pkey: 0x0700
    ipoib: true
    members: {full: [%s], limited: [%s]}
  - {name: lab, members: {full: [%s]}}
services:
  - {name: nfs, offered_by: [%s], to: [lab]}
`, h[0], h[1], h[2], h[0])
	s.want(201, call{method: "PUT", path: "/policy", body: js{"name": "site.yaml", "text": file}})
	list := func(as, query string) map[string]js {
		out := map[string]js{}
		for _, x := range items(s.want(200, call{as: as, method: "GET", path: "/partitions" + query})) {
			out[x.(js)["name"].(string)] = x.(js)
		}
		return out
	}
	all := list("", "")
	if len(all) != 4 || all["made"]["file"] != nil {
		t.Fatalf("%v: want made, storage, lab and nfs/lab", all)
	}
	for name, want := range map[string]string{"storage": "site.yaml:4 0x0700 2 <nil> true", "lab": "site.yaml:8 0x0001 1 <nil> false", "nfs/lab": "site.yaml:10 0x0002 2 nfs false"} {
		p := all[name]
		if got := fmt.Sprintf("%v %v %v %v %v", p["file"], p["pkey"], p["members"], p["service"], p["ip_over_ib"]); got != want || p["owner"] != "provider" {
			t.Errorf("%s: %s of %v, want %s", name, got, p["owner"], want)
		}
	}
	if by := list("", "?name=storage"); len(by) != 1 || len(list("", "?owner=red")) != 0 || len(list("", "?owner=provider")) != 4 || len(list("", "?limit=2")) != 2 {
		t.Errorf("by name: %v", by)
	}
	if got := list("bound", ""); len(got) != 1 || got["storage"] == nil {
		t.Errorf("who is bound to 0x0700 sees %v", got)
	}
	one := s.want(200, call{method: "GET", path: "/partitions/0x0700"})
	if one["item"].(js)["file"] != "site.yaml:4" || one["etag"] != "" || one["pkey"] != "0x0700" {
		t.Errorf("%v: want no ETag, and the file", one)
	}
	var members []string
	for _, m := range items(s.want(200, call{method: "GET", path: "/partitions/0x0700/members"})) {
		members = append(members, fmt.Sprint(m.(js)["port"], m.(js)["membership"], m.(js)["state"], m.(js)["owner"]))
	}
	if want := []string{h[0] + "fullmemberprovider", h[1] + "limitedmemberprovider"}; !slices.Equal(members, want) {
		t.Errorf("members %q, want %q", members, want)
	}
	if m := s.want(200, call{method: "GET", path: "/partitions/0x0700/members/" + h[1]}); m["item"].(js)["membership"] != "limited" {
		t.Errorf("%v", m)
	}
	s.want(404, call{method: "GET", path: "/partitions/0x0700/members/" + h[3]})
	for i, want := range []string{"[0x0002 0x0700]", "[0x0700]", "[0x0001 0x0002]", "[]"} {
		if got := fmt.Sprint(s.want(200, call{method: "GET", path: "/ports/" + h[i]})["item"].(js)["partitions"]); got != want {
			t.Errorf("port %d is in %s, want %s", i, got, want)
		}
	}
	for _, c := range []call{
		{method: "PUT", path: "/partitions/0x0700", body: js{"name": "storage"}},
		{method: "PUT", path: "/partitions/0x0700", body: js{"name": "storage"}, header: map[string]string{"If-Match": "*"}},
		{method: "POST", path: "/partitions", body: js{"pkey": "0x0002", "name": "x"}},
		{method: "DELETE", path: "/partitions/0x0001"},
		{method: "PUT", path: "/partitions/0x0700/members", body: joins("full", h[0])},
		{method: "POST", path: "/partitions/0x0700/members", body: joins("full", h[0])},
		{method: "PUT", path: "/partitions/0x0700/members/" + h[0], body: js{"membership": "full"}},
		{method: "DELETE", path: "/partitions/0x0700/members/" + h[0]},
		{method: "POST", path: "/partitions/0x0700/members/" + h[0] + "/refuse"},
	} {
		if got := s.want(409, c); !strings.Contains(got["detail"].(string), "of site.yaml: change it there") {
			t.Errorf("%s %s: %v: want the file named", c.method, c.path, got)
		}
	}
	// A tenant is told of none of it.
	if got := list("red", ""); len(got) != 0 {
		t.Errorf("red sees %v", got)
	}
	for _, path := range []string{"/partitions/0x0700", "/partitions/0x0700/members", "/partitions/0x0700/members/" + h[0]} {
		s.want(404, call{as: "red", method: "GET", path: path})
	}
	s.want(404, call{as: "red", method: "DELETE", path: "/partitions/0x0700"})
	s.want(404, call{as: "bound", method: "GET", path: "/partitions/0x0001"})
}
