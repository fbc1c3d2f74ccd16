package metrics

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// State is a copy of everything that is exported. Nobody changes it once it is made.
type State struct {
	// Made is when the copy was made.
	Made time.Time
	// Version and GoVersion identify the program.
	Version, GoVersion string
	Manager            event.Status
	// Charge is who is in charge, and Managers are the managers that are known.
	Charge         event.MasterStatus
	Managers       []SubnetManager
	SMPs           []Labelled // by method and attribute
	Requests       []Labelled // by method, attribute and result
	Window         transact.Counts
	Phases         []sweep.Phase // sums by name
	Administration server.Counts
	Answers        []Labelled // by method, attribute and status
	// Last is of the last pass that was completed; nil before the first.
	Last *Last
	// Counted is what the Observer counted.
	Counted Counted
	// Alarms counts the alarms of the webhook by result: delivered, failed, dropped; nil without one.
	Alarms map[string]uint64
	// Alerts counts what was sent to Alertmanagers, by host and result: sent, failed, dropped.
	Alerts []Labelled
	// Reading reports whether performance counters are read.
	Reading bool
	Polls   perfmgr.Counts
	// Hosts reports whether what infiniband_exporter has of CA ports is exported: it does not
	// unless it is told to.
	Hosts bool
	// Devices are the switches, and the CA and router ports.
	Devices []Device
	// Contested counts the ports that were left out because of their GUIDs.
	Contested int
}

// Last is what the last pass that was completed came to.
type Last struct {
	At                                 time.Time
	Verdict                            isolation.Verdict
	Counts                             isolation.Counts
	Pairs                              []isolation.PairVerdict
	Partitions                         []Partition
	Fabric                             observed.Counts
	Inactive, Failures, Faults, Fences int
}

// Partition is a partition with the number of its members.
type Partition struct {
	Name, PKey    string
	Full, Limited int
}

// partitionsMax is how many partitions have samples of their own.
const partitionsMax = 1024

func lastOf(r *event.Result, at time.Time) *Last {
	l := &Last{
		At: at, Verdict: r.Proof.Verdict, Counts: r.Proof.Counts, Pairs: slices.Clone(r.Proof.Pairs),
		Fabric:   r.Counts,
		Inactive: r.Inactive, Failures: r.Failures, Faults: r.Faults, Fences: len(r.Fences),
	}
	for _, p := range r.Partitions[:min(len(r.Partitions), partitionsMax)] {
		l.Partitions = append(l.Partitions, Partition{label(p.Name), p.Base.String(), len(p.Full), len(p.Limited)})
	}
	return l
}

// Labelled is a number with the values of its labels.
type Labelled struct {
	Labels []string
	N      uint64
}

// Identity is what a device is called.
type Identity struct {
	// GUID is the node GUID of a switch, else the port GUID.
	GUID string
	// Kind is "SW", "CA" or "RT".
	Kind string
	Name string
	LID  string
}

// Device is a switch, or a port of a CA or router, as infiniband_exporter sees it.
type Device struct {
	*Identity
	Ports []Port
	// Refused and Silent tell how the last request for its counters ended.
	Refused, Silent bool
}

// Violations are the counters of PortInfo.
type Violations struct {
	Known            bool
	MKey, PKey, QKey uint64
}

// Port is a port with counters.
type Port struct {
	Place observed.Place
	Num   string
	// State and Physical are 0 where they are not known.
	State, Physical uint8
	Violations      Violations
	// Rate and RawRate are in bytes per second; 0 for a link that is down or unknown.
	Rate, RawRate float64
	// Uplink is the device that it is connected to, and UplinkPort the port there; nil
	// for none.
	Uplink     *Identity
	UplinkPort string
	// Counters is nil where nothing is known.
	Counters *perfmgr.Copy
	// Fault is the reason where they are not.
	Fault perfmgr.Fault
	Read  bool // the port is among those that are read
}

// verdicts are all verdicts, from best to worst.
var verdicts = []isolation.Verdict{isolation.Isolated, isolation.Unguarded, isolation.ByEndPorts, isolation.Unknown, isolation.Violated}
