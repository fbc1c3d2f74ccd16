package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// snapshotReport is what `ibwarden snapshot --json` prints.
type snapshotReport struct {
	File   string              `json:"file"`
	ReadAt string              `json:"read_at"`
	Fabric fabricCounts        `json:"fabric"`
	Faults []look.ReadingFault `json:"faults"`
	SMPs   *daemon.SMPs        `json:"smps"`
}

func newSnapshot() *cobra.Command {
	var s source
	var file string
	var anonymize, asJSON bool
	c := &cobra.Command{
		Use:   "snapshot -o FILE",
		Short: "Save everything that can be read from a fabric to a file",
		Long: `Save everything that can be read from a fabric to a file, to be examined
elsewhere or later (prove, trace and audit with --snapshot). Only SubnGet is
sent. What could not be read is recorded as such, with the reason.

The file tells of M_Keys and SM_Keys only which are the same. Only its owner can read it.

snapshot diff compares two files. --anonymize makes a file to hand on, of a fabric or of a --snapshot: it has other names,
GUIDs and P_Keys, each the same wherever it stands, and the same verdicts. What is left
in it that could identify the site is said on standard error.

` + fabricHelp,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return misuse(errors.New("-o FILE: want the file to write"))
			}
			if s.file != "" && !anonymize {
				return misuse(errors.New("--snapshot: only with --anonymize"))
			}
			s.alone = true
			r, err := s.read(c, sweep.Options{Forwarding: true, QoS: true, Audit: true, Multicast: true})
			if err != nil {
				return err
			}
			save := daemon.SaveSnapshot
			if anonymize {
				save = daemon.SaveAnonymized
			}
			if err := save(file, r.Snapshot); err != nil {
				return bad(err)
			}
			if anonymize {
				fmt.Fprintf(c.ErrOrStderr(), "ibwarden: still in %s, and could identify the site: %s\n", file, snapshot.Remains)
			}
			return reportSnapshot(c, file, r, asJSON)
		},
	}
	s.where.add(c.Flags())
	s.where.reads.add(c.Flags())
	c.Flags().StringVar(&s.file, "snapshot", "", "with --anonymize: take this file instead of a fabric")
	c.Flags().BoolVar(&anonymize, "anonymize", false, "replace names, GUIDs and P_Keys")
	c.Flags().StringVarP(&file, "output", "o", "", "file to write; one that is there is replaced")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	c.AddCommand(newSnapshotDiff())
	return c
}

func newSnapshotDiff() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Show where two snapshots of a fabric differ",
		Long: `Show where two snapshots of a fabric differ: devices, cables, P_Keys, what guards and
enforces, addresses, tables and managers. Counters are not compared. Of an M_Key a
snapshot has whether there is one, not which.

Exit status: 0 they do not differ; 1 they do; 2 a file could not be read.
`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, names []string) error {
			var both [2]*snapshot.Snapshot
			for i, name := range names {
				var err error
				if both[i], err = daemon.LoadSnapshot(name); err != nil {
					return misuse(err)
				}
			}
			t := terminal.NewTable("where", "node_guid", "what", "was", "is")
			differences := snapshot.Diff(both[0], both[1])
			for _, d := range differences {
				t.Add(d.Where, d.Node, d.What, d.Was, d.Is)
			}
			return printDifferences(c, t, len(differences), asJSON, "no difference")
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func reportSnapshot(c *cobra.Command, file string, r *look.Reading, asJSON bool) error {
	counts := countsOf(r.Fabric.Count())
	if asJSON {
		d := snapshotReport{File: file, ReadAt: r.Time(), Fabric: counts, SMPs: r.SMPs, Faults: r.Unread()}
		if err := terminal.JSON(c.OutOrStdout(), d); err != nil {
			return bad(err)
		}
	} else {
		read := "of a snapshot"
		if r.SMPs != nil {
			read = fmt.Sprintf("read with %d SubnGet", r.SMPs.Get)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %d switches, %d CAs, %d routers, %d links, %s\n",
			file, counts.Switches, counts.CAs, counts.Routers, counts.Links, read)
	}
	if len(r.Faults) > 0 {
		return bad(fmt.Errorf("%s could not be read", terminal.Count(len(r.Faults), "place")))
	}
	return nil
}
