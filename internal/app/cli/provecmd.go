package cli

import (
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// proveFlags are the flags of `ibwarden prove`.
type proveFlags struct {
	cables string
	source source
	policy policyFlags
	maxAge time.Duration
	json   bool
	// certificate is a file to write; empty for none.
	certificate string
}

// proveReport is what `ibwarden prove --json` prints: the proof, and what it
// rests on.
type proveReport struct {
	*isolation.Proof
	Multicast  *isolation.Multicast `json:"multicast"`
	Policy     string               `json:"policy"`
	Source     string               `json:"source"`
	ReadAt     string               `json:"read_at"`
	Fabric     fabricCounts         `json:"fabric"`
	Partitions []partitionEntry     `json:"partitions"`
	Classes    []isolation.Class    `json:"classes"`
	// Packets counts every packet that end ports can send to each other, by disposition;
	// null where that is not computed.
	Packets map[string]uint64 `json:"packets"`
	// Cut lists ports that hold matching keys and whose packets do not arrive,
	// cutsListed at most.
	Cut []reach.Cut `json:"cut"`
	// Exact reports whether who can talk is what the policy says, no more and no
	// less; null without a policy.
	Exact  *bool               `json:"exact"`
	Faults []look.ReadingFault `json:"faults"`
	SMPs   *daemon.SMPs        `json:"smps"`
}

func newProve() *cobra.Command {
	var f proveFlags
	c := &cobra.Command{
		Use:   "prove",
		Short: "Prove from what devices hold who can talk to whom",
		Long: `Prove from the tables of the devices who can talk to whom, and whether that is
what the policy says. Only SubnGet is sent, whoever manages the fabric.

A violation comes with the two ports, the key, the path between them and the
entry at fault. The verdict is unknown if something could not be read, or was
read longer ago than --max-age.

The verdict is isolated-unguarded if a host could change what was proved; each
place is named: a port that accepts management writes from anyone, or a cable
between switches that is on no list.

For each multicast LID it prints how many ports the tables lead to, and whether
one partition holds all of them.

Without --policy nobody said who may talk with whom, so nothing is isolated: ports
that hold the same keys are listed together, and the verdict is open where every
host can talk with every other (exit status 1), else no-policy.

` + fabricHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.source.add(c)
	f.policy.add(c)
	c.Flags().StringVar(&f.cables, "cables", "", run.CablesHelp)
	c.Flags().DurationVar(&f.maxAge, "max-age", 0, "anything read longer ago counts as unknown (default: any age)")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	c.Flags().StringVar(&f.certificate, "certificate", "", certificateHelp)
	return c
}

func (f *proveFlags) run(c *cobra.Command) error {
	if f.maxAge < 0 {
		return misuse(fmt.Errorf("--max-age %v: want a time that is not negative", f.maxAge))
	}
	if err := f.policy.load(c); err != nil {
		return err
	}
	if done, err := f.certifiedByService(c); done || err != nil {
		return err
	}
	where := run.Cables{Data: f.source.where.reads.data, File: f.cables}
	list, err := where.LoadThere(f.source.where.spec)
	if err != nil {
		return err
	}
	var key ed25519.PrivateKey
	if f.certificate != "" {
		if key, err = f.signer(); err != nil {
			return err
		}
		f.source.signs = true
	}
	r, err := f.source.read(c, sweep.Options{Forwarding: true, Multicast: true})
	if err != nil {
		return err
	}
	if list == nil {
		if list, err = f.source.server.Cables(); err != nil {
			return misuse(err)
		}
	}
	proof, allowed, err := f.prove(c, r.Fabric)
	if err != nil {
		return err
	}
	proof.Rest(isolation.Changeable(r.Fabric, list.Declares()))
	proof.Heed(isolation.Unnamed(r.Fabric, nil))
	if age := time.Since(r.ReadAt); f.maxAge > 0 && age > f.maxAge {
		proof.Outdate(age, f.maxAge)
	}
	spread := isolation.ProveMulticast(r.Fabric, allowed, nil)
	if f.policy.loaded == nil && spread.Verdict.Holds() {
		spread.Verdict = isolation.NoPolicy
	}
	if err := f.report(c, r, proof, spread, allowed); err != nil {
		return err
	}
	if key != nil {
		if err := f.certify(c, key, r, allowed, list.Declares()); err != nil {
			return err
		}
	}
	return f.outcome(proof.Verdict, spread.Verdict)
}

// prove judges a fabric by the policy, or by nothing where there is none.
func (f *proveFlags) prove(c *cobra.Command, fabric *observed.Fabric) (*isolation.Proof, []observed.Partition, error) {
	if f.policy.loaded == nil {
		return isolation.ProveWithoutPolicy(fabric), isolation.AsTables(fabric), nil
	}
	allowed, err := f.policy.on(c.ErrOrStderr(), fabric)
	if err != nil {
		return nil, nil, err
	}
	raw := isolation.RawDenied
	if f.policy.loaded.AllowRaw {
		raw = isolation.RawAllowed
	}
	return isolation.Prove(fabric, allowed, raw), allowed, nil
}

// outcome is the exit status that verdicts have.
func (f *proveFlags) outcome(verdict, multicast isolation.Verdict) error {
	fine := func(v isolation.Verdict) bool { return v.Holds() || f.policy.loaded == nil && v == isolation.NoPolicy }
	switch {
	case verdict == isolation.Open:
		return bad(errOpen)
	case !fine(verdict) || !fine(multicast):
		return bad(terminal.ErrNotProved)
	}
	return nil
}

func (f *proveFlags) report(c *cobra.Command, r *look.Reading, proof *isolation.Proof, spread *isolation.Multicast, allowed []observed.Partition) error {
	d := proveReport{
		Proof: proof, Multicast: spread, Policy: f.policy.file, Source: r.Source, ReadAt: r.Time(), Fabric: countsOf(r.Fabric.Count()),
		Partitions: entriesOf(allowed), Classes: isolation.Classes(r.Fabric), Faults: r.Unread(), SMPs: r.SMPs,
	}
	packets, counted := reach.Count(r.Fabric)
	if counted {
		d.Packets = packets.ByName()
	}
	if d.Cut = reach.Cuts(r.Fabric, cutsListed); f.policy.loaded != nil {
		exact := proof.Verdict.Holds() && proof.Counts.Missing == 0 && counted && len(d.Cut) == 0
		d.Exact = &exact
	}
	if f.json {
		if err := terminal.JSON(c.OutOrStdout(), d); err != nil {
			return bad(err)
		}
		return nil
	}
	out := c.OutOrStdout()
	fmt.Fprintf(out, "%d switches, %d CAs, %d routers, %d links, read %s\n",
		d.Fabric.Switches, d.Fabric.CAs, d.Fabric.Routers, d.Fabric.Links, d.ReadAt)
	view := newVerdictPrinter(out, telemetry.LogOf(c.Context()), false)
	if f.policy.loaded == nil {
		if err := terminal.PrintClasses(out, d.Classes); err != nil {
			return bad(err)
		}
	}
	view.reportPartitions(d.Partitions)
	if counted {
		if err := terminal.PrintPackets(out, packets); err != nil {
			return bad(err)
		}
	}
	terminal.PrintWitnesses(out, "can talk against the policy", proof.Violations, proof.Counts.Violations)
	terminal.PrintWitnesses(out, "could talk against the policy if the first forged its table", proof.Exposed, proof.Counts.Exposed)
	view.reportCuts(proof, d.Cut)
	view.reportProof(proof, f.policy.loaded != nil, true)
	view.reportMulticast(spread)
	return nil
}

// cutsListed bounds the cut pairs in a report, and cutsShown those printed.
const (
	cutsListed = 256
	cutsShown  = 10
)

// reportCuts says who cannot talk that should.
func (r *verdictPrinter) reportCuts(proof *isolation.Proof, cuts []reach.Cut) {
	if n := proof.Counts.Missing; n > 0 {
		m := proof.Missing[0]
		fmt.Fprintf(r.out, "\n%d keys that the policy gives are missing, first %s at %s\n", n, m.PKey, terminal.Plain(m.Name))
	}
	if len(cuts) == 0 {
		return
	}
	fmt.Fprintf(r.out, "\nports that hold matching keys and do not reach each other:\n")
	for i, c := range cuts {
		if i == cutsShown {
			fmt.Fprintf(r.out, "  and more (--json lists up to %d)\n", cutsListed)
			return
		}
		fmt.Fprintf(r.out, "  %s to %s over %s: %s, %s\n", c.From, c.To, c.PKey, c.Disposition, terminal.Plain(c.Reason))
	}
}
