package packagetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli"
	"github.com/ibwarden/ibwarden/test/need"
)

// needPrograms finds programs.
func needPrograms(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		_, err := exec.LookPath(p)
		need.Need(t, err)
	}
}

// run runs a program and returns its standard output.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return string(out)
}

// only is the one file of a directory with such a name.
func only(t *testing.T, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	return found[0]
}

// want is everything in the package, with its mode and owner.
var want = `drwxr-xr-x root/root ./etc/
drwxr-x--- root/root ./etc/ibwarden/conf.d/
-rw-r----- root/root ./etc/ibwarden/ibwarden.yaml
drwxr-x--- root/root ./etc/ibwarden/
drwxr-xr-x root/root ./usr/
drwxr-xr-x root/root ./usr/bin/
-rwxr-xr-x root/root ./usr/bin/ibwarden
drwxr-xr-x root/root ./usr/lib/
drwxr-xr-x root/root ./usr/lib/systemd/
drwxr-xr-x root/root ./usr/lib/systemd/system/
-rw-r--r-- root/root ./usr/lib/systemd/system/ibwarden.service
drwxr-xr-x root/root ./usr/share/
drwxr-xr-x root/root ./usr/share/doc/
drwxr-xr-x root/root ./usr/share/doc/ibwarden/
drwxr-xr-x root/root ./usr/share/bash-completion/
drwxr-xr-x root/root ./usr/share/bash-completion/completions/
-rw-r--r-- root/root ./usr/share/bash-completion/completions/ibwarden
-rw-r--r-- root/root ./usr/share/doc/ibwarden/README.md
-rw-r--r-- root/root ./usr/share/doc/ibwarden/copyright
drwxr-xr-x root/root ./usr/share/man/
-rw-r--r-- root/root ./usr/share/doc/ibwarden/LINKED
-rw-r--r-- root/root ./usr/share/doc/ibwarden/changelog.gz
drwxr-xr-x root/root ./usr/share/fish/
drwxr-xr-x root/root ./usr/share/fish/vendor_completions.d/
-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/ibwarden.fish
drwxr-xr-x root/root ./usr/share/lintian/
drwxr-xr-x root/root ./usr/share/lintian/overrides/
-rw-r--r-- root/root ./usr/share/lintian/overrides/ibwarden
drwxr-xr-x root/root ./usr/share/zsh/
drwxr-xr-x root/root ./usr/share/zsh/vendor-completions/
-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_ibwarden
`

// contents is want with the pages, their pictures, the examples, the stories and a manual page for
// each command.
func contents(t *testing.T) []string {
	t.Helper()
	files := strings.Fields(run(t, nil, "git", "-C", filepath.Join("..", ".."), "ls-files", "docs/*.md", "docs/images", "examples", "scenarios"))
	if len(files) < 40 {
		t.Fatalf("%d pages, examples and stories", len(files))
	}
	out := strings.Split(strings.TrimSpace(want), "\n")
	file := func(path string) {
		out = append(out, "-rw-r--r-- root/root ./usr/share/"+path)
		for dir := filepath.Dir(path); dir != "doc/ibwarden" && dir != "man"; dir = filepath.Dir(dir) {
			if line := "drwxr-xr-x root/root ./usr/share/" + dir + "/"; !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	for _, f := range files {
		if strings.HasPrefix(f, "scenarios") {
			f = "examples/" + f
		}
		file("doc/ibwarden/" + f)
	}
	var page func(c *cobra.Command)
	page = func(c *cobra.Command) {
		if c.Hidden {
			return // an old name, and what is below it
		}
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			file("man/man1/" + strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1.gz")
		}
		for _, sub := range c.Commands() {
			page(sub)
		}
	}
	page(cli.Root())
	slices.Sort(out)
	return out
}

func TestDeb(t *testing.T) {
	needPrograms(t, "dpkg", "dpkg-deb")
	deb := only(t, released(t), "*.deb")
	var got []string
	for line := range strings.Lines(run(t, nil, "dpkg-deb", "-c", deb)) {
		f := strings.Fields(line)
		got = append(got, f[0]+" "+f[1]+" "+f[5])
	}
	slices.Sort(got)
	if diff := cmp.Diff(contents(t), got); diff != "" {
		t.Errorf("contents, - as wanted, + as they are:\n%s", diff)
	}
	for field, value := range map[string]string{
		"Package": "ibwarden", "Version": version, "Architecture": strings.TrimSpace(run(t, nil, "dpkg", "--print-architecture")),
		"Depends": "", // a static program needs nothing
	} {
		if got := strings.TrimSpace(run(t, nil, "dpkg-deb", "-f", deb, field)); got != value {
			t.Errorf("%s: %q, want %q", field, got, value)
		}
	}
	t.Run("lintian", func(t *testing.T) {
		needPrograms(t, "lintian")
		// Every hint fails it, and every override that overrides nothing.
		c := exec.Command("lintian", "--allow-root", "--pedantic", "--display-info", "--fail-on", "error,warning,info,pedantic,override", deb)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("lintian: %v\n%s", err, out)
		}
	})

	root := install(t, deb)
	t.Run("manual pages", func(t *testing.T) { lintPages(t, install(t, deb)) })
	t.Run("completions", func(t *testing.T) { readCompletions(t, root) })
	t.Run("settings", func(t *testing.T) { checkSettings(t, root) })
	t.Run("unit", func(t *testing.T) { checkUnit(t, root) })
	t.Run("remove and purge", func(t *testing.T) { purge(t, root) })
}

// lintPages: mandoc finds nothing to say against a page.
func lintPages(t *testing.T, root string) {
	needPrograms(t, "mandoc", "gzip")
	pages, err := filepath.Glob(filepath.Join(root, "usr/share/man/man1/*.1.gz"))
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages (%v)", len(pages), err)
	}
	run(t, nil, "gzip", append([]string{"-dk"}, pages...)...)
	for i, p := range pages {
		pages[i] = strings.TrimSuffix(p, ".gz")
	}
	if out, err := exec.Command("mandoc", append([]string{"-Tlint", "-Wwarning"}, pages...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
}

// readCompletions: each shell reads its completion, and bash completes with it.
func readCompletions(t *testing.T, root string) {
	needPrograms(t, "bash", "zsh", "fish")
	bash := filepath.Join(root, "usr/share/bash-completion/completions/ibwarden")
	run(t, nil, "bash", "-n", bash)
	run(t, nil, "zsh", "-n", filepath.Join(root, "usr/share/zsh/vendor-completions/_ibwarden"))
	run(t, nil, "fish", "--no-execute", filepath.Join(root, "usr/share/fish/vendor_completions.d/ibwarden.fish"))
	path := filepath.Join(root, "usr/bin") + ":" + os.Getenv("PATH")
	got := run(t, []string{"PATH=" + path, "HOME=" + root}, "fish", "--no-config", "-c", `source $argv[1]; complete -C "ibwarden aud"`, filepath.Join(root, "usr/share/fish/vendor_completions.d/ibwarden.fish"))
	if !strings.HasPrefix(got, "audit") {
		t.Errorf("fish completes aud to %q", got)
	}
}

// dpkg runs dpkg on a system below root, whose scripts run outside.
func dpkg(t *testing.T, root string, args ...string) {
	t.Helper()
	run(t, nil, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-not-root", "--log=" + os.DevNull}, args...)...)
}

func install(t *testing.T, deb string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "var/lib/dpkg/status"), "")
	dpkg(t, root, "-i", deb)
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const unitPath = "usr/lib/systemd/system/ibwarden.service"

// settings reads a unit; a name that is there twice has both values.
func settings(t *testing.T, root string) map[string][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, unitPath))
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]string)
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			out[name] = append(out[name], value)
		}
	}
	return out
}

// checkSettings: what is installed is good, only reads, and names no key.
func checkSettings(t *testing.T, root string) {
	program, file := filepath.Join(root, "usr/bin/ibwarden"), filepath.Join(root, "etc/ibwarden/ibwarden.yaml")
	if out := run(t, nil, program, "run", "config", "check", file); !strings.HasPrefix(out, "good: ") {
		t.Errorf("config check: %s", out)
	}
	if out := run(t, nil, program, "run", "--config", file, "--print-config"); !strings.Contains(out, "read-only: true ") || !strings.Contains(out, "fabric: umad ") {
		t.Errorf("settings:\n%s", out)
	}
}

// hardening is what the unit must not lose.
var hardening = map[string]string{
	"NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "CapabilityBoundingSet": "",
	"DevicePolicy": "closed", "DeviceAllow": "char-infiniband_mad rw", "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6",
	"IPAddressDeny": "any", "IPAddressAllow": "localhost", "Type": "notify", "WatchdogSec": "60",
	"SystemCallFilter": "@system-service", "StateDirectory": "ibwarden", "MemoryDenyWriteExecute": "yes",
	"ExecReload": "/bin/kill -HUP $MAINPID",
	"ExecStart":  "/usr/bin/ibwarden run --config /etc/ibwarden/ibwarden.yaml $IBWARDEN_ARGS",
}

// exposure is the highest score of systemd-analyze that is accepted, out of 10.
const exposure = "20" // tenths

func checkUnit(t *testing.T, root string) {
	got := settings(t, root)
	for name, value := range hardening {
		if !slices.Contains(got[name], value) {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
	needPrograms(t, "systemd-analyze")
	// The unit names the program where the package puts it; systemd looks for
	// it here.
	b, err := os.ReadFile(filepath.Join(root, unitPath))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "ibwarden.service")
	write(t, copied, strings.ReplaceAll(string(b), "/usr/bin/ibwarden", filepath.Join(root, "usr/bin/ibwarden")))
	c := exec.Command("systemd-analyze", "verify", "--man=no", copied)
	if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), "ibwarden") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	c = exec.Command("systemd-analyze", "security", "--offline=yes", "--threshold="+exposure, copied)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}

// purge: removal keeps the settings and what was assigned, purge does not.
func purge(t *testing.T, root string) {
	state, settings := filepath.Join(root, "var/lib/ibwarden"), filepath.Join(root, "etc/ibwarden/ibwarden.yaml")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "etc/ibwarden/policy"), "the operator's")
	write(t, filepath.Join(state, "secret"), "a secret")
	program := filepath.Join(root, "usr/bin/ibwarden")
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	dpkg(t, root, "-r", "ibwarden")
	if exists(program) || !exists(state) || !exists(settings) {
		t.Errorf("after removal: program %v, state %v, settings %v", exists(program), exists(state), exists(settings))
	}
	dpkg(t, root, "-P", "ibwarden")
	if exists(state) || exists(settings) {
		t.Errorf("after purge: state %v, settings %v", exists(state), exists(settings))
	}
	if !exists(filepath.Join(root, "var/backups/ibwarden/secret")) {
		t.Error("after purge the secret is nowhere")
	}
	if !exists(filepath.Join(root, "etc/ibwarden/policy")) {
		t.Error("purge took the operator's policy")
	}
}
