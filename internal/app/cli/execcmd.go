// This file implements `ibwarden keys exec`: a program that was written for fabrics without
// M_Keys, run on one with them.

package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/app/withkeys"
	"github.com/ibwarden/ibwarden/internal/app/withkeys/inside"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

const (
	// A table of the service costs a question over its socket; one from files costs a reading
	// of the fabric.
	serviceFresh, serviceLeast = 2 * time.Second, 500 * time.Millisecond
	filesFresh, filesLeast     = time.Minute, 5 * time.Second

	// within is the flag by which this program calls itself in the namespace.
	within  = "inside"
	adapter = "umad"
)

// execCommand is what the flags say.
type execCommand struct {
	open   func(*cobra.Command) (link.Link, sweep.Options, error)
	server string
	write  bool
	words  []string
	close  []func()
}

// ExecCommand returns the command. Add adds the flags that name a fabric, and returns what opens it.
func ExecCommand(add func(*pflag.FlagSet) func(*cobra.Command) (link.Link, sweep.Options, error)) *cobra.Command {
	var f execCommand
	var called bool
	c := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT]...",
		Short: "Run a program that reads the fabric, with the M_Key of each port in its packets",
		Long: `Run a program that reads the fabric, with the M_Key of each port in its packets.

Where ports have M_Keys of level 2 (profiles tenant and strict) they answer to nobody
without them, and each port has its own: ibnetdiscover, iblinkinfo, perfquery by LID,
ibdiagnet and exporters find nothing. Under ibwarden keys exec they run unmodified, for root
on a manager's host: they see a /dev/infiniband of their own with one umad file, whose
packets go to the adapter with the key of the port that each is for. The keys come from
the service that runs on this machine, over a socket for root and the service's own
user, or from a data directory (--data). They stay in the memory of ibwarden keys exec: in
what the program reads, every M_Key is 0.

Only what reads is let through. --write also lets Sets of subnet and performance
management through (perfquery -R, ibportstate), never one of SMInfo; M_Keys, their
level and their lease stay as they are, whatever is set. A program cannot be a subnet
manager: there is no issm file. What is refused fails in the program with "Operation not
permitted", and ibwarden says why, once for each kind.

The command line is entered in the audit log of the service (action exec); without a
service it is in the log, which is standard error. Exit status: that of the program.

--fabric is umad[:DEVICE[/PORT]], an adapter of this machine (default: the first
InfiniBand port that is up), in ibwarden sim exec too.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if f.words = args; called {
				return terminal.WithBad(inside.Inside(args))
			}
			defer f.end()
			return f.run(c)
		},
	}
	f.open = add(c.Flags())
	if fabric := c.Flags().Lookup("fabric"); os.Getenv("IBWARDEN_FABRIC") == "" {
		fabric.DefValue = adapter
		_ = fabric.Value.Set(adapter) // any text will do
	}
	c.Flags().StringVar(&f.server, "server", "", "take the keys from this service, unix:PATH of this machine, or from none (default: the one that runs on this machine, or on --data DIR)")
	c.Flags().BoolVar(&f.write, "write", false, "let Sets of subnet and performance management through")
	c.Flags().BoolVar(&called, within, false, "for ibwarden keys exec itself")
	_ = c.Flags().MarkHidden(within) // it is there
	c.Flags().SetInterspersed(false)
	return c
}

func (f *execCommand) end() {
	for _, x := range f.close {
		x()
	}
}

func (f *execCommand) run(c *cobra.Command) error {
	if _, err := exec.LookPath(f.words[0]); err != nil {
		return terminal.WithMisuse(err)
	}
	port, err := f.port(c)
	if err != nil {
		return err
	}
	if err := inside.Hide(); err != nil {
		return terminal.WithBad(err)
	}
	log := telemetry.LogOf(c.Context())
	gate := &withkeys.Gate{Write: f.write, Now: time.Now, Say: func(text string) { log.Warn("exec: " + text) }}
	if err := f.keys(c, gate); err != nil {
		return err
	}
	if err := gate.Refresh(); err != nil {
		return terminal.WithBad(fmt.Errorf("M_Keys: %w", err))
	}
	if gate.Keys() == 0 {
		return terminal.WithBad(errors.New("M_Keys: no port has one that is known here: run the program without ibwarden keys exec"))
	}
	status, err := inside.Run(c.Context(), inside.Program{
		Words: f.words, Inside: []string{"keys", "exec", "--" + within, "--"}, Port: port, Root: daemon.Root(), Gate: gate,
		Stdin: c.InOrStdin(), Stdout: c.OutOrStdout(), Stderr: os.Stderr,
	})
	switch {
	case err != nil:
		return terminal.WithBad(err)
	case status != 0:
		return &terminal.ExitError{Status: status}
	}
	return nil
}

// port is the adapter's port that --fabric and --guid mean.
func (f *execCommand) port(c *cobra.Command) (p umad.Port, err error) {
	spec := c.Flags().Lookup("fabric").Value.String()
	kind, rest, _ := strings.Cut(spec, ":")
	if kind != adapter {
		return p, terminal.WithMisuse(fmt.Errorf("--fabric %s: a program gets a /dev/infiniband in front of an adapter: want umad[:DEVICE[/PORT]], or run all of it in ibwarden sim exec", spec))
	}
	place, err := umad.ParsePlace(rest)
	if err != nil {
		return p, terminal.WithMisuse(err)
	}
	if text := c.Flags().Lookup("guid").Value.String(); text != "" {
		if place.GUID, err = ib.ParsePortGUID(text); err != nil {
			return p, terminal.WithMisuse(fmt.Errorf("--guid: %w", err))
		}
	}
	devices, err := daemon.Devices()
	if err == nil {
		p, err = umad.Choose(devices, place)
	}
	if err != nil {
		return p, terminal.WithBad(err)
	}
	return p, nil
}

// keys says where the gate's keys come from: a service, where one is named or runs; else
// files.
func (f *execCommand) keys(c *cobra.Command, gate *withkeys.Gate) error {
	socket, err := f.socket(c)
	if err != nil {
		return err
	}
	if socket != "" {
		v := withkeys.NewClient(socket, withkeys.Request{Words: f.words, Write: f.write})
		f.close = append(f.close, v.Close)
		gate.Table, gate.Fresh, gate.Least = v.Table, serviceFresh, serviceLeast
		return nil
	}
	to, reads, err := f.open(c)
	if err != nil {
		return err
	}
	f.close = append(f.close, func() { to.Close() })
	if reads.Keys == nil && reads.MKey == 0 {
		return terminal.WithMisuse(errors.New("M_Keys: no service hands them out on this machine, and there is no data directory with a master secret: run this on a manager's host, as root or as the user of the service, or give --data DIR"))
	}
	gate.Table = func() (*withkeys.Table, error) {
		r, err := daemon.Read(c.Context(), to, reads)
		if err != nil {
			return nil, err
		}
		return withkeys.Of(r.Fabric), nil
	}
	gate.Fresh, gate.Least = filesFresh, filesLeast
	request := withkeys.Request{Words: f.words, Write: f.write}
	telemetry.LogOf(c.Context()).Info("exec: " + terminal.Plain(request.String()))
	return nil
}

// socket is that of the service to ask; "" for none.
func (f *execCommand) socket(c *cobra.Command) (string, error) {
	if f.server == listen.NoSocket {
		return "", nil
	}
	if f.server != "" {
		s, err := listen.ParseServer(f.server)
		if err == nil && s.Socket == "" {
			err = fmt.Errorf("%s: M_Keys are handed out on the machine of the service alone: want unix:PATH", f.server)
		}
		if err != nil {
			return "", terminal.WithMisuse(fmt.Errorf("--server: %w", err))
		}
		return s.Socket, nil
	}
	for _, name := range []string{"m-key-file", "secret-file"} {
		if c.Flags().Changed(name) {
			return "", nil
		}
	}
	for _, path := range servicecmd.Places(c.Flags().Lookup("data").Value.String()) {
		if withkeys.IsOpen(path) {
			return path, nil
		}
	}
	return "", nil
}
