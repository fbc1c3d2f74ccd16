package packagetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// version is that of the packages, earlier that of those before them.
const version, earlier = "1.2.3~test", "1.2.2~test"

// scratch is a directory for all tests.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ibwarden-packagetest-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		if err := os.Chmod(dir, 0o755); err != nil {
			panic(err)
		}
		scratch = dir
		return m.Run()
	}())
}

// command is packaging/release, built once.
var command = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "release")
	c := exec.Command("go", "build", "-o", path, "./release")
	c.Dir = filepath.Join("..", "..", "packaging")
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("packaging/release: %w\n%s", err, out)
	}
	return path, err
})

// build builds what kinds names from a tree.
func build(tree, out, version string, kinds ...string) error {
	path, err := command()
	if err != nil {
		return err
	}
	c := exec.Command(path, append([]string{"-o", out, "-version", version}, kinds...)...)
	c.Dir = filepath.Join(tree, "packaging")
	text, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("release %v: %w\n%s", kinds, err, text)
	}
	return err
}

// clone makes a repository of the tree as it is, with what is not committed, in a
// directory: the same files always give the same commit.
func clone(dir string) error {
	list := exec.Command("git", "-C", filepath.Join("..", ".."), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	names, err := list.Output()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		from := filepath.Join("..", "..", name)
		info, err := os.Stat(from)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and that not committed
		}
		if err != nil {
			return err
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, info.Mode()); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "the tree under test"}} {
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"}, args...)...)
		c.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-11-23T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-23T12:00:00Z")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w\n%s", args, err, out)
		}
	}
	return nil
}

// kinds are what tests build: all that there is, for one processor.
var kinds = []string{"deb", "rpm", "image", "archive", "sbom", "sums"}

// first is the directory of what was built from a clone of the tree.
var first = sync.OnceValues(func() (string, error) {
	tree, out := filepath.Join(scratch, "tree"), filepath.Join(scratch, "first")
	if err := clone(tree); err != nil {
		return "", err
	}
	return out, build(tree, out, version, kinds...)
})

func released(t *testing.T) string {
	t.Helper()
	need.Long(t, "builds every kind of package")
	needPrograms(t, "go", "git")
	dir, err := first()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The same commit gives the same bytes, in another directory too.
func TestReproducible(t *testing.T) {
	dir := released(t)
	tree, again := filepath.Join(t.TempDir(), "another place of the same tree"), t.TempDir()
	if err := clone(tree); err != nil {
		t.Fatal(err)
	}
	if err := build(tree, again, version, kinds...); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(kinds) {
		t.Fatalf("%d files (%v), want %d", len(files), err, len(kinds))
	}
	for _, f := range files {
		a, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(again, f.Name()))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs when it is built again (%v)", f.Name(), err)
		}
	}
}

// sha256sum finds every file of a release unchanged, and a changed one changed.
func TestChecksums(t *testing.T) {
	needPrograms(t, "sha256sum")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(released(t))); err != nil {
		t.Fatal(err)
	}
	check := func() (string, error) {
		c := exec.Command("sha256sum", "-c", "--strict", "SHA256SUMS")
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := check(); err != nil || strings.Count(out, ": OK\n") != len(kinds)-1 {
		t.Errorf("%v\n%s", err, out)
	}
	deb := only(t, dir, "*.deb")
	f, err := os.OpenFile(deb, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := check(); err == nil || !strings.Contains(out, filepath.Base(deb)+": FAILED") {
		t.Errorf("a changed package is %v\n%s", err, out)
	}
}

// unpack unpacks a tar archive below dir.
func unpack(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			if err = os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				t.Fatal(err)
			}
			var text []byte
			if text, err = io.ReadAll(tr); err == nil {
				err = os.WriteFile(to, text, 0o644)
			}
		}
		if err := errors.Join(err, os.Chmod(to, h.FileInfo().Mode()), os.Lchown(to, h.Uid, h.Gid)); err != nil && os.Getuid() == 0 {
			t.Fatal(err)
		}
	}
}

// programMax bounds the program, in bytes.
const programMax = 35_000_000

// The archive has a program that runs, and the list of modules has what the linker entered
// in that program.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Open(only(t, released(t), "*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, z, dir)
	top := only(t, dir, "ibwarden_"+version+"_linux_*")
	program := filepath.Join(top, "ibwarden")
	if got := run(t, nil, program, "version"); !strings.HasPrefix(got, "ibwarden "+version+", commit ") || strings.Contains(got, "with changes") {
		t.Errorf("version: %q", got)
	}
	if info, err := os.Stat(program); err != nil || info.Size() > programMax {
		t.Errorf("the program, %v: want at most %d bytes: does something reach text/template, for which the linker keeps all methods?", err, programMax)
	}
	for _, name := range []string{"LICENSE", "LINKED", "README.md", "man/man1/ibwarden-run.1.gz", "completions/_ibwarden"} {
		if _, err := os.Stat(filepath.Join(top, name)); err != nil {
			t.Error(err)
		}
	}

	text, err := os.ReadFile(only(t, released(t), "*.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		SpecVersion  string
		SerialNumber string
		Components   []struct{ Name, Version, PURL string }
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std " + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	for _, c := range bom.Components {
		got = append(got, c.Name+" "+c.Version)
		if !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@") {
			t.Errorf("%s: purl %q", c.Name, c.PURL)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(got) < 10 || bom.SpecVersion != "1.6" || !strings.HasPrefix(bom.SerialNumber, "urn:uuid:") {
		t.Errorf("list %q, the program has %q (version %s, number %s)", got, want, bom.SpecVersion, bom.SerialNumber)
	}
	licences, err := os.ReadFile(filepath.Join(top, "LINKED"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if !bytes.Contains(licences, []byte("\n"+m.Path+" "+m.Version+": ")) {
			t.Errorf("LINKED has no licence of %s", m.Path)
		}
	}
}
