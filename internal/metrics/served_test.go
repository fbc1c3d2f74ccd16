package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestAPI: requests are counted by operation and class, and those that a limit refused by
// the limit; whatever the status, the classes are few.
func TestAPI(t *testing.T) {
	a := NewAPI()
	if n := testutil.CollectAndCount(a, "ibwarden_api_connections"); n != 0 {
		t.Error("connections before anybody counts them")
	}
	for _, status := range []int{200, 201, 304, 404, 408, 413, 414, 429, 429, 503, 0, 99, 600, -1} {
		a.Request("put-x", status, 3*time.Millisecond)
	}
	a.Request("none", 401, time.Hour)
	a.SetChecks(func() (uint64, uint64, uint64) { return 11, 2, 5 })
	a.SetConnections(func() Connections { return Connections{Open: 7, Refused: 2, RefusedPeer: 3} })
	want := `# HELP ibwarden_api_connections Open connections.
# TYPE ibwarden_api_connections gauge
ibwarden_api_connections 7
# HELP ibwarden_api_refused_total ` + apiRefused.Help + `
# TYPE ibwarden_api_refused_total counter
ibwarden_api_refused_total{limit="connections"} 2
ibwarden_api_refused_total{limit="peer-connections"} 3
ibwarden_api_refused_total{limit="rate"} 2
ibwarden_api_refused_total{limit="size"} 2
ibwarden_api_refused_total{limit="time"} 1
# HELP ibwarden_api_requests_total ` + apiRequests.Help + `
# TYPE ibwarden_api_requests_total counter
ibwarden_api_requests_total{class="2xx",operation="put-x"} 2
ibwarden_api_requests_total{class="3xx",operation="put-x"} 1
ibwarden_api_requests_total{class="4xx",operation="none"} 1
ibwarden_api_requests_total{class="4xx",operation="put-x"} 6
ibwarden_api_requests_total{class="5xx",operation="none"} 0
ibwarden_api_requests_total{class="5xx",operation="put-x"} 1
ibwarden_api_requests_total{class="none",operation="put-x"} 4
# HELP ibwarden_sso_checks_total ` + apiChecks.Help + `
# TYPE ibwarden_sso_checks_total counter
ibwarden_sso_checks_total{result="confirmed"} 11
ibwarden_sso_checks_total{result="ended"} 2
ibwarden_sso_checks_total{result="unanswered"} 5
`
	if err := testutil.CollectAndCompare(a, strings.NewReader(want), "ibwarden_api_connections", "ibwarden_api_refused_total", "ibwarden_api_requests_total", "ibwarden_sso_checks_total"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(a, "ibwarden_api_request_seconds"); n != 2 {
		t.Errorf("%d histograms, want one for each operation", n)
	}
}
