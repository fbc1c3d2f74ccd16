package run

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/store"
)

// flagsOf reads a command line.
func flagsOf(t *testing.T, line ...string) *Flags {
	t.Helper()
	f := new(Flags)
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Add(set)
	if err := set.Parse(line); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFlagsThatDoNotFit: a certificate without its key, or for a listener that is not
// asked for, is an error before anything listens: never an API without TLS.
func TestFlagsThatDoNotFit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".open", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file+".open", 0o640); err != nil { // whatever the umask
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--listen 127.0.0.1:0 --tls-cert F.open --tls-key F.open":    ".open: mode 0640: want 0600",
		"--tls-cert F --tls-key F":                                   "want --listen",
		"--lease 199ms":                                              "--lease 199ms: want 200ms to 10s",
		"--lease 11s":                                                "want 200ms to 10s",
		"--tls-client-ca F":                                          "want --listen",
		"--listen 127.0.0.1:0 --tls-cert F":                          "want both or none",
		"--listen 127.0.0.1:0 --tls-key F":                           "want both or none",
		"--listen 127.0.0.1:0 --tls-cert F --tls-key F.gone":         "--tls-key",
		"--listen 127.0.0.1:0 --tls-cert F --tls-key F":              "certificate",
		"--prometheus prometheus:9090":                               "want http:// or https://",
		"--prometheus http://":                                       "want http:// or https://",
		"--prometheus http://user:secret@prometheus:9090":            "no password",
		"--prometheus javascript://prometheus/alert(1)":              "want http:// or https://",
		"--listen 192.0.2.1:0":                                       "loopback",
		"--listen 127.0.0.1:0 --tls-client-ca F":                     "",
		"--listen nowhere --socket none":                             "nowhere",
		"--socket " + strings.Repeat("x", 108) + " --listen [::1]:0": "107",
	} {
		f := flagsOf(t, strings.Fields(strings.ReplaceAll(line, " F", " "+file))...)
		l, err := f.open(daemon.DataDir(t.TempDir()), "")
		if l != nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", line, err, want)
		}
	}
}

// TestWhichSocket: the socket is where the flags say; one that nobody asked for and that
// somebody else has is in the scratch directory instead; one that was asked for is not.
func TestWhichSocket(t *testing.T) {
	data, scratch := t.TempDir(), t.TempDir()
	named := filepath.Join(t.TempDir(), "named")
	for _, x := range []struct {
		name, want string
		line       []string
		held       string // this socket is another's
	}{
		{name: "default", want: listen.SocketIn(data)},
		{name: "named", want: named, line: []string{"--socket", named}},
		{name: "held", want: filepath.Join(scratch, filepath.Base(listen.SocketIn(""))), held: listen.SocketIn(data)},
		{name: "named and held", line: []string{"--socket", named}, held: named},
		{name: "none", line: []string{"--socket", "none", "--listen", "127.0.0.1:0"}, want: "http://127.0.0.1:"},
	} {
		if x.held != "" {
			l, err := net.Listen("unix", x.held)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
		l, err := flagsOf(t, x.line...).open(daemon.DataDir(data), scratch)
		if x.want == "" {
			if err == nil {
				l.Close()
				t.Errorf("%s: no error", x.name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if len(l.Describe) != 1 || !strings.Contains(l.Describe[0], x.want) {
			t.Errorf("%s: %q, want %s", x.name, l.Describe, x.want)
		}
		l.Close()
	}
}

// TestOpenAndClose: what a store is named by, that nobody has it twice, and that the one of
// a run without a place for it is gone when the run is.
func TestOpenAndClose(t *testing.T) {
	base := &policy.Policy{Default: policy.Limited}
	for _, bad := range []string{"bolt:", "etcd:", "file:/x", "x"} {
		if _, err := Open(t.Context(), Options{Store: bad, Base: base}); err == nil || !strings.Contains(err.Error(), "want bolt:DIR") {
			t.Errorf("--store %s: %v", bad, err)
		}
	}
	dir := t.TempDir()
	s := openIn(t, dir)
	if _, err := Open(t.Context(), Options{Data: daemon.DataDir(dir), Base: base}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
	if s.Knows() {
		t.Error("an empty store says who belongs where")
	}
	var out strings.Builder
	where, err := s.Listen(flagsOf(t), daemon.DataDir(dir), ufm.Keys{}, "", slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil || len(where) != 1 || where[0] != "unix:"+listen.SocketIn(dir) {
		t.Fatalf("%q, %v", where, err)
	}
	c, err := client.New(listen.Server{Socket: listen.SocketIn(dir)}, client.Options{OwnOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := c.Probe(t.Context()); err != nil || status != 200 {
		t.Errorf("the API: %d, %v", status, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Probe(t.Context()); !errors.Is(err, client.ErrNone) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, storeName)); err != nil {
		t.Errorf("the store of the data directory: %v", err)
	}
	s, err = Open(t.Context(), Options{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	scratch := s.scratch
	if _, err := os.Stat(scratch); scratch == "" || err != nil || s.where != "bolt:"+filepath.Join(scratch, storeName) {
		t.Errorf("the store of a run without a place is at %q: %v", s.where, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", scratch, err)
	}
	var none *Service
	none.Begin(nil, 0, nil)
	none.Turn(nil)
	none.Event(nil)
	if none.Knows() || none.Close() != nil {
		t.Error("a run without a service")
	}
}
