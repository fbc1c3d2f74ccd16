package api

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/hex"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/klauspost/compress/gzhttp"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/racks"
	"github.com/ibwarden/ibwarden/internal/api/sso"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// Prefix begins the path of every resource.
const Prefix = "/api/v1"

// ServerName is the header Server of every answer below Prefix.
const ServerName = "ibwarden"

// Options say what the handlers have besides the service.
type Options struct {
	// Version is that of the program, for the description.
	Version string
	// UID is the user who may do everything over the Unix socket, as root may: the one
	// that the service runs as.
	UID int
	// Store is what the service writes, for the audit log and backups.
	Store store.Store
	// Judge answers questions about isolation.
	Judge Judge
	// Certificates makes certificates of isolation; nil where no subnet manager runs.
	Certificates views.CertificateSource
	// Managers are the subnet managers of the fabric; nil where none of them is known.
	Managers views.ManagersSource
	// Sweeps are those of this subnet manager; nil where none runs.
	Sweeps views.SweepsSource
	// Traffic reads performance counters; nil where no subnet manager runs.
	Traffic views.CountersSource
	// Past is how the fabric was; nil where that is not kept. MetricsAt is a URL of the metrics, and Prometheus
	// that of who keeps them for longer; "" for none.
	Past                  views.PastSource
	MetricsAt, Prometheus string
	// Cabling is the list of cables and the fences; nil where no subnet manager runs.
	Cabling views.MapSource
	// Racks is the file that says in which racks devices are, as it was read last; nil for none.
	Racks func() *racks.File
	// StoreName says where the service keeps what, as --store does; for the provider.
	StoreName string
	// UFM is what UFM's calls are told besides.
	UFM ufm.Options
	// SSO logs people in with an OpenID provider; nil for none.
	SSO *sso.Service
	// Address is where the service is reached over the network, a URL without a path; ""
	// for nowhere.
	Address string
	// Console is the URL of the console; "" for none.
	Console string
	// Alerts is given what lists the alarms of the provider as alerts; nil for nobody.
	Alerts func(open func(context.Context) ([]views.Alert, error))
	// Log gets failures of the service, and who begins sessions: never a secret or a body; nil for none.
	Log *slog.Logger
	// Observe is told of each request when it is over: its operation, which is an
	// operation id of the description, ufm or none; the status of its answer, 0 for none;
	// and the time until that began. It may be called in any goroutine. nil for nobody.
	Observe func(operation string, status int, took time.Duration)
}

// api is the handlers.
type api struct {
	service *service.Service
	options Options
	log     *slog.Logger
	huma    huma.API
	mux     *http.ServeMux
	ufm     http.Handler // of UFM's calls
	// sessions are those of the console.
	sessions *listen.Sessions
	talks    views.MatrixCache
	sealed   listen.Cursors
	maps     views.MapMaker
	since    views.Since

	watching sync.Mutex
	watchers int // guarded by watching
}

// New returns the handlers of the service.
func New(s *service.Service, o Options) http.Handler { return build(s, o).front() }

func build(s *service.Service, o Options) *api {
	a := &api{service: s, options: o, log: o.Log, mux: http.NewServeMux(), sealed: listen.NewCursors()}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.sessions = listen.NewSessions(s.Now, a.holder)
	o.SSO.Use(a.ssoHooks())
	a.ufm = a.ufmCalls()
	a.huma = humago.NewWithPrefix(a.mux, Prefix, configuration(o.Version))
	a.huma.UseMiddleware(named)
	a.partitions()
	a.patches()
	a.members()
	a.tenants()
	a.tokens()
	a.logins()
	a.ports()
	a.pools()
	a.drains()
	a.approvals()
	a.revisions()
	a.rollback()
	a.audit()
	a.events()
	a.watches()
	a.policy()
	a.fabric()
	a.drawn()
	a.managers()
	a.sweeps()
	a.judged()
	a.talking()
	a.reaching()
	a.traffic()
	a.past()
	a.status()
	a.alarms()
	a.alertmanager()
	if o.Alerts != nil {
		o.Alerts(a.openAlerts)
	}
	a.lifetime()
	a.sharedProblems()
	a.huma.OpenAPI().Paths["/openapi.json"] = describesItself()
	a.grouped()
	a.mux.HandleFunc("GET "+Prefix+"/openapi.json", a.description())
	return a
}

func configuration(version string) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "ibwarden", Version: version,
				Description: "Tenants, ports and partitions of an InfiniBand fabric: their state, their history, and the proof that tenants are kept apart.",
				License:     &huma.License{Name: "Apache-2.0"},
			},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token":       {Type: "http", Scheme: "bearer", Description: "A token of ibwarden tenant token create, or a session. It decides wherever it is given."},
					"certificate": {Type: "mutualTLS", Description: "A client certificate that the provider registered."},
				},
			},
			Security: []map[string][]string{{"token": {}}, {"certificate": {}}, {}},
		},
		Formats:                      map[string]huma.Format{"application/json": listen.JSON, "json": listen.JSON, listen.MergePatchType: listen.JSON},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}

// operation is an operation with what all have in common. Errors are statuses that it
// has besides those of every operation.
func operation(method, path, id, summary string, errors ...int) huma.Operation {
	errors = append(errors, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusUnsupportedMediaType,
		http.StatusMisdirectedRequest, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusServiceUnavailable)
	if method != http.MethodGet {
		errors = append(errors, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	}
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, Errors: errors,
		MaxBodyBytes: BodyMax + 1, BodyReadTimeout: -1, // the front handler has read the body
	}
}

// front is what every request passes before the handlers: limits, and who it is.
func (a *api) front() http.Handler {
	compressed := zipped(a.mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := &request{id: hex.EncodeToString(listen.SecretBytes(8))}
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
		if a.options.Observe != nil {
			seen := &answered{ResponseWriter: w, begun: time.Now()}
			defer a.observe(seen, req)
			w = seen
		}
		header := w.Header()
		header.Set("X-Request-Id", req.id)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-store")
		defer a.recovered(w, r)
		_, local := peerOf(r.Context())
		if p := listen.Addressed(r, local); p != nil {
			refuse(w, p)
			return
		}
		if ufm.Owns(r.URL.EscapedPath()) { // before the mux, which redirects
			req.operation = operationUFM
			a.ufm.ServeHTTP(w, r)
			return
		}
		header.Set("Server", ServerName)
		if o := a.options.SSO; o != nil && strings.HasPrefix(r.URL.EscapedPath(), sso.Prefix) {
			req.operation = operationLogin
			o.ServeHTTP(w, r)
			return
		}
		if p := a.admit(w, r, req); p != nil && strings.HasPrefix(r.URL.Path, AlertmanagerPrefix+"/") {
			refuseAlertmanager(w, p)
			return
		} else if p != nil {
			refuse(w, p)
			return
		}
		compressed.ServeHTTP(w, r)
	})
}

// zipMin is the least answer that is compressed, in bytes: a smaller one fits into one packet
// of a network.
const zipMin = 1400

// zipped compresses the JSON of a handler for clients that take gzip. Streams of events, which
// have another type, go as they come. An answer does not have a secret beside text of somebody
// else's that he could have sent again and again to guess it by the length: tokens are in the
// answer that made them alone, and requests of other sites are refused.
func zipped(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(zipMin), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false),
		gzhttp.SetContentType(false), gzhttp.ContentTypes([]string{"application/json", "application/problem+json"}))
	if err != nil {
		panic(err) // of options that are constants
	}
	return wrap(h)
}

// admit looks at a request before its handler does.
func (a *api) admit(w http.ResponseWriter, r *http.Request, req *request) *Problem {
	if p := cmp.Or(listen.PlainPath(r), listen.SameSite(r)); p != nil {
		return p
	}
	if r.URL.Path != Prefix+"/openapi.json" {
		var err error
		req.from = from(r)
		if req.who, req.session, err = a.authenticate(r); err != nil {
			p, _ := a.failed(r.Context(), err).(*Problem)
			return a.unknownCaller(r, p)
		}
		caller := req.who.Caller
		if caller.Keys.First != 0 && r.URL.Path != Prefix+"/partitions" && r.URL.Path != Prefix+watchPartitions && !strings.HasPrefix(r.URL.Path, Prefix+"/partitions/") {
			return problem(http.StatusForbidden, "forbidden", "the token is bound to the partitions "+caller.Keys.String()+": it sees and changes nothing but these and their members")
		}
	}
	if _, pattern := a.mux.Handler(r); pattern == "" {
		return a.unknown(r)
	}
	return bounded(w, r)
}

// unknown is the answer where there is no handler.
func (a *api) unknown(r *http.Request) *Problem {
	var there []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := a.mux.Handler(other); pattern != "" {
			there = append(there, method)
		}
	}
	if len(there) > 0 {
		p := problem(http.StatusMethodNotAllowed, reasonMethod, "there is no "+r.Method+" here")
		p.Header = http.Header{"Allow": {strings.Join(there, ", ")}} // one line: many clients read the first alone
		return p
	}
	return problem(http.StatusNotFound, "not-found", "there is nothing here; "+Prefix+"/openapi.json says what there is")
}

// recovered answers for a handler that panicked.
func (a *api) recovered(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler {
		panic(v)
	}
	id := requestOf(r.Context()).id
	a.log.Error("a request panicked", "request", id, "method", r.Method, "panic", v, "stack", string(debug.Stack()))
	refuse(w, problem(http.StatusInternalServerError, reasonInternal, "the service failed; its log says more about request "+id))
}

// refuse writes a problem.
func refuse(w http.ResponseWriter, p *Problem) {
	for k, values := range p.Header {
		for _, v := range values {
			w.Header().Add(k, v)
		}
	}
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = listen.JSON.Marshal(w, p) // the client may be gone
}

// register adds an operation whose errors become Problems.
func register[I, O any](a *api, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, a.failed(ctx, err)
		}
		return out, nil
	})
	if _, writes := any(new(O)).(*ChangedOutput); writes {
		for _, o := range operationsOf(a.huma.OpenAPI().Paths[op.Path]) {
			if o.OperationID == op.OperationID {
				made, accepted := *o.Responses["200"], *o.Responses["200"]
				made.Description, accepted.Description = "made", "stored; its outcome on the fabric is pending"
				o.Responses["201"], o.Responses["202"] = &made, &accepted
			}
		}
	}
}

// provider refuses callers that do not act for the provider.
func provider(ctx context.Context) error {
	if c := callerOf(ctx); !c.IsProvider() || c.Keys.First != 0 {
		return problem(http.StatusForbidden, "forbidden", "only the provider may do this")
	}
	return nil
}
