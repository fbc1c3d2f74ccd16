package api

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/need"
)

// sightOp is an operation with its rows.
type sightOp struct {
	name, method string
	ufm          bool
	rows         []sightRow
}

// sightOps are all operations of the description, UFM's calls and Alertmanager's. One without a row fails.
func sightOps(t *testing.T) (list []sightOp) {
	doc, _ := described(t)
	seen := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			rows := sightRows[op.OperationID]
			seen[op.OperationID] = true
			if len(rows) == 0 {
				t.Errorf("%s %s: %s has no row in sightRows: a request that asks it about what is foreign", method, path, op.OperationID)
			}
			list = append(list, sightOp{op.OperationID, method, false, rows})
		}
	}
	for id := range sightRows {
		if !seen[id] {
			t.Errorf("%s is in sightRows and no operation", id)
		}
	}
	for _, name := range ufm.Calls() {
		rows, there := ufmRows[name]
		if !there {
			t.Errorf("%s has no row in ufmRows", name)
		}
		method, _, _ := strings.Cut(name, " ")
		list = append(list, sightOp{name, method, true, rows})
	}
	for name, rows := range alertmanagerRows {
		method, _, _ := strings.Cut(name, " ")
		list = append(list, sightOp{"alertmanager " + name, method, false, rows})
	}
	slices.SortFunc(list, func(a, b sightOp) int { return strings.Compare(a.name, b.name) })
	return list
}

// sightKinds are the placeholders for what is foreign.
var sightKinds = []string{"GUID", "NODE", "NAME", "HOST", "PORT", "PKEY", "PNAME", "TENANT", "TOKEN", "APPROVAL"}

// requests are those of a row, for a caller of a tenant: one for each foreign thing.
func (w *lair) requests(tenant string, r sightRow, parties []string) (out []sightRequest) {
	own := w.ports[slices.IndexFunc(w.ports, func(p *lairPort) bool { return p.owner == tenant })]
	fill := strings.NewReplacer("{OWN}", own.guid, "{OWNNODE}", own.node, "{OWNHOST}", own.name, "{MINE}", w.own[tenant], "{ME}", tenant)
	whole := fill.Replace(r.path) + "\x00" + fill.Replace(r.body)
	add := func(is, none string, swap []string, things ...sightThing) {
		n := sightRequest{}
		n.path, n.body, _ = strings.Cut(is, "\x00")
		n.nonePath, n.noneBody, _ = strings.Cut(none, "\x00")
		n.path, n.nonePath = strings.ReplaceAll(n.path, " ", "%20"), strings.ReplaceAll(n.nonePath, " ", "%20")
		if none != "" {
			n.swap = strings.NewReplacer(swap...)
		}
		for _, x := range things {
			if n.pkey, n.tenant = n.pkey+x.pkey, n.tenant+x.tenant; x.port != nil {
				n.ports = append(n.ports, x.port)
			}
		}
		out = append(out, n)
	}
	switch {
	case strings.Contains(whole, "{REVISION}"):
		var last uint64
		w.service.Read(func(s *resource.State) { last = s.LastFor(resource.Caller{Tenant: tenant}) })
		for _, n := range []uint64{last, last - min(last, 1), last - min(last, 2), last - min(last, 3), last / 2, 3} {
			one := strings.ReplaceAll(whole, "{REVISION}", fmt.Sprint(n))
			add(strings.ReplaceAll(one, "{TENANT}", tenant), "", nil)
		}
		return out
	case strings.Contains(whole, "{PARTY}"):
		for i, p := range parties {
			one := strings.Replace(whole, "{PARTY}", p, 1)
			add(strings.Replace(one, "{PARTY}", parties[(i+1)%len(parties)], 1), "", nil)
		}
		return out
	}
	var kinds []string
	for _, k := range sightKinds {
		if strings.Contains(whole, "{"+k+"}") {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		add(whole, "", nil)
		return out
	}
	for i, x := range w.things(tenant, kinds[0]) {
		seconds := []sightThing{{}}
		if len(kinds) > 1 {
			seconds = w.things(tenant, kinds[1])
		}
		for _, y := range seconds {
			is, none, swap := put(whole, whole, nil, kinds[0], x)
			if len(kinds) > 1 {
				if kinds[1] == "PKEY" { // a port that is none, in a partition that is there
					add(strings.ReplaceAll(is, "{PKEY}", y.is), strings.ReplaceAll(none, "{PKEY}", y.is), swap, x)
				}
				is, none, swap = put(is, none, swap, kinds[1], y)
			}
			things := []sightThing{x, y}
			if strings.Contains(whole, "{OTHER}") {
				guids := w.things(tenant, "GUID")
				z := guids[(i+1)%len(guids)]
				z.none = "0x00000000deadbe03"
				is, none, swap = put(is, none, swap, "OTHER", z)
				things = append(things, z)
			}
			add(is, none, swap, things...)
		}
	}
	return out
}

// put fills a placeholder, in what is asked with a thing and in what is asked with none; swap are
// the words that the two answers do not share for that.
func put(is, none string, swap []string, kind string, x sightThing) (string, string, []string) {
	bare, bareNone := strings.TrimPrefix(x.is, "0x"), strings.TrimPrefix(x.none, "0x") // as UFM has them
	swap = append(swap, x.is, x.none, bare, bareNone, "0x"+strings.TrimLeft(bare, "0"), "0x"+strings.TrimLeft(bareNone, "0"))
	return strings.ReplaceAll(is, "{"+kind+"}", x.is), strings.ReplaceAll(none, "{"+kind+"}", x.none), swap
}

// ask makes a request of an operation.
func (w *lair) ask(op sightOp, as, path, body string, header map[string]string) *httptest.ResponseRecorder {
	c := call{as: as, method: op.method, path: path, header: header}
	if op.ufm {
		c.path = "/api/../ufmRestV3/" + path
		r := httptest.NewRequest(op.method, "/ufmRestV3/"+path, strings.NewReader(body))
		r.Host = "127.0.0.1:8443"
		if as != "nobody" {
			r.Header.Set("Authorization", "Bearer "+w.tokens[as])
		}
		out := httptest.NewRecorder()
		w.handler.ServeHTTP(out, r)
		return out
	}
	if body != "" {
		c.body = body
	}
	return w.do(c)
}

// madeAgain are what two answers to the same request need not have in common.
var madeAgain = regexp.MustCompile(`"(?:id|ID|created|Created|revision)":"?[0-9a-zA-Z:. +-]*"?|"words":\["(?:token|certificate) [^ ]*`)

// check tries a request of a caller who acts for a tenant, and says what is wrong.
func (w *lair) check(step string, op sightOp, as, tenant string, r sightRow, q sightRequest) {
	asked := slices.ContainsFunc(q.ports, func(p *lairPort) bool { return w.asked(tenant, p) })
	if op.ufm && op.method != "GET" && (asked || q.pkey != "" && w.sees(tenant, q.pkey[:6])) {
		return // it would change something
	}
	if op.method != "GET" {
		w.typed[tenant] += " " + q.path + q.body + q.nonePath + q.noneBody
	}
	for _, h := range []map[string]string{nil, {"If-Match": "*"}} {
		got := w.ask(op, as, q.path, q.body, h)
		tell := func(format string, args ...any) {
			w.Errorf("%s: %s %s %s %s as %s: %d %.600s\n%s", step, op.name, op.method, q.path, q.body, as, got.Code, got.Body, fmt.Sprintf(format, args...))
		}
		if got.Code >= 500 {
			tell("want no such status")
		}
		list := w.beyond(as, q.path+q.body, got)
		if tenant != resource.Provider { // who knows all owners
			list = append(list, w.leaks(tenant, r.from, q.path+q.body, got)...)
		}
		if len(list) > 0 {
			tell("%s reads %q, which it may not know", as, list)
		}
		if q.swap == nil || tenant == resource.Provider || !w.unknown(tenant, r, q) {
			return
		}
		none := w.ask(op, as, q.nonePath, q.noneBody, h)
		a, b := madeAgain.ReplaceAllString(q.swap.Replace(got.Body.String()), ""), madeAgain.ReplaceAllString(none.Body.String(), "")
		if got.Code != none.Code || a != b {
			tell("of what does not exist it is told %d %.600s", none.Code, none.Body)
		}
		if got.Code != 428 {
			return
		}
	}
}

// unknown reports whether a tenant may not know that what a request is about exists.
func (w *lair) unknown(tenant string, r sightRow, q sightRequest) bool {
	for _, p := range q.ports {
		if w.lent(tenant, p) || r.from != ofFabric && (w.asked(tenant, p) || w.told[tenant][p.guid]) {
			return false
		}
	}
	for k, part := range w.parts {
		if part.owner == q.tenant && w.sees(tenant, k) {
			return false
		}
	}
	for k := q.pkey; k != ""; k = k[6:] {
		if len(k) < 6 || w.parts[k[:6]].owner != "" && (w.sees(tenant, k[:6]) || w.told[tenant][k[:6]]) {
			return false
		}
	}
	return true
}

// sightCallers are the kinds of callers, and for whom they act.
var sightCallers = [][2]string{{rubin, rubin}, {saphir, saphir}, {smaragd, smaragd}, {"reader", rubin}, {"bound", rubin}, {"bound provider", resource.Provider}}

// parties are the names of the parties that a caller's matrix has.
func (w *lair) parties(as string) (names []string) {
	if boundTo[as] != "" {
		return []string{boundFor[as]}
	}
	for _, p := range w.want(200, call{as: as, method: "GET", path: "/matrix"})["parties"].([]any) {
		names = append(names, p.(js)["name"].(string))
	}
	return names
}

// TestNoForeignFactInAnyAnswer asks every operation, as every kind of caller, about every kind
// of foreign thing, before and after each half step of consent, with tables that have followed
// and with tables that have not yet. No answer has a fact that the model does not allow, and what
// a caller may not know of is answered as what does not exist. An operation without a row fails.
func TestNoForeignFactInAnyAnswer(t *testing.T) {
	ops := sightOps(t)
	w := newLair(t)
	look := func(step string, callers [][2]string) {
		t.Helper()
		for _, c := range callers {
			parties := w.parties(c[0])
			for _, op := range ops {
				for _, r := range op.rows {
					for _, q := range w.requests(c[1], r, parties) {
						w.check(step, op, c[0], c[1], r, q)
					}
				}
			}
		}
	}
	w.strangers(ops)
	w.subjects = []*lairPort{w.ports[0], w.ports[1], w.ports[4], w.ports[8], w.ports[9], w.ports[10], w.ports[12], w.ports[16]} // those of the steps, and one
	look("before", sightCallers)
	const shownShort = 6 // with -short one look in so many is taken
	for i, step := range w.steps() {
		step.do()
		if w.tell(); t.Failed() {
			return
		}
		if testing.Short() && i%shownShort != 0 {
			w.follow()
			continue
		}
		if !testing.Short() || !step.whole {
			look(step.name+", tables as before", sightCallers[:3])
		}
		w.follow()
		if step.whole {
			look(step.name, sightCallers)
		}
	}
}

// strangers has those ask who are nobody: they are told nothing. Of the provider's answers
// only that there are some is looked at.
func (w *lair) strangers(ops []sightOp) {
	for _, op := range ops {
		for _, r := range op.rows {
			for _, q := range w.requests(rubin, r, nil) {
				out := w.ask(op, "nobody", q.path, q.body, nil)
				if op.name != "get-description" && out.Code != 401 {
					w.Errorf("%s %s as nobody: %d %s", op.name, q.path, out.Code, out.Body)
				}
				if list := w.leaks("nobody", ofFabric, q.path+q.body, out); len(list) > 0 {
					w.Errorf("%s %s: nobody reads %q: %s", op.name, q.path, list, out.Body)
				}
				if !op.ufm || op.method == "GET" {
					if out := w.ask(op, "provider", q.path, q.body, nil); out.Code >= 500 || out.Code == 401 {
						w.Errorf("%s %s as the provider: %d %s", op.name, q.path, out.Code, out.Body)
					}
				}
			}
		}
	}
}

type sightStep struct {
	name  string
	whole bool // look also after the tables have followed
	do    func()
}

// steps are the half steps of consent, from every side.
func (w *lair) steps() []sightStep {
	const k = "0x0100"
	theirs, second, third := w.ports[8], w.ports[9], w.ports[12]
	manager, storage, leaf := w.ports[0], w.ports[1], w.ports[16]
	provider := resource.Provider
	all := []*lairPort{theirs, third, manager, storage, leaf}
	ask := func(status int, as, method, path string, body any) {
		w.Helper()
		if out := w.do(call{as: as, method: method, path: path, body: body}); out.Code != status {
			w.Errorf("%s %s as %s: %d %s, want %d", method, path, as, out.Code, out.Body, status)
		}
	}
	put := func(as string, list ...*lairPort) {
		w.Helper()
		for _, p := range list {
			if out := w.put(as, k, p); out.Code != 200 {
				w.Errorf("%s asks for %s: %d %s", as, p.guid, out.Code, out.Body)
			}
			w.consents(as, k, p)
		}
	}
	end := func(as, how string, list ...*lairPort) {
		w.Helper()
		for _, p := range list {
			method, path := "DELETE", "/partitions/"+k+"/members/"+p.guid
			if how == "refuse" {
				method, path = "POST", path+"/refuse"
			}
			ask(200, as, method, path, nil)
			delete(w.members[k], p.guid)
		}
	}
	as := func(who string, p *lairPort, body js) {
		w.Helper()
		ask(200, who, "PUT", "/partitions/"+k+"/members/"+p.guid, body)
	}
	return []sightStep{
		{"invited", false, func() { put(rubin, all...) }},
		{"the other agrees to less", false, func() {
			as(saphir, theirs, js{"membership": "limited"})
			w.members[k][theirs.guid].byPart, w.members[k][theirs.guid].byPort = false, true
		}},
		{"invited again", false, func() { put(rubin, theirs); w.members[k][theirs.guid].byPort = false }},
		{"accepted", true, func() { put(saphir, theirs); put(smaragd, third); put(provider, manager, storage, leaf) }},
		{"asked for index 0", false, func() { as(rubin, theirs, js{"membership": "full", "index0": true}) }},
		{"withdrawn by the owner of the port", true, func() { end(saphir, "", theirs); end(provider, "", manager, leaf) }},
		{"removed by the owner of the partition", true, func() {
			end(rubin, "", storage, third)
		}},
		{"invited once more", false, func() { put(rubin, theirs, storage) }},
		{"declined", false, func() { end(saphir, "refuse", theirs); end(provider, "refuse", storage) }},
		{"invited, and the invited asks for another of his", false, func() { put(rubin, theirs); put(saphir, second) }},
		{"that one is taken", true, func() { put(rubin, second) }},
		{"the invitation is withdrawn", false, func() { end(rubin, "", theirs) }},
		{"released while invited", true, func() {
			put(rubin, w.ports[10])
			ask(200, "provider", "POST", "/ports/release", js{"ports": []string{w.ports[10].guid}})
			delete(w.members[k], w.ports[10].guid)
			w.ports[10].owner = "none"
		}},
		{"invited between two owners", false, func() { put(rubin, w.ports[10]) }},
		{"given to a third while invited", true, func() {
			ask(200, "provider", "POST", "/ports/assign", js{"tenant": smaragd, "ports": []js{{"guid": w.ports[10].guid}}})
			w.ports[10].owner = smaragd
		}},
		{"a rollback of the provider", false, func() { ask(200, "provider", "POST", "/rollback", js{"to": 40}) }},
	}
}

// TestNoForeignFactInRandomSequences has all callers invite, agree, decline, leave, take and ask
// at random: the model of who agreed to what says which facts an answer may have. With
// IBWARDEN_SOAK=1 it makes 100,000 calls.
func TestNoForeignFactInRandomSequences(t *testing.T) {
	runs, length := 2, need.Share(1000, 3000)
	if need.Soak() {
		runs, length = 25, 4000
	}
	ops := sightOps(t)
	first := need.Seed(t, uint64(time.Now().UnixNano())%1e6)
	t.Logf("seeds %d to %d", first, first+uint64(runs)-1)
	done := map[string]int{}
	missing := func() string {
		for _, what := range []string{"invited", "agreed", "ended", "declined", "released", "given", "asked"} {
			if done[what] == 0 {
				return what
			}
		}
		return ""
	}
	for i := range uint64(runs) {
		w := newLair(t)
		rng := rand.New(rand.NewPCG(first+i, 27))
		// The last run goes on until everything has happened, of which some is rare.
		for n := 0; n < length || i+1 == uint64(runs) && missing() != "" && n < 10*length; n++ {
			step := fmt.Sprintf("seed %d, call %d", first+i, n)
			if rng.IntN(6) == 0 {
				done[w.randomStep(rng, step)]++
				w.tell()
			} else {
				c := sightCallers[rng.IntN(len(sightCallers))]
				op := ops[rng.IntN(len(ops))]
				if len(op.rows) == 0 {
					continue
				}
				r := op.rows[rng.IntN(len(op.rows))]
				list := w.requests(c[1], r, []string{c[1], "all others"})
				if len(list) == 0 {
					continue // nothing of the kind is foreign to him
				}
				w.check(step, op, c[0], c[1], r, list[rng.IntN(len(list))])
				done["asked"]++
			}
			if t.Failed() {
				return
			}
		}
	}
	t.Log(done)
	if what := missing(); what != "" {
		t.Errorf("nothing was %s", what)
	}
}

// randomStep changes something, mostly so that it is accepted, and says what it was.
func (w *lair) randomStep(rng *rand.Rand, step string) (what string) {
	k := []string{"0x0100", "0x0101", "0x0200", "0x0300", "0x0400"}[rng.IntN(5)]
	p := w.ports[rng.IntN(len(w.ports))]
	if rng.IntN(2) == 0 {
		p = w.ports[8+rng.IntN(3)] // of saphir, which may be between two owners
	}
	if list := slices.Sorted(maps.Keys(w.members[k])); len(list) > 0 && rng.IntN(2) == 0 {
		p = w.port(list[rng.IntN(len(list))])
	}
	m := w.members[k][p.guid]
	owner := w.parts[k].owner
	as := []string{owner, p.owner, rubin, saphir, resource.Provider}[rng.IntN(5)]
	if as == "none" {
		as = owner
	}
	path := "/partitions/" + k + "/members/" + p.guid
	if w.typed[as] += " " + path; rng.IntN(4) == 0 {
		w.follow()
	}
	var out *httptest.ResponseRecorder
	switch n := rng.IntN(20); {
	case n < 10:
		if out = w.put(as, k, p); out.Code == 200 {
			if w.consents(as, k, p); m == nil {
				return "invited"
			}
			return "agreed"
		}
	case n < 14:
		if out = w.do(call{as: as, method: "DELETE", path: path}); out.Code == 200 && m != nil && (as == owner || as == p.owner || as == resource.Provider) {
			delete(w.members[k], p.guid)
			return "ended"
		}
	case n < 17:
		if as = owner; m != nil && m.byPart && p.owner != "none" {
			as = p.owner // whom it waits for
		}
		w.typed[as] += " " + path
		if out = w.do(call{as: as, method: "POST", path: path + "/refuse"}); out.Code == 200 {
			delete(w.members[k], p.guid)
			return "declined"
		}
	case n < 19 && p.owner == saphir && p != w.ports[8]: // of which it has always one
		w.want(200, call{method: "POST", path: "/ports/release", body: js{"ports": []string{p.guid}}})
		for _, list := range w.members {
			delete(list, p.guid)
		}
		p.owner = "none"
		return "released"
	case p.owner == "none":
		w.want(200, call{method: "POST", path: "/ports/assign", body: js{"tenant": saphir, "ports": []js{{"guid": p.guid}}}})
		p.owner = saphir
		return "given"
	}
	if out != nil && out.Code >= 500 {
		w.Errorf("%s: %s as %s: %d %s", step, path, as, out.Code, out.Body)
	}
	return "refused"
}
