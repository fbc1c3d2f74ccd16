// routing*.go: implements `ibwarden show routing`: the judge's opinion of the routing
// that devices hold, and the load of links under patterns of traffic.

package look

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// The patterns of `ibwarden show routing`.
const (
	patternAll       = "all-to-all"
	patternShift     = "shift"
	patternBisection = "bisection"
	patternTenant    = "tenant"
)

var patterns = []string{patternAll, patternShift, patternBisection, patternTenant}

const (
	// roundsDefault is how many rounds of a pattern with partners are counted.
	roundsDefault = 64
	// roundsMax bounds --rounds.
	roundsMax = 100_000
	// bisectionSeed makes the random halves the same each time.
	bisectionSeed = 1
)

// routingCommand is the flags of `ibwarden show routing`.
type routingCommand struct {
	read     func(*cobra.Command, sweep.Options) (*snapshot.Snapshot, error)
	sls      []uint
	patterns []string
	rounds   int
	json     bool
	lfts     bool
}

// RoutingReport is what `ibwarden show routing --json` prints.
type RoutingReport struct {
	Right       bool     `json:"right"`
	Reasons     []string `json:"reasons"`
	Pairs       uint64   `json:"pairs"`
	Reached     uint64   `json:"reached"`
	Unreachable uint64   `json:"unreachable"`
	Apart       uint64   `json:"apart"`
	MeanLinks   float64  `json:"mean_links"`
	MostLinks   int      `json:"most_links"`
	SLs         []ib.SL  `json:"sls"`
	VLs         []ib.VL  `json:"vls"`
	// CreditLoop is empty where there is none.
	CreditLoop []Step         `json:"credit_loop"`
	Loads      []Load         `json:"loads"`
	Source     string         `json:"source"`
	ReadAt     string         `json:"read_at"`
	Faults     []RoutingFault `json:"faults"`
}

// Step is a link of a credit loop and what waits for the next.
type Step struct {
	Node ib.NodeGUID `json:"node"`
	Name string      `json:"name"`
	Port ib.PortNum  `json:"port"`
	VL   ib.VL       `json:"vl"`
	From string      `json:"from"`
	To   string      `json:"to"`
	DLID ib.LID      `json:"dlid"`
	SL   ib.SL       `json:"sl"`
}

// RoutingFault is what could not be read.
type RoutingFault struct {
	Where string `json:"where"`
	Why   string `json:"why"`
}

// Load is a routes.Load.
type Load struct {
	Pattern   string  `json:"pattern"`
	Rounds    int     `json:"rounds"`
	Flows     uint64  `json:"flows"`
	Lost      uint64  `json:"lost"`
	Links     int     `json:"links"`
	Used      int     `json:"used"`
	Worst     uint64  `json:"worst"`
	WorstAt   string  `json:"worst_at"`
	MeanWorst float64 `json:"mean_worst"`
	Mean      float64 `json:"mean"`
	MeanPath  float64 `json:"mean_path"`
	MostPath  int     `json:"most_path"`
}

// RoutingCommand returns the command. It reads a fabric, or a file, by read, after add has added the
// flags that say which; help says how a fabric is named.
func RoutingCommand(add func(*cobra.Command), read func(*cobra.Command, sweep.Options) (*snapshot.Snapshot, error), help string) *cobra.Command {
	f := routingCommand{read: read}
	c := &cobra.Command{
		Use:   "routing",
		Short: "Judge the routing of a fabric, and show the load of its links",
		Long: `Judge the routing that the devices of a fabric hold, whichever manager wrote it:
whether every end port reaches every other that cables connect it with, whether
packets go round, and whether links can wait for each other for ever (a credit
loop), over the virtual lanes that the packets take. The status is 1 where it is
not right.

Which service level a path has is told by subnet administration and is not in
any device: --sl says which levels packets have, each of them on every path.

Then patterns of traffic, and what they do to the links between switches, each
direction of a cable being a link: all-to-all has a flow from every host to every
other; shift has one from each host to that so many places after it, by switch
GUID and port, in each round another number of places; bisection pairs hosts at
random in each round; tenant has a flow between any two hosts whose P_Keys match.
WORST is the most flows that share a link, MEAN WORST the mean over the rounds.

Only SubnGet is sent.

` + help,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	add(c)
	flags := c.Flags()
	flags.UintSliceVar(&f.sls, "sl", []uint{0}, "service levels of packets, 0 to 15")
	flags.StringSliceVar(&f.patterns, "pattern", patterns, "patterns of traffic to count: "+strings.Join(patterns, ", "))
	flags.IntVar(&f.rounds, "rounds", roundsDefault, fmt.Sprintf("rounds of shift and bisection, 1 to %d", roundsMax))
	flags.BoolVar(&f.lfts, "lfts", false, "print the unicast forwarding tables instead, as OpenSM dumps them: for ibwarden run --lfts-file, and opensm -R file -U")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	return c
}

// What ends the command where not all is well.
var (
	errRoutingWrong = errors.New("the routing is not right")
	errNoLIDs       = errors.New("no end port has a LID: nobody manages this fabric")
	errNoLIDsRead   = errors.New("no LID of an end port was read")
)

func (f *routingCommand) check() error {
	for _, sl := range f.sls {
		if sl >= smp.SLCount {
			return terminal.WithMisuse(fmt.Errorf("--sl %d: want 0 to %d", sl, smp.SLCount-1))
		}
	}
	for _, p := range f.patterns {
		if !slices.Contains(patterns, p) {
			return terminal.WithMisuse(fmt.Errorf("--pattern %q: want one of %s", p, strings.Join(patterns, ", ")))
		}
	}
	if f.rounds < 1 || f.rounds > roundsMax {
		return terminal.WithMisuse(fmt.Errorf("--rounds %d: want 1 to %d", f.rounds, roundsMax))
	}
	return nil
}

func (f *routingCommand) run(c *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	r, err := f.read(c, sweep.Options{Forwarding: true, QoS: true, Multicast: true})
	if err != nil {
		return err
	}
	if f.lfts {
		unread, err := observed.WriteLFTs(c.OutOrStdout(), r.Fabric)
		if err == nil && unread > 0 {
			err = fmt.Errorf("the tables of %d switches were not read completely", unread)
		}
		if err != nil {
			return terminal.WithBad(err)
		}
		return nil
	}
	in := routes.Read(r.Fabric)
	if len(in.Ends) == 0 {
		if len(Guarded(r.Fabric)) > 0 {
			return terminal.WithBad(errNoLIDsRead)
		}
		return terminal.WithBad(errNoLIDs)
	}
	set := routes.SLs(0)
	for _, sl := range f.sls {
		set |= routes.SL(ib.SL(sl))
	}
	in.Levels.Of = []routes.SLs{set}
	in.Groups = routes.ReadGroups(r.Fabric, func(ib.LID) routes.SLs { return set })
	in.Parts, in.Parallel = runtime.GOMAXPROCS(0), inParallel
	v := routes.Judge(in)
	out := f.report(r, v)
	for _, p := range f.patterns {
		out.Loads = append(out.Loads, loadOf(p, f.rounds, in))
	}
	if f.json {
		err = terminal.JSON(c.OutOrStdout(), out)
	} else {
		err = out.print(c.OutOrStdout())
	}
	if err == nil && !v.Right() {
		err = errRoutingWrong
	}
	if err != nil {
		return terminal.WithBad(err)
	}
	return nil
}

// inParallel runs parts of a judgement on as many processors as there are.
func inParallel(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

func (f *routingCommand) report(r *snapshot.Snapshot, v *routes.Result) *RoutingReport {
	out := &RoutingReport{
		Right: v.Right(), Reasons: append([]string{}, v.Reasons()...), Pairs: v.Pairs, Reached: v.Reached, Unreachable: v.Unreachable, Apart: v.Apart,
		MeanLinks: v.MeanLinks(), MostLinks: v.Longest, VLs: append([]ib.VL{}, v.VLs...), CreditLoop: []Step{}, Loads: []Load{},
		Source: r.Source, ReadAt: r.ReadAt.UTC().Format(time.RFC3339), Faults: []RoutingFault{},
	}
	for _, x := range r.Faults {
		out.Faults = append(out.Faults, RoutingFault(x))
	}
	for _, sl := range f.sls {
		out.SLs = append(out.SLs, ib.SL(sl))
	}
	for _, w := range v.Deadlock {
		s := Step{Node: w.Out.Node.GUID(), Name: w.Out.Node.Name(), Port: w.Out.Num, VL: w.VL, DLID: w.LID, SL: w.SL}
		if w.From != nil {
			s.From = w.From.String()
		}
		if w.To != nil {
			s.To = w.To.String()
		}
		out.CreditLoop = append(out.CreditLoop, s)
	}
	return out
}

// loadOf counts a pattern.
func loadOf(pattern string, rounds int, in *routes.Input) Load {
	j := routes.Prepare(in)
	var l routes.Load
	switch pattern {
	case patternAll:
		l = j.AllToAll()
	case patternShift:
		l = j.Shift(rounds)
	case patternBisection:
		l = j.Bisection(rounds, bisectionSeed)
	case patternTenant:
		l = j.Tenants(tenantsOf(in.Fabric))
	}
	out := Load{
		Pattern: pattern, Rounds: l.Rounds, Flows: l.Flows, Lost: l.Lost, Links: l.Links, Used: l.Used,
		Worst: l.Worst, MeanWorst: l.MeanWorst, Mean: l.Mean, MeanPath: l.MeanPath(), MostPath: l.Longest,
	}
	if l.WorstAt != nil {
		out.WorstAt = l.WorstAt.String()
	}
	return out
}

// tenantsOf are the members of every partition, from the P_Key tables of CA and router
// ports.
func tenantsOf(f *observed.Fabric) []routes.Tenant {
	by := map[ib.PKeyBase]*routes.Tenant{}
	var bases []ib.PKeyBase
	for _, p := range f.EndPorts() {
		if p.Node.Switch != nil {
			continue
		}
		own := map[ib.PKeyBase]bool{} // true for full members
		for _, k := range p.ReadPKeys() {
			if k.IsValid() {
				own[k.Base()] = own[k.Base()] || k.IsFull()
			}
		}
		for base, full := range own {
			t := by[base]
			if t == nil {
				t = &routes.Tenant{}
				by[base], bases = t, append(bases, base)
			}
			if full {
				t.Full = append(t.Full, p)
			} else {
				t.Limited = append(t.Limited, p)
			}
		}
	}
	slices.Sort(bases)
	out := make([]routes.Tenant, 0, len(bases))
	for _, base := range bases {
		out = append(out, *by[base])
	}
	return out
}

func (r *RoutingReport) print(w io.Writer) error {
	verdict := "right: every pair is reached, nothing goes round, and no links can wait for each other for ever"
	if !r.Right {
		verdict = "not right"
	}
	fmt.Fprintln(w, "routing:", verdict)
	for _, reason := range r.Reasons {
		fmt.Fprintln(w, " ", terminal.Plain(reason))
	}
	fmt.Fprintf(w, "pairs: %d of %d are reached", r.Reached, r.Pairs)
	if r.Apart > 0 {
		fmt.Fprintf(w, ", %d more have no cables between them", r.Apart)
	}
	fmt.Fprintf(w, "\npaths: %.2f links between switches in the mean, %d at most\n", r.MeanLinks, r.MostLinks)
	fmt.Fprintf(w, "lanes: packets of SL %s take VL %s between switches\n", terminal.Plain(r.SLs), terminal.Plain(r.VLs))
	if len(r.Loads) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := terminal.NewTable("pattern", "rounds", "flows", "lost", "worst", "worst_at", "mean_worst", "mean", "used", "links", "mean_path", "most_path")
	for _, l := range r.Loads {
		t.Add(l.Pattern, l.Rounds, l.Flows, l.Lost, l.Worst, l.WorstAt, fmt.Sprintf("%.2f", l.MeanWorst), fmt.Sprintf("%.2f", l.Mean), l.Used, l.Links,
			fmt.Sprintf("%.2f", l.MeanPath), l.MostPath)
	}
	return t.Print(w, "loads", false)
}
