package daemon

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/names"
)

// Report is how an Apply ended, for programs; Print says it for people.
type Report struct {
	// Outcome is "done", "nothing", "stopped" or "not begun", Reason why it
	// went no further.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
	Steps   []Step `json:"steps"`
	// Failures are the writes that did not hold.
	Failures []string           `json:"failures"`
	Standing *plan.ChangeStatus `json:"standing"`
	Verdict  isolation.Verdict  `json:"verdict"`
	Proof    *isolation.Proof   `json:"proof"`
	Writes   int                `json:"writes"`
	SMPs     SMPs               `json:"smps"`
	Phases   []sweep.Phase      `json:"phases"`
}

// NewReport reports on what Apply returned; out may be nil.
func NewReport(out *Applied, err error, r *Runner) *Report {
	d := &Report{
		Outcome: "not begun", Verdict: isolation.Unknown, Steps: []Step{}, Failures: []string{},
		SMPs: r.SMPs(), Phases: r.TakePhases(),
	}
	if err != nil {
		d.Reason = err.Error()
	}
	if out == nil {
		return d
	}
	d.Steps, d.Standing, d.Proof, d.Writes = append(d.Steps, out.Steps...), &out.Standing, out.Proof, out.Writes
	for _, x := range out.Failures {
		d.Failures = append(d.Failures, x.Error())
	}
	if out.Proof != nil {
		d.Verdict = out.Proof.Verdict
	}
	switch {
	case err != nil:
		d.Outcome = "stopped"
	case out.Nothing:
		d.Outcome = "nothing"
	default:
		d.Outcome = "done"
	}
	return d
}

// reportMax bounds the failures and reasons that Print prints.
const reportMax = 20

// Print says how it ended, what stands, and what can be done about it.
func (d *Report) Print(w io.Writer, journal string) error {
	if d.Outcome == "nothing" {
		fmt.Fprintln(w, "nothing to change")
	} else {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "\nSTEP\tHOSTS\tWRITES\tKEYS PENDING\tVERDICT")
		for _, s := range d.Steps {
			fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%s\n", s.Name, s.Hosts, s.Writes, s.Waiting, s.Verdict)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(w, "\nsent %d SubnGet and %d SubnSet in total\n", d.SMPs.Get, d.SMPs.Set)
	}
	printSome(w, "failed: ", d.Failures)
	if s := d.Standing; d.Outcome == "stopped" && s != nil {
		fmt.Fprintf(w, "the fabric is %s: %d blocks are as before, %d in between, %d as planned, %d cannot be told\n",
			s.Position.InWords(), s.Old, s.Between, s.New, len(s.Elsewhere))
		fmt.Fprintf(w, "to finish: apply --resume --journal %s; to undo: apply --rollback --journal %s\n", journal, journal)
	}
	_, err := fmt.Fprintf(w, "verdict: %s\n", d.Verdict)
	if d.Proof != nil {
		printSome(w, "  ", d.Proof.Reasons)
	}
	return err
}

// printSome prints a bounded list. What a device says of itself must not steer
// a terminal.
func printSome(w io.Writer, prefix string, lines []string) {
	for i, line := range lines {
		if i == reportMax {
			fmt.Fprintf(w, "%sand %d more (--json has all)\n", prefix, len(lines)-i)
			return
		}
		fmt.Fprintln(w, prefix+names.Printable(line))
	}
}
