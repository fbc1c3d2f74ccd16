package ibsimtest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/ibsim"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// quality is how well routes spread: of each pattern the load of its worst link, on average
// over the patterns and at most; and the mean number of links between switches on a way.
type quality struct {
	shifts, permutations load
	links                float64
}

type load struct {
	mean float64
	most int
}

func (q quality) String() string {
	return fmt.Sprintf("worst link of a shift %.2f on average, %d at most; of a permutation %.2f, %d; %.2f links on the way",
		q.shifts.mean, q.shifts.most, q.permutations.mean, q.permutations.most, q.links)
}

// judged follows packets between hosts by tables.
type judged struct {
	t      testing.TB
	f      *observed.Fabric
	hosts  []*observed.Port // in the order of the topology
	tables func(n *observed.Node) []ib.PortNum
	ways   map[[2]int][]*observed.Port
}

// way is the exits between switches from one host to another.
func (j *judged) way(from, to int) []*observed.Port {
	if w, known := j.ways[[2]int{from, to}]; known {
		return w
	}
	var out []*observed.Port
	at, lid := j.hosts[from].Peer.Node, j.hosts[to].Info.LID
	for {
		table := j.tables(at)
		if int(lid) >= len(table) || int(table[lid]) >= len(at.Ports) || len(out) > len(j.f.Nodes) {
			j.t.Fatalf("no way from %s to %s", j.hosts[from], j.hosts[to])
		}
		exit := &at.Ports[table[lid]]
		if exit.Peer == j.hosts[to] {
			break
		}
		if exit.Peer == nil || exit.Peer.Node.Switch == nil {
			j.t.Fatalf("%s leads astray from %s to %s", exit, j.hosts[from], j.hosts[to])
		}
		out, at = append(out, exit), exit.Peer.Node
	}
	j.ways[[2]int{from, to}] = out
	return out
}

// worst is the load of the worst link when each host sends to another.
func (j *judged) worst(to func(i int) int) (most int) {
	loads := map[*observed.Port]int{}
	for i := range j.hosts {
		if to(i) == i {
			continue
		}
		for _, p := range j.way(i, to(i)) {
			loads[p]++
			most = max(most, loads[p])
		}
	}
	return most
}

const (
	maxShifts       = 200 // all where hosts are no more
	permutations    = 100
	permutationSeed = 7
)

func (j *judged) quality() (q quality) {
	shifts := min(len(j.hosts)-1, maxShifts)
	add := func(l *load, most, of int) {
		l.mean += float64(most) / float64(of)
		l.most = max(l.most, most)
	}
	for i := range shifts {
		by := 1 + i*(len(j.hosts)-1)/shifts
		add(&q.shifts, j.worst(func(i int) int { return (i + by) % len(j.hosts) }), shifts)
	}
	rng := rand.New(rand.NewPCG(permutationSeed, 1))
	for range permutations {
		order := rng.Perm(len(j.hosts))
		add(&q.permutations, j.worst(func(i int) int { return order[i] }), permutations)
	}
	for _, w := range j.ways {
		q.links += float64(len(w)) / float64(len(j.ways))
	}
	return q
}

// thinned takes cables between switches from a topology, one in so many.
func thinned(l *topology.Netlist, oneIn int, seed uint64) *topology.Netlist {
	rng := rand.New(rand.NewPCG(seed, 2))
	for _, n := range l.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if p.Peer != nil && n.Type == ib.NodeSwitch && p.Peer.Type == ib.NodeSwitch && n.GUID < p.Peer.GUID && rng.IntN(oneIn) == 0 {
				p.Peer.Ports[p.PeerPort].Peer = nil
				p.Peer = nil
			}
		}
	}
	return l
}

// besideOpenSM routes a fabric by an engine of OpenSM and one of ours, with the same LIDs.
// refused tells that OpenSM's engine did not take it, and min-hop did instead.
func besideOpenSM(t *testing.T, l *topology.Netlist, theirs string, our routing.Engine) (their, ours quality, refused bool) {
	t.Helper()
	r := newRig(t, l, "")
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	conf := r.file("partitions.conf", "Default=0x7fff : ALL=full;\n")
	o, err := do(r.sim.OpenSM(ctx, r.host, conf, "-o", "-R", theirs, "-V"))
	if err != nil || o.status != 0 {
		t.Fatalf("opensm: status %d, %v\n%s%s", o.status, err, o.stdout, o.stderr)
	}
	log, err := os.ReadFile(r.sim.OpenSMLog())
	if err != nil {
		t.Fatal(err)
	}
	refused = bytes.Contains(log, []byte("ucast_mgr_route: "+theirs+": cannot build"))
	if !bytes.Contains(log, []byte("building routing with '"+theirs+"'")) || !bytes.Contains(log, []byte("SUBNET UP")) {
		t.Fatalf("opensm did not route by %s:\n%s", theirs, log)
	}
	link, err := ibsim.Dial(ibsim.EnvironmentFrom(func(name string) string {
		return map[string]string{"IBSIM_SOCKNAME": r.sim.Name, "SIM_HOST": r.host}[name]
	}))
	if err != nil {
		t.Fatal(err)
	}
	read, err := daemon.Read(ctx, link, sweep.Options{Forwarding: true})
	if err := link.Close(); err != nil {
		t.Error(err)
	}
	if err != nil || len(read.Faults) > 0 {
		t.Fatalf("read: %v, %v", err, read.Faults)
	}
	f := read.Fabric
	place := map[ib.NodeGUID]*observed.Port{}
	var to []graph.Destination
	for _, p := range f.EndPorts() {
		place[p.Node.GUID()] = p
		to = append(to, graph.Destination{Port: p, LID: p.Info.LID, LMC: p.Info.LMC})
	}
	var hosts []*observed.Port
	for _, n := range l.Nodes {
		if n.Type == ib.NodeCA {
			hosts = append(hosts, place[n.GUID])
		}
	}
	start := time.Now()
	tables, err := routing.Compute(f, to, our, graph.Room{VLs: 1, Layers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s took %v; %s", our, time.Since(start), tables.Notes)
	judge := func(of func(n *observed.Node) []ib.PortNum) quality {
		j := &judged{t: t, f: f, hosts: hosts, tables: of, ways: map[[2]int][]*observed.Port{}}
		return j.quality()
	}
	return judge(func(n *observed.Node) []ib.PortNum { return n.Switch.LFT }),
		judge(func(n *observed.Node) []ib.PortNum { return tables.Linear[n.Index] }), refused
}

// Routes of whole fat trees load their worst links no more than those of OpenSM's engine of
// the same name with the same LIDs do. A tree without some cables that engine refuses;
// beside the min-hop that OpenSM then takes, ways are as short, and links are loaded by
// permutations at most 1.05 times, by shifts 1.2 times as much.
func TestFatTreesBesideOpenSM(t *testing.T) {
	specs := []string{"fattree,radix=12,levels=2"}
	if os.Getenv("IBWARDEN_SOAK") != "" {
		specs = append(specs, "fattree,radix=8,levels=3", "fattree,radix=24,levels=2", "fattree,radix=12,levels=3")
	}
	for _, spec := range specs {
		for _, oneIn := range []int{0, 100, 20} { // of the cables between switches is missing; 0 for none
			if oneIn == 100 && len(specs) == 1 {
				continue
			}
			l := topologyOf(t, spec)
			share, slack := 1.0, 1.001 // the order of sums differs
			if oneIn > 0 {
				l = thinned(l, oneIn, 1)
				share, slack = 1.2, 1.05
			}
			their, ours, refused := besideOpenSM(t, l, "ftree", routing.FatTree)
			t.Logf("%s, one cable in %d missing; OpenSM's ftree refuses: %v", spec, oneIn, refused)
			t.Logf("OpenSM:   %v", their)
			t.Logf("ibwarden: %v", ours)
			if ours.shifts.mean > share*their.shifts.mean || ours.permutations.mean > slack*their.permutations.mean || ours.links > slack*their.links || oneIn == 0 && ours.shifts.most != 1 {
				t.Errorf("%s, one cable in %d missing: %v; OpenSM: %v", spec, oneIn, ours, their)
			}
		}
	}
}
