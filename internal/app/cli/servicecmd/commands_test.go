package servicecmd

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// serving serves a service without a manager, whose outcomes stay pending, and returns
// its address.
func serving(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	db, err := bolt.Open(filepath.Join(dir, storeName))
	if err != nil {
		t.Fatal(err)
	}
	s, err := service.Open(t.Context(), service.Config{Store: db, Manager: absent{}, Base: &policy.Policy{Default: policy.Limited}, Owner: "test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ibwarden.sock")
	l, err := api.Listen(api.Where{Socket: path})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- api.Serve(ctx, l, api.New(s, api.Options{UID: os.Geteuid(), Store: db}), nil)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.Close()
		db.Close()
	})
	return "unix:" + path
}

// run runs a command line and returns what it printed.
func run(t *testing.T, server string, line string) (string, error) {
	t.Helper()
	root := &cobra.Command{Use: "ibwarden", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append(strings.Fields(line), "--server", server))
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

// TestCommandsOfAService: a day of a provider and a tenant, each line with words that it
// prints, or that its error has.
func TestCommandsOfAService(t *testing.T) {
	server := serving(t)
	backup := filepath.Join(t.TempDir(), "b")
	restored := filepath.Join(t.TempDir(), "restored")
	for _, x := range []struct{ line, want, fails string }{
		{"tenant create red --keys 0x0100-0x01ff --partitions 2", "tenant red is made", ""},
		{"tenant create red", "", "it is there already"},
		{"tenant set red --members 10", "tenant red is changed", ""},
		{"tenant list", "0x0100-0x01ff", ""},
		{"port assign --tenant red 0x11 0x12", "port 0x0000000000000011 is tenant red's", ""},
		{"port list --owner red", "0x0000000000000012", ""},
		{"partition create training --owner red --member 0x11=full --why first", "stored, not yet proved", ""},
		{"partition create training --owner red", "", "training"},
		{"partition list", "training", ""},
		{"partition show training", "0x0000000000000011", ""},
		{"partition set training --sl 3", "service level is 3", ""},
		{"partition set training --sl 4 --seen 1", "", "it has changed"},
		{"member add training 0x12=limited", "limited member", ""},
		{"member add nothing 0x12=limited", "", `no partition "nothing"`},
		{"member list training", "limited", ""},
		{"member remove training 0x12 --dry-run", "", "no manager runs"},
		{"member remove training 0x12", "is no longer a member", ""},
		{"member add training 0x12=limited", "", "was removed from 0x0100"},
		{"history list", "because: first", ""},
		{"history show 4", "partition/0x0100", ""},
		{"history verify", "none changed, removed, added or moved", ""},
		{"history export", `"decision":"refused"`, ""},
		{"export", "red/training", ""},
		{"token create --tenant red", "ibw_", ""},
		{"token list --tenant red", "tok-", ""},
		{"approval list", "", ""},
		{"rollback 4 --dry-run", "", "no manager runs"},
		{"rollback 9999", "", "no revision 9999"},
		{"backup " + backup, "the store of unix:", ""},
		{"partition delete training", "is deleted", ""},
		{"tenant delete red", "", "release them first"},
	} {
		out, err := run(t, server, x.line)
		switch {
		case x.fails == "" && err != nil:
			t.Fatalf("%s: %v", x.line, err)
		case x.fails != "" && (err == nil || !strings.Contains(err.Error(), x.fails)):
			t.Errorf("%s: %v, want an error with %q", x.line, err, x.fails)
		case !strings.Contains(out, x.want):
			t.Errorf("%s prints %q, want %q in it", x.line, out, x.want)
		}
	}
	// What was backed up is there again.
	root := &cobra.Command{Use: "ibwarden", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Restore())
	root.SetOut(io.Discard)
	root.SetArgs([]string{"restore", backup, "--data", restored})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	s, done, err := openStore(t.Context(), restored)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, p := s.Policy(); len(p.Partitions) != 1 || p.Partitions[0].Name != "red/training" {
		t.Errorf("the restored policy has %+v", p.Partitions)
	}
}

// TestWatch prints what happens.
func TestWatch(t *testing.T) {
	server := serving(t)
	f := &serverFlags{server: server}
	to, err := f.open(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 100)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		for e, err := range to.Events(ctx, "") {
			if err != nil {
				return
			}
			seen <- eventWords(&e)
		}
	}()
	if _, err := run(t, server, "partition create one"); err != nil {
		t.Fatal(err)
	}
	for text := range seen {
		if strings.Contains(text, `"one" is made`) {
			return
		}
	}
}
