package servicecmd

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// more is what the service answers to top beside what answers has. A host has called itself evil.
var more = map[string]string{
	"/status":                           `{"revision":7,"item":{"version":"1.2","verdict":"isolated","holds":true,"read_at":"2001-09-09T01:30:00Z","checked_at":"2001-09-09T01:46:40Z","fabric":{"switches":2,"cas":4,"links":6,"inactive":1},"tenants":2,"partitions":1,"members":2,"ports":3,"approvals":1}}`,
	"/ports":                            `{"items":[{"guid":"0x0000000000000011","owner":"red","found":true,"node":"red-1 HCA-1","node_guid":"0x0000000000000010","number":1,"lid":5,"state":"Active","switch":"0x0000000000000051","switch_port":7,"partitions":["0x0100","0x0101"]},{"guid":"0x0000000000000012","owner":"red"},{"guid":"0x0000000000000013","owner":"","found":true,"node":"\u001b[2Jevil\u001b]0;x\u0007","number":1,"lid":6,"state":"Down","partitions":[]}]}`,
	"/ports/0x0000000000000011":         `{"item":{"guid":"0x0000000000000011","owner":"red","found":true,"node":"red-1 HCA-1","node_guid":"0x0000000000000010","number":1,"lid":5,"state":"Active","switch":"0x0000000000000051","switch_port":7,"partitions":["0x0100","0x0101"]}}`,
	"/nodes/0x0000000000000010/ports/1": `{"item":{"number":1,"peer":{"node":"0x0000000000000051","name":"leaf-1","port":7},"width":"4X","speed":"25 Gbps","pkeys":[{"index":0,"pkey":"0x0100","full":true,"partition":"training"},{"index":1,"pkey":"0x0101","full":false}]}}`,
	"/peers":                            `{"items":[{"guid":"0x0000000000000012","name":"red-2 HCA-1","lid":7,"talks":true,"over":[{"pkey":"0x0100","name":"training","there":"delivered","back":"delivered"}]},{"guid":"0x0000000000000013","name":"\u001b[2Jevil","lid":6,"talks":false,"over":[{"pkey":"0x0101","name":"test","there":"lost","back":"delivered"},{"pkey":"0x0100","name":"training","there":"lost","back":"lost"}]}]}`,
	"/why":                              `{"item":{"from":{"name":"red-1 HCA-1"},"to":{"name":"\u001b[2Jevil"},"cause":"stopped","sentence":"they share training (0x0100), and a packet of it does not get through","read_at":"2001-09-09T01:46:40Z","shared":[{"pkey":"0x0100","name":"training","from_full":true,"to_full":true,"there":{"disposition":"stopped","reason":"leaf-1 drops it at port 7: P_Key 0x8100 is not in its table","hops":[{"name":"red-1 HCA-1","out":1},{"name":"leaf-1","in":7}]},"back":{"disposition":"delivered","hops":[]}}],"remedies":[{"kind":"repair","text":"read the fabric again"}]}}`,
	"/links":                            `{"items":[{"a":{"node":"0x0000000000000051","port":1,"name":"leaf-1"},"b":{"node":"0x0000000000000052","port":9,"name":"spine-1"},"width":"4X","state":"Active"},{"a":{"node":"0x0000000000000051","port":7,"name":"leaf-1"},"b":{"node":"0x0000000000000010","port":1,"name":"red-1 HCA-1"},"width":"1X","state":"Down"}]}`,
	"/counters":                         `{"items":[{"node":"0x0000000000000051","name":"leaf-1","port":7,"peer":"red-1 HCA-1","age":3.4,"sends":12500000000,"receives":10,"errors":24,"counters":{"SymbolErrorCounter":20,"PortRcvErrors":4,"PortXmitData":7,"LinkDownedCounter":0}},{"node":"0x0000000000000051","name":"leaf-1","port":8,"peer":"spine-1","fault":"no answer","errors":0,"counters":{}}]}`,
	"/revisions":                        `{"items":[{"revision":7,"at":"2001-09-09T01:46:40Z","by":"ann","tenant":"red","action":"put partition","why":"first","words":["partition 0x0100 is made","port 0x0000000000000011 of tenant red is a full member of 0x0100"],"outcome":{"state":"failed","verdict":"violated"}},{"revision":6,"at":"2001-09-09T01:40:00Z","by":"uid 0","action":"put tenant","words":["tenant red is made"],"outcome":{"state":"proved"}}]}`,
	"/revisions/7":                      `{"item":{"revision":7,"at":"2001-09-09T01:46:40Z","by":"ann","tenant":"red","action":"put partition","why":"first","words":["partition 0x0100 is changed"],"edits":[{"key":"partition/0x0100","before":{"name":"old","sl":0,"mtu":2048},"after":{"name":"\u001b[2Jnew","sl":0,"rate":10}},{"key":"member/0x0100/0x11","before":{"port":"0x11"}}]}}`,
}

// topNow is when the screens of these tests are drawn.
var topNow = time.Date(2001, 9, 9, 1, 46, 45, 0, time.UTC)

// opened is top on the service of these tests, at the size of a terminal, with the first screen answered.
func opened(t *testing.T, width, height int, instead map[string]string) (*recorder, *terminal.Model) {
	t.Helper()
	s, address := recording(t)
	s.instead = instead
	at, err := listen.ParseServer(address)
	if err != nil {
		t.Fatal(err)
	}
	to, err := client.New(at, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := (&source{to: to}).model(time.Second)
	m.At(topNow)
	m.Resize(width, height)
	answered(m)
	return s, m
}

func answered(m *terminal.Model) {
	for {
		r, some := m.Wants()
		if !some {
			return
		}
		m.Enter(m.Ask(context.Background(), r))
	}
}

// drawn is a screen with a frame, so that the size is seen; without where the service is, and with
// empty lines counted.
func drawn(m *terminal.Model, width int) string {
	var b strings.Builder
	empty := 0
	for _, line := range m.Draw() {
		text, _, _ := strings.Cut(line.String(), "unix:")
		if text == "" {
			empty++
			continue
		}
		if empty > 0 {
			fmt.Fprintf(&b, "%d empty\n", empty)
		}
		empty = 0
		fmt.Fprintf(&b, "|%s%s|\n", text, strings.Repeat(" ", max(width-len(text), 0)))
	}
	return b.String()
}

// Every view of top at 80x24 and at 200x50, and what was asked for it.
func TestTopScreens(t *testing.T) {
	var out strings.Builder
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		s, m := opened(t, size[0], size[1], more)
		for _, x := range []struct{ name, keys string }{
			{"overview", ""}, {"tenants", "2"}, {"hosts of a tenant", "enter"}, {"host", "enter"}, {"why", "down w"}, {"two are marked", "esc esc space down space"}, {"why again", "w"},
			{"all hosts", "3"}, {"hosts that are down", "/ d o w n enter"}, {"links by state", "4 s s s s s s"}, {"load", "5"}, {"errors", "6"}, {"history", "7"}, {"what differs", "enter"},
			{"plans", "8"}, {"plan", "enter"}, {"events", "9"}, {"event", "enter"}, {"keys", "?"},
		} {
			for _, k := range strings.Fields(x.keys) {
				m.Key(strings.Replace(k, "space", " ", 1))
				answered(m)
			}
			s.mu.Lock()
			fmt.Fprintf(&out, "== %s, %dx%d\n", x.name, size[0], size[1])
			if size[0] == 80 {
				fmt.Fprintf(&out, "%s\n", strings.Join(s.requests, "\n"))
			}
			s.requests = nil
			s.mu.Unlock()
			out.WriteString(drawn(m, size[0]))
			m.At(topNow) // nothing of what is seen is due
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\a") {
		t.Error("an escape is drawn")
	}
	const file = "testdata/top.txt"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	wanted, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(wanted), out.String()); d != "" {
		t.Errorf("%s (-update writes it):\n%s", file, d)
	}
}

// A tenant is shown no view of the provider, asks for none, and what it may not see takes no more than
// that view away.
func TestTopOfATenant(t *testing.T) {
	instead := map[string]string{"/status": `{"revision":3,"item":{"version":"1.2","verdict":"isolated","holds":true,"tenants":1}}`}
	s, m := opened(t, 80, 24, instead)
	for _, k := range []string{"4", "5", "6", "2", "3", "7", "9"} {
		m.Key(k)
		answered(m)
	}
	for _, r := range s.requests {
		for _, path := range []string{"/managers", "/links", "/counters", "/sweeps"} {
			if strings.Contains(r, path) {
				t.Errorf("a tenant asks %s", r)
			}
		}
	}
	if text := drawn(m, 80); strings.Contains(text, "links") || strings.Contains(text, "load") || !strings.Contains(text, "[9events]") || !strings.Contains(text, "not proved yet") {
		t.Error(text)
	}
	s.mu.Lock()
	s.fails, s.status, s.requests = 1, http.StatusForbidden, nil
	s.mu.Unlock()
	m.Key("8")
	answered(m)
	if text := drawn(m, 80); strings.Contains(text, "plans") || !strings.Contains(text, "[1overview]") || !strings.Contains(text, "the service is broken") {
		t.Error(text)
	}
}

// What of a view cannot be answered is said; one that says nothing is no view that has nothing.
func TestTopWithout(t *testing.T) {
	s, m := opened(t, 80, 24, more)
	for i, x := range []struct {
		path, keys, want string
	}{
		{"/ports/0x0000000000000011", "3 enter", "the fabric was not read yet"}, {"/managers", "1", "| revision 7 |"}, {"/links", "4", "the fabric was not read yet"}, {"/peers", "3 enter", "the fabric was not read yet"},
		{"/sweeps", "1", "leaf-1:7"}, {"/counters", "1", "the fabric was not read yet"},
	} {
		s.mu.Lock()
		s.unready = []string{x.path}
		s.mu.Unlock()
		m.At(topNow.Add(time.Duration(i+1) * time.Minute))
		for _, k := range strings.Fields("esc esc esc " + x.keys) {
			m.Key(k)
			answered(m)
		}
		if text := drawn(m, 80); !strings.Contains(text, x.want) {
			t.Errorf("without %s: no %q in\n%s", x.path, x.want, text)
		}
	}
	s.mu.Lock()
	s.requests, s.fails, s.status = nil, 1, http.StatusUnauthorized
	s.mu.Unlock()
	m.At(topNow.Add(2 * time.Hour))
	answered(m)
	m.At(topNow.Add(2*time.Hour + time.Second/2))
	if text := drawn(m, 80); !strings.Contains(text, "NO ANSWER") || !strings.Contains(text, "the service is broken") {
		t.Error(text)
	}
}
