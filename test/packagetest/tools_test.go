package packagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Without the packages it is said what will not be tested, and CI fails: whether apt
// has no network, or there is no apt.
func TestInstallTools(t *testing.T) {
	needPrograms(t, "bash")
	script, err := filepath.Abs(filepath.Join("..", "..", "scripts", "install-tools"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(script); err != nil { // go test keeps a result as long as what it read is the same
		t.Fatal(err)
	}
	// Only these programs are there, and the basic ones.
	base := map[string]string{
		"dpkg-query": "exit 1", "sudo": "shift\nexec \"$@\"",
	}
	for _, name := range []string{"bash", "id", "mktemp", "tail", "rm", "grep", "true"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		base[name] = "exec " + path + ` "$@"`
	}
	for name, c := range map[string]struct {
		apt, want string
		good      bool
	}{
		"no network":    {"echo 'E: Unable to fetch some archives'\nexit 100", "E: Unable to fetch", false},
		"no apt":        {"", "not a Debian system", false},
		"all installed": {"exit 0", "installing opensm tshark", true},
	} {
		dir := t.TempDir()
		for program, text := range base {
			write(t, filepath.Join(dir, program), "#!/bin/sh\n"+text+"\n")
		}
		if c.apt != "" {
			write(t, filepath.Join(dir, "apt-get"), "#!/bin/sh\n"+c.apt+"\n")
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.Chmod(f, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, ci := range []string{"", "true"} {
			cmd := exec.Command("/bin/bash", script, "opensm", "tshark")
			cmd.Env = []string{"PATH=" + dir, "CI=" + ci, "TMPDIR=" + dir}
			out, err := cmd.CombinedOutput()
			said := "  tshark: what Wireshark makes of packets and captures\n"
			if ci != "" {
				said = "CI has to have opensm tshark\n"
			}
			if !strings.Contains(string(out), c.want) || strings.Contains(string(out), said) == c.good || (err == nil) != (c.good || ci == "") {
				t.Errorf("%s, CI=%s: %v\n%s", name, ci, err, out)
			}
		}
	}
}
