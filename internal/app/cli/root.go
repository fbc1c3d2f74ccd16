package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/about"
	"github.com/ibwarden/ibwarden/internal/app/cli/auditcmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/completion"
	"github.com/ibwarden/ibwarden/internal/app/cli/configcmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/devicescmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/doctorcmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/execcmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/exit"
	"github.com/ibwarden/ibwarden/internal/app/cli/getcmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/ledcmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/logs"
	"github.com/ibwarden/ibwarden/internal/app/cli/managerscmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/migratecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/simcmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/tracecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/whycmd"
)

// bad is a result that is not good; said already when err is nil.
func bad(err error) error { return exit.WithBad(err) }

// misuse is input that cannot be used.
func misuse(err error) error { return exit.WithMisuse(err) }

// gcPercent trades a little processor time for memory: nearly all that lives
// is the snapshot and the desired tables, which grow once and stay.
const gcPercent = 30

// Main runs the command line and returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := exit.Interruptible(context.Background())
	defer stop()
	var options logs.Options
	root := newRoot(&options)
	root.SetArgs(args)
	root.SetOut(stdout)
	log := options.Default(stderr)
	root.SetErr(log.Lines())
	ctx = logs.With(ctx, log)
	command, err := execute(ctx, root)
	log.Close()
	if err == nil {
		return exit.Good
	}
	if by, was := exit.By(ctx); was && (errors.Is(err, context.Canceled) || errors.Is(err, exit.ErrInterrupted)) {
		if !errors.Is(err, exit.ErrInterrupted) {
			err = exit.Interrupted(leftBy(command))
		}
		err = &exit.Error{Status: by.Status(), Err: err}
	}
	var failed *exit.Error
	if !errors.As(err, &failed) {
		failed = &exit.Error{Status: exit.Misuse, Err: err} // cobra's own: an unknown command or flag
	}
	if failed.Err != nil {
		log.Fail(failed.Err)
	}
	return failed.Status
}

// Root is the command line as a value, for what is made of its help.
func Root() *cobra.Command { return newRoot(new(logs.Options)) }

func newRoot(o *logs.Options) *cobra.Command {
	root := &cobra.Command{
		Use:   "ibwarden",
		Short: "An InfiniBand subnet manager that keeps tenants apart, and proves it",
		Long: `An InfiniBand subnet manager that keeps tenants apart, and proves it.

` + fabricHelp + `
Exit status: 0 success; 1 not completed or not proved; 2 bad input, and then nothing
was sent that writes; 130 or 143 interrupted before it was done.`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return orMisuse(logs.From(c.Context()).Apply(o))
		},
	}
	o.Add(root.PersistentFlags())
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRun(), newPlan(), newApply(), newShow(), newTopology(), newKeys(), getcmd.New(forGet()), getcmd.NewSet(addFabric, fabricHelp), ledcmd.New(addFabric, commandOf, fabricHelp), newPolicy(), migratecmd.New(addFabric, commandOf, fabricHelp), configcmd.Command(forConfig(), commandOf), simcmd.New(), devicescmd.New(), doctorcmd.Command(addFabric, demonstration, fabricHelp), newSnapshot(), newProve(), tracecmd.Command(forTrace()), whycmd.New(forWhy()), whycmd.NewReach(forWhy()), auditcmd.Command(forAudit()), about.Command())
	root.AddCommand(execcmd.New(addFabric))
	root.AddCommand(servicecmd.Commands()...)
	root.AddCommand(managerscmd.Commands(addFabric, fabricHelp)...)
	root.Version = about.This().String()
	root.Flags().Bool("version", false, "print version and build, as ibwarden version does")
	root.SetVersionTemplate("{{.Version}}\n")
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	completion.Add(root)
	addExamples(root)
	return root
}

const fabricHelp = `A fabric (--fabric) is one of
  sim                           the embedded demonstration fabric (default)
  sim:FILE                      a topology file, of ibsim or ibnetdiscover
  sim:fattree,radix=36,levels=2 a generated one; also torus, dragonfly, random
  ibsim[:SOCKNAME]              a running ibsim; IBSIM_SOCKNAME, SIM_HOST and
                                IBSIM_SERVER_* are read as libumad2sim reads them
  umad[:DEVICE[/PORT]]          an adapter of this machine (ibwarden devices);
                                by itself the first InfiniBand port that is up
`
