package ufm_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"net/http/httptest"

	"github.com/ibwarden/ibwarden/internal/api/ufm"
)

// sequence is what one client sends, call by call, and what it needs to get.
type sequence struct {
	Client string `json:"client"`
	About  string `json:"about"`
	// As is the tenant, and By the way in: basic, raw, base64, bearer, certificate or
	// session.
	As    string `json:"as"`
	By    string `json:"by"`
	Steps []step `json:"steps"`
}

type step struct {
	// Send is METHOD PATH, with {id} for the ID of the last job.
	Send   string          `json:"send"`
	Body   json.RawMessage `json:"body"`
	Status int             `json:"status"`
	// Bytes are all of the answer; Reply is the same as JSON, where the string *
	// fits anything; Has are fields of it, and Says a part of the text.
	Bytes *string         `json:"bytes"`
	Reply json.RawMessage `json:"reply"`
	Has   json.RawMessage `json:"has"`
	Says  string          `json:"says"`
	Why   string          `json:"why"`
}

// TestClients plays what each client sends, as data, against a fabric of its own.
func TestClients(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*.json")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files in testdata/clients, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s sequence
			d := json.NewDecoder(strings.NewReader(string(data)))
			d.DisallowUnknownFields()
			if err := d.Decode(&s); err != nil || len(s.Steps) == 0 {
				t.Fatalf("%d steps, %v", len(s.Steps), err)
			}
			newRig(t, ufm.Options{}).play(s)
		})
	}
}

// session logs in and returns the cookie.
func (r *rig) session(user, password string) string {
	r.Helper()
	form := url.Values{"httpd_username": {user}, "httpd_password": {password}}
	q := httptest.NewRequest(http.MethodPost, "/dologin", strings.NewReader(form.Encode()))
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	out := r.send(q)
	if out.status != 200 {
		r.Fatalf("login of %s: %d %s", user, out.status, out.body)
	}
	cookie, _, _ := strings.Cut(out.header.Get("Set-Cookie"), ";")
	return cookie
}

func (r *rig) play(s sequence) {
	r.Helper()
	secret := r.secrets[s.As]
	auth := map[string]string{
		"basic": basic(s.As, secret), "raw": "Basic " + secret, "base64": basic(secret, ""),
		"bearer": "Bearer " + secret, "certificate": "PEER:" + s.As, "session": "",
	}[s.By]
	var cookie, id string
	if s.By == "session" {
		cookie = r.session(s.As, secret)
	} else if auth == "" {
		r.Fatalf("no way in %q", s.By)
	}
	for i, step := range s.Steps {
		method, path, _ := strings.Cut(strings.ReplaceAll(step.Send, "{id}", id), " ")
		q := httptest.NewRequest(method, path, strings.NewReader(string(step.Body)))
		if tenant, peer := strings.CutPrefix(auth, "PEER:"); peer {
			q.Header.Set("X-Test-Peer", tenant)
			q.Header.Set("Authorization", "")
		} else if auth != "" {
			q.Header.Set("Authorization", auth)
		} else {
			q.Header.Set("Cookie", cookie)
		}
		out := r.send(q)
		r.Logf("%s %s -> %d %s", step.Send, step.Body, out.status, out.body)
		if out.status != step.Status {
			r.Fatalf("step %d, %s: %d %s: want %d (%s)", i+1, step.Send, out.status, out.body, step.Status, step.Why)
		}
		if step.Bytes == nil && step.Reply == nil && step.Has == nil && step.Says == "" {
			r.Fatalf("step %d, %s: nothing is asserted of the answer", i+1, step.Send)
		}
		if step.Bytes != nil && out.body != *step.Bytes {
			r.Fatalf("step %d, %s: %q: want %q (%s)", i+1, step.Send, out.body, *step.Bytes, step.Why)
		}
		if step.Reply != nil && !fits(r.decode(step.Reply), r.decode([]byte(out.body)), true) {
			r.Fatalf("step %d, %s: %s: want %s (%s)", i+1, step.Send, out.body, step.Reply, step.Why)
		}
		if step.Has != nil && !fits(r.decode(step.Has), r.decode([]byte(out.body)), false) {
			r.Fatalf("step %d, %s: %s: want at least %s (%s)", i+1, step.Send, out.body, step.Has, step.Why)
		}
		if !strings.Contains(out.body, step.Says) {
			r.Fatalf("step %d, %s: %s: want a text with %q (%s)", i+1, step.Send, out.body, step.Says, step.Why)
		}
		if job, is := r.decode([]byte(out.body)).(map[string]any); is && job["id"] != nil {
			id, _ = job["id"].(string)
		}
		r.manager.work.Wait() // so that the next step finds this one proved
	}
}

func (r *rig) decode(data []byte) (v any) {
	r.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		r.Fatalf("%s: %v", data, err)
	}
	return v
}

// fits reports whether a value is as wanted; whole forbids fields that were not named.
// Lists are compared element by element.
func fits(want, got any, whole bool) bool {
	if want == "*" {
		return got != nil
	}
	switch want := want.(type) {
	case map[string]any:
		g, is := got.(map[string]any)
		if !is || whole && len(g) != len(want) {
			return false
		}
		for k, v := range want {
			if x, there := g[k]; !there || !fits(v, x, whole) {
				return false
			}
		}
		return true
	case []any:
		g, is := got.([]any)
		if !is || len(g) != len(want) {
			return false
		}
		for i := range want {
			if !fits(want[i], g[i], whole) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}
