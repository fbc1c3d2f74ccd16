package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/test/need"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

const descriptionFile = "../../docs/openapi.json"

// TestDescriptionIsThatOfTheHandlers holds docs/openapi.json against the handlers; with
// -update it writes it.
func TestDescriptionIsThatOfTheHandlers(t *testing.T) {
	got, err := Description("1")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(descriptionFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(descriptionFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/openapi.json is not the description of the handlers: go test ./internal/api -run TestDescription -update writes it; look at what changed")
	}
}

// described is the description as kin-openapi reads it, which shares no code with the
// framework that made it.
func described(t testing.TB) (*openapi3.T, routers.Router) {
	t.Helper()
	data, err := Description("1")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"application/jsonl", "application/openapi+json", "text/event-stream"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.FileBodyDecoder)
	}
	openapi3filter.RegisterBodyDecoder(listen.MergePatchType, openapi3filter.JSONBodyDecoder)
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return doc, router
}

func TestDescriptionIsValid(t *testing.T) {
	doc, _ := described(t)
	ids := map[string]bool{}
	used := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if len(op.Tags) != 1 || doc.Tags.Get(op.Tags[0]) == nil {
				t.Errorf("%s %s: tags %q, want one that is described", method, path, op.Tags)
			} else {
				used[op.Tags[0]] = true
			}
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" {
				t.Errorf("%s %s: operation ID %q, summary %q: want both, the ID once", method, path, op.OperationID, op.Summary)
			}
			ids[op.OperationID] = true
		}
	}
	if len(ids) < 30 {
		t.Errorf("%d operations: want 30 at least", len(ids))
	}
	if len(used) != len(doc.Tags) {
		t.Errorf("%d tags are described, %d used", len(doc.Tags), len(used))
	}
}

// checkReply holds a reply against the description.
func checkReply(router routers.Router, r *http.Request, w *httptest.ResponseRecorder) error {
	if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
		return fmt.Errorf("status %d", w.Code)
	}
	route, params, err := router.FindRoute(r)
	if err != nil {
		// Nothing is described there: the answer is a problem.
		var p Problem
		if json.Unmarshal(w.Body.Bytes(), &p) != nil || p.Status != w.Code || p.Detail == "" || w.Code < 400 {
			return fmt.Errorf("%d %s: want a problem", w.Code, w.Body)
		}
		return nil
	}
	if kind := w.Header().Get("Content-Type"); kind == "application/openapi+json" && json.Valid(w.Body.Bytes()) {
		return nil // an object of which no more is said
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: w.Code, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(w.Body.Bytes())),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeReadOnlyValidations: true},
	})
}

// maker makes requests from the schemas of the description, right and wrong.
type maker struct {
	*rand.Rand
	doc   *openapi3.T
	pool  map[string][]string // values that exist, by the name of the parameter or field
	wrong int                 // one value in so many is wrong; 0 for none
}

func (m *maker) pick(list []string) string { return list[m.IntN(len(list))] }

// wild are values that no field wants, or that programs trip over.
var wild = []any{
	nil, true, -1, 0, 1.5, 1e300, "", "x", "0x0000", "0x7fff", "0xffff", "../..", "a/b", "%2e%2e", "\u0000", "\u202e", "é", "🦊", strings.Repeat("y", 5000),
	[]any{}, map[string]any{}, []any{nil, []any{}}, map[string]any{"$ref": "#"}, "<script>", "'; --", "1e999", 9007199254740993,
}

// value makes a value of a schema.
func (m *maker) value(name string, ref *openapi3.SchemaRef, depth int) any {
	s := ref.Value
	if m.wrong > 0 && m.IntN(m.wrong) == 0 {
		return wild[m.IntN(len(wild))]
	}
	if list := m.pool[name]; len(list) > 0 && s.Type.Is("string") && m.IntN(8) > 0 {
		return m.pick(list)
	}
	if s.Type.Includes("null") && m.IntN(4) == 0 {
		return nil
	}
	if len(s.Enum) > 0 {
		return s.Enum[m.IntN(len(s.Enum))]
	}
	switch {
	case s.Type.Includes("object"):
		out := map[string]any{}
		names := slices.Sorted(keysOf(s.Properties))
		for _, n := range names {
			if slices.Contains(s.Required, n) || depth < 4 && m.IntN(3) == 0 {
				out[n] = m.value(n, s.Properties[n], depth+1)
			}
		}
		if of := s.AdditionalProperties.Schema; of != nil && len(names) == 0 { // labels
			out[m.pick([]string{"env", "example.com/rack"})] = m.value("label", of, depth+1)
		}
		return out
	case s.Type.Includes("array"):
		out := []any{}
		for range int(s.MinItems) + m.IntN(4) {
			out = append(out, m.value(name, s.Items, depth+1))
		}
		return out
	case s.Type.Includes("integer"), s.Type.Includes("number"):
		low, high := 0.0, 100.0
		if s.Min != nil {
			low = *s.Min
		}
		if s.Max != nil {
			high = min(*s.Max, low+100)
		}
		n := low + float64(m.IntN(int(high-low)+1))
		if s.Type.Includes("number") {
			return []float64{2.5, 10, 100, n}[m.IntN(4)]
		}
		return int(n)
	case s.Type.Includes("boolean"):
		return m.IntN(2) == 0
	}
	switch {
	case s.Format == "date-time":
		return time.Now().Add(time.Duration(m.IntN(1000)-200) * time.Hour).UTC().Format(time.RFC3339)
	case strings.Contains(s.Pattern, "{1,4}"):
		return fmt.Sprintf("0x%04x", m.IntN(0x8100))
	case strings.Contains(s.Pattern, "{16}"):
		return fmt.Sprintf("0x%016x", m.IntN(1<<20))
	}
	return []string{"one", "two", "red", "some-name", strconv.Itoa(m.IntN(100))}[m.IntN(5)]
}

func keysOf[V any](in map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range in {
			if !yield(k) {
				return
			}
		}
	}
}

// request makes a request of an operation.
func (m *maker) request(s *stand, as, method, path string, op *openapi3.Operation) *http.Request {
	query, header := url.Values{}, map[string]string{}
	for _, ref := range op.Parameters {
		p := ref.Value
		often := p.Name == "If-Match" && strings.HasPrefix(op.OperationID, "put-") && m.IntN(2) == 0
		if p.In != "path" && !p.Required && !often && m.IntN(4) > 0 {
			continue
		}
		v := m.value(p.Name, p.Schema, 0)
		text := fmt.Sprint(v)
		if list, is := v.([]any); is {
			var parts []string
			for _, x := range list {
				parts = append(parts, fmt.Sprint(x))
			}
			text = strings.Join(parts, ",")
		}
		switch p.In {
		case "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(text))
		case "query":
			query.Set(p.Name, text)
		case "header":
			header[p.Name] = strings.Map(func(r rune) rune {
				if r < ' ' || r == 0x7f {
					return -1
				}
				return r
			}, text)
		}
	}
	if m.wrong > 0 && m.IntN(20) == 0 {
		query.Set("surprise", "1")
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var body any
	if op.RequestBody != nil {
		var schema *openapi3.SchemaRef
		for kind, content := range op.RequestBody.Value.Content { // JSON, or a merge patch
			schema, header["Content-Type"] = content.Schema, kind
		}
		data, err := json.Marshal(m.value("body", schema, 0))
		if err != nil {
			s.Fatal(err)
		}
		if m.wrong > 0 {
			data = m.spoil(data)
		}
		body = string(data)
	}
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	return s.request(call{as: as, method: method, path: path, body: body, header: header})
}

// spoil makes a body wrong as JSON, now and then.
func (m *maker) spoil(data []byte) []byte {
	switch m.IntN(25) {
	case 0:
		return data[:m.IntN(len(data)+1)]
	case 1:
		return append(data, data...)
	case 2:
		return bytes.Replace(data, []byte("{"), []byte(`{"name":"a","name":"b",`), 1)
	case 3:
		return bytes.Replace(data, []byte("{"), []byte(`{"surprise":1,`), 1)
	case 4:
		return append([]byte("\xff\xfe"), data...)
	case 5:
		return bytes.Repeat([]byte("["), 5000)
	}
	return data
}

// fuzzed is how many requests are made, and fuzzedOne how many of one service: the export
// of a long audit log takes most of the time otherwise.
const fuzzed, fuzzedLong, fuzzedOne = 2500, 200_000, 10_000

// stand is a service of which the maker knows some names.
func (m *maker) stand(t *testing.T) *stand {
	t.Helper()
	s := newStand(t)
	s.tenants()
	m.pool = map[string][]string{
		"pkey": {"0x0100", "0x0101", "0x0200", "0x0003"}, "guid": append(s.hosts[:5:5], nodeGUIDOf(s, s.hosts[0]), "0x0000000000200000"), "from": s.hosts[:5], "to": s.hosts[:5], "port": s.hosts[:10], "ports": s.hosts[:10],
		"tenant": {"red", "blue", "provider"}, "owner": {"red", "blue"}, "If-Match": {"*", "*", `"12"`, `W/"3"`},
		"If-None-Match": {"*", `"4"`}, "Idempotency-Key": {"k1", "k2"},
		"switch": {"0x0000000000200000"}, "certificate": {strings.Repeat("ab", 32)}, "uri": {"spiffe://x/y"},
	}
	for _, k := range []string{"0x0100", "0x0101"} {
		s.want(201, call{as: "red", method: "PUT", path: "/partitions/" + k, body: js{"name": "p" + k}})
		s.want(200, call{as: "red", method: "POST", path: "/partitions/" + k + "/members", body: joins("full", s.hosts[:4]...)})
	}
	s.want(201, call{method: "PUT", path: "/policy", body: js{"name": "p.yaml", "text": "version: 1\ndefault: none\n"}})
	s.tokens["session"] = s.want(201, call{as: "red", method: "POST", path: "/session"})["session"].(string)
	return s
}

// fuzzedAgain is how many times as many requests are made where a seed leaves an operation
// without success.
const fuzzedAgain = 4

// TestRequestsFromTheDescription makes requests from the schemas, right and wrong, as
// every kind of caller. No answer is one that the description does not have, and none
// blames the service.
func TestRequestsFromTheDescription(t *testing.T) {
	doc, router := described(t)
	n, seed := fuzzed, need.Seed(t, 1)
	if need.Soak() {
		n = fuzzedLong
	}
	m := &maker{Rand: rand.New(rand.NewPCG(seed, seed)), doc: doc}
	type operation struct {
		method, path string
		op           *openapi3.Operation
	}
	var all []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if !strings.HasPrefix(op.OperationID, "watch-") { // they do not end
				all = append(all, operation{method, path, op})
			}
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].op.OperationID < all[j].op.OperationID })
	statuses := map[int]int{}
	covered := map[string]bool{}
	var s *stand
	// lacking are the operations that have to succeed and have not.
	lacking := func() (list []operation) {
		for _, o := range all {
			if !covered[o.op.OperationID] && !rare[o.op.OperationID] {
				list = append(list, o)
			}
		}
		return list
	}
	for i := 0; i < n || i < fuzzedAgain*n && len(lacking()) > 0; i++ {
		if i%fuzzedOne == 0 || i >= n && i%fuzzed == 0 { // what is lacking may need what was deleted
			s = m.stand(t)
		}
		m.wrong = []int{0, 0, 30, 4}[m.IntN(4)]
		o := all[m.IntN(len(all))]
		if list := lacking(); i >= n && m.IntN(2) == 0 { // the others make what these need
			o = list[m.IntN(len(list))]
		}
		as := m.pick([]string{"", "", "red", "blue", "reader", "provider", "nobody", "session"})
		if op := o.op.OperationID; op == "delete-tenant" || op == "delete-token" || op == "roll-back" || (op == "put-policy" || op == "delete-partition") && m.IntN(10) > 0 {
			m.wrong = 3 // the tenants and tokens of the test stay
			if as == "" || as == "provider" {
				as = "reader"
			}
		}
		r := m.request(s, as, o.method, o.path, o.op)
		sent, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		r.Body = io.NopCloser(bytes.NewReader(sent))
		statuses[w.Code]++
		if w.Code < 300 {
			covered[o.op.OperationID] = true
		}
		if err := checkReply(router, r, w); err != nil {
			t.Fatalf("request %d of seed %d: %s %.300s as %q with %.500s\nanswer %d %.500s\n%.500v\n%.1500s", i, seed, r.Method, r.URL, as, sent, w.Code, w.Body, err, s.log)
		}
		if m.wrong == 0 && w.Code == http.StatusUnprocessableEntity && schemaFault(w.Body.Bytes()) {
			t.Fatalf("request %d of seed %d: %s %.300s with %.500s is as described, and refused: %.500s", i, seed, r.Method, r.URL, sent, w.Body)
		}
	}
	t.Logf("statuses %v; %d of %d operations succeeded", statuses, len(covered), len(all))
	for _, want := range []int{200, 201, 400, 401, 403, 404, 409, 412, 422, 428} {
		if statuses[want] == 0 {
			t.Errorf("no answer %d in %d requests", want, n)
		}
	}
	for _, o := range lacking() {
		t.Errorf("%s never succeeded", o.op.OperationID)
	}
}

// rare are operations that need what random requests seldom find.
var rare = map[string]bool{
	"delete-tenant": true, "delete-token": true, "put-policy": true, "approve": true, "reject": true, "refuse-member": true,
	"assign-pool": true, "release-pool": true, "roll-back": true, "put-partition": true, "acknowledge-alarm": true,
}

// schemaFault reports whether a problem is about the form of a request.
func schemaFault(body []byte) bool {
	var p Problem
	return json.Unmarshal(body, &p) == nil && p.Detail == "validation failed"
}
