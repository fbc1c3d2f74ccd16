package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
)

// answering serves a socket in a directory with this mode, and counts requests.
func answering(t *testing.T, mode os.FileMode, answer func(w http.ResponseWriter, r *http.Request)) (server string, requests *atomic.Int64) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int64)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		answer(w, r)
	})}}
	s.Start()
	t.Cleanup(s.Close)
	return "unix:" + path, requests
}

// completed is what is proposed for an argument of a command.
func completed(t *testing.T, limit time.Duration, server string, f function, args []string, begun string) []string {
	t.Helper()
	t.Setenv(listen.ServerVariable, server)
	c := servicecmd.Tenant() // it has no flags of a server, its commands do
	sub, _, err := c.Find([]string{"show"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), limit)
	defer stop()
	sub.SetContext(ctx)
	words, _ := f(sub, args, begun)
	return words
}

// What a service has goes to a shell that would carry it out, and to a terminal.
func TestNamesOfAService(t *testing.T) {
	items := map[string]string{
		"/api/v1/tenants":                   `{"name":"red","partitions":2,"ports":3},{"name":"$(reboot)"},{"name":"b\u001b[31m"},{"name":"a b"},{"name":"blue"}`,
		"/api/v1/partitions":                `{"pkey":"0x0100","name":"training","owner":"` + "`id`" + `"},{"pkey":"0x0200","name":"../tenants"}`,
		"/api/v1/partitions/0x0100/members": `{"port":"0x0000000000000011","membership":"full","state":"member"}`,
		"/api/v1/managers":                  `{"port":"0x0000000000000001","state":"master"},{"port":"0x0000000000000002","state":"standby","node":"two"}`,
		"/api/v1/revisions":                 `{"revision":9,"words":["a","b"]},{"revision":8}`,
	}
	server, _ := answering(t, 0o700, func(w http.ResponseWriter, r *http.Request) {
		list, is := items[r.URL.Path]
		if !is || r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"items":[%s]}`, list)
	})
	for _, x := range []struct {
		f     function
		args  []string
		begun string
		want  []string
	}{
		{tenants, nil, "", []string{"red\t2 partitions, 3 ports", "blue\t0 partitions, 0 ports"}},
		{tenants, nil, "r", []string{"red\t2 partitions, 3 ports"}},
		{partitions, nil, "t", []string{"training\t0x0100 of _id_"}},
		{partitions, nil, "0x01", []string{"0x0100\ttraining of _id_"}},
		{members, []string{"training"}, "0x", []string{"0x0000000000000011\tfull member"}},
		{members, []string{"0x0100"}, "", []string{"0x0000000000000011\tfull member"}},
		{members, []string{"0x$(id)"}, "", nil},
		{members, []string{"nothing"}, "", nil},
		{standbys, nil, "", []string{"0x0000000000000002\ttwo"}},
		{revisions, nil, "", []string{"9\ta, b", "8\t"}},
	} {
		if got := completed(t, time.Minute, server, x.f, x.args, x.begun); !slices.Equal(got, x.want) {
			t.Errorf("%q %q: %q, want %q", x.args, x.begun, got, x.want)
		}
	}
	// A command that asks no service has no names from one.
	if words, _ := tenants(&cobra.Command{}, nil, ""); words != nil {
		t.Errorf("without flags of a service: %q", words)
	}
}

// TestWhoIsAskedForNames: a socket that another user could have put there gets no request,
// and no token, before anybody has pressed Enter; nor does a port of this machine.
func TestWhoIsAskedForNames(t *testing.T) {
	t.Setenv("IBWARDEN_TOKEN", "ibw_secret")
	answer := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"items":[{"name":"red"}]}`)
	}
	own, asked := answering(t, 0o700, answer)
	if got := completed(t, time.Minute, own, tenants, nil, ""); len(got) != 1 || asked.Load() != 1 {
		t.Errorf("%q after %d requests: want one of each", got, asked.Load())
	}
	open, asked := answering(t, 0o777, answer)
	if got := completed(t, time.Minute, open, tenants, nil, ""); got != nil || asked.Load() != 0 {
		t.Errorf("where others can write: %q after %d requests", got, asked.Load())
	}
	var plain atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { plain.Add(1); answer(w, r) }))
	defer s.Close()
	if got := completed(t, time.Minute, s.URL, tenants, nil, ""); got != nil || plain.Load() != 0 {
		t.Errorf("over plain HTTP: %q after %d requests", got, plain.Load())
	}
	if got := completed(t, time.Minute, listen.NoSocket, tenants, nil, ""); got != nil {
		t.Errorf("none: %q", got)
	}
}

// TestAServiceThatHangs: a shell gets its prompt back when the time is up.
func TestAServiceThatHangs(t *testing.T) {
	hung := make(chan struct{})
	server, asked := answering(t, 0o700, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hung:
		case <-r.Context().Done():
		}
	})
	defer close(hung)
	for limit := 50 * time.Millisecond; asked.Load() == 0; limit *= 2 { // a busy machine may not even ask in the first
		if got := completed(t, limit, server, tenants, nil, ""); got != nil {
			t.Fatalf("%q", got)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("%d requests", asked.Load())
	}
}
