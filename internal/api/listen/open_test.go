package listen

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dial makes a connection and has the listener accept it.
func dial(t *testing.T, l net.Listener, network, to string) (client, server net.Conn) {
	t.Helper()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	client, err := net.Dial(network, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client, <-accepted
}

// TestSocket: a socket is made for everybody, knows who is there, counts its connections, and is
// gone in the end; one that was left behind is replaced.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "s")
	for range 2 {
		l, err := Listen(Where{Socket: path})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(l.Describe, []string{"unix:" + path}) || l.URL != "" || len(l.All()) != 1 {
			t.Errorf("%q %q %v", l.Describe, l.URL, l.All())
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != socketMode {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if _, err := Listen(Where{Socket: path}); err == nil || !strings.Contains(err.Error(), "another ibwarden serves it: stop that one, or choose another path with --socket") {
			t.Errorf("a second one: %v", err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("the second one has removed the socket of the first: %v", err)
		}
		_, c := dial(t, l.All()[0], "unix", path)
		if p, known := PeerOfConn(c); !known || int(p.UID) != os.Geteuid() {
			t.Errorf("peer %+v, %v", p, known)
		}
		if open, _, _ := l.Connections(); open != 1 {
			t.Errorf("%d connections", open)
		}
		c.Close()
		c.Close() // is counted once
		if open, refused, refusedPeer := l.Connections(); open != 0 || refused != 0 || refusedPeer != 0 {
			t.Errorf("%d connections, %d and %d refused", open, refused, refusedPeer)
		}
		l.Close()
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("the socket is left: %v", err)
		}
		// As a process leaves it that was killed.
		left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		left.SetUnlinkOnClose(false)
		left.Close()
	}
}

// TestNoSocket: every reason for which no socket is made.
func TestNoSocket(t *testing.T) {
	dir := t.TempDir()
	file, served := filepath.Join(dir, "file"), filepath.Join(dir, "served")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", served)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for path, want := range map[string]string{
		file: "there is something else than a socket", served: "another process serves it", filepath.Join(file, "s"): "socket: ", strings.Repeat("x", 200): "",
	} {
		l, err := Listen(Where{Socket: path})
		if err == nil || !strings.Contains(err.Error(), want) || l != nil {
			t.Errorf("%.40s: %v, want %s", path, err, want)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if _, err := os.Lstat(served); err != nil {
		t.Errorf("the socket of another process: %v", err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link+".lock"); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Where{Socket: link}); err == nil {
		t.Error("a lock that is a link is opened")
	}
}

// TestTLS: what is no configuration is said, a socket that was opened before is closed, and plain
// HTTP is for loopback alone.
func TestTLS(t *testing.T) {
	cert, key := certificate(t, []string{"fabric.example"}, nil)
	for name, x := range map[string]struct {
		where Where
		want  string
	}{
		"plain HTTP for everybody":             {Where{Listen: "0.0.0.0:0"}, "0.0.0.0:0"},
		"client certificates without TLS":      {Where{Listen: "127.0.0.1:0", ClientCA: cert}, "client certificates need TLS: give --tls-cert and --tls-key"},
		"a certificate without its key":        {Where{Listen: "127.0.0.1:0", Certificate: cert}, "TLS certificate and key: "},
		"CAs that are none":                    {Where{Listen: "127.0.0.1:0", Certificate: cert, Key: key, ClientCA: []byte("x")}, "client CA: want certificates in PEM"},
		"an address that is not the machine's": {Where{Listen: "192.0.2.1:1", Certificate: cert, Key: key}, `listen "192.0.2.1:1": `},
	} {
		x.where.Socket = filepath.Join(t.TempDir(), "s")
		l, err := Listen(x.where)
		if err == nil || !strings.Contains(err.Error(), x.want) || l != nil {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
		if _, err := os.Lstat(x.where.Socket); !os.IsNotExist(err) {
			t.Errorf("%s: the socket is left: %v", name, err)
		}
	}
	for _, ca := range [][]byte{nil, cert} {
		w := Where{Certificate: cert, Key: key, ClientCA: ca}
		c, err := w.tls()
		if err != nil || c.MinVersion != tls.VersionTLS12 || len(c.Certificates) != 1 || !slices.Equal(c.NextProtos, []string{"http/1.1"}) || (c.ClientCAs != nil) != (ca != nil) || (c.ClientAuth == tls.VerifyClientCertIfGiven) != (ca != nil) {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if c, err := (&Where{}).tls(); c != nil || err != nil {
		t.Errorf("plain HTTP: %v, %v", c, err)
	}
	l, err := Listen(Where{Listen: "127.0.0.1:0", Certificate: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, c := dial(t, l.All()[0], "tcp", l.All()[0].Addr().String())
	if _, is := c.(*tls.Conn); !is {
		t.Errorf("a connection without TLS: %T", c)
	}
	if p, known := PeerOfConn(c); known || p.UID != 0 {
		t.Errorf("over the network: %+v, %v", p, known)
	}
	if !strings.HasPrefix(l.Describe[0], "https://127.0.0.1:") {
		t.Errorf("%q", l.Describe)
	}
	c.Close()
}

// TestTooManyAreClosed: a connection that is too many is closed, and the next that is not is
// accepted; a peer is known by its address.
func TestTooManyAreClosed(t *testing.T) {
	l, err := Listen(Where{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := l.All()[0].Addr().String()
	if !slices.Equal(l.Describe, []string{"http://" + at}) || l.URL != "http://"+at {
		t.Errorf("%q, %q", l.Describe, l.URL)
	}
	l.counter.peers["127.0.0.1"] = ConnectionsPerPeer
	refused, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.All()[0].Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	if _, err := refused.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one too many: %v", err)
	}
	l.counter.leave("127.0.0.1")
	next, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	c := <-accepted
	if open, all, peer := l.Connections(); open != 0 || all != 0 || peer != 1 {
		t.Errorf("%d open, %d and %d refused", open, all, peer) // leave above took one that never was
	}
	if _, known := PeerOfConn(c); known {
		t.Error("a peer over the network is known")
	}
	if _, known := PeerOfConn(next); known {
		t.Error("a connection of nobody's listener is known")
	}
	c.Close()
	l.Close()
	if _, err := l.All()[0].Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
}

// TestCounterForgets: a peer without a connection is not kept.
func TestCounterForgets(t *testing.T) {
	c := &counter{peers: map[string]int{}}
	c.enter("a", false)
	c.enter("a", false)
	c.leave("a")
	if c.peers["a"] != 1 {
		t.Error(c.peers)
	}
	if c.leave("a"); len(c.peers) != 0 || c.all != 0 {
		t.Errorf("%v, %d", c.peers, c.all)
	}
}

// wrapped is a writer around another.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestServerWriter: the writer under those that wrap it.
func TestServerWriter(t *testing.T) {
	w := httptest.NewRecorder()
	if ServerWriter(w) != http.ResponseWriter(w) || ServerWriter(wrapped{wrapped{w}}) != http.ResponseWriter(w) {
		t.Error("not the writer under them")
	}
}
