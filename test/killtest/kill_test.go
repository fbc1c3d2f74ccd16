package killtest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// client makes one change after the other, and knows what has to be there.
type client struct {
	*runner
	changes
	now      state    // as acknowledged
	revision uint64   // the last acknowledged
	states   []state  // that the fabric may be in: the last one that it was seen to have, and all since
	heads    []string // of the audit log
	sent     *change  // which has no answer yet
	acked    int
	// lost are the revisions, first and last, that were carried out while the store came and
	// went. No port gets a new M_Key before the store knows of it: a pass of that time
	// isolates, and is not complete.
	lost [][2]uint64
}

func newClient(r *runner, seed uint64) *client {
	c := &client{runner: r, now: state{}, states: []state{{}}}
	c.changes = changes{Rand: rand.New(rand.NewPCG(seed, 16)), prefix: "k"}
	for _, n := range r.hosts[2:] {
		c.guids = append(c.guids, n.Ports[1].GUID.String())
	}
	return c
}

// etag is the ETag of an object; false where nobody answers.
func (c *client) etag(path string) (tag string, had bool) {
	a, err := c.try("GET", path, nil, nil)
	return a.header.Get("ETag"), err == nil && a.header.Get("ETag") != ""
}

// send makes a change that was made before, or a new one, and enters the answer. It
// returns false where there was none.
func (c *client) send(wait bool) (acknowledged bool) {
	c.Helper()
	again := c.sent != nil
	if !again {
		if c.sent = c.next(c.now, c.etag); c.sent == nil {
			return false
		}
		c.states = append(c.states, c.sent.after)
	}
	path := c.sent.path
	if wait {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "wait=proved"
	}
	a, err := c.try(c.sent.method, path, c.sent.body, c.sent.header)
	if err != nil {
		return false
	}
	if a.status == 503 { // it says itself that it does not know, or that nothing was done
		return false
	}
	if a.status >= 300 {
		c.Fatalf("%s %s %v (repeated: %v): %d %v\nof\n%s", c.sent.method, path, c.sent.body, again, a.status, a.body, c.now)
	}
	n := uint64(a.body["revision"].(float64))
	if o, is := a.body["outcome"].(js); wait && a.body["repeated"] == nil && (!is || !c.isFine(n, o)) {
		c.Fatalf("%s %s: %v: want it proved", c.sent.method, path, a.body)
	}
	if n != c.revision+1 {
		c.Fatalf("%s %s is revision %d after %d was acknowledged: %v", c.sent.method, path, n, c.revision, a.body)
	}
	c.now, c.revision, c.sent = c.sent.after, n, nil
	c.acked++
	return true
}

// read is what the service says that there is.
func (c *client) read() (s state, revision uint64) {
	c.Helper()
	s, revision, err := c.look()
	if err != nil {
		c.Fatalf("%v\n%s", err, c.log)
	}
	return s, revision
}

// look is read of a service on which others make changes: the error may be that one came
// between.
func (c *client) look() (s state, revision uint64, err error) {
	get := func(path string) (a answer, err error) {
		if a, err = c.try("GET", path, nil, nil); err != nil {
			return a, err
		}
		if a.status != 200 {
			return a, fmt.Errorf("GET %s: %d %v", path, a.status, a.body)
		}
		if n := uint64(a.body["revision"].(float64)); revision != 0 && n != revision {
			return a, fmt.Errorf("GET %s: revision %d, after %d", path, n, revision)
		}
		return a, nil
	}
	list, err := get("/partitions?limit=1000")
	if err != nil {
		return nil, 0, err
	}
	s, revision = state{}, uint64(list.body["revision"].(float64))
	for _, item := range list.body["items"].([]any) {
		p := item.(js)
		k := p["pkey"].(string)
		in, err := get("/partitions/" + k + "/members?limit=1000")
		if err != nil {
			return nil, 0, err
		}
		members := map[string]bool{}
		for _, m := range in.body["items"].([]any) {
			members[m.(js)["port"].(string)] = m.(js)["membership"] == "full"
		}
		s[k] = partition{p["name"].(string), members}
	}
	return s, revision, nil
}

// check looks after a kill what is there: all that was acknowledged, and what was asked for
// last whole or not at all. It then asks for that again: what was done is not done
// twice.
func (c *client) check() (done bool) {
	c.Helper()
	got, revision := c.read()
	switch {
	case revision == c.revision && got.String() == c.now.String():
	case c.sent != nil && revision == c.revision+1 && got.String() == c.sent.after.String():
		done = true
	default:
		want := fmt.Sprintf("revision %d:\n%s", c.revision, c.now)
		if c.sent != nil {
			want += fmt.Sprintf("or of %s %s %v:\n%s", c.sent.method, c.sent.path, c.sent.body, c.sent.after)
		}
		c.Fatalf("the service has revision %d:\n%s\nwant %s", revision, got, want)
	}
	if c.sent != nil && !c.send(false) {
		c.Fatalf("no answer to a request that comes again\n%s", c.log)
	}
	if again, n := c.read(); n != c.revision || again.String() != c.now.String() {
		c.Fatalf("a request came again (done before: %v), and there is revision %d:\n%s\nwant %d:\n%s", done, n, again, c.revision, c.now)
	}
	return done
}

// verify has the audit log checked, which has to pass through every head that it had
// before.
func (c *client) verify() {
	c.Helper()
	words := []string{"history", "verify"}
	for _, h := range c.heads {
		words = append(words, "--head", h)
	}
	out, err := c.command(words...)
	_, head, found := strings.Cut(out, "head ")
	if err != nil || !found || !strings.Contains(out, "none changed, removed, added or moved") {
		c.Fatalf("history verify: %v: %s", err, out)
	}
	c.heads = append(c.heads, strings.TrimSpace(head))
	c.heads = c.heads[max(0, len(c.heads)-headsKept):]
}

// headsKept is how many heads the audit log is held against.
const headsKept = 10

// within looks that no host holds a key that it has in none of the states that it may be
// in.
func (c *client) within() {
	c.Helper()
	for i, held := range c.keys() {
		host := c.hosts[i]
		for key := range held {
			allowed := false
			for _, s := range c.states {
				allowed = allowed || s.keysOf(host.Ports[1].GUID.String(), i == c.host)[key] || len(c.states) > 0 && key.Base() == 0x7fff
			}
			if !allowed {
				c.Fatalf("%s holds %v, which no revision since the last proof gives it\n%s", host.ID, key, c.log)
			}
		}
	}
}

// settled waits until the fabric has what was acknowledged, and nothing else.
func (c *client) settled() {
	c.Helper()
	c.eventually("the fabric has what the store says", func() error {
		for i, held := range c.keys() {
			if want := c.now.keysOf(c.hosts[i].Ports[1].GUID.String(), i == c.host); !maps.Equal(held, want) {
				return fmt.Errorf("%s holds %v, want %v", c.hosts[i].ID, held, want)
			}
		}
		select {
		case <-c.ended:
			return errors.New("and ibwarden run has ended by itself")
		default:
			return nil
		}
	})
	c.states = []state{c.now}
}

// isFine reports whether the outcome of a revision is what it has to be.
func (c *client) isFine(revision uint64, o js) bool {
	return o["state"] == "proved" || o["state"] == "failed" && o["verdict"] == "isolated" &&
		slices.ContainsFunc(c.lost, func(x [2]uint64) bool { return x[0] <= revision && revision <= x[1] })
}

// outcomes looks that every revision of the history has an outcome, which comes a little
// later than the tables.
func (c *client) outcomes() {
	c.Helper()
	c.eventually("every revision has its outcome", func() error {
		for next := ""; ; {
			list := c.get("/revisions?limit=1000" + next).body
			for _, item := range list["items"].([]any) {
				o, is := item.(js)["outcome"].(js)
				n := uint64(item.(js)["revision"].(float64))
				if !is || !c.isFine(n, o) || n == c.revision && o["state"] != "proved" {
					return fmt.Errorf("revision %v: %v", item.(js)["revision"], o)
				}
			}
			cursor, more := list["next"].(string)
			if !more {
				return nil
			}
			next = "&cursor=" + cursor
		}
	})
}

// How many kills there are with -short, without it and in a soak.
const killsShort, kills, killsLong = 3, 10, 1000

// TestKilledRun kills `ibwarden run` with SIGKILL between a request and its answer, at
// moments from the first byte to after the proof, and starts it again on what it left.
func TestKilledRun(t *testing.T) {
	points := need.Share(killsShort, kills)
	if need.Soak() {
		points = killsLong
	}
	w := newWorld(t)
	c := newClient(w.place(0), need.Seed(t, 1))
	c.start()
	c.settled()
	told := 0
	var counts struct{ done, undone, answered, starting int }
	// How long requests take here. It changes with what else the machine does: kills come at
	// all moments up to a time that follows, so that most come before the answer.
	var took [2]time.Duration
	for i := range took {
		for range 5 {
			began := time.Now()
			if !c.send(i == 1) {
				t.Fatalf("no answer\n%s", c.log)
			}
			took[i] = max(took[i], time.Since(began))
		}
	}
	for point := 0; point < points; {
		if c.IntN(20) == 0 { // or it does not even come to answer
			pause := time.Duration(c.IntN(int(100 * time.Millisecond)))
			c.kill()
			c.startOnce()
			time.Sleep(pause)
			counts.starting++
		} else {
			for range c.IntN(4) {
				c.send(false)
			}
			wait := c.IntN(2)
			pause := time.Duration(c.Int64N(int64(took[wait])))
			run := c.cmd
			killed := make(chan struct{})
			time.AfterFunc(pause, func() { _ = run.Process.Kill(); close(killed) })
			switch acknowledged := c.send(wait == 1); {
			case acknowledged:
				counts.answered++
				took[wait] = max(took[wait]*4/5, time.Millisecond)
			case c.sent != nil:
				point++
				took[wait] = took[wait] * 11 / 10
			}
			<-killed
		}
		c.within()
		c.kill() // which may have happened
		if c.within(); !c.killed() {
			t.Fatalf("ibwarden run ended by itself: %v\n%s", c.err, c.log)
		}
		c.start()
		if asked := c.sent != nil; c.check() {
			counts.done++
		} else if asked {
			counts.undone++
		}
		c.verify()
		c.within()
		if c.IntN(2) == 0 {
			c.settled()
		}
		if point >= told+50 {
			told = point
			t.Logf("%d kills between a request and its answer: %d had been done, %d had not", point, counts.done, counts.undone)
		}
	}
	c.settled()
	c.outcomes()
	c.verify()
	t.Logf("%d kills between a request and its answer: %d had been done, %d had not; %d more after the answer, %d at a start; %d changes acknowledged",
		points, counts.done, counts.undone, counts.answered, counts.starting, c.acked)
	if points >= kills && (counts.done == 0 || counts.undone == 0) { // a few may all be of one kind
		t.Error("the moments are not those between a request and its answer")
	}
}
