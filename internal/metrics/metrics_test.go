package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// page is made of All, between two marks.
const (
	begin = "<!-- metrics -->\n"
	end   = "<!-- end of metrics -->\n"
)

const (
	ofSwitches, ofCAs = "infiniband_switch_", "infiniband_hca_"
	atSwitch, atCA    = ", at a port of a switch.", ", at a port of a CA."
)

// labelsOf are the names of a metric's labels, as the page has them.
func labelsOf(m Metric) string {
	if len(m.Labels) == 0 {
		return ""
	}
	return "`" + strings.Join(m.Labels, "`, `") + "`"
}

// twinOf is the metric of the other kind of device that counts the same: both have one row. Empty if
// there is none.
func twinOf(m Metric) string {
	name, help := strings.Replace(m.Name, ofSwitches, ofCAs, 1), strings.Replace(m.Help, atSwitch, atCA, 1)
	if strings.HasPrefix(m.Name, ofCAs) {
		name, help = strings.Replace(m.Name, ofCAs, ofSwitches, 1), strings.Replace(m.Help, atCA, atSwitch, 1)
	}
	for _, other := range All() {
		if other.Name == name && name != m.Name && other.Help == help && help != m.Help && other.Type == m.Type && other.Unit == m.Unit && slices.Equal(other.Labels, m.Labels) {
			return name
		}
	}
	return ""
}

// TestDocs: docs/metrics.md lists every metric as the code has it.
// IBWARDEN_UPDATE=1 writes it.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "metrics.md")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(old), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place between %q and %q", path, begin, end)
	}
	var table, counters strings.Builder
	table.WriteString("\n| metric | type | labels | meaning |\n|---|---|---|---|\n")
	counters.WriteString("\nCounters of a port, as `" + ofSwitches + "port_NAME_total` and `" + ofCAs + "port_NAME_total`,\nwith the labels `guid` and `port`:\n\n| NAME | meaning |\n|---|---|\n")
	for _, m := range All() {
		if twinOf(m) == "" {
			fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, labelsOf(m), m.Help)
			continue
		}
		if labelsOf(m) != "`guid`, `port`" {
			t.Errorf("%s has other labels than the counters of ports: %s", m.Name, labelsOf(m))
		}
		if name, ok := strings.CutPrefix(strings.TrimSuffix(m.Name, "_total"), ofSwitches+"port_"); ok {
			fmt.Fprintf(&counters, "| `%s` | %s. |\n", name, strings.TrimSuffix(m.Help, atSwitch))
		} else if !strings.HasPrefix(m.Name, ofCAs+"port_") {
			t.Errorf("%s is no counter of a port", m.Name)
		}
	}
	table.WriteString(counters.String() + "\n")
	if want := before + begin + table.String() + end + after; want != string(old) {
		if os.Getenv("IBWARDEN_UPDATE") == "1" {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("%s is out of date: IBWARDEN_UPDATE=1 go test ./internal/metrics -run TestDocs", path)
	}
}

// TestTable: every metric has a meaning and a name of its own, and counters end in _total.
func TestTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range All() {
		if seen[m.Name] || m.Help == "" || !strings.HasSuffix(m.Help, ".") || strings.Contains(m.Help, "|") {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
		if (m.Type == "counter") != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s is a %s", m.Name, m.Type)
		}
	}
	if len(seen) < 100 {
		t.Errorf("%d metrics", len(seen))
	}
}

func collector(s *State) *Collector {
	now := time.Unix(1000, 0)
	return &Collector{Latest: func() *State { return s }, Turned: func() time.Time { return now.Add(-time.Second) }, Now: func() time.Time { return now }}
}

// TestUnknownIsNoSample: before there is anything to tell nothing is told, but that nothing was
// counted yet: a counter that comes into being at 1 has not increased for Prometheus.
func TestUnknownIsNoSample(t *testing.T) {
	c := collector(nil)
	c.Events = []string{"verdict", "foreign-change"}
	counted := 0
	for l := range strings.Lines(samples(t, c)) {
		name, value, _ := strings.Cut(strings.TrimSpace(l), " ")
		if i := strings.LastIndexByte(l, ' '); i > 0 {
			value = strings.TrimSpace(l[i:])
		}
		name, _, _ = strings.Cut(name, "{")
		switch {
		case name == "ibwarden_engine_turn_age_seconds":
		case value != "0" || !strings.HasSuffix(name, "_total") && !strings.HasPrefix(name, "ibwarden_change_to_proof_seconds_"):
			t.Errorf("without a state it says %s", l)
		default:
			counted++
		}
	}
	for _, name := range []string{"ibwarden_drift_total", "ibwarden_events_total", "ibwarden_master_changes_total", "ibwarden_webhook_alarms_total"} {
		if testutil.CollectAndCount(c, name) == 0 {
			t.Errorf("no sample of %s before the first is counted", name)
		}
	}
	if counted < 100 {
		t.Errorf("%d counters", counted)
	}
	s := &State{Made: time.Unix(1000, 0), Devices: []Device{{Identity: &Identity{GUID: "0x1", Kind: "SW"}, Ports: []Port{{Num: "1", Read: true}}}}}
	written := readText(t, s)
	for _, name := range []string{"ibwarden_verdict", "ibwarden_port_state", "infiniband_switch_port_symbol_error_total", "infiniband_switch_uplink_info", "ibwarden_perf_ports"} {
		if n := testutil.CollectAndCount(collector(s), name) + len(written[name]); n != 0 {
			t.Errorf("%d samples of %s, of which nothing is known", n, name)
		}
	}
	if len(written["ibwarden_port_unread"]) != 1 {
		t.Error("a port that was not read is not told")
	}
}

func TestLabel(t *testing.T) {
	for in, want := range map[string]string{
		"leaf-1":                       "leaf-1",
		"a\xffb":                       "a?b",
		" x\x00y\x1bz\n":               "x y z",
		strings.Repeat("ü", 200):       strings.Repeat("ü", LabelMax/2),
		"a" + strings.Repeat("ü", 200): "a" + strings.Repeat("ü", (LabelMax-1)/2),
		"\u202e evil":                  "evil",
	} {
		if got := label(in); got != want || !utf8.ValidString(got) || len(got) > LabelMax {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// TestSharedGUIDs: ports that claim one GUID have no samples, be the other a switch,
// and the scrape goes on.
func TestSharedGUIDs(t *testing.T) {
	f := observed.NewFabric()
	sw := f.AddNode(smp.NodeInfo{NodeType: ib.NodeSwitch, NodeGUID: 0x20, PortGUID: 0x20, NumPorts: 2})
	sw.Ports[0].Reached = true
	for i, guid := range []ib.PortGUID{0x11, 0x12, 0x12, 0x20} {
		n := f.AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NodeGUID: ib.NodeGUID(0x30 + i), NumPorts: 1})
		n.Ports[1].GUID, n.Ports[1].Reached, n.Ports[1].InfoRead = guid, true, true
		n.Ports[1].Info.PortState = smp.PortActive
	}
	s := &State{Made: time.Unix(1000, 0)}
	CopyFabric(s, f, nil)
	if len(s.Devices) != 1 || s.Devices[0].GUID != "0x0000000000000011" || s.Contested != 3+3 {
		t.Errorf("%d devices, %d contested ports: %+v", len(s.Devices), s.Contested, s.Devices)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(collector(s))
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
	if states := readText(t, s)["ibwarden_port_state"]; len(states) != 1 || states[`guid="0x0000000000000011" port="1"`] != float64(smp.PortActive) {
		t.Errorf("states of ports: %v", states)
	}
}

// TestManyPairs: the number of samples is bounded, whatever the policy.
func TestManyPairs(t *testing.T) {
	r := &event.Result{Proof: &isolation.Proof{Verdict: isolation.Isolated}}
	for i := range isolation.MaxPairs {
		r.Proof.Pairs = append(r.Proof.Pairs, isolation.PairVerdict{A: fmt.Sprint("a", i), B: "b", Verdict: isolation.Violated})
	}
	for i := range 3 * partitionsMax {
		r.Partitions = append(r.Partitions, observed.Partition{Name: fmt.Sprint("p", i), Base: ib.PKeyBase(i + 1)})
	}
	// Names that are cut to the same label are one sample.
	long := strings.Repeat("x", 2*LabelMax)
	r.Proof.Pairs[0].A, r.Proof.Pairs[1].A = long+"1", long+"2"
	o := NewObserver()
	o.Event(time.Unix(900, 0), "verdict", event.Completed{Result: r})
	s := &State{Made: time.Unix(1000, 0)}
	o.Copy(s)
	if n := testutil.CollectAndCount(collector(s), "ibwarden_partition_pair_info"); n != isolation.MaxPairs-1 {
		t.Errorf("%d pairs", n)
	}
	if n := testutil.CollectAndCount(collector(s), "ibwarden_partition_members"); n != 2*partitionsMax {
		t.Errorf("%d numbers of members", n)
	}
}

// TestChangeToProof: the time runs from the first change of its cause to the pass that
// proved it, and no other.
func TestChangeToProof(t *testing.T) {
	o := NewObserver()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	done := func(ms int, outdated bool) {
		o.Event(at(ms), "verdict", event.Completed{Result: &event.Result{Outdated: outdated, Proof: &isolation.Proof{}}})
	}
	given := func(ms int) { o.Event(at(ms), "policy-given", event.PolicyGiven{}) }
	done(0, false) // nobody waited for it
	given(1000)
	given(1003)
	done(1004, true) // a pass for the policy before
	done(1006, false)
	given(2000)
	o.Event(at(2001), "refused", event.Refused{Err: fmt.Errorf("it does not fit")})
	done(2500, false)
	o.Event(at(3000), "foreign-change", event.Drifted{Op: plan.Op{Attribute: smp.AttrPKeyTable}})
	done(3200, true) // a newer policy has nothing to do with what was put right
	given(4000)
	o.Event(at(4001), "standby", event.Deferred{})
	done(9000, false)
	policy, drift := o.counted.Times[causePolicy], o.counted.Times[causeDrift]
	if policy.Count != 1 || policy.Sum != 0.006 || policy.Buckets[3] != 1 {
		t.Errorf("policy: %+v", policy)
	}
	if drift.Count != 1 || drift.Sum != 0.2 {
		t.Errorf("drift: %+v", drift)
	}
	if got := drift.cumulative(); got[0.1] != 0 || got[0.2] != 1 || got[60] != 1 {
		t.Errorf("cumulative: %v", got)
	}
	if c := o.counted; c.Completed != 6 || c.Refused != 1 || c.Deferred != 1 || c.Drift["PKeyTable"] != 1 || c.Events["verdict"] != 6 {
		t.Errorf("%+v", c)
	}
}
