package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestDemo: the demonstration has what its help says, an address for each line that is entered, and leaves
// nothing.
func TestDemo(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	in, enter := io.Pipe()
	out := new(need.Log)
	c := newDemo()
	c.SetArgs([]string{"--listen", "127.0.0.1:0"})
	c.SetIn(in)
	c.SetOut(out)
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	within := func(limit time.Duration, what string, is func() error) {
		t.Helper()
		var last error
		defer func() {
			if last != nil {
				t.Logf("%s: %v", what, last)
			}
		}()
		need.Eventually(t, limit, what, func() bool { last = is(); return last == nil })
	}
	eventually := func(what string, is func() error) { t.Helper(); within(time.Minute, what, is) }
	printed := func(pattern string, times int) (match []string) {
		eventually(pattern, func() error {
			select {
			case err := <-ended:
				t.Fatalf("it ended: %v\n%s", err, out)
			default:
			}
			if all := regexp.MustCompile(pattern).FindAllStringSubmatch(out.String(), -1); len(all) == times {
				match = all[times-1]
				return nil
			}
			return errors.New(out.String())
		})
		return match
	}
	printed(`open (http://127.0.0.1:\d+)/console/\?tour=1#code=ibwc_[\w-]{43}\n`, 1)
	socket := printed(`--server unix:(\S+)`, 1)[1]
	if _, err := enter.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	page := printed(`open (http://127.0.0.1:\d+/console/\?tour=1)#code=ibwc_[\w-]{43}\n`, 2)[1]
	if answer, err := http.Get(page); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %v, %v", page, answer, err)
	}
	service, err := client.New(listen.Server{Socket: socket}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	status := func() (s views.Status) {
		if s, _, err = client.Get[views.Status](ctx, service, "/status", nil); err != nil {
			t.Error(err)
		}
		return s
	}
	if s := status(); s.Verdict != "isolated" {
		t.Errorf("the verdict is %s", s.Verdict)
	}
	members, err := client.All[api.Member](ctx, service, "/partitions/0x0201/members", nil)
	if err != nil || len(members) != 1 || members[0].Waits != "red" {
		t.Errorf("what waits: %+v, %v", members, err)
	}
	eventually("a cable is broken", func() error {
		alarms, err := client.All[views.Alarm](ctx, service, "/alarms", nil)
		if err == nil && (len(alarms) != 1 || alarms[0].Where != "leaf-4 port 7") {
			return errors.New("there is none")
		}
		return err
	})
	eventually("cables carry something", func() error {
		load, _, err := client.Get[views.CableLoad](ctx, service, "/map/load", nil)
		busy := 0
		for i := range load.Percent {
			if load.Percent[i] > 0 {
				busy++
			}
		}
		if err == nil && busy < 8 {
			return errors.New("fewer than 8 cables")
		}
		return err
	})
	// A change that comes while the leaf with the broken cable is looked at again is overwritten
	// without an event. The next one comes a minute later.
	within(2*time.Minute, "the changed table is corrected", func() error {
		for e, err := range service.KeptEvents(ctx, "") {
			if err != nil {
				return err
			}
			if strings.Contains(e.Text, "red-4") && strings.Contains(e.Text, "correct") {
				return nil
			}
		}
		return errors.New("nothing says so")
	})
	if s := status(); s.Verdict != "isolated" {
		t.Errorf("then the verdict is %s", s.Verdict)
	}
	stop()
	select {
	case err := <-ended:
		t.Log("it ended: ", err)
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", socket, err)
	}
}

// TestDemoIsForThisMachine: the console of the demonstration is on no address that another machine reaches,
// and nothing is left of a demonstration that was refused.
func TestDemoIsForThisMachine(t *testing.T) {
	for _, c := range []struct{ listen, want string }{
		{"0.0.0.0:0", "loopback"}, {"[::]:0", "loopback"}, {"192.0.2.1:8443", "loopback"}, {"nonsense", "want ADDRESS:PORT"},
	} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		var out, errs strings.Builder
		if status := Main([]string{"demo", "--listen", c.listen}, &out, &errs); status != terminal.Misuse || !strings.Contains(errs.String(), c.want) {
			t.Errorf("--listen %s: status %d, %s%s: want %d, and %q", c.listen, status, &out, &errs, terminal.Misuse, c.want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("--listen %s: it left %v, %v", c.listen, left, err)
		}
	}
}
