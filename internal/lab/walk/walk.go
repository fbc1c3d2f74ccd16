package walk

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Config is where a walk goes.
type Config struct {
	Seed uint64
	// Topology is a generator and its parameters.
	Topology string
	// Steps is how many things happen, Most how long it is at the most until the next.
	Steps int
	Most  time.Duration
	// Managers is how many there are, at the first hosts.
	Managers int
	// Policy is more of every policy, in lines of its YAML.
	Policy string
	// Engine changes the configuration of a manager, by its number.
	Engine func(i int, c *engine.Config)
}

// walk is a fabric with its managers.
type walk struct {
	testing.TB
	Config
	golden.Story
	rng      *rand.Rand
	list     *topology.Netlist
	fabric   *fabric.Fabric
	managers []*manager
	hosts    []*topology.Node
	lines    []string       // of the present step
	writes   []byte         // all that was written in it
	sent     map[string]int // how many packets of each kind
	told     map[string]string
	cut      [][2]end // cables that are out
	off      map[ib.NodeGUID]bool
}

type manager struct {
	*engine.Engine
	link *inproc.Link
	hung bool // its process does nothing
}

// end is one end of a cable.
type end struct {
	node ib.NodeGUID
	num  ib.PortNum
}

// Ring is the secret that the managers of a walk share.
func Ring() *mkey.Ring { return mkey.NewRing([mkey.SecretSize]byte{27}) }

// Keyed has a manager give each port an M_Key of its own.
func Keyed(c *engine.Config) {
	c.Keys = &mkey.KeyingConfig{Keys: mkey.Keys{Ring: Ring(), Book: new(mkey.Book)}}
	c.Election.SMKeys, c.Election.Vouches = Ring().SMKey, Ring()
}

// Run walks, and compares what happened with the file below testdata that is named.
func Run(t testing.TB, name string, c Config) {
	t.Helper()
	w := &walk{TB: t, Config: c, rng: rand.New(rand.NewPCG(c.Seed, 27)), sent: map[string]int{}, told: map[string]string{}, off: map[ib.NodeGUID]bool{}}
	w.open()
	w.pass(30 * time.Second)
	w.ends("the managers start")
	for range c.Steps {
		what := w.happens()
		w.pass(time.Duration(w.rng.Int64N(int64(c.Most))))
		for _, m := range w.managers {
			m.hung = false
		}
		w.ends(what)
	}
	w.Check(t, name)
}

func (w *walk) say(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// must is for what the fabric does not refuse.
func (w *walk) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *walk) open() {
	w.Helper()
	var err error
	w.list, err = topology.Generate(w.Topology)
	w.must(err)
	c := fabric.DefaultConfig()
	c.Trace = w.trace
	w.fabric, err = fabric.New(w.list, c)
	w.must(err)
	for _, n := range w.list.Nodes {
		if n.Type == ib.NodeCA {
			w.hosts = append(w.hosts, n)
		}
	}
	for i := range w.Managers {
		w.managers = append(w.managers, w.seat(i, desired.Assigned{}))
	}
}

// seat starts a manager at a host, with what one there assigned before.
func (w *walk) seat(i int, known desired.Assigned) *manager {
	w.Helper()
	link, err := inproc.New(w.fabric, w.hosts[i].GUID, 1, false)
	w.must(err)
	w.must(link.SetIsSM(true))
	c := engine.Config{Limits: link.Limits(), Routing: routing.UpDown, Seed: [32]byte{byte(w.Seed), byte(i)}, Election: engine.Election{Priority: uint8(9 - i)}}
	if w.Engine != nil {
		w.Engine(i, &c)
	}
	c.Known = known
	return &manager{link: link, Engine: engine.New(c, w.policy(0), func(e event.Event) { w.say("manager %d: %v", i, e) })}
}

// trace notes a packet as an agent takes it in: the bytes of a write, of anything else that
// there was one. Transaction identifiers and times do not count.
func (w *walk) trace(x fabric.Sighting) {
	var p mad.SMP
	if x.What != fabric.SeenByAgent || p.UnmarshalBinary(x.MAD[:]) != nil {
		return
	}
	w.sent[fmt.Sprint(p.Method, " ", p.AttributeID)]++
	if p.Method == mad.MethodSet && p.AttributeID != smp.AttrSMInfo {
		w.writes = fmt.Append(w.writes, x.Node, x.Port, p.AttributeID, p.AttributeModifier, p.MKey, p.Data)
	}
}

// pass lets time pass for the managers.
func (w *walk) pass(d time.Duration) {
	w.Helper()
	for end := w.fabric.Now() + d; ; {
		busy := false
		for _, m := range w.awake() {
			some, err := m.link.Pump(m.Engine)
			w.must(err)
			busy = busy || some
		}
		if busy {
			continue
		}
		if w.fabric.Now() >= end {
			return
		}
		next := end
		if at, ok := w.fabric.NextEvent(); ok {
			next = min(next, at)
		}
		for _, m := range w.awake() {
			if at, ok := m.Deadline(); ok {
				next = min(next, at)
			}
		}
		w.fabric.AdvanceTo(max(next, w.fabric.Now()))
		for _, m := range w.awake() {
			m.Expire(w.fabric.Now())
		}
	}
}

// awake are the managers whose processes run.
func (w *walk) awake() (list []*manager) {
	for _, m := range w.managers {
		if !m.hung {
			list = append(list, m)
		}
	}
	return list
}

// ends writes down what followed from a step.
func (w *walk) ends(what string) {
	told := w.seen()
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if told[name] != w.told[name] {
			w.say("= %s: %s", name, told[name])
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(w.sent)) {
		w.say("%d packets %s", w.sent[kind], kind)
	}
	w.say("writes %x", sha256.Sum256(w.writes))
	w.Add(what, strings.Join(w.lines, "\n"))
	w.lines, w.writes, w.told = nil, nil, told
	clear(w.sent)
}

// seen is what the managers say of themselves and of the subnet, by name.
func (w *walk) seen() map[string]string {
	out := map[string]string{}
	for i, m := range w.managers {
		to, failed := m.SteppedDown()
		work, some := m.UnderWay()
		due, waits := m.Deadline()
		claims, version := m.Claims()
		out[fmt.Sprint(i, " state")] = fmt.Sprintf("%+v, settled %v, idle %v, held %v, may write %v, serves %v, asking %d, down %v %q, work %+v %v, due %v %v, claims %v %d", m.Status(), m.Settled(), m.Idle(),
			m.Held(), m.Status().State == smp.SMMaster && m.Lease().May(w.fabric.Now()), m.Serves(), m.Asking(), to, failed, work, some, due > w.fabric.Now(), waits, claims, version)
		out[fmt.Sprint(i, " faults")] = fmt.Sprint(m.Faults(), m.Carried(), m.GuardPeriod())
		if m.Fabric() != nil {
			out[fmt.Sprint(i, " groups")] = fmt.Sprint(m.UnknownMLIDs())
		}
		out[fmt.Sprint(i, " assigned")] = fmt.Sprintf("%+v", m.Assigned().Fences)
		for _, x := range m.Managers() {
			x.Silent = 0
			out[fmt.Sprint(i, " manager ", x.Port)] = fmt.Sprintf("%+v", x)
		}
		if s, ok := m.Subnet(); ok {
			out[fmt.Sprint(i, " subnet")] = fmt.Sprintf("epoch %d, %d others, partitions %v", s.Epoch, len(s.Others), s.Partitions)
			out[fmt.Sprint(i, " tables")] = tables(s.Fabric)
		}
	}
	return out
}

// tables is a sum of what a fabric holds, by its ports.
func tables(f *observed.Fabric) string {
	ends := slices.SortedFunc(slices.Values(f.EndPorts()), func(p, q *observed.Port) int { return cmp.Compare(p.GUID, q.GUID) })
	var text strings.Builder
	for _, p := range ends {
		fmt.Fprint(&text, p, p.Info.LID, p.PKeys, p.Info.PortState, "; ")
	}
	return text.String()
}
