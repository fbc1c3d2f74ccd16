package packagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRPM(t *testing.T) {
	needPrograms(t, "rpm", "rpmlint")
	file := only(t, released(t), "*.rpm")
	t.Run("rpmlint", func(t *testing.T) { rpmlint(t, file) })
	if got := run(t, nil, "rpm", "-qp", "--requires", file); got != "" {
		t.Errorf("a static program needs nothing, and the package needs %q", got)
	}
	root := t.TempDir()
	// The database is one of this directory; scripts have no shell there.
	rpm := func(args ...string) string {
		t.Helper()
		return run(t, nil, "rpm", append([]string{"--root", root}, args...)...)
	}
	rpm("--initdb")
	rpm("-i", "--noscripts", file)
	if got := rpm("-V", "ibwarden"); got != "" {
		t.Errorf("what is installed differs from the package:\n%s", got)
	}
	if got := strings.TrimSpace(rpm("-q", "ibwarden")); !strings.HasPrefix(got, "ibwarden-"+version+"-1.") {
		t.Errorf("rpm -q: %q", got)
	}
	if got := run(t, nil, filepath.Join(root, "usr/bin/ibwarden"), "version"); !strings.HasPrefix(got, "ibwarden "+version+", commit ") {
		t.Errorf("version: %q", got)
	}
	operators := filepath.Join(root, "etc/ibwarden/policy")
	write(t, operators, "the operator's")
	rpm("-e", "--noscripts", "ibwarden")
	for _, gone := range []string{"usr/bin/ibwarden", "usr/share/doc/ibwarden", "usr/share/licenses", "usr/share/zsh", "usr/share/fish", "usr/lib/systemd/system/ibwarden.service"} {
		if _, err := os.Lstat(filepath.Join(root, gone)); err == nil {
			t.Errorf("/%s is there after removal", gone)
		}
	}
	if _, err := os.Stat(operators); err != nil {
		t.Error(err)
	}
}

// rpmlint unpacks packages with cpio, which takes the names in those that nfpm writes for
// what they are, and as root it would write all over this machine: here it may not.
func rpmlint(t *testing.T, file string) {
	needPrograms(t, "cpio")
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	write(t, filepath.Join(bin, "cpio"), "#!/bin/sh\nexec "+cpio+" --no-absolute-filenames \"$@\"\n")
	if err := os.Chmod(filepath.Join(bin, "cpio"), 0o755); err != nil {
		t.Fatal(err)
	}
	const unit = "/usr/lib/systemd/system/ibwarden.service"
	before, there := os.Stat(unit)
	c := exec.Command("rpmlint", "--strict", "-c", filepath.Join("..", "..", "packaging", "rpm", "rpmlint.toml"), file)
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("rpmlint: %v\n%s", err, out)
	}
	if after, err := os.Stat(unit); (err == nil) != (there == nil) || err == nil && after.ModTime() != before.ModTime() {
		t.Errorf("rpmlint wrote %s on this machine", unit)
	}
}
