package killtest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// Pauses in CI, and all of them.
const pauses, pausesLong = 1, 60

// pair are two managers on one store, the first of which ranks higher.
type pair struct {
	*site
	other *site
}

func newPair(t *testing.T, seed uint64) *pair {
	t.Helper()
	s := newSite(t, seed, []string{"--profile", "basic"})
	s.grows = true
	s.eventually("the manager has noted its keys", func() error {
		_, err := os.Stat(filepath.Join(s.dir, "keys.json"))
		return err
	})
	b := s.standby(t)
	b.grows = true
	return &pair{s, &site{client: b, cluster: s.cluster}}
}

// hand has one client know what the other does.
func (p *pair) hand(from, to *site) {
	to.now, to.revision, to.sent, to.states, to.serial, to.heads = from.now, from.revision, from.sent, from.states, from.serial, from.heads
	to.Rand = from.Rand
}

// stop stops a process, and goOn lets it go on.
func (r *runner) stop() { r.signal(syscall.SIGSTOP) }
func (r *runner) goOn() { r.signal(syscall.SIGCONT) }

func (r *runner) signal(s syscall.Signal) {
	r.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.Fatal(err)
	}
}

// isMaster reports whether a manager says that it is the only master.
func (r *runner) isMaster() error {
	a, err := r.try("GET", "/managers", nil, nil)
	if err != nil {
		return err
	}
	var masters []string
	self := false
	for _, item := range a.body["items"].([]any) {
		if m := item.(js); m["state"] == "master" {
			masters = append(masters, fmt.Sprint(m["port"]))
			self = m["self"] == true
		}
	}
	if len(masters) != 1 || !self {
		return fmt.Errorf("masters are %v", masters)
	}
	return nil
}

// TestPausedMaster stops a master until its standby has taken over, fabric and store, and
// taken changes. It then goes on and is master again, since it ranks higher, with all that
// the other one acknowledged, and takes changes.
func TestPausedMaster(t *testing.T) {
	t.Parallel()
	rounds := pauses
	if need.Soak() {
		rounds = pausesLong
	}
	p := newPair(t, need.Seed(t, 6))
	var longest time.Duration
	for round := range rounds {
		p.changed(1)
		p.site.settled()
		p.stop()
		p.hand(p.site, p.other)
		p.other.prefix = fmt.Sprintf("other-%d", round)
		p.other.changed(1 + p.IntN(2))
		p.other.check()
		p.other.verify()
		p.eventually("the fabric has what the other one acknowledged", func() error { return p.holds(p.other.now) })
		time.Sleep(time.Duration(p.IntN(int(pauseMost))))
		p.hand(p.other, p.site)
		p.prefix = fmt.Sprintf("first-%d", round)
		went := time.Now()
		p.goOn()
		p.eventually("it has the last revision", func() error {
			got, revision, err := p.look()
			if err == nil && (revision != p.revision || got.String() != p.now.String()) {
				err = fmt.Errorf("revision %d:\n%s\nwant %d:\n%s", revision, got, p.revision, p.now)
			}
			return err
		})
		p.eventually("it leads", func() error {
			a, err := p.try("GET", "/partitions", nil, nil)
			if err == nil && a.header.Get("Ibwarden-Old") != "" {
				err = errors.New(a.header.Get("Ibwarden-Old"))
			}
			return err
		})
		longest = max(longest, time.Since(went))
		p.changed(1)
		p.whole()
		if err := p.isMaster(); err != nil {
			t.Error(err)
		}
	}
	p.site.outcomes()
	t.Logf("%d pauses, %d changes to the first, %d to the other; longest until it leads again %v", rounds, p.acked, p.other.acked, longest)
}

// pauseMost bounds how long a manager stays stopped after the other one has taken changes.
const pauseMost = 2 * time.Second

// holds says which host does not hold what a state gives it, those of managers apart.
func (w *world) holds(s state) error {
	for i, held := range w.keys() {
		if want := s.keysOf(w.hosts[i].Ports[1].GUID.String(), false); i >= 2 && !maps.Equal(held, want) {
			return fmt.Errorf("%s holds %v, want %v", w.hosts[i].ID, held, want)
		}
	}
	return nil
}
