package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/views"
)

// served is a client of a server that answers as a test wants, and what it was asked.
type served struct {
	*Client
	asked []string
	old   []string
}

// serving answers each request with the next of these, the last of them for ever.
func serving(t *testing.T, answers ...func(w http.ResponseWriter)) *served {
	s := &served{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		line := r.Method + " " + r.URL.RequestURI()
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			if !slices.Contains([]string{"User-Agent", "Accept-Encoding", "Content-Length"}, name) {
				line += " " + name + "=" + r.Header.Get(name)
			}
		}
		s.asked = append(s.asked, strings.TrimSpace(line+" "+string(body)))
		answers[min(len(s.asked), len(answers))-1](w)
	}))
	t.Cleanup(server.Close)
	c, err := New(listen.Server{URL: server.URL}, Options{Token: "ibw_secret", Old: func(why string) { s.old = append(s.old, why) }})
	if err != nil {
		t.Fatal(err)
	}
	s.Client = c
	return s
}

func text(body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { io.WriteString(w, body) }
}

// wasAsked compares the requests with these; what goes for all of them is left out.
func (s *served) wasAsked(t *testing.T, want ...string) {
	t.Helper()
	for i, line := range s.asked {
		s.asked[i] = strings.Replace(strings.Replace(line, " Authorization=Bearer ibw_secret", "", 1), api.Prefix, "", 1)
		if s.asked[i] == line {
			t.Errorf("without a token or not below %s: %s", api.Prefix, line)
		}
	}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked\n%q\nwant\n%q", s.asked, want)
	}
}

// TestWrite: each parameter of a write is sent, and nothing where there is none.
func TestWrite(t *testing.T) {
	for want, p := range map[string]Params{
		"PUT /x": {}, "PUT /x?dry_run=true": {DryRun: true}, "PUT /x?wait=proved": {Wait: true}, `PUT /x If-Match="7"`: {Match: `"7"`}, "PUT /x If-None-Match=*": {None: true},
		"PUT /x Idempotency-Key=k": {Repeat: "k"}, "PUT /x Why=because": {Why: "because"}, "PUT /x?a=b": {Query: url.Values{"a": {"b"}}},
		`PUT /x?a=b&dry_run=true&wait=proved Idempotency-Key=k If-Match="7" If-None-Match=* Why=w`: {true, true, `"7"`, true, "k", "w", url.Values{"a": {"b"}}},
	} {
		s := serving(t, text(`{"n":5}`))
		var out struct{ N int }
		if err := s.Write(t.Context(), http.MethodPut, "/x", p, nil, &out); err != nil || out.N != 5 {
			t.Errorf("%s: %+v, %v", want, out, err)
		}
		s.wasAsked(t, want)
		if p.Query != nil && len(p.Query) != 1 {
			t.Errorf("%s: the query of the caller has become %v", want, p.Query)
		}
	}
	s := serving(t, text(`{}`))
	if err := s.Write(t.Context(), http.MethodPost, "/x", Params{}, map[string]int{"a": 1}, &struct{}{}); err != nil {
		t.Error(err)
	}
	s.wasAsked(t, `POST /x Content-Type=application/json {"a":1}`)
	if err := s.Write(t.Context(), http.MethodPost, "/x", Params{}, func() {}, &struct{}{}); err == nil || len(s.asked) != 1 {
		t.Errorf("a body that is no JSON: %v, %d requests", err, len(s.asked))
	}
}

// TestLists: a list is read to its end, page by page, or as far as was asked.
func TestLists(t *testing.T) {
	page := func(from, n int, next string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			items := make([]string, n)
			for i := range items {
				items[i] = fmt.Sprint(from + i)
			}
			fmt.Fprintf(w, `{"items":[%s],"next":%q}`, strings.Join(items, ","), next)
		}
	}
	query := url.Values{"of": {"red"}}
	s := serving(t, page(0, 2, "more"), page(2, 1, ""))
	items, err := All[int](t.Context(), s.Client, "/x", query)
	if err != nil || !slices.Equal(items, []int{0, 1, 2}) {
		t.Errorf("%v, %v", items, err)
	}
	s.wasAsked(t, "GET /x?limit=1000&of=red", "GET /x?cursor=more&limit=1000&of=red")
	if len(query) != 1 {
		t.Errorf("the query of the caller has become %v", query)
	}
	if items, err := All[int](t.Context(), serving(t, page(0, 0, "")).Client, "/x", nil); err != nil || items == nil || len(items) != 0 {
		t.Errorf("an empty list: %v, %v", items, err)
	}
	for _, x := range []struct {
		limit int
		asked []string
		want  int
	}{
		{0, nil, 0},
		{1, []string{"GET /x?limit=1&of=red"}, 1},
		{1001, []string{"GET /x?limit=1000&of=red", "GET /x?cursor=more&limit=1&of=red"}, 1001},
		{1500, []string{"GET /x?limit=1000&of=red", "GET /x?cursor=more&limit=500&of=red"}, 1001},
	} {
		s := serving(t, page(0, min(x.limit, 1000), "more"), page(1000, 1, ""))
		items, err := Page[int](t.Context(), s.Client, "/x", x.limit, query)
		if err != nil || len(items) != x.want || items == nil {
			t.Errorf("%d of a list: %d, %v", x.limit, len(items), err)
		}
		s.wasAsked(t, x.asked...)
	}
	wrong := serving(t, func(w http.ResponseWriter) { w.WriteHeader(500) })
	if items, err := All[int](t.Context(), wrong.Client, "/x", nil); err == nil || items != nil {
		t.Errorf("%v, %v", items, err)
	}
	if items, err := Page[int](t.Context(), wrong.Client, "/x", 1, nil); err == nil || items != nil {
		t.Errorf("%v, %v", items, err)
	}
}

// TestAnswers: one object with its ETag, and every way in which an answer is none.
func TestAnswers(t *testing.T) {
	tagged := func(w http.ResponseWriter) {
		w.Header().Set("ETag", `"9"`)
		io.WriteString(w, `{"item":{"N":4}}`)
	}
	item, etag, err := Get[struct{ N int }](t.Context(), serving(t, tagged).Client, "/x", nil)
	if err != nil || item.N != 4 || etag != `"9"` {
		t.Errorf("%+v, %s, %v", item, etag, err)
	}
	if n, err := Whole[int](t.Context(), serving(t, text("6")).Client, "/x", url.Values{}); err != nil || n != 6 {
		t.Errorf("%d, %v", n, err)
	}
	status := func(code int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code); io.WriteString(w, body) }
	}
	for _, x := range []struct {
		name   string
		answer func(http.ResponseWriter)
		want   string // after the server
	}{
		{"a problem", status(409, `{"detail":"it is taken","status":200}`), "it is taken"},
		{"the last status of success", status(299, `7`), ""},
		{"a redirect", func(w http.ResponseWriter) { w.Header().Set("Location", "/y"); w.WriteHeader(302) }, "SERVER: the server redirects, which ibwarden does not do"},
		{"the first that is none", status(300, `7`), "SERVER: 300 Multiple Choices"},
		{"an error without a word", status(502, `{}`), "SERVER: 502 Bad Gateway"},
		{"an error that is no JSON", status(502, `<html>`), "SERVER: 502 Bad Gateway"},
		{"no JSON", text("<html>"), "answer of SERVER: invalid character '<' looking for beginning of value"},
		{"half an answer", func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9"); io.WriteString(w, "7") }, "answer of SERVER: unexpected EOF"},
		{"too much", text(strings.Repeat(" ", answerMax) + "7"), fmt.Sprintf("answer of SERVER: longer than %d bytes", answerMax)},
		{"as much as may be", text(strings.Repeat(" ", answerMax-1) + "7"), ""},
	} {
		s := serving(t, x.answer)
		n, err := Whole[int](t.Context(), s.Client, "/x", nil)
		switch want := strings.ReplaceAll(x.want, "SERVER", s.Server()); {
		case want == "" && (err != nil || n != 7):
			t.Errorf("%s: %d, %v", x.name, n, err)
		case want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)):
			t.Errorf("%s: %v, want %s", x.name, err, want)
		}
		var p *api.Problem
		if is := errors.As(err, &p); is != (x.name == "a problem") || is && p.Status != 409 {
			t.Errorf("%s: %+v", x.name, p)
		}
	}
}

// TestOldIsToldOnce: why what the service answers may be old.
func TestOldIsToldOnce(t *testing.T) {
	s := serving(t, text("1"), func(w http.ResponseWriter) { w.Header().Set("Ibwarden-Old", "lost"); io.WriteString(w, "1") })
	for range 3 {
		if _, err := Whole[int](t.Context(), s.Client, "/x", nil); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(s.old, []string{"lost"}) {
		t.Errorf("told %q", s.old)
	}
	s.Client.old = nil
	if _, err := Whole[int](t.Context(), s.Client, "/x", nil); err != nil {
		t.Error(err)
	}
}

// TestFetch: what is no JSON is copied, or it is said that it is not whole.
func TestFetch(t *testing.T) {
	var out bytes.Buffer
	s := serving(t, text("a backup"))
	if err := s.Fetch(t.Context(), "/x", url.Values{"a": {"b"}}, &out); err != nil || out.String() != "a backup" {
		t.Errorf("%q, %v", out.String(), err)
	}
	s.wasAsked(t, "GET /x?a=b")
	half := serving(t, func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9"); io.WriteString(w, "7") })
	if err := half.Fetch(t.Context(), "/x", nil, io.Discard); err == nil || err.Error() != "answer of "+half.Server()+" is not whole: unexpected EOF" {
		t.Errorf("half of it: %v", err)
	}
	if err := serving(t, func(w http.ResponseWriter) { w.WriteHeader(404) }).Fetch(t.Context(), "/x", nil, io.Discard); err == nil {
		t.Error("what is not there is fetched")
	}
}

// TestProbe: what answers has to be ibwarden; whether it takes this client, its status tells.
func TestProbe(t *testing.T) {
	ours := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.Header().Set("Server", api.ServerName); w.WriteHeader(code) }
	}
	for _, code := range []int{200, 401, 503} {
		s := serving(t, ours(code))
		if status, err := s.Probe(t.Context()); err != nil || status != code {
			t.Errorf("%d: %d, %v", code, status, err)
		}
		s.wasAsked(t, "GET /tenants?limit=1")
	}
	s := serving(t, text("{}"))
	if status, err := s.Probe(t.Context()); !errors.Is(err, ErrStranger) || status != 0 || !strings.HasPrefix(err.Error(), s.Server()+": ") {
		t.Errorf("a stranger: %d, %v", status, err)
	}
	path := filepath.Join(t.TempDir(), "s")
	gone, err := New(listen.Server{Socket: path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Probe(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("a socket that is not there: %v", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a token that was not given is sent")
		}
		ours(200)(w)
	}))
	for _, own := range []bool{false, true} {
		c, err := New(listen.Server{Socket: path}, Options{OwnOnly: own})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := c.Probe(t.Context()); err != nil || status != 200 {
			t.Errorf("a socket of one's own, %v: %d, %v", own, status, err)
		}
	}
	l.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	c, err := New(listen.Server{URL: "http://" + free.Addr().String()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Probe(t.Context()); !errors.Is(err, ErrNone) || strings.Contains(err.Error(), "/tenants") {
		t.Errorf("a port at which nobody listens: %v", err)
	}
}

// TestOptions: what cannot be used is said before anything is sent.
func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"CA of the server: want certificates in PEM":                                        {CA: []byte("x")},
		"client certificate and key: tls: failed to find any PEM data in certificate input": {Certificate: []byte("x")},
	} {
		if _, err := New(listen.Server{URL: "https://127.0.0.1:1"}, o); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestEvents: events as they come, those that are kept, and an end that was not wanted.
func TestEvents(t *testing.T) {
	const two = "id: 1\ndata: {\"id\":\"a-1\",\"text\":\"one\"}\n\n: a comment\n\ndata: {\"id\":\"a-2\",\"text\":\"two\"}\n\n"
	type stream = func(c *Client, ctx context.Context, after string) []string
	collect := func(seq func(func(views.Event, error) bool)) (got []string) {
		for e, err := range seq {
			if err != nil {
				return append(got, err.Error())
			}
			got = append(got, e.ID+" "+e.Text)
		}
		return got
	}
	all := stream(func(c *Client, ctx context.Context, after string) []string { return collect(c.Events(ctx, after)) })
	kept := stream(func(c *Client, ctx context.Context, after string) []string { return collect(c.KeptEvents(ctx, after)) })
	for _, x := range []struct {
		body  string
		of    stream
		after string
		asked string
		want  []string
	}{
		{two, all, "", "GET /events", []string{"a-1 one", "a-2 two", "SERVER ended the stream of events"}},
		{two, kept, "", "GET /events?kept=true", []string{"a-1 one", "a-2 two"}},
		{two, all, "a-0", "GET /events?after=a-0", []string{"a-1 one", "a-2 two", "SERVER ended the stream of events"}},
		{two, kept, "a-0", "GET /events?after=a-0&kept=true", []string{"a-1 one", "a-2 two"}},
		{"data: {\n\n" + two, all, "", "GET /events", []string{"unexpected end of JSON input"}},
		{"data: " + strings.Repeat("x", eventMax) + "\n", kept, "", "GET /events?kept=true", []string{"bufio.Scanner: token too long"}},
	} {
		s := serving(t, text(x.body))
		got := x.of(s.Client, t.Context(), x.after)
		for i := range x.want {
			x.want[i] = strings.ReplaceAll(x.want[i], "SERVER", s.Server())
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%.40q: %q, want %q", x.body, got, x.want)
		}
		s.wasAsked(t, x.asked)
	}
	s := serving(t, text(two))
	for range s.Events(t.Context(), "") {
		break // who reads no more is sent no more
	}
	if got := all(serving(t, func(w http.ResponseWriter) { w.WriteHeader(500) }).Client, t.Context(), ""); len(got) != 1 || !strings.HasSuffix(got[0], "500 Internal Server Error") {
		t.Errorf("no stream: %q", got)
	}
}
