package ufm_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// The ports of the fabric of these tests. Red and blue are tenants; node01 has two
// adapters, and one host of blue calls itself node02, as one of red is called.
const (
	swGUID     = 0x0002c90300000001
	node01a    = 0x0002c90300000011
	node01b    = 0x0002c90300000013
	node02     = 0x0002c90300000021
	blueNode03 = 0x0002c90300000031
	blueImpost = 0x0002c90300000041
	storage    = 0x0002c90300000051
	virtual    = 0x0200000000000001 // red's, and on no device yet
)

// manager stands for the subnet manager: it proves what it is told, or not.
type manager struct {
	service *service.Service
	mode    atomic.Pointer[string] // proved, pending, failed or refused
	fabric  atomic.Pointer[observed.Fabric]
	unread  atomic.Bool
	work    jobs
}

// jobs are goroutines that others may start while somebody waits for those there are,
// which a sync.WaitGroup does not allow: the undoing of a change starts one.
type jobs struct {
	mutex   sync.Mutex
	running int
	ended   sync.Cond // of mutex
}

// Go starts one.
func (j *jobs) Go(f func()) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.running++
	go func() {
		f()
		j.mutex.Lock()
		defer j.mutex.Unlock()
		j.running--
		j.ended.Broadcast()
	}()
}

// Wait waits until none runs.
func (j *jobs) Wait() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for j.running > 0 {
		j.ended.Wait()
	}
}

func (*manager) HoldBack(string, bool) {}

func (m *manager) FollowPolicy(revision uint64, p *policy.Policy) { m.SetPolicy(revision, p) }

func (m *manager) SetPolicy(revision uint64, _ *policy.Policy) {
	if m.service == nil {
		return
	}
	m.work.Go(func() {
		switch *m.mode.Load() {
		case "proved":
			m.service.Done(revision, service.Outcome{Verdict: isolation.Isolated})
		case "failed":
			m.service.Done(revision, service.Outcome{Verdict: isolation.Unknown, Reasons: []string{"a switch does not answer"}})
		case "refused":
			mode := "proved"
			m.mode.Store(&mode) // what is undone can be carried out
			m.service.Refused(revision, errors.New("port 1 has no room for another key"))
		}
	})
}

func (m *manager) Predict(context.Context, *policy.Policy) (*service.Plan, error) {
	return nil, errors.New("no plan in these tests")
}

func (m *manager) Snapshot(context.Context) (*snapshot.Snapshot, error) {
	if m.unread.Load() {
		return nil, errors.New("no sweep has ended yet")
	}
	return &snapshot.Snapshot{Fabric: m.fabric.Load()}, nil
}

// rig is a handler over a service of its own.
type rig struct {
	testing.TB
	*ufm.Handler
	service *service.Service
	manager *manager
	close   func()       // once: the service, with what it still does
	clock   atomic.Int64 // seconds since the beginning
	secrets map[string]string
	store   *bolt.Store
	heard   []string // of callers who are nobody, and logins
	tooMany bool     // what is said of logins that fail
}

var begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// Secret implements ufm.Authenticator.
func (r *rig) Secret(secret string) (by resource.Caller, known bool) {
	if !strings.HasPrefix(secret, "ibw_") {
		return by, false
	}
	r.service.Read(func(s *resource.State) {
		by, known = s.CallerOf(sumOf(secret), r.service.Now())
	})
	return by, known
}

// Connection implements ufm.Authenticator.
func (r *rig) Connection(q *http.Request) (by resource.Caller, known bool) {
	if tenant := q.Header.Get("X-Test-Peer"); tenant != "" {
		return resource.Caller{Name: "certificate of " + tenant, Tenant: tenant}, true
	}
	return by, false
}

// NewSecret implements ufm.Authenticator.
func (r *rig) NewSecret() (secret, sum string) {
	b := make([]byte, 32)
	rand.Read(b)
	secret = "ibw_" + base64.RawURLEncoding.EncodeToString(b)
	return secret, sumOf(secret)
}

// Refused implements ufm.Authenticator.
func (r *rig) Refused(_ *http.Request, login bool, why string) (tooMany bool) {
	r.heard = append(r.heard, fmt.Sprintf("login %v refused: %s", login, why))
	return r.tooMany
}

// LoggedIn implements ufm.Authenticator.
func (r *rig) LoggedIn(_ *http.Request, by resource.Caller, until time.Time) {
	r.heard = append(r.heard, fmt.Sprintf("%s of %s until %v", by.Name, by.Tenant, until.Sub(r.service.Now())))
}

func sumOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

var boss = resource.Caller{Name: "uid 0", Tenant: resource.Provider}

func newRig(t testing.TB, options ufm.Options) *rig {
	t.Helper()
	st, err := bolt.Open(filepath.Join(memoryDir(t), "store"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	r := &rig{TB: t, manager: &manager{}, secrets: map[string]string{}, store: st}
	r.manager.work.ended.L = &r.manager.work.mutex
	r.mode("proved")
	r.service, err = service.Open(t.Context(), service.Config{
		Store: st, Manager: r.manager, Base: &policy.Policy{Default: policy.Limited}, Owner: "test",
		Now: func() time.Time { return begin.Add(time.Duration(r.clock.Load()) * time.Second) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.close = sync.OnceFunc(func() { r.manager.work.Wait(); r.service.Close() })
	t.Cleanup(r.close)
	r.manager.service = r.service
	r.manager.fabric.Store(testFabric())
	r.Handler = ufm.New(r.service, r, r.manager, options)
	for name, keys := range map[string]resource.KeyRange{"red": {First: 1, Last: 0x0fff}, "blue": {First: 0x2000, Last: 0x2fff}} {
		r.change(resource.PutTenant{Tenant: resource.Tenant{Name: name, Keys: keys}})
	}
	for _, name := range []string{"red", "blue", "provider"} {
		r.token(name, false)
	}
	r.assign("red", node01a, node01b, node02, virtual)
	r.assign("blue", blueNode03, blueImpost)
	return r
}

// mode is what the manager does with changes from now on.
func (r *rig) mode(mode string) { r.manager.mode.Store(&mode) }

func (r *rig) change(c resource.Change) uint64 {
	r.Helper()
	result, err := r.service.Do(r.Context(), service.Request{Change: c, By: boss, Seen: resource.Unseen})
	if err != nil {
		r.Fatalf("%s: %v", c.Action(), err)
	}
	return result.Revision
}

// token makes the token NAME, or NAME-reads, of a tenant.
func (r *rig) token(tenant string, readOnly bool) {
	secret, sum := r.NewSecret()
	id := tenant
	if readOnly {
		id += "-reads"
	}
	r.secrets[id] = secret
	r.change(resource.PutToken{Token: resource.Token{ID: id + "-1", Tenant: tenant, Sum: sum, ReadOnly: readOnly}})
}

func (r *rig) assign(tenant string, guids ...ib.PortGUID) {
	var list []resource.Port
	for _, g := range guids {
		list = append(list, resource.Port{GUID: g})
	}
	r.change(resource.AssignPorts{Tenant: tenant, Ports: list})
}

// testFabric is a switch with six adapters of five hosts.
func testFabric() *observed.Fabric {
	f := observed.NewFabric()
	sw := f.AddNode(smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: 8, NodeGUID: swGUID, PortGUID: swGUID})
	sw.Description = "leaf-1"
	for i := range sw.Ports {
		sw.Ports[i].Reached, sw.Ports[i].InfoRead = true, true
		sw.Ports[i].Info = smp.PortInfo{PortState: smp.PortDown, PortPhysicalState: smp.PhysPolling}
	}
	sw.Ports[0].GUID, sw.Ports[0].Info.LID, sw.Ports[0].Info.MKey = swGUID, 1, 0x1111
	for i, h := range []struct {
		guid ib.PortGUID
		name string
	}{
		{node01a, "node01 mlx5_0"}, {node01b, "node01 mlx5_1"}, {node02, "node02 mlx5_0"},
		{blueNode03, "node03 mlx5_0"}, {blueImpost, "node02 mlx5_7"}, {storage, "storage-1 mlx5_0"},
	} {
		n := f.AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: ib.NodeGUID(h.guid - 1), PortGUID: h.guid, PartitionCap: 128})
		n.Description = h.name
		p, q := &n.Ports[1], &sw.Ports[i+1]
		p.GUID, p.Reached, p.InfoRead = h.guid, true, true
		p.Info = smp.PortInfo{
			GIDPrefix: 0xfe80_0000_0000_0000, LID: ib.LID(2 + i), PortState: smp.PortActive, PortPhysicalState: smp.PhysLinkUp, MKey: ib.MKey(0x2222 + i), GUIDCap: 8,
		}
		p.PKeys, p.PKeysRead = []ib.PKey{0x7fff, 0}, []bool{true}
		if h.guid == node01a {
			p.GUIDInfo = map[uint32]smp.GUIDInfo{0: {GUIDs: [8]uint64{uint64(node01a), 0x0002c903000000a1}}}
		}
		if h.guid == storage {
			p.PKeys[0] = 0xffff
			f.Self = p
		}
		q.Info = smp.PortInfo{PortState: smp.PortActive, PortPhysicalState: smp.PhysLinkUp}
		observed.Connect(p, q)
	}
	return f
}

// memoryDir is a directory that waits for no disk, where there is one.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "ibwarden-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// basic is the header Authorization of a user and a password.
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// reply is what a client gets.
type reply struct {
	status int
	body   string
	header http.Header
}

// ask sends one request; auth is the header Authorization, or PEER:TENANT, or nothing.
func (r *rig) ask(method, path, auth, body string) reply {
	r.Helper()
	q := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	if tenant, peer := strings.CutPrefix(auth, "PEER:"); peer {
		q.Header.Set("X-Test-Peer", tenant)
		q.Header.Set("Authorization", "") // as carbide does
	} else if auth != "" {
		q.Header.Set("Authorization", auth)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	return r.send(q)
}

func (r *rig) send(q *http.Request) reply {
	r.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	res := w.Result()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	out := reply{res.StatusCode, string(data), res.Header}
	if out.status >= 300 && out.status < 400 {
		r.Errorf("%s %s: %d: no answer may be a redirect", q.Method, q.URL, out.status)
	}
	if q.Method != http.MethodHead && !json.Valid(data) {
		r.Errorf("%s %s: %q is no JSON", q.Method, q.URL, data)
	}
	if strings.HasSuffix(out.body, "\n") {
		r.Errorf("%s %s: %q ends with a newline, and clients compare bytes", q.Method, q.URL, data)
	}
	if out.header.Get("Content-Type") != "application/json" || out.header.Get("Rest-Version") != "1.6.0" {
		r.Errorf("%s %s: header %v", q.Method, q.URL, out.header)
	}
	return out
}

// as asks as a tenant, with the raw token, and wants a status.
func (r *rig) as(tenant string, status int, method, path, body string) reply {
	r.Helper()
	out := r.ask(method, path, "Basic "+r.secrets[tenant], body)
	if out.status != status {
		r.Errorf("%s: %s %s %s: %d %s: want %d", tenant, method, path, body, out.status, out.body, status)
	}
	return out
}

// members are the GUIDs of a partition, in order.
func (r *rig) members(k ib.PKeyBase) (list []ib.PortGUID) {
	r.service.Read(func(s *resource.State) {
		for _, m := range s.Members(k) {
			list = append(list, m.Port)
		}
	})
	return list
}

func (r *rig) exists(k ib.PKeyBase) (is bool) {
	r.service.Read(func(s *resource.State) { is = s.Partition(k) != nil })
	return is
}
