// This file lists what is wrong now, and whom it concerns.

package views

import (
	"fmt"
	"regexp"
	"slices"

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
}

// alarms are gathered for a caller.
type alarms struct {
	s    *resource.State
	c    resource.Caller
	ends map[ib.PortGUID]*observed.Port
	list []Alarm
}

// AlarmsOf lists what is wrong as far as a caller may know. proof is as the caller sees it,
// differences and findings are for the provider, and nil for others.
func AlarmsOf(s *resource.State, c resource.Caller, f *observed.Fabric, proof *Proof, differences []Difference, findings []audit.Finding) []Alarm {
	a := &alarms{s, c, map[ib.PortGUID]*observed.Port{}, []Alarm{}}
	for _, p := range f.EndPorts() {
		if p.InfoRead {
			a.ends[p.GUID] = p
		}
	}
	a.verdict(proof)
	told := map[string]bool{} // ports whose cables are told
	for _, d := range differences {
		x := Alarm{Kind: "cable", Severity: "high", Where: d.Name, Text: d.Text, Node: d.Node, Ports: d.Ports}
		if d.Kind == "renamed" {
			x.Severity = "low"
		}
		for _, g := range d.Ports {
			told[g] = true
		}
		a.add(x)
	}
	a.ports(told)
	for _, x := range findings {
		if x.Severity >= audit.High {
			a.finding(x)
		}
	}
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
	a.list = append(a.list, x)
}

// name is what the node of an end port says of itself, or else its GUID.
func (a *alarms) name(guid string) string {
	if g, err := ib.ParsePortGUID(guid); err == nil && a.ends[g] != nil {
		return a.ends[g].String()
	}
	return guid
}

// verdict enters who can talk and may not, and why else the verdict does not hold.
func (a *alarms) verdict(p *Proof) {
	if p == nil {
		return
	}
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

// finding enters what an audit finds.
func (a *alarms) finding(f audit.Finding) {
	x := Alarm{Kind: "audit", Severity: f.Severity.String(), Where: f.Where, Text: f.Check + ": " + f.Read, Advice: f.Advice}
	if at := atPort.FindStringSubmatch(f.Where); at != nil && at[1] == "port" {
		x.Ports = []string{at[2]}
	} else if at != nil {
		x.Node = at[2]
	}
	a.add(x)
}
