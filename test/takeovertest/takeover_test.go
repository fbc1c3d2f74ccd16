package takeovertest

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

const (
	// rounds are how often the subnet goes to ibwarden and back, of an example in the long
	// run and of a topology in CI, and roundsSoak of a topology in the long run.
	rounds     = 2
	roundsSoak = 50
	// steady is how long hosts send while a manager has nothing to do.
	steady = 200 * time.Millisecond
)

// announced is what ibwarden changes at a takeover from OpenSM beside the P_Key tables in
// front of hosts, on the first time and on every other: docs/migrate.md lists it.
var announced = []string{
	"host: CapabilityMask", // of its own port, which now has a manager
	"host: MasterSMLID", "switch's own port: MasterSMLID",
	"host: MKey", "switch's own port: MKey", "host: MKeyProtectBits", "switch's own port: MKeyProtectBits",
	"switch port to a host: HOQLife", "switch port to a switch: HOQLife",
}

// left is what OpenSM leaves as ibwarden device set it.
var left = []string{"switch port to a host: FilterRawInbound", "switch port to a host: FilterRawOutbound"}

// trial is a fabric that goes from OpenSM to ibwarden and back.
type trial struct {
	example
	list     func(*testing.T) *topology.Netlist
	rounds   int
	rerouted bool // routes are others under ibwarden
}

// TestExamples takes over from OpenSM with each configuration of which it is known what
// OpenSM makes of it.
func TestExamples(t *testing.T) {
	need.Long(t, "takeovers with several configurations")
	for i, e := range examples {
		if !need.Soak() && !slices.Contains(examplesShare, i) {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			trial{example: e, list: five, rounds: int(need.Rounds(1, rounds)), rerouted: true}.run(t)
		})
	}
}

// examplesShare are those that CI tries: the default configuration, a file that is not taken
// and one with memberships of all kinds. TestManyTakeovers has the last.
var examplesShare = []int{0, 3, 10}

// TestManyTakeovers goes there and back many times.
func TestManyTakeovers(t *testing.T) {
	need.Long(t, "one takeover after the other")
	times := rounds
	if need.Soak() {
		times = roundsSoak
	}
	for _, routing := range []string{"", "minhop"} {
		for _, list := range []string{"five", "fattree,radix=4,levels=2"} {
			if !need.Soak() && (routing == "") != (list == "five") {
				continue
			}
			t.Run(strings.TrimSuffix(list+", "+routing, ", "), func(t *testing.T) {
				x := trial{example: examples[len(examples)-1], list: five, rounds: times, rerouted: true}
				if list != "five" {
					x.example, x.list = tree(t, list)
				}
				if routing != "" {
					x.flags = append(x.flags, "--routing", routing)
				}
				x.run(t)
			})
		}
	}
}

// TestFaultsAreSeen: the judge of these tests finds a packet that is lost, and one that
// arrives and must not, here where OpenSM has no switch port check P_Keys.
func TestFaultsAreSeen(t *testing.T) {
	x := trial{example: examples[len(examples)-1]}
	x.lines = "part_enforce off\n"
	r := newRig(t, five(t), ibsims)
	h := hosts(r.topology)
	x.openSM(r, h[0])
	r.begin(x.of(t, h, nil), x.of(t, h, nil))
	r.enter("OpenSM manages", false)
	crossed := func() (n uint64) {
		r.do(func(*fabric.Fabric) { n = r.traffic.counted.crossed[forged] })
		return n
	}
	r.eventually("forged packets arrive, and are counted", func() bool { return crossed() > 0 })
	r.do(func(f *fabric.Fabric) {
		if r.traffic.counted.lost[allowed] > 0 {
			t.Errorf("lost before a cable is pulled: %v", r.traffic.wrong)
		}
		r.must(f.Unlink(h[1].GUID, 1))
	})
	r.eventually("packets are lost, and are counted", func() (is bool) {
		r.do(func(*fabric.Fabric) { is = r.traffic.counted.lost[allowed] > 0 })
		return is
	})
}

// tree is a fat tree with two tenants, a partition that both use, and managers that are
// named.
func tree(t *testing.T, spec string) (example, func(*testing.T) *topology.Netlist) {
	t.Helper()
	l, err := topology.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	h := hosts(l)
	ours := len(h) - 1
	e := example{name: spec, tables: map[string]string{}}
	var red, blue, shared []string
	for i, n := range h {
		guid := n.Ports[1].GUID.String()
		switch {
		case i == 0 || i == ours:
			e.tables[n.ID] = "ffff"
		case i%2 == 0:
			red, shared = append(red, guid), append(shared, guid+"=limited")
			e.tables[n.ID] = "7fff 8010 0030"
		default:
			blue, shared = append(blue, guid), append(shared, guid+"=full")
			e.tables[n.ID] = "7fff 8020 8030"
		}
	}
	e.text = fmt.Sprintf("Default=0x7fff : ALL=limited, %v=full, %v=full;\nRed=0x10,defmember=full : %s;\nBlue=0x20,defmember=full : %s;\nShared=0x30 : %s;\n",
		h[0].Ports[1].GUID, h[ours].Ports[1].GUID, strings.Join(red, ", "), strings.Join(blue, ", "), strings.Join(shared, ", "))
	return e, func(*testing.T) *topology.Netlist { return l }
}

// run takes the fabric over and gives it back, again and again.
func (x trial) run(t *testing.T) {
	r := newRig(t, x.list(t), ibsims)
	h := hosts(r.topology)
	theirs, at := h[0], h[len(h)-1]
	openSM := x.openSM(r, theirs)
	keys := x.of(t, h, nil)
	before := r.read()
	for _, n := range h {
		r.wantTable(before, "host "+n.ID+" port 1", keys[n.ID])
	}
	if x.refused != "" {
		x.refuse(r, before, theirs, at)
		return
	}
	then := x.of(t, h, x.managed)
	r.begin(keys, then)
	r.enter("OpenSM manages", false)
	time.Sleep(steady)
	for i := range x.rounds {
		began := time.Now()
		before = r.read()
		r.enter("takeover", false)
		w := x.ward(r, theirs, at)
		w.manages()
		there := time.Since(began)
		x.compare(r, before, then, i == 0)
		r.enter("ibwarden manages", true)
		time.Sleep(steady)
		r.enter("return", false)
		began = time.Now()
		if i%2 == 0 {
			w.handOver()
		} else {
			openSM.Rank(15)
		}
		r.eventually("OpenSM manages again", func() bool { return r.isMaster(theirs) })
		r.quiet()
		back := time.Since(began)
		w.stop()
		openSM.Rank(0)
		r.quiet()
		r.enter("OpenSM manages again", false)
		time.Sleep(steady)
		x.compareBack(r, before, i == 0)
		t.Logf("%d: there in %v, back in %v", i, there.Round(time.Millisecond), back.Round(time.Millisecond))
		if r.judge(); t.Failed() {
			t.Fatalf("in round %d of %d", i, x.rounds)
		}
		if i+1 < x.rounds {
			r.do(func(*fabric.Fabric) { r.traffic.running = true })
		}
	}
	r.tell()
}

// openSM has an OpenSM manage with one file after the other.
func (x trial) openSM(r *rig, at *topology.Node) *ibsimtest.InsideOpenSM {
	r.Helper()
	lines := x.lines
	if first := x.file(r.T, 0); first != "" {
		lines += "partition_config_file " + r.file("partitions.conf", first) + "\n"
	}
	o := ibsimtest.StartOpenSM(r, r.dir, lines, func(words ...string) { r.start(at.ID, words...) })
	r.eventually("OpenSM manages", func() bool { return r.isMaster(at) })
	r.quiet()
	for i := 1; i < len(x.files); i++ {
		var sets uint64
		r.do(func(*fabric.Fabric) { sets = r.traffic.sets })
		r.file("partitions.conf", x.file(r.T, i))
		r.must(o.Signal(syscall.SIGHUP))
		r.eventually("OpenSM reads its file again", func() (is bool) {
			r.do(func(*fabric.Fabric) { is = r.traffic.sets > sets })
			return is
		})
		r.quiet()
	}
	return o
}

// ward starts the ibwarden that is to take over.
func (x trial) ward(r *rig, theirs, at *topology.Node) *warden {
	r.Helper()
	name, text := x.ours, ""
	if name != "" {
		text = testdata(r.T, name)
	} else {
		name, text = "ours.conf", x.file(r.T, max(0, len(x.files)-1))
	}
	flags := []string{"--policy", r.file(name, text), "--priority", "7", "--sm-key", "1", "--trusted-sm", theirs.Ports[1].GUID.String()}
	return r.ward(at, append(flags, x.flags...)...)
}

// refuse has an ibwarden refuse the file that OpenSM has. OpenSM stays master of a fabric
// in which nothing changes.
func (x trial) refuse(r *rig, before state, theirs, at *topology.Node) {
	r.Helper()
	w := x.ward(r, theirs, at)
	r.eventually("ibwarden ends", w.ended)
	if !strings.Contains(w.said(), x.refused) {
		r.Errorf("ibwarden says %q, want %q", w.said(), x.refused)
	}
	r.quiet()
	if d := before.differences(r.read()); len(d) > 0 || !r.isMaster(theirs) {
		r.Errorf("OpenSM is master: %v; changed: %q", r.isMaster(theirs), d)
	}
}

// compare holds the tables under ibwarden against those under OpenSM.
func (x trial) compare(r *rig, before state, keys map[string][]ib.PKey, first bool) {
	r.Helper()
	now := r.read()
	expected := slices.Concat(announced, x.more)
	if first {
		expected = slices.Concat(expected, left, x.once)
	}
	for _, n := range hosts(r.topology) {
		r.wantTable(now, "host "+n.ID+" port 1", keys[n.ID])
		far := n.Ports[1].Peer
		r.wantTable(now, fmt.Sprintf("switch port to a host %s port %d", far.ID, n.Ports[1].PeerPort), guard(keys[n.ID]))
	}
	optional := []string{"host: P_KeyTable", "switch port to a host: P_KeyTable"}
	if !first {
		optional = append(optional, "switch: "+multicastTop) // as the last return left it
	}
	if x.rerouted {
		optional = append(optional, "switch: route to LID")
	}
	r.wantSorts("takeover", before, now, expected, optional)
}

// compareBack holds the tables against those before the takeover.
func (x trial) compareBack(r *rig, before state, first bool) {
	r.Helper()
	var expected []string
	if first {
		expected = slices.Concat(left, x.stays)
	}
	now := r.read()
	for at, value := range now {
		if strings.HasSuffix(at, ": "+multicastTop) && value != noLimit && value != noGroup {
			r.Errorf("%s was %s, is %s", at, before[at], value)
		}
	}
	r.wantSorts("return", before, now, expected, []string{"switch: " + multicastTop})
}

// multicastTop is the highest multicast LID that a switch routes. Where there is no group
// OpenSM sets it to 0, which is no limit, in the sweep after a handover, and to 0xBFFF, which
// is none, in the next one, of which nobody knows when it comes. The tables are empty in both
// cases, and are compared.
const multicastTop, noLimit, noGroup = "MulticastFDBTop", "0", "49151"

// wantSorts wants those kinds of settings to be others that are expected, of which
// optional ones may be as they were.
func (r *rig) wantSorts(what string, before, now state, expected, optional []string) {
	r.Helper()
	got := before.sorts(now)
	for _, s := range slices.Sorted(maps.Keys(got)) {
		if !slices.Contains(expected, s) && !slices.Contains(optional, s) {
			r.Errorf("%s: %d of %q are others", what, got[s], s)
			for _, d := range before.differences(now) {
				if strings.Contains(d, strings.SplitN(s, ": ", 2)[1]) {
					r.Log(d)
				}
			}
		}
	}
	for _, s := range expected {
		if got[s] == 0 && !slices.Contains(optional, s) {
			r.Errorf("%s: all of %q are as they were, and docs/migrate.md says that they are not", what, s)
		}
	}
}

// guard is what the switch port in front of a host holds: each of its partitions in full, in
// the order of its table.
func guard(keys []ib.PKey) (out []ib.PKey) {
	for _, k := range keys {
		if full := k.Base().Full(); k.IsValid() && !slices.Contains(out, full) {
			out = append(out, full)
		}
	}
	return out
}

func (r *rig) wantTable(s state, at string, want []ib.PKey) {
	r.Helper()
	if got := s[at+": P_KeyTable"]; got != fmt.Sprint(want) {
		r.Errorf("%s has %s, want %v", at, got, want)
	}
}

// judge waits until every packet has ended, and looks at what became of them.
func (r *rig) judge() {
	r.Helper()
	r.do(func(*fabric.Fabric) { r.traffic.running = false })
	r.eventually("no packet is under way", func() (is bool) {
		r.do(func(f *fabric.Fabric) {
			r.traffic.settle()
			is = len(r.traffic.open) == 0
		})
		return is
	})
	r.do(func(*fabric.Fabric) {
		c := &r.traffic.counted
		if c.sent[allowed] != c.arrived[allowed] || len(r.traffic.wrong) > 0 {
			for what, n := range r.traffic.failures {
				r.Errorf("%d times %s", n, what)
			}
			for _, w := range r.traffic.wrong {
				r.Error(w)
			}
			r.Errorf("of %d packets that had to arrive %d did", c.sent[allowed], c.arrived[allowed])
		}
	})
}

// tell says what was sent.
func (r *rig) tell() {
	r.Helper()
	r.do(func(*fabric.Fabric) {
		t := r.traffic
		for k := range kinds {
			if t.counted.sent[k] > 0 {
				r.Logf("%d packets %v: %d arrived, %d lost, %d delivered that must not be", t.counted.sent[k], k, t.counted.arrived[k], t.counted.lost[k], t.counted.crossed[k])
			}
		}
		r.Logf("%d rounds of packets, in which %d were not sent for want of room; %d reliable connections", t.rounds, t.held, len(t.links))
		for _, k := range slices.Sorted(maps.Keys(t.writes)) {
			r.Logf("Set in %s: %d", k, t.writes[k])
		}
		if t.counted.sent[allowed] > 0 && t.counted.arrived[allowed] == 0 || t.counted.sent[limited] > 0 && t.counted.arrived[limited] == 0 {
			r.Error("nothing arrived")
		}
	})
}

// manages waits for the verdict of a takeover.
func (w *warden) manages() {
	w.r.Helper()
	w.r.eventually("ibwarden manages", func() bool {
		if w.ended() {
			w.r.Fatalf("ibwarden has ended:\n%s", w.said())
		}
		return strings.Contains(w.said(), "verdict: isolated")
	})
	w.r.quiet()
}

// handOver is what an operator does to give the subnet back.
func (w *warden) handOver() {
	w.r.Helper()
	path, err := need.Ibwarden()
	w.r.must(err)
	if out, err := exec.Command(path, "handover", "--server", "unix:"+w.socket).CombinedOutput(); err != nil {
		w.r.Fatalf("handover: %v\n%s", err, out)
	}
}
