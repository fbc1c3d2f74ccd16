package api

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/test/need"
)

// short are limits that a test can wait for.
var short = limits{header: 300 * time.Millisecond, body: 300 * time.Millisecond, reply: 2 * time.Second, idle: 300 * time.Millisecond, stream: 300 * time.Millisecond, alive: 50 * time.Millisecond, wait: 200 * time.Millisecond}

// serves serves the handlers of a stand until the test ends.
func (s *stand) serves(w Where, limit limits) *Listeners {
	s.Helper()
	l, err := Listen(w)
	if err != nil {
		s.Fatal(err)
	}
	// The kernel says who is at the other end of a socket: the user of this test, whoever that is.
	s.api.options.UID = os.Geteuid()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, l, s.handler, nil, limit) }()
	s.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	return l
}

func socketIn(t testing.TB) string { return filepath.Join(memoryDir(t), "s", "ibwarden.sock") }

// unixClient is a client of a socket.
func unixClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

// TestSocket: root is the provider over it, another user is nobody until he has a token.
func TestSocket(t *testing.T) {
	if os.Geteuid() != 0 {
		need.Need(t, errors.New("root alone can be another user"))
	}
	s := newStand(t)
	s.tenants()
	path := socketIn(t)
	if err := os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	s.serves(Where{Socket: path}, short)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v: want mode 0666", info, err)
	}
	get := func(token string) (status int, body string) {
		r, _ := http.NewRequest("GET", "http://ibwarden"+Prefix+"/partitions", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		client := unixClient(path)
		defer client.CloseIdleConnections()
		answer, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b)
	}
	if status, body := get(""); status != 200 {
		t.Errorf("root: %d %s", status, body)
	}
	if status, body := get("ibw_wrong"); status != 401 {
		t.Errorf("root with a wrong token: %d %s: want 401, a token decides", status, body)
	}
	// Another user, by a thread of his own: the dial runs on it.
	conn := make(chan net.Conn)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, 65534, 65534, 65534); e != 0 {
			t.Error(e)
		}
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err == nil {
			err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		}
		if err != nil {
			t.Error(err)
			conn <- nil
			return
		}
		f := os.NewFile(uintptr(fd), "socket")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Error(err)
		}
		conn <- c
	}()
	c := <-conn
	if c == nil {
		t.FailNow()
	}
	defer c.Close()
	in := bufio.NewReader(c)
	ask := func(header string) int {
		fmt.Fprintf(c, "GET %s/partitions HTTP/1.1\r\nHost: x\r\n%s\r\n", Prefix, header)
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		return answer.StatusCode
	}
	if status := ask(""); status != 401 {
		t.Errorf("user 65534: %d, want 401", status)
	}
	if status := ask("Authorization: Bearer " + s.tokens["red"] + "\r\n"); status != 200 {
		t.Errorf("user 65534 with a token: %d, want 200", status)
	}
	if status := ask("X-Forwarded-User: root\r\nX-Remote-User: 0\r\n"); status != 401 {
		t.Errorf("user 65534 who says that he is root: %d, want 401", status)
	}
}

// TestSocketInTheWay: one of a process that is gone is replaced, one that is served and
// what is no socket stay.
func TestSocketInTheWay(t *testing.T) {
	path := socketIn(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	gone, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	gone.SetUnlinkOnClose(false)
	gone.Close()
	l, err := Listen(Where{Socket: path})
	if err != nil {
		t.Fatalf("a socket that nobody serves: %v", err)
	}
	if _, err := Listen(Where{Socket: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a socket in use: %v: want an error that names it", err)
	}
	l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays after the end: %v", err)
	}
	// Of another program, which takes no lock.
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Where{Socket: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a socket of another program: %v", err)
	}
	other.Close()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Where{Socket: path}); err == nil {
		t.Error("a file was taken for a socket")
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file holds %q", b)
	}
	for _, bad := range []string{"@abstract", "\x00abstract", "/tmp/" + strings.Repeat("x", 120)} {
		if l, err := Listen(Where{Socket: bad}); err == nil {
			l.Close()
			t.Errorf("socket %q was taken", bad)
		}
	}
}

// TestPlainHTTPStaysHere: it is served on loopback addresses only.
func TestPlainHTTPStaysHere(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "localhost:0", "example.org:0", "127.0.0.1"} {
		if l, err := Listen(Where{Listen: address}); err == nil {
			l.Close()
			t.Errorf("%s was served in the clear", address)
		} else if !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v: want the address named", address, err)
		}
	}
	s := newStand(t)
	s.tenants()
	l := s.serves(Where{Listen: "127.0.0.1:0"}, short)
	answer, err := http.Get(l.Describe[0] + Prefix + "/partitions")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != 401 {
		t.Errorf("%d without a token, want 401: an address is nobody", answer.StatusCode)
	}
}

// TestSlowAndLargeClients: each limit on a client has its end.
func TestSlowAndLargeClients(t *testing.T) {
	s := newStand(t)
	path := socketIn(t)
	s.serves(Where{Socket: path}, short)
	dial := func() net.Conn {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(30 * time.Second))
		return c
	}
	answer := func(c net.Conn) int {
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return 0
		}
		r.Body.Close()
		return r.StatusCode
	}
	head := "Host: x\r\nContent-Type: application/json\r\n"
	for _, x := range []struct {
		name, send string
		status     int
	}{
		{"half open", "", 0},
		{"slow header", "GET / HTTP/1.1\r\nHost: x\r\nX-A: ", 0},
		{"slow body", "POST " + Prefix + "/partitions HTTP/1.1\r\n" + head + "Content-Length: 100\r\n\r\n{", 408},
		{"chunks that do not come", "POST " + Prefix + "/partitions HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{", 408},
		{"slow body of nobody", "POST " + Prefix + "/partitions HTTP/1.1\r\n" + head + "Authorization: Bearer ibw_wrong\r\nContent-Length: 100\r\n\r\n{", 401},
		{"slow body to nothing", "POST /nothing HTTP/1.1\r\n" + head + "Content-Length: 100\r\n\r\n{", 404},
		{"slow body of UFM's", "POST /ufmRest/resources/pkeys/add HTTP/1.1\r\n" + head + "Authorization: Bearer ibw_wrong\r\nContent-Length: 100\r\n\r\n{", 401},
		{"large header", "GET " + Prefix + "/partitions HTTP/1.1\r\nHost: x\r\nX-A: " + strings.Repeat("a", 2*HeaderMax) + "\r\n\r\n", 431},
		{"large body", "POST " + Prefix + "/partitions HTTP/1.1\r\n" + head + fmt.Sprintf("Content-Length: %d\r\n\r\n", BodyMax+1) + strings.Repeat(" ", BodyMax+1), 413},
		{"long path", "GET " + Prefix + "/" + strings.Repeat("a", listen.PathMax) + " HTTP/1.1\r\nHost: x\r\n\r\n", 414},
		{"path with ..", "GET " + Prefix + "/partitions/../tenants HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		{"encoded ..", "GET " + Prefix + "/partitions/%2e%2e/tenants HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		{"double slash", "GET " + Prefix + "//partitions HTTP/1.1\r\nHost: x\r\n\r\n", 404},
		{"encoded slash", "GET " + Prefix + "/partitions/0x0001%2fmembers HTTP/1.1\r\nHost: x\r\n\r\n", 422},
		{"another method", "PATCH " + Prefix + "/partitions HTTP/1.1\r\nHost: x\r\n\r\n", 405},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"CONNECT", "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		{"no HTTP", "hello\r\n\r\n", 400},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := dial()
			go io.WriteString(c, x.send) // it may be cut off
			if got := answer(c); got != x.status {
				t.Errorf("status %d, want %d", got, x.status)
			}
		})
	}
	// Idle connections end.
	c := dial()
	fmt.Fprintf(c, "GET %s/tenants HTTP/1.1\r\nHost: x\r\n\r\n", Prefix)
	in := bufio.NewReader(c)
	if r, err := http.ReadResponse(in, nil); err != nil || r.StatusCode != 200 {
		t.Fatalf("%v, %v", r, err)
	} else {
		io.Copy(io.Discard, r.Body)
	}
	if _, err := in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an idle connection: %v, want its end", err)
	}
}

// TestSlowReaderOfAStream: a reader that does not take events in time is dropped, and its place
// is free again.
func TestSlowReaderOfAStream(t *testing.T) {
	s := newStand(t)
	path := socketIn(t)
	s.serves(Where{Socket: path}, short)
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s/events HTTP/1.1\r\nHost: x\r\n\r\n", Prefix)
	open := func() int {
		s.api.watching.Lock()
		defer s.api.watching.Unlock()
		return s.api.watchers
	}
	until := func(what string, is func() bool) {
		t.Helper()
		need.Eventually(t, need.Patience, what, is)
	}
	until("the stream is open", func() bool { return open() > 0 })
	long := strings.Repeat("x", 1<<16)
	for range 100 {
		s.service.Tell("test", long)
	}
	until("the stream that nobody reads is closed", func() bool { return open() == 0 })
}

// TestEventsGoAtOnce: an event waits for no other, also where answers are counted and the client takes gzip.
func TestEventsGoAtOnce(t *testing.T) {
	s := newStand(t)
	s.api.options.Observe = func(string, int, time.Duration) {}
	path := socketIn(t)
	quiet := short
	quiet.alive = time.Hour
	s.serves(Where{Socket: path}, quiet)
	ctx, stop := context.WithTimeout(context.Background(), need.Patience)
	defer stop()
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://ibwarden"+Prefix+"/events", nil)
	answer, err := unixClient(path).Do(r) // it asks for gzip by itself
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	s.service.Tell("test", "the only one")
	for in := bufio.NewScanner(answer.Body); ; {
		if !in.Scan() {
			t.Fatalf("the stream ended before the event came: %v", in.Err())
		}
		if strings.Contains(in.Text(), "the only one") {
			return
		}
	}
}

// TestStreamOfEvents: it goes on after the last event seen, and ends with the token.
func TestStreamOfEvents(t *testing.T) {
	s := newStand(t)
	s.tenants()
	path := socketIn(t)
	s.serves(Where{Socket: path}, short)
	watch := func(after string) (*bufio.Scanner, func()) {
		r, _ := http.NewRequest("GET", "http://ibwarden"+Prefix+"/events", nil)
		r.Header.Set("Authorization", "Bearer "+s.tokens["red"])
		if after != "" {
			r.Header.Set("Last-Event-ID", after)
		}
		client := unixClient(path)
		answer, err := client.Do(r)
		if err != nil || answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v, %v", answer, err)
		}
		return bufio.NewScanner(answer.Body), func() { answer.Body.Close(); client.CloseIdleConnections() }
	}
	// next is the ID of the next event with a text.
	next := func(in *bufio.Scanner, text string) string {
		id := ""
		for in.Scan() {
			if v, is := strings.CutPrefix(in.Text(), "id: "); is {
				id = v
			}
			if strings.HasPrefix(in.Text(), "data: ") && strings.Contains(in.Text(), text) {
				return id
			}
		}
		t.Fatalf("the stream ended before %q", text)
		return ""
	}
	in, done := watch("")
	s.want(201, call{as: "red", method: "POST", path: "/partitions", body: js{"name": "one"}})
	id := next(in, "0x0100")
	done()
	s.want(201, call{as: "red", method: "POST", path: "/partitions", body: js{"name": "two"}})
	s.want(201, call{as: "blue", method: "POST", path: "/partitions", body: js{"name": "secret"}})
	if kept := s.do(call{as: "red", method: "GET", path: "/events?kept=true"}); !strings.Contains(kept.Body.String(), "0x0101") || strings.Contains(kept.Body.String(), "secret") {
		t.Errorf("what is kept for red: %s", kept.Body)
	}
	in, done = watch(id)
	defer done()
	next(in, "0x0101")
	for _, token := range items(s.want(200, call{as: "red", method: "GET", path: "/tokens"})) {
		s.want(200, call{method: "DELETE", path: "/tokens/" + token.(js)["id"].(string)})
	}
	for in.Scan() {
		if strings.Contains(in.Text(), "secret") || strings.Contains(in.Text(), "0x0200") {
			t.Errorf("red is told %q of blue", in.Text())
		}
	}
}

// authority makes certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	n    int64
}

func newAuthority(t testing.TB) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert: cert, key: key, n: 1}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func (a *authority) issue(t testing.TB, name, uri string) (cert, key []byte) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.n++
	template := &x509.Certificate{SerialNumber: big.NewInt(a.n), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if uri != "" {
		u, _ := url.Parse(uri)
		template.URIs = []*url.URL{u}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: b})
}

// TestClientCertificates: what the provider registered counts, and nothing that a
// certificate says of its holder.
func TestClientCertificates(t *testing.T) {
	s := newStand(t)
	s.tenants()
	ca, stranger := newAuthority(t), newAuthority(t)
	cert, key := ca.issue(t, "server", "")
	l := s.serves(Where{Listen: "127.0.0.1:0", Certificate: cert, Key: key, ClientCA: ca.pem()}, short)
	registered, registeredKey := ca.issue(t, "whoever", "")
	s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": "red", "certificate": string(registered)}})
	s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": "blue", "uri": "spiffe://example.org/blue"}})
	s.want(403, call{as: "red", method: "POST", path: "/tokens", body: js{"uri": "spiffe://example.org/any"}})
	var once sync.Mutex
	get := func(cert, key []byte, token string) (int, string) {
		once.Lock()
		defer once.Unlock()
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(ca.pem())
		config := &tls.Config{RootCAs: roots}
		if cert != nil {
			pair, err := tls.X509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		r, _ := http.NewRequest("GET", l.Describe[0]+Prefix+"/tenants", nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(b)
	}
	byURI, byURIKey := ca.issue(t, "x", "spiffe://example.org/blue")
	named, namedKey := ca.issue(t, "provider", "spiffe://example.org/bluer")
	foreign, foreignKey := stranger.issue(t, "whoever", "spiffe://example.org/blue")
	for _, x := range []struct {
		name      string
		cert, key []byte
		token     string
		status    int
		tenant    string
	}{
		{"registered", registered, registeredKey, "", 200, `"name":"red"`},
		{"by its URI", byURI, byURIKey, "", 200, `"name":"blue"`},
		{"named provider, and not registered", named, namedKey, "", 401, ""},
		{"of another CA", foreign, foreignKey, "", 0, ""},
		{"none", nil, nil, "", 401, ""},
		{"none, and a token", nil, nil, s.tokens["blue"], 200, `"name":"blue"`},
		{"registered, and a token", registered, registeredKey, s.tokens["blue"], 200, `"name":"blue"`},
	} {
		if status, body := get(x.cert, x.key, x.token); status != x.status || !strings.Contains(body, x.tenant) {
			t.Errorf("%s: %d %s, want %d %s", x.name, status, body, x.status, x.tenant)
		}
	}
}
