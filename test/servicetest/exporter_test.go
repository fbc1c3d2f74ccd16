package servicetest

import (
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// site is a manager on the demonstration fabric, in this process.
type site struct {
	t         *testing.T
	topology  *topology.Netlist
	fabric    *fabric.Fabric
	runner    *daemon.Runner
	observer  *metrics.Observer
	telemetry *telemetry.Telemetry
	events    []event.Event
}

func (s *site) Event(e event.Event) {
	s.events = append(s.events, e)
	s.observer.Event(time.Now(), telemetry.Describe(e).Kind, e)
}

func (*site) Progress(string, uint64) {}
func (s *site) node(name string) *topology.Node {
	for _, n := range s.topology.Nodes {
		if n.ID == name || strings.HasPrefix(n.Description, name) {
			return n
		}
	}
	s.t.Fatalf("no node %s", name)
	return nil
}

// newSite returns a manager with a policy; configure may change the topology and the
// fabric before it starts.
func newSite(t *testing.T, p *policy.Policy, configure func(*topology.Netlist)) *site {
	t.Helper()
	s := &site{t: t, topology: topology.Demo(), observer: metrics.NewObserver(), telemetry: telemetry.New(time.Now)}
	if configure != nil {
		configure(s.topology)
	}
	var err error
	if s.fabric, err = fabric.New(s.topology, fabric.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	node, num, err := s.topology.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := inproc.New(s.fabric, node.GUID, num, false)
	if err != nil {
		t.Fatal(err)
	}
	s.runner = daemon.NewRunner(l, engine.Config{Routing: routing.UpDown, Seed: daemon.Secret()}, server.Config{}, p, s)
	limits := perfmgr.DefaultLimits()
	limits.Hosts, limits.Details = true, true
	s.runner.ReadCounters(limits)
	s.settle()
	return s
}

// settle lets the manager come to rest and read all counters once.
func (s *site) settle() {
	s.t.Helper()
	rounds := s.runner.Counters().Counts().Rounds + 2
	if err := s.runner.Run(s.t.Context(), func() bool {
		return s.runner.Engine().Settled() && s.runner.Counters().Counts().Rounds >= rounds
	}); err != nil {
		s.t.Fatal(err)
	}
}

// scrape returns the metrics as text.
func (s *site) scrape() string {
	s.t.Helper()
	done := make(chan string)
	go func() {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/metrics", nil)
		s.telemetry.Handler().ServeHTTP(w, r)
		if w.Code != 200 {
			s.t.Errorf("status %d: %s", w.Code, w.Body)
		}
		done <- w.Body.String()
	}()
	for {
		select {
		case text := <-done:
			return text
		case <-time.After(time.Millisecond):
			s.telemetry.Turn(telemetry.Status{Manager: "master", Verdict: "isolated"}, false, func() *metrics.State {
				state := s.runner.State(time.Now(), s.observer)
				state.Hosts = true
				return state
			})
		}
	}
}

var (
	sampleLine = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

// samples reads the text format: NAME, then the labels in the order of their names.
func samples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	out := make(map[string]float64)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := sampleLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Fatalf("line %q", line)
		}
		var labels []string
		for _, x := range labelPair.FindAllStringSubmatch(m[2], -1) {
			labels = append(labels, x[1]+"="+x[2])
		}
		slices.Sort(labels)
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		key := m[1] + "\t" + strings.Join(labels, ",")
		if _, twice := out[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		out[key] = v
	}
	return out
}

// narrow and wide are the counters that the fabric of testdata/exporter.tsv was given.
var (
	narrow = []string{
		"SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortRcvRemotePhysicalErrors",
		"PortRcvSwitchRelayErrors", "PortXmitDiscards", "PortXmitConstraintErrors", "PortRcvConstraintErrors",
		"LocalLinkIntegrityErrors", "ExcessiveBufferOverrunErrors", "VL15Dropped", "PortXmitWait",
	}
	wide    = []string{"PortUnicastXmitPkts", "PortUnicastRcvPkts", "PortMulticastXmitPkts", "PortMulticastRcvPkts"}
	details = []string{
		"PortLocalPhysicalErrors", "PortMalformedPacketErrors", "PortBufferOverrunErrors", "PortDLIDMappingErrors",
		"PortVLMappingErrors", "PortLoopingErrors",
	}
)

// setCounters gives every port different counters.
func (s *site) setCounters() {
	type place struct {
		node string
		port ib.PortNum
	}
	var places []place
	for _, name := range []string{"leaf-1", "leaf-2", "leaf-3", "leaf-4", "spine-1", "spine-2"} {
		for p := ib.PortNum(1); p <= 8; p++ {
			places = append(places, place{name, p})
		}
	}
	for _, name := range []string{"storage-1", "storage-2", "red-1", "blue-3"} {
		places = append(places, place{name, 1})
	}
	for i, at := range places {
		p := s.fabric.Counters(s.node(at.node).GUID).Port(at.port)
		set := func(attribute, name string, n uint64) {
			if err := p.Set(attribute, name, n); err != nil {
				s.t.Fatal(err)
			}
		}
		for j, name := range narrow {
			most := 250
			if strings.Contains(name, "Integrity") || strings.Contains(name, "Overrun") {
				most = 15
			}
			set("PortCounters", name, uint64((i*7+j*3)%most))
		}
		for j, name := range wide {
			set("PortCountersExtended", name, uint64(1<<33+i*100+j))
		}
		for j, name := range details {
			set("PortRcvErrorDetails", name, uint64(i*3+j))
		}
	}
}

// TestSameAsTheExporter: infiniband_exporter 0.10.0, unmodified, ran in `ibwarden sim
// exec` on this fabric, under the policy none and with these counters. Its samples are
// in testdata/exporter.tsv (name, labels, value), but for those that count the traffic
// that went on. Ours are the same.
func TestSameAsTheExporter(t *testing.T) {
	data, err := os.ReadFile("testdata/exporter.tsv")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, &policy.Policy{Default: policy.Limited}, nil)
	s.setCounters()
	s.settle()
	got := samples(t, s.scrape())
	n, names := 0, make(map[string]bool)
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			t.Fatalf("line %q", line)
		}
		want, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		n, names[f[0]] = n+1, true
		if v, some := got[f[0]+"\t"+f[1]]; !some || v != want {
			t.Errorf("%s{%s}: %v, there: %v; the exporter has %v", f[0], f[1], v, some, want)
		}
	}
	if n < 500 || len(names) < 50 {
		t.Errorf("%d samples of %d metrics were compared", n, len(names))
	}
	for name := range names {
		if !known(name) {
			t.Errorf("%s is not listed", name)
		}
	}
}

func known(name string) bool {
	for _, m := range metrics.All() {
		if m.Name == name {
			return true
		}
	}
	return false
}

// TestHostileDescriptions: what devices call themselves, and GUIDs that two of them
// claim, break no scrape and hide nobody else.
func TestHostileDescriptions(t *testing.T) {
	names := []string{"\"}\n# TYPE x", "a\\b\"c\nibwarden_verdict{verdict=\"isolated\"} 1", strings.Repeat("\u00fc", 32), "", "\x1b[2J", "red-1 HCA-1"}
	i := 0
	s := newSite(t, &policy.Policy{Default: policy.Limited}, func(top *topology.Netlist) {
		for _, n := range top.Nodes {
			if strings.HasPrefix(n.Description, "blue") || strings.HasPrefix(n.ID, "blue") {
				n.Description = names[i%len(names)]
				i++
			}
		}
	})
	text := s.scrape()
	if i != 6 {
		t.Fatalf("%d hosts were renamed", i)
	}
	got := samples(t, text)
	hcas := 0
	for key := range got {
		if strings.HasPrefix(key, "infiniband_hca_info\t") {
			hcas++
			for _, label := range labelPair.FindAllStringSubmatch(key, -1) {
				if len(label[2]) > metrics.LabelMax {
					t.Errorf("a label of %d bytes", len(label[2]))
				}
			}
		}
	}
	if hcas != 16 {
		t.Errorf("%d of 16 hosts have samples", hcas)
	}
	if strings.Contains(text, "\x1b") {
		t.Error("control characters came through")
	}
	if n := strings.Count(text, "\nibwarden_verdict{"); n != 5 {
		t.Errorf("%d samples of the verdict: a device made one", n)
	}
	promtool(t, text)
}
