package ufm

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// Limits of calls.
const (
	// MaxBody bounds the body of a request, in bytes.
	MaxBody = 1 << 20
	// loginMax bounds that of a login, of which nobody knows yet who sends it.
	loginMax = 4 << 10
	// MaxGUIDs bounds the GUIDs of one call.
	MaxGUIDs = resource.BulkMax
	// commitTimeout bounds the storing of a change, where the answer waits for nothing else.
	commitTimeout = 8 * time.Second
)

// DefaultWait is the time that an answer waits for the proof of a change. Clients give
// up after 10 s.
const DefaultWait = 5 * time.Second

// Version is the release of UFM that version calls name: clients ask for a least one.
const Version = "6.23.1-6"

// restVersion is the header Rest-Version of every answer.
const restVersion = "1.6.0"

// Inventory is the fabric as it was last read. service.SubnetManager is one.
type Inventory interface {
	Snapshot(ctx context.Context) (*snapshot.Snapshot, error)
}

// Options are what a handler is told besides.
type Options struct {
	// Wait is the time that the answer to a change waits for its proof on the fabric:
	// DefaultWait for 0, none for less.
	Wait time.Duration
	// Strict answers 503 to a change that was stored and that is not proved by then;
	// else the answer is 200.
	Strict bool
	// Keys is what GET /app/smconf says of the keys of the subnet besides M_Keys, which
	// are judged by the fabric.
	Keys Keys
	// Build is the version of this program, for GET /app/ufm_version.
	Build string
}

// Keys tells which keys of the subnet have values that everybody knows. The values
// themselves are shown to nobody.
type Keys struct {
	// DefaultSMKey: the SM_Key is the one that OpenSM has without configuration.
	DefaultSMKey bool
	// DefaultSAKey: subnet administration trusts every sender of the SM_Key 1.
	DefaultSAKey bool
}

// Handler answers UFM's calls.
type Handler struct {
	service   *service.Service
	auth      Authenticator
	inventory Inventory
	options   Options
	sessions  sessions
	jobs      jobs

	mu     sync.Mutex
	fabric *view // as it was last read; nil before
}

// New returns a handler.
func New(svc *service.Service, auth Authenticator, inventory Inventory, options Options) *Handler {
	options.Wait = cmp.Or(options.Wait, DefaultWait)
	return &Handler{service: svc, auth: auth, inventory: inventory, options: options}
}

// Prefixes are the first segments of the paths of calls.
var Prefixes = []string{"ufmRest", "ufmRestV2", "ufmRestV3", kerberos}

// kerberos is the prefix of calls with Kerberos.
const kerberos = "ufmRestKrb"

// loginPath is the first and only segment of the path of a login.
const loginPath = "dologin"

// Owns reports whether a path is one of UFM's. A server asks it before any
// http.ServeMux sees the request, since that redirects.
func Owns(path string) bool {
	s := segments(path)
	return len(s) > 0 && (slices.Contains(Prefixes, s[0]) || s[0] == loginPath)
}

// segments are the parts of an escaped path between its slashes, as far as they are not
// empty. One that cannot be decoded stays as it is and fits nothing.
func segments(path string) (list []string) {
	for s := range strings.SplitSeq(path, "/") {
		if s == "" {
			continue
		}
		if u, err := url.PathUnescape(s); err == nil {
			s = u
		}
		list = append(list, s)
	}
	return list
}

// call is one request under way.
type call struct {
	*Handler
	ctx   context.Context
	w     http.ResponseWriter
	r     *http.Request
	by    resource.Caller
	id    string // in the audit log and the answer
	query url.Values
	args  []string // what stands in the path where the pattern has {}
	head  http.Header
}

// fault is an answer that is no success.
type fault struct {
	status int
	text   string
}

func (f *fault) Error() string { return f.text }

func wrong(status int, format string, args ...any) *fault {
	return &fault{status, fmt.Sprintf(format, args...)}
}

// nothing is the body of an answer that says no more than its status. Clients compare
// its bytes.
var nothing = struct{}{}

// route is one call: its pattern below a prefix, in segments where {} fits any, and
// what answers it.
type route struct {
	method, pattern string
	do              func(*call) (any, error)
}

// routes are all calls. Of two that fit the first counts.
var routes = []route{
	{"GET", "app/ufm_version", (*call).version},
	{"GET", "app/smconf", (*call).smconf},
	{"GET", "app/tokens", (*call).listTokens},
	{"POST", "app/tokens", (*call).makeToken},
	{"DELETE", "app/tokens/{}", (*call).deleteToken},
	{"GET", "resources/ports", (*call).listPorts},
	{"GET", "resources/ports/{}", (*call).getPorts},
	{"GET", "resources/systems", (*call).listSystems},
	{"GET", "resources/systems/{}", (*call).getSystem},
	{"GET", "resources/links", (*call).listLinks},
	{"GET", "resources/vports", (*call).listVPorts},
	{"GET", "resources/pkeys", (*call).listPKeys},
	{"POST", "resources/pkeys", (*call).addGUIDs},
	{"PUT", "resources/pkeys", (*call).setGUIDs},
	{"POST", "resources/pkeys/add", (*call).createPKey},
	{"GET", "resources/pkeys/last_updated", (*call).lastUpdated},
	{"PUT", "resources/pkeys/qos_conf", (*call).setQoS},
	{"POST", "resources/pkeys/qos_conf", (*call).setQoS},
	{"POST", "resources/pkeys/hosts", (*call).addHosts},
	{"GET", "resources/pkeys/{}", (*call).getPKey},
	{"DELETE", "resources/pkeys/{}", (*call).deletePKey},
	{"DELETE", "resources/pkeys/{}/guids/{}", (*call).deleteGUIDs},
	{"DELETE", "resources/pkeys/{}/hosts/{}", (*call).deleteHosts},
	{"POST", "actions/add_guids_to_pkey", (*call).addGUIDs},
	{"POST", "actions/remove_guids_from_pkey", (*call).removeGUIDs},
	{"GET", "actions/get_all_pkeys", (*call).listPKeys},
	{"POST", "actions/get_all_pkeys", (*call).listPKeys},
	{"GET", "jobs", (*call).listJobs},
	{"GET", "jobs/{}", (*call).getJob},
	{"DELETE", "jobs/{}", (*call).deleteJob},
}

// Calls are the method and the pattern of every call below a prefix, in which {} stands for any
// segment.
func Calls() []string {
	out := make([]string, len(routes))
	for i, r := range routes {
		out[i] = r.method + " " + r.pattern
	}
	return out
}

// fits reports whether a path fits the pattern, and what stands where it has {}.
func (r *route) fits(path []string) (args []string, ok bool) {
	pattern := strings.Split(r.pattern, "/")
	if len(pattern) != len(path) {
		return nil, false
	}
	for i, p := range pattern {
		if p == "{}" {
			args = append(args, path[i])
		} else if p != path[i] {
			return nil, false
		}
	}
	return args, true
}

// find is the route of a request, or a fault.
func find(method string, path []string) (*route, []string, error) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var others []string
	for i := range routes {
		args, ok := routes[i].fits(path)
		if !ok {
			continue
		}
		if routes[i].method == method {
			return &routes[i], args, nil
		}
		others = append(others, routes[i].method)
	}
	if others != nil {
		return nil, nil, wrong(http.StatusMethodNotAllowed, "%s is not for this path: want %s", method, strings.Join(others, " or "))
	}
	return nil, nil, wrong(http.StatusNotFound, "there is no such call")
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := segments(r.URL.EscapedPath())
	c := &call{Handler: h, ctx: r.Context(), w: w, r: r, head: w.Header(), query: r.URL.Query(), id: randomName()}
	c.head.Set("Rest-Version", restVersion)
	c.head.Set("X-Request-Id", c.id)
	c.head.Set("Cache-Control", "no-store")
	var answer any
	var err error
	if len(path) == 1 && path[0] == loginPath {
		r.Body = http.MaxBytesReader(listen.ServerWriter(w), r.Body, loginMax)
		answer, err = c.login()
	} else {
		r.Body = http.MaxBytesReader(listen.ServerWriter(w), r.Body, MaxBody)
		answer, err = c.answer(path)
	}
	status := http.StatusOK
	if err != nil {
		status, answer = c.refusal(err)
	}
	body, err := json.Marshal(answer)
	if err != nil { // a value of ours that is no JSON
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be encoded"}`)
	}
	c.head.Set("Content-Type", "application/json")
	c.head.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body) // an error means that nobody reads it
	}
}

func (c *call) answer(path []string) (any, error) {
	if len(path) == 0 || !slices.Contains(Prefixes, path[0]) {
		return nil, wrong(http.StatusNotFound, "there is no such call")
	}
	if err := c.authenticate(path[0]); err != nil {
		return nil, err
	}
	if err := crossSite(c.r); err != nil {
		return nil, err
	}
	route, args, err := find(c.r.Method, path[1:])
	if err != nil {
		return nil, err
	}
	c.args = args
	return route.do(c)
}

// refusal is the status and the body for an error.
func (c *call) refusal(err error) (status int, body any) {
	var f *fault
	var r *resource.Refusal
	text := err.Error()
	switch {
	case errors.As(err, &f):
		status = f.status
	case errors.As(err, &r):
		status, text = statusOf(r), r.Error()
		if r.Reason == resource.Exists {
			text = "already exists: " + text // a client looks for "exist"
		}
		if r.Reason == resource.Forbidden && c.by.ReadOnly {
			status = http.StatusForbidden
		}
		if r.Reason == resource.TooFast {
			c.head.Set("Retry-After", "10")
		}
	case errors.Is(err, store.ErrTooLarge):
		status = http.StatusRequestEntityTooLarge
	default:
		// The store cannot be written, another manager is the master, or there is no
		// snapshot yet: it is not the request that is wrong.
		status = http.StatusServiceUnavailable
		if !all(c.by) {
			text = "this cannot be done now: try again later, or ask the provider"
		}
	}
	if status == http.StatusUnauthorized {
		c.head.Set("Www-Authenticate", `Basic realm="ibwarden"`)
	}
	return status, map[string]string{"error": text}
}

// statusOf is the status of a refusal. A key or a port that is not the caller's is a
// bad request, not a forbidden one: after 401 and 403 a client tries the next password
// that it has, and it must not become somebody else for that.
func statusOf(r *resource.Refusal) int {
	switch r.Reason {
	case resource.NotFound:
		return http.StatusNotFound
	case resource.TooFast:
		return http.StatusTooManyRequests
	case resource.Stale, resource.Conflict:
		return http.StatusConflict
	}
	return http.StatusBadRequest
}

func randomName() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails: it would end the program
	return hex.EncodeToString(b)
}
