package telemetry

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
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
		"short":            {"https://h/", file("short", "0123456789abcde\n", 0o600), "15 octets"},
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

// TestTurned: a busy manager is looked at from the first turn on, one turn in lookEvery; a
// manager at rest at every turn. What is told then is what the manager is.
func TestTurned(t *testing.T) {
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
	r := daemon.NewRunner(l, engine.Config{Routing: routing.UpDown, Profile: protect.Tenant, SweepInterval: time.Minute, DriftPeriod: time.Hour}, server.Config{}, policy, quiet{})
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
