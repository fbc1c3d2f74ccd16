package metrics

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the API.
var (
	apiRequests    = service("counter", "ibwarden_api_requests_total", "", "Requests answered, by operation (operationId in openapi.json; ufm for all UFM calls, alertmanager for those of Alertmanager's API; none if refused before it was known, and for openapi.json itself) and class of the status (2xx, 4xx, ...; none if the connection ended before the answer began).", "operation", "class")
	apiTime        = service("histogram", "ibwarden_api_request_seconds", "seconds", "Time from the header of a request to the start of its answer, the wait for a proof included.", "operation")
	apiRefused     = service("counter", "ibwarden_api_refused_total", "", "Connections and requests refused by a limit: connections in all (connections), or of one user or address (peer-connections); requests too large, too frequent or too slow.", "limit")
	apiChecks      = service("counter", "ibwarden_sso_checks_total", "", "Checks of sessions with the OpenID provider: confirmed, ended (the session), or unanswered (it lasts until it ends by itself).", "result")
	apiConnections = service("gauge", "ibwarden_api_connections", "", "Open connections.")
)

// Connections are those of the API.
type Connections struct {
	Open int
	// Refused were too many, RefusedPeer too many of one user or address.
	Refused, RefusedPeer uint64
}

// API counts the requests of the API. It may be used in any goroutine.
type API struct {
	mu          sync.Mutex
	requests    map[[2]string]uint64 // by operation and class
	times       map[string]*Times    // by operation
	refused     map[string]uint64    // by limit
	connections func() Connections
	checks      func() (confirmed, ended, unanswered uint64)
	operations  []string
}

var _ prometheus.Collector = (*API)(nil)

// NewAPI returns one that has counted nothing of the operations that are known.
func NewAPI(operations ...string) *API {
	return &API{operations: operations, requests: make(map[[2]string]uint64), times: make(map[string]*Times), refused: make(map[string]uint64)}
}

// classes are the labels for statuses, by their first digit.
var classes = [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// limitOf is the limit that a status tells of; "" for none.
func limitOf(status int) string {
	switch status {
	case 408:
		return "time"
	case 413, 414:
		return "size"
	case 429:
		return "rate"
	}
	return ""
}

// Request counts a request: its operation, which is one of a fixed set, the status of the
// answer, 0 for none, and the time until it began.
func (a *API) Request(operation string, status int, took time.Duration) {
	class := classes[0]
	if d := status / 100; d > 0 && d < len(classes) {
		class = classes[d]
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests[[2]string{operation, class}]++
	if a.times[operation] == nil {
		a.times[operation] = &Times{}
	}
	a.times[operation].observe(took)
	if limit := limitOf(status); limit != "" {
		a.refused[limit]++
	}
}

// SetConnections tells who counts connections, once there is somebody.
func (a *API) SetConnections(f func() Connections) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.connections = f
}

// SetChecks tells who counts questions to the OpenID provider, if there is one.
func (a *API) SetChecks(f func() (confirmed, ended, unanswered uint64)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checks = f
}

// Describe tells of every metric.
func (a *API) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range []*Metric{apiRequests, apiTime, apiRefused, apiChecks, apiConnections} {
		ch <- m.desc
	}
}

// Collect makes the samples.
func (a *API) Collect(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := sink{ch}
	for k, n := range a.requests {
		out.put(apiRequests, float64(n), k[0], k[1])
	}
	for _, operation := range a.operations {
		for _, class := range []string{"2xx", "4xx", "5xx"} { // so that the first is an increase
			if a.requests[[2]string{operation, class}] == 0 {
				out.put(apiRequests, 0, operation, class)
			}
		}
	}
	for operation, h := range a.times {
		out.times(apiTime, h, operation)
		if key := [2]string{operation, "5xx"}; a.requests[key] == 0 && !slices.Contains(a.operations, operation) {
			out.put(apiRequests, 0, operation, "5xx")
		}
	}
	for _, limit := range []string{"size", "rate", "time"} {
		out.put(apiRefused, float64(a.refused[limit]), limit)
	}
	var c Connections
	if a.connections != nil {
		c = a.connections()
		out.put(apiConnections, float64(c.Open))
	}
	if a.checks != nil {
		confirmed, ended, unanswered := a.checks()
		out.put(apiChecks, float64(confirmed), "confirmed")
		out.put(apiChecks, float64(ended), "ended")
		out.put(apiChecks, float64(unanswered), "unanswered")
	}
	out.put(apiRefused, float64(c.Refused), "connections")
	out.put(apiRefused, float64(c.RefusedPeer), "peer-connections")
}
