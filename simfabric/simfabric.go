// Package simfabric runs a simulated InfiniBand fabric and its subnet manager inside a
// program. Its devices are opened like those of a served fabric (package verbs).
//
//	Open          a fabric of a topology, brought up
//	OpenDevice    the device of a host
//	SetPolicy, RestartManager, StopManager   actions of the administrator
//	Unplug, Plug, PowerOff, PowerOn          faults
//	Advance, Now  time
//
// Time is virtual. It passes only in Advance, in the actions of the administrator,
// and while a program waits (CQ.Wait, Device.WaitEvent): a wait advances the
// fabric until its event has happened or its time-out, in virtual time, has
// expired. So the same calls give the same packets each time. If two goroutines
// wait, they do so one after the other.
package simfabric

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/property"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/simserve/verbsd"
	"github.com/ibwarden/ibwarden/internal/topology"
)

const (
	// settleLimit is how much of the fabric's time the manager may take to do what
	// it was told.
	settleLimit    = 10 * time.Minute
	masterPriority = 1 // the standby has 0
	// maxSteps is how many events may happen in one call.
	maxSteps = 1 << 24
)

// Options say what fabric to make.
type Options struct {
	// Topology is the text of a topology file, as of ibsim or ibnetdiscover, a
	// generator ("fattree,radix=4"), or empty for the demonstration fabric.
	Topology string
	// Policy is the text of a policy file, YAML or partitions.conf; empty for every
	// host a limited member of the default partition and the manager a full one.
	Policy string
	// Manager is the node on which the subnet manager runs; empty for the
	// topology's first.
	Manager string
	// Standby is the node of a second manager, which takes over when the first has
	// gone (StopManager); empty for none. The two know each other's keys.
	Standby string
	// Devices sets properties of devices, by node name, or "*" for all, and by property
	// name: the words of `device` lines of scripts (docs/dev/scenarios.md), as
	// "bad-pkey-counter": 0. On or off is 1 or 0.
	Devices map[string]map[string]uint64
	// Seed is the seed of all randomness; 0 means 1.
	Seed uint64
}

// Fabric is a simulated fabric with its manager. Its methods may be called by
// several goroutines.
type Fabric struct {
	server *verbsd.Server
	ctx    context.Context
	end    context.CancelFunc
	served sync.WaitGroup

	mutex    sync.Mutex
	topology *topology.Netlist
	fabric   *fabric.Fabric
	policy   *policy.Policy
	secret   [mkey.SecretSize]byte
	managers []*manager // the one that is to be master first
	verdict  string
	refused  error       // why the manager wrote nothing, nil when it wrote
	cables   map[end]end // that were pulled
}

// manager is a subnet manager at its port.
type manager struct {
	*master.Engine
	node *topology.Node
	link *inproc.Link
	book *mkey.Book
}

// end is a port with a cable.
type end struct {
	node ib.NodeGUID
	port ib.PortNum
}

// Open makes a fabric and has its manager bring it up. The error says what is wrong
// in the options, or why the manager refuses the policy.
func Open(o Options) (*Fabric, error) {
	topology, err := topologyOf(o.Topology)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	f := &Fabric{topology: topology, cables: map[end]end{}}
	if f.policy, err = policyOf(o.Policy); err != nil {
		return nil, err
	}
	c := fabric.DefaultConfig()
	if o.Seed != 0 {
		c.Seed = o.Seed
	}
	binary.BigEndian.PutUint64(f.secret[:], c.Seed)
	if c.Profile, err = profile(topology, o.Devices); err != nil {
		return nil, err
	}
	if f.fabric, err = fabric.New(topology, c); err != nil {
		return nil, err
	}
	node, num, err := topology.Attach(o.Manager)
	if err != nil {
		return nil, fmt.Errorf("the manager's node: %w", err)
	}
	book := new(mkey.Book)
	if err := f.seat(node, num, book, masterPriority, false); err != nil {
		return nil, err
	}
	if o.Standby != "" {
		if node, num, err = topology.Attach(o.Standby); err != nil {
			return nil, fmt.Errorf("the standby's node: %w", err)
		}
		if err := f.seat(node, num, book, 0, false); err != nil {
			return nil, err
		}
	}
	if err := f.settle(); err != nil {
		return nil, err
	}
	f.ctx, f.end = context.WithCancel(context.Background())
	f.server = verbsd.New((*door)(f))
	return f, nil
}

func topologyOf(spec string) (*topology.Netlist, error) {
	switch {
	case spec == "":
		return topology.Demo(), nil
	case !strings.Contains(spec, "\n"):
		return topology.Generate(spec)
	}
	l, _, err := topology.Read([]byte(spec), "topology", func(name string) ([]byte, error) {
		return nil, fmt.Errorf("%s: no files are read here", name)
	})
	return l, err
}

func policyOf(text string) (*policy.Policy, error) {
	if text == "" {
		text = "version: 1\n"
	}
	return policyfile.Read([]byte(text), "policy", policyfile.Options{})
}

// profile returns the profile of a node by Options.Devices.
func profile(l *topology.Netlist, devices map[string]map[string]uint64) (func(*topology.Node, *sma.Config), error) {
	known := property.All()
	nodes := map[string]bool{"*": true}
	for _, n := range l.Nodes {
		nodes[n.ID] = true
	}
	for name, traits := range devices {
		if !nodes[name] {
			return nil, fmt.Errorf("devices: no node %q", name)
		}
		for t, number := range traits {
			if _, ok := known[t]; !ok {
				return nil, fmt.Errorf("devices: %s: no property %q", name, t)
			}
			if bits := known[t].Bits; bits < 64 && number>>bits != 0 {
				return nil, fmt.Errorf("devices: %s: %s=%d: want %d bits", name, t, number, bits)
			}
		}
	}
	return func(n *topology.Node, c *sma.Config) {
		for _, name := range []string{"*", n.ID} {
			for t, number := range devices[name] {
				known[t].Apply(c, number)
			}
		}
	}, nil
}

// seat starts a manager at a node; book says which keys ports were given. One that
// follows another has hosts register again.
func (f *Fabric) seat(node *topology.Node, num ib.PortNum, book *mkey.Book, priority uint8, follows bool) error {
	link, err := inproc.New(f.fabric, node.GUID, num, false)
	if err != nil {
		return err
	}
	c := engine.Config{Routing: routing.UpDown, Limits: link.Limits(), Election: engine.Election{Priority: priority}, Reregister: follows}
	copy(c.Seed[:], f.secret[:])
	binary.BigEndian.PutUint64(c.Seed[8:], uint64(node.GUID))
	var a server.Config
	master.Guard{
		Profile: protect.Default, Learn: true, Keys: master.KeysOf(mkey.NewRing(f.secret), book, false),
	}.Configure(&c, &a)
	m := &manager{node: node, link: link, book: book}
	m.Engine = master.New(c, a, f.policy, func(e event.Event) {
		switch e := e.(type) {
		case event.Refused:
			f.refused = e.Err
		case event.Completed:
			if f.refused = nil; e.Result.Proof != nil {
				f.verdict = e.Result.Proof.Verdict.String()
			}
		}
	})
	f.managers = append(f.managers, m)
	return link.SetIsSM(true)
}

// unseat takes the master away without a word.
func (f *Fabric) unseat() error {
	m := f.managers[0]
	f.managers = f.managers[1:]
	return errors.Join(m.link.SetIsSM(false), m.link.Close())
}

// settle lets time pass until the managers have done what there is to do.
func (f *Fabric) settle() error {
	settled := func() bool {
		for _, m := range f.managers {
			if !m.Settled() {
				return false
			}
		}
		return true
	}
	f.expire()
	if err := f.pass(f.fabric.Now()+settleLimit, settled); err != nil {
		return err
	}
	if !settled() {
		return fmt.Errorf("the manager does not settle within %v", settleLimit)
	}
	return f.refused
}

// pump moves what managers have to send and what came in for them.
func (f *Fabric) pump() error {
	for _, m := range f.managers {
		for some := true; some; {
			var err error
			if some, err = m.link.Pump(m.Engine); err != nil {
				return fmt.Errorf("the subnet manager at %s: %w", m.node.ID, err)
			}
		}
	}
	return nil
}

// expire calls Expire of the managers.
func (f *Fabric) expire() {
	for _, m := range f.managers {
		m.Expire(f.fabric.Now())
	}
}

// pass lets time pass until done, up to a time.
func (f *Fabric) pass(until time.Duration, done func() bool) error {
	for range maxSteps {
		if err := f.pump(); err != nil {
			return err
		}
		if done() {
			return nil
		}
		at, happens := f.fabric.NextEvent()
		next := until + 1
		if happens {
			next = at
		}
		for _, m := range f.managers {
			if due, ok := m.Deadline(); ok && due < next {
				next = due
			}
		}
		switch {
		case next > until:
			f.fabric.AdvanceTo(until)
			return f.pump()
		case happens && at <= next:
			f.fabric.Step()
		default:
			f.fabric.AdvanceTo(max(next, f.fabric.Now()))
			f.expire()
		}
	}
	return fmt.Errorf("%d events, and no end", maxSteps)
}

// door gives the servers of devices access to the fabric.
type door Fabric

// Do calls a function while nothing else uses the fabric.
func (d *door) Do(call func(*fabric.Fabric)) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	call(d.fabric)
	return nil
}

func (d *door) Topology() *topology.Netlist { return d.topology }

// Pass advances time for a waiting call.
func (d *door) Pass(limit time.Duration, done func() bool) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return (*Fabric)(d).pass(d.fabric.Now()+limit, done)
}

// OpenDevice opens the device of a host, by the node's name. The program is this
// one, and may be privileged.
func (f *Fabric) OpenDevice(node string, options ...verbs.Option) (*verbs.Device, error) {
	here, there := net.Pipe()
	f.served.Go(func() { f.server.ServeConn(f.ctx, there, true) })
	return verbs.Open(here, node, options...)
}

// Close ends the fabric. Its devices are closed.
func (f *Fabric) Close() error {
	f.end()
	f.served.Wait()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var err error
	for len(f.managers) > 0 {
		err = errors.Join(err, f.unseat())
	}
	return err
}

// Now is the fabric's time, counted from its making.
func (f *Fabric) Now() time.Duration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.fabric.Now()
}

// Advance lets time pass.
func (f *Fabric) Advance(d time.Duration) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.pass(f.fabric.Now()+max(d, 0), func() bool { return false })
}

// Verdict is the verdict of the manager's last proof, as "isolated".
func (f *Fabric) Verdict() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.verdict
}

// SetPolicy gives the manager another policy and waits until it is carried out.
// The error says what is wrong in the text, or why the manager refuses it; then the
// old one stays.
func (f *Fabric) SetPolicy(text string) error {
	p, err := policyOf(text)
	if err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.tell(p)
	if err := f.settle(); err != nil {
		f.tell(f.policy)
		return errors.Join(err, f.settle())
	}
	f.policy = p
	return nil
}

// tell gives every manager a policy.
func (f *Fabric) tell(p *policy.Policy) {
	for _, m := range f.managers {
		m.Manager().SetPolicy(p)
	}
}

// RestartManager ends the manager and starts it again on the same node. It asks
// hosts to register again.
func (f *Fabric) RestartManager() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.managers) != 1 {
		return errors.New("a standby would take over meanwhile: want a fabric with one manager")
	}
	m := f.managers[0]
	if err := f.unseat(); err != nil {
		return err
	}
	if err := f.seat(m.node, m.port(), m.book, masterPriority, true); err != nil {
		return err
	}
	return f.settle()
}

func (m *manager) port() ib.PortNum {
	if m.node.Type == ib.NodeSwitch {
		return 0
	}
	return 1
}

// StopManager ends the manager without a word. The standby takes over once it
// notices, which takes some time: Advance.
func (f *Fabric) StopManager() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.managers) < 2 {
		return errors.New("there is no standby: want Options.Standby")
	}
	return f.unseat()
}

// port finds a port by its node's name.
func (f *Fabric) port(node string, num ib.PortNum) (end, error) {
	n, err := f.topology.Find(node)
	if err != nil {
		return end{}, err
	}
	return end{n.GUID, num}, nil
}

// Unplug pulls the cable out of a port, Plug puts it back. The manager notices at
// its own time.
func (f *Fabric) Unplug(node string, num ib.PortNum) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	at, err := f.port(node, num)
	if err != nil {
		return err
	}
	peer, peerPort, ok := f.fabric.Peer(at.node, at.port)
	if !ok {
		return fmt.Errorf("port %d of %s has no cable", num, node)
	}
	f.cables[at] = end{peer, peerPort}
	return f.fabric.Unlink(at.node, at.port)
}

// Plug ends Unplug.
func (f *Fabric) Plug(node string, num ib.PortNum) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	at, err := f.port(node, num)
	if err != nil {
		return err
	}
	peer, ok := f.cables[at]
	if !ok {
		return fmt.Errorf("port %d of %s: its cable was not pulled", num, node)
	}
	delete(f.cables, at)
	return f.fabric.Link(at.node, at.port, peer.node, peer.port)
}

// PowerOff takes the power from a node: its opened devices are removed. PowerOn
// gives it back.
func (f *Fabric) PowerOff(node string) error {
	return f.at(node, func(g ib.NodeGUID) error { return f.fabric.PowerOff(g) })
}

// PowerOn ends PowerOff.
func (f *Fabric) PowerOn(node string) error {
	return f.at(node, func(g ib.NodeGUID) error { return f.fabric.PowerOn(g) })
}

func (f *Fabric) at(node string, do func(ib.NodeGUID) error) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	at, err := f.port(node, 0)
	if err != nil {
		return err
	}
	return do(at.node)
}
