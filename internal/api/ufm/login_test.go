package ufm_test

import (
	"context"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/ufm"
)

// TestLoginIsAsked: a login is a form that is sent by POST, from a page of the service or from no
// browser; another one gets no session, and nobody counts it as a guess of a password.
func TestLoginIsAsked(t *testing.T) {
	r := newRig(t, ufm.Options{})
	form := url.Values{"httpd_username": {"red"}, "httpd_password": {r.secrets["red"]}}.Encode()
	for _, x := range []struct {
		method, body, kind string
		header             [2]string
		status             int
		want               string
	}{
		{"POST", form, "application/x-www-form-urlencoded", [2]string{"X", "y"}, 200, ""},
		{"POST", form, "application/x-www-form-urlencoded", [2]string{"Sec-Fetch-Site", "same-origin"}, 200, ""},
		{"POST", form, "application/x-www-form-urlencoded", [2]string{"Sec-Fetch-Site", "cross-site"}, 403, "a browser sent this for the page of another site"},
		{"GET", "", "", [2]string{"X", "y"}, 405, "GET is not for this path: want POST"},
		{"POST", "a=%zz", "application/x-www-form-urlencoded", [2]string{"X", "y"}, 400, "body: want a form with httpd_username and httpd_password"},
	} {
		r.heard = nil
		q := httptest.NewRequestWithContext(context.Background(), x.method, "/dologin", strings.NewReader(x.body))
		q.Header.Set("Content-Type", x.kind)
		q.Header.Set(x.header[0], x.header[1])
		out := r.send(q)
		if out.status != x.status || !strings.Contains(out.body, x.want) {
			t.Errorf("%s %s %v: %d %s, want %d %s", x.method, x.body[:min(len(x.body), 10)], x.header, out.status, out.body, x.status, x.want)
		}
		if cookie := out.header.Get("Set-Cookie"); (cookie != "") != (x.status == 200) {
			t.Errorf("%s %v: a session: %q", x.method, x.header, cookie)
		}
		if x.status != 200 && len(r.heard) > 0 {
			t.Errorf("%s %v: heard %q", x.method, x.header, r.heard)
		}
	}
}

// TestOwns: which paths are UFM's, however they are written.
func TestOwns(t *testing.T) {
	for path, want := range map[string]bool{
		"/ufmRest": true, "/ufmRestV3/x": true, "//ufmRest/": true, "/ufm%52est/x": true, "/dologin": true, "/%64ologin": true, "/dologinx": false,
		"/ufmRest%2Fx": false, "/ufmRest%zz": false, "/": false, "": false, "/v1/tenants": false, "/x/ufmRest": false,
	} {
		if got := ufm.Owns(path); got != want {
			t.Errorf("%s is UFM's: %v", path, got)
		}
	}
}

// TestOneAuthorization: two headers leave open who calls.
func TestOneAuthorization(t *testing.T) {
	r := newRig(t, ufm.Options{})
	q := httptest.NewRequestWithContext(context.Background(), "GET", "/ufmRest/resources/pkeys", nil)
	q.Header["Authorization"] = []string{basic("red", r.secrets["red"]), basic("blue", r.secrets["blue"])}
	if out := r.send(q); out.status != 401 || !strings.Contains(out.body, "want one header Authorization") {
		t.Errorf("%d %s", out.status, out.body)
	}
}
