package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

var secret = []byte("0123456789abcdef")

// receiver is a server that notes what it gets and answers as it is told.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	alarms []Alarm
	ids    []string
	answer func(n int) int // status of the n-th request, from 1
	faults []string
}

func newReceiver(t *testing.T, answer func(n int) int) *receiver {
	r := &receiver{answer: answer}
	n := 0
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		unix, err := strconv.ParseInt(q.Header.Get("Ibwarden-Time"), 10, 64)
		r.mu.Lock()
		defer r.mu.Unlock()
		n++
		var a Alarm
		if err != nil || q.Method != "POST" || q.Header.Get("Content-Type") != "application/json" || json.Unmarshal(body, &a) != nil {
			r.faults = append(r.faults, fmt.Sprint(q.Method, q.Header, string(body)))
		}
		if got := q.Header.Get("Ibwarden-Signature"); got != WebhookSignature(secret, unix, body) || got == WebhookSignature([]byte("another secret...."), unix, body) || got == WebhookSignature(secret, unix+1, body) {
			r.faults = append(r.faults, "signature "+got)
		}
		r.ids = append(r.ids, q.Header.Get("Ibwarden-Delivery"))
		status := r.answer(n)
		if status/100 == 2 {
			r.alarms = append(r.alarms, a)
		}
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(func() {
		r.Close()
		for _, f := range r.faults {
			t.Error(f)
		}
	})
	return r
}

// sender returns a sender whose waits take no time, and the waits.
func sender(t *testing.T, url string) (*WebhookSender, *[]time.Duration, *[]error) {
	t.Helper()
	var mu sync.Mutex
	var faults []error
	s, err := NewWebhookSender(url, secret, func(err error) { mu.Lock(); faults = append(faults, err); mu.Unlock() })
	if err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration
	s.wait = func(ctx context.Context, d time.Duration) error { waits = append(waits, d); return ctx.Err() }
	t.Cleanup(s.Close)
	return s, &waits, &faults
}

func TestDelivery(t *testing.T) {
	r := newReceiver(t, func(n int) int { return []int{500, 429, 204, 200}[n-1] })
	s, waits, faults := sender(t, r.URL+"/hook?x=1")
	s.Send(Alarm{Type: "drift", Text: "one"})
	s.Send(Alarm{Type: "unknown", Text: "two"})
	s.Close()
	if len(r.alarms) != 2 || r.alarms[0].Text != "one" || r.alarms[1].Type != "unknown" || r.alarms[0].ID == r.alarms[1].ID || r.alarms[0].Time.IsZero() {
		t.Errorf("%+v", r.alarms)
	}
	if len(r.ids) != 4 || r.ids[0] != r.ids[2] || r.ids[0] != r.alarms[0].ID {
		t.Errorf("deliveries %q", r.ids)
	}
	if !slices.Equal(*waits, []time.Duration{time.Second, 2 * time.Second}) || len(*faults) != 0 {
		t.Errorf("waits %v, faults %v", *waits, *faults)
	}
	if c := s.Counts(); c != (WebhookCounts{Delivered: 2, Retried: 2}) {
		t.Errorf("%+v", c)
	}
}

// TestGivesUp: tries are bounded, refusals and redirects are not repeated, and no error
// shows the URL.
func TestGivesUp(t *testing.T) {
	for status, want := range map[int]int{503: Tries, 400: 1, 401: 1, 301: 1, 307: 1, 408: Tries} {
		r := newReceiver(t, func(int) int { return status })
		s, waits, faults := sender(t, r.URL+"/token-in-the-path")
		s.Send(Alarm{Type: "drift"})
		s.Close()
		if len(r.ids) != want || len(*faults) != 1 || strings.Contains((*faults)[0].Error(), "token-in-the-path") {
			t.Errorf("status %d: %d requests, want %d; %v", status, len(r.ids), want, *faults)
		}
		if total := (*waits); want > 1 && (len(total) != Tries-1 || slices.Max(total) > longestWait) {
			t.Errorf("waits %v", total)
		}
	}
	s, _, faults := sender(t, "http://127.0.0.1:1/token-in-the-path")
	s.Send(Alarm{Type: "drift"})
	s.Close()
	if len(*faults) != 1 || strings.Contains((*faults)[0].Error(), "token-in-the-path") {
		t.Errorf("nobody listens: %v", *faults)
	}
}

// TestFull: a receiver that hangs holds up nobody, and is told how much it missed.
func TestFull(t *testing.T) {
	hold := make(chan struct{})
	r := newReceiver(t, func(n int) int {
		if n == 1 {
			<-hold
		}
		return 200
	})
	s, _, _ := sender(t, r.URL)
	const more = 100
	for i := range WebhookQueueMax + more {
		s.Send(Alarm{Type: "drift", Text: strconv.Itoa(i)})
	}
	dropped := s.Counts().Dropped
	if dropped < more-1 || dropped > more {
		t.Errorf("%d dropped", dropped)
	}
	close(hold)
	s.Close()
	told := uint64(0)
	for _, a := range r.alarms {
		told += a.Dropped
	}
	if told != dropped || len(r.alarms) != WebhookQueueMax+more-int(dropped) {
		t.Errorf("%d alarms, which tell of %d that were dropped; %d were", len(r.alarms), told, dropped)
	}
}

// TestCloseEnds: a receiver that never answers does not keep the program.
func TestCloseEnds(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	s, err := NewWebhookSender(server.URL, secret, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	s.Send(Alarm{Type: "drift"})
	s.Close()
	s.Close()
	if c := s.Counts(); c.Failed != 1 {
		t.Errorf("%+v", c)
	}
}

func TestURLs(t *testing.T) {
	for _, u := range []string{"", "x", "ftp://h/", "http://example.com/", "https://user:pw@h/", "http://192.0.2.1/", "file:///etc/passwd", "https://"} {
		if s, err := NewWebhookSender(u, secret, nil); err == nil {
			s.Close()
			t.Errorf("%s is taken", u)
		} else if strings.Contains(err.Error(), "pw") {
			t.Errorf("%v shows a password", err)
		}
	}
	if _, err := NewWebhookSender("https://h/", []byte("short"), nil); err == nil {
		t.Error("a short secret is taken")
	}
}

func TestWatcher(t *testing.T) {
	var got []Alarm
	w := NewWatcher(func(a Alarm) { got = append(got, a) })
	want := func(types ...string) {
		t.Helper()
		var is []string
		for _, a := range got {
			is = append(is, a.Type)
			if len(a.Text) > textMax || !utf8.ValidString(a.Text) || strings.ContainsAny(a.Text, "\n\x1b") {
				t.Errorf("text %q", a.Text)
			}
		}
		if !slices.Equal(is, types) {
			t.Errorf("alarms %q, want %q", is, types)
		}
		got = nil
	}
	done := func(v isolation.Verdict, exposed int, reasons ...string) {
		p := &isolation.Proof{Verdict: v, Reasons: reasons}
		p.Counts.Exposed = exposed
		w.Event(event.Completed{Result: &event.Result{Proof: p}})
	}
	done(isolation.Isolated, 0)
	want()
	node := &observed.Node{Description: "evil\n\x1b" + strings.Repeat("ü", 600), Ports: make([]observed.Port, 2)}
	node.Ports[1].Node, node.Ports[1].Num = node, 1
	for range 1000 {
		w.Event(event.Drifted{Op: plan.Op{Port: &node.Ports[1], Attribute: smp.AttrPKeyTable}})
	}
	want()
	done(isolation.Isolated, 0)
	want("drift")
	done(isolation.Violated, 0, "red-1 and blue-1 can talk")
	done(isolation.Violated, 3)
	want("exposure")
	done(isolation.Unknown, 0)
	done(isolation.Unknown, 0)
	want("unknown")
	done(isolation.Unguarded, 0)
	done(isolation.Isolated, 0)
	want("resolved")
	done(isolation.Isolated, 2)
	want("exposure")
	w.Event(event.RogueManager{Port: 7, At: "red-1\n", Reason: "nobody named it"})
	want("rogue-manager")
	a, b := event.Master{Port: 7, Name: "mgmt-1\n", Counts: true}, event.Master{Port: 9, Name: "mgmt-2"}
	for _, x := range []struct {
		e    event.Event
		want string
	}{
		{event.NoMaster{Last: a}, "no-master"}, {event.SeveralMasters{Masters: []event.Master{a, b}, Count: 2}, "several-masters"}, {event.OneMaster{Master: a}, "one-master"},
		{event.MasterChanged{From: a, To: b}, "master-changed"}, {event.MasterFlapping{Changes: 4, Within: time.Minute, Master: a}, "master-flapping"},
		{event.OtherPolicy{Managers: []event.Master{a}, Count: 1}, "other-policy"}, {event.SamePolicy{}, "same-policy"}, {event.Guarding{Reason: "a does not answer"}, "other-policy-guarded"},
	} {
		w.Event(x.e)
		want(x.want)
	}
}
