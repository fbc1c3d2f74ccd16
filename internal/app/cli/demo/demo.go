// Package demo implements `ibwarden demo`: a fabric with two tenants, a manager and its console,
// on which something happens.
package demo

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
)

//go:embed policy.yaml
var policy []byte

const (
	tamperEvery = time.Minute            // between two changes that root of a host makes
	logMost     = 1 << 20                // bytes of the log that an error shows
	startLimit  = 2 * time.Minute        // for the first verdict
	askEvery    = 100 * time.Millisecond // while that is waited for
)

// Console is a console of a simulated fabric, with the commands of root on a host.
type Console func(*ibsimd.Server) *ibsimd.Console

// Manage runs `ibwarden run` with these arguments until ctx ends; what it prints goes to log.
type Manage func(ctx context.Context, args []string, log io.Writer) error

// Command is `ibwarden demo`.
func Command(console Console, manage Manage) *cobra.Command {
	var address string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show what ibwarden does, on a simulated fabric with two tenants",
		Long: fmt.Sprintf(`Show what ibwarden does, on a simulated fabric with two tenants.

A manager runs on a fabric of 16 hosts. Tenants red and blue have 6 hosts each and send
data; blue waits for red's consent to share a partition, a cable is pulled, and every
%v root of a host of red writes a P_Key of blue into its port. An address is printed that
opens the console with a tour of ten steps; it logs in once, within %v. Enter prints another.

It needs no adapter and no root, and works in a temporary directory, which is removed
when it is interrupted. Nobody else on this machine can use the fabric.`, tamperEvery, listen.CodeLife),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := run(c, address, console, manage)
			if _, was := terminal.EndedBy(c.Context()); was {
				return nil
			}
			var said *terminal.ExitError
			if errors.As(err, &said) && said.Status == terminal.Misuse { // of --listen: the log says no more
				return err
			}
			return terminal.WithBad(err)
		},
	}
	c.Flags().StringVar(&address, "listen", "127.0.0.1:0", "loopback ADDRESS:PORT of the console, port 0 for any that is free")
	return c
}

// run demonstrates until the command is interrupted, or something fails.
func run(c *cobra.Command, address string, console Console, manage Manage) (err error) {
	dir, err := os.MkdirTemp("", "ibwarden-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, policy, 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	fabric, err := newFabric(fmt.Sprintf("ibwarden-demo-%d", os.Getpid()), console)
	if err != nil {
		return err
	}
	defer fabric.server.Close()

	ctx, fail := context.WithCancelCause(c.Context())
	// The fabric outlives what uses it: a manager asks until it has ended.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() {
		err := fabric.server.Serve(serving)
		if serving.Err() == nil {
			fail(fmt.Errorf("fabric: %w", err))
		}
		served <- err
	}()
	defer func() {
		stop()
		<-served
	}()
	var parts sync.WaitGroup
	defer parts.Wait()
	defer fail(nil)
	part := func(what string, run func(context.Context) error) {
		parts.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	part("manager", func(ctx context.Context) error {
		err := manage(ctx, []string{"run", "--fabric", "ibsim:" + fabric.server.Name(), "--policy", file, "--data", dir,
			"--listen", address, "--metrics", "127.0.0.1:0", "--counters-period", "1s", "--quarantine", "0s"}, log)
		text, _ := files.Read(log.Name(), logMost) // what there is of it
		return fmt.Errorf("it ended: %w\n%s", cmp.Or(err, errors.New("nobody asked for that")), text)
	})
	site := &site{dir: dir, out: c.OutOrStdout()}
	err = site.setUp(ctx, fabric)
	if err == nil {
		part("traffic", fabric.traffic)
		part("tampering", fabric.tamper)
		err = site.addresses(ctx, c.InOrStdin())
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// addresses prints an address that opens the console, and another for each line that is read, until ctx
// ends.
func (s *site) addresses(ctx context.Context, in io.Reader) error {
	// In the background of a terminal a read would stop the program: it fails instead.
	signal.Ignore(syscall.SIGTTIN)
	lines := make(chan struct{})
	go func() { // ends with the program: a read cannot be interrupted
		for t := bufio.NewScanner(in); t.Scan(); {
			select {
			case lines <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		if err := s.printAddress(ctx); err != nil {
			return err
		}
		select {
		case <-lines:
		case <-ctx.Done():
			return nil
		}
	}
}
