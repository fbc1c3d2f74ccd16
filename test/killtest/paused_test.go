package killtest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
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
	s := newSite(t, seed, nil)
	b := s.standby(t)
	return &pair{s, &site{client: b, cluster: s.cluster}}
}

// hand has one client know what the other does.
func (p *pair) hand(from, to *site) {
	to.now, to.revision, to.sent, to.states, to.serial, to.heads = from.now, from.revision, from.sent, from.states, from.serial, from.heads
	to.Rand = from.Rand
}

// caughtUp waits until a manager has read what another one acknowledged: a change of what it shows till
// then is refused.
func (s *site) caughtUp() {
	s.Helper()
	s.eventually("it has read what the other acknowledged", func() error {
		a, err := s.try("GET", fmt.Sprintf("/revisions/%d", s.revision), nil, nil)
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("revision %d: %d", s.revision, a.status)
		}
		return err
	})
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

// watch looks at every P_Key table that is written to a host other than those of the
// managers, from now until it is called: what was written that a state does not say.
func (w *world) watch(now state) (end func() []string) {
	var mu sync.Mutex
	var wrong []string
	look := func(s fabric.Sighting) {
		if s.What != fabric.SeenByAgent || mad.Method(s.MAD[3]) != mad.MethodSet {
			return
		}
		i := slices.IndexFunc(w.hosts, func(n *topology.Node) bool { return n.GUID == s.Node })
		var p mad.SMP
		var block smp.PKeyTable
		if i < 2 || p.UnmarshalBinary(s.MAD[:]) != nil || p.AttributeID != smp.AttrPKeyTable || block.UnmarshalBinary(p.Data[:]) != nil {
			return
		}
		held := map[ib.PKey]bool{}
		for _, k := range block.Keys {
			if k.IsValid() {
				held[k] = true
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if want := now.keysOf(w.hosts[i].Ports[1].GUID.String(), false); !maps.Equal(held, want) {
			wrong = append(wrong, fmt.Sprintf("%v: %s is written %v, want %v", s.At, w.hosts[i].ID, held, want))
		}
	}
	w.sight.Store(&look)
	return func() []string {
		w.sight.Store(nil)
		mu.Lock()
		defer mu.Unlock()
		return wrong
	}
}

// TestPausedMaster stops a master until its standby has taken over, fabric and store, and
// taken changes. It then goes on and is master again, since it ranks higher, with all that
// the other one acknowledged, and takes changes. No P_Key table is written on the way that
// is not that of the last revision.
func TestPausedMaster(t *testing.T) {
	need.Long(t, "a cluster of etcd, and failovers")
	t.Parallel()
	rounds := pauses
	if need.Soak() {
		rounds = pausesLong
	}
	seed := need.Seed(t, 6)
	for round := range rounds {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) { newPair(t, seed+uint64(round)).pause() })
	}
}

func (p *pair) pause() {
	p.Helper()
	p.changed(1 + p.IntN(3))
	p.site.settled()
	p.stop()
	p.hand(p.site, p.other)
	p.other.prefix = "other"
	p.other.changed(1 + p.IntN(3))
	p.other.check()
	p.other.verify()
	p.eventually("the fabric has what the other one acknowledged", func() error { return p.holds(p.other.now) })
	time.Sleep(time.Duration(p.IntN(int(pauseMost))))
	p.hand(p.other, p.site)
	p.prefix = "first"
	written := p.watch(p.now)
	went := time.Now()
	p.goOn()
	p.eventually("it leads, with the last revision", func() error {
		got, revision, err := p.look()
		if err == nil && (revision != p.revision || got.String() != p.now.String()) {
			err = fmt.Errorf("revision %d:\n%s\nwant %d:\n%s", revision, got, p.revision, p.now)
		}
		if err != nil {
			return err
		}
		a, err := p.try("GET", "/partitions", nil, nil)
		if err == nil && a.header.Get("Ibwarden-Old") != "" {
			err = errors.New(a.header.Get("Ibwarden-Old"))
		}
		return err
	})
	took := time.Since(went)
	p.eventually("it is the only master", p.isMaster)
	for _, w := range written() {
		p.Error(w)
	}
	p.changed(1)
	p.whole()
	p.Logf("%d changes to the first, %d to the other; it leads again after %v", p.acked, p.other.acked, took)
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
