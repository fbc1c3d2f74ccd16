package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/ibsim"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
)

// pathsFabrics have 648 and 3,456 hosts.
var pathsFabrics = []string{"fattree,radix=36,levels=2", "fattree,radix=24,levels=3"}

const (
	// upTime bounds the wait for a manager to be up.
	upTime = 3 * time.Minute
	// askers is how many hosts ask at a time: Debian's ibsim has 10 places. window is how
	// many queries of each are under way.
	askers = 8
	window = 8
	// busyWait is how long a host that was answered BUSY waits: on a fast machine hosts ask
	// more than ibwarden answers to one of them.
	busyWait = 10 * time.Millisecond
	// ticks is the unit of CPU time in /proc, by second.
	ticks = 100
	// policy makes every host a full member of one partition.
	policy = "Default=0x7fff : ALL=full;\n"
)

// benchPaths has both answer on each fabric.
func benchPaths(topologies []string, ibwarden string, rounds int, d time.Duration) error {
	path, err := filepath.Abs(ibwarden)
	if err != nil {
		return err
	}
	for _, spec := range topologies {
		if err := comparePaths(spec, path, rounds, d); err != nil {
			return err
		}
	}
	return nil
}

// answered is what one round came to.
type answered struct {
	perSecond, perCPU float64
	median, late      time.Duration // of the waits; late is the 99th percentile
	busy              int           // queries answered BUSY, which are in none of the figures above
}

func comparePaths(spec, ibwarden string, rounds int, d time.Duration) error {
	tools, err := ibsimtest.FindTools()
	if err != nil {
		return err
	}
	fabric, err := topology.Generate(spec)
	if err != nil {
		return err
	}
	hosts := fabric.Count(ib.NodeCA)
	fmt.Printf("%s: %d hosts\n", spec, hosts)
	all := map[string][]answered{}
	names := []string{"OpenSM", "ibwarden"}
	for range rounds {
		for _, name := range names {
			m, err := round(tools, fabric, name, ibwarden, d)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			all[name] = append(all[name], m)
			fmt.Printf("  %-8s %8.0f a second, %8.0f a second of CPU, waits: median %v, 99th percentile %v, answered BUSY: %d\n",
				name, m.perSecond, m.perCPU, m.median.Round(time.Microsecond), m.late.Round(time.Microsecond), m.busy)
		}
	}
	middle := func(name string) float64 {
		var x []float64
		for _, m := range all[name] {
			x = append(x, m.perCPU)
		}
		slices.Sort(x)
		return x[len(x)/2]
	}
	fmt.Printf("  ibwarden answers %.1f times as many for each second of CPU time (medians %.0f and %.0f)\n",
		middle("ibwarden")/middle("OpenSM"), middle("ibwarden"), middle("OpenSM"))
	return nil
}

// round runs one manager on a fresh simulator and asks it.
func round(tools *ibsimtest.Tools, fabric *topology.Netlist, name, ibwarden string, d time.Duration) (m answered, err error) {
	dir, err := os.MkdirTemp("", "bench-paths-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	sim, err := ibsimtest.StartSim(tools, dir, fabric)
	if err != nil {
		return m, err
	}
	defer sim.Stop()
	conf := filepath.Join(dir, "partitions.conf")
	if err := os.WriteFile(conf, []byte(policy), 0o600); err != nil {
		return m, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), upTime+2*d)
	defer cancel()
	cmd := sim.Command(ctx, "", ibwarden, "run", "--fabric", "ibsim:"+sim.Name, "--policy", conf, "--sweep-interval", "10m", "--drift-period", "1h", "--socket", "none")
	if name == "OpenSM" {
		cmd = sim.OpenSM(ctx, "", conf, "-s", "0", "-d", "2")
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		return m, err
	}
	defer out.Close()
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		return m, err
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGINT)
		cmd.Wait()
	}()
	if err := isUp(ctx, sim, out.Name(), name); err != nil {
		return m, err
	}
	return ask(ctx, sim, fabric, cmd, d)
}

// isUp waits until a manager has brought the subnet up.
func isUp(ctx context.Context, sim *ibsimtest.Sim, out, name string) error {
	file, word := out, "verdict:"
	if name == "OpenSM" {
		file, word = sim.OpenSMLog(), "SUBNET UP"
	}
	for end := time.Now().Add(upTime); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), word) {
			time.Sleep(3 * time.Second) // OpenSM sweeps again for the traps of its own doing
			return ctx.Err()
		}
	}
	b, _ := os.ReadFile(file)
	return fmt.Errorf("not up after %v; its output ends with\n%s", upTime, b[max(0, len(b)-1000):])
}

// ask attaches to the last hosts and asks for paths between them and others.
func ask(ctx context.Context, sim *ibsimtest.Sim, fabric *topology.Netlist, cmd *exec.Cmd, d time.Duration) (m answered, err error) {
	var nodes []*topology.Node
	for _, n := range fabric.Nodes {
		if n.Type == ib.NodeCA {
			nodes = append(nodes, n)
		}
	}
	hosts := make([]*host, askers)
	links := make([]*ibsim.Link, askers)
	for i, n := range nodes[len(nodes)-askers:] {
		if links[i], err = ibsim.Dial(ibsim.Environment{SockName: sim.Name, Host: n.ID}); err != nil {
			return m, err
		}
		defer links[i].Close()
		hosts[i] = &host{random: rand.New(rand.NewPCG(1, uint64(i))), sent: map[uint32]time.Duration{}}
	}
	r, err := daemon.Read(ctx, links[0], sweep.Options{})
	if err != nil {
		return m, err
	}
	for i, n := range nodes[len(nodes)-askers:] {
		hosts[i].know(r.Fabric, n.Ports[1].GUID)
	}
	before, begin := cpuTime(cmd.Process.Pid), time.Now()
	var all errgroup.Group
	for i, h := range hosts {
		all.Go(func() error { return links[i].Drive(ctx, h, func() bool { return time.Since(begin) >= d }) })
	}
	if err := all.Wait(); err != nil {
		return m, err
	}
	took, cpu := time.Since(begin), cpuTime(cmd.Process.Pid)-before
	var waits []time.Duration
	for _, h := range hosts {
		m.busy += h.busy
		if waits = append(waits, h.waits...); h.refused > 0 {
			return m, fmt.Errorf("%d queries of one host answered, %d refused, with status %#x first", len(h.waits), h.refused, h.status)
		}
	}
	if len(waits) == 0 || cpu <= 0 {
		return m, fmt.Errorf("%d queries answered in %v of CPU time", len(waits), cpu)
	}
	slices.Sort(waits)
	n := len(waits)
	m.perSecond, m.perCPU = float64(n)/took.Seconds(), float64(n)/cpu.Seconds()
	m.median, m.late = waits[n/2], waits[n*99/100]
	return m, nil
}

// cpuTime is what a process has used so far.
func cpuTime(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may hold anything; times are fields 14 and 15.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / ticks
}

// host is an engine that asks for paths.
type host struct {
	random  *rand.Rand
	self    ib.GID
	gids    []ib.GID
	to      ib.LID
	serial  uint32
	sent    map[uint32]time.Duration
	waits   []time.Duration
	busy    int
	next    time.Duration // no query before; 0 if at any time
	refused int           // with another status than BUSY
	status  uint16        // of the first of those
}

// know tells a host who it is, where the manager is, and who there is to ask about.
func (h *host) know(f *observed.Fabric, self ib.PortGUID) {
	for _, p := range f.EndPorts() {
		if p.Node.Switch != nil || p.Info.PortState != smp.PortActive {
			continue
		}
		h.gids = append(h.gids, ib.MakeGID(ib.DefaultGIDPrefix, p.GUID))
		if p.GUID == self {
			h.self, h.to = ib.MakeGID(ib.DefaultGIDPrefix, p.GUID), p.Info.MasterSMLID
		}
	}
}

func (h *host) Next(time.Duration, *mad.SMP) (ib.LID, bool) { return 0, false }
func (h *host) Receive(time.Duration, *mad.SMP, ib.LID)     {}
func (h *host) Lost(time.Duration, *mad.SMP)                {}
func (h *host) Deadline() (time.Duration, bool)             { return h.next, h.next > 0 }
func (h *host) LostGeneral(time.Duration, *[mad.Size]byte)  {}

// Expire forgets what was lost, and ends the wait of a host that was answered BUSY.
func (h *host) Expire(now time.Duration) {
	if now >= h.next {
		h.next = 0
	}
	if len(h.sent) < window {
		return
	}
	for id, at := range h.sent {
		if now-at > time.Second {
			delete(h.sent, id)
		}
	}
}

// NextGeneral asks for the path to a host by chance.
func (h *host) NextGeneral(now time.Duration, m *[mad.Size]byte) (mad.Address, bool) {
	if len(h.sent) >= window || h.next > 0 {
		return mad.Address{}, false
	}
	h.serial++
	record := sa.PathRecord{
		SGID: h.self, DGID: h.gids[h.random.IntN(len(h.gids))], PathProperties: sa.PathProperties{NumbPath: 1, Reversible: true},
	}
	data, err := record.AppendBinary(nil)
	if err != nil {
		return mad.Address{}, false
	}
	q := sa.MAD{
		Header: mad.Header{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
			Method: mad.MethodGet, TransactionID: uint64(h.serial), AttributeID: sa.AttrPathRecord,
		},
		ComponentMask: sa.PathRecordSGID | sa.PathRecordDGID | sa.PathRecordNumbPath | sa.PathRecordReversible,
	}
	copy(q.Data[:], data)
	b, err := q.AppendBinary(m[:0])
	if err != nil || len(b) != mad.Size {
		return mad.Address{}, false
	}
	h.sent[h.serial] = now
	return mad.Address{LID: h.to, QP: 1}, true
}

// ReceiveGeneral takes an answer.
func (h *host) ReceiveGeneral(now time.Duration, m *[mad.Size]byte, _ mad.Address) {
	id := binary.BigEndian.Uint32(m[12:])
	at, ok := h.sent[id]
	if !ok {
		return
	}
	delete(h.sent, id)
	switch status := binary.BigEndian.Uint16(m[4:]); {
	case status == uint16(mad.StatusBusy):
		h.busy, h.next = h.busy+1, now+busyWait
	case status != 0:
		if h.refused++; h.refused == 1 {
			h.status = status
		}
	default:
		h.waits = append(h.waits, now-at)
	}
}
