package servicetest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// served is a service whose API is served, on a Unix socket and over TLS.
type served struct {
	*service.Service
	manager *daemon.Served
	store   store.Store
	socket  string
	address string // of TLS
	roots   *x509.CertPool
	token   string // of the provider
}

// serveAPI serves the API of a manager on a simulated fabric until the test ends.
func serveAPI(t testing.TB, fabric string) *served {
	t.Helper()
	s := &served{}
	s.Service, s.manager, s.store = startStore(t, fabric, t.TempDir())
	dir, err := os.MkdirTemp("", "ibwarden-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s.socket = filepath.Join(dir, "socket")
	where := api.Where{Socket: s.socket, Listen: "127.0.0.1:0"}
	where.Certificate, where.Key = certificate(t)
	s.roots = x509.NewCertPool()
	s.roots.AppendCertsFromPEM(where.Certificate)
	l, err := api.Listen(where)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range l.Describe {
		if address, is := strings.CutPrefix(d, "https://"); is {
			s.address = address
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- api.Serve(ctx, l, api.New(s.Service, api.Options{Version: "test", UID: os.Geteuid(), Store: s.store, Judge: s.manager}), nil)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// certificate is a certificate for 127.0.0.1 and its key, in PEM.
func certificate(t testing.TB) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

// line is one connection to the API. It takes little processor time itself, since it
// shares the processors with what it measures.
type line struct {
	net.Conn
	in *bufio.Reader
}

// dial opens a connection to the Unix socket, or over TLS.
func (s *served) dial(t testing.TB, secure bool) *line {
	t.Helper()
	var c net.Conn
	var err error
	if secure {
		c, err = tls.Dial("tcp", s.address, &tls.Config{RootCAs: s.roots})
	} else {
		c, err = net.Dial("unix", s.socket)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &line{c, bufio.NewReader(c)}
}

// request is the bytes of a request. body is empty for none.
func (s *served) request(method, path, body string, header ...string) []byte {
	text := method + " " + api.Prefix + path + " HTTP/1.1\r\nHost: localhost\r\n"
	if s.token != "" {
		text += "Authorization: Bearer " + s.token + "\r\n"
	}
	for _, h := range header {
		text += h + "\r\n"
	}
	if body != "" {
		text += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return []byte(text + "\r\n" + body)
}

// ask sends a request and returns the status of the answer and its body, which is kept
// only if keep says so.
func (l *line) ask(request []byte, keep bool) (status int, body []byte, err error) {
	if _, err := l.Write(request); err != nil {
		return 0, nil, err
	}
	length, chunked := 0, false
	for n := 0; ; n++ {
		text, err := l.in.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		text = bytes.TrimRight(text, "\r\n")
		if len(text) == 0 {
			break
		}
		name, value, _ := bytes.Cut(text, []byte(": "))
		switch {
		case n == 0:
			if status, err = strconv.Atoi(string(text[len("HTTP/1.1 "):][:3])); err != nil {
				return 0, nil, fmt.Errorf("status line %q", text)
			}
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, nil, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		}
	}
	var kept bytes.Buffer
	take := func(n int) error {
		if keep {
			_, err := io.CopyN(&kept, l.in, int64(n))
			return err
		}
		_, err := l.in.Discard(n)
		return err
	}
	if !chunked {
		err := take(length)
		return status, kept.Bytes(), err
	}
	for {
		text, err := l.in.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		n, err := strconv.ParseUint(string(bytes.TrimRight(text, "\r\n")), 16, 31)
		if err != nil {
			return 0, nil, fmt.Errorf("length of a chunk %q", text)
		}
		if n > 0 {
			if err := take(int(n)); err != nil {
				return 0, nil, err
			}
		}
		if _, err := l.in.Discard(len("\r\n")); err != nil || n == 0 {
			return status, kept.Bytes(), err // trailers there are none
		}
	}
}

// memoryDir is a directory that waits for no disk, where there is one.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "ibwarden-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
