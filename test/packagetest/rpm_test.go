package packagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func testRPM(t *testing.T, file string) {
	needPrograms(t, "rpm", "rpmlint")
	if out, err := exec.Command("rpmlint", "--strict", "-c", filepath.Join("..", "..", "packaging", "rpm", "rpmlint.toml"), file).CombinedOutput(); err != nil {
		t.Errorf("rpmlint: %v\n%s", err, out)
	}
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
	for _, gone := range []string{"usr/bin/ibwarden", "usr/share/doc/ibwarden", "usr/share/licenses/ibwarden", "usr/share/zsh", "usr/share/fish", "usr/lib/systemd/system/ibwarden.service"} {
		if _, err := os.Lstat(filepath.Join(root, gone)); err == nil {
			t.Errorf("/%s is there after removal", gone)
		}
	}
	if _, err := os.Stat(operators); err != nil {
		t.Error(err)
	}
}
