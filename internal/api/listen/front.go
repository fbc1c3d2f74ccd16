// This file looks at requests of the API before anybody asks who sent them: it refuses
// what two programs could read differently, and what a browser sends for a page of another
// site.

package listen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// Limits of requests, in bytes.
const (
	PathMax  = 1024
	QueryMax = 8 << 10
)

// single are headers that may be there once.
var single = []string{"If-Match", "If-None-Match", "Idempotency-Key", "Why", "Last-Event-Id", "Content-Type"}

// PlainPath refuses requests that two programs could read differently.
func PlainPath(r *http.Request) *Problem {
	p := r.URL.Path
	clean := path.Clean(p)
	switch {
	case len(r.URL.EscapedPath()) > PathMax || len(r.URL.RawQuery) > QueryMax:
		return NewProblem(http.StatusRequestURITooLong, TooLarge, "the path or the query is too long")
	case r.Method == http.MethodConnect, p == "" || p[0] != '/':
		return NewProblem(http.StatusBadRequest, Malformed, "want a path")
	case p != clean || !utf8.ValidString(p) || strings.ContainsAny(p, "\x00\\"):
		return NewProblem(http.StatusNotFound, "not-found", "want a path without //, . or .., and without a slash at its end")
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return NewProblem(http.StatusBadRequest, Malformed, "the query cannot be read")
	}
	for name, values := range query {
		if len(values) > 1 {
			return FieldProblem(http.StatusBadRequest, Malformed, "query."+name, "is there twice")
		}
		if values[0] == "" || !utf8.ValidString(values[0]) {
			return FieldProblem(http.StatusBadRequest, Malformed, "query."+name, "want a value, in UTF-8")
		}
	}
	for _, name := range single {
		if len(r.Header.Values(name)) > 1 {
			return FieldProblem(http.StatusBadRequest, Malformed, "header."+name, "is there twice")
		}
		if !utf8.ValidString(r.Header.Get(name)) {
			return FieldProblem(http.StatusBadRequest, Malformed, "header."+name, "want UTF-8")
		}
	}
	return nil
}

// Addressed refuses a request over plain HTTP whose header Host is none of this machine:
// the name of a page of another site that came to stand for an address of ours (DNS
// rebinding). Over TLS the certificate has the name, and over the Unix socket, which is
// what local means, no browser comes.
func Addressed(r *http.Request, local bool) *Problem {
	if r.TLS != nil || local || r.Host == "" { // browsers send one
		return nil
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || IsLoopback(host) {
		return nil
	}
	return NewProblem(http.StatusMisdirectedRequest, "misdirected", "the header Host names another machine: over plain HTTP want a loopback address (127.0.0.1, [::1]) or localhost")
}

var protection = http.NewCrossOriginProtection()

// SameSite refuses a change that a browser sends for a page of another site.
func SameSite(r *http.Request) *Problem {
	if protection.Check(r) != nil {
		return NewProblem(http.StatusForbidden, "forbidden", "a browser sent this for the page of another site")
	}
	return nil
}

// Digest is the SHA-256 of what a request asks for: not how long it waits, what has to be
// there before, or how its JSON is spelled.
func Digest(r *http.Request, body []byte) string {
	query := r.URL.Query()
	query.Del("wait")
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		body, _ = json.Marshal(v) // with the keys in order
	}
	return SecretSum(fmt.Appendf(nil, "%s %s\n%s\n%s", r.Method, r.URL.Path, query.Encode(), body))
}
