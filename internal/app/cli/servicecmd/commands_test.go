package servicecmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	server, _ := servingOn(t, "")
	return server
}

// servingOn is serving, on a TCP address too, which it returns.
func servingOn(t *testing.T, listen string) (server, url string) {
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
	l, err := api.Listen(api.Where{Socket: path, Listen: listen})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- api.Serve(ctx, l, api.New(s, api.Options{UID: os.Geteuid(), Store: db, Address: l.URL}), nil)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.Close()
		db.Close()
	})
	return "unix:" + path, l.URL
}

// run runs a command line and returns what it printed.
func run(t *testing.T, server string, line string) (string, error) {
	t.Helper()
	root := &cobra.Command{Use: "ibwarden", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(everyCommand()...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append(strings.Fields(line), "--server", server))
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

// token is a file with a new token of a tenant.
func token(t *testing.T, server, tenant string) string {
	t.Helper()
	secret, err := run(t, server, "tenant token create --tenant "+tenant)
	file := filepath.Join(t.TempDir(), "token")
	if err == nil {
		err = os.WriteFile(file, []byte(secret), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTokenFile: a token goes into a file that only its owner can read, whatever the umask; it
// is made when there is such a file, and a file that others can read is refused.
func TestTokenFile(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	server := serving(t)
	dir := t.TempDir()
	tokens := func() int {
		out, err := run(t, server, "tenant token list --json")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(out, `"tok-`)
	}
	file := filepath.Join(dir, "token")
	out, err := run(t, server, "tenant token create --tenant provider --output "+file)
	info, e := os.Stat(file)
	if err != nil || e != nil || out != "" || info.Mode() != 0o600 || info.Size() != 48 {
		t.Fatalf("%q, %v, %v, %v: want a file with mode 0600 and nothing printed", out, err, info, e)
	}
	if _, err := run(t, server, "tenant list --token-file "+file); err != nil {
		t.Error(err)
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o602} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		for _, flag := range []string{"--token-file", "--key"} {
			if _, err := run(t, server, "tenant list "+flag+" "+file); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: %s: mode %04o: want 0600 (chmod 600 ", flag, file, mode)) {
				t.Errorf("%s with mode %04o: %v", flag, mode, err)
			}
		}
	}
	before := tokens()
	for _, line := range []string{
		"tenant token create --output " + file, "tenant token create --output " + filepath.Join(dir, "none", "token"),
		"tenant token create --dry-run --output " + file + "2", "tenant token create --uri spiffe://x --output " + file + "2", "tenant token create --tenant nobody --output " + file + "2",
	} {
		if out, err := run(t, server, line); err == nil || out != "" {
			t.Errorf("%s: %q, %v: want an error", line, out, err)
		}
	}
	if after := tokens(); after != before {
		t.Errorf("%d tokens were made that nobody knows", after-before)
	}
	if _, err := os.Stat(file + "2"); err == nil {
		t.Error("a file without a token stays")
	}
	if out, err := run(t, server, "tenant token create --json --output "+file+"3"); err != nil || !strings.Contains(out, `"tok-`) || strings.Contains(out, "ibw_") {
		t.Errorf("%s, %v: want the token without its secret", out, err)
	}
}

// TestCommandsOfAService: a day of a provider and a tenant, each line with words that it
// prints, or that its error has.
func TestCommandsOfAService(t *testing.T) {
	server := serving(t)
	backup := filepath.Join(t.TempDir(), "b")
	restored := filepath.Join(t.TempDir(), "restored")
	for _, x := range []struct{ line, want, fails string }{
		{"tenant create red --keys 0x0100-0x01ff --partitions 2", "tenant red is made", ""},
		{"tenant create red", "", "it exists already"},
		{"tenant set red --members 10", "tenant red is changed", ""},
		{"tenant list", "0x0100-0x01ff", ""},
		{"port assign --tenant red 0x11 0x12 --yes", "port 0x0000000000000011 is tenant red's", ""},
		{"port list --tenant red", "0x0000000000000012", ""},
		{"partition create training --tenant red --member 0x11=full --why first", "stored, not yet proved", ""},
		{"partition create training --tenant red", "", "training"},
		{"partition list", "training", ""},
		{"partition show training", "0x0000000000000011", ""},
		{"partition set training --sl 3", "service level is 3", ""},
		{"partition set training --sl 4 --seen 1", "", "partition 0x0100 was changed in revision 5, after revision 1, the last that you have seen"},
		{"partition member add training 0x12=limited", "limited member", ""},
		{"partition member add nothing 0x12=limited", "", `no partition "nothing"`},
		{"partition member list training", "limited", ""},
		{"partition member remove training 0x12 --dry-run", "", "no manager runs"},
		{"partition member remove training 0x12", "is no longer a member", ""},
		{"partition member add training 0x12=limited", "", "was removed from 0x0100"},
		{"partition member add training 0x12=limited", "", "--seen REVISION"},
		{"partition member add training 0x12=limited --seen 6", "", "after revision 6, the last that you have seen"},
		{"tenant token create --tenant red --note between", "ibw_", ""}, // a revision of something else
		{"partition member add training 0x12=limited --seen 8", "limited member", ""},
		{"partition set training --sl 4 --seen 9", "service level is 4", ""},
		{"partition member list training --state waiting", "PORT", ""},
		{"partition member set training 0x12=full --seen 3", "", "was changed"},
		{"partition member set training 0x12=full", "0x0000000000000011 of tenant red is no longer a member", ""},
		{"partition member set training 0x12", "", "want PORT=full"},
		{"partition member set training 0x11=full --dry-run", "", "no manager runs"},
		{"partition member remove training 0x12 --seen 2", "", "was changed"},
		{"tenant create blue --keys 0x200-0x2ff", "tenant blue is made", ""},
		{"port assign --tenant blue 0x21 --yes", "tenant blue's", ""},
		{"as red partition member add training 0x21=full --index0", "waits for the consent of the owner of the port", ""},
		{"partition member list training --state waiting", "0x0000000000000021", ""},
		{"as blue partition member refuse training 0x21", "0x0000000000000021", ""},
		{"as blue partition member refuse 0x100 0x21", "", "no partition 0x0100"},
		{"port pool assign --tenant blue 0x1000-0x1fff", "0x0000000000001fff", ""},
		{"port pool assign --tenant blue 0x1000", "", "want two GUIDs"},
		{"port pool list", "0x0000000000001000", ""},
		{"as red partition member add training 0x1005=full", "waits for the consent of the owner of the port", ""},
		{"port pool release 0x1000", "0x0000000000001000", ""},
		{"port pool release 0x2000", "", "no pool"},
		{"tenant show red", "partitions            2              1", ""},
		{"tenant show nobody", "", "no tenant nobody"},
		{"port show 0x21", "of blue", ""},
		{"port show 0x22", "", "no port 0x0000000000000022"},
		{"port release 0x21 --seen 1", "", "was changed"},
		{"port release 0x21", "0x0000000000000021", ""},
		{"port assign --tenant red 0x31 --bound 0x51:7 --seen 1 --yes", "tenant red's", ""},
		{"port assign --tenant red 0x31 --bound 0x51:0", "", "a port number from 1 to 254"},
		{"port assign --tenant red 0x31 0x32 --bound 0x51:8", "", "want one port"},
		{"port show 0x31", "only at port 7 of switch 0x0000000000000051", ""},
		{"port assign --tenant red 0x32 --bound 0x51:7 --yes", "", "is the place of port"},
		{"port release 0x31", "0x0000000000000031", ""},
		{"tenant delete blue --seen 1", "", "was changed"},
		{"tenant set red --members 20 --seen 1", "", "was changed"},
		{"history decisions --refused --limit 1", "is the place of port", ""},
		{"history decisions --limit 100", "put tenant", ""},
		{"history decisions --limit 0", "", "want 1 or more"},
		{"export --applied", "", "no policy file was applied"},
		{"tenant token create --dry-run --data /x", "", "--dry-run and --data"},
		{"history list --limit 100", "because: first", ""},
		{"history show 4", "partition/0x0100", ""},
		{"history verify", "none changed, removed, added or moved", ""},
		{"history export", `"decision":"refused"`, ""},
		{"export", "red/training", ""},
		{"tenant token create --tenant red", "ibw_", ""},
		{"tenant token list --tenant red", "tok-", ""},
		{"approval list", "no change waits", ""},
		{"rollback 4 --dry-run", "", "no manager runs"},
		{"rollback 4 --seen 5", "", "it has changed: it is at revision"},
		{"rollback 9999", "", "no revision 9999"},
		{"store backup " + backup, "the store of unix:", ""},
		{"partition delete training", "is deleted", ""},
		{"tenant delete red", "", "release them first"},
	} {
		line := x.line
		if as, is := strings.CutPrefix(x.line, "as "); is {
			tenant, rest, _ := strings.Cut(as, " ")
			line = rest + " --token-file " + token(t, server, tenant)
		}
		out, err := run(t, server, line)
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
	root.AddCommand(Store())
	root.SetOut(io.Discard)
	root.SetArgs([]string{"store", "restore", backup, "--data", restored})
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
