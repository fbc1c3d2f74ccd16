package servicetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/test/need"
)

// program is what a program of ibwarden exports, from its startPrometheus: before its engine has turned there
// is no state.
type program struct {
	state       *metrics.State // nil until it turns
	observer    *metrics.Observer
	store       *metrics.Store
	api         *metrics.API
	turned      time.Duration // since the engine loop turned
	up          float64
	leads, lost bool
	revision    uint64
	port        map[string]float64 // counters of a port of a switch, which was found with them at 0
}

const portLabels = `{guid="0x0000000000200000",port="3"}`

func newProgram() *program {
	p := &program{observer: metrics.NewObserver(), api: metrics.NewAPI("list-ports", "ufm"), up: 1, leads: true, port: map[string]float64{
		"infiniband_switch_port_receive_constraint_errors_total": 0, "infiniband_switch_port_symbol_error_total": 0, "infiniband_switch_port_link_downed_total": 0,
	}}
	p.store = &metrics.Store{Leads: func() bool { return p.leads }, Up: func() bool { return !p.lost }, Missing: func() int { return 0 }}
	return p
}

// turn has the engine turn: it is master of a fabric that is in order.
func (p *program) turn() {
	p.state = &metrics.State{Managers: []metrics.SubnetManager{{Port: "0x1", State: "master"}}, Last: &metrics.Last{Verdict: isolation.Isolated}}
	p.state.Manager.State, p.state.Charge.Masters = smp.SMMaster, 1
}

// proved has the manager prove a policy after a while.
func (p *program) proved(after time.Duration) {
	p.observer.Event(time.Unix(0, 0), "policy-given", event.PolicyGiven{})
	p.observer.Event(time.Unix(0, 0).Add(after), "verdict", event.Completed{Result: &event.Result{Proof: &isolation.Proof{Verdict: isolation.Isolated}}})
}

// scrape is what Prometheus gets, by series.
func (p *program) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	now := time.Unix(1e9, 0)
	if p.state != nil {
		last := p.state.Last
		p.observer.Copy(p.state)
		p.state.Last = last
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&metrics.Collector{
		Latest: func() *metrics.State { return p.state }, Turned: func() time.Time { return now.Add(-p.turned) }, Now: func() time.Time { return now },
	}, p.store, p.api)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := metrics.WriteFabric(&text, p.state); err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{`up{job="ibwarden"}`: p.up}
	for name, v := range p.port {
		out[name+portLabels] = v
	}
	for l := range strings.Lines(text.String()) {
		if strings.HasPrefix(l, "#") {
			continue
		}
		i := strings.LastIndexByte(l, ' ')
		var v float64
		if _, err := fmt.Sscan(l[i+1:], &v); err != nil {
			t.Fatal(l, err)
		}
		out[l[:i]] = v
	}
	return out
}

// incidents are what each alert is about, as it happens once in the life of a program. Those that
// go by rates happen again and again.
var incidents = map[string]struct {
	happen func(p *program)
	again  bool
}{
	"IbwardenDown":                     {func(p *program) { p.up = 0 }, false},
	"IbwardenHung":                     {func(p *program) { p.turned = 2 * time.Minute }, false},
	"IbwardenIsolationViolated":        {func(p *program) { p.state.Last.Verdict = isolation.Violated }, false},
	"IbwardenExposed":                  {func(p *program) { p.state.Last.Counts.Exposed = 1 }, false},
	"IbwardenVerdictUnknown":           {func(p *program) { p.state.Last.Verdict = isolation.Unknown }, false},
	"IbwardenNoVerdict":                {func(p *program) { p.state.Last = nil }, false},
	"IbwardenNoMaster":                 {func(p *program) { p.state.Manager.State = smp.SMStandby }, false},
	"IbwardenFabricWithoutMaster":      {func(p *program) { p.state.Charge.Masters = 0 }, false},
	"IbwardenFabricWithSeveralMasters": {func(p *program) { p.state.Charge.Masters = 2 }, false},
	"IbwardenOtherPolicy":              {func(p *program) { p.state.Charge.OtherPolicies = 1 }, false},
	"IbwardenOtherPolicyGuarded":       {func(p *program) { p.state.Manager.Guards = true }, false},
	"IbwardenWritesHalted":             {func(p *program) { p.state.Manager.Halted = true }, false},
	"IbwardenMasterChanged":            {func(p *program) { p.state.Charge.Changes++ }, false},
	"IbwardenMasterFlapping":           {func(p *program) { p.state.Charge.Flapping = true }, false},
	"IbwardenRogueManager":             {func(p *program) { p.observer.Event(time.Time{}, "rogue-manager", event.RogueManager{}) }, false},
	"IbwardenDrift": {func(p *program) {
		p.observer.Event(time.Time{}, "foreign-change", event.Drifted{Op: plan.Op{Attribute: smp.AttrPKeyTable}})
	}, false},
	"IbwardenKeyViolations": {func(p *program) {
		p.observer.Event(time.Time{}, "trap-257", event.Trapped{Number: smp.TrapBadPKey})
	}, false},
	"IbwardenPolicyRefused": {func(p *program) {
		p.observer.Event(time.Time{}, "refused", event.Refused{Err: errors.New("it does not fit")})
	}, false},
	"IbwardenNotCompleted":     {func(p *program) { p.state.Last.Failures = 1 }, false},
	"IbwardenFencedPorts":      {func(p *program) { p.state.Last.Fences = 1 }, false},
	"IbwardenStoreLost":        {func(p *program) { p.lost = true }, false},
	"IbwardenStoreFailing":     {func(p *program) { p.store.Committed(time.Millisecond, "full") }, false},
	"IbwardenStoreSlow":        {func(p *program) { p.store.Committed(time.Second, "") }, true},
	"IbwardenNoStoreWriter":    {func(p *program) { p.leads = false }, false},
	"IbwardenChangesNotProved": {func(p *program) { p.revision++; p.store.SetRevision(p.revision) }, true},
	"IbwardenChangesSlow":      {func(p *program) { p.proved(50 * time.Second) }, true},
	"IbwardenApiErrors":        {func(p *program) { p.api.Request("list-ports", 500, time.Millisecond) }, true},
	"IbwardenApiConnections": {func(p *program) {
		p.api.SetConnections(func() metrics.Connections { return metrics.Connections{RefusedPeer: 1} })
	}, false},
	"IbwardenWebhookFailing":     {func(p *program) { p.state.Alarms = map[string]uint64{"failed": 1} }, false},
	"InfinibandConstraintErrors": {func(p *program) { p.port["infiniband_switch_port_receive_constraint_errors_total"]++ }, false},
	"InfinibandLinkErrors":       {func(p *program) { p.port["infiniband_switch_port_symbol_error_total"] += 1000 }, false},
	"InfinibandLinkFlaps":        {func(p *program) { p.port["infiniband_switch_port_link_downed_total"] += 5 }, false},
	"InfinibandCountersUnread": {func(p *program) {
		p.state.Devices = []metrics.Device{{Identity: &metrics.Identity{GUID: "0x0000000000200000", Kind: "SW"}, Ports: []metrics.Port{{Num: "3", Read: true, Fault: perfmgr.NoAnswer}}}}
	}, false},
}

// How long a program has run when something happens, and until the last look, in minutes.
const (
	minutesBefore = 2
	minutesAfter  = 60
)

// ruleTest is a test of promtool.
func ruleTest(name string, before, first, second map[string]float64, again bool, expr string, want int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "- name: %s\n  interval: 1m\n  input_series:\n", name)
	series := maps.Clone(first)
	maps.Copy(series, before)
	for _, s := range slices.Sorted(maps.Keys(series)) {
		at, there := before[s]
		values := fmt.Sprintf("_x%d", minutesBefore)
		if there {
			values = fmt.Sprintf("%g+0x%d", at, minutesBefore-1)
		}
		if v, there := first[s]; there {
			step := 0.0
			if again {
				step = second[s] - v
			}
			values += fmt.Sprintf(" %g+%gx%d", v, step, minutesAfter)
		} else {
			values += fmt.Sprintf(" _x%d", minutesAfter)
		}
		labelled := strings.Replace(s, "{", `{instance="a",`, 1)
		if labelled == s {
			labelled = s + `{instance="a"}`
		}
		fmt.Fprintf(&out, "  - series: '%s'\n    values: '%s'\n", labelled, values)
	}
	fmt.Fprintf(&out, "  promql_expr_test:\n  - expr: '%s'\n    eval_time: %dm\n    exp_samples: [{labels: \"{}\", value: %d}]\n", expr, minutesBefore+minutesAfter, want)
	return out.String()
}

// TestAlertsFromNothing: whatever an alert is about raises it when it happens for the first time in
// the life of a program, whose first scrapes came before its engine turned; and a program that
// starts and is in order raises none. The samples are those of the collectors.
func TestAlertsFromNothing(t *testing.T) {
	need.Long(t, "each alert from nothing, by Prometheus; a share: TestAlerts")
	var file strings.Builder
	rules, err := filepath.Abs(filepath.Join(monitoring, "ibwarden.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&file, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n", rules)
	const fired = `count(max_over_time(ALERTS{%salertstate="firing"}[1h])) or vector(0)`
	seen := map[string]bool{}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			x, there := incidents[r.Alert]
			if seen[r.Alert] = true; r.Alert == "IbwardenTwoMasters" {
				continue // of two programs
			}
			if !there {
				t.Errorf("%s has no incident that raises it from nothing", r.Alert)
				continue
			}
			p := newProgram()
			before := p.scrape(t)
			p.turn()
			x.happen(p)
			first := p.scrape(t)
			x.happen(p)
			second := p.scrape(t)
			file.WriteString(ruleTest(r.Alert+" from nothing", before, first, second, x.again, fmt.Sprintf(fired, `alertname="`+r.Alert+`",`), 1))
		}
	}
	for name := range incidents {
		if !seen[name] {
			t.Errorf("%s is no alert", name)
		}
	}
	p := newProgram()
	before := p.scrape(t)
	p.turn()
	first := p.scrape(t)
	file.WriteString(ruleTest("nothing from nothing", before, first, first, false, fmt.Sprintf(fired, ""), 0))
	path := filepath.Join(t.TempDir(), "nothing.test.yml")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, "test", "rules", path)
}
