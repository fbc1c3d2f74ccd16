package servicecmd

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
)

// serveAt serves answers at the socket of a data directory.
func serveAt(t *testing.T, data string, answer http.HandlerFunc) {
	t.Helper()
	l, err := net.Listen("unix", listen.SocketIn(data))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: answer}
	go func() { _ = s.Serve(l) }() // until it is closed
	t.Cleanup(func() { s.Close() })
}

// TestChoose: which of flags, environment and what runs on this machine a command goes by.
func TestChoose(t *testing.T) {
	ibwarden := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", api.ServerName)
		fmt.Fprint(w, `{"items":[]}`)
	}
	served := t.TempDir()
	serveAt(t, served, ibwarden)
	stranger := t.TempDir()
	serveAt(t, stranger, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"items":[]}`) })
	closed := t.TempDir()
	serveAt(t, closed, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", api.ServerName)
		w.WriteHeader(http.StatusUnauthorized)
	})
	broken := t.TempDir()
	serveAt(t, broken, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			fmt.Fprint(c, "what\r\n\r\n")
			c.Close()
		}
	})
	open := t.TempDir() // a directory in which anybody could have put the socket
	serveAt(t, open, ibwarden)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	left := t.TempDir()
	l, err := net.Listen("unix", listen.SocketIn(left))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	nothing := t.TempDir()
	for _, x := range []struct {
		args, server, fabric, data, token string // flags, and variables of the environment
		asks                              bool
		says, fails                       string
	}{
		{data: nothing},
		{data: served, asks: true, says: "asking the service at unix:" + served},
		{args: "--data " + served, data: nothing, asks: true, says: "which runs on this machine"},
		{args: "--data " + nothing, data: served},
		{args: "--fabric sim", data: served},
		{args: "--guid 0x1", data: served},
		{args: "--secret-file x", data: served, server: "unix:/x"},
		{args: "--server unix:/x", data: served, asks: true},
		{args: "--server none", data: served},
		{args: "--server none --fabric sim", data: served},
		{args: "--server unix:/x --fabric sim", data: served, fails: "--server and --fabric: want one or the other"},
		{args: "--server unix:/x --m-key-file k", data: served, fails: "--server and --m-key-file: want one or the other"},
		{args: "--server unix:/x --data " + served, data: served, asks: true},
		{server: "none", data: served},
		{server: "unix:/y", data: served, asks: true, says: "asking the service at unix:/y\n"},
		{server: "unix:/y", fabric: "sim", data: served, asks: true, says: "unix:/y"},
		{fabric: "sim", data: served},
		{data: left},
		{data: stranger, says: "is not asked: unix:" + stranger},
		{data: open, says: "is not asked: others can write the directory"},
		{data: closed, says: "is not asked: it wants a token of you"},
		{data: closed, token: "ibw_x", asks: true, says: "asking the service"},
		{data: broken, fails: "--server none does without the service"},
	} {
		t.Setenv(listen.ServerVariable, x.server)
		t.Setenv("TEST_FABRIC", x.fabric)
		t.Setenv(daemon.DataVariable, x.data)
		t.Setenv(tokenVariable, x.token)
		var n Named
		c := &cobra.Command{Use: "x"}
		n.Add(c.Flags())
		for _, name := range []string{"fabric", "guid", "m-key-file", "secret-file", "data"} {
			c.Flags().String(name, "", "")
		}
		var out bytes.Buffer
		c.SetErr(&out)
		c.SetContext(t.Context())
		if err := c.ParseFlags(strings.Fields(x.args)); err != nil {
			t.Fatal(err)
		}
		asks, err := n.Choose(c, "TEST_FABRIC")
		switch {
		case (err != nil) != (x.fails != "") || err != nil && !strings.Contains(err.Error(), x.fails):
			t.Errorf("%+v: %v", x, err)
		case err == nil && asks != x.asks:
			t.Errorf("%+v: asks %v", x, asks)
		case !strings.Contains(out.String(), x.says) || x.says == "" && out.Len() > 0:
			t.Errorf("%+v: says %q", x, out.String())
		}
		if found := n.flags.found != nil; found != (asks && x.server == "" && !strings.Contains(x.args, "--server")) {
			t.Errorf("%+v: a service was found: %v", x, found)
		}
	}
}

// TestFind: a command that has to ask a service says where none is.
func TestFind(t *testing.T) {
	nothing := t.TempDir()
	for _, x := range []struct {
		flag, variable, want, fails string
		named                       bool
	}{
		{flag: "unix:/x", variable: "unix:/y", want: "unix:/x", named: true},
		{variable: "unix:/y", want: "unix:/y", named: true},
		{flag: "none", variable: "unix:/y", fails: "none: this command has to ask a service"},
		{variable: "none", fails: "none: this command has to ask a service"},
		{flag: "http://example.com:80", fails: "loopback", named: true},
		{fails: "no service runs on this machine (none is asked at " + listen.SocketIn(nothing)},
	} {
		t.Setenv(listen.ServerVariable, x.variable)
		t.Setenv(daemon.DataVariable, nothing)
		f := &serverFlags{server: x.flag}
		var out bytes.Buffer
		s, named, err := f.find(t.Context(), &out)
		if x.fails != "" {
			if err == nil || !strings.Contains(err.Error(), x.fails) || statusOf(err) != terminal.Misuse {
				t.Errorf("%+v: %v", x, err)
			}
		} else if err != nil || s.String() != x.want || named != x.named {
			t.Errorf("%+v: %v, %v, %v", x, s, named, err)
		}
	}
}

// TestCables: the list of cables is that of the service that was found, in its data directory.
func TestCables(t *testing.T) {
	dir := t.TempDir()
	var n Named
	if list, err := n.Cables(); list != nil || err != nil {
		t.Errorf("of no service: %v, %v", list, err)
	}
	n.flags.found = &listen.Server{Socket: listen.SocketIn(dir)}
	if list, err := n.Cables(); list != nil || err != nil {
		t.Errorf("of one without a list: %v, %v", list, err)
	}
	matches, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(matches) > 0 {
		t.Errorf("it left %v, %v", matches, err)
	}
}

// TestGroups: a command that has others below it says which, and does nothing.
func TestGroups(t *testing.T) {
	for _, c := range Commands() {
		if !c.HasSubCommands() || c.Name() == "drain" { // drain takes a switch, too
			continue
		}
		for _, args := range [][]string{{}, {"gone"}} {
			root := &cobra.Command{Use: "ibwarden", SilenceErrors: true, SilenceUsage: true}
			root.AddCommand(c)
			root.SetArgs(append([]string{c.Name()}, args...))
			err := root.Execute()
			for _, s := range c.Commands() {
				if err == nil || statusOf(err) != terminal.Misuse || !strings.Contains(err.Error(), s.Name()) {
					t.Errorf("%s %v: %v, want one that names %s", c.Name(), args, err, s.Name())
				}
			}
			if len(args) > 0 && err != nil && !strings.Contains(err.Error(), `"gone"`) {
				t.Errorf("%s gone: %v", c.Name(), err)
			}
		}
	}
}
