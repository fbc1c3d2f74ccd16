package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/preview"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

type quiet struct{ done bool }

func (q *quiet) Event(e event.Event) {
	if _, is := e.(event.Completed); is {
		q.done = true
	}
}
func (*quiet) Progress(string, uint64) {}

// demonstration is the demonstration fabric as the manager has brought it up.
var demonstration = sync.OnceValues(func() ([]byte, error) {
	link, err := daemon.Open("sim", 0)
	if err != nil {
		return nil, err
	}
	defer link.Close()
	p, err := daemon.DemoPolicy()
	if err != nil {
		return nil, err
	}
	q := &quiet{}
	r := daemon.NewRunner(link, engine.Config{Routing: routing.UpDown}, server.Config{}, p, q)
	if err := r.Run(context.Background(), func() bool { return q.done }); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	err = snapshot.Write(&buf, &snapshot.Snapshot{ReadAt: time.Unix(1e9, 0).UTC(), Source: "sim", Asked: []string{snapshot.AskedForwarding}, Fabric: r.Engine().Fabric(), Faults: []snapshot.Fault{}})
	return buf.Bytes(), err
})

// manager carries out every policy at once: it is the API that is under test here.
type manager struct {
	snap *snapshot.Snapshot
	tell *service.Service
	hold bool // nothing is carried out
	lost int  // pairs that every plan says would cease to talk
}

func (*manager) HoldBack(string, bool) {}

func (m *manager) FollowPolicy(revision uint64, p *policy.Policy) { m.SetPolicy(revision, p) }

func (m *manager) SetPolicy(revision uint64, _ *policy.Policy) {
	if m.tell != nil && !m.hold {
		m.tell.Done(revision, service.Outcome{Verdict: isolation.Isolated, Writes: 1})
	}
}
func (m *manager) Predict(context.Context, *policy.Policy) (*service.Plan, error) {
	p := &preview.Preview{Changes: true}
	p.Reach.Lost = m.lost
	return &service.Plan{Preview: p, Text: "something would change\n"}, nil
}
func (m *manager) Snapshot(context.Context) (*snapshot.Snapshot, error) { return m.snap, nil }

// stand is a service with the demonstration fabric, and its handlers.
type stand struct {
	testing.TB
	service *service.Service
	manager *manager
	others  *otherManagers
	api     *api
	handler http.Handler
	log     *bytes.Buffer
	hosts   []string // GUIDs of end ports that are no switch's, by GUID
	tokens  map[string]string
	store   *lostStore
}

// memoryDir is a directory that waits for no disk, where there is one: thousands of
// requests are stored, and it is not the disk that is under test.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "ibwarden-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// ownUID is the user that the service of tests runs as.
const ownUID = 4321

func newStand(t testing.TB) *stand { return newStandOn(t, false) }

// newStandOn is newStand with a store that others share, or not.
func newStandOn(t testing.TB, shared bool) *stand {
	t.Helper()
	data, err := demonstration()
	if err != nil {
		t.Fatal(err)
	}
	snap, err := snapshot.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(filepath.Join(memoryDir(t), "store"))
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{TB: t, manager: &manager{snap: snap}, log: &bytes.Buffer{}, tokens: map[string]string{}, store: &lostStore{Store: db}}
	s.service, err = service.Open(t.Context(), service.Config{Store: s.store, Manager: s.manager, Base: &policy.Policy{Default: policy.Limited}, Owner: "test", Now: time.Now, Shared: shared})
	if err != nil {
		t.Fatal(err)
	}
	s.manager.tell = s.service
	t.Cleanup(func() { s.service.Close(); db.Close() })
	for _, p := range snap.Fabric.EndPorts() {
		if p.Node.Switch == nil {
			s.hosts = append(s.hosts, p.GUID.String())
		}
	}
	s.others = newOthers(snap)
	judge := newSnapshotJudge(s.service, nil)
	s.api = build(s.service, Options{
		Managers: s.others, Sweeps: sweepsMade(3), Traffic: counted{}, Past: keptOf(snap), StoreName: "bolt:test",
		Version: "test", UID: ownUID, Store: db, Judge: judge, Certificates: certified{judge: judge},
		Log: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	s.handler = s.api.front()
	return s
}

// call is a request of a test.
type call struct {
	as     string // "" for root over the socket, nobody, uid:N, or a name of tokens
	method string
	path   string
	body   any // string or what becomes JSON
	header map[string]string
}

func (s *stand) request(c call) *http.Request {
	s.Helper()
	var body io.Reader
	switch b := c.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			s.Fatal(err)
		}
		body = bytes.NewReader(data)
	}
	path := "/" + strings.TrimLeft(c.path, "/") // two slashes begin a whole path
	if !strings.HasPrefix(c.path, "//") && !strings.HasPrefix(path, "/api/") {
		path = Prefix + path
	}
	r := httptest.NewRequest(c.method, path, body)
	r.Host = "127.0.0.1:8443"
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, v := range c.header {
		r.Header.Set(k, v)
	}
	var uid uint32
	switch n, err := fmt.Sscanf(c.as, "uid:%d", &uid); {
	case c.as == "":
		r = r.WithContext(WithPeer(r.Context(), Peer{UID: 0}))
	case c.as == "nobody":
	case n == 1 && err == nil:
		r = r.WithContext(WithPeer(r.Context(), Peer{UID: uid}))
	default:
		r.Header.Set("Authorization", "Bearer "+s.tokens[c.as])
	}
	return r
}

func (s *stand) do(c call) *httptest.ResponseRecorder {
	s.Helper()
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, s.request(c))
	return w
}

// want makes a call, checks its status, and decodes its answer.
func (s *stand) want(status int, c call) map[string]any {
	s.Helper()
	w := s.do(c)
	if w.Code != status {
		s.Fatalf("%s %s as %q: %d %s, want %d\n%s", c.method, c.path, c.as, w.Code, w.Body, status, s.log)
	}
	out := map[string]any{}
	if w.Body.Len() > 0 && strings.Contains(w.Header().Get("Content-Type"), "json") && !strings.Contains(w.Header().Get("Content-Type"), "jsonl") {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			s.Fatalf("%s %s: %v in %s", c.method, c.path, err, w.Body)
		}
	}
	out["etag"] = w.Header().Get("ETag")
	return out
}

type js = map[string]any

// tenants makes tenants red and blue, each with keys, four ports and a token by its
// name, and one of red that may only read.
func (s *stand) tenants() {
	s.Helper()
	for i, name := range []string{"red", "blue"} {
		keys := js{"first": fmt.Sprintf("0x%02x00", i+1), "last": fmt.Sprintf("0x%02xff", i+1)}
		s.want(201, call{method: "PUT", path: "/tenants/" + name, body: js{"keys": keys}})
		var ports []js
		for _, g := range s.hosts[4*i : 4*i+4] {
			ports = append(ports, js{"guid": g})
		}
		s.want(200, call{method: "POST", path: "/ports/assign", body: js{"tenant": name, "ports": ports}})
		s.tokens[name] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": name}})["secret"].(string)
	}
	s.tokens["reader"] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": "red", "read_only": true}})["secret"].(string)
	s.tokens["provider"] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": resource.Provider}})["secret"].(string)
}
