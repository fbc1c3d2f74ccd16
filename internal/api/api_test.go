package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// joins is a body that makes ports members.
func joins(membership string, ports ...string) js {
	var list []js
	for _, g := range ports {
		list = append(list, js{"port": g, "membership": membership})
	}
	return js{"members": list}
}

func items(answer map[string]any) []any { return answer["items"].([]any) }

func TestAPartitionWithMembers(t *testing.T) {
	s := newStand(t)
	s.tenants()
	made := s.want(201, call{as: "red", method: "POST", path: "/partitions", body: js{"name": "training"}})
	if made["pkey"] != "0x0100" {
		t.Fatalf("%v: want the first key of the tenant", made)
	}
	s.want(200, call{as: "red", method: "POST", path: "/partitions/0x0100/members", body: joins("full", s.hosts[0], s.hosts[1])})
	got := s.want(200, call{as: "red", method: "GET", path: "/partitions/0x0100/members"})
	if list := items(got); len(list) != 2 || list[0].(js)["state"] != "member" {
		t.Fatalf("%v", got)
	}
	// A port of another waits for the consent of its owner, and then has it.
	s.want(200, call{as: "red", method: "PUT", path: "/partitions/0x0100/members/" + s.hosts[4], body: js{"membership": "full"}})
	if m := s.want(200, call{as: "red", method: "GET", path: "/partitions/0x0100/members/" + s.hosts[4]}); m["item"].(js)["state"] != "waiting" || m["item"].(js)["owner"] != nil {
		t.Errorf("%v: want it waiting, and its owner not named", m)
	}
	s.want(200, call{as: "blue", method: "PUT", path: "/partitions/0x0100/members/" + s.hosts[4], body: js{"membership": "full"}})
	if m := s.want(200, call{as: "blue", method: "GET", path: "/partitions/0x0100/members"}); len(items(m)) != 1 || items(m)[0].(js)["state"] != "member" {
		t.Errorf("blue sees %v: want its own port alone, a member", m)
	}
}

// TestForeignIsAbsent: the answer about a foreign object is that about none.
func TestForeignIsAbsent(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0123", body: js{"name": "secret"}})
	s.want(200, call{as: "red", method: "PUT", path: "/partitions/0x0123/members/" + s.hosts[0], body: js{"membership": "full"}})
	revision := fmt.Sprint(s.want(200, call{as: "red", method: "GET", path: "/partitions/0x0123"})["revision"])
	token := items(s.want(200, call{as: "red", method: "GET", path: "/tokens"}))[0].(js)["id"].(string)
	for _, c := range []struct {
		method, foreign, absent string
		body                    any
	}{
		{"GET", "/partitions/0x0123", "/partitions/0x0124", nil},
		{"DELETE", "/partitions/0x0123", "/partitions/0x0124", nil},
		{"PUT", "/partitions/0x0123", "/partitions/0x0124", js{"name": "x"}},
		{"GET", "/partitions/0x0123/members", "/partitions/0x0124/members", nil},
		{"POST", "/partitions/0x0123/members", "/partitions/0x0124/members", joins("full", s.hosts[4])},
		{"PUT", "/partitions/0x0123/members", "/partitions/0x0124/members", joins("full", s.hosts[4])},
		{"PUT", "/partitions/0x0123/members/" + s.hosts[4], "/partitions/0x0124/members/" + s.hosts[4], js{"membership": "full"}},
		{"GET", "/partitions/0x0123/members/" + s.hosts[0], "/partitions/0x0124/members/" + s.hosts[0], nil},
		{"DELETE", "/partitions/0x0123/members/" + s.hosts[0], "/partitions/0x0124/members/" + s.hosts[0], nil},
		{"GET", "/ports/" + s.hosts[0], "/ports/0x00000000deadbeef", nil},
		{"GET", "/tenants/red", "/tenants/rod", nil},
		{"PUT", "/tenants/red", "/tenants/rod", js{}},
		{"DELETE", "/tokens/" + token, "/tokens/tok-000000000000", nil},
		{"GET", "/revisions/" + revision, "/revisions/99999", nil},
	} {
		for _, condition := range []string{"", "*", `"1"`, `"` + revision + `"`} {
			header := map[string]string{}
			if condition != "" && c.method != "GET" {
				header["If-Match"] = condition
			}
			f := s.do(call{as: "blue", method: c.method, path: c.foreign, body: c.body, header: header})
			a := s.do(call{as: "blue", method: c.method, path: c.absent, body: c.body, header: header})
			replace := strings.NewReplacer("0x0123", "K", "0x0124", "K", s.hosts[0], "G", "0x00000000deadbeef", "G", token, "T", "tok-000000000000", "T",
				"tenant red", "N", "tenant rod", "N", `red`, "N", `rod`, "N")
			if f.Code != a.Code || replace.Replace(f.Body.String()) != replace.Replace(a.Body.String()) || f.Header().Get("ETag") != a.Header().Get("ETag") {
				t.Errorf("%s %s If-Match %s: %d %s; absent: %d %s", c.method, c.foreign, condition, f.Code, f.Body, a.Code, a.Body)
			}
		}
	}
}

// TestIfMatchCountsOnEveryWrite: also where a write is of several objects, or of one that
// has no ETag of its own, a condition that does not hold refuses it, and one that holds
// does not.
func TestIfMatchCountsOnEveryWrite(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.want(200, call{method: "POST", path: "/ports/release", body: js{"ports": []string{s.hosts[0]}}})
	guid := js{"guid": s.hosts[0]}
	tag := func() string { return s.want(200, call{method: "GET", path: "/ports/" + s.hosts[0]})["etag"].(string) }
	pool := js{"tenant": "red", "first": "0x0000000000f00000", "last": "0x0000000000f0ffff"}
	token := items(s.want(200, call{as: "red", method: "GET", path: "/tokens"}))[0].(js)["id"].(string)
	last := func() string {
		return fmt.Sprintf(`"%.0f"`, s.want(200, call{method: "GET", path: "/tenants"})["revision"])
	}
	for _, c := range []struct {
		call
		holds func() string // nil where none can
	}{
		{call{method: "POST", path: "/ports/assign", body: js{"tenant": "red", "ports": []js{guid}}}, tag},
		{call{method: "POST", path: "/ports/release", body: js{"ports": []string{s.hosts[0]}}}, tag},
		{call{method: "POST", path: "/pools", body: pool}, nil},
		{call{method: "POST", path: "/tokens", body: js{"tenant": "red"}}, nil},
		{call{method: "DELETE", path: "/tokens/" + token}, func() string { return "*" }},
		{call{method: "POST", path: "/rollback", body: js{"to": 1}}, last},
	} {
		for _, stale := range []string{`"99"`, `W/"1"`} {
			c.header = map[string]string{"If-Match": stale}
			s.want(412, c.call)
		}
		if c.holds == nil {
			c.header = map[string]string{"If-Match": "*"}
			s.want(412, c.call) // there is nothing yet
			continue
		}
		c.header = map[string]string{"If-Match": c.holds()}
		if w := s.do(c.call); w.Code != 200 {
			t.Errorf("%s %s If-Match %s: %d %s", c.method, c.path, c.holds(), w.Code, w.Body)
		}
	}
	s.want(200, call{method: "POST", path: "/pools", body: pool})
	s.want(412, call{method: "DELETE", path: "/pools/0x0000000000f00000", header: map[string]string{"If-Match": `"99"`}})
	s.want(200, call{method: "DELETE", path: "/pools/0x0000000000f00000", header: map[string]string{"If-Match": "*"}})
}

// TestStaleWriterLoses: with If-Match a write is done only to what its caller has seen.
func TestStaleWriterLoses(t *testing.T) {
	s := newStand(t)
	s.tenants()
	first := s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}})["etag"].(string)
	second := s.want(200, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "two"}, header: map[string]string{"If-Match": first}})["etag"].(string)
	if first == second {
		t.Fatalf("the ETag is %s before and after", first)
	}
	stale := map[string]string{"If-Match": first}
	for _, c := range []call{
		{method: "PUT", path: "/partitions/0x0100", body: js{"name": "three"}},
		{method: "DELETE", path: "/partitions/0x0100"},
		{method: "POST", path: "/partitions/0x0100/members", body: joins("full", s.hosts[0])},
		{method: "PUT", path: "/partitions/0x0100/members", body: joins("full", s.hosts[0])},
		{method: "PUT", path: "/partitions/0x0100/members/" + s.hosts[0], body: js{"membership": "full"}},
		{method: "DELETE", path: "/partitions/0x0100/members/" + s.hosts[0]},
	} {
		c.as, c.header = "red", stale
		s.want(412, c)
		for _, tag := range []string{`"18446744073709551615"`, `"999"`, `"x"`, `W/` + second} {
			c.header = map[string]string{"If-Match": tag}
			s.want(412, c)
		}
		c.header = map[string]string{"If-Match": "1"}
		s.want(400, c)
	}
	// What replaces needs to say what it replaces.
	s.want(428, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "three"}})
	s.want(428, call{as: "red", method: "PUT", path: "/partitions/0x0100/members", body: joins("full", s.hosts[0])})
	s.want(412, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "three"}, header: map[string]string{"If-None-Match": "*"}})
	s.want(428, call{method: "PUT", path: "/tenants/red", body: js{}})
	if w := s.do(call{as: "red", method: "GET", path: "/partitions/0x0100", header: map[string]string{"If-None-Match": second}}); w.Code != 304 || w.Body.Len() > 0 || w.Header().Get("ETag") != second {
		t.Errorf("%d %s %q: want 304 with the ETag and no body", w.Code, w.Body, w.Header().Get("ETag"))
	}
}

// TestRemovedDoesNotReturnUnseen: a late or repeated write does not bring back a member
// that was removed since.
func TestRemovedDoesNotReturnUnseen(t *testing.T) {
	s := newStand(t)
	s.tenants()
	g := s.hosts[0]
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}})
	add := call{as: "red", method: "PUT", path: "/partitions/0x0100/members/" + g, body: js{"membership": "full"}}
	before := s.want(200, add)["etag"].(string)
	s.want(200, call{as: "red", method: "DELETE", path: "/partitions/0x0100/members/" + g})
	late := []call{
		add,
		{as: "red", method: "POST", path: "/partitions/0x0100/members", body: joins("full", s.hosts[1], g)},
		{as: "red", method: "POST", path: "/partitions/0x0100/members", body: joins("full", g), header: map[string]string{"If-Match": "*"}},
	}
	for _, c := range late {
		s.want(428, c)
	}
	add.header = map[string]string{"If-Match": before}
	s.want(412, add)
	// Nor when the partition was deleted meanwhile.
	s.want(200, call{as: "red", method: "DELETE", path: "/partitions/0x0100"})
	s.want(428, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one", "members": joins("full", g)["members"]}})
	s.want(428, call{as: "red", method: "POST", path: "/partitions", body: js{"pkey": "0x0100", "name": "one", "members": joins("full", g)["members"]}})
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}})
	if list := items(s.want(200, call{as: "red", method: "GET", path: "/partitions/0x0100/members"})); len(list) != 0 {
		t.Fatalf("%v: want no member", list)
	}
	// A caller who has seen the removal may.
	add.header = map[string]string{"If-Match": s.want(200, call{as: "red", method: "GET", path: "/partitions/0x0100"})["etag"].(string)}
	s.want(200, add)
}

// TestRepeatedWriteDoesNothingTwice: with an Idempotency-Key.
func TestRepeatedWriteDoesNothingTwice(t *testing.T) {
	s := newStand(t)
	s.tenants()
	c := call{as: "red", method: "POST", path: "/partitions", body: js{"name": "one"}, header: map[string]string{"Idempotency-Key": "a-1"}}
	first := s.want(201, c)
	again := s.want(201, c)
	if again["repeated"] != true || again["revision"] != first["revision"] {
		t.Errorf("%v, then %v: want the same revision, repeated", first, again)
	}
	c.body = js{"name": "two"}
	s.want(409, c)
	if list := items(s.want(200, call{as: "red", method: "GET", path: "/partitions"})); len(list) != 1 {
		t.Errorf("%d partitions, want 1", len(list))
	}
	// The key of one caller is nothing to another.
	c.as = "blue"
	s.want(201, c)
}

// TestDryRunChangesNothing: whatever the write is.
func TestDryRunChangesNothing(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}})
	last := s.want(200, call{method: "GET", path: "/revisions"})["revision"]
	for _, c := range []call{
		{as: "red", method: "POST", path: "/partitions", body: js{"name": "two"}},
		{as: "red", method: "DELETE", path: "/partitions/0x0100"},
		{as: "red", method: "POST", path: "/partitions/0x0100/members", body: joins("full", s.hosts[0])},
		{method: "PUT", path: "/tenants/green", body: js{}},
		{method: "POST", path: "/ports/release", body: js{"ports": []string{s.hosts[0]}}},
	} {
		c.path += "?dry_run=true"
		got := s.want(200, c)
		if got["plan"] == nil || len(got["words"].([]any)) == 0 {
			t.Errorf("%s %s: %v: want words and a plan", c.method, c.path, got)
		}
		if plan := got["plan"].(js); (plan["text"] != nil) != (c.as == "") {
			t.Errorf("%s as %q: plan %v: its words are for the provider", c.path, c.as, plan)
		}
	}
	if w := s.do(call{as: "red", method: "POST", path: "/tokens?dry_run=true", body: js{}}); w.Code != 201 || strings.Contains(w.Body.String(), listen.TokenPrefix) {
		t.Errorf("%d %s: want no secret", w.Code, w.Body)
	}
	if now := s.want(200, call{method: "GET", path: "/revisions"})["revision"]; now != last {
		t.Errorf("revision %v, then %v", last, now)
	}
	// A parameter that is not one does not make a dry run a change.
	for _, query := range []string{"?dryrun=true", "?dry_run=yes", "?dry_run=", "?dry_run=true&dry_run=false", "?Dry_Run=true"} {
		if w := s.do(call{as: "red", method: "DELETE", path: "/partitions/0x0100" + query}); w.Code != 400 && w.Code != 422 {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	s.want(200, call{as: "red", method: "GET", path: "/partitions/0x0100"})
}

// TestAWriteThatWaits: 202 while nothing is proved, 200 and the outcome after.
func TestAWriteThatWaits(t *testing.T) {
	s := newStand(t)
	s.tenants()
	proved := s.want(201, call{as: "red", method: "POST", path: "/partitions?wait=proved", body: js{"name": "one"}})
	if o := proved["outcome"].(js); o["state"] != "proved" || o["verdict"] != "isolated" {
		t.Errorf("%v", o)
	}
	s.manager.hold = true
	stored := s.want(202, call{as: "red", method: "POST", path: "/partitions", body: js{"name": "two"}})
	if o := stored["outcome"].(js); o["state"] != "pending" {
		t.Errorf("%v", o)
	}
	follow := s.want(200, call{as: "red", method: "GET", path: stored["follow"].(string)})
	if o := follow["item"].(js)["outcome"].(js); o["state"] != "pending" {
		t.Errorf("%v", o)
	}
}

// TestPages: every object once, in order, whatever the size of the page.
func TestPages(t *testing.T) {
	s := newStand(t)
	s.tenants()
	for i := range 7 {
		s.want(201, call{as: "red", method: "POST", path: "/partitions", body: js{"name": fmt.Sprint("p", i)}})
	}
	for _, path := range []string{"/partitions", "/revisions", "/ports", "/nodes", "/tokens", "/tenants", "/links", "/routes", "/audit-log", "/audit-log?oldest_first=true", "/revisions?oldest_first=true", "/proof/pairs", "/managers", "/audit", "/audit/checks", "/proof/history", "/multicast-groups"} {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		whole := items(s.want(200, call{method: "GET", path: path + separator + "limit=1000"}))
		still := func(list []any) []any {
			for _, x := range list {
				delete(x.(js), "last_seen") // of a manager: now, each time
			}
			return list
		}
		for _, size := range []int{1, 3} {
			var all []any
			for next, pages := "", 0; pages < 2000; pages++ {
				query := fmt.Sprintf("%slimit=%d", separator, size)
				if next != "" {
					query += "&cursor=" + next
				}
				p := s.want(200, call{method: "GET", path: path + query})
				if n := len(items(p)); n > size {
					t.Fatalf("%s: a page of %d, want %d at most", path, n, size)
				}
				all = append(all, items(p)...)
				if next, _ = p["next"].(string); next == "" {
					break
				}
			}
			if len(whole) < 1000 && fmt.Sprint(still(all)) != fmt.Sprint(still(whole)) {
				t.Errorf("%s by %d: %d objects, want the %d of one page", path, size, len(all), len(whole))
			}
		}
	}
}

// TestHistoryOfOthers: a tenant is told of its own part of a change and of nobody else's.
func TestHistoryOfOthers(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "shared"}})
	s.want(200, call{as: "red", method: "POST", path: "/partitions/0x0100/members", body: joins("full", s.hosts[0], s.hosts[4])})
	s.want(200, call{as: "blue", method: "PUT", path: "/partitions/0x0100/members/" + s.hosts[4], body: js{"membership": "full"}})
	s.want(200, call{as: "red", method: "DELETE", path: "/partitions/0x0100", header: map[string]string{"Why": "a secret of red"}})
	w := s.do(call{as: "blue", method: "GET", path: "/revisions"})
	for _, secret := range []string{s.hosts[0], "a secret of red", "tok-"} {
		text := w.Body.String()
		if secret == "tok-" {
			for _, token := range items(s.want(200, call{as: "red", method: "GET", path: "/tokens"})) {
				if strings.Contains(text, token.(js)["id"].(string)) {
					t.Errorf("blue is told of %v", token)
				}
			}
			continue
		}
		if strings.Contains(text, secret) {
			t.Errorf("blue is told of %q: %s", secret, text)
		}
	}
	last := items(s.want(200, call{as: "blue", method: "GET", path: "/revisions"}))[0].(js)
	one := s.do(call{as: "blue", method: "GET", path: fmt.Sprintf("/revisions/%.0f", last["revision"])}).Body.String()
	if strings.Contains(one, s.hosts[0]) || !strings.Contains(one, s.hosts[4]) {
		t.Errorf("blue is told %s: want its own port %s and not %s", one, s.hosts[4], s.hosts[0])
	}
}

// TestTokensAreToldOnce: no answer and no log has a secret, or its sum, after the one
// that made it.
func TestTokensAreToldOnce(t *testing.T) {
	s := newStand(t)
	s.tenants()
	for _, path := range []string{"/tokens", "/revisions", "/audit-log", "/audit-log/export", "/export", "/tenants", "/revisions/1", "/revisions/2", "/revisions/3"} {
		text := s.do(call{method: "GET", path: path}).Body.String()
		for name, secret := range s.tokens {
			if strings.Contains(text, secret) || strings.Contains(text, listen.SecretSum([]byte(secret))) {
				t.Errorf("%s tells the token of %s", path, name)
			}
		}
	}
	for i := range 20 {
		s.do(call{as: "red", method: "GET", path: fmt.Sprintf("/revisions/%d", i)})
	}
	for name, secret := range s.tokens {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log tells the token of %s", name)
		}
	}
	// A token that ended is worth nothing, and so is one of a tenant that is gone.
	id := items(s.want(200, call{as: "blue", method: "GET", path: "/tokens"}))[0].(js)["id"].(string)
	s.want(200, call{as: "blue", method: "DELETE", path: "/tokens/" + id})
	s.want(401, call{as: "blue", method: "GET", path: "/partitions"})
}

// TestTokensSayWhoMadeThem: to the tenant his own callers, and of others that it was the
// provider; a token that is deleted takes with it what was made with it, unless it is said
// that this stays.
func TestTokensSayWhoMadeThem(t *testing.T) {
	s := newStand(t)
	s.tenants()
	made := func(as, tenant string) (id string) {
		out := s.want(201, call{as: as, method: "POST", path: "/tokens", body: js{"tenant": tenant}})
		id = out["token"].(js)["id"].(string)
		s.tokens[id] = out["secret"].(string)
		return id
	}
	by := func(as, id string) string {
		for _, x := range items(s.want(200, call{as: as, method: "GET", path: "/tokens"})) {
			if x := x.(js); x["id"] == id {
				return fmt.Sprint(x["made_by"])
			}
		}
		return "none"
	}
	first := made("provider", "red")
	second := made(first, "red")
	third := made(second, "red")
	boss := s.want(200, call{as: "provider", method: "GET", path: "/session"})["name"].(string)
	for _, x := range []struct{ as, id, want string }{
		{"red", first, "provider"}, {"provider", first, boss}, {"", first, boss}, {"red", second, first}, {"provider", third, second}, {"blue", third, "none"},
	} {
		if got := by(x.as, x.id); got != x.want {
			t.Errorf("%s is made by %s for %q, want %s", x.id, got, x.as, x.want)
		}
	}
	for _, path := range []string{"/tokens", "/revisions", "/audit-log"} {
		if w := s.do(call{as: "red", method: "GET", path: path}); strings.Contains(w.Body.String(), boss) {
			t.Errorf("%s names the provider's token to a tenant: %s", path, w.Body)
		}
	}
	for n := range 20 {
		if w := s.do(call{as: "red", method: "GET", path: fmt.Sprint("/revisions/", n)}); strings.Contains(w.Body.String(), boss) {
			t.Errorf("revision %d names the provider's token to a tenant: %s", n, w.Body)
		}
	}
	s.want(200, call{as: "red", method: "DELETE", path: "/tokens/" + second + "?keep_made=true"})
	if got := by("red", third); got != first {
		t.Errorf("after %s is deleted and what it made kept, %s is made by %s, want %s", second, third, got, first)
	}
	s.want(200, call{as: third, method: "GET", path: "/partitions"})
	s.want(200, call{as: "red", method: "DELETE", path: "/tokens/" + first})
	s.want(401, call{as: first, method: "GET", path: "/partitions"})
	s.want(401, call{as: third, method: "GET", path: "/partitions"})
	s.want(200, call{as: "red", method: "GET", path: "/partitions"})
}

// TestReadsOfALostStore: they are answered, and say that they may be old.
func TestReadsOfALostStore(t *testing.T) {
	s := newStand(t)
	s.tenants()
	if _, err := s.store.Acquire(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	w := s.do(call{as: "red", method: "POST", path: "/partitions", body: js{"name": "late"}})
	if w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"reason":"store"`) {
		t.Fatalf("%d %s: want 503 of the store", w.Code, w.Body)
	}
	got := s.do(call{as: "red", method: "GET", path: "/partitions"})
	if got.Code != 200 || got.Header().Get("Ibwarden-Old") == "" || !strings.Contains(got.Body.String(), `"old":`) {
		t.Errorf("%d %v %s: want it marked as old", got.Code, got.Header(), got.Body)
	}
}

// TestExportOfTheWhole: the file has the partitions of the API.
func TestExportOfTheWhole(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}})
	text := s.want(200, call{method: "GET", path: "/export"})["item"].(js)["text"].(string)
	if !strings.Contains(text, "red/one") {
		t.Errorf("%s: want red/one", text)
	}
}

// TestBoundTokens: a token that is bound to partitions sees and changes nothing else, one
// of the provider too.
func TestBoundTokens(t *testing.T) {
	s := newStand(t)
	s.tenants()
	for _, k := range []string{"0x0100", "0x0101"} {
		s.want(201, call{as: "red", method: "PUT", path: "/partitions/" + k, body: js{"name": "p" + k}})
	}
	keys := js{"first": "0x0100", "last": "0x0100"}
	for _, tenant := range []string{"red", "provider"} {
		s.tokens["bound"] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": tenant, "keys": keys}})["secret"].(string)
		s.want(200, call{as: "bound", method: "GET", path: "/partitions/0x0100"})
		s.want(404, call{as: "bound", method: "GET", path: "/partitions/0x0101"})
		if list := items(s.want(200, call{as: "bound", method: "GET", path: "/partitions"})); len(list) != 1 {
			t.Errorf("%s: %v: want one partition", tenant, list)
		}
		if w := s.do(call{as: "bound", method: "GET", path: "/watch/partitions?once=true"}); w.Code != 200 || !strings.Contains(w.Body.String(), `"keys":["0x0100"]`) || strings.Contains(w.Body.String(), "0x0101") {
			t.Errorf("%s: %d %s: want one partition", tenant, w.Code, w.Body)
		}
		for id, row := range matrix {
			if row.path == "-" || id == "watch-partitions" || strings.HasPrefix(row.path, "/partitions") || strings.HasPrefix(row.path, "/openapi") {
				continue
			}
			for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
				if w := s.do(call{as: "bound", method: method, path: row.path}); w.Code != 403 {
					t.Errorf("%s by a token of %s bound to 0x0100: %s %d, want 403", id, tenant, method, w.Code)
				}
			}
		}
	}
}

// TestASecondPerson: where the provider says so, what takes away waits, and says so.
func TestASecondPerson(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}})
	s.want(200, call{as: "red", method: "PUT", path: "/partitions/0x0100/members/" + s.hosts[0], body: js{"membership": "full"}})
	tenant := s.want(200, call{method: "GET", path: "/tenants/red"})
	s.want(200, call{method: "PUT", path: "/tenants/red", body: js{"keys": tenant["item"].(js)["keys"], "approve_removals": true}, header: map[string]string{"If-Match": tenant["etag"].(string)}})
	waits := s.want(202, call{as: "red", method: "DELETE", path: "/partitions/0x0100/members/" + s.hosts[0]})
	id, _ := waits["approval"].(string)
	if id == "" || waits["outcome"] != nil {
		t.Fatalf("%v: want an approval and no outcome", waits)
	}
	s.want(200, call{as: "red", method: "GET", path: "/partitions/0x0100/members/" + s.hosts[0]})
	s.want(403, call{as: "red", method: "POST", path: "/approvals/" + id + "/approve"})
	s.want(404, call{as: "blue", method: "POST", path: "/approvals/" + id + "/approve"})
	s.want(200, call{method: "POST", path: "/approvals/" + id + "/approve"})
	s.want(404, call{as: "red", method: "GET", path: "/partitions/0x0100/members/" + s.hosts[0]})
}

// TestRollback: a tenant's part comes back as it was, as a plan first.
func TestRollback(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}})
	then := s.want(200, call{as: "red", method: "PUT", path: "/partitions/0x0100/members/" + s.hosts[0], body: js{"membership": "full"}})["revision"]
	s.want(201, call{as: "blue", method: "PUT", path: "/partitions/0x0200", body: js{"name": "two"}})
	s.want(200, call{as: "red", method: "DELETE", path: "/partitions/0x0100"})
	plan := s.want(200, call{as: "red", method: "POST", path: "/rollback?dry_run=true", body: js{"to": then}})
	if len(plan["words"].([]any)) == 0 {
		t.Errorf("%v: want the words of a plan", plan)
	}
	s.want(404, call{as: "red", method: "GET", path: "/partitions/0x0100"})
	s.want(403, call{as: "red", method: "POST", path: "/rollback", body: js{"to": then, "tenant": "blue"}})
	s.want(200, call{as: "red", method: "POST", path: "/rollback", body: js{"to": then}})
	s.want(200, call{as: "red", method: "GET", path: "/partitions/0x0100/members/" + s.hosts[0]})
	s.want(200, call{as: "blue", method: "GET", path: "/partitions/0x0200"})
	s.want(404, call{as: "red", method: "POST", path: "/rollback", body: js{"to": 99999}})
}
