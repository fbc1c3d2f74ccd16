package servicecmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
)

var errFull = errors.New("no space left on device")

// full is an output that takes some bytes and no more.
type full struct{ left int }

func (w *full) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// printing runs a line whose output goes to w.
func printing(t *testing.T, commands []*cobra.Command, server, line string, w *full) error {
	t.Helper()
	root := &cobra.Command{Use: "ibwarden", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(commands...)
	root.AddCommand(asking()...)
	root.SetOut(w)
	root.SetErr(&bytes.Buffer{})
	root.SetArgs(append(strings.Fields(line), "--server", server))
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	return root.ExecuteContext(ctx)
}

// TestOutputThatIsLost: a command whose output could not be written fails, with what the system
// says, whatever came of the request.
func TestOutputThatIsLost(t *testing.T) {
	_, server := recording(t)
	for _, line := range strings.Split(lines, "\n") {
		filled, _ := fill(t, line)
		w := &full{left: 1 << 20}
		if err := printing(t, everyCommand(), server, filled, w); err != nil || w.left == 1<<20 {
			continue // it fails as it is, or prints nothing
		}
		filled, _ = fill(t, line)
		if err := printing(t, everyCommand(), server, filled, &full{}); !errors.Is(err, errFull) || strings.HasPrefix(line, "tenant") && statusOf(err) != terminal.Bad {
			t.Errorf("%s: %v", line, err)
		}
		if line = strings.TrimSuffix(line, " --json") + " --json"; strings.HasPrefix(line, "events") || !strings.Contains(lines+"\n", line+"\n") {
			continue
		}
		// A document is written at once, and what writes it says so by itself.
		filled, _ = fill(t, line)
		if err := printing(t, slices.Concat(commands(), shows(), []*cobra.Command{console(), export()}), server, filled, &full{}); !errors.Is(err, errFull) {
			t.Errorf("by itself: %s: %v", line, err)
		}
	}
}

// TestCompleting: what is completed at a prompt is asked of a service that is trusted: one at a
// socket, or over TLS; a command that has no such flags asks none.
func TestCompleting(t *testing.T) {
	s, server := recording(t)
	t.Setenv(daemon.DataVariable, t.TempDir())
	for _, x := range []struct {
		server, variable string
		args             []string
		asks             bool
	}{
		{"", "", []string{"--server", server}, true}, {"", server, nil, true}, {"", "", nil, false},
		{"", "", []string{"--server", "http://127.0.0.1:1"}, false}, {"", "", []string{"--server", "https://127.0.0.1:1"}, true}, {"", "", []string{"--server", "what"}, false},
		{"", "", []string{"--server", server, "--token-file", "/none"}, false}, {"", "", []string{"--server", server, "--cacert", "/none"}, false},
	} {
		t.Setenv(listen.ServerVariable, x.variable)
		var f serverFlags
		c := &cobra.Command{Use: "x"}
		f.add(c.Flags())
		if err := c.ParseFlags(x.args); err != nil {
			t.Fatal(err)
		}
		to := Completing(t.Context(), c)
		if (to != nil) != x.asks {
			t.Errorf("%+v: asks %v", x, to != nil)
		}
	}
	if to := Completing(t.Context(), &cobra.Command{Use: "x"}); to != nil {
		t.Error("a command without the flags asks a service")
	}
	if len(s.requests) > 0 {
		t.Errorf("it asked before it was to: %v", s.requests)
	}
}

// TestServerFound: a service that was found is asked, and not looked for again; one that was
// named is not kept.
func TestServerFound(t *testing.T) {
	dir := t.TempDir()
	serveAt(t, dir, (&recorder{}).ServeHTTP)
	t.Setenv(daemon.DataVariable, dir)
	t.Setenv(listen.ServerVariable, "")
	c := &cobra.Command{Use: "x"}
	c.SetContext(t.Context())
	c.SetErr(&bytes.Buffer{})
	var s Server
	s.Add(c.Flags())
	if named, runs := s.Find(c); named || !runs || s.flags.found == nil || s.flags.found.Socket != listen.SocketIn(dir) {
		t.Errorf("named %v, runs %v, found %v", named, runs, s.flags.found)
	}
	if err := os.Remove(listen.SocketIn(dir)); err != nil {
		t.Fatal(err)
	}
	if named, runs := s.Find(c); named || !runs {
		t.Errorf("it was looked for again: named %v, runs %v", named, runs)
	}
	var other Server
	if named, runs := other.Find(c); named || runs || other.flags.found != nil {
		t.Errorf("where none is: named %v, runs %v, found %v", named, runs, other.flags.found)
	}
	t.Setenv(listen.ServerVariable, "unix:/x")
	var third Server
	if named, runs := third.Find(c); !named || !runs || third.flags.found != nil {
		t.Errorf("one that is named: named %v, runs %v, found %v", named, runs, third.flags.found)
	}
}

// TestPlaces: where a service is looked for: in the data directory that is named, and nowhere
// else, or in that of a user and of the system.
func TestPlaces(t *testing.T) {
	t.Setenv(daemon.DataVariable, "/of/the/environment")
	for _, x := range []struct{ data, want string }{{"/named", listen.SocketIn("/named")}, {"", listen.SocketIn("/of/the/environment")}} {
		if got := Places(x.data); len(got) != 1 || got[0] != x.want {
			t.Errorf("%q: %v, want %s", x.data, got, x.want)
		}
	}
	t.Setenv(daemon.DataVariable, "")
	t.Setenv("XDG_STATE_HOME", "/home/ann/state")
	got := Places("")
	if len(got) == 0 || got[len(got)-1] != listen.SystemSocket {
		t.Errorf("%v, want that of the system at the end", got)
	}
	for i, a := range got {
		for _, b := range got[:i] {
			if a == b {
				t.Errorf("%v: %s twice", got, a)
			}
		}
	}
	if dir, err := daemon.DefaultDataDir("umad"); err == nil && got[0] != listen.SocketIn(string(dir)) {
		t.Errorf("%v, want %s first", got, listen.SocketIn(string(dir)))
	}
}
