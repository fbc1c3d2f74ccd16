package killtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// previous is the data directory of a run of the version before this one, and what it has.
// When a version is released, IBWARDEN_UPDATE=1 go test -run TestUpgradedData writes it
// again.
const (
	previous = "testdata/previous"
	data     = "data.tar.gz" // of it
)

// recorded is what the data directory in previous has.
type recorded struct {
	Commit     string                     `json:"commit"` // of the program that wrote it
	Revision   uint64                     `json:"revision"`
	Heads      []string                   `json:"heads"`
	Partitions map[string]map[string]bool `json:"partitions"` // members by GUID, true for a full one
	Names      map[string]string          `json:"names"`
}

const recordedChanges = 40

// TestUpgradedData: this version goes on with what the version before it wrote: the
// store, the audit log, the LIDs and the M_Keys.
func TestUpgradedData(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newClient(w.place(0), need.Seed(t, 5))
	if os.Getenv("IBWARDEN_UPDATE") == "1" {
		c.record()
		return
	}
	want := c.unpack()
	c.now, c.revision, c.heads = state{}, want.Revision, want.Heads
	for k, members := range want.Partitions {
		c.now[k] = partition{want.Names[k], members}
	}
	c.states = []state{c.now}
	c.prefix = "upgraded"
	c.start()
	c.check()
	c.settled()
	c.verify()
	for range 10 {
		if !c.send(true) {
			t.Fatalf("no answer\n%s", c.log)
		}
	}
	c.settled()
	c.verify()
}

// record runs this version, and keeps what it leaves.
func (c *client) record() {
	c.Helper()
	c.start()
	for range recordedChanges {
		if !c.send(true) {
			c.Fatalf("no answer\n%s", c.log)
		}
	}
	c.settled()
	c.outcomes()
	c.verify()
	c.end()
	commit, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		c.Fatal(err)
	}
	r := recorded{Commit: strings.TrimSpace(string(commit)), Revision: c.revision, Heads: c.heads, Partitions: map[string]map[string]bool{}, Names: map[string]string{}}
	for k, p := range c.now {
		r.Partitions[k], r.Names[k] = p.members, p.name
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = errors.Join(os.MkdirAll(previous, 0o755), os.WriteFile(filepath.Join(previous, "recorded.json"), append(text, '\n'), 0o644))
	}
	if err != nil {
		c.Fatal(err)
	}
	if out, err := exec.Command("tar", "-C", c.dir, "--exclude=*lock", "--exclude=*.sock", "-czf", filepath.Join(previous, data), ".").CombinedOutput(); err != nil {
		c.Fatalf("%v: %s", err, out)
	}
}

// unpack puts what was recorded into the data directory.
func (c *client) unpack() (r recorded) {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(previous, "recorded.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		c.Fatal(err)
	}
	if out, err := exec.Command("tar", "-C", c.dir, "-xzf", filepath.Join(previous, data)).CombinedOutput(); err != nil {
		c.Fatalf("%v: %s", err, out)
	}
	return r
}

// end ends the process as systemd does.
func (r *runner) end() {
	r.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.Fatal(err)
	}
	<-r.ended
	if r.cmd = nil; r.killed() {
		r.Fatalf("ibwarden run ended with %v\n%s", r.err, r.log)
	}
	r.http.CloseIdleConnections()
}

// TestDataOfANewerVersion: what a newer version may have written, and this one does not
// know, is not passed over: it could be a limit.
func TestDataOfANewerVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newClient(w.place(0), need.Seed(t, 6))
	c.start()
	for c.revision < 5 {
		c.send(true)
	}
	c.end()
	before := c.keys()
	db, err := bolt.Open(filepath.Join(c.dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	contents, err := db.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := db.Acquire(t.Context(), "a newer version")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range contents.Objects {
		if strings.HasPrefix(o.Key, "partition/") {
			o.Value = []byte(strings.Replace(string(o.Value), `"object":{`, `"object":{"expires":"2030-01-01T00:00:00Z",`, 1))
			if _, err := db.Commit(t.Context(), store.Commit{Epoch: epoch, After: contents.Revision, Puts: []store.Object{o}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	c.startOnce()
	select {
	case <-c.ended:
	case <-time.After(patience):
		t.Fatalf("it runs\n%s", c.log)
	}
	if text := c.log.String(); c.err == nil || !strings.Contains(text, `unknown field "expires": a newer ibwarden has written it`) {
		t.Errorf("%v\n%s", c.err, text)
	}
	if after := c.keys(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("P_Keys %v, were %v", after, before)
	}
}

// older is the program of the version that wrote previous, built from the history of the
// repository.
func older(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(previous, "recorded.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	source := t.TempDir()
	if out, err := exec.Command("sh", "-c", `cd "$(git rev-parse --show-toplevel)" && git archive "$1" | tar -x -C "$2"`, "sh", r.Commit, source).CombinedOutput(); err != nil {
		t.Fatalf("the source of %s: %v\n%s", r.Commit, err, out)
	}
	build := exec.Command("go", "build", "-o", "bin/ibwarden", "./cmd/ibwarden")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(source, "bin/ibwarden")
}

// TestUpgrade has this version take over from the one before, on one host and on two, and
// give back, while changes are made. IBWARDEN_SOAK=1 runs it: it builds the version before
// from the history, which a clone need not have.
func TestUpgrade(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set")
	}
	old := older(t)
	t.Run("one host", func(t *testing.T) {
		w := newWorld(t)
		c := newClient(w.place(0), need.Seed(t, 7))
		c.program = old
		c.start()
		for round := range 6 { // there and back, three times
			for range 10 {
				c.send(true)
			}
			c.settled()
			c.verify()
			if round%2 == 1 {
				c.kill()
			} else {
				c.end()
			}
			if c.program = ""; round%2 == 1 {
				c.program = old
			}
			c.start()
			c.check()
		}
	})
	t.Run("two hosts", func(t *testing.T) {
		cluster := storetest.StartEtcd(t)
		w := newWorld(t)
		a := newClient(w.place(0, "--store", "etcd:"+strings.Join(cluster.Endpoints(), ",")), need.Seed(t, 8))
		a.program = old
		a.start()
		for range 10 {
			a.send(true)
		}
		a.settled()
		s := &site{client: a, cluster: cluster}
		b := s.standby(t)
		toggle := func(c *client) {
			c.end()
			if c.program == "" {
				c.program = old
			} else {
				c.program = ""
			}
			c.start()
		}
		for range 4 {
			a.handOver(b)
			b.goesOn()
			toggle(a) // its port has the lower GUID: it is handed the subnet when it is back
			b.passOn(a)
			a.goesOn()
			toggle(b)
		}
	})
}

// goesOn makes changes on a manager that is or will be master, and looks at what it has.
func (c *client) goesOn() {
	c.Helper()
	for range 5 {
		c.eventually("a change is taken", func() error {
			if !c.send(false) {
				return errors.New("no answer, or a refusal")
			}
			return nil
		})
	}
	c.check()
	c.settled()
	c.verify()
}

// handOver has a client's manager hand over to another's, which goes on with its model.
func (c *client) handOver(to *client) {
	c.Helper()
	c.eventually("the standby is there", func() error {
		out, err := c.command("handover", "--to", to.node.Ports[1].GUID.String())
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	c.passOn(to)
}

// passOn has another client go on with what this one knows.
func (c *client) passOn(to *client) {
	to.now, to.revision, to.sent, to.states, to.serial = c.now, c.revision, nil, []state{c.now}, c.serial
	to.heads, to.Rand, to.prefix = c.heads, c.Rand, c.prefix
}
