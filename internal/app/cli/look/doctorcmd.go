// doctor*.go: implements `ibwarden doctor`: what of this host, its adapters and its
// fabric is ready.

package look

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// Fabric adds the flags that choose a fabric, and returns what opens it, with the keys
// for reading it.
type Fabric func(*pflag.FlagSet) (open func(*cobra.Command) (link.Link, sweep.Options, error))

// DoctorCommand is `ibwarden doctor`; demonstration is the default of other commands for
// --fabric, and help lists what a fabric may be.
func DoctorCommand(fabric Fabric, demonstration, help string) *cobra.Command {
	var hostOnly, asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Say what of this host, its adapters and its fabric is ready", Args: cobra.NoArgs,
		Long: `Say what of this host, its adapters and its fabric is ready, what is missing, and the
command that fixes it. Nothing is written to the host or to the fabric: files are only
looked at, and only SubnGet is sent.

Each line has a status: ok; warning, for something to know; missing, without which the
fabric cannot be audited from here; skipped, for what was not looked at.

Exit status: 0 the fabric can be audited from here; 1 something is missing; 2 bad input.

Without --fabric the fabric is umad.

` + strings.Replace(help, " (default)", "", 1),
	}
	open := fabric(c.Flags())
	if f := c.Flags().Lookup("fabric"); f.DefValue == demonstration { // a doctor is for what is there
		f.DefValue = adapters
		_ = f.Value.Set(adapters) // a string takes any
	}
	c.Flags().BoolVar(&hostOnly, "host-only", false, "send nothing: look at this host only")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	c.RunE = func(c *cobra.Command, _ []string) error {
		report, err := examine(c, hostOnly, open)
		if err != nil {
			return err
		}
		if asJSON {
			err = terminal.JSON(c.OutOrStdout(), report)
		} else {
			err = printed(c.OutOrStdout(), report)
		}
		if err != nil {
			return terminal.WithBad(err)
		}
		if !report.Ready {
			return terminal.WithBad(fmt.Errorf("%s missing: this fabric cannot be audited from here", terminal.Count(missing(report), "thing")+are(missing(report))))
		}
		return nil
	}
	return c
}

// adapters is the first port of this host that can be managed.
const adapters = "umad"

func are(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

func missing(r *DoctorReport) (n int) {
	for _, c := range r.Checks {
		if c.Status == Missing {
			n++
		}
	}
	return n
}

func examine(c *cobra.Command, hostOnly bool, open func(*cobra.Command) (link.Link, sweep.Options, error)) (*DoctorReport, error) {
	flags := c.Flags()
	var want Choice
	want.Fabric = flags.Lookup("fabric").Value.String()
	if kind, place, _ := strings.Cut(want.Fabric, ":"); kind == adapters {
		if _, err := umad.ParsePlace(place); err != nil {
			return nil, terminal.WithMisuse(err)
		}
	}
	if text := flags.Lookup("guid").Value.String(); text != "" {
		guid, err := ib.ParsePortGUID(text)
		if err != nil {
			return nil, terminal.WithMisuse(fmt.Errorf("--guid: %w", err))
		}
		want.GUID = guid
	}
	dir, err := daemon.DefaultDataDir(adapters)
	if named := flags.Lookup("data").Value.String(); named != "" {
		dir, err = daemon.DataDir(named), nil
	}
	if err != nil {
		dir = "" // of who has no home: there is nothing to look at
	}
	report := CheckHost(LookAtHost(daemon.Root(), string(dir)), want)
	if !report.Ready || hostOnly {
		report.Finish(nil, nil, hostOnly)
		return report, nil
	}
	to, o, err := open(c)
	if err != nil {
		var failed *terminal.ExitError
		if errors.As(err, &failed) && failed.Status == terminal.Misuse {
			return nil, err
		}
		report.Finish(nil, err, false)
		return report, nil
	}
	defer to.Close()
	managers, faults, f, err := daemon.FabricManagers(c.Context(), to, o, terminal.ReadingProgress(c.ErrOrStderr()))
	if c.Context().Err() != nil {
		return nil, terminal.WithBad(c.Context().Err())
	}
	if err != nil {
		report.Finish(nil, err, false)
		return report, nil
	}
	report.Finish(SurveyOf(f, faults, managers), nil, false)
	return report, nil
}

// printed prints a report for people.
func printed(w io.Writer, r *DoctorReport) error {
	width := 0
	for _, c := range r.Checks {
		width = max(width, len([]rune(c.Subject)))
	}
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", c.Status, width, c.Subject, c.Text)
		for _, x := range c.Commands {
			fmt.Fprintf(&b, "%-7s  %-*s    $ %s\n", "", width, "", x)
		}
	}
	if len(r.Next) > 0 {
		fmt.Fprintf(&b, "\nready: the fabric can be audited from here\n")
		for _, x := range r.Next {
			fmt.Fprintf(&b, "  $ %s\n", x)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
