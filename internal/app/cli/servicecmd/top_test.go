package servicecmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/views"
)

// A screen has what was asked for, tells what is not known, and what devices and tenants
// say of themselves does not steer the terminal.
func TestScreen(t *testing.T) {
	rate := func(n float64) *float64 { return &n }
	at := time.Unix(1000, 0)
	s := screen{
		server: "unix:x", at: at,
		status:  views.Status{Version: "1", Verdict: "isolated\x1b[2J", ReadAt: at.Add(-3 * time.Second), Fabric: &views.Fabric{Switches: 2, Links: 9, Inactive: 1}},
		tenants: []api.Tenant{{Name: "red", Partitions: 3, Ports: 4}},
		busy: []views.PortCounters{
			{Name: "leaf\x1b]0;x\a", Port: 3, Peer: "red-1\u202e", Sends: rate(1.25e9), Receives: nil}, {Name: "idle", Port: 1, Sends: rate(0)}, {Name: "unknown", Port: 1},
		},
		faulty: []views.PortCounters{{Name: "leaf", Port: 4, Errors: 7}, {Name: "good", Port: 1}},
		events: []views.Event{{Kind: "manager", Text: "hello\x1b[31m", At: at}},
	}
	var out bytes.Buffer
	if err := s.print(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"proved 3s ago", "switches 2 ", "(not active 1)", "red ", "1.2 GB/s", "leaf:4", "hello"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.ContainsAny(text, "\x1b\u202e\a") || strings.Contains(text, "idle") || strings.Contains(text, "unknown") || strings.Contains(text, "good") {
		t.Errorf("%q", text)
	}
	s.unread, s.status.ReadAt, s.busy = "nobody reads them", time.Time{}, nil
	out.Reset()
	if err := s.print(&out); err != nil || !strings.Contains(out.String(), "nobody reads them") || !strings.Contains(out.String(), "not been proved yet") || strings.Contains(out.String(), "leaf:4") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[float64]string{0: "0 B/s", 999.4: "999 B/s", 999.6: "1.0 kB/s", 12345: "12 kB/s", 2.5e10: "25 GB/s", 3e15: "3000 TB/s"} {
		if got := raw(&n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
	if raw(nil) != "-" {
		t.Error("a rate that is not known")
	}
}
