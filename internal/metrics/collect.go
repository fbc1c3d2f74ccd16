package metrics

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// Collector makes samples of the last State, but for those of devices and ports, which
// WriteFabric writes.
type Collector struct {
	// Latest returns the last state; nil before there is one. Turned returns when the
	// engine loop last turned.
	Latest func() *State
	Turned func() time.Time
	Now    func() time.Time
	// Events are the ids of events, which are counted from the start.
	Events []string
}

var _ prometheus.Collector = (*Collector)(nil)

// Describe tells of every metric of which Collect makes samples.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range all {
		if !m.others {
			ch <- m.desc
		}
	}
}

// Collect makes the samples.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	now, out := c.Now(), sink{ch}
	out.put(loopAge, now.Sub(c.Turned()).Seconds())
	s := c.Latest()
	if s == nil { // a counter that is there before the first is counted shows an increase then
		out.counters(&State{}, c.Events)
		return
	}
	out.put(stateAge, now.Sub(s.Made).Seconds())
	out.put(buildInfo, 1, s.Version, s.GoVersion)
	out.manager(s)
	out.counters(s, c.Events)
	if s.Last != nil {
		out.put(verdictAge, now.Sub(s.Last.At).Seconds())
		out.last(s.Last)
	}
	out.fabric(s)
}

// sink takes samples.
type sink struct{ ch chan<- prometheus.Metric }

func (o sink) put(m *Metric, v float64, labels ...string) {
	o.ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, labels...)
}

func (o sink) times(m *Metric, h *Times, labels ...string) {
	o.ch <- prometheus.MustNewConstHistogram(m.desc, h.Count, h.Sum, h.cumulative(), labels...)
}

// list has the samples of a list, and 0 for those that are known and not in it.
func (o sink) list(m *Metric, list []Labelled, known [][]string) {
	seen := map[string]bool{}
	for _, x := range list {
		seen[strings.Join(x.Labels, " ")] = true
		o.put(m, float64(x.N), x.Labels...)
	}
	for _, labels := range known {
		if !seen[strings.Join(labels, " ")] {
			o.put(m, 0, labels...)
		}
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (o sink) manager(s *State) {
	for _, state := range []smp.SMState{smp.SMNotActive, smp.SMDiscovering, smp.SMStandby, smp.SMMaster} {
		o.put(managerState, one(s.Manager.State == state), StateName(state))
	}
	o.put(otherManagers, float64(s.Manager.Others), "true")
	o.put(otherManagers, float64(s.Manager.Rogues), "false")
	o.inCharge(s)
	if !s.Reading {
		return
	}
	for result, n := range map[string]uint64{
		"answered": s.Polls.Answered, "no-answer": s.Polls.Unanswered, "refused": s.Polls.Refused, "malformed": s.Polls.Malformed, "stray": s.Polls.Stray,
	} {
		o.put(polls, float64(n), result)
	}
	o.put(pollRound, s.Polls.LastRound.Seconds())
}

// counters makes the samples of the manager's counters. All whose labels are known are there, also
// at 0: an increase from nothing is none for Prometheus.
func (o sink) counters(s *State, ids []string) {
	o.put(masterChanges, float64(s.Charge.Changes))
	o.put(sweeps, float64(s.Manager.Sweeps.Full), "full")
	o.put(sweeps, float64(s.Manager.Sweeps.Links), "links")
	o.put(sweeps, float64(s.Manager.Sweeps.Light), "light")
	o.list(smps, s.SMPs, knownSMPs)
	o.list(requests, s.Requests, knownRequests)
	o.put(retries, float64(s.Window.Retried+s.Window.Extra))
	o.put(lost, float64(s.Window.Failed))
	o.put(strays, float64(s.Window.Unmatched))
	for _, p := range s.Phases {
		o.put(phaseTime, p.Seconds, p.Name)
		for result, n := range map[string]uint64{"sent": p.Sent, "answered": p.Answered, "repeated": p.Repeated, "lost": p.Lost} {
			o.put(phaseSMPs, float64(n), p.Name, result)
		}
	}
	for _, result := range []string{"delivered", "failed", "dropped"} {
		o.put(alarms, float64(s.Alarms[result]), result)
	}
	o.list(alerts, s.Alerts, nil)
	o.counted(&s.Counted, ids)
	o.administration(s)
}

// What is known of the labels of requests: every attribute is read, and plans write some.
var (
	knownSMPs     = known(nil)
	knownRequests = known([]string{"ok", "status", "no-answer"})
)

// known are the labels of requests by method and attribute, and by result where there are any.
func known(results []string) (list [][]string) {
	add := func(labels ...string) {
		if results == nil {
			list = append(list, labels)
		}
		for _, r := range results {
			list = append(list, append(slices.Clone(labels), r))
		}
	}
	for _, a := range smp.Attributes() {
		add("Get", a.Name)
	}
	for _, name := range writable {
		add("Set", name)
	}
	return list
}

// StateName names a state of a manager for programs.
func StateName(s smp.SMState) string {
	switch s {
	case smp.SMMaster:
		return "master"
	case smp.SMStandby:
		return "standby"
	case smp.SMNotActive:
		return "not-active"
	}
	return "discovering"
}

func (o sink) counted(c *Counted, ids []string) {
	o.put(passes, float64(c.Completed), "completed")
	o.put(passes, float64(c.Refused), "refused")
	o.put(passes, float64(c.Deferred), "deferred")
	o.put(passWrites, float64(c.Writes))
	o.put(rogues, float64(c.Rogues))
	o.byLabel(events, c.Events, ids)
	o.byLabel(drift, c.Drift, writable)
	for _, key := range []string{"m_key", "p_key", "q_key"} {
		o.put(violations, float64(c.Violations[key]), key)
	}
	for _, cause := range causes {
		h := c.Times[cause]
		o.times(changeToProof, &h, cause)
	}
}

// writable are the attributes that plans write, and so what can drift, by their names.
var writable = func() (names []string) {
	for _, a := range plan.Attributes() {
		names = append(names, smp.AttributeName(a))
	}
	return names
}()

// byLabel has the samples of a counter by its only label, 0 for those that are known.
func (o sink) byLabel(m *Metric, counts map[string]uint64, known []string) {
	for _, x := range known {
		if _, counted := counts[x]; !counted {
			o.put(m, 0, x)
		}
	}
	for x, n := range counts {
		o.put(m, float64(n), x)
	}
}

func (o sink) last(l *Last) {
	for _, v := range verdicts {
		o.put(verdict, one(l.Verdict == v), v.String())
	}
	c := &l.Counts
	for v, n := range map[string]int{
		"isolated": c.Pairs.Isolated, "isolated-by-end-ports": c.Pairs.ByEndPorts, "unknown": c.Pairs.Unknown, "violated": c.Pairs.Violated,
	} {
		o.put(pairs, float64(n), v)
	}
	for kind, n := range map[string]int{
		"violations": c.Violations, "exposed": c.Exposed, "missing": c.Missing, "foreign": c.Foreign, "unenforced": c.Unenforced,
		"raw": c.Raw, "unknown": c.Unknown, "changeable": c.Changeable,
	} {
		o.put(findings, float64(n), kind)
	}
	for fault, n := range map[string]int{"missing": c.Keys.Missing, "unexpected": c.Keys.Unexpected, "unknown": c.Keys.Unknown} {
		o.put(keyPorts, float64(n), fault)
	}
	o.pairs(l)
	o.members(l.Partitions)
	o.put(nodes, float64(l.Fabric.Switches), "switch")
	o.put(nodes, float64(l.Fabric.CAs), "ca")
	o.put(nodes, float64(l.Fabric.Routers), "router")
	o.put(linksFound, float64(l.Fabric.Links))
	o.put(inactive, float64(l.Inactive))
	o.put(failures, float64(l.Failures))
	o.put(faults, float64(l.Faults))
	o.put(fences, float64(l.Fences))
}

// pairs has the verdict of each pair that the proof lists: a bounded number.
func (o sink) pairs(l *Last) {
	seen := make(map[[2]string]bool, len(l.Pairs))
	for _, p := range l.Pairs {
		policy := "apart"
		if p.Joined {
			policy = "overlap"
		}
		names := [2]string{label(p.A), label(p.B)}
		if seen[names] { // names may be cut
			continue
		}
		seen[names] = true
		o.put(pair, 1, names[0], names[1], p.Verdict.String(), policy)
	}
}

func (o sink) members(list []Partition) {
	seen := make(map[[2]string]bool, len(list))
	for _, p := range list {
		if names := [2]string{p.Name, p.PKey}; seen[names] {
			continue
		} else {
			seen[names] = true
		}
		o.put(members, float64(p.Full), p.Name, p.PKey, "full")
		o.put(members, float64(p.Limited), p.Name, p.PKey, "limited")
	}
}

func (o sink) administration(s *State) {
	o.list(saRequests, s.Answers, nil)
	c := &s.Administration
	for reason, n := range map[string]uint64{"refused": c.Refused, "busy": c.Busy, "dropped": c.Dropped, "malformed": c.Malformed} {
		o.put(saRefused, float64(n), reason)
	}
	o.put(saReports, float64(c.Reports), "sent")
	o.put(saReports, float64(c.Unreported), "untold")
}

func (o sink) fabric(s *State) {
	o.put(contested, float64(s.Contested))
	var ports [int(perfmgr.Malformed) + 1]int
	failed, silent := make(map[*family]int), make(map[*family]int)
	for i := range s.Devices {
		d := &s.Devices[i]
		for j := range d.Ports {
			if p := &d.Ports[j]; p.Read {
				ports[p.Fault]++
			}
		}
		f := familyOf(d)
		if f == nil {
			continue
		}
		if d.Refused {
			failed[f]++
		}
		if d.Silent {
			silent[f]++
		}
	}
	if !s.Reading {
		return
	}
	for fault, n := range ports {
		o.put(pollPorts, float64(n), perfmgr.Fault(fault).String())
	}
	for _, f := range []*family{switchFamily, hcaFamily} {
		if f == hcaFamily && !s.Hosts {
			continue
		}
		o.put(collectErrors, float64(failed[f]), f.collector)
		o.put(collectTimeouts, float64(silent[f]), f.collector)
	}
}

// familyOf has the exporter's metrics for a device; nil for routers, which it leaves out.
func familyOf(d *Device) *family {
	switch d.Kind {
	case "SW":
		return switchFamily
	case "CA":
		return hcaFamily
	}
	return nil
}
