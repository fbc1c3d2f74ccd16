package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// kinds are what can be built, each with the function that writes its files, in the order
// in which "all" builds them.
var kinds = []struct {
	name  string
	write func(*release) error
}{
	{"deb", (*release).debs},
	{"rpm", (*release).rpms},
	{"image", (*release).image},
	{"archive", (*release).archives},
	{"sbom", (*release).sboms},
	{"sums", (*release).sums},
}

// release is a build: from what, for what, and where to.
type release struct {
	source *source
	// arches are Go's names of processors.
	arches []string
	// all reports whether everything is built, for every platform.
	all bool
	out string
	// made are the names of the files that were written into out.
	made []string
	// programs are the programs built so far, by platform.
	programs map[platform]string
	// shared are the files that are the same for all processors, once made.
	shared *made
	// work is a directory for the files in between.
	work string
	ctx  context.Context
	said io.Writer
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	out := flags.String("o", "bin", "directory for what is built")
	version := flags.String("version", os.Getenv("VERSION"), "version of the packages (default: the tag of the commit, or its time and name)")
	arch := flags.String("arch", "", "processors, as Go names them, divided by commas (default: this machine's, or for all: "+strings.Join(released, ",")+")")
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: release [flags] %s|all ...\n", strings.Join(names, "|"))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	asked := flags.Args()
	all := slices.Contains(asked, "all")
	if len(asked) == 0 {
		return fmt.Errorf("nothing to build: want %s or all", strings.Join(names, ", "))
	}
	for _, a := range asked {
		if a != "all" && !slices.Contains(names, a) {
			return fmt.Errorf("%q: want %s or all", a, strings.Join(names, ", "))
		}
	}
	src, err := findSource(ctx, *version)
	if err != nil {
		return err
	}
	if all && src.modified {
		return errors.New("the tree has changes that are not committed: a release is built from a commit")
	}
	r := &release{source: src, all: all, programs: map[platform]string{}, ctx: ctx, said: stdout}
	if r.arches, err = processors(*arch, all); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(*out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "ibwarden-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	for _, k := range kinds {
		if all || slices.Contains(asked, k.name) {
			if err := k.write(r); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	return nil
}

// write makes a file of the release, complete or not at all, and says its name.
func (r *release) write(name string, fill func(io.Writer) error) error {
	path := filepath.Join(r.out, name)
	f, err := os.CreateTemp(r.out, "."+name+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // once renamed it is not there
	err = errors.Join(fill(f), f.Chmod(0o644), f.Close())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	r.made = append(r.made, name)
	_, err = fmt.Fprintln(r.said, path)
	return err
}
