package servicecmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// output keeps the first error of what is written to it.
type output struct {
	io.Writer
	err error
}

func (w *output) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// whole has a command, and those below it, fail when their output could not be written: a file
// on a full disk has half an answer, and must not be taken for all of it. A terminal shows that.
func whole(list ...*cobra.Command) []*cobra.Command {
	for _, c := range list {
		whole(c.Commands()...)
		run := c.RunE
		if run == nil {
			continue
		}
		c.RunE = func(c *cobra.Command, args []string) error {
			if terminal.IsTerminal(c.OutOrStdout()) {
				return run(c, args)
			}
			out := &output{Writer: c.OutOrStdout()}
			c.SetOut(out)
			err := run(c, args)
			if err == nil && out.err != nil {
				err = terminal.WithBad(out.err)
			}
			return err
		}
	}
	return list
}
