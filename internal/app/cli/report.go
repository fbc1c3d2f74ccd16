package cli

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// verdictPrinter prints verdicts.
type verdictPrinter struct {
	out    io.Writer
	log    *telemetry.Log
	asJSON bool
	// said is the last verdict that was printed: the next is printed in full if it
	// differs, or on request.
	said  string
	asked bool
}

func newVerdictPrinter(out io.Writer, log *telemetry.Log, asJSON bool) *verdictPrinter {
	return &verdictPrinter{out: out, log: log, asJSON: asJSON, asked: true}
}

// Again has the next verdict printed in full.
func (r *verdictPrinter) Again() { r.asked = true }

// remarksMax bounds the places that could not be read, as they are printed; a
// fabric in trouble has thousands.
const remarksMax = 20

// errOpen is the result of prove where nothing keeps hosts apart.
var errOpen = errors.New("the fabric is open: every host can talk with every other")

// document is what --json prints for a verdict.
type document struct {
	Verdict    isolation.Verdict    `json:"verdict"`
	Fabric     fabricCounts         `json:"fabric"`
	Partitions []partitionEntry     `json:"partitions"`
	SMPs       daemon.SMPs          `json:"smps"`
	Phases     []sweep.Phase        `json:"phases"`
	Proof      *isolation.Proof     `json:"proof"`
	Multicast  *isolation.Multicast `json:"multicast"`
	Writes     int                  `json:"writes"`
	Failures   int                  `json:"failures"`
	Faults     int                  `json:"faults"`
	Inactive   int                  `json:"inactive_links"`
	Fences     []fenceEntry         `json:"fences"`
}

// fenceEntry is a switch port behind which nobody is let into the subnet.
type fenceEntry struct {
	Node   ib.NodeGUID `json:"node_guid"`
	Port   ib.PortNum  `json:"port"`
	Name   string      `json:"name"`
	Reason string      `json:"reason"`
}

func fencesOf(result *event.Result) []fenceEntry {
	out := []fenceEntry{}
	for _, f := range result.Fences {
		out = append(out, fenceEntry{f.At.Node, f.At.Port, f.Name, f.Reason})
	}
	return out
}

// fabricCounts is the size of a fabric.
type fabricCounts struct {
	Nodes    int `json:"nodes"`
	Switches int `json:"switches"`
	CAs      int `json:"cas"`
	Routers  int `json:"routers"`
	Links    int `json:"links"`
}

func countsOf(c observed.Counts) fabricCounts {
	return fabricCounts{c.Nodes, c.Switches, c.CAs, c.Routers, c.Links}
}

// partitionEntry is a partition as it is printed: with the number of its members.
type partitionEntry struct {
	Name    string      `json:"name"`
	PKey    ib.PKeyBase `json:"pkey"`
	Full    int         `json:"full"`
	Limited int         `json:"limited"`
}

// Verdict prints the result of a pass.
func (r *verdictPrinter) Verdict(result *event.Result, smps daemon.SMPs, took []sweep.Phase) {
	if r.asJSON {
		d := document{Verdict: result.Proof.Verdict, SMPs: smps, Phases: took, Proof: result.Proof, Multicast: result.Multicast, Partitions: entriesOf(result.Partitions),
			Writes: result.Writes, Failures: result.Failures, Faults: result.Faults, Inactive: result.Inactive, Fences: fencesOf(result)}
		d.Fabric = countsOf(result.Counts)
		if err := terminal.JSON(r.out, d); err != nil {
			r.log.Error(err.Error())
		}
		return
	}
	if text := verdictOf(result); !r.asked && text == r.said {
		return // no change, and no request
	} else {
		r.said, r.asked = text, false
	}
	if r.log.Verbose {
		r.reportPartitions(entriesOf(result.Partitions))
		r.reportSent(smps, took)
	} else {
		r.reportSummary(result, smps, took)
	}
	r.reportProof(result.Proof, r.log.Verbose, r.log.Verbose)
	if r.log.Verbose || result.Multicast != nil && !result.Multicast.Verdict.Holds() {
		r.reportMulticast(result.Multicast)
	}
	for i, f := range result.Fences {
		if i == listMax {
			fmt.Fprintf(r.out, "%d more ports are fenced (--json has all)\n", len(result.Fences)-i)
			break
		}
		fmt.Fprintf(r.out, "fenced: %s: %s\n", terminal.Plain(f.Name), terminal.Plain(f.Reason))
	}
	if result.Failures > 0 || result.Inactive > 0 {
		fmt.Fprintf(r.out, "not completed: %d writes failed, %d links are not Active\n", result.Failures, result.Inactive)
	}
}

// verdictOf is what of a result is worth saying when it changes: not how many links
// there are, nor what was sent.
func verdictOf(result *event.Result) string {
	p := result.Proof
	text := fmt.Sprint(p.Verdict, p.Reasons, p.Caveats, terminal.SharedPorts(p), result.Fences, result.Failures, result.Inactive)
	if result.Multicast != nil {
		text += fmt.Sprint(result.Multicast.Verdict, result.Multicast.Reasons)
	}
	return text
}

// reportSummary says in a line or two what the tables say that --verbose prints.
func (r *verdictPrinter) reportSummary(result *event.Result, smps daemon.SMPs, took []sweep.Phase) {
	c, total := result.Counts, sweep.SumPhases(took).Seconds
	fmt.Fprintf(r.out, "%d switches, %d CAs, %d routers, %d links; partitions: %d\n", c.Switches, c.CAs, c.Routers, c.Links, len(result.Partitions))
	fmt.Fprintf(r.out, "sent so far: %d SubnGet, %d SubnSet; this pass: %d writes in %.4f s\n", smps.Get, smps.Set, result.Writes, total)
	if p := result.Proof.Counts.Pairs; p != (isolation.PairCounts{}) {
		fmt.Fprintf(r.out, "pairs of partitions: %d isolated", p.Isolated)
		for _, x := range []struct {
			n    int
			what string
		}{{p.ByEndPorts, "by end ports only"}, {p.Violated, "violated"}, {p.Unknown, "unknown"}} {
			if x.n > 0 {
				fmt.Fprintf(r.out, ", %d %s", x.n, x.what)
			}
		}
		fmt.Fprintln(r.out)
	}
}

// entriesOf are rows for partitions; none is an empty list.
func entriesOf(partitions []observed.Partition) []partitionEntry {
	out := make([]partitionEntry, 0, len(partitions))
	for _, p := range partitions {
		out = append(out, partitionEntry{p.Name, p.Base, len(p.Full), len(p.Limited)})
	}
	return out
}

func (r *verdictPrinter) reportPartitions(partitions []partitionEntry) {
	t := terminal.NewTable("partition", "p_key", "full", "limited")
	for _, p := range partitions {
		t.Add(p.Name, p.PKey, p.Full, p.Limited)
	}
	fmt.Fprintln(r.out)
	r.print(t)
}

func (r *verdictPrinter) print(t terminal.Table) {
	if err := t.Print(r.out, "", false); err != nil {
		r.log.Error(err.Error())
	}
}

func (r *verdictPrinter) reportSent(smps daemon.SMPs, took []sweep.Phase) {
	t := terminal.NewTable("sent so far", "get", "set")
	for _, a := range smps.ByAttribute {
		t.Add(a.Attribute, a.Get, a.Set)
	}
	t.Add("all", smps.Get, smps.Set)
	fmt.Fprintln(r.out)
	r.print(t)
	fmt.Fprintln(r.out)
	tw := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	for _, p := range took {
		fmt.Fprintf(tw, "%s\t%.4f s\t%d packets\t%d at the least\n", p.Name, p.Seconds, p.Sent, p.Least)
	}
	sum := sweep.SumPhases(took)
	fmt.Fprintf(tw, "total\t%.4f s\t%d packets\t%d at the least\n", sum.Seconds, sum.Sent, sum.Least)
	tw.Flush()
}

func (r *verdictPrinter) reportMulticast(m *isolation.Multicast) {
	if err := terminal.PrintMulticast(r.out, m); err != nil {
		r.log.Error(err.Error())
	}
}

// wanted says what the policy has in mind for a pair of partitions: where it
// joins them, isolated means "no further than that".
func wanted(joined bool) string {
	if joined {
		return "overlap"
	}
	return "apart"
}

// listMax bounds the reasons that are printed; --json has them all.
const listMax = 20

// reportProof says the verdict; pairs of partitions only where there is a
// policy that says something of them, an empty line before it where it is spaced.
func (r *verdictPrinter) reportProof(p *isolation.Proof, pairs, spaced bool) {
	if pairs && len(p.Pairs) > 0 {
		t := terminal.NewTable("partition", "and", "policy", "verdict", "reason")
		for _, pair := range p.Pairs {
			t.Add(pair.A, pair.B, wanted(pair.Joined), pair.Verdict, pair.Reason)
		}
		fmt.Fprintln(r.out)
		r.print(t)
	}
	if spaced {
		fmt.Fprintln(r.out)
	}
	fmt.Fprintf(r.out, "verdict: %s\n", p.Verdict)
	for i, reason := range p.Reasons {
		if i == listMax {
			fmt.Fprintf(r.out, "  and %d more (--json has all)\n", len(p.Reasons)-i)
			break
		}
		fmt.Fprintf(r.out, "  %s\n", terminal.Plain(reason))
	}
	if len(p.SharedPorts) > 0 {
		fmt.Fprintf(r.out, "  tenants share only these ports: %s\n", terminal.SharedPorts(p))
	}
	for _, caveat := range p.Caveats {
		fmt.Fprintf(r.out, "  left to the hosts: %s\n", terminal.Plain(caveat))
	}
}
