package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/test/need"
)

// emptied waits until no connection is open.
func emptied(t *testing.T, l *Listeners) {
	t.Helper()
	opens(t, l, 0)
}

// opens waits until so many connections are open.
func opens(t *testing.T, l *Listeners, want int) {
	t.Helper()
	need.Eventually(t, need.Patience, fmt.Sprint(want, " connections are open"), func() bool {
		open, _, _ := l.Connections()
		return open == want
	})
}

// TestAnswersThatNobodyReads: whoever asks and does not read is dropped when the time of
// an answer is over, and his place is free again.
func TestAnswersThatNobodyReads(t *testing.T) {
	s := newStand(t)
	path := socketIn(t)
	l := s.serves(Where{Socket: path}, short)
	const asked = 200
	var whole int64
	for _, reads := range []bool{true, false} {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(2 * time.Minute))
		go func() {
			for i := range asked {
				last := ""
				if i == asked-1 {
					last = "Connection: close\r\n"
				}
				fmt.Fprintf(c, "GET %s/openapi.json HTTP/1.1\r\nHost: x\r\n%s\r\n", Prefix, last)
			}
		}()
		if !reads {
			opens(t, l, 1)
			emptied(t, l)
		}
		got, err := io.Copy(io.Discard, c)
		c.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("no end after %d bytes", got)
		}
		if reads {
			whole = got
			emptied(t, l)
		} else if got >= whole {
			t.Errorf("%d bytes of answers that were not read in time, all are %d", got, whole)
		}
	}
	if whole < asked*1000 {
		t.Errorf("%d bytes: too few to fill what is between the two", whole)
	}
}

// TestHalfOpenTLS: a connection on which no handshake comes, or half of one, ends.
func TestHalfOpenTLS(t *testing.T) {
	s := newStand(t)
	cert, key := newAuthority(t).issue(t, "server", "")
	l := s.serves(Where{Listen: "127.0.0.1:0", Certificate: cert, Key: key}, short)
	address := strings.TrimPrefix(l.Describe[0], "https://")
	for name, send := range map[string]string{"nothing": "", "half a record": "\x16\x03\x01\x02\x00\x01\x00", "plain HTTP": "GET / HTTP/1.1\r\nHost: x\r\n\r\n"} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(c, send)
		text, err := io.ReadAll(c)
		if errors.Is(err, os.ErrDeadlineExceeded) || strings.Contains(string(text), " 200 ") {
			t.Errorf("%s: %q, %v: want its end", name, text, err)
		}
	}
	emptied(t, l)
	// Older versions of TLS are refused.
	old, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11})
	if err == nil {
		old.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

// TestQueriesAndStreamsAreBounded: a query that is too long, and one stream too many.
func TestQueriesAndStreamsAreBounded(t *testing.T) {
	s := newStand(t)
	s.want(422, call{method: "GET", path: "/revisions?cursor=" + strings.Repeat("a", 10)})
	s.want(http.StatusRequestURITooLong, call{method: "GET", path: "/revisions?cursor=" + strings.Repeat("a", listen.QueryMax)})
	s.api.watchers = StreamsMax
	w := s.do(call{method: "GET", path: "/events"})
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"busy"`) {
		t.Errorf("%d %s: want 503 busy", w.Code, w.Body)
	}
	if s.api.watchers != StreamsMax {
		t.Errorf("%d streams are counted after a refusal, want %d", s.api.watchers, StreamsMax)
	}
	s.api.watchers = 0
}

// TestAWaitForAProofEnds: a write that waits for a proof which does not come is answered
// as pending when its time is over, and is stored.
func TestAWaitForAProofEnds(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.manager.hold = true
	path := socketIn(t)
	limit := short
	limit.header, limit.body, limit.reply = 30*time.Second, 30*time.Second, 30*time.Second // a busy machine may need more than short's
	s.serves(Where{Socket: path}, limit)
	q, err := http.NewRequest("POST", "http://ibwarden"+Prefix+"/partitions?wait=proved", strings.NewReader(`{"name":"one"}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+s.tokens["red"])
	q.Header.Set("Content-Type", "application/json")
	client := unixClient(path)
	defer client.CloseIdleConnections()
	client.Timeout = 30 * time.Second
	a, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if text, _ := io.ReadAll(a.Body); a.StatusCode != http.StatusAccepted || !strings.Contains(string(text), `"pending"`) {
		t.Errorf("%d %s: want 202, pending", a.StatusCode, text)
	}
	if list := items(s.want(200, call{as: "red", method: "GET", path: "/partitions"})); len(list) != 1 {
		t.Errorf("%v: want it stored", list)
	}
}
