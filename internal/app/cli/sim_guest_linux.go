package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/simserve/guest"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
)

// guestMemoryMin is the least memory of a machine, in MB: with less, the kernel has none left while it boots.
const guestMemoryMin = 112

// escape is the byte of Ctrl-], which ends the machine at its console.
const escape = 0x1d

// newGuest is `ibwarden sim guest`.
func newGuest() *cobra.Command {
	at := guest.Client{Socket: ibsimd.DefaultSocket}
	var nodes, packages, more []string
	var lie guest.Lie
	memory := guest.DefaultMemory
	c := &cobra.Command{
		Use:   "guest",
		Short: "Boot Linux machines in the place of hosts of a served fabric",
		Long: `Boot Linux machines in the place of hosts of a served fabric: Debian's kernel,
unmodified, in QEMU, with an adapter (QLogic's IBA6120, driver ib_qib) whose cable is
that of the host. It has the GUID of the host's port, for node and port, and at first
no keys, as a host that was just switched on. When it ends, the simulated host is back.

The fabric is that of ibwarden sim --socket NAME. One machine alone has the terminal as
its console, where Ctrl-] ends it. Without a terminal, and of several, one line that
begins with "ready" is printed when they have booted, and they run until SIGINT, SIGTERM
or guest stop.

It needs Debian, its package qemu-system-x86, and the lists of its packages
(apt-get update); not KVM, and no rights. The kernel and the programs are downloaded
as packages, once, into the user's cache directory.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if memory < guestMemoryMin {
				return terminal.WithMisuse(fmt.Errorf("--memory %d: want at least %d MB", memory, guestMemoryMin))
			}
			return runGuests(c, at.Socket, nodes, memory, packages, more, lie)
		},
	}
	node := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVar(&at.Node, "node", "", "name of the host")
		_ = c.MarkFlagRequired("node") // there is such a flag
		return c
	}
	c.Flags().StringArrayVar(&nodes, "node", nil, "name of the host; may be repeated")
	_ = c.MarkFlagRequired("node")
	c.Flags().IntVar(&memory, "memory", memory, "memory, in MB; a second interface of IPoIB needs 192")
	c.Flags().StringArrayVar(&packages, "package", nil, "a Debian package that it has too, without those that this needs, but for opensm and perftest; may be repeated")
	c.Flags().StringArrayVar(&more, "file", nil, "FILE:PATH: a file that it boots with, in its memory, at that path; may be repeated")
	// For tests: an adapter that says another GUID, or has a key that it does not say.
	c.Flags().Uint64Var((*uint64)(&lie.GUID), "lie-guid", 0, "GUID that the adapter says it has")
	c.Flags().Uint16Var((*uint16)(&lie.PKey), "lie-pkey", 0, "P_Key that is in the port's table, and in no answer")
	for _, f := range []string{"lie-guid", "lie-pkey"} {
		_ = c.Flags().MarkHidden(f) // there is such a flag
	}
	c.PersistentFlags().StringVar(&at.Socket, "socket", at.Socket, "name of the simulator")
	c.AddCommand(node(guestExec(&at)), node(guestCopy(&at)), guestList(&at), node(guestStop(&at)))
	return c
}

func guestExec(at *guest.Client) *cobra.Command {
	c := &cobra.Command{
		Use:   "exec --node NAME -- COMMAND [ARGUMENT]...",
		Short: "Run a command in a Linux machine",
		Long: `Run a command in a Linux machine that ibwarden sim guest runs, as its root, without
input. It waits until the machine has booted. Its exit status is the command's.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			status, err := at.Exec(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), args...)
			if err != nil {
				return terminal.WithBad(err)
			}
			if status != 0 {
				return &terminal.ExitError{Status: status}
			}
			return nil
		},
	}
	c.Flags().SetInterspersed(false)
	return c
}

func guestCopy(at *guest.Client) *cobra.Command {
	return &cobra.Command{
		Use:   "cp --node NAME FILE :PATH | :PATH FILE",
		Short: "Copy a file into a Linux machine, or out of it",
		Long: `Copy a file into a Linux machine that ibwarden sim guest runs, or out of it. The path in
the machine is absolute, with a colon before it.`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			from, out := strings.CutPrefix(args[0], ":")
			to, in := strings.CutPrefix(args[1], ":")
			if in == out {
				return terminal.WithMisuse(fmt.Errorf("%s %s: want one of the two in the machine, as :/root/file", args[0], args[1]))
			}
			if out {
				content, err := at.Get(c.Context(), from)
				if err == nil {
					err = os.WriteFile(to, content, 0o644)
				}
				return terminal.OrBad(err)
			}
			content, err := files.Read(from, guest.FileMax)
			if err != nil {
				return terminal.WithMisuse(err)
			}
			return terminal.OrBad(at.Put(c.Context(), to, content))
		},
	}
}

func guestList(at *guest.Client) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the Linux machines in a served fabric",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := guest.List(c.Context(), at.Socket)
			if err != nil {
				return terminal.WithBad(err)
			}
			t := terminal.NewTable("node", "guid", "pid", "memory_mb", "machine", "port_state")
			for _, g := range list {
				state := "booting"
				if g.Booted {
					state = "booted"
				}
				t.Add(g.Node, g.GUID, g.PID, g.Memory, state, g.State.String())
			}
			return t.Print(c.OutOrStdout(), "guests", asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func guestStop(at *guest.Client) *cobra.Command {
	return &cobra.Command{
		Use:   "stop --node NAME",
		Short: "End a Linux machine as if its power failed",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return terminal.OrBad(at.Stop(c.Context())) },
	}
}

// runGuests runs machines until they end, or the command is interrupted.
func runGuests(c *cobra.Command, socket string, nodes []string, memory int, packages, more []string, lie guest.Lie) error {
	o := guest.Options{Memory: memory, Files: map[string][]byte{}, Lie: lie}
	for _, f := range more {
		from, to, _ := strings.Cut(f, ":")
		content, err := files.Read(from, guest.FileMax)
		if err == nil && !strings.HasPrefix(to, "/") {
			err = errors.New("want FILE:PATH, the path absolute")
		}
		if err != nil {
			return terminal.WithMisuse(fmt.Errorf("--file %s: %w", f, err))
		}
		o.Files[to] = content
	}
	if err := guest.Missing(); err != nil {
		return terminal.WithBad(err)
	}
	var err error
	if o.Image, err = guest.MakeImage(c.Context(), packages); err != nil {
		return terminal.WithBad(err)
	}
	if typed, ok := c.InOrStdin().(*os.File); ok && len(nodes) == 1 && terminal.IsInteractive(typed) {
		back, err := rawTerminal(int(typed.Fd()))
		if err != nil {
			return terminal.WithBad(err)
		}
		defer back()
		fmt.Fprintf(c.ErrOrStderr(), "the console of %s: Ctrl-] ends the machine\r\n", nodes[0])
		o.Console = c.OutOrStdout()
		return terminal.OrBad(runHost(c.Context(), socket, nodes[0], o, func(h *guest.Host) { go typeAt(typed, h) }))
	}
	ctx, end := context.WithCancel(c.Context())
	defer end()
	var booted, running sync.WaitGroup
	booted.Add(len(nodes))
	errs := make([]error, len(nodes))
	for i, node := range nodes {
		running.Go(func() {
			errs[i] = runHost(ctx, socket, node, o, func(h *guest.Host) {
				go func() {
					if h.Ready(ctx) == nil {
						booted.Done()
					}
				}()
			})
			if errs[i] != nil {
				end() // the others have no use without it
			}
		})
	}
	go func() {
		booted.Wait()
		fmt.Fprintf(c.OutOrStdout(), "ready: %s\n", strings.Join(nodes, " "))
	}()
	running.Wait()
	return terminal.OrBad(errors.Join(errs...))
}

// runHost runs a machine in the place of a host, and answers those who ask for something in it.
func runHost(ctx context.Context, socket, node string, o guest.Options, started func(*guest.Host)) error {
	l, err := guest.Listen(socket, node)
	if err != nil {
		return err
	}
	defer l.Close()
	h, err := guest.StartHost(ctx, socket, node, o)
	if err != nil {
		return err
	}
	started(h)
	if err := h.Serve(l); err != nil {
		h.Stop()
		return err
	}
	return h.Err()
}

// typeAt gives what is typed to a machine's console, until Ctrl-].
func typeAt(from io.Reader, h *guest.Host) {
	var b [256]byte
	for {
		n, err := from.Read(b[:])
		for i := range n {
			if b[i] == escape {
				h.Stop()
				return
			}
		}
		if _, failed := h.Console().Write(b[:n]); err != nil || failed != nil {
			return
		}
	}
}

// rawTerminal makes a terminal give each key as it is, ^C too; back undoes it.
func rawTerminal(fd int) (back func(), err error) {
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	raw := *was
	raw.Iflag &^= unix.BRKINT | unix.ICRNL | unix.INLCR | unix.IGNCR | unix.ISTRIP | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ICANON | unix.IEXTEN | unix.ISIG
	raw.Oflag &^= unix.OPOST
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, was) }, nil
}
