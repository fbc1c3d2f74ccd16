// alertmanager.go: sends the alarms that are open to Prometheus's Alertmanagers.
//
// As Prometheus does, each is sent every alert by POST /api/v2/alerts, at once when something has changed and again each
// minute, with the time at which it ends by itself (views.AlertLife): no alert outlasts a manager that died for longer. What is
// not open any more is sent as over for 15 minutes. There is no queue: an Alertmanager that was slow or did not answer is sent
// what is so by then.

package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/metrics"
)

const (
	// AlertmanagersMax is how many Alertmanagers are sent to at most.
	AlertmanagersMax = 8
	// AlertsMax is how many alerts are sent at most: of more, those that were told of first.
	AlertsMax = 10_000
	// alertBatch is how many alerts one request has at most.
	alertBatch = 64
	// alertAgain is when an alert that is open is sent again.
	alertAgain = time.Minute
	// resolvedKept is for how long an alert that is over is sent as such.
	resolvedKept = 15 * time.Minute
)

// Alertmanagers sends alerts. Any goroutine may use it.
type Alertmanagers struct {
	targets []*alertmanager
	end     context.CancelFunc
	works   sync.WaitGroup

	mu    sync.Mutex
	known map[string]views.Alert // by labels: what is open, and what is over
	told  time.Time              // when the targets were last told that there is something to send
}

// alertmanager is one of them.
type alertmanager struct {
	host, url             string
	client                *http.Client
	news                  chan struct{} // there is something to send
	wait                  func(context.Context, time.Duration) error
	report                func(error)
	sent, failed, dropped atomic.Uint64
}

// NewAlertmanagers returns what sends to Alertmanagers, each the URL of one: https, or http on a loopback address. report is
// told, in another goroutine, when one does not take what it is sent, and when it does again.
func NewAlertmanagers(urls []string, report func(error)) (*Alertmanagers, error) {
	a := &Alertmanagers{known: map[string]views.Alert{}}
	if len(urls) > AlertmanagersMax {
		return nil, fmt.Errorf("%d URLs: want at most %d", len(urls), AlertmanagersMax)
	}
	for _, to := range urls {
		u, err := checkedURL(to)
		switch {
		case err != nil:
			return nil, err
		case u.RawQuery != "" || u.Fragment != "":
			return nil, errors.New("want the URL of an Alertmanager, without ? and #")
		case slices.ContainsFunc(a.targets, func(t *alertmanager) bool { return t.host == u.Host }):
			return nil, fmt.Errorf("%s is there twice", u.Host)
		}
		a.targets = append(a.targets, &alertmanager{host: u.Host, url: u.JoinPath("api/v2/alerts").String(), client: postingClient(), news: make(chan struct{}, 1), wait: sleep, report: report})
	}
	ctx, end := context.WithCancel(context.Background())
	a.end = end
	for _, t := range a.targets {
		a.works.Go(func() { t.run(ctx, a.all) })
	}
	return a, nil
}

// Tell says what is open now, the worst first. It returns at once.
func (a *Alertmanagers) Tell(open []views.Alert, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	is, changed, dropped := map[string]bool{}, false, uint64(0)
	for _, x := range open {
		k := fmt.Sprint(x.Labels) // in the order of their names
		old, known := a.known[k]
		if is[k] = true; !known && len(a.known) >= AlertsMax {
			dropped++
			continue
		}
		changed = changed || !old.EndsAt.After(now) || !maps.Equal(old.Annotations, x.Annotations)
		a.known[k] = x
	}
	for k, x := range a.known {
		switch {
		case is[k]:
		case x.EndsAt.After(now):
			x.EndsAt, changed = now, true
			a.known[k] = x
		case now.Sub(x.EndsAt) > resolvedKept:
			delete(a.known, k)
		}
	}
	again := changed || now.Sub(a.told) >= alertAgain
	if again {
		a.told = now
	}
	for _, t := range a.targets {
		if t.dropped.Add(dropped); again {
			select {
			case t.news <- struct{}{}:
			default: // it is about to look
			}
		}
	}
}

// Rest ends what Tell said: another manager tells it now.
func (a *Alertmanagers) Rest() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.known)
}

// all is what is to be sent.
func (a *Alertmanagers) all() []views.Alert {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.known))
}

// Counts is how many alerts were sent, for the metrics.
func (a *Alertmanagers) Counts() (list []metrics.Labelled) {
	for _, t := range a.targets {
		for result, n := range map[string]*atomic.Uint64{"sent": &t.sent, "failed": &t.failed, "dropped": &t.dropped} {
			list = append(list, metrics.Labelled{Labels: []string{t.host, result}, N: n.Load()})
		}
	}
	return list
}

// Close ends it. What is open ends for the Alertmanagers when its time has come.
func (a *Alertmanagers) Close() {
	a.end()
	a.works.Wait()
}

// run sends what there is, whenever there is something, until ctx ends.
func (t *alertmanager) run(ctx context.Context, all func() []views.Alert) {
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-t.news:
		}
		for wait := firstWait; ; wait = min(2*wait, longestWait) {
			list := all()
			again, err := t.send(ctx, list)
			switch {
			case ctx.Err() != nil:
				return
			case len(list) == 0: // that says nothing of it
			case err != nil && !failing:
				t.report(fmt.Errorf("%s does not take alarms: %w", t.host, err))
			case err == nil && failing:
				t.report(fmt.Errorf("%s takes alarms again", t.host))
			}
			if failing = err != nil || failing && len(list) == 0; !again || t.wait(ctx, wait) != nil {
				break
			}
		}
	}
}

// send sends alerts. again says that it did not get to all, and is to be tried again.
func (t *alertmanager) send(ctx context.Context, list []views.Alert) (again bool, err error) {
	for batch := range slices.Chunk(list, alertBatch) {
		again, fault := t.post(ctx, batch)
		if fault == nil {
			t.sent.Add(uint64(len(batch)))
			continue
		}
		t.failed.Add(uint64(len(batch)))
		if err = fault; again {
			return true, err
		}
	}
	return false, err
}

func (t *alertmanager) post(ctx context.Context, batch []views.Alert) (again bool, err error) {
	body, err := json.Marshal(batch)
	if err != nil {
		return false, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	return posted(t.client, r)
}
