package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/demo"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
)

// newDemo is `ibwarden demo`. Its manager is `ibwarden run` in this process, with a log of its own.
func newDemo() *cobra.Command {
	console := func(s *ibsimd.Server) *ibsimd.Console { return newConsole(s, io.Discard) }
	return demo.Command(console, func(ctx context.Context, args []string, to io.Writer) error {
		var options telemetry.LogOptions
		root := newTree(&options)
		root.SetArgs(args)
		root.SetOut(to)
		log := options.Default(to)
		defer log.Close()
		root.SetErr(log.Lines())
		return root.ExecuteContext(telemetry.WithLog(ctx, log))
	})
}
