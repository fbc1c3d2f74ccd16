// sim*.go: implements `ibwarden sim`: it serves a simulated fabric, runs commands
// runInside one, and runs scenarios.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/lab/scenario"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/simserve/plug"
	"github.com/ibwarden/ibwarden/internal/simserve/umadfs"
	"github.com/ibwarden/ibwarden/internal/simserve/verbsd"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// simFlags are the simFlags of `ibwarden sim`.
type simFlags struct {
	socket, udp, capture, pace string
	hardware                   string
	noConsole, devices, verbs  bool
	anyUser                    bool
	script                     string
	properties                 []string
	seed                       uint64
}

// SimCommand is `ibwarden sim`.
func SimCommand() *cobra.Command {
	var f simFlags
	c := &cobra.Command{
		Use:   "sim [FILE|GENERATOR]",
		Short: "Serve a simulated fabric to programs written for ibsim",
		Long: `Serve a simulated fabric to programs written for ibsim: opensm, smpquery,
ibnetdiscover and the other diagnostics under libumad2sim, and ibwarden itself
(--fabric ibsim:SOCKET).

The fabric is the demonstration, a topology file of ibsim or ibnetdiscover, or
a generated one, as in --fabric sim:GENERATOR. When clients can connect, one line
that begins with "ready" is printed, with the environment that they need.

Commands are read from standard input, until its end; Help lists them.

With --script nothing is served: the statements of FILE run on the fabric, which
the file may name itself, and what they expect is reported. Exit status: 0 when
every expectation holds, 1 when one does not, 2 for a bad script.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.script != "" {
				if len(f.properties) > 0 {
					return terminal.WithMisuse(errors.New("--device: a script says itself, by device lines, what its devices are"))
				}
				return f.story(c, append(args, "")[0])
			}
			return f.run(c, append(args, "")[0])
		},
	}
	set := c.Flags()
	set.StringVar(&f.socket, "socket", ibsimd.DefaultSocket, "base of the socket names (IBSIM_SOCKNAME)")
	set.StringVar(&f.udp, "udp", "", "serve UDP instead, at this loopback port, or ADDRESS:PORT, and the ten ports after it; with --any-user, since UDP does not say who sends")
	set.BoolVar(&f.anyUser, "any-user", false, "let every user of this machine use the fabric, and write its tables (default: root and the user that starts this)")
	set.StringVar(&f.capture, "capture", "", "capture what clients and commands in sim exec send and get, and the data packets, in this file, for Wireshark")
	set.StringVar(&f.pace, "pace", "fast", "fast: clients do not wait for the fabric's delays; real: delays are as long as on a real fabric")
	set.StringVar(&f.hardware, "hardware", "", "management packets take as long as on hardware, where they wait for each other: default, or NAME=VALUE,... of "+strings.Join(fabric.HardwareNames, ", ")+", as metres=30,switch=130ns; clients wait for it with --pace real")
	set.StringVar(&f.script, "script", "", "run the scenario in this file instead of serving")
	set.StringArrayVar(&f.properties, "device", nil, "in what a device, or every one (*), differs: NODE NAME=VALUE..., as 'blue-1 pkey-nvram=on'; may be repeated")
	set.Uint64Var(&f.seed, "seed", 1, "seed of a scenario that names none")
	set.BoolVar(&f.devices, "devices", false, "let ibwarden sim exec run commands that see a node's /dev/infiniband")
	set.BoolVar(&f.verbs, "verbs", false, "let programs open devices of hosts, with the Go package ib/verbs")
	set.BoolVar(&f.noConsole, "no-console", false, "read no commands from standard input")
	c.AddCommand(newExec(), newGuest())
	return c
}

// newExec is `ibwarden sim exec`.
func newExec() *cobra.Command {
	var socket, node string
	c := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT]...",
		Short: "Run a command that sees a node of a served fabric in /dev/infiniband",
		Long: `Run a command that sees a node of a served fabric in /dev/infiniband.

The command, unmodified and without a preload, finds the node's ports in
/dev/infiniband and in sysfs, as on a host with an adapter; nobody else sees
them. The fabric is that of ibwarden sim --socket NAME --devices. It needs FUSE
and the right to mount, so root. Its exit status is the command's.

ibwarden's own commands keep their data in a directory of this host of this
fabric: IBWARDEN_DATA is set to one below /var/lib/ibwarden-sim, unless it is set.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			err := umadfs.Exec(socket, node, args, func(at umadfs.Place) ([]string, error) { return runInside(os.Environ(), socket, at) })
			if errors.Is(err, exec.ErrNotFound) {
				return terminal.WithMisuse(err)
			}
			return terminal.WithBad(err)
		},
	}
	c.Flags().StringVar(&socket, "socket", ibsimd.DefaultSocket, "name of the simulator")
	c.Flags().StringVar(&node, "node", "", "name of the node (default: the fabric's first CA)")
	c.Flags().SetInterspersed(false)
	return c
}

func (f *simFlags) run(c *cobra.Command, spec string) (err error) {
	if f.pace != "fast" && f.pace != "real" {
		return terminal.WithMisuse(fmt.Errorf("--pace %q: want fast or real", f.pace))
	}
	topology, err := f.topology(c, spec)
	if err == nil {
		err = topology.CheckLIDs(0)
	}
	if err != nil {
		return terminal.WithMisuse(err)
	}
	if _, err := strconv.ParseUint(f.udp, 10, 16); err == nil {
		f.udp = "127.0.0.1:" + f.udp
	}
	config := ibsimd.Config{Socket: f.socket, UDP: f.udp, Users: f.users(), Fabric: fabric.DefaultConfig(), RealTime: f.pace == "real"}
	if f.hardware != "" {
		if config.Fabric.Hardware, err = fabric.ParseHardware(f.hardware); err != nil {
			return terminal.WithMisuse(fmt.Errorf("--hardware: %w", err))
		}
	}
	if config.Fabric.Profile, err = f.profile(topology); err != nil {
		return terminal.WithMisuse(err)
	}
	if f.capture != "" {
		file, err := os.Create(f.capture)
		if err != nil {
			return terminal.WithMisuse(err)
		}
		defer func() {
			if closed := file.Close(); err == nil && closed != nil {
				err = terminal.WithBad(closed)
			}
		}()
		config.Capture = file
	}
	s, err := ibsimd.Listen(topology, config)
	if err != nil {
		return terminal.WithMisuse(err)
	}
	defer s.Close()
	if err := f.serve(c, s); err != nil && !errors.Is(err, context.Canceled) {
		return terminal.WithBad(err)
	}
	if _, was := terminal.EndedBy(c.Context()); was {
		fmt.Fprintln(c.ErrOrStderr(), "ibwarden: interrupted: the simulated fabric is gone, and all that was set on it")
	}
	return nil
}

// users are those who may use the fabric, by any of its doors.
func (f *simFlags) users() door.Users { return door.Users{Any: f.anyUser} }

// topology finds what to serve.
func (f *simFlags) topology(c *cobra.Command, spec string) (*topology.Netlist, error) {
	l, warnings, err := daemon.FindTopology(spec)
	for _, w := range warnings {
		fmt.Fprintln(c.ErrOrStderr(), "ibwarden:", w)
	}
	return l, err
}

// serve serves until the command is interrupted or the console says Quit.
func (f *simFlags) serve(c *cobra.Command, s *ibsimd.Server) error {
	ctx, quit := context.WithCancel(c.Context())
	defer quit()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer quit()
	if f.devices {
		devices, err := umadfs.Listen(f.socket, s)
		if err != nil {
			return err
		}
		devices.Users = f.users()
		s.Accompany(devices)
		serving.Go(func() { _ = devices.Serve(ctx) })
	}
	if f.verbs {
		l, err := verbsd.Listen(f.socket)
		if err != nil {
			return err
		}
		programs := verbsd.New(s)
		programs.Users = f.users()
		s.Accompany(programs)
		serving.Go(func() { _ = programs.Serve(ctx, l) })
	}
	if f.udp == "" {
		l, err := plug.Listen(f.socket)
		if err != nil {
			return err
		}
		guests := plug.New(s)
		guests.Users = f.users()
		serving.Go(func() { _ = guests.Serve(ctx, l) })
	}
	go func() {
		if errors.Is(f.converse(c, s), ibsimd.ErrQuit) {
			quit()
		}
	}()
	return s.Serve(ctx)
}

// converse carries out the commands of the topology, says that clients can
// come, and takes further commands.
func (f *simFlags) converse(c *cobra.Command, s *ibsimd.Server) error {
	console, l := newConsole(s, c.OutOrStdout()), s.Topology()
	for _, line := range l.Commands {
		if err := console.Execute(line); err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "ibwarden: do %s: %v\n", line, err)
		}
	}
	environment := append(s.Environment(), "LD_PRELOAD="+umad2sim())
	fmt.Fprintf(c.OutOrStdout(), "ready: %d nodes, %d links; clients need %s\n",
		len(l.Nodes), len(l.Links()), strings.Join(environment, " "))
	if f.devices {
		fmt.Fprintf(c.OutOrStdout(), "devices: ibwarden sim exec --socket %s [--node NAME] -- COMMAND\n", f.socket)
	}
	if f.verbs {
		fmt.Fprintf(c.OutOrStdout(), "verbs: programs open devices with verbs.Dial(%q, \"NODE\")\n", f.socket)
	}
	if f.noConsole {
		return nil
	}
	// In the background of a terminal a read would stop the program (`ibwarden sim
	// &`): it fails instead, and there is no console.
	signal.Ignore(syscall.SIGTTIN)
	prompt := ""
	if terminal.IsInteractive(c.InOrStdin()) {
		prompt = "sim> " // an interactive terminal
	}
	return console.Run(c.InOrStdin(), prompt)
}

// newConsole is a console with ibsim's commands and those of root on a host.
func newConsole(s *ibsimd.Server, out io.Writer) *ibsimd.Console {
	console := ibsimd.NewConsole(s, out)
	for _, x := range scenario.Statements() {
		console.Add(x.Name, x.Arguments, x.About, func(f *fabric.Fabric, arguments string) error { return x.Do(s.Topology(), f, arguments) })
	}
	return console
}

// umad2sim is where Debian has the library, or its name.
func umad2sim() string {
	for _, pattern := range []string{"/usr/lib/*/umad2sim/libumad2sim.so*", "/usr/lib*/umad2sim/libumad2sim.so*"} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return "libumad2sim.so"
}
