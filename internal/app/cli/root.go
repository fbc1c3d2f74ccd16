package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/about"
	"github.com/ibwarden/ibwarden/internal/app/cli/completion"
	"github.com/ibwarden/ibwarden/internal/app/cli/exit"
	"github.com/ibwarden/ibwarden/internal/app/cli/simcmd"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exit.Good
	}
	var failed *exit.Error
	if !errors.As(err, &failed) {
		failed = &exit.Error{Status: exit.Misuse, Err: err} // cobra's own: an unknown command or flag
	}
	if failed.Err != nil {
		fmt.Fprintln(stderr, "ibwarden:", failed.Err)
	}
	return failed.Status
}

// Root is the command line as a value, for what is made of its help.
func Root() *cobra.Command { return newRoot() }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "ibwarden",
		Short: "An InfiniBand subnet manager that keeps tenants apart, and proves it",
		Long: `An InfiniBand subnet manager that keeps tenants apart, and proves it.

` + fabricHelp + `
Exit status: 0 good; 1 not reached or not proved; 2 bad input, and then nothing
was sent that writes.`,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRun: func(c *cobra.Command, _ []string) { sayDemonstration(c) },
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRun(), newPlan(), newApply(), newShow(), newTopology(), newKeys(), newPolicy(), simcmd.New(), newDevices(), newSnapshot(), newProve(), newTrace(), newAudit(), newVersion())
	root.Version = about.This().String()
	root.Flags().Bool("version", false, "say what program this is, as ibwarden version does")
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
