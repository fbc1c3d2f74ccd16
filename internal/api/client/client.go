// Package client calls the service's API: over its Unix socket, or over TLS with a token
// or a client certificate.
//
//	New            a client of one server
//	Get, All       one object, or a whole list, page by page
//	Client.Write   a change
//	Client.Fetch   an answer that is no JSON, such as a backup
//	Client.Events  events as they happen
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/views"
)

// Limits of a client.
const (
	dialTimeout   = 5 * time.Second   // to connect
	answerTimeout = 150 * time.Second // from a request to the header of its answer, which may wait for a proof
	answerMax     = 64 << 20          // bytes of an answer in JSON
	pageSize      = 1000              // objects in a page of a list
)

// Options are what a client shows of itself, and whom it trusts.
type Options struct {
	// Old is told, once, why what the service answers may be old; nil for nobody.
	Old   func(why string)
	Token string
	// CA are the CAs of the server's certificate, PEM; those of the system for nil.
	CA []byte
	// Certificate and Key are those of the client, PEM.
	Certificate, Key []byte
	// OwnOnly refuses a socket that is not Trusted, and one of a service that neither
	// root nor this user runs: for sockets at a place that nobody named.
	OwnOnly bool
}

// Client is a client of one server. It may be used by several goroutines.
type Client struct {
	server listen.Server
	base   string
	token  string
	http   *http.Client
	old    func(why string)
	aged   sync.Once // old was told
}

// ErrNone says that no service is there.
var ErrNone = errors.New("no service runs there")

// New returns a client. Nothing is sent.
func New(s listen.Server, o Options) (*Client, error) {
	c := &Client{old: o.Old, server: s, base: s.URL, token: o.Token}
	dialer := &net.Dialer{Timeout: dialTimeout}
	transport := &http.Transport{
		DialContext: dialer.DialContext, ResponseHeaderTimeout: answerTimeout, TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if s.Socket != "" {
		c.base = "http://ibwarden"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			if o.OwnOnly {
				if err := Trusted(s.Socket); err != nil {
					return nil, fmt.Errorf("%w: %w", ErrForeign, err)
				}
			}
			conn, err := dialer.DialContext(ctx, "unix", s.Socket)
			if err == nil && o.OwnOnly {
				if err = own(conn); err != nil {
					conn.Close()
				}
			}
			return conn, err
		}
	}
	if len(o.CA) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("CA of the server: want certificates in PEM")
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	if len(o.Certificate) > 0 {
		pair, err := tls.X509KeyPair(o.Certificate, o.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate and key: %w", err)
		}
		transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the server redirects, which ibwarden does not do")
	}}
	return c, nil
}

// own refuses a server that another user runs.
func own(c net.Conn) error {
	u, is := c.(*net.UnixConn)
	if !is {
		return nil
	}
	p, err := listen.PeerOf(u)
	if err != nil {
		return err
	}
	if p.UID != 0 && int(p.UID) != os.Geteuid() {
		return fmt.Errorf("%w: user %d serves the socket %s: want root or yourself, or name the socket with --server", ErrForeign, p.UID, c.RemoteAddr())
	}
	return nil
}

// ErrForeign says that another user of this machine serves a socket that nobody named, or
// could have put it there.
var ErrForeign = errors.New("not believed")

// ErrStranger says that what answers is no service of ibwarden.
var ErrStranger = errors.New("what answers there is not ibwarden")

// probeTimeout bounds a probe.
const probeTimeout = 5 * time.Second

// Probe asks whether a service answers, and takes this client: it returns the status of
// the answer. It writes nothing.
func (c *Client) Probe(ctx context.Context) (status int, err error) {
	ctx, stop := context.WithTimeout(ctx, probeTimeout)
	defer stop()
	answer, err := c.exchange(ctx, http.MethodGet, "/tenants", url.Values{"limit": {"1"}}, nil, nil)
	if err != nil {
		return 0, err
	}
	answer.Body.Close()
	if answer.Header.Get("Server") != api.ServerName {
		return 0, fmt.Errorf("%s: %w", c.Server(), ErrStranger)
	}
	return answer.StatusCode, nil
}

// Server is where the client's service is.
func (c *Client) Server() string { return c.server.String() }

// Params are the parameters of a write besides its body.
type Params struct {
	DryRun bool
	Wait   bool   // until the change is proved, or could not be
	Match  string // If-Match
	None   bool   // If-None-Match: *
	Repeat string // Idempotency-Key
	Why    string
	Query  url.Values
}

// Get reads one object, with its ETag.
func Get[T any](ctx context.Context, c *Client, path string, query url.Values) (item T, etag string, err error) {
	var out api.Single[T]
	header, err := c.call(ctx, http.MethodGet, path, query, nil, nil, &out)
	return out.Item, header.Get("ETag"), err
}

// Whole reads an answer that is neither one object nor a list.
func Whole[T any](ctx context.Context, c *Client, path string, query url.Values) (out T, err error) {
	_, err = c.call(ctx, http.MethodGet, path, query, nil, nil, &out)
	return out, err
}

// All reads a list to its end.
func All[T any](ctx context.Context, c *Client, path string, query url.Values) (items []T, err error) {
	q := url.Values{}
	for k, v := range query {
		q[k] = v
	}
	q.Set("limit", fmt.Sprint(pageSize))
	items = []T{}
	for {
		var out api.List[T]
		if _, err := c.call(ctx, http.MethodGet, path, q, nil, nil, &out); err != nil {
			return nil, err
		}
		items = append(items, out.Items...)
		if out.Next == "" {
			return items, nil
		}
		q.Set("cursor", out.Next)
	}
}

// Page reads the first objects of a list, at most limit.
func Page[T any](ctx context.Context, c *Client, path string, limit int, query url.Values) ([]T, error) {
	q := url.Values{}
	for k, v := range query {
		q[k] = v
	}
	items := []T{}
	for len(items) < limit {
		q.Set("limit", fmt.Sprint(min(limit-len(items), pageSize)))
		var out api.List[T]
		if _, err := c.call(ctx, http.MethodGet, path, q, nil, nil, &out); err != nil {
			return nil, err
		}
		if items = append(items, out.Items...); out.Next == "" {
			break
		}
		q.Set("cursor", out.Next)
	}
	return items, nil
}

// Write makes a change; out is what the answer is read into.
func (c *Client) Write(ctx context.Context, method, path string, p Params, body, out any) error {
	query, header := url.Values{}, http.Header{}
	for k, v := range p.Query {
		query[k] = v
	}
	if p.DryRun {
		query.Set("dry_run", "true")
	}
	if p.Wait {
		query.Set("wait", "proved")
	}
	for name, value := range map[string]string{"If-Match": p.Match, "Idempotency-Key": p.Repeat, "Why": p.Why} {
		if value != "" {
			header.Set(name, value)
		}
	}
	if p.None {
		header.Set("If-None-Match", "*")
	}
	_, err := c.call(ctx, method, path, query, header, body, out)
	return err
}

// call makes one request and reads its answer. An error is an *api.Problem where the
// service said so.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, header http.Header, body, out any) (http.Header, error) {
	var data io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		data = bytes.NewReader(b)
	}
	answer, err := c.send(ctx, method, path, query, header, data)
	if err != nil {
		return http.Header{}, err
	}
	defer answer.Body.Close()
	if why := answer.Header.Get("Ibwarden-Old"); why != "" && c.old != nil {
		c.aged.Do(func() { c.old(why) })
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, answerMax+1))
	if err != nil {
		return answer.Header, fmt.Errorf("answer of %s: %w", c.Server(), err)
	}
	if len(b) > answerMax {
		return answer.Header, fmt.Errorf("answer of %s: longer than %d bytes", c.Server(), answerMax)
	}
	if err := json.Unmarshal(b, out); err != nil {
		return answer.Header, fmt.Errorf("answer of %s: %w", c.Server(), err)
	}
	return answer.Header, nil
}

// send makes one request. The answer is one of success.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, header http.Header, body io.Reader) (*http.Response, error) {
	answer, err := c.exchange(ctx, method, path, query, header, body)
	if err != nil || answer.StatusCode < 300 {
		return answer, err
	}
	defer answer.Body.Close()
	p := &api.Problem{}
	b, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil || json.Unmarshal(b, p) != nil || p.Detail == "" {
		return nil, fmt.Errorf("%s: %s", c.Server(), answer.Status)
	}
	p.Status = answer.StatusCode
	return nil, p
}

// exchange makes one request, whatever the status of its answer.
func (c *Client) exchange(ctx context.Context, method, path string, query url.Values, header http.Header, body io.Reader) (*http.Response, error) {
	address := c.base + api.Prefix + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		r.Header[k] = v
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			r.Header.Set("Content-Type", listen.MergePatchType)
		}
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which stands in ours
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			err = fmt.Errorf("%w: start one with ibwarden run, or name another with --server (%w)", ErrNone, err)
		}
		return nil, fmt.Errorf("%s: %w", c.Server(), err)
	}
	return answer, nil
}

// Fetch copies an answer that is no JSON.
func (c *Client) Fetch(ctx context.Context, path string, query url.Values, w io.Writer) error {
	answer, err := c.send(ctx, http.MethodGet, path, query, nil, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(w, answer.Body); err != nil {
		return fmt.Errorf("answer of %s is not whole: %w", c.Server(), err)
	}
	return nil
}

// Events yields the events after the one with an ID, or all that are kept for "", and
// then each as it happens, until ctx ends or the stream does; then it yields an error.
func (c *Client) Events(ctx context.Context, after string) iter.Seq2[views.Event, error] {
	return func(yield func(views.Event, error) bool) {
		if c.events(ctx, url.Values{}, after, yield) {
			yield(views.Event{}, fmt.Errorf("%s ended the stream of events", c.Server()))
		}
	}
}

// KeptEvents yields those of Events that have happened.
func (c *Client) KeptEvents(ctx context.Context, after string) iter.Seq2[views.Event, error] {
	return func(yield func(views.Event, error) bool) { c.events(ctx, url.Values{"kept": {"true"}}, after, yield) }
}

// events yields what the service sends, and reports whether it ended the stream.
func (c *Client) events(ctx context.Context, query url.Values, after string, yield func(views.Event, error) bool) (ended bool) {
	if after != "" {
		query.Set("after", after)
	}
	answer, err := c.send(ctx, http.MethodGet, "/events", query, nil, nil)
	if err != nil {
		yield(views.Event{}, err)
		return false
	}
	defer answer.Body.Close()
	for data, err := range lines(answer.Body) {
		var e views.Event
		if err == nil {
			err = json.Unmarshal(data, &e)
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}
