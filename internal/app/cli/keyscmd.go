package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// keysCommand are the flags of all commands about keys.
type keysCommand struct {
	where fabricFlags
	json  bool
}

func newKeys() *cobra.Command {
	f := new(keysCommand)
	c := &cobra.Command{
		Use:   "keys",
		Short: "Manage the M_Keys of a fabric, and run programs with them: show, rotate, export, import, recover, signer, exec",
		Long: `Manage the M_Keys of a fabric: show, rotate, export, import, recover; exec runs a program with them.
signer shows the key that signs certificates of isolation.

Every key is derived from a master secret and a generation, which counts the keys
that a port has had. The data directory (--data) has the secret, and keys.json with
the generations; docs/keys.md says what to do after a power cut, a restored backup or
a lost secret, and how to migrate from OpenSM. No command prints a key; export writes
them to files.

` + fabricHelp,
		Args: commandOf,
		RunE: needsCommand,
	}
	f.where.add(c.PersistentFlags())
	f.where.reads.add(c.PersistentFlags())
	c.PersistentFlags().BoolVar(&f.json, "json", false, "print one JSON document")
	c.AddCommand(f.show(), f.rotate(), f.export(), f.imports(), f.recover(), f.signer())
	return c
}

// open is the directory, which has to be there, and what is kept in it.
func (f *keysCommand) open() (daemon.DataDir, *daemon.Keyring, error) {
	dir, err := run.OpenData(f.where.reads.data, f.where.spec)
	if err != nil {
		return "", nil, err
	}
	if dir == "" {
		return "", nil, misuse(errors.New("no data directory: give --data DIR or set IBWARDEN_DATA"))
	}
	ring, err := daemon.OpenKeys(dir, f.where.reads.secret, false)
	return dir, ring, terminal.OrMisuse(err)
}

// keyEntry is one port as `keys show` tells of it.
type keyEntry struct {
	Node    ib.NodeGUID     `json:"node_guid"`
	Port    ib.PortGUID     `json:"port_guid"`
	Behind  []string        `json:"behind"`
	Current mkey.Generation `json:"generation"`
	Next    mkey.Generation `json:"next,omitempty"`
}

func (f *keysCommand) show() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Show the key generation of each port, and where the port was cabled when it got the key", Args: cobra.NoArgs,
		Long: "Show the key generation of each port, and where the port was cabled when it got the key.\nNothing is sent. A port with a next generation is about to get that key.\n",
		RunE: func(c *cobra.Command, _ []string) error {
			dir, ring, err := f.open()
			if err != nil {
				return err
			}
			list, err := dir.LoadCables()
			if err != nil {
				return misuse(err)
			}
			entries := []keyEntry{}
			t := terminal.NewTable("port_guid", "node_guid", "behind", "generation", "next")
			for _, s := range ring.Book.Entries() {
				e := keyEntry{Node: s.ID.Node, Port: s.ID.Port, Current: s.Current, Next: s.Next, Behind: []string{}}
				for _, at := range s.Places {
					name := "the manager"
					if at != (observed.Place{}) {
						name = list.Name(observed.Place(at))
					}
					e.Behind = append(e.Behind, name)
				}
				entries = append(entries, e)
				next := "-"
				if s.Next != 0 {
					next = fmt.Sprint(s.Next)
				}
				t.Add(s.ID.Port, s.ID.Node, terminal.Plain(strings.Join(e.Behind, " ")), s.Current, next)
			}
			if f.json {
				return terminal.JSON(c.OutOrStdout(), map[string]any{"ports": entries})
			}
			return t.Print(c.OutOrStdout(), "ports", false)
		},
	}
}

func (f *keysCommand) rotate() *cobra.Command {
	var all bool
	var ports []string
	c := &cobra.Command{
		Use: "rotate {--all | --port GUID}", Short: "Give ports new keys", Args: cobra.NoArgs,
		Long: `Give ports new keys.

The manager that runs on the data directory is told (SIGHUP), and gives each
port its next generation, which is kept before a packet with it leaves. It may be
interrupted at any packet: the next run goes on. Where no manager runs, the next one
finds the request.
`,
		RunE: func(c *cobra.Command, _ []string) error {
			if all == (len(ports) > 0) {
				return misuse(errors.New("want --all, or --port GUID"))
			}
			var r daemon.Rotation
			for _, text := range ports {
				g, err := ib.ParsePortGUID(text)
				if err != nil {
					return misuse(fmt.Errorf("--port: %w", err))
				}
				r.Ports = append(r.Ports, g)
			}
			dir, _, err := f.open()
			if err != nil {
				return err
			}
			awake, err := dir.AskRotation(r)
			if err != nil {
				return bad(err)
			}
			if awake {
				fmt.Fprintln(c.OutOrStdout(), "the manager was asked for new keys; ibwarden keys show has the progress")
			} else {
				fmt.Fprintln(c.OutOrStdout(), "no manager is running: the next ibwarden run gives new keys")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every port of the fabric")
	c.Flags().StringSliceVar(&ports, "port", nil, "GUIDs of end ports; of a switch that of its port 0")
	return c
}

// read sweeps the fabric with the keys that are kept, and further generations.
func (f *keysCommand) read(c *cobra.Command, ring *daemon.Keyring, further int) (*daemon.Reading, *mkey.Keys, error) {
	link, err := f.where.open(c)
	if err != nil {
		return nil, nil, err
	}
	defer link.Close()
	k := run.Keying(ring, f.where.mKey, f.where.self)
	k.Further = further
	r, err := look.Live(c, link, sweep.Options{Keys: k.Shown()})
	if err != nil {
		return nil, nil, err
	}
	return &r, &k.Keys, nil
}

func (f *keysCommand) export() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use: "export DIR", Short: "Write the keys in force for OpenSM or NVIDIA's ibdiagnet", Args: cobra.ExactArgs(1),
		Long: `Write the keys in force for OpenSM or NVIDIA's ibdiagnet: guid2mkey, neighbors and
guid2lid, as OpenSM keeps them in its cache directory (/var/cache/opensm) and NVIDIA's
ibdiagnet 2 takes them with --security_keys DIR. Debian's infiniband-diags and ibdiagnet
(ibutils) read no such files: run them by ibwarden keys exec. The fabric is read; DIR is made,
for its owner only, and files in it are replaced. Keys in a directory are keys that can
be copied: remove it when it has served.
`,
		RunE: func(c *cobra.Command, args []string) error {
			if format != "opensm" && format != "ibdiagnet" {
				return misuse(fmt.Errorf("--format %q: want opensm or ibdiagnet", format))
			}
			_, ring, err := f.open()
			if err != nil {
				return err
			}
			r, _, err := f.read(c, ring, 0)
			if err != nil {
				return err
			}
			sayFaults(c.ErrOrStderr(), r.Faults)
			n, err := daemon.ExportKeys(args[0], r.Fabric)
			if err != nil {
				return bad(err)
			}
			if err := daemon.ExportSAKey(args[0], ring.Ring.SAKey()); err != nil {
				return bad(err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: keys of %s\n", args[0], terminal.Count(n, "port"))
			if n := len(look.Guarded(r.Fabric)); n > 0 {
				return bad(fmt.Errorf("%s did not answer: these are not all keys", terminal.Count(n, "place")))
			}
			return nil
		},
	}
	c.Flags().StringVar(&format, "format", "ibdiagnet", "opensm or ibdiagnet, which read the same files")
	return c
}

func (f *keysCommand) imports() *cobra.Command {
	var cabling string
	c := &cobra.Command{
		Use: "import GUID2MKEY", Short: "Import the keys of OpenSM, which the next run replaces", Args: cobra.ExactArgs(1),
		Long: `Import the keys of OpenSM, which the next run replaces: GUID2MKEY is the file of that name in its
cache directory. The next run tries them where its own keys are not in force, gives
each port one of its own, and forgets them. Where OpenSM's protection level was 2 or
3, want its file of neighbors too: devices do not say who they are without a key.
`,
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := run.OpenData(f.where.reads.data, f.where.spec)
			if err != nil {
				return err
			}
			if dir == "" {
				return misuse(errors.New("no data directory: give --data DIR or set IBWARDEN_DATA"))
			}
			n, err := dir.ImportForeign(args[0], cabling)
			if err != nil {
				return misuse(err)
			}
			fmt.Fprintf(c.OutOrStdout(), "keys of %s; the next ibwarden run replaces them\n", terminal.Count(n, "port"))
			return nil
		},
	}
	c.Flags().StringVar(&cabling, "neighbors", "", "OpenSM's file of that name")
	return c
}

func (f *keysCommand) recover() *cobra.Command {
	return &cobra.Command{
		Use: "recover", Short: "Find which keys are in force when keys.json is older than the fabric, or gone", Args: cobra.NoArgs,
		Long: fmt.Sprintf(`Find which keys are in force when keys.json is older than the fabric, or gone: up to %d
generations beyond those that it knows are tried at each port, where the list of
cables or keys.json says that the port stands. Only SubnGet is sent. What is found is
kept in keys.json. Ports that answer none of them are named, and the exit status is 1:
a power cycle clears the key of a device.
`, mkey.FurtherGenerations),
		RunE: func(c *cobra.Command, _ []string) error {
			dir, ring, err := f.open()
			if err != nil {
				return err
			}
			unlock, err := dir.Lock()
			if err != nil {
				return bad(err)
			}
			defer unlock()
			list, err := dir.LoadCables()
			if err != nil {
				return misuse(err)
			}
			if err := ring.Expect(list); err != nil {
				return bad(err)
			}
			r, keys, err := f.read(c, ring, mkey.FurtherGenerations)
			if err != nil {
				return err
			}
			found, locked := ring.Recover(keys, r.Fabric)
			if err := ring.Save(ring.Book); err != nil {
				return bad(err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%d ports accept keys that are now known\n", found)
			for _, name := range locked {
				fmt.Fprintf(c.OutOrStdout(), "locked: %s\n", terminal.Plain(name))
			}
			if len(locked) > 0 {
				return bad(fmt.Errorf("%d places answer to no key that is known here: a power cycle of the device clears its key", len(locked)))
			}
			return nil
		},
	}
}
