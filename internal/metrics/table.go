package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric describes a metric.
type Metric struct {
	Name, Help string
	// Type is "counter", "gauge" or "histogram".
	Type string
	// Unit is what the value counts; empty for a plain number.
	Unit   string
	Labels []string

	desc *prometheus.Desc
	// others make its samples, not Collector.
	others bool
	kind   prometheus.ValueType
}

// all has every metric that is exported, in the order of their declaration.
var all []*Metric

// All returns every metric, sorted by name.
func All() []Metric {
	out := make([]Metric, 0, len(all))
	for _, m := range all {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func declare(kind, name, unit, help string, labels ...string) *Metric {
	m := &Metric{Name: name, Help: help, Type: kind, Unit: unit, Labels: labels, kind: prometheus.GaugeValue}
	if kind == "counter" {
		m.kind = prometheus.CounterValue
	}
	m.desc = prometheus.NewDesc(name, help, labels, nil)
	all = append(all, m)
	return m
}

// service declares a metric of the service.
func service(kind, name, unit, help string, labels ...string) *Metric {
	m := declare(kind, name, unit, help, labels...)
	m.others = true
	return m
}

func counter(name, unit, help string, labels ...string) *Metric {
	return declare("counter", name, unit, help, labels...)
}

func gauge(name, unit, help string, labels ...string) *Metric {
	return declare("gauge", name, unit, help, labels...)
}

// written declares a metric whose samples WriteFabric writes.
func written(declare func(name, unit, help string, labels ...string) *Metric) func(name, unit, help string, labels ...string) *Metric {
	return func(name, unit, help string, labels ...string) *Metric {
		m := declare(name, unit, help, labels...)
		m.others = true
		return m
	}
}

// Metrics of the manager.
var (
	buildInfo     = gauge("ibwarden_build_info", "", "Always 1; the labels identify the running program.", "version", "goversion")
	managerState  = gauge("ibwarden_manager_state", "", "1 for the current state of this subnet manager, 0 for the others.", "state")
	otherManagers = gauge("ibwarden_other_managers", "", "Other subnet managers, trusted (those in the election) or not.", "trusted")
	loopAge       = gauge("ibwarden_engine_turn_age_seconds", "seconds", "Time since the engine loop last ran.")
	stateAge      = gauge("ibwarden_snapshot_age_seconds", "seconds", "Age of the state from which the samples are made.")
	sweeps        = counter("ibwarden_sweeps_total", "", "Sweeps started: of the whole subnet (full), behind links that changed (links), or for changes only (light).", "kind")
	passes        = counter("ibwarden_passes_total", "", "Passes: completed with a verdict, refused because the policy does not fit, or deferred to another manager.", "result")
	passWrites    = counter("ibwarden_writes_total", "", "Blocks and attributes written by completed passes.")
	smps          = counter("ibwarden_smps_sent_total", "packets", "Subnet management packets sent, retries included.", "method", "attribute")
	requests      = counter("ibwarden_smp_requests_total", "", "Subnet management requests by result: ok, status (answered with an error status) or no-answer (lost after the last retry).", "method", "attribute", "result")
	retries       = counter("ibwarden_smp_retries_total", "packets", "Subnet management packets sent again because no answer arrived.")
	lost          = counter("ibwarden_smp_requests_lost_total", "", "Subnet management requests without an answer after the last retry.")
	strays        = counter("ibwarden_smp_stray_answers_total", "packets", "Answers that matched no request.")
	phaseTime     = counter("ibwarden_phase_seconds_total", "seconds", "Time that sweeps have spent in a phase, such as discover, routing, judge routes, forwarding tables or prove.", "phase")
	phaseSMPs     = counter("ibwarden_phase_smps_total", "packets", "Subnet management packets of a phase: sent (retries included), answered, repeated, or lost (no answer after the last retry).", "phase", "result")
	changeToProof = declare("histogram", "ibwarden_change_to_proof_seconds", "seconds", "Time from a change to the next proof, by what changed: the policy, what somebody else wrote (drift), or a link that went up or down.", "cause")
	verdict       = gauge("ibwarden_verdict", "", "1 for the last verdict on the whole subnet, 0 for the others.", "verdict")
	verdictAge    = gauge("ibwarden_verdict_age_seconds", "seconds", "Time since the last proof.")
	pairs         = gauge("ibwarden_partition_pairs", "", "Pairs of partitions by verdict.", "verdict")
	pair          = gauge("ibwarden_partition_pair_info", "", "Always 1; the verdict on a pair of partitions. With more than 64 partitions only pairs that are not isolated are listed, worst first, at most 2048.", "a", "b", "verdict", "policy")
	findings      = gauge("ibwarden_proof_findings", "", "What the last proof found: pairs of ports that can talk against the policy (violations) or could if a host forged its keys (exposed), ports whose partitions no switch enforces (unenforced), missing and foreign keys, pairs of ports open to raw packets (raw), values that were not read (unknown), places where a host could change the result (changeable).", "kind")
	keyPorts      = gauge("ibwarden_ports_by_pkey_fault", "", "End ports with a P_Key fault by the last proof, in their own table or their switch port's: a key is missing, is not given by the policy (unexpected), or is of a partition that the policy does not have (unknown, counted as unexpected too).", "fault")
	members       = gauge("ibwarden_partition_members", "", "Members of a partition; of the first 1024 partitions.", "partition", "pkey", "membership")
	nodes         = gauge("ibwarden_fabric_nodes", "", "Nodes that the last sweep found.", "type")
	linksFound    = gauge("ibwarden_fabric_links", "", "Links that the last sweep found.")
	inactive      = gauge("ibwarden_inactive_links", "", "Links that should be Active and are not.")
	failures      = gauge("ibwarden_write_failures", "", "Writes of the last pass that failed or did not read back.")
	faults        = gauge("ibwarden_sweep_faults", "", "Places that the last sweep could not read or use.")
	fences        = gauge("ibwarden_fenced_ports", "", "Switch ports behind which nobody is admitted.")
	drift         = counter("ibwarden_drift_total", "", "Tables and settings that somebody else changed, and that were corrected.", "attribute")
	rogues        = counter("ibwarden_rogue_manager_alarms_total", "", "Alarms about subnet managers that are not trusted.")
	violations    = counter("ibwarden_key_violation_traps_total", "", "Traps about packets with a wrong key.", "key")
	events        = counter("ibwarden_events_total", "", "Events by their id in the log (docs/logs.md).", "event")
	saRequests    = counter("ibwarden_sa_requests_total", "", "Requests that subnet administration answered. Unknown methods and attributes count as other.", "method", "attribute", "status")
	saRefused     = counter("ibwarden_sa_unserved_total", "", "Requests that subnet administration refused, answered with BUSY or dropped, or that were malformed.", "reason")
	saReports     = counter("ibwarden_sa_reports_total", "", "Reports to subscribers by result; untold ones were not sent.", "result")
	polls         = counter("ibwarden_perf_polls_total", "", "Requests for performance counters, by result.", "result")
	pollRound     = gauge("ibwarden_perf_round_seconds", "seconds", "Duration of the last round of reading performance counters.")
	pollPorts     = gauge("ibwarden_perf_ports", "", "Ports by how their performance counters were last read.", "result")
	alarms        = counter("ibwarden_webhook_alarms_total", "", "Webhook alarms: delivered, failed after the last attempt, or dropped because too many waited.", "result")
	alerts        = counter("ibwarden_alertmanager_alerts_total", "", "Alerts sent to an Alertmanager, each as often as it was sent: taken (sent), not taken (failed), or too many to be sent (dropped).", "alertmanager", "result")
	contested     = gauge("ibwarden_contested_ports", "", "Ports without samples because another port claims the same GUID.")
)

// Metrics of ports that infiniband_exporter does not have.
var (
	portState  = written(gauge)("ibwarden_port_state", "", "Link state of a port: 1 Down, 2 Initialize, 3 Armed, 4 Active.", "guid", "port")
	portPhys   = written(gauge)("ibwarden_port_physical_state", "", "Physical state of a port: 1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 LinkErrorRecovery, 7 PhyTest.", "guid", "port")
	mKeyWrong  = written(counter)("ibwarden_port_mkey_violations_total", "packets", "PortInfo.M_KeyViolations of a port; goes on across resets.", "guid", "port")
	pKeyWrong  = written(counter)("ibwarden_port_pkey_violations_total", "packets", "PortInfo.P_KeyViolations of a port; goes on across resets.", "guid", "port")
	qKeyWrong  = written(counter)("ibwarden_port_qkey_violations_total", "packets", "PortInfo.Q_KeyViolations of a port; goes on across resets.", "guid", "port")
	portStuck  = written(gauge)("ibwarden_port_saturated", "", "1 for a performance counter that stopped at its highest value.", "guid", "port", "counter")
	portUnread = written(gauge)("ibwarden_port_unread", "", "1 for a port whose performance counters are not known.", "guid", "port", "reason")
)
