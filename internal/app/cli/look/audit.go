// This file implements `ibwarden audit`: a catalogue of isolation checks of a
// fabric, whoever manages it.

package look

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// AuditSource has what a command needs that judges a fabric.
type AuditSource struct {
	// Add adds the flags that choose the fabric and its policy.
	Add func(*cobra.Command)
	// Load checks what they say, before anything is sent.
	Load func(*cobra.Command) error
	// Read reads the fabric: only SubnGet is sent.
	Read func(*cobra.Command, sweep.Options) (*snapshot.Snapshot, error)
	// Policy is what the policy allows on a fabric, and the aliases of ports; some is
	// false without a policy.
	Policy func(*cobra.Command, *observed.Fabric) (p []observed.Partition, aliases map[ib.PortGUID][]ib.PortGUID, some bool, err error)
	// Help lists what a fabric may be.
	Help string
}

// auditFlags are the auditFlags of `ibwarden audit`.
type auditFlags struct {
	source          AuditSource
	topology, since string
	profile, failOn string
	criteria        string
	list            audit.Criteria
	managers        []string
	json            bool
	options         audit.Options
	threshold       audit.Severity
	intent          audit.Intent
	earlier         *snapshot.Snapshot
}

// AuditCommand is `ibwarden audit`.
func AuditCommand(from AuditSource) *cobra.Command {
	f := auditFlags{source: from}
	c := &cobra.Command{
		Use:   "audit",
		Short: "Check a fabric against a catalogue of isolation checks, read-only",
		Long: `Check a fabric against a catalogue of isolation checks, read-only.

It works on any fabric, whoever manages it: only SubnGet is sent. Each finding
gives its severity, the place, what was read there and what to do. What could
not be read is a finding too, "unknown", never a pass. Checks that cannot be
made over the wire, or that need a file that was not given, are listed with the
reason. docs/audit.md has the whole catalogue.

--criteria answers a list that others publish, line by line: pass, fail or not
readable, and why. It is made with the profile tenant at least; the exit status is
then 0 only if each line passes.

Exit status: 0 no finding at or above the severity of --fail-on; 1 such a
finding, or anything unknown; 2 bad input.

` + from.Help,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	from.Add(c)
	flags.StringVar(&f.topology, "topology", "", "topology file with the cables that are allowed")
	flags.StringVar(&f.since, "since", "", "earlier snapshot of the same fabric, for the checks that compare the two")
	flags.DurationVar(&f.options.MaxAge, "max-age", 0, "maximum age of a snapshot; anything older counts as unknown (default: any age)")
	flags.StringSliceVar(&f.managers, "manager", nil, "port GUIDs that subnet managers may be behind (default: the one that most ports name as their master's)")
	flags.StringVar(&f.profile, "profile", audit.Basic.String(), "basic; tenant if root on the hosts is not trusted; strict for what only some managers can do")
	flags.StringVar(&f.failOn, "fail-on", audit.High.String(), "lowest severity that makes the exit status 1: low, medium, high or critical")
	flags.StringVar(&f.criteria, "criteria", "", "answer a list of criteria: "+strings.Join(audit.CriteriaNames(), ", "))
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	return c
}

// load checks everything that was given before anything is sent.
func (f *auditFlags) load(c *cobra.Command) (err error) {
	if f.options.Profile, err = audit.ParseProfile(f.profile); err != nil {
		return terminal.WithMisuse(fmt.Errorf("--profile: %w", err))
	}
	if f.threshold, err = audit.ParseSeverity(f.failOn); err != nil {
		return terminal.WithMisuse(fmt.Errorf("--fail-on: %w", err))
	}
	if f.criteria != "" {
		if f.list, err = audit.ParseCriteria(f.criteria); err != nil {
			return terminal.WithMisuse(fmt.Errorf("--criteria %w", err))
		}
		f.options.Profile = max(f.options.Profile, audit.Tenant)
	}
	for _, text := range f.managers {
		guid, err := ib.ParsePortGUID(text)
		if err != nil {
			return terminal.WithMisuse(fmt.Errorf("--manager: %w", err))
		}
		f.intent.Managers = append(f.intent.Managers, guid)
	}
	if f.topology != "" {
		if f.intent.Cables, err = ReadCables(f.topology); err != nil {
			return terminal.WithMisuse(fmt.Errorf("--topology: %w", err))
		}
	}
	if f.options.MaxAge < 0 {
		return terminal.WithMisuse(fmt.Errorf("--max-age %v: want a time that is not negative", f.options.MaxAge))
	}
	if f.since != "" {
		if f.earlier, err = daemon.LoadSnapshot(f.since); err != nil {
			return terminal.WithMisuse(fmt.Errorf("--since: %w", err))
		}
		f.options.Earlier = f.earlier.Fabric
	}
	return f.source.Load(c)
}

// ReadCables reads the cables of a topology file.
func ReadCables(path string) ([]audit.Cable, error) {
	l, _, err := daemon.ReadTopology(path)
	if err != nil {
		return nil, err
	}
	out := []audit.Cable{}
	for _, x := range l.Links() {
		out = append(out, audit.Cable{A: observed.Place{Node: x.A, Port: x.APort}, B: observed.Place{Node: x.B, Port: x.BPort}})
	}
	return out, nil
}

func (f *auditFlags) run(c *cobra.Command) error {
	if err := f.load(c); err != nil {
		return err
	}
	r, err := f.source.Read(c, Reads(f.options.Profile))
	if err != nil {
		return err
	}
	f.options.KeysConcealed = f.earlier != nil && f.earlier.Concealed
	if f.earlier != nil && f.earlier.ReadAt.After(r.ReadAt) {
		return terminal.WithMisuse(fmt.Errorf("--since %s: read at %s, after what is audited", f.since, f.earlier.ReadAt.Format(time.RFC3339)))
	}
	if partitions, aliases, some, err := f.source.Policy(c, r.Fabric); err != nil {
		return err
	} else if some {
		f.intent.Partitions, f.intent.Aliases = partitions, aliases
	}
	var report *audit.Report
	_ = terminal.During(c.ErrOrStderr(), "auditing", func() error { // an audit always ends by itself
		report = JudgeAudit(r, f.intent, f.options)
		return nil
	})
	if f.criteria != "" {
		return printCriteria(c.OutOrStdout(), &f.list, report.Against(f.list), f.json)
	}
	if f.json {
		err = terminal.JSON(c.OutOrStdout(), report)
	} else {
		err = PrintAudit(c.OutOrStdout(), report)
	}
	if err != nil {
		return terminal.WithBad(err)
	}
	if report.Fails(f.threshold) {
		return terminal.WithBad(nil)
	}
	return nil
}

// printCriteria prints the answers to a list, and fails unless all are passes.
func printCriteria(w io.Writer, list *audit.Criteria, answers []audit.CriterionAnswer, asJSON bool) error {
	t := terminal.NewTable("line", "result", "what", "evidence")
	passed := true
	for _, a := range answers {
		t.Add(a.Line, a.Result, a.What, a.Evidence)
		passed = passed && a.Result == audit.Pass
	}
	if !asJSON {
		fmt.Fprintf(w, "%s\n\n", list.Source)
	}
	if err := t.Print(w, "criteria", asJSON); err != nil || !passed {
		return terminal.WithBad(err)
	}
	return nil
}

// Reads is what an audit needs of a fabric.
func Reads(p audit.Profile) sweep.Options {
	return sweep.Options{Forwarding: true, QoS: true, Audit: true, Multicast: p >= audit.Tenant}
}

// JudgeAudit audits what was read now or some time ago; what the reading itself says of its age,
// of keys and of what it could not read goes into the options.
func JudgeAudit(r *snapshot.Snapshot, intent audit.Intent, o audit.Options) *audit.Report {
	o.KeysConcealed = o.KeysConcealed || r.Concealed
	o.Age = time.Since(r.ReadAt)
	for _, x := range r.Faults {
		o.Unread = append(o.Unread, audit.Unread{Where: x.Where, What: x.Why})
	}
	return audit.Audit(r.Fabric, intent, o)
}

// placesMax bounds the places that are printed for one check; --json has more.
const placesMax = 5

// PrintAudit prints a report for people: the findings of each check together.
func PrintAudit(w io.Writer, r *audit.Report) error {
	titles := map[string]string{}
	for _, e := range audit.Catalogue() {
		titles[e.Check] = e.Title
	}
	findings := slices.Clone(r.Findings) // the worst first; unknown is 0, and last
	slices.SortStableFunc(findings, func(x, y audit.Finding) int { return cmp.Compare(y.Severity, x.Severity) })
	var b strings.Builder
	for i := 0; i < len(findings); {
		first := &findings[i]
		n := 1
		for i+n < len(findings) && findings[i+n].Check == first.Check && findings[i+n].Severity == first.Severity {
			n++
		}
		fmt.Fprintf(&b, "%-8s  %s (%d): %s\n", first.Severity, first.Check, first.Number, titles[first.Check])
		for _, x := range findings[i : i+min(n, placesMax)] {
			fmt.Fprintf(&b, "            %s: %s\n", terminal.Plain(x.Where), terminal.Plain(x.Read))
		}
		if n > placesMax {
			fmt.Fprintf(&b, "            and %d more places (--json has them)\n", n-placesMax)
		}
		fmt.Fprintf(&b, "          %s\n\n", first.Advice)
		i += n
	}
	if len(r.NotCheckable) > 0 {
		fmt.Fprintln(&b, "not checkable here:")
		for _, x := range r.NotCheckable {
			fmt.Fprintf(&b, "          %s (%d): %s\n", x.Check, x.Number, x.Reason)
		}
		fmt.Fprintln(&b)
	}
	c := &r.Counts
	failed := audit.MaxNumber - len(r.Passed) - len(r.NotCheckable) - len(r.Skipped)
	fmt.Fprintf(&b, "%d checks: %d found nothing, %d found something, %d not checkable here, %d only with a stricter --profile\n",
		audit.MaxNumber, len(r.Passed), failed, len(r.NotCheckable), len(r.Skipped))
	fmt.Fprintf(&b, "findings: %d critical, %d high, %d medium, %d low, %d unknown\n", c.Critical, c.High, c.Medium, c.Low, c.Unknown)
	_, err := io.WriteString(w, b.String())
	return err
}
