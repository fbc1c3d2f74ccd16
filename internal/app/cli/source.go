package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/servicecmd"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// source are the flags that say what a command judges: a fabric that it reads, one that
// a running service knows, or a file that `ibwarden snapshot` wrote.
type source struct {
	where  fabricFlags
	file   string
	server servicecmd.Named
	// alone goes to the fabric, whatever service runs.
	alone bool
	// signs takes the data directory beside a file: a key there signs what is written of it.
	signs bool
}

func (s *source) add(c *cobra.Command) {
	s.where.add(c.Flags())
	s.where.reads.add(c.Flags())
	s.server.Add(c.Flags())
	c.Flags().StringVar(&s.file, "snapshot", "", "read this file, written by ibwarden snapshot, instead of a fabric")
}

// read opens whichever source was named, sends SubnGet and nothing else, and
// says on standard error what could not be read. Options count for a fabric; a
// file has what was asked for when it was written.
func (s *source) read(c *cobra.Command, o sweep.Options) (*look.Reading, error) {
	if s.file != "" {
		for _, name := range []string{"fabric", "server", "guid", "m-key-file", "data", "secret-file"} {
			if c.Flags().Changed(name) && !(name == "data" && s.signs) {
				return nil, misuse(fmt.Errorf("--snapshot and --%s: want one or the other", name))
			}
		}
		var snap *snapshot.Snapshot
		err := terminal.During(c.ErrOrStderr(), "reading "+s.file, func() (err error) {
			snap, err = daemon.LoadSnapshot(s.file)
			return err
		})
		if err != nil {
			return nil, misuse(err)
		}
		showFaults(c, snap.Faults)
		look.SayGuarded(c.ErrOrStderr(), snap.Fabric, true)
		return &look.Reading{Snapshot: snap}, nil
	}
	asks := false
	if !s.alone {
		var err error
		if asks, err = byService(c, &s.server); err != nil {
			return nil, err
		}
	}
	if asks {
		snap, err := s.served(c, o)
		if err != nil {
			return nil, err
		}
		return &look.Reading{Snapshot: snap}, nil
	}
	snap, smps, err := s.where.read(c.Context(), c, o, terminal.ReadingProgress(c.ErrOrStderr()))
	if err != nil {
		return nil, err
	}
	showFaults(c, snap.Faults)
	look.SayGuarded(c.ErrOrStderr(), snap.Fabric, false)
	return &look.Reading{Snapshot: snap, SMPs: &smps}, nil
}

// served is what a service says that byService has chosen.
func (s *source) served(c *cobra.Command, o sweep.Options) (*snapshot.Snapshot, error) {
	snap, err := s.server.Snapshot(c, o)
	if err == nil {
		showFaults(c, snap.Faults)
	}
	return snap, err
}

// read reads the fabric: only SubnGet is sent.
func (f *fabricFlags) read(ctx context.Context, c *cobra.Command, o sweep.Options, progress func(sent int)) (*snapshot.Snapshot, daemon.SMPs, error) {
	to, err := f.open(c)
	if err != nil {
		return nil, daemon.SMPs{}, err
	}
	defer to.Close()
	if err := f.asks(&o); err != nil {
		return nil, daemon.SMPs{}, err
	}
	if f.rate > 0 {
		to = link.Paced(to, f.rate)
	}
	snap, smps, err := daemon.Snapshot(ctx, to, f.spec, o, progress)
	if err != nil {
		return nil, smps, bad(err)
	}
	if smps.Set != 0 {
		return nil, smps, bad(errors.New("a reading sent SubnSet: this is a fault of ibwarden"))
	}
	return snap, smps, nil
}

// forOthers is source for commands of other packages.
func forOthers() (add func(*cobra.Command), read func(*cobra.Command, sweep.Options) (*snapshot.Snapshot, error)) {
	var s source
	return s.add, s.snapshot
}

// snapshot is what read has read.
func (s *source) snapshot(c *cobra.Command, o sweep.Options) (*snapshot.Snapshot, error) {
	r, err := s.read(c, o)
	if err != nil {
		return nil, err
	}
	return r.Snapshot, nil
}

// forWhy is the source of ibwarden why.
func forWhy() look.WhySource {
	var s source
	var p policyFlags
	return look.WhySource{
		Add: func(c *cobra.Command) {
			s.add(c)
			p.add(c)
		},
		Service: func(c *cobra.Command) (*servicecmd.Named, error) {
			if s.file != "" || c.Flags().Changed("policy") {
				return nil, nil
			}
			asks, err := byService(c, &s.server)
			s.alone = true // what is read is the fabric
			if err != nil || !asks {
				return nil, err
			}
			return &s.server, nil
		},
		Read: func(c *cobra.Command, o sweep.Options) (*snapshot.Snapshot, error) {
			if err := p.load(c); err != nil {
				return nil, err
			}
			return s.snapshot(c, o)
		},
		View: func(c *cobra.Command, f *observed.Fabric) (v reach.View, err error) {
			if p.loaded == nil {
				return v, nil
			}
			partitions, err := p.on(c.ErrOrStderr(), f)
			v.Names = reach.Names{}
			declared := map[ib.PKeyBase]bool{} // other than those that services make
			for _, x := range partitions {
				v.Names[x.Base] = x.Name
				declared[x.Base] = slices.ContainsFunc(p.loaded.Partitions, func(d policy.Partition) bool { return d.Name == x.Name && d.Service == "" })
			}
			v.Takes = func(k ib.PKeyBase, _ ib.PortGUID) bool { return declared[k] }
			return v, err
		},
		Help: fabricHelp,
	}
}

// forTrace is the source of ibwarden trace.
func forTrace() look.ReadingSource {
	var s source
	return look.ReadingSource{Add: s.add, Read: s.read, Help: fabricHelp}
}

// forAudit is the source of ibwarden audit.
func forAudit() look.AuditSource {
	var s source
	var p policyFlags
	return look.AuditSource{
		Add: func(c *cobra.Command) {
			s.add(c)
			p.add(c)
		},
		Load: p.load,
		Read: s.snapshot,
		Policy: func(c *cobra.Command, f *observed.Fabric) ([]observed.Partition, map[ib.PortGUID][]ib.PortGUID, bool, error) {
			return p.audited(c.ErrOrStderr(), f)
		},
		Help: fabricHelp,
	}
}

// showFaults says what could not be read, as far as anybody wants to know.
func showFaults(c *cobra.Command, faults []snapshot.Fault) {
	for i, f := range faults {
		if i == remarksMax {
			fmt.Fprintf(c.ErrOrStderr(), "ibwarden: %d more are not shown\n", len(faults)-i)
			return
		}
		fmt.Fprintln(c.ErrOrStderr(), "ibwarden:", terminal.Plain(f))
	}
}

// addFabric adds the flags of a command of another package that reads a fabric.
func addFabric(flags *pflag.FlagSet) (open func(*cobra.Command) (link.Link, sweep.Options, error)) {
	var f fabricFlags
	f.add(flags)
	f.reads.add(flags)
	return func(c *cobra.Command) (to link.Link, o sweep.Options, err error) {
		if to, err = f.open(c); err != nil {
			return nil, o, err
		}
		if err = f.asks(&o); err != nil {
			to.Close()
		}
		return to, o, err
	}
}

// forGet is the source of ibwarden device get.
func forGet() look.GetSource {
	var s source
	return look.GetSource{
		Add: s.add,
		Open: func(c *cobra.Command, o sweep.Options) (*snapshot.Snapshot, link.Link, sweep.Options, error) {
			if s.file != "" {
				snap, err := s.snapshot(c, o)
				return snap, nil, o, err
			}
			asks, err := byService(c, &s.server)
			if err != nil {
				return nil, nil, o, err
			}
			if asks {
				snap, err := s.served(c, o)
				return snap, nil, o, err
			}
			to, err := s.where.open(c)
			if err != nil {
				return nil, nil, o, err
			}
			o = sweep.Options{}
			if err = s.where.asks(&o); err != nil {
				to.Close()
			}
			return nil, to, o, err
		},
		Help: fabricHelp,
	}
}
