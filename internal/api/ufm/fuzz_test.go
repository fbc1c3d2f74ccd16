package ufm_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/ufm"
)

// newRequest is a request with a path as it is on the wire.
func newRequest(ctx context.Context, method, path, body string) *http.Request {
	return httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
}

// FuzzCalls sends anything as anybody: no 5xx, no redirect, no panic, every answer is
// JSON (see send), and blue's partition, which no caller here may change, stays as it is.
func FuzzCalls(f *testing.F) {
	for _, c := range everyCall {
		f.Add(uint8(1), c.method, "/ufmRest/"+c.path, c.body)
	}
	f.Add(uint8(0), "POST", "/dologin", "httpd_username=red&httpd_password=x")
	f.Add(uint8(2), "PUT", "/ufmRestV3/resources/pkeys", `{"pkey":"0x2010","guids":[]}`)
	f.Add(uint8(1), "GET", "/ufmRest/resources/pkeys/0x2010?guids_data=true&qos_conf=true", "")
	f.Add(uint8(1), "DELETE", "/ufmRest/resources/pkeys/0x2010/hosts/node[01-99],x[", "")
	f.Add(uint8(1), "POST", "/ufmRest/resources/pkeys", `{"pkey":1e3,"guids":"a,b","memberships":[],"index0":"None","rate_limit":"2.5"}`)
	f.Add(uint8(1), "GET", "/ufmRest/%zz/%2f//..;", "\x00\xff")
	r := newRig(f, ufm.Options{Wait: -1}) // one service for all inputs of a worker
	r.as("blue", 200, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":"0x2010","guids":["0002c90300000031"]}`)
	f.Fuzz(func(t *testing.T, who uint8, method, path, body string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") || strings.ContainsAny(method, " \r\n") || method == "" {
			return
		}
		q := &http.Request{Method: method, URL: u, Header: http.Header{}, Body: http.NoBody, Host: "ufm", RemoteAddr: "127.0.0.1:1"}
		if body != "" {
			q.Body = newRequest(t.Context(), "POST", "/", body).Body
		}
		switch who % 3 {
		case 1:
			q.Header.Set("Authorization", basic("red", r.secrets["red"]))
		case 2:
			q.Header.Set("Authorization", body)
		}
		if u.Path == "/dologin" {
			q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		r.TB = t
		if out := r.send(q.WithContext(context.Background())); out.status >= 500 || out.status < 200 {
			t.Errorf("%s %s %q: %d %s", method, path, body, out.status, out.body)
		}
		if got := r.members(0x2010); len(got) != 1 || got[0] != blueNode03 {
			t.Errorf("%s %s %q: blue's partition has %x", method, path, body, got)
		}
	})
}
