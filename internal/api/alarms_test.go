package api

import (
	"strings"
	"testing"
	"time"
)

// An alarm is acknowledged by whom it concerns and nobody else, goes on, and is in the audit log.
func TestAcknowledgeAlarms(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.want(200, call{method: "POST", path: "/ports/assign", body: js{"tenant": "red", "ports": []js{{"guid": "0x00000000000f0001"}}}})
	alarm := func(as string) js {
		t.Helper()
		for _, x := range s.want(200, call{as: as, method: "GET", path: "/alarms?audit=true&limit=1000"})["items"].([]any) {
			if x := x.(js); x["where"] == "0x00000000000f0001" {
				return x
			}
		}
		t.Fatalf("%q is not told of the port that is not there", as)
		return nil
	}
	if w := s.do(call{as: "blue", method: "GET", path: "/alarms"}); strings.Contains(w.Body.String(), "f0001") {
		t.Errorf("blue is told %s", w.Body)
	}
	id, until := alarm("red")["id"], time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	body := js{"alarm": id, "until": until, "note": "it is on its way"}
	post := call{method: "POST", path: "/alarms/acknowledge", body: body}
	for as, status := range map[string]int{"blue": 404, "reader": 403, "nobody": 401} {
		post.as = as
		s.want(status, post)
	}
	post.as = "red"
	s.want(200, post)
	for as, want := range map[string]bool{"red": true, "reader": true, "provider": false} {
		x, is := alarm(as)["acknowledged"].(js)
		if is != want || is && (x["note"] != body["note"] || x["until"] != until) {
			t.Errorf("%s: acknowledged %v, want %v", as, x, want)
		}
	}
	for as, want := range map[string]bool{"red": true, "blue": false} {
		if w := s.do(call{as: as, method: "GET", path: "/audit-log"}); strings.Contains(w.Body.String(), "acknowledge alarm") != want {
			t.Errorf("%s: the audit log says %s", as, w.Body)
		}
	}
	if w := s.do(call{as: "blue", method: "GET", path: "/revisions"}); strings.Contains(w.Body.String(), "f0001") {
		t.Errorf("blue is told %s", w.Body)
	}
	post.body = js{"alarm": id}
	s.want(200, post)
	if x := alarm("red")["acknowledged"]; x != nil {
		t.Errorf("it is still acknowledged: %v", x)
	}
}
