package killtest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// door is a way to a member of etcd that can be shut: connections stay, and carry nothing.
type door struct {
	net.Listener
	to     string
	mu     sync.Mutex
	opened *sync.Cond
	shut   bool
}

func newDoor(t *testing.T, to string) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{Listener: l, to: to}
	d.opened = sync.NewCond(&d.mu)
	t.Cleanup(func() { d.set(false); l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.carry(c)
		}
	}()
	return d
}

func (d *door) carry(c net.Conn) {
	defer c.Close()
	out, err := net.Dial("tcp", d.to)
	if err != nil {
		return
	}
	defer out.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, out}, {out, c}} {
		both.Go(func() {
			_, _ = io.Copy(gate{way[1], d}, way[0])
			c.Close()
			out.Close()
		})
	}
	both.Wait()
}

// gate is the end of a connection behind a door.
type gate struct {
	io.Writer
	d *door
}

func (g gate) Write(p []byte) (int, error) {
	g.d.mu.Lock()
	for g.d.shut {
		g.d.opened.Wait()
	}
	g.d.mu.Unlock()
	return g.Writer.Write(p)
}

func (d *door) set(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
	d.opened.Broadcast()
}

// newCutPair are two managers on one store, to which the first one goes by doors.
func newCutPair(t *testing.T, seed uint64) (*pair, []*door) {
	t.Helper()
	cluster := storetest.StartEtcd(t)
	var doors []*door
	var ways []string
	for _, e := range cluster.Endpoints() {
		d := newDoor(t, strings.TrimPrefix(e, "http://"))
		doors, ways = append(doors, d), append(ways, "http://"+d.Addr().String())
	}
	flags := func(ways []string) []string {
		return []string{"--store", "etcd:" + strings.Join(ways, ",")}
	}
	s := &site{client: newClient(newWorld(t).place(0, flags(ways)...), seed), cluster: cluster}
	s.start()
	s.changed(1)
	s.settled()
	own := s.flags
	s.flags = flags(cluster.Endpoints())
	b := s.standby(t)
	s.flags = own
	s.eventually("the master knows its standby", func() error {
		a, err := s.try("GET", "/managers", nil, nil)
		if err != nil {
			return err
		}
		for _, item := range a.body["items"].([]any) {
			if item.(js)["state"] == "standby" {
				return nil
			}
		}
		return errors.New("it does not")
	})
	return &pair{s, &site{client: b, cluster: cluster}}, doors
}

// writes notes the Sets that leave the nodes of the two managers, from now on: who of them
// sent one after the other had begun.
type writes struct {
	mu    sync.Mutex
	nodes [2]ib.NodeGUID
	sent  [2]int
	last  int
	turns []string // when the writer changed
}

func (x *writes) see(s fabric.Sighting) {
	who := slices.Index(x.nodes[:], s.Node)
	if s.What != fabric.SeenLeaving || who < 0 || mad.Method(s.MAD[3]) != mad.MethodSet {
		return
	}
	var p mad.SMP
	if p.UnmarshalBinary(s.MAD[:]) != nil || p.AttributeID == smp.AttrSMInfo || p.Class != mad.ClassSubnDirected && p.Class != mad.ClassSubnLID {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sent[who]++
	if x.last != who {
		x.last = who
		x.turns = append(x.turns, fmt.Sprintf("%v: manager %d", s.At, who))
	}
}

// TestMasterCutOff cuts a master off from the store and from its standby at once, while it
// reaches the switches: the standby takes over, fabric and store, and takes changes; from its
// first Set on the former master sends none, and says that it may not write. Afterwards there
// is one master, with all that was acknowledged.
func TestMasterCutOff(t *testing.T) {
	need.Long(t, "a cluster of etcd, and a failover")
	t.Parallel()
	p, doors := newCutPair(t, need.Seed(t, 12))
	p.changed(1 + p.IntN(3))
	p.site.settled()
	x := &writes{nodes: [2]ib.NodeGUID{p.hosts[0].GUID, p.hosts[1].GUID}}
	see := x.see
	p.sight.Store(&see)
	p.cut(doors, true)
	p.hand(p.site, p.other)
	p.other.caughtUp()
	p.other.prefix = "other"
	began := time.Now()
	p.other.changed(1 + p.IntN(3))
	took := time.Since(began)
	p.eventually("it has written to the fabric", func() error {
		x.mu.Lock()
		sent := x.sent[1]
		x.mu.Unlock()
		if sent == 0 {
			p.other.changed(1) // the last one concerned no port
			return errors.New("it has not")
		}
		return nil
	})
	p.eventually("the fabric has what the other one acknowledged", func() error { return p.holds(p.other.now) })
	p.eventually("the first one says that it may not write", func() error {
		if !strings.Contains(p.log.String(), "may not write to the fabric") {
			return errors.New("it does not")
		}
		return nil
	})
	x.mu.Lock()
	turns := slices.Clone(x.turns)
	x.mu.Unlock()
	if len(turns) != 1 {
		t.Errorf("the writer of the fabric changed %d times, want once: %v", len(turns), turns)
	}
	p.cut(doors, false)
	p.hand(p.other, p.site)
	p.prefix = "first"
	p.eventually("the first one is the only master", p.isMaster)
	p.site.caughtUp()
	p.changed(1)
	p.check()
	p.verify()
	p.eventually("the fabric has the last revision", func() error { return p.holds(p.now) })
	t.Logf("the other one took a change %v after the cut; %d and %d Sets, turns %v", took, x.sent[0], x.sent[1], x.turns)
}

// cut shuts the first manager off from the store and the other manager, or opens the ways
// again.
func (p *pair) cut(doors []*door, shut bool) {
	p.Helper()
	for _, d := range doors {
		d.set(shut)
	}
	var fault fabric.Fault
	if shut {
		fault.Drop = func(_ time.Duration, _ ib.PortNum, m *[mad.Size]byte) bool {
			var s mad.SMP
			return s.UnmarshalBinary(m[:]) == nil && s.AttributeID == smp.AttrSMInfo
		}
	}
	err := p.server.Do(func(f *fabric.Fabric) {
		if err := f.SetFault(p.hosts[0].GUID, fault); err != nil {
			p.Error(err)
		}
	})
	if err != nil {
		p.Fatal(err)
	}
}
