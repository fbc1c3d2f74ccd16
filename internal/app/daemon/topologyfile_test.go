package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/topology"
)

const whole = "Switch 2 \"S1\"\n[1] \"H1\"[1]\n\nHca 1 \"H1\"\n[1] \"S1\"[1]\n"

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A file comes before a generator of its name, and what is neither is told as both.
func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	const generator = "fattree,radix=4,levels=2"
	l, _, err := FindTopology("")
	if err != nil || len(l.Nodes) != len(topology.Demo().Nodes) {
		t.Errorf("nothing: %v", err)
	}
	if l, _, err := FindTopology(generator); err != nil || len(l.Nodes) != 14 {
		t.Errorf("a generator: %v", err)
	}
	write(t, generator, whole)
	if l, _, err := FindTopology(generator); err != nil || len(l.Nodes) != 2 {
		t.Errorf("a file with the name of a generator: %v", err)
	}
	for spec, want := range map[string]string{
		"nothing.net":     "nothing.net: no such file, and no generator: ",
		"fattree,radix=x": "no such file, and no generator: ",
		".":               "",
	} {
		if _, _, err := FindTopology(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

// Included files are looked for beside the file that includes them; one that is
// missing is no reason to take the name for a generator.
func TestIncludes(t *testing.T) {
	dir := t.TempDir()
	main := write(t, filepath.Join(dir, "sub", "main.net"), "include \"hosts.net\"\nSwitch 2 \"S1\"\n[1] \"H1\"[1]\n")
	_, _, err := FindTopology(main)
	if err == nil || !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "generator") || !strings.Contains(err.Error(), "hosts.net") {
		t.Errorf("the included file is missing: %v", err)
	}
	write(t, filepath.Join(dir, "sub", "hosts.net"), "Hca 1 \"H1\"\n[1] \"S1\"[1]\n")
	for _, work := range []string{dir, filepath.Join(dir, "sub"), os.TempDir()} {
		t.Chdir(work)
		if l, _, err := FindTopology(main); err != nil || len(l.Nodes) != 2 {
			t.Errorf("from %s: %v", work, err)
		}
	}
}

// A file that is none, or without end, is refused.
func TestNoFile(t *testing.T) {
	if _, _, err := ReadTopology(os.DevNull); err == nil {
		t.Error("a device is read as a topology")
	}
	if _, _, err := ReadTopology(t.TempDir()); err == nil {
		t.Error("a directory is read as a topology")
	}
	big := write(t, filepath.Join(t.TempDir(), "big.net"), "")
	if err := os.Truncate(big, topology.FileSizeMax+1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadTopology(big); err == nil {
		t.Error("a file of any size is read")
	}
}
