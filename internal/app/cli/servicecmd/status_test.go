package servicecmd

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
)

// statusOfAnswers is what `ibwarden status` makes of what a service answers to some paths.
func statusOfAnswers(t *testing.T, of map[string]string) (*Overview, string) {
	t.Helper()
	s, server := recording(t)
	s.instead = of
	at, err := listen.ParseServer(server)
	if err != nil {
		t.Fatal(err)
	}
	to, err := client.New(at, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	o, err := overview(ctx, to)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := o.print(&b); err != nil {
		t.Fatal(err)
	}
	return o, b.String()
}

// TestStatusSaysWhatIsWrong: each thing that is not as it should be has a line, with whom it
// concerns and what to try; what is in order has none.
func TestStatusSaysWhatIsWrong(t *testing.T) {
	good := map[string]string{
		"/status":    `{"item":{"version":"1","verdict":"isolated","holds":true,"read_at":"2001-09-09T01:46:40Z","fabric":{"switches":2,"cas":4,"links":6},"tenants":2}}`,
		"/revisions": `{"items":[{"revision":9,"outcome":{"state":"pending"}},{"revision":8,"outcome":{"state":"proved"}},{"revision":7,"outcome":{"state":"failed"}}]}`,
		"/managers":  `{"items":[{"node":"mgmt-1","port":"0x31","self":true,"state":"master"}]}`,
		"/cables":    `{"items":[]}`,
	}
	o, text := statusOfAnswers(t, good)
	if len(o.Wrong) > 0 || o.Proved != 8 || len(o.Pending) != 1 || o.Pending[0] != 9 {
		t.Errorf("a good one: %+v", o)
	}
	for _, want := range []string{"verdict:   isolated, proved ", "mgmt-1 (0x31) is master, which answers this; 1 manager in all", "8 is in force, pending: 9\n", "hosts 4, switches 2 (drained 0), routers 0, links 6 (not active 0)", "nothing is known"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	for _, x := range []struct{ path, answer, concerns, want string }{
		{"/status", `{"item":{"holds":true,"fabric":{"inactive":2}}}`, "the hosts and switches at them", "2 links are not active (ibwarden show links)"},
		{"/status", `{"item":{"holds":true,"fabric":{},"approvals":1}}`, "all", "1 change is to be approved by a second person (ibwarden approval list)"},
		{"/status", `{"item":{"holds":true,"fabric":{},"store":"revision 4 is missing"}}`, "all", "no change is taken: revision 4 is missing (ibwarden history verify)"},
		{"/managers", `{"items":[]}`, "all", "0 subnet managers are master: want one (ibwarden show managers)"},
		{"/managers", `{"items":[{"state":"master"},{"state":"master","missed":3}, {"state":"master"}]}`, "all", "2 subnet managers are master"},
		{"/managers", `{"items":[{"state":"master"},{"node":"x","state":"standby","why":"no secret"}]}`, "x", "does not count: no secret"},
		{"/managers", `{"items":[{"state":"master"},{"node":"x","state":"standby","policy":"other"}]}`, "x", "has another policy"},
		{"/revisions", `{"items":[{"revision":9,"tenant":"red","action":"put member","outcome":{"state":"refused","reasons":["no room"]}},{"revision":8,"outcome":{"state":"proved"}}]}`, "red", "revision 9 (put member) was refused by the fabric: no room (ibwarden history show 9)"},
		{"/revisions", `{"items":[{"revision":9,"action":"put member","outcome":{"state":"failed"}}]}`, "all", "revision 9 (put member) was written, and is not proved (ibwarden history show 9)"},
		{"/cables", `{"items":[{"name":"leaf-1","text":"leaf-1:3 leads nowhere"}]}`, "leaf-1", "leaf-1:3 leads nowhere (ibwarden topology diff)"},
	} {
		with := map[string]string{}
		for path, answer := range good {
			with[path] = answer
		}
		with[x.path] = x.answer
		o, text := statusOfAnswers(t, with)
		if len(o.Wrong) != 1 || o.Wrong[0].Concerns != x.concerns || !strings.Contains(text, "\n  "+x.concerns+": ") || !strings.Contains(text, x.want) {
			t.Errorf("%s %s: %+v\n%s\nwant one line, %s: %s", x.path, x.answer, o.Wrong, text, x.concerns, x.want)
		}
	}
}

// TestStatusOfWhatIsNotProved: the ports that can talk and may not are named, and a tenant is told
// of its own; it is not asked what only the provider may ask.
func TestStatusOfWhatIsNotProved(t *testing.T) {
	with := map[string]string{
		"/status":    `{"item":{"verdict":"violated","fabric":{}}}`,
		"/revisions": `{"items":[]}`, "/cables": `{"items":[]}`,
		"/managers": `{"items":[{"state":"master"}]}`,
		"/proof":    `{"item":{"violations":[{"from":"red-1","to":"blue-1","pkey":"0x8010"}],"reasons":["leaf-1 was not read"],"counts":{"violations":3}}}`,
	}
	_, text := statusOfAnswers(t, with)
	for _, want := range []string{"  red-1 and blue-1: they can talk with P_Key 0x8010, and may not (ibwarden why red-1 blue-1)\n", "  all: leaf-1 was not read (ibwarden prove)\n", "  all: 2 more pairs", "none is proved, none is pending", "has not been proved yet"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	own := map[string]string{
		"/status": `{"item":{"verdict":"violated"}}`, "/revisions": `{"items":[]}`,
		"/proof": `{"item":{"violations":[{"from":"red-1","pkey":"0x8010"}],"counts":{"violations":1}}}`,
	}
	own["/managers"], own["/cables"] = "", ""
	o, text := statusOfAnswers(t, own)
	if o.Managers != nil || len(o.Wrong) != 1 || !strings.Contains(text, "  red-1: it can talk with P_Key 0x8010 with a port that it may not talk with\n") || strings.Contains(text, "fabric:") || strings.Contains(text, "manager:") {
		t.Errorf("of a tenant: %+v\n%s", o, text)
	}
	var many Overview
	many.unproved(&views.Proof{Reasons: make([]string, statusWrong+3)})
	var b bytes.Buffer
	if err := many.print(&b); err != nil || strings.Count(b.String(), "\n  ") != statusWrong+1 || !strings.Contains(b.String(), "  and 3 more (--json)\n") {
		t.Errorf("%v of many:\n%s", err, b.String())
	}
}

// TestStatusBeforeTheFirstSweep: a service that has not read the fabric has no managers and no proof.
func TestStatusBeforeTheFirstSweep(t *testing.T) {
	s, server := recording(t)
	s.instead = map[string]string{"/status": `{"item":{"verdict":"unknown","fabric":{}}}`}
	s.unready = []string{"/managers", "/cables", "/proof"}
	out, err := run(t, server, "status")
	if statusOf(err) != terminal.Bad || !strings.Contains(err.Error(), "unknown") || !strings.Contains(out, "has not been proved yet") {
		t.Errorf("%v, %s", err, out)
	}
}

// TestStatusWithoutAService: what to try is said, whether none was named or none is there.
func TestStatusWithoutAService(t *testing.T) {
	t.Setenv(daemon.DataVariable, t.TempDir())
	t.Setenv(listen.ServerVariable, "")
	for _, server := range []string{"", "unix:" + filepath.Join(t.TempDir(), "none")} {
		out, err := run(t, server, "status")
		if out != "" || statusOf(err) != terminal.Bad || !strings.Contains(err.Error(), "ibwarden audit --fabric umad") || !strings.Contains(err.Error(), "ibwarden run") {
			t.Errorf("at %q: %v, %q", server, err, out)
		}
	}
	if _, err := run(t, "unix:none", "status --fabric umad:x"); statusOf(err) != terminal.Misuse || !strings.Contains(err.Error(), "ibwarden audit --fabric umad:x ") {
		t.Errorf("of a fabric: %v", err)
	}
}
