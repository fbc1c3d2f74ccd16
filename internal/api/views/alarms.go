// This file lists what is wrong now, and whom it concerns.

package views

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Alarm is something that is wrong now.
type Alarm struct {
	Kind     string   `json:"kind" enum:"violation,verdict,cable,port,audit" doc:"two ports can talk and may not; the verdict does not hold; the fabric is not as the list of cables says; a port of a tenant was not found, or its link is not Active; what an audit finds"`
	Severity string   `json:"severity" enum:"unknown,low,medium,high,critical"`
	Tenants  []string `json:"tenants" doc:"whose ports it concerns, the provider included; empty where it concerns the fabric. A tenant is told of itself alone"`
	Where    string   `json:"where" doc:"port or device"`
	Text     string   `json:"text"`
	Advice   string   `json:"advice,omitempty"`
	Ports    []string `json:"ports" doc:"GUIDs of end ports that it concerns; of a tenant, its own"`
	PKey     string   `json:"pkey,omitempty"`
	Node     string   `json:"node,omitempty" doc:"node GUID; for the provider"`

	ID           string        `json:"id" doc:"the same while it says the same"`
	Acknowledged *Acknowledged `json:"acknowledged,omitempty" doc:"who of the caller's tenant knows of it; the alarm goes on"`
}

// Acknowledged is who knows of an alarm, and until when that holds.
type Acknowledged struct {
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
	Note  string    `json:"note"`
}

// alarms are gathered for a caller.
type alarms struct {
	s    *resource.State
	c    resource.Caller
	now  time.Time
	ends map[ib.PortGUID]*observed.Port
	list []Alarm
}

// AlarmsOf lists what is wrong as far as a caller may know. proof is as the caller sees it,
// differences and findings are for the provider, and nil for others.
func AlarmsOf(s *resource.State, c resource.Caller, now time.Time, f *observed.Fabric, proof *Proof, differences []Difference, findings []audit.Finding) []Alarm {
	a := &alarms{s, c, now, map[ib.PortGUID]*observed.Port{}, []Alarm{}}
	for _, p := range f.EndPorts() {
		if p.InfoRead {
			a.ends[p.GUID] = p
		}
	}
	a.violations(proof)
	told := map[string]bool{} // ports whose cables are told
	for _, d := range differences {
		x := Alarm{Kind: "cable", Severity: "high", Where: d.Name, Text: d.Text, Node: d.Node, Ports: d.Ports}
		if d.Port > 0 {
			x.Where = fmt.Sprintf("%s port %d", d.Name, d.Port)
		}
		if d.Kind == "renamed" {
			x.Severity = "low"
		}
		for _, g := range d.Ports {
			told[g] = true
		}
		a.add(x)
	}
	a.ports(told)
	a.verdict(proof)
	a.findings(findings)
	slices.SortStableFunc(a.list, func(x, y Alarm) int { return rank(y.Severity) - rank(x.Severity) })
	return a.list
}

func rank(severity string) int {
	return slices.Index([]string{"unknown", "low", "medium", "high", "critical"}, severity)
}

// add enters an alarm with the owners of its ports.
func (a *alarms) add(x Alarm) {
	ports := x.Ports
	x.Ports, x.Tenants = []string{}, []string{}
	for _, text := range ports {
		g, err := ib.ParsePortGUID(text)
		if err != nil || !Sees(a.s, a.c, g) {
			continue
		}
		x.Ports = append(x.Ports, text)
		if o := a.s.Owner(g); o != "" && !slices.Contains(x.Tenants, o) {
			x.Tenants = append(x.Tenants, o)
		}
	}
	if !a.c.IsProvider() {
		x.Tenants = []string{a.c.Tenant}
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{x.Kind, x.Where, x.Text, x.PKey, x.Node}, x.Ports...), "\x00")))
	x.ID = hex.EncodeToString(sum[:8])
	if k := a.s.Acknowledged(a.c.Tenant, x.ID, a.now); k != nil {
		x.Acknowledged = &Acknowledged{k.By, k.At, k.Until, k.Note}
	}
	a.list = append(a.list, x)
}

// name is what the node of an end port says of itself, or else its GUID.
func (a *alarms) name(guid string) string {
	if g, err := ib.ParsePortGUID(guid); err == nil && a.ends[g] != nil {
		return a.ends[g].String()
	}
	return guid
}

// violations enters who can talk and may not.
func (a *alarms) violations(p *Proof) {
	for _, v := range p.Violations {
		x := Alarm{Kind: "violation", Severity: "critical", PKey: v.PKey, Ports: slices.DeleteFunc([]string{v.From, v.To}, func(g string) bool { return g == "" })}
		switch {
		case v.From != "" && v.To != "":
			x.Where, x.Text = a.name(v.From)+" and "+a.name(v.To), "they can talk, and may not"
		case len(x.Ports) == 1:
			x.Where, x.Text = a.name(x.Ports[0]), "it can talk with a port that it may not talk with"
		default:
			x.Where, x.Text = "partition "+v.PKey, "ports of others can talk with its key, and may not"
		}
		if v.Note != "" {
			x.Text += ": " + v.Note
		}
		a.add(x)
	}
}

// verdict enters why else the verdict does not hold.
func (a *alarms) verdict(p *Proof) {
	for _, reason := range p.Reasons {
		a.add(Alarm{Kind: "verdict", Severity: "high", Where: "the fabric", Text: reason})
	}
	if !p.Holds && len(p.Violations)+len(p.Reasons) == 0 {
		a.add(Alarm{Kind: "verdict", Severity: "high", Where: "the fabric", Text: "the verdict is " + p.Verdict + " for a reason that is not yours: the provider sees it"})
	}
}

// ports enters ports of tenants that were not found, unless that was told, or whose link is not Active.
func (a *alarms) ports(told map[string]bool) {
	for _, p := range a.s.Ports() {
		guid := p.GUID.String()
		if p.Owner == "" || p.Owner == resource.Provider || told[guid] || !Sees(a.s, a.c, p.GUID) {
			continue
		}
		x := Alarm{Kind: "port", Severity: "medium", Where: a.name(guid), Ports: []string{guid}}
		switch f := a.ends[p.GUID]; {
		case f == nil:
			x.Text = "the port was not found: its host is down, its cable is out, or it was never there"
		case f.Info.PortState != smp.PortActive:
			x.Text = fmt.Sprintf("its link is %s, not Active: it carries no data", f.Info.PortState)
		default:
			continue
		}
		a.add(x)
	}
}

// atPort is the end of a place of an audit: what a device says of itself stands before it.
var atPort = regexp.MustCompile(`\((port|node) GUID (0x[0-9a-f]{16})\)$`)

// findings enters what an audit finds that is high or critical, each check once.
func (a *alarms) findings(list []audit.Finding) {
	type found struct {
		Alarm
		check  string
		places int
	}
	var all []*found
	for _, f := range list {
		if f.Severity < audit.High {
			continue
		}
		i := slices.IndexFunc(all, func(x *found) bool { return x.check == f.Check && x.Severity == f.Severity.String() })
		if i < 0 {
			i = len(all)
			all = append(all, &found{Alarm: Alarm{Kind: "audit", Severity: f.Severity.String(), Where: f.Where, Text: f.Check + ": " + f.Read, Advice: f.Advice}, check: f.Check})
		}
		x := all[i]
		x.places++
		if at := atPort.FindStringSubmatch(f.Where); at != nil && at[1] == "port" && !slices.Contains(x.Ports, at[2]) {
			x.Ports = append(x.Ports, at[2])
		}
	}
	for _, x := range all {
		if x.places > 1 {
			x.Where = fmt.Sprintf("%s and %d more", x.Where, x.places-1)
		}
		a.add(x.Alarm)
	}
}
