package killtest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

const (
	// Masters that are killed or stopped in CI, and all of them, on fabrics of 72 hosts and of 648.
	masterFaults, masterFaultsLong = 3, 100
	masterFabric, masterFabricLong = "fattree,radix=12,levels=2", "fattree,radix=36,levels=2"

	masterManagers = 3
	masterWriters  = 3
	// askEvery is how often a host asks for a path.
	askEvery = 5 * time.Millisecond
	// stopLeast and stopMost are how long a master is stopped.
	stopLeast, stopMost = 2 * time.Second, 20 * time.Second
	// restLeast and restMost are the time between two faults: standbys read the fabric meanwhile.
	restLeast, restMost = 3 * time.Second, 6 * time.Second
	// writeEvery is the time between two changes of a writer. Without it the writers take most of
	// a small machine.
	writeEvery = 100 * time.Millisecond
	// writeWait is how long a writer waits for an answer before it asks the next manager.
	writeWait = 5 * time.Second
)

// askedKey is the partition that the host asks about: it is made first and not changed.
const askedKey = "0x00f0"

// TestMastersFail kills the master of three that share a store, or stops it for some seconds,
// again and again, while three writers make changes and a host asks for a path. No acknowledged
// change is lost, whoever comes next; the host is answered again, which the log has the times
// of; and no host is asked to register again, as what they registered is in the store.
func TestMastersFail(t *testing.T) {
	need.Long(t, "one failover after the other")
	t.Parallel()
	seed, rounds, spec := need.Seed(t, 11), int(need.Rounds(masterFaults, masterFaultsLong)), masterFabric
	if need.Soak() {
		spec = masterFabricLong
	}
	list, err := topology.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	m := newMasters(t, newWorldOf(t, list), seed)
	m.host()
	for i := range m.writers {
		m.ended.Go(m.writers[i].write)
	}
	for i := range rounds {
		m.fault(i)
		if t.Failed() {
			break
		}
	}
	m.over.Store(true)
	m.ended.Wait()
	m.check()
	changes := 0
	for _, w := range m.writers {
		changes += w.acked
	}
	t.Logf("%d changes acknowledged, none lost", changes)
	for _, what := range []string{"killed", "stopped"} {
		if took := m.took[what]; len(took) > 0 {
			slices.Sort(took)
			t.Logf("%d masters %s: the first right PathRecord after %v at the median, %v at most", len(took), what, took[len(took)/2], took[len(took)-1])
		}
	}
	t.Logf("hosts asked to register again: %v", m.asked)
}

// masters are three managers on one store, who writes to it, and the host that asks.
type masters struct {
	*world
	*rand.Rand
	all     []*runner
	writers []*writer
	over    atomic.Bool
	ended   sync.WaitGroup
	path    *asker
	took    map[string][]time.Duration
	asked   []int // ports that were asked to register again, by fault

	mu    sync.Mutex
	again map[ib.NodeGUID]bool // those of this fault
}

func newMasters(t *testing.T, w *world, seed uint64) *masters {
	m := &masters{world: w, Rand: rand.New(rand.NewPCG(seed, 11)), took: map[string][]time.Duration{}}
	cluster := storetest.StartEtcd(t)
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(m.Uint32())
	}
	apart := len(w.hosts) / masterManagers
	// A host that is a limited member reaches a manager that is a full one, as a standby is only
	// where the policy says so.
	policy := "version: 1\npartitions:\n  - name: Default\n    pkey: 0x7fff\n    members:\n      limited: [ALL]\n      full:\n"
	for i := range masterManagers {
		policy += fmt.Sprintf("        - %v\n", w.hosts[i*apart].Ports[1].GUID)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range masterManagers {
		r := w.place(i*apart, "--store", "etcd:"+strings.Join(cluster.Endpoints(), ","), "--policy", file, "--priority", fmt.Sprint(masterManagers-i))
		r.http.Timeout = writeWait
		if err := os.WriteFile(filepath.Join(r.dir, "secret"), []byte(hex.EncodeToString(secret)), 0o600); err != nil {
			t.Fatal(err)
		}
		r.start()
		m.all = append(m.all, r)
	}
	m.whole()
	for i := range masterWriters {
		x := &writer{m: m, now: state{}}
		x.changes = changes{Rand: rand.New(rand.NewPCG(seed, uint64(100+i))), prefix: fmt.Sprint("w", i), writer: i}
		for range 10 {
			x.guids = append(x.guids, w.hosts[1+i*apart+x.IntN(apart/2)].Ports[1].GUID.String())
		}
		slices.Sort(x.guids)
		x.guids = slices.Compact(x.guids)
		m.writers = append(m.writers, x)
	}
	return m
}

// whole waits until one manager is master and the others stand by, and says which it is.
func (m *masters) whole() (master *runner) {
	m.Helper()
	m.eventually("one manager is master, and the others stand by", func() error {
		master = nil
		for _, r := range m.all {
			state, err := r.ownState()
			switch {
			case err != nil:
				return err
			case state == "master" && master == nil:
				master = r
			case state != "standby":
				return fmt.Errorf("%s is %s", r.node.ID, state)
			}
		}
		if master == nil {
			return errors.New("none is master")
		}
		return master.isMaster()
	})
	return master
}

// host makes the partition that the host asks about, and has it ask.
func (m *masters) host() {
	m.Helper()
	n := len(m.hosts)
	from, to := m.hosts[n-1], m.hosts[n-2]
	master := m.whole()
	for _, x := range []struct {
		method, path string
		body         js
	}{
		{"PUT", "/partitions/" + askedKey, js{"name": "asked"}},
		{"POST", "/partitions/" + askedKey + "/members?wait=proved", js{"members": []js{
			{"port": from.Ports[1].GUID.String(), "membership": "full"}, {"port": to.Ports[1].GUID.String(), "membership": "full"},
		}}},
	} {
		m.eventually("the partition that the host asks about is made", func() error {
			a, err := master.try(x.method, x.path, x.body, map[string]string{"If-None-Match": "*"})
			if x.method == "POST" {
				tag, _ := master.try("GET", "/partitions/"+askedKey, nil, nil)
				a, err = master.try(x.method, x.path, x.body, map[string]string{"If-Match": tag.header.Get("ETag")})
			}
			if err == nil && a.status >= 300 {
				err = fmt.Errorf("%s %s: %d %v", x.method, x.path, a.status, a.body)
			}
			return err
		})
	}
	var key ib.PKeyBase
	if _, err := fmt.Sscanf(askedKey, "0x%x", &key); err != nil {
		m.Fatal(err)
	}
	m.path = &asker{world: m.world, from: from, to: to, key: key.Full()}
	m.ended.Go(func() {
		for !m.over.Load() {
			if err := m.server.Do(m.path.turn); err != nil {
				m.Error(err)
				return
			}
			time.Sleep(askEvery)
		}
	})
	m.path.first(m.world, time.Now())
	look := func(s fabric.Sighting) {
		var p mad.SMP
		var info smp.PortInfo
		if s.What != fabric.SeenByAgent || mad.Method(s.MAD[3]) != mad.MethodSet || p.UnmarshalBinary(s.MAD[:]) != nil ||
			p.AttributeID != smp.AttrPortInfo || info.UnmarshalBinary(p.Data[:]) != nil || !info.ClientReregister {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.again[s.Node] = true
	}
	m.again = map[ib.NodeGUID]bool{}
	m.sight.Store(&look)
}

// fault kills the master or stops it, and has it go on when another has taken over.
func (m *masters) fault(i int) {
	m.Helper()
	master := m.whole()
	time.Sleep(restLeast + time.Duration(m.Int64N(int64(restMost-restLeast))))
	m.mu.Lock()
	clear(m.again)
	m.mu.Unlock()
	what := "killed"
	began := time.Now()
	if i%3 == 2 {
		what = "stopped"
		master.stop()
	} else {
		_ = master.cmd.Process.Kill()
	}
	took := m.path.first(m.world, began)
	m.took[what] = append(m.took[what], took)
	if what == "stopped" {
		time.Sleep(stopLeast + time.Duration(m.Int64N(int64(stopMost-stopLeast))))
		master.goOn()
	} else {
		master.kill()
		master.start()
	}
	m.whole()
	m.check()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, len(m.again))
	m.Logf("%v: the master at %s is %s: the first right PathRecord after %v; %d nodes asked to register again", i, master.node.ID, what, took, len(m.again))
}

// check looks that everything is there that was acknowledged.
func (m *masters) check() {
	m.Helper()
	for _, w := range m.writers {
		w.pause.Lock()
		defer w.pause.Unlock()
	}
	m.eventually("the store has what was acknowledged", func() error {
		c := &client{runner: m.whole()}
		got, revision, err := c.look()
		if err != nil {
			return err
		}
		for _, w := range m.writers {
			mine := state{}
			for n := range partitions {
				k := fmt.Sprintf("0x%04x", firstKey+w.writer*partitions+n)
				if p, there := got[k]; there {
					mine[k] = p
				}
			}
			if mine.String() == w.now.String() || w.sent != nil && mine.String() == w.sent.after.String() {
				continue
			}
			return fmt.Errorf("revision %d has of writer %d:\n%s\nand it was acknowledged:\n%s", revision, w.writer, mine, w.now)
		}
		return nil
	})
}

// writer makes one change after the other, with whichever manager takes it.
type writer struct {
	m *masters
	changes
	now   state // as acknowledged
	sent  *change
	at    int // manager that is asked
	acked int
	pause sync.Mutex // held while a change is made
}

func (w *writer) write() {
	for !w.m.over.Load() {
		w.pause.Lock()
		took := w.one()
		w.pause.Unlock()
		if took {
			time.Sleep(writeEvery)
			continue
		}
		w.at = (w.at + 1) % len(w.m.all)
		time.Sleep(20 * time.Millisecond)
	}
}

// one makes a change, or sends one again that nobody answered.
func (w *writer) one() (took bool) {
	r := w.m.all[w.at]
	if w.sent == nil {
		w.sent = w.next(w.now, func(path string) (string, bool) {
			a, err := r.try("GET", path, nil, nil)
			return a.header.Get("ETag"), err == nil && a.header.Get("Ibwarden-Old") == "" && a.header.Get("ETag") != ""
		})
	}
	if w.sent == nil {
		return false
	}
	a, err := r.try(w.sent.method, w.sent.path, w.sent.body, w.sent.header)
	switch {
	case err != nil || a.status == 503:
		return false
	case a.status >= 300:
		w.m.Errorf("%s %s %v: %d %v\nof\n%s", w.sent.method, w.sent.path, w.sent.body, a.status, a.body, w.now)
		w.m.over.Store(true)
		return false
	}
	w.now, w.sent = w.sent.after, nil
	w.acked++
	return true
}

// asker is a host that asks subnet administration for a path, all the time.
type asker struct {
	*world
	from, to *topology.Node
	key      ib.PKey
	general  *endpoint.GSIPair
	serial   uint64

	mu    sync.Mutex
	sent  map[uint64]time.Time // requests, by transaction
	since time.Time            // the first right answer to a request that was sent later is waited for
	at    time.Time            // when it came; zero before
	said  string               // by the last answer
}

// first waits for a right answer to a request that was sent after a moment, and says how long
// after that it came.
func (x *asker) first(w *world, since time.Time) (took time.Duration) {
	w.Helper()
	x.mu.Lock()
	x.since, x.at = since, time.Time{}
	x.mu.Unlock()
	w.eventually("the host is told the path", func() error {
		x.mu.Lock()
		defer x.mu.Unlock()
		if took = x.at.Sub(since); x.at.IsZero() {
			return fmt.Errorf("it has no right answer; the last one was %q", x.said)
		}
		return nil
	})
	return took
}

// turn takes answers and asks again.
func (x *asker) turn(f *fabric.Fabric) {
	x.mu.Lock()
	defer x.mu.Unlock()
	info := f.Agent(x.from.GUID).Port(1)
	if x.general == nil {
		d, err := f.Device(x.from.GUID)
		if err == nil {
			x.general, err = endpoint.OpenGSI(d, 1)
		}
		if err != nil {
			x.Error(err)
			return
		}
		x.sent = map[uint64]time.Time{}
	}
	want := f.Agent(x.to.GUID).Port(1).LID
	now := time.Now()
	x.general.Receive(func(_ *endpoint.Completion, b *[mad.Size]byte) {
		var in sa.MAD
		var r sa.PathRecord
		if in.UnmarshalBinary(b[:]) != nil || !in.Method.IsResponse() {
			return
		}
		if x.said = in.Status.String(); in.Status != mad.StatusOK {
			return
		}
		sent, mine := x.sent[in.TransactionID]
		if mine && r.UnmarshalBinary(in.Data[:]) == nil && r.DLID == want && r.PKey == x.key && x.at.IsZero() && sent.After(x.since) {
			x.at = now
		}
	})
	x.serial++
	x.sent[x.serial] = now
	delete(x.sent, x.serial-answersLate)
	if err := x.ask(info, x.serial); err != nil {
		x.Error(err)
	}
}

// answersLate is how many requests later an answer counts.
const answersLate = 1000

func (x *asker) ask(info *smp.PortInfo, serial uint64) error {
	record := sa.PathRecord{
		DGID: ib.MakeGID(info.GIDPrefix, x.to.Ports[1].GUID), SGID: ib.MakeGID(info.GIDPrefix, x.from.Ports[1].GUID),
		PathProperties: sa.PathProperties{PKey: x.key, NumbPath: 1},
	}
	q := sa.MAD{
		Header: mad.Header{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
			Method: mad.MethodGet, TransactionID: serial, AttributeID: sa.AttrPathRecord,
		},
		ComponentMask: sa.PathRecordDGID | sa.PathRecordSGID | sa.PathRecordPKey | sa.PathRecordNumbPath,
	}
	body, err := record.AppendBinary(nil)
	if err != nil {
		return err
	}
	copy(q.Data[:], body)
	if body, err = q.AppendBinary(nil); err != nil {
		return err
	}
	return x.general.Send((*[mad.Size]byte)(body), endpoint.SendRequest{RemoteQP: ib.QP1, To: endpoint.Address{DLID: info.MasterSMLID, SL: info.MasterSMSL}})
}
