package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/test/need"
)

// alertsGot is an Alertmanager that notes what it gets, and answers as it is told.
type alertsGot struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]views.Alert
}

func newAlertsGot(t *testing.T, answer func(n int, w http.ResponseWriter)) *alertsGot {
	g := &alertsGot{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list []views.Alert
		body, _ := io.ReadAll(r.Body) // what is cut off is no JSON
		if r.Method != "POST" || r.URL.Path != "/am/api/v2/alerts" || json.Unmarshal(body, &list) != nil {
			t.Errorf("%s %s %s", r.Method, r.URL, body)
		}
		g.mu.Lock()
		g.bodies = append(g.bodies, list)
		n := len(g.bodies)
		g.mu.Unlock()
		answer(n, w)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *alertsGot) got() [][]views.Alert {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bodies
}

// telling returns what sends to some URLs, and its reports; it hardly waits between its tries.
func telling(t *testing.T, urls ...string) (*Alertmanagers, *need.Log) {
	t.Helper()
	reports := new(need.Log)
	a, err := NewAlertmanagers(urls, func(err error) { fmt.Fprintln(reports, err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	for _, x := range a.targets {
		x.wait = func(ctx context.Context, d time.Duration) error { return sleep(ctx, min(d, time.Millisecond)) }
	}
	return a, reports
}

func alert(id string, now time.Time) views.Alert {
	return views.Alert{Labels: map[string]string{"alertname": "IbwardenPort", "alarm": id}, Annotations: map[string]string{"summary": "port " + id}, StartsAt: now, EndsAt: now.Add(views.AlertLife)}
}

func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	need.Eventually(t, need.Patience, what, is)
}

// TestTell: an alert is sent at once, again each minute, and as over for 15 minutes; what did not change is not sent
// in between.
func TestTell(t *testing.T) {
	g := newAlertsGot(t, func(int, http.ResponseWriter) {})
	a, _ := telling(t, g.URL+"/am")
	now := time.Now()
	count := func(n int) {
		t.Helper()
		time.Sleep(20 * time.Millisecond) // for what should not come
		soon(t, fmt.Sprint(n, " requests"), func() bool { return len(g.got()) == n })
	}
	tell := func(after time.Duration, ids ...string) {
		now = now.Add(after)
		var list []views.Alert
		for _, id := range ids {
			list = append(list, alert(id, now))
		}
		a.Tell(list, now)
	}
	tell(0)
	count(0)
	tell(0, "1", "2")
	count(1)
	tell(5*time.Second, "1", "2")
	count(1)
	tell(alertAgain, "1", "2")
	count(2)
	tell(5*time.Second, "2")
	count(3)
	for _, x := range g.got()[2] {
		if over := !x.EndsAt.After(now); over != (x.Labels["alarm"] == "1") {
			t.Errorf("%v ends at %v, and it is %v", x.Labels, x.EndsAt, now)
		}
	}
	tell(resolvedKept, "2")
	count(4)
	tell(alertAgain, "2")
	count(5)
	if n := len(g.got()[4]); n != 1 || len(g.got()[3]) != 2 {
		t.Errorf("what is over is sent too short or too long: %v", g.got())
	}
	changed := alert("2", now)
	changed.Annotations["acknowledged"] = "by ann"
	a.Tell([]views.Alert{changed}, now)
	count(6)
	a.Rest()
	now = now.Add(alertAgain)
	count(6)
}

// TestAlertmanagersFail: one that is dead, slow, verbose or redirects holds up nobody, and is told what is so later.
func TestAlertmanagersFail(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("redirected to %s", r.URL) }))
	defer elsewhere.Close()
	hold := make(chan struct{})
	defer close(hold)
	good := newAlertsGot(t, func(int, http.ResponseWriter) {})
	slow := newAlertsGot(t, func(int, http.ResponseWriter) { <-hold })
	redirects := newAlertsGot(t, func(_ int, w http.ResponseWriter) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	verbose := newAlertsGot(t, func(_ int, w http.ResponseWriter) {
		for range 1 << 20 { // until the connection ends
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
		t.Error("1 GiB of an answer was read")
	})
	failing := newAlertsGot(t, func(n int, w http.ResponseWriter) {
		if n < 5 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	a, reports := telling(t, "http://127.0.0.1:1/am", good.URL+"/am", slow.URL+"/am", redirects.URL+"/am", verbose.URL+"/am", failing.URL+"/am")
	began := time.Now()
	var list []views.Alert
	for i := range AlertsMax + 5 {
		list = append(list, alert(fmt.Sprint(i), began))
	}
	a.Tell(list, began)
	a.Tell(list[AlertsMax:], began.Add(time.Second)) // those that found no room
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	soon(t, "the good one is sent all", func() bool { return len(good.got()) >= (AlertsMax+alertBatch-1)/alertBatch })
	soon(t, "the one that failed is sent all", func() bool { return strings.Contains(reports.String(), "takes alarms again") })
	soon(t, "reports of three", func() bool { return strings.Count(reports.String(), "does not take alarms") >= 3 })
	for _, x := range good.got() {
		if len(x) > alertBatch {
			t.Errorf("%d alerts in a request", len(x))
		}
	}
	n := map[string]uint64{}
	for _, c := range a.Counts() {
		n[c.Labels[1]+" "+c.Labels[0]] = c.N
	}
	if h := good.Listener.Addr().String(); n["sent "+h] < AlertsMax || n["failed "+h] != 0 || n["dropped "+h] != 10 || n["failed 127.0.0.1:1"] == 0 || n["sent 127.0.0.1:1"] != 0 {
		t.Errorf("counts: %v", n)
	}
	closing := time.Now()
	if a.Close(); time.Since(closing) > 5*time.Second {
		t.Errorf("it took %v to end", time.Since(closing))
	}
	if text := reports.String(); strings.Contains(text, "/am") {
		t.Errorf("a URL is shown: %s", text)
	}
}

// startAlertmanager runs a real Alertmanager on a loopback address.
func startAlertmanager(t *testing.T, address string) (stop func()) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "am.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: x}\nreceivers: [{name: x}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(need.Program(t, "prometheus-alertmanager"), "--config.file="+config, "--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--cluster.listen-address=", "--log.level=error")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out := new(need.Log)
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { _ = c.Process.Kill(); _ = c.Wait() })
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("Alertmanager: %s", out)
		}
	})
	return stop
}

// TestAlertmanager: two real Alertmanagers have what is open, and when it is over; one that is dead for a while has it when it
// is back, and the other is not held up.
func TestAlertmanager(t *testing.T) {
	amtool := need.Program(t, "amtool")
	addresses := make([]string, 2)
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = l.Addr().String()
		l.Close()
	}
	startAlertmanager(t, addresses[0])
	stop := startAlertmanager(t, addresses[1])
	shows := func(i int, texts ...string) func() bool {
		return func() bool {
			out, err := exec.Command(amtool, "--alertmanager.url=http://"+addresses[i], "alert", "query").Output()
			for _, id := range []string{"port one", "port two"} {
				if want := strings.Contains(strings.Join(texts, " "), id); strings.Contains(string(out), id) != want {
					return false
				}
			}
			return err == nil
		}
	}
	a, reports := telling(t, "http://"+addresses[0], "http://"+addresses[1])
	for _, x := range a.targets {
		x.wait = func(ctx context.Context, _ time.Duration) error { return sleep(ctx, 50*time.Millisecond) }
	}
	now := time.Now()
	hostile := alert("one", now)
	hostile.Annotations["description"] = "\x00\n{{ template \"x\" }}<script>\u202e" + strings.Repeat("ü", 100)
	a.Tell([]views.Alert{hostile}, now)
	soon(t, "both have the alarm", func() bool { return shows(0, "port one")() && shows(1, "port one")() })
	stop()
	a.Tell([]views.Alert{alert("two", time.Now())}, time.Now())
	soon(t, "the one that lives has what is open now", shows(0, "port two"))
	soon(t, "it is said that the other does not answer", func() bool { return strings.Contains(reports.String(), addresses[1]+" does not take alarms") })
	startAlertmanager(t, addresses[1])
	soon(t, "so has the other, when it is back", shows(1, "port two"))
	a.Tell(nil, time.Now())
	soon(t, "nothing is open", func() bool { return shows(0)() && shows(1)() })
}
