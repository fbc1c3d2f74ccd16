package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

func TestWebhookFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "0123456789abcdef\n", 0o600)
	for name, c := range map[string]struct {
		url, secret, want string
	}{
		"no secret":        {"https://h/", "", "needs --webhook-secret-file"},
		"no webhook":       {"", good, "there is no --webhook"},
		"no file":          {"https://h/", filepath.Join(dir, "none"), "no such file"},
		"for all to read":  {"https://h/", file("open", "0123456789abcdef", 0o644), "mode 0644"},
		"short":            {"https://h/", file("short", "0123456789abcde\n", 0o600), "15 bytes"},
		"long":             {"https://h/", file("long", strings.Repeat("x", secretMax+1), 0o600), "long"},
		"without TLS":      {"http://192.0.2.1/", good, "want https"},
		"a password in it": {"https://u:hidden@h/", good, "user or password"},
	} {
		f := Flags{webhook: c.url, secret: c.secret}
		s, err := f.openWebhook(io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if s != nil {
			s.Close()
		}
	}
	f := Flags{webhook: "http://127.0.0.1:1/", secret: good}
	s, err := f.openWebhook(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

type quiet struct{}

func (quiet) Event(event.Event)       {}
func (quiet) Progress(string, uint64) {}

// demoRunner is a manager of the demonstration fabric that does not run yet.
func demoRunner(t *testing.T) *daemon.Runner {
	t.Helper()
	topo := topology.Demo()
	f, err := fabric.New(topo, fabric.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := topo.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := inproc.New(f, node.GUID, num, false)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := daemon.DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	return daemon.NewRunner(l, engine.Config{Routing: routing.UpDown, Profile: protect.Tenant, Periods: engine.Periods{Sweep: time.Minute, Drift: time.Hour}}, server.Config{}, policy, quiet{})
}

// TestTurned: a busy manager is looked at from the first turn on, one turn in lookEvery; a
// manager at rest at every turn. What is told then is what the manager is.
func TestTurned(t *testing.T) {
	r := demoRunner(t)
	now := time.Unix(1000, 0)
	x, err := new(Flags).Start(io.Discard, r)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	x.now = func() time.Time { now = now.Add(time.Second); return now }
	looks := func(turns int) (out []int) {
		for turn := range turns {
			before := x.LastTurn()
			looked := x.Turned()
			if looked != (x.LastTurn() != before) {
				t.Errorf("turn %d: looked is %t", turn, looked)
			}
			if looked {
				out = append(out, turn)
			}
		}
		return out
	}
	if got := looks(2*lookEvery + 1); len(got) != 3 || got[0] != 0 || got[1] != lookEvery || got[2] != 2*lookEvery {
		t.Errorf("busy: looked at turns %d, want 0, %d and %d", got, lookEvery, 2*lookEvery)
	}
	if got := x.status.Manager; got != "discovering" {
		t.Errorf("before the first sweep the manager is %q", got)
	}
	if err := r.Run(t.Context(), r.Engine().Settled); err != nil {
		t.Fatal(err)
	}
	if got := looks(5); len(got) != 5 {
		t.Errorf("at rest: looked at turns %d of 5", got)
	}
	if got := x.Telemetry.status.Load().Manager; got != "master" {
		t.Errorf("after bring-up the manager is %q", got)
	}
}

// parsed are the flags of a command line.
func parsed(t *testing.T, line ...string) *Flags {
	t.Helper()
	f, set := new(Flags), pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Add(set)
	if err := set.Parse(line); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFlags: each is read where it belongs, and what does not fit is refused before there is
// a manager, and by Start too.
func TestFlags(t *testing.T) {
	t.Setenv(Variable, "127.0.0.1:7")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := parsed(t); !reflect.DeepEqual(*f, Flags{address: "127.0.0.1:7", period: perfmgr.DefaultPeriod}) || f.Check() != nil || f.Address() != "127.0.0.1:7" {
		t.Errorf("no flags: %+v, %v", f, f.Check())
	}
	all := parsed(t, "--metrics", "127.0.0.1:8", "--counters-period", "7s", "--counters-hca", "--counters-rcv-err-details", "--webhook", "https://h/", "--webhook-secret-file", secret, "--alertmanager", "https://a,https://b/x")
	if !reflect.DeepEqual(*all, Flags{address: "127.0.0.1:8", period: 7 * time.Second, hosts: true, details: true, webhook: "https://h/", secret: secret, alertmanagers: []string{"https://a", "https://b/x"}}) || all.Check() != nil {
		t.Errorf("%+v, %v", all, all.Check())
	}
	r := demoRunner(t)
	for line, want := range map[string]string{
		"--counters-period 0s":                                       "",
		"--counters-period 1s":                                       "",
		"--counters-period 999ms":                                    "--counters-period 999ms: want 0s or at least 1s",
		"--counters-period 1ns":                                      "--counters-period 1ns: want 0s or at least 1s",
		"--counters-period -1s":                                      "--counters-period -1s: want 0s or at least 1s",
		"--webhook https://h/":                                       "--webhook: needs --webhook-secret-file, since what is posted is signed",
		"--webhook ftp://h/ --webhook-secret-file " + secret:         "--webhook: ",
		"--webhook-secret-file " + secret:                            "--webhook-secret-file: there is no --webhook",
		"--alertmanager http://192.0.2.1:9093":                       "--alertmanager: http to 192.0.2.1: want https",
		"--alertmanager https://a,https://u:p@b":                     "--alertmanager: the URL has a user or password",
		"--alertmanager https://a/?x=1":                              "--alertmanager: want the URL of an Alertmanager",
		"--alertmanager https://a/x,https://a/y":                     "--alertmanager: a is there twice",
		"--alertmanager " + strings.Repeat("https://a,", 8) + "b":    "--alertmanager: 9 URLs: want at most 8",
		"--alertmanager http://127.0.0.1:1,https://[2001:db8::1]":    "",
		"--webhook https://h/ --webhook-secret-file " + secret + "x": "--webhook-secret-file: ",
	} {
		f := parsed(t, append(strings.Fields(line), "--metrics=")...)
		x, started := f.Start(io.Discard, r)
		for by, err := range map[string]error{"Check": f.Check(), "Start": started} {
			if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s by %s: %v, want %q", line, by, err, want)
			}
		}
		if (x == nil) != (want != "") {
			t.Errorf("%s: a run beside an error, or none without: %v", line, x)
		}
		if x != nil {
			x.Close()
		}
	}
	if x, err := parsed(t, "--metrics", "192.0.2.1:1").Start(io.Discard, r); x != nil || err == nil || !strings.HasPrefix(err.Error(), "--metrics: ") {
		t.Errorf("an address that is not this machine's: %v", err)
	}
}

// TestRun: whoever watches a manager is told: systemd, the webhook, and who reads the metrics.
func TestRun(t *testing.T) {
	var none *Run
	none.Event(event.Warned{Text: "of a run that nobody watches"})
	dir := t.TempDir()
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "notify"))
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	alarms := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // what is cut off is not what is wanted
		alarms <- string(text)
	}))
	defer hook.Close()
	r := demoRunner(t)
	var out bytes.Buffer
	x, err := parsed(t, "--metrics", "127.0.0.1:0", "--counters-hca", "--webhook", hook.URL, "--webhook-secret-file", secret).Start(&out, r)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("ibwarden: metrics at http://%s/metrics\n", x.server.Address()); out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if r.Counters() == nil {
		t.Error("counters are not read")
	}
	x.Collect(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "of_the_test"}, func() float64 { return 42 }))
	x.Event(event.PhaseBegun{Phase: "sweeping"})
	if x.status.Phase != "sweeping" || x.status.Verdict != "" {
		t.Errorf("%+v", x.status)
	}
	x.Event(event.Completed{Result: &event.Result{Proof: &isolation.Proof{Verdict: isolation.Violated}}})
	if x.status.Verdict != isolation.Violated.String() || x.status.Phase != "sweeping" {
		t.Errorf("%+v", x.status)
	}
	select {
	case text := <-alarms:
		if !strings.Contains(text, `"exposure"`) {
			t.Errorf("alarm %s", text)
		}
	case <-t.Context().Done():
	}
	x.wanted.Store(true)
	x.Turned()
	s := x.latest.Load()
	if s == nil || !s.Hosts || len(s.Alarms) != 3 {
		t.Errorf("%+v", s)
	}
	text := make([]byte, 1000)
	n, err := systemd.Read(text)
	if err != nil || !strings.Contains(string(text[:n]), "STATUS=") || !strings.Contains(string(text[:n]), x.status.Text()) {
		t.Errorf("systemd is told %q, %v", text[:n], err)
	}
	if code, page := ask(t, x.Handler(), "GET", "/metrics"); code != 200 || !strings.Contains(page, "of_the_test 42\n") {
		t.Errorf("%d %s", code, page)
	}
	address := x.server.Address()
	x.Close()
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("metrics are served after Close")
	}
	if n, err = systemd.Read(text); err != nil || !strings.Contains(string(text[:n]), "STOPPING=1") {
		t.Errorf("systemd is told %q, %v", text[:n], err)
	}

	t.Setenv("NOTIFY_SOCKET", "relative")
	out.Reset()
	if x, err = parsed(t, "--metrics=").Start(&out, r); err != nil || !strings.HasPrefix(out.String(), "ibwarden: systemd cannot be told of this service: ") {
		t.Fatalf("%v: %s", err, out.String())
	}
	x.Turned()
	x.Close()
}
