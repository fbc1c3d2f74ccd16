package api

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// names are those of the items of a list.
func (s *stand) names(as, path string) (out []string) {
	for _, x := range items(s.want(200, call{as: as, method: "GET", path: path})) {
		out = append(out, x.(js)["name"].(string))
	}
	return out
}

// TestLabels: the owner of a partition and the provider set its labels and choose by them; who has only
// a port in it neither sees them nor finds them out by choosing; and nothing is decided by them.
func TestLabels(t *testing.T) {
	s := newStand(t)
	s.tenants()
	const path = "/partitions/0x0100"
	policy := func() (text string) {
		s.service.Read(func(r *resource.State) { text = string(policyfile.WriteYAML(r.Policy())) })
		return text
	}
	s.want(201, call{as: "red", method: "PUT", path: path, body: js{"name": "one", "labels": js{"env": "prod", "team": "ml"}, "members": joins("full", s.hosts[0])["members"]}})
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0101", body: js{"name": "two", "labels": js{"env": "test"}}})
	s.want(200, call{as: "red", method: "PUT", path: path + "/members/" + s.hosts[4], body: js{"membership": "limited"}})
	s.want(200, call{as: "blue", method: "PUT", path: path + "/members/" + s.hosts[4], body: js{"membership": "limited"}})
	s.want(200, call{method: "PUT", path: "/tenants/blue", body: js{"keys": js{"first": "0x0200", "last": "0x02ff"}, "labels": js{"tier": "gold"}}, header: map[string]string{"If-Match": "*"}})
	for _, x := range []struct{ as, query, want string }{
		{"red", "env=prod", "[one]"}, {"red", "env", "[one two]"}, {"red", "env in (prod, test),team", "[one]"}, {"", "env!=prod", "[two]"}, {"", "!env", "[]"}, {"reader", "team=ml", "[one]"},
		{"blue", "env=prod", "[]"}, {"blue", "env", "[]"}, {"blue", "!env", "[one]"}, {"blue", "env!=prod", "[one]"},
	} {
		q := "/partitions?selector=" + url.QueryEscape(x.query)
		if got := fmt.Sprint(s.names(x.as, q)); got != x.want {
			t.Errorf("%s as %q: %s, want %s", x.query, x.as, got, x.want)
		}
	}
	if got := s.names("", "/tenants?selector=tier%3Dgold"); !slices.Equal(got, []string{"blue"}) || len(s.names("red", "/tenants?selector=tier")) != 0 {
		t.Errorf("tenants %q", got)
	}
	seen := func(as string) any {
		return s.want(200, call{as: as, method: "GET", path: path})["item"].(js)["labels"]
	}
	for as, want := range map[string]string{"red": "map[env:prod team:ml]", "": "map[env:prod team:ml]", "blue": "<nil>"} {
		if got := fmt.Sprint(seen(as)); got != want {
			t.Errorf("%q sees the labels %s, want %s", as, got, want)
		}
	}
	for _, q := range []string{"env%3D%3D%3Dx", "a%20b", "env%20in"} {
		s.want(422, call{method: "GET", path: "/partitions?selector=" + q})
	}
	for _, bad := range []js{{"a b": "c"}, {"a": "b,c"}, {"": "x"}} {
		s.want(422, call{as: "red", method: "POST", path: "/partitions", body: js{"name": "bad", "labels": bad}})
		s.want(422, call{method: "PUT", path: "/tenants/green", body: js{"labels": bad}})
	}
	// What says nothing of them leaves them; an empty object takes them all.
	before := policy()
	match := map[string]string{"If-Match": "*"}
	s.want(200, call{as: "red", method: "PUT", path: path, body: js{"name": "one"}})
	if got := fmt.Sprint(seen("red")); got != "map[env:prod team:ml]" {
		t.Errorf("after a PUT without labels: %s", got)
	}
	s.want(200, call{as: "red", method: "PUT", path: path, body: js{"name": "one", "labels": js{}}, header: match})
	if got := fmt.Sprint(seen("red")); got != "<nil>" || policy() != before {
		t.Errorf("after a PUT of none: %s; or the policy is another", got)
	}
	s.want(403, call{as: "blue", method: "PUT", path: path, body: js{"name": "one", "labels": js{"x": "y"}}, header: match})
	s.want(403, call{as: "blue", method: "PUT", path: "/tenants/blue", body: js{"labels": js{"tier": "gold"}}, header: match})
}
