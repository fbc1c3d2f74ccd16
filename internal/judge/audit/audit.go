package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// MaxPerCheck bounds the findings that one check lists.
const MaxPerCheck = 256

// Severity ranks a finding.
type Severity uint8

// The severities. Unknown is no rank: it says that something was not read.
const (
	Unknown Severity = iota
	Low
	Medium
	High
	Critical
)

var severityNames = [...]string{"unknown", "low", "medium", "high", "critical"}

// String is the severity as it stands in reports.
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return severityNames[Unknown]
}

// MarshalText prints the severity as String does.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseSeverity reads a rank: low, medium, high or critical.
func ParseSeverity(text string) (Severity, error) {
	for s := Low; s <= Critical; s++ {
		if text == s.String() {
			return s, nil
		}
	}
	return Unknown, fmt.Errorf("severity %q: want low, medium, high or critical", text)
}

// Profile says how far an audit goes.
type Profile uint8

// The profiles. Basic has the requirements of any fabric that keeps tenants apart; Tenant
// adds what keeps a host apart whose root is not trusted; Strict what only some managers
// can do, and what takes longer to read.
const (
	Basic Profile = iota
	Tenant
	Strict
)

// String is the name of the profile.
func (p Profile) String() string {
	switch p {
	case Tenant:
		return "tenant"
	case Strict:
		return "strict"
	}
	return "basic"
}

// MarshalText prints the profile as String does.
func (p Profile) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// ParseProfile reads the name of a profile.
func ParseProfile(text string) (Profile, error) {
	for p := Basic; p <= Strict; p++ {
		if text == p.String() {
			return p, nil
		}
	}
	return Basic, fmt.Errorf("profile %q: want basic, tenant or strict", text)
}

// Intent is what the owner of a fabric wants, as far as it was said.
type Intent struct {
	// Partitions is what the policy allows, the default partition included;
	// nil when no policy was given.
	Partitions []observed.Partition
	// Aliases are the alias GUIDs that the policy gives to ports; nil when it
	// does not speak of them.
	Aliases map[ib.PortGUID][]ib.PortGUID
	// Managers are the ports that subnet managers may be behind; without them
	// it is the port that most end ports name as their master.
	Managers []ib.PortGUID
	// Cables are all cables that there may be; nil when no list was given.
	Cables []Cable
}

// levels are the service levels that the policy gives to partitions, each with the
// first partition that has it.
func (i *Intent) levels() map[ib.SL]ib.PKeyBase {
	out := map[ib.SL]ib.PKeyBase{}
	for _, p := range i.Partitions {
		if _, twice := out[p.SL]; !twice {
			out[p.SL] = p.Base
		}
	}
	return out
}

// Cable joins two ports.
type Cable struct{ A, B observed.Place }

// Unread is something that a sweep asked for and did not get.
type Unread struct{ Where, What string }

// Options says how far an audit goes.
type Options struct {
	Profile Profile
	// Earlier is an earlier reading of the same fabric, for what shows in time
	// only; nil when there is none.
	Earlier *observed.Fabric
	// KeysConcealed reports whether M_Keys of the two readings cannot be compared with
	// each other.
	KeysConcealed bool
	// Unread is what the sweep asked for and did not get.
	Unread []Unread
	// Age is the time since the fabric was read, MaxAge how old a reading may
	// be; 0 for any age.
	Age, MaxAge time.Duration
}

// Finding is something that is not as it should be, or could not be read.
type Finding struct {
	// Check and Number name the check.
	Check    string   `json:"check"`
	Number   int      `json:"number"`
	Severity Severity `json:"severity"`
	Where    string   `json:"where"`
	Read     string   `json:"read"`
	Advice   string   `json:"advice"`
}

// NotCheckable is a check that was not made, and why.
type NotCheckable struct {
	Check  string `json:"check"`
	Number int    `json:"number"`
	Title  string `json:"title"`
	Reason string `json:"reason"`
}

// Counts counts findings by severity, those that are not listed included.
type Counts struct {
	Critical int `json:"critical"`
	High     int `json:"high"`
	Medium   int `json:"medium"`
	Low      int `json:"low"`
	Unknown  int `json:"unknown"`
}

// Report is the result of an audit.
type Report struct {
	Profile  Profile   `json:"profile"`
	Findings []Finding `json:"findings"`
	// NotCheckable are the checks that need what cannot be read here, or what
	// was not given.
	NotCheckable []NotCheckable `json:"not_checkable"`
	// Skipped are the checks of a wider profile.
	Skipped []string `json:"skipped"`
	// Passed are the checks that were made and found nothing.
	Passed []string `json:"passed"`
	Counts Counts   `json:"counts"`
	// Omitted is the number of findings that are counted and not listed.
	Omitted int `json:"omitted"`

	partitioned bool // some host holds a P_Key other than the default partition's
}

// Fails reports whether there is a finding of severity s or above, or anything
// unknown.
func (r *Report) Fails(s Severity) bool {
	n := r.Counts.Unknown
	for rank, count := range []int{Low: r.Counts.Low, Medium: r.Counts.Medium, High: r.Counts.High, Critical: r.Counts.Critical} {
		if Severity(rank) >= s {
			n += count
		}
	}
	return n > 0
}

// Audit holds what was read from a fabric against the catalogue. The fabric is
// not changed.
func Audit(f *observed.Fabric, intent Intent, o Options) *Report {
	a := &auditor{f: f, intent: intent, options: o, report: &Report{
		Profile: o.Profile, Findings: []Finding{}, NotCheckable: []NotCheckable{}, Skipped: []string{}, Passed: []string{},
	}}
	for _, c := range catalogue() {
		a.apply(&c)
	}
	a.report.partitioned = slices.ContainsFunc(a.hosts(), func(p *observed.Port) bool { return len(tenantKeys(validKeys(readEntries(p)))) > 0 })
	return a.report
}

// apply runs one check, or says why not.
func (a *auditor) apply(c *check) {
	reason := c.why
	if c.run != nil {
		reason = a.missing(c.needs)
	}
	if reason != "" {
		a.report.NotCheckable = append(a.report.NotCheckable, NotCheckable{c.name, c.number, c.title, reason})
		return
	}
	if c.profile > a.options.Profile {
		a.report.Skipped = append(a.report.Skipped, c.name)
		return
	}
	a.check, a.count, a.seen = c, 0, map[string]bool{}
	c.run(a)
	if a.count == 0 {
		a.report.Passed = append(a.report.Passed, c.name)
	}
}

// missing says which of the inputs that a check needs was not given.
func (a *auditor) missing(n need) string {
	switch {
	case n&needsPolicy != 0 && a.intent.Partitions == nil:
		return "it compares with a policy, and none was given (--policy)"
	case n&needsLevels != 0 && len(a.intent.levels()) < 2:
		return "the policy names no two service levels to keep apart"
	case n&needsEarlier != 0 && a.options.Earlier == nil:
		return "it compares with an earlier reading, and none was given (--since)"
	case n&needsCables != 0 && a.cables() == nil:
		return "it compares with a list of cables, and neither a topology (--topology) nor an earlier reading (--since) was given"
	}
	return ""
}
