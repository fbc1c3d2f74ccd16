// webhook*.go: posts alarms to a URL, signed.
//
//	New      a Sender to a URL, with a secret
//	Send     queues an alarm and returns at once
//	Watcher  turns events of a manager into alarms
//	Close    delivers what is queued, for a while
//
// Each alarm is a POST of JSON. Ibwarden-Time is the Unix time of the attempt in seconds,
// and Ibwarden-Signature is "sha256=" and the HMAC-SHA256, in hexadecimal, of that time, a
// dot and the body under the secret: a receiver that compares both refuses what was
// forged, and what is replayed later. Ibwarden-Delivery is the same for all attempts at
// one alarm.
//
// A failed attempt is repeated with growing waits, up to Tries times. Redirects are not
// followed. At most QueueMax alarms wait; what is dropped is counted in the next alarm
// that is delivered.

package telemetry

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// WebhookQueueMax is how many alarms wait at most.
	WebhookQueueMax = 64
	// Tries is how often an alarm is sent at most.
	Tries = 6
	// tryTime is how long one attempt may take.
	tryTime = 10 * time.Second
	// firstWait is the wait after the first attempt; it doubles, up to longestWait.
	firstWait   = time.Second
	longestWait = 30 * time.Second
	// answerMax is how many bytes of an answer are read.
	answerMax = 64 << 10
	// SecretMin is the least length of a secret in bytes.
	SecretMin = 16
	// webhookCloseTime is how long Close waits for deliveries.
	webhookCloseTime = 3 * time.Second
)

// Alarm is what is posted.
type Alarm struct {
	// ID is the same for every attempt.
	ID string `json:"id"`
	// Time is when it happened, in UTC.
	Time time.Time `json:"time"`
	// Type is drift, exposure, unknown, resolved, rogue-manager, no-master,
	// several-masters, one-master, master-changed, master-flapping, other-policy,
	// same-policy or other-policy-guarded.
	Type string `json:"type"`
	// Text is a sentence for people.
	Text string `json:"text"`
	// Details are facts for programs.
	Details map[string]any `json:"details,omitempty"`
	// Dropped counts the alarms that were dropped since the last delivery.
	Dropped uint64 `json:"dropped"`
}

// WebhookCounts is what a Sender has done.
type WebhookCounts struct{ Delivered, Failed, Dropped, Retried uint64 }

// WebhookSender posts alarms. Any goroutine may use it.
type WebhookSender struct {
	url    string
	secret []byte
	client *http.Client
	now    func() time.Time
	wait   func(context.Context, time.Duration) error
	queue  chan Alarm
	report func(error)
	done   chan struct{}
	end    context.CancelFunc
	once   sync.Once

	delivered, failed, dropped, retried, untold atomic.Uint64
}

// NewWebhookSender returns a Sender to a URL: https, or http on a loopback address. report is told, in
// another goroutine, of each alarm that could not be delivered.
func NewWebhookSender(to string, secret []byte, report func(error)) (*WebhookSender, error) {
	u, err := checkedURL(to)
	switch {
	case err != nil:
		return nil, err
	case len(secret) < SecretMin:
		return nil, fmt.Errorf("the secret has %d bytes: want at least %d", len(secret), SecretMin)
	}
	ctx, end := context.WithCancel(context.Background())
	s := &WebhookSender{
		url: u.String(), secret: secret, now: time.Now, wait: sleep, queue: make(chan Alarm, WebhookQueueMax), report: report,
		done: make(chan struct{}), end: end,
		client: postingClient(),
	}
	go s.run(ctx)
	return s, nil
}

// checkedURL is where to post to: https, or http on a loopback address. The error does not have the URL, in which there
// may be a secret.
func checkedURL(to string) (*url.URL, error) {
	u, err := url.Parse(to)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("want a URL, https://HOST/PATH")
	case u.User != nil:
		return nil, errors.New("the URL has a user or password: want neither")
	case u.Scheme == "http" && !webhookIsLoopback(u.Hostname()):
		return nil, fmt.Errorf("http to %s: want https, or a loopback address", u.Hostname())
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q: want https", u.Scheme)
	}
	return u, nil
}

// postingClient makes requests of bounded time, without redirects, by no proxy.
func postingClient() *http.Client {
	return &http.Client{
		Timeout:       tryTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{MaxIdleConns: 1, IdleConnTimeout: longestWait, MaxResponseHeaderBytes: answerMax, ForceAttemptHTTP2: true},
	}
}

func webhookIsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Counts returns what the sender has done.
func (s *WebhookSender) Counts() WebhookCounts {
	return WebhookCounts{s.delivered.Load(), s.failed.Load(), s.dropped.Load(), s.retried.Load()}
}

// Send queues an alarm. It never waits: if too many wait already, the alarm is dropped.
func (s *WebhookSender) Send(a Alarm) {
	a.ID, a.Time = rand.Text(), s.now().UTC()
	select {
	case s.queue <- a:
	default:
		s.dropped.Add(1)
		s.untold.Add(1)
	}
}

// Close delivers what is queued, for a while, and ends the sender. Send must not be
// called any more.
func (s *WebhookSender) Close() {
	s.once.Do(func() { close(s.queue) })
	select {
	case <-s.done:
	case <-time.After(webhookCloseTime):
	}
	s.end()
	<-s.done
}

func (s *WebhookSender) run(ctx context.Context) {
	defer close(s.done)
	for a := range s.queue {
		a.Dropped = s.untold.Swap(0)
		if err := s.deliver(ctx, &a); err != nil {
			s.failed.Add(1)
			s.untold.Add(a.Dropped)
			s.report(fmt.Errorf("alarm %s (%s) was not delivered: %w", a.ID, a.Type, err))
			continue
		}
		s.delivered.Add(1)
	}
}

// deliver posts one alarm, several times if it has to.
func (s *WebhookSender) deliver(ctx context.Context, a *Alarm) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	wait := firstWait
	for try := 1; ; try++ {
		again, err := s.post(ctx, a.ID, body)
		if err == nil || !again || try == Tries {
			return err
		}
		if s.wait(ctx, wait) != nil {
			return err
		}
		s.retried.Add(1)
		wait = min(2*wait, longestWait)
	}
}

// WebhookSignature is the value of Ibwarden-WebhookSignature for a body that is sent at a time.
func WebhookSignature(secret []byte, unix int64, body []byte) string {
	m := hmac.New(sha256.New, secret)
	fmt.Fprintf(m, "%d.", unix)
	m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// post sends once; again says that it may be tried again.
func (s *WebhookSender) post(ctx context.Context, id string, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	unix := s.now().Unix()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Ibwarden-Delivery", id)
	r.Header.Set("Ibwarden-Time", strconv.FormatInt(unix, 10))
	r.Header.Set("Ibwarden-Signature", WebhookSignature(s.secret, unix, body))
	return posted(s.client, r)
}

// posted makes a request. again says that one that failed may be tried again. The error does not have the URL.
func posted(client *http.Client, r *http.Request) (again bool, err error) {
	r.Header.Set("User-Agent", "ibwarden")
	answer, err := client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return r.Context().Err() == nil, err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, answerMax)
	switch c := answer.StatusCode; {
	case c >= 200 && c < 300:
		return false, nil
	case c == http.StatusTooManyRequests || c == http.StatusRequestTimeout || c >= 500:
		return true, fmt.Errorf("answered with status %d", c)
	default: // redirects too
		return false, fmt.Errorf("answered with status %d", c)
	}
}
