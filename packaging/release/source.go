package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// source is the tree that is built.
type source struct {
	// root is the directory of ibwarden's module.
	root string
	// version is that of the packages, as dpkg and rpm compare them.
	version string
	commit  string
	// time is the commit's, or SOURCE_DATE_EPOCH; modified says that the tree differs
	// from the commit.
	time     time.Time
	modified bool
}

// versions are what may be a version of both dpkg and rpm: no hyphen, which rpm divides
// versions at.
var versions = regexp.MustCompile(`^[0-9][A-Za-z0-9.+~]*$`)

// findSource finds the tree around the working directory.
func findSource(ctx context.Context, version string) (*source, error) {
	here, err := output(ctx, "", nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/ibwarden/ibwarden/packaging")
	if err != nil {
		return nil, fmt.Errorf("not in the directory packaging of a clone: %w", err)
	}
	s := &source{root: filepath.Dir(here)}
	if s.commit, err = s.git(ctx, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		if epoch, err = s.git(ctx, "log", "-1", "--format=%ct"); err != nil {
			return nil, err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH=%q: want seconds since 1970", epoch)
	}
	s.time = time.Unix(seconds, 0).UTC()
	changes, err := s.git(ctx, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	s.modified = changes != ""
	if s.version = version; version == "" {
		tags, err := s.git(ctx, "tag", "--points-at", "HEAD", "--list", "v[0-9]*", "--sort=-version:refname")
		if err != nil {
			return nil, err
		}
		s.version = defaultVersion(tags, s.time, s.commit)
	}
	if !versions.MatchString(s.version) {
		return nil, fmt.Errorf("version %q: want a digit, then letters, digits, '.', '+' and '~'", s.version)
	}
	return s, nil
}

// defaultVersion is the version of the newest tag, v1.2.3-rc.1 as 1.2.3~rc.1, which comes
// before 1.2.3; without a tag one that is before every tag and grows with time.
func defaultVersion(tags string, at time.Time, commit string) string {
	if tag, _, _ := strings.Cut(tags, "\n"); tag != "" {
		return strings.ReplaceAll(tag[1:], "-", "~")
	}
	return fmt.Sprintf("0.0~git%s.%.8s", at.Format("20060102.150405"), commit)
}

func (s *source) git(ctx context.Context, args ...string) (string, error) {
	return output(ctx, s.root, nil, "git", args...)
}

// output runs a program in dir and returns what it prints, without the last end of line.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// platform is a system and a processor, as Go names them.
type platform struct{ os, arch string }

// released are the processors of a release; packaged are those that there may be
// packages for.
var (
	released = []string{"amd64", "arm64"}
	packaged = []string{"amd64", "arm64", "ppc64le", "riscv64", "s390x"}
)

func processors(list string, all bool) ([]string, error) {
	switch {
	case list == "" && all:
		return released, nil
	case list == "":
		list = runtime.GOARCH
	}
	arches := strings.Split(list, ",")
	for _, a := range arches {
		if !slices.Contains(packaged, a) {
			return nil, fmt.Errorf("processor %q: want %s", a, strings.Join(packaged, ", "))
		}
	}
	return arches, nil
}

// linkerFlags leave out symbols, and tell the program what it was built from.
func (s *source) linkerFlags() string {
	const about = "github.com/ibwarden/ibwarden/internal/app/cli/terminal."
	return fmt.Sprintf("-s -w -X %[1]sversion=%[2]s -X %[1]scommit=%[3]s -X %[1]stime=%[4]s -X %[1]smodified=%[5]t",
		about, s.version, s.commit, s.time.Format(time.RFC3339), s.modified)
}

// program builds ibwarden for a platform, once.
func (r *release) program(p platform) (string, error) {
	if path, ok := r.programs[p]; ok {
		return path, nil
	}
	path := filepath.Join(r.work, p.os+"-"+p.arch, "ibwarden")
	env := []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=", "GOWORK=off"}
	// Go's own stamp would differ between a clone and a work tree of it. With its traces gRPC brings
	// html/template, for which the linker keeps all methods there are: an eighth of the program.
	if _, err := output(r.ctx, r.source.root, env, "go", "build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "-ldflags="+r.source.linkerFlags(), "-o", path, "./cmd/ibwarden"); err != nil {
		return "", err
	}
	r.programs[p] = path
	return path, nil
}
