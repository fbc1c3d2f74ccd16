package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// serving answers on a socket as a service would.
func serving(t *testing.T, answer http.HandlerFunc) (server string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: answer}}
	s.Start()
	t.Cleanup(s.Close)
	return "unix:" + path
}

// runCommand runs a command line, and returns what it printed and its exit status. opened says
// whether it went to the fabric, which is the demonstration without a manager.
func runCommand(t *testing.T, line ...string) (out string, status int, opened bool, err error) {
	t.Helper()
	t.Setenv(listen.ServerVariable, "")
	t.Setenv("IBWARDEN_DATA", filepath.Join(t.TempDir(), "none")) // no service runs here
	fabric := func(flags *pflag.FlagSet) func(*cobra.Command) (link.Link, sweep.Options, error) {
		flags.String("fabric", "sim", "")
		return func(*cobra.Command) (link.Link, sweep.Options, error) {
			opened = true
			l, err := daemon.Open("sim", 0)
			return l, sweep.Options{}, err
		}
	}
	root := &cobra.Command{Use: "ibwarden", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(newManagers(fabric, ""), newHandover())
	var b bytes.Buffer
	root.SetOut(&b)
	root.SetErr(io.Discard)
	root.SetArgs(line)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	err = root.ExecuteContext(ctx)
	var failed *terminal.ExitError
	switch {
	case errors.As(err, &failed):
		status = failed.Status
	case err != nil:
		t.Fatalf("%v: %v has no exit status", line, err)
	}
	return b.String(), status, opened, err
}

// lists is a service that knows these managers.
func lists(t *testing.T, items ...string) (server string) {
	return serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/managers" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
	})
}

const (
	managersMaster = `{"port":"0x0000000000000002","node":"two","state":"master","self":true,"trust":"self","priority":3,"acting":true,"end_ports":16,"epoch":4,"proved_revision":9,"store":"bolt:x"}`
	standby        = `{"port":"0x0000000000000001","node":"one","state":"standby","trust":"shared","policy":"other","priority":0,"missed":2,"last_seen":"2020-01-02T03:04:05Z"}`
	rogue          = `{"port":"0x0000000000000003","node":"th\u001b[31mree","state":"master","trust":"none","shows_sm_key":true,"why":"nobody \u0007named it"}`
)

// TestManagersOfAService: who is master comes first, what does not count is told with its
// reason, and nothing that a node says of itself goes to a terminal as it is. The fabric is
// not read.
func TestManagersOfAService(t *testing.T) {
	out, status, opened, err := runCommand(t, "managers", "--server", lists(t, standby, managersMaster))
	if status != 0 || opened {
		t.Fatalf("status %d, %v, fabric opened %v", status, err, opened)
	}
	lines := strings.Split(out, "\n")
	for i, want := range [][]string{
		{"NODE", "PRIORITY", "PROVED"},
		{"two", "0x0000000000000002", "master", " 3 ", " yes ", " self ", " now ", " 16 ", " 4 ", " 9 ", "bolt:x"},
		{"one", "standby", " 0 ", "shared", " other ", "ago, silent since"},
	} {
		for _, text := range want {
			if !strings.Contains(lines[i]+" ", text) {
				t.Errorf("line %d is %q: want %q in it", i+1, lines[i], text)
			}
		}
	}
	out, status, _, err = runCommand(t, "managers", "--server", lists(t, rogue, managersMaster))
	if status != 1 || !strings.Contains(err.Error(), "2 subnet managers are master") || !strings.Contains(err.Error(), "0x0000000000000003") {
		t.Errorf("two masters: status %d, %v", status, err)
	}
	if !strings.Contains(out, "none, shows a key") || !strings.Contains(out, "does not count: nobody") {
		t.Errorf("of one that does not count:\n%s", out)
	}
	if strings.ContainsAny(out+err.Error(), "\x1b\a") {
		t.Errorf("a node's description reaches the terminal: %q, %q", out, err)
	}
	out, status, _, _ = runCommand(t, "managers", "--json", "--server", lists(t, standby))
	if status != 1 || !strings.Contains(out, `"managers": [`) || !strings.Contains(out, `"missed": 2`) {
		t.Errorf("JSON: status %d\n%s", status, out)
	}
}

// TestManagersOfTheFabric: without a service the fabric is read; a service that was named
// and is not there is an error, and never another answer.
func TestManagersOfTheFabric(t *testing.T) {
	for _, line := range [][]string{{"managers"}, {"managers", "--fabric", "sim"}} {
		if out, status, opened, err := runCommand(t, line...); !opened || status != 1 || !strings.Contains(err.Error(), "no subnet manager is master") || !strings.HasPrefix(out, "NODE") {
			t.Errorf("%v: status %d, %v, fabric opened %v\n%s", line, status, err, opened, out)
		}
	}
	gone := "unix:" + filepath.Join(t.TempDir(), "gone")
	if _, status, opened, err := runCommand(t, "managers", "--server", gone); status != 1 || opened {
		t.Errorf("a service that is not there: status %d, %v, fabric opened %v", status, err, opened)
	}
	if _, status, opened, err := runCommand(t, "managers", "--server", gone, "--fabric", "sim"); status != 2 || opened {
		t.Errorf("both: status %d, %v, fabric opened %v", status, err, opened)
	}
}

// TestInCharge: exactly one master is good, and only where everything was read.
func TestInCharge(t *testing.T) {
	one := views.SubnetManager{Node: "one", State: "master"}
	silent := views.SubnetManager{Node: "silent", State: "master", Missed: 1}
	other := views.SubnetManager{Node: "other", State: "standby"}
	for _, x := range []struct {
		list   []views.SubnetManager
		unread int
		want   string
	}{
		{[]views.SubnetManager{other, one}, 0, ""},
		{[]views.SubnetManager{silent, one}, 0, ""},
		{[]views.SubnetManager{one}, 1, "as far as the fabric was read"},
		{[]views.SubnetManager{silent, other}, 0, "no subnet manager is master"},
		{nil, 2, "2 places could not be read"},
		{[]views.SubnetManager{one, one}, 0, "2 subnet managers are master"},
	} {
		err := inCharge(x.list, x.unread)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%v, %d unread: %v, want %q", x.list, x.unread, err, x.want)
		}
	}
}

// TestHandover: what the command line says is what the service is asked for; a dry run is
// asked for as one.
func TestHandover(t *testing.T) {
	var asked, body string
	refuse := false
	server := serving(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked, body = r.Method+" "+r.URL.String()+" why "+r.Header.Get("Why"), string(b)
		if refuse {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"status":409,"reason":"conflict","detail":"nobody \u001b[1mis there"}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"to":`+standby+`,"text":"one \u001b[31mhas it"}`)
	})
	out, status, _, err := runCommand(t, "handover", "--to", "one", "--why", "upgrade", "--server", server)
	if status != 0 || asked != "POST /api/v1/managers/handover why upgrade" || !strings.Contains(body, `"to":"one"`) {
		t.Errorf("status %d, %v: asked for %s with %s", status, err, asked, body)
	}
	if !strings.Contains(out, "has it\n") || strings.Contains(out, "\x1b") {
		t.Errorf("printed %q", out)
	}
	if _, status, _, err = runCommand(t, "handover", "--dry-run", "--server", server); status != 0 || !strings.HasPrefix(asked, "POST /api/v1/managers/handover?dry_run=true") || strings.Contains(body, `"to"`) {
		t.Errorf("dry run: status %d, %v: asked for %s with %s", status, err, asked, body)
	}
	if out, status, _, _ = runCommand(t, "handover", "--json", "--server", server); status != 0 || !strings.Contains(out, `"state": "standby"`) {
		t.Errorf("JSON: status %d\n%s", status, out)
	}
	refuse = true
	if _, status, _, err = runCommand(t, "handover", "--server", server); status != 1 || err == nil || strings.Contains(err.Error(), "\x1b") || !strings.Contains(err.Error(), "is there") {
		t.Errorf("refused: status %d, %q", status, err)
	}
	if _, status, opened, _ := runCommand(t, "handover"); status != 2 || opened {
		t.Errorf("without a service: status %d, fabric opened %v", status, opened)
	}
}
