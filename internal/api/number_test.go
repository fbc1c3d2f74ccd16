package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// volatile are texts that differ between two services without anybody's doing: times, what is
// random, and cursors that are sealed.
var volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|\d{4}-\d\d-\d\d \d\d:\d\d|(tok|ufm)-[0-9a-f]+|ibw_?[A-Za-z0-9_-]{20,}|"seconds":[0-9.e-]+|"request":"[0-9a-f]+"|"next":"[A-Za-z0-9_-]{78}"|[0-9a-f]{8}-(\d+)"|id: [0-9a-f]{8}-(\d+)`)

// twins are two services that a tenant, red, asks the same; in the second others make changes
// between.
type twins struct {
	*testing.T
	r     *rand.Rand
	one   [2]*stand
	etags map[string]string // of paths, as red was told by both
	made  int
	calls int
}

func newTwins(t *testing.T, seed uint64) *twins {
	w := &twins{T: t, r: rand.New(rand.NewPCG(seed, 27)), etags: map[string]string{}}
	for i := range w.one {
		s := newStand(t)
		s.shared()
		w.one[i] = s
	}
	return w
}

// asked is what red asks in both services: the answers are to be the same.
func (w *twins) asked(c call) {
	w.Helper()
	var said [2]string
	var got [2]*httptest.ResponseRecorder
	for i, s := range w.one {
		c := c
		if c.as == "" {
			c.as = "red"
		}
		got[i] = s.do(c)
		said[i] = w.plain(got[i])
	}
	w.calls++
	if said[0] != said[1] {
		w.Fatalf("call %d: %s %s %v %v: alone red is told\n%s\nwith others\n%s", w.calls, c.method, c.path, c.body, c.header, said[0], said[1])
	}
	path, _, _ := strings.Cut(c.path, "?")
	if tag := got[0].Header().Get("ETag"); tag != "" && got[0].Code < 300 && c.method == "GET" {
		w.etags[path] = tag
	}
}

// plain is an answer without what is volatile.
func (w *twins) plain(r *httptest.ResponseRecorder) string {
	h := maps.Clone(map[string][]string(r.Header()))
	delete(h, "X-Request-Id")
	delete(h, "Content-Length") // times have digits more or less
	var lines []string
	for k, v := range h {
		lines = append(lines, k+": "+strings.Join(v, ", "))
	}
	slices.Sort(lines)
	text := fmt.Sprintf("%d\n%s\n%s", r.Code, strings.Join(lines, "\n"), r.Body)
	return volatile.ReplaceAllStringFunc(text, func(s string) string {
		// The number in the ID of an event counts.
		if _, n, is := strings.Cut(s, "-"); is && regexp.MustCompile(`^(id: )?[0-9a-f]{8}-\d+"?$`).MatchString(s) {
			return "event-" + n
		}
		return "<>"
	})
}

// others has somebody else make a change in the second service, of what red has no part in.
func (w *twins) others() {
	s, r := w.one[1], w.r
	w.made++
	key := fmt.Sprintf("0x02%02x", 0x20+r.IntN(40))
	port := s.hosts[5+r.IntN(3)]
	var c call
	switch r.IntN(9) {
	case 0, 1:
		c = call{as: "blue", method: "POST", path: "/partitions", body: js{"pkey": key, "name": fmt.Sprintf("b%d", w.made)}}
	case 2, 3:
		c = call{as: "blue", method: "PUT", path: "/partitions/" + key + "/members/" + port, body: js{"membership": "full"}}
	case 4:
		c = call{as: "blue", method: "DELETE", path: "/partitions/" + key}
	case 5:
		c = call{as: "blue", method: "POST", path: "/tokens", body: js{"note": fmt.Sprint(w.made)}}
	case 6:
		c = call{method: "PUT", path: fmt.Sprintf("/tenants/t%d", w.made), body: js{}}
	case 7:
		c = call{as: "provider", method: "POST", path: "/partitions", body: js{"name": fmt.Sprintf("p%d", w.made), "pkey": fmt.Sprintf("0x05%02x", r.IntN(256))}}
	case 8: // refused
		c = call{as: "blue", method: "DELETE", path: "/partitions/0x0100"}
	}
	s.do(c)
}

// reads are what red reads of everything that it may.
func (w *twins) reads() []string {
	s := w.one[0]
	node := nodeGUIDOf(s, s.hosts[0])
	list := []string{
		"/partitions", "/partitions/0x0100", "/partitions/0x0110", "/partitions/0x0100/members", "/partitions/0x0110/members", "/partitions/0x0110/members/" + s.hosts[4],
		"/tenants", "/tenants/red", "/ports", "/ports/" + s.hosts[0], "/approvals", "/pools", "/revisions", "/revisions?limit=2", "/revisions?oldest_first=true&limit=3",
		"/audit-log", "/audit-log?limit=2", "/audit-log?decision=refused", "/audit-log?oldest_first=true", "/events?kept=true", "/nodes", "/nodes/" + node, "/nodes/" + node + "/ports/1", "/map",
		"/proof", "/proof/pairs", "/matrix", "/matrix/ports?a=red&b=red", "/why?from=" + s.hosts[0] + "&to=" + s.hosts[1], "/peers?port=" + s.hosts[0], "/status",
		"/partitions/0x0200", "/ports/" + s.hosts[5], "/revisions/1", fmt.Sprintf("/revisions/%d", 1+w.r.IntN(12)), "/revisions/1000",
	}
	for _, path := range []string{"ufmRest/resources/pkeys?guids_data=true&qos_conf=true", "ufmRest/resources/pkeys/last_updated", "ufmRest/jobs"} {
		list = append(list, "//"+path)
	}
	return list
}

// writes is a change that red makes, or tries to.
func (w *twins) writes() call {
	s, r := w.one[0], w.r
	key := fmt.Sprintf("0x01%02x", 0x20+r.IntN(6))
	path := "/partitions/" + []string{key, "0x0110", "0x0100"}[r.IntN(3)]
	port := s.hosts[r.IntN(5)]
	header := map[string]string{}
	switch r.IntN(5) {
	case 0:
		header["If-Match"] = w.etags[path]
	case 1:
		header["If-Match"] = fmt.Sprintf(`"%d"`, r.IntN(30))
	case 2:
		header["Idempotency-Key"] = fmt.Sprint("k", r.IntN(5))
	}
	if header["If-Match"] == "" {
		delete(header, "If-Match")
	}
	query := []string{"", "", "?dry_run=true", "?wait=proved"}[r.IntN(4)]
	switch r.IntN(10) {
	case 0, 1:
		return call{method: "POST", path: "/partitions" + query, body: js{"pkey": key, "name": fmt.Sprintf("n%d", r.IntN(100))}, header: header}
	case 2:
		return call{method: "PUT", path: path + query, body: js{"name": fmt.Sprintf("n%d", r.IntN(100))}, header: header}
	case 3, 4:
		return call{method: "PUT", path: path + "/members/" + port + query, body: js{"membership": []string{"full", "limited"}[r.IntN(2)]}, header: header}
	case 5:
		return call{method: "DELETE", path: path + "/members/" + port + query, header: header}
	case 6:
		return call{method: "DELETE", path: path + query, header: header}
	case 7:
		return call{method: "POST", path: "/rollback" + query, body: js{"to": r.IntN(25)}, header: header}
	case 8:
		return call{method: "PUT", path: path + "/members" + query, body: joins("full", s.hosts[r.IntN(4)]), header: header}
	}
	return call{method: "POST", path: "//ufmRest/resources/pkeys", body: js{"pkey": key, "guids": []string{strings.TrimPrefix(port, "0x")}, "membership": "full"}}
}

// TestOthersDoNotCount: a tenant's answers, with the numbers of revisions, ETags, cursors, IDs of
// events and all counts in them, are the same bytes but for times whether others change something
// meanwhile or not. The provider's numbers are those of the store.
func TestOthersDoNotCount(t *testing.T) {
	for seed := range need.Share[uint64](1, 4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newTwins(t, seed)
			for range 60 {
				for range w.r.IntN(4) {
					w.others()
				}
				reads := w.reads()
				for range 6 {
					w.asked(call{method: "GET", path: reads[w.r.IntN(len(reads))]})
				}
				w.asked(w.writes())
			}
			for _, path := range w.reads() {
				w.asked(call{method: "GET", path: path})
			}
			var last [2]float64
			for i, s := range w.one {
				last[i] = s.want(200, call{method: "GET", path: "/partitions"})["revision"].(float64)
			}
			if last[1] <= last[0] {
				t.Errorf("the provider is at revision %v and %v: others changed nothing", last[0], last[1])
			}
			t.Logf("%d calls of red, %d of others; revisions %v", w.calls, w.made, last)
		})
	}
}

// pagesOf are all items of a list of red's, by pages of two.
func pagesOf(s *stand, path string) (out []string) {
	s.Helper()
	next := ""
	for range 100 {
		q := path + "?limit=2&cursor=" + next
		if next == "" {
			q = path + "?limit=2"
		}
		got := s.want(200, call{as: "red", method: "GET", path: q})
		for _, x := range got["items"].([]any) {
			text, _ := json.Marshal(x)
			out = append(out, string(text))
		}
		var more bool
		if next, more = got["next"].(string); !more {
			return out
		}
	}
	s.Fatal("the list does not end")
	return nil
}

// TestPagesOfATenant: pages of revisions and of the audit log go on where they were, whatever others
// do between, and have every entry once.
func TestPagesOfATenant(t *testing.T) {
	w := newTwins(t, 1)
	s := w.one[1]
	for i := range 7 {
		s.want(201, call{as: "red", method: "POST", path: "/partitions", body: js{"name": fmt.Sprintf("more%d", i)}})
		for range 5 {
			w.others()
		}
	}
	for _, path := range []string{"/revisions", "/audit-log"} {
		var whole []string
		for _, x := range s.want(200, call{as: "red", method: "GET", path: path + "?limit=1000"})["items"].([]any) {
			text, _ := json.Marshal(x)
			whole = append(whole, string(text))
		}
		if pages := pagesOf(s, path); !slices.Equal(pages, whole) || len(whole) < 10 {
			t.Errorf("%s: %d by pages, %d at once", path, len(pages), len(whole))
		}
	}
	// A cursor of one tenant is none of another's, nor of the provider.
	next := s.want(200, call{as: "red", method: "GET", path: "/audit-log?limit=1"})["next"].(string)
	for _, as := range []string{"blue", ""} {
		s.want(422, call{as: as, method: "GET", path: "/audit-log?cursor=" + next})
	}
	open := s.want(200, call{method: "GET", path: "/audit-log?limit=1"})["next"].(string)
	for _, bad := range []string{open, "AA", "%00", next[:len(next)-2]} {
		s.want(422, call{as: "red", method: "GET", path: "/audit-log?cursor=" + bad})
	}
}

// TestNumbersOfATenant: a tenant's revisions are numbered without gaps by what it sees, and each
// number leads to the revision, its event, and what a rollback to it brings back.
func TestNumbersOfATenant(t *testing.T) {
	w := newTwins(t, 2)
	s := w.one[1]
	last := uint64(s.want(200, call{as: "red", method: "GET", path: "/partitions"})["revision"].(float64))
	for i := range 5 {
		for range 1 + i {
			w.others()
		}
		name := fmt.Sprintf("step%d", i)
		var made js
		if i == 0 {
			made = s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0140", body: js{"name": name}})
		} else {
			made = s.want(200, call{as: "red", method: "PUT", path: "/partitions/0x0140", body: js{"name": name}, header: map[string]string{"If-Match": fmt.Sprintf(`"%d"`, last)}})
		}
		last++
		if made["revision"] != float64(last) || made["etag"] != fmt.Sprintf(`"%d"`, last) || made["follow"] != fmt.Sprintf("%s/revisions/%d", Prefix, last) {
			t.Fatalf("%v, want revision %d", made, last)
		}
		got := s.want(200, call{as: "red", method: "GET", path: fmt.Sprintf("/revisions/%d", last)})["item"].(js)
		if text := fmt.Sprint(got); got["revision"] != float64(last) || !strings.Contains(text, name) {
			t.Errorf("revision %d is %s", last, text)
		}
	}
	s.want(412, call{as: "red", method: "PUT", path: "/partitions/0x0140", body: js{"name": "late"}, header: map[string]string{"If-Match": fmt.Sprintf(`"%d"`, last-1)}})
	events := s.do(call{as: "red", method: "GET", path: "/events?kept=true"})
	revisions, ids := map[float64]bool{}, 0
	lines := bufio.NewScanner(events.Body)
	for lines.Scan() {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			var e js
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			ids++
			if _, n, _ := strings.Cut(e["id"].(string), "-"); n != fmt.Sprint(ids) {
				t.Errorf("event %d is %v", ids, e)
			}
			revisions[e["revision"].(float64)] = true
		}
	}
	for n := range last {
		if !revisions[float64(n+1)] {
			t.Errorf("no event of revision %d of %d", n+1, last)
		}
	}
	for range 7 {
		w.others()
	}
	s.want(200, call{as: "red", method: "POST", path: "/rollback", body: js{"to": last - 2}})
	if got := s.want(200, call{as: "red", method: "GET", path: "/partitions/0x0140"})["item"].(js); got["name"] != "step2" {
		t.Errorf("after the rollback it is %v", got)
	}
	s.want(404, call{as: "red", method: "POST", path: "/rollback", body: js{"to": last + 100}})
	s.want(404, call{as: "red", method: "GET", path: fmt.Sprintf("/revisions/%d", last+100)})
}
