package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
)

// bad is a result that is not good; said already when err is nil.
func bad(err error) error { return terminal.WithBad(err) }

// misuse is input that cannot be used.
func misuse(err error) error { return terminal.WithMisuse(err) }

// gcPercent trades a little processor time for memory: nearly all that lives
// is the snapshot and the desired tables, which grow once and stay.
const gcPercent = 30

// Main runs the command line and returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := terminal.Interruptible(context.Background())
	defer stop()
	var options telemetry.LogOptions
	root := newTree(&options)
	if slices.ContainsFunc(args, mayBeMoved) {
		root = newRoot(&options)
	}
	if os.Getenv("GOGC") == "" { // not for what makes the tree: it would be collected many times
		debug.SetGCPercent(gcPercent)
	}
	if slices.Equal(args, []string{"--version"}) {
		args = []string{"version"} // cobra's own way has a template, for which the linker keeps all methods there are
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	log := options.Default(stderr)
	root.SetErr(log.Lines())
	ctx = telemetry.WithLog(ctx, log)
	command, err := execute(ctx, root)
	log.Close()
	if err == nil {
		return terminal.ExitGood
	}
	if by, was := terminal.EndedBy(ctx); was && (errors.Is(err, context.Canceled) || errors.Is(err, terminal.ErrInterrupted)) {
		if !errors.Is(err, terminal.ErrInterrupted) {
			err = terminal.ExitInterrupted(leftBy(command))
		}
		err = &terminal.ExitError{Status: by.Status(), Err: err}
	}
	var failed *terminal.ExitError
	if !errors.As(err, &failed) {
		failed = &terminal.ExitError{Status: terminal.Misuse, Err: err} // cobra's own: an unknown command or flag
	}
	if failed.Err != nil {
		log.Fail(failed.Err)
	}
	return failed.Status
}

// Root is the command line as a value, for what is made of its help.
func Root() *cobra.Command { return newRoot(new(telemetry.LogOptions)) }

// newRoot is the command line, with the old names of commands.
func newRoot(o *telemetry.LogOptions) *cobra.Command {
	root := newTree(o)
	addMoved(root, func() *cobra.Command { return newTree(new(telemetry.LogOptions)) })
	return root
}

// newTree is the command line as the help lists it.
func newTree(o *telemetry.LogOptions) *cobra.Command {
	root := &cobra.Command{
		Use:   "ibwarden",
		Short: "An InfiniBand subnet manager that keeps tenants apart, and proves it",
		Long: `An InfiniBand subnet manager that keeps tenants apart, and proves it.

` + fabricHelp + `
Exit status: 0 success; 1 not completed or not proved; 2 bad input, and then nothing
was sent that writes; 130 or 143 interrupted before it was done.`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return terminal.OrMisuse(telemetry.LogOf(c.Context()).Apply(o))
		},
	}
	o.Add(root.PersistentFlags())
	root.SetFlagErrorFunc(flagError)
	addCommands(root)
	root.Flags().Bool("version", false, "print version and build, as ibwarden version does")
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	addGroups(root)
	AddCompletion(root)
	addExamples(root)
	return root
}

func addCommands(root *cobra.Command) {
	root.AddCommand(newPlan(), newApply(), newTopology(), newDevice(), MigrateCommand(addFabric, commandOf, fabricHelp), SimCommand(), look.DoctorCommand(addFabric, daemon.Demonstration, fabricHelp), newSnapshot(), newProve(), look.TraceCommand(forTrace()), look.WhyCommand(forWhy()), look.AuditCommand(forAudit()), newDemo(), terminal.VersionCommand(), newHandover())
	root.AddCommand(servicecmd.Commands()...)
	run, show, keys, policy := newRun(), newShow(), newKeys(), newPolicy()
	configuration := Command(forConfig(), commandOf)
	// Run reads its own configuration before anything else: these commands do not.
	configuration.PersistentPreRunE = root.PersistentPreRunE
	run.AddCommand(configuration)
	show.AddCommand(look.DevicesCommand(), look.NewReach(forWhy()), newManagers(addFabric, fabricHelp), newShadow())
	show.AddCommand(servicecmd.Shows()...)
	show.AddCommand(withoutJSON(servicecmd.Console(), "an address is printed, and nothing else"))
	keys.AddCommand(withoutJSON(ExecCommand(addFabric), "what the program prints is not changed"))
	policy.AddCommand(servicecmd.Export())
	root.AddCommand(run, show, keys, policy)
}

const fabricHelp = `A fabric (--fabric) is one of
  sim                           the embedded demonstration fabric (default)
  sim:FILE                      a topology file, of ibsim or ibnetdiscover
  sim:fattree,radix=36,levels=2 a generated one; also torus, dragonfly, random
  ibsim[:SOCKNAME]              a running ibsim; IBSIM_SOCKNAME, SIM_HOST and
                                IBSIM_SERVER_* are read as libumad2sim reads them
  umad[:DEVICE[/PORT]]          an adapter of this machine (ibwarden show adapters);
                                by itself the first InfiniBand port that is up
`
