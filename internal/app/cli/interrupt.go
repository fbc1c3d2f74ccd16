package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// interruptGrace is how long an interrupted command may take to end by itself: its
// computations cannot be interrupted, and the process does not wait for them.
const interruptGrace = 2 * time.Second

// execute runs a command until it ends, or has been interrupted long enough.
func execute(ctx context.Context, root *cobra.Command) (command *cobra.Command, err error) {
	type outcome struct {
		command *cobra.Command
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		c, err := root.ExecuteContextC(ctx)
		done <- outcome{c, err}
	}()
	select {
	case o := <-done:
		return o.command, o.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(interruptGrace)
	defer grace.Stop()
	select {
	case o := <-done:
		return o.command, o.err
	case <-grace.C:
		return root, errComputing
	}
}

var errComputing = terminal.ExitInterrupted("in the middle of a computation; what had been written to the fabric stays, and nothing else was written")

// leftBy says what is left where a command was interrupted that does not say so
// itself: one that writes nothing to a fabric.
func leftBy(c *cobra.Command) string {
	switch c.Name() {
	case "snapshot":
		return "the fabric was being read; nothing was written to it, and no file was written: run it again"
	case "prove", "audit":
		return "the fabric was being read; nothing was written to it, and there is no verdict: run it again"
	case "doctor", "plan", "opensm", "trace", "why", "reach", "show", "learn", "diff", "accept":
		return "the fabric was being read; nothing was written, and there is no result: run it again"
	}
	return "not done; nothing was written to the fabric: run it again"
}
