// Command bench compares ibwarden with OpenSM: both bring up the same fabric
// with the same partitions.conf, in turn, each time on a fresh ibsim.
// It prints wall time, CPU time and peak memory of every run, the medians, and
// the ratios of ibwarden to OpenSM; and how long ibwarden takes for the same
// topology on its own simulated fabric. Then one host moves to another tenant
// and back, on one ibsim, under each manager. Last, each subnet administration
// answers PathRecord queries of hosts of one fabric, in turn, each on its own ibsim
// and through the same sockets: queries answered per second of wall time and per
// second of the manager's CPU time, and the latency. scripts/bench-opensm runs it.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
)

// fabrics are 128 hosts on 80 switches and 3,456 hosts on 720 switches.
var fabrics = []string{"fattree,radix=8,levels=3", "fattree,radix=24,levels=3"}

// runTime bounds one run of one program.
const runTime = 10 * time.Minute

func main() {
	rounds := flag.Int("rounds", 3, "how often each program runs on each fabric")
	seconds := flag.Int("seconds", 4, "how long each round asks for paths")
	ibwarden := flag.String("ibwarden", "bin/ibwarden", "the ibwarden to measure")
	only := flag.String("only", "", "measure nothing but this: up, move, or paths")
	flag.Parse()
	topologies, asked := fabrics, pathsFabrics
	if flag.NArg() > 0 {
		topologies, asked = flag.Args(), flag.Args()
	}
	if err := run(topologies, asked, *ibwarden, *rounds, time.Duration(*seconds)*time.Second, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures what is named, or all: bring-ups and moves on topologies, paths on asked.
func run(topologies, asked []string, ibwarden string, rounds int, d time.Duration, only string) error {
	if only != "paths" {
		for _, spec := range topologies {
			if err := compare(spec, ibwarden, rounds, only); err != nil {
				return err
			}
		}
	}
	if only == "" || only == "paths" {
		return benchPaths(asked, ibwarden, rounds, d)
	}
	return nil
}

// contender is a program that brings up a fabric.
type contender struct {
	name string
	// ibsim reports whether it needs one.
	ibsim bool
	run   func(ctx context.Context, b *bench, s *ibsimtest.Sim) *exec.Cmd
	// check says what is wrong with how it ended.
	check func(s *ibsimtest.Sim, stdout []byte) error
	runs  []measure
}

// measure is what one run took.
type measure struct {
	wall, cpu time.Duration
	peak      int64 // bytes of memory
	stdout    []byte
}

// bench is one fabric and what runs on it.
type bench struct {
	tools          *ibsimtest.Tools
	spec           string
	topology       *topology.Netlist
	ibwarden, conf string
	dir            string
}

func contenders() []*contender {
	openSM := func(args ...string) func(context.Context, *bench, *ibsimtest.Sim) *exec.Cmd {
		return func(ctx context.Context, b *bench, s *ibsimtest.Sim) *exec.Cmd {
			return s.OpenSM(ctx, "", b.conf, append([]string{"-o"}, args...)...)
		}
	}
	return []*contender{
		{
			name: "ibwarden", ibsim: true, check: proved,
			run: func(ctx context.Context, b *bench, s *ibsimtest.Sim) *exec.Cmd {
				return s.Command(ctx, "", b.ibwarden, "run", "--once", "--json", "--quarantine", "0s", "--fabric", "ibsim:"+s.Name, "--policy", b.conf)
			},
		},
		{name: "OpenSM", ibsim: true, run: openSM(), check: subnetUp},
		{name: "OpenSM, --maxsmps 64", ibsim: true, run: openSM("--maxsmps", "64"), check: subnetUp},
		{
			name: "ibwarden, own fabric", check: proved,
			run: func(ctx context.Context, b *bench, _ *ibsimtest.Sim) *exec.Cmd {
				return exec.CommandContext(ctx, b.ibwarden, "run", "--once", "--json", "--fabric", "sim:"+b.spec, "--policy", b.conf)
			},
		},
	}
}

// proved checks what ibwarden printed.
func proved(_ *ibsimtest.Sim, stdout []byte) error {
	if !bytes.Contains(stdout, []byte(`"verdict": "isolated`)) {
		return fmt.Errorf("no good verdict")
	}
	return nil
}

// subnetUp checks OpenSM's log.
func subnetUp(s *ibsimtest.Sim, _ []byte) error {
	log, err := os.ReadFile(s.OpenSMLog())
	if err != nil {
		return err
	}
	if !bytes.Contains(log, []byte("SUBNET UP")) || bytes.Contains(log, []byte("PARSE ERROR")) {
		return fmt.Errorf("the log does not say SUBNET UP, or says PARSE ERROR")
	}
	return nil
}

// compare compares on one topology: what is told, or all.
func compare(spec, ibwarden string, rounds int, only string) error {
	tools, err := ibsimtest.FindTools()
	if err != nil {
		return err
	}
	topology, err := topology.Generate(spec)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(ibwarden)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ibwarden-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{tools: tools, spec: spec, topology: topology, ibwarden: path, conf: filepath.Join(dir, "partitions.conf"), dir: dir}
	if err := os.WriteFile(b.conf, policyFor(topology, -1), 0o600); err != nil {
		return err
	}
	fmt.Printf("\n%s: %d hosts, %d switches, %d links, %d partitions\n\n", spec,
		topology.Count(ib.NodeCA), topology.Count(ib.NodeSwitch), len(topology.Links()), tenants+3)
	if only != "move" {
		if err := b.compareBringUp(rounds); err != nil {
			return err
		}
	}
	if only != "up" {
		return b.compareMoves(rounds)
	}
	return nil
}

// compareBringUp runs all contenders in turn, round after round.
func (b *bench) compareBringUp(rounds int) error {
	fmt.Printf("%-22s %6s %9s %9s %9s\n", "", "round", "wall s", "CPU s", "peak MB")
	all := contenders()
	for round := range rounds {
		for _, c := range all {
			m, err := b.once(c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			c.runs = append(c.runs, m)
			m.print(c.name, fmt.Sprint(round+1))
		}
	}
	fmt.Println()
	for _, c := range all {
		c.median().print(c.name, "median")
	}
	fmt.Println()
	ours := all[0].median()
	for _, c := range all[1:] {
		if theirs := c.median(); c.ibsim {
			fmt.Printf("%-33s %5.3f %9.3f %9.3f\n", "ibwarden / "+c.name, float64(ours.wall)/float64(theirs.wall),
				float64(ours.cpu)/float64(theirs.cpu), float64(ours.peak)/float64(theirs.peak))
		}
	}
	return printPackets(all[0].runs[0].stdout)
}

// printPackets prints what phases sent, and the least that would have done, by what ibwarden printed.
func printPackets(stdout []byte) error {
	var said struct{ Phases []sweep.Phase }
	if err := json.Unmarshal(stdout, &said); err != nil {
		return fmt.Errorf("what ibwarden printed: %w", err)
	}
	fmt.Printf("\n%-22s %9s %9s %9s\n", "packets of ibwarden", "sent", "least", "ratio")
	all := sweep.SumPhases(said.Phases)
	all.Name = "all"
	for _, p := range append(said.Phases, all) {
		if p.Sent > 0 {
			fmt.Printf("%-22s %9d %9d %9.3f\n", p.Name, p.Sent, p.Least, float64(p.Sent)/float64(p.Least))
		}
	}
	return nil
}

// once measures one run of c on a fresh fabric.
func (b *bench) once(c *contender) (m measure, err error) {
	var sim *ibsimtest.Sim
	if c.ibsim {
		dir, err := os.MkdirTemp(b.dir, "run-")
		if err != nil {
			return m, err
		}
		if sim, err = ibsimtest.StartSim(b.tools, dir, b.topology); err != nil {
			return m, err
		}
		defer sim.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	cmd := c.run(ctx, b, sim)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if m, err = measured(cmd); err == nil {
		m.stdout = stdout.Bytes()
		err = c.check(sim, m.stdout)
	}
	if err != nil {
		return m, fmt.Errorf("%v: %w\n%s", cmd.Args, err, tail(stderr.String()))
	}
	return m, nil
}

// measured runs a program to its end.
func measured(cmd *exec.Cmd) (m measure, err error) {
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return m, err
	}
	ended, peak := make(chan struct{}), make(chan int64)
	go func() { peak <- peakOf(cmd.Process.Pid, ended) }()
	err = cmd.Wait()
	m.wall = time.Since(began)
	close(ended)
	m.cpu, m.peak = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), <-peak
	return m, err
}

// peakEvery is how often the memory of a program is looked at.
const peakEvery = 2 * time.Millisecond

// peakOf follows the peak of a process's resident memory, in bytes, to its
// end. What wait4 says of it is of no use: it counts the memory of the process
// that started it.
func peakOf(pid int, ended <-chan struct{}) (peak int64) {
	tick := time.NewTicker(peakEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return peak
		case <-tick.C:
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has just ended
		}
		if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
			var kib int64
			if n, err := fmt.Sscan(rest, &kib); n == 1 && err == nil {
				peak = kib << 10
			}
		}
	}
}

// tail is the end of a program's messages.
func tail(s string) string { return s[max(0, len(s)-2000):] }

func (m measure) print(name, round string) {
	fmt.Printf("%-22s %6s %9.3f %9.3f %9.1f\n", name, round, m.wall.Seconds(), m.cpu.Seconds(), float64(m.peak)/1e6)
}

// median takes the median of each quantity by itself.
func (c *contender) median() measure {
	return measure{
		wall: middle(c.runs, func(m measure) time.Duration { return m.wall }),
		cpu:  middle(c.runs, func(m measure) time.Duration { return m.cpu }),
		peak: middle(c.runs, func(m measure) int64 { return m.peak }),
	}
}

func middle[R any, T cmp.Ordered](runs []R, of func(R) T) T {
	all := make([]T, len(runs))
	for i, m := range runs {
		all[i] = of(m)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// tenants is the number of partitions among which the hosts are divided.
const tenants = 16

// policyFor gives every host to a tenant, and all of them limited membership
// of a storage and a management partition. The host with the number astray, -1
// for none, is in the tenant after its own.
func policyFor(l *topology.Netlist, astray int) []byte {
	members := make([][]string, tenants)
	storage := ""
	count := 0
	for _, n := range l.Nodes {
		if n.Type != ib.NodeCA {
			continue
		}
		guid := fmt.Sprintf("%v=full", n.Ports[1].GUID)
		tenant := count % tenants
		if count == astray {
			tenant = (tenant + 1) % tenants
		}
		if members[tenant] = append(members[tenant], guid); count == tenants {
			storage = guid
		}
		count++
	}
	var conf strings.Builder
	conf.WriteString("Default=0x7fff : ALL=limited, SELF=full ;\n")
	fmt.Fprintf(&conf, "Storage=0x100 : ALL_CAS=limited, %s ;\n", storage)
	conf.WriteString("Management=0x101 : ALL_CAS=limited, SELF=full ;\n")
	for i, m := range members {
		// One member on a line: OpenSM cuts lines of more than 4,094 bytes.
		fmt.Fprintf(&conf, "Tenant%d=0x%x :\n%s ;\n", i+1, 0x1000+i, strings.Join(m, ",\n"))
	}
	return []byte(conf.String())
}
