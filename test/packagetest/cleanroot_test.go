package packagetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// simulated has the service read the fabric that the host serves.
const simulated = "# the operator's\nfabric: ibsim:demo\n"

// settingsOf has what is in force, as `ibwarden run --print-config` says it.
func (h *host) settingsOf(t *testing.T) string {
	t.Helper()
	return h.run(t, "sh", "-c", `set -a; [ ! -e /etc/default/ibwarden ] || . /etc/default/ibwarden; exec ibwarden run --config /etc/ibwarden/ibwarden.yaml $IBWARDEN_ARGS --print-config`)
}

// reads: the service reads the fabric, as root's user could see, and wrote nothing to it.
func (h *host) reads(t *testing.T) {
	t.Helper()
	h.status(t, "read-only, findings")
	if links := h.run(t, "ibwarden", "show", "links", "--fabric", "ibsim:demo"); strings.Contains(strings.ToLower(links), "active") || !strings.Contains(strings.ToLower(links), "init") {
		t.Errorf("somebody brought the fabric up:\n%s", links)
	}
}

// private: what may hold a secret is root's alone or its group's, and no file of another
// may stand in its place.
func (h *host) private(t *testing.T) {
	t.Helper()
	if out := h.run(t, "find", "/etc/ibwarden", "/var/lib/ibwarden", "-perm", "/007"); out != "" {
		t.Errorf("everybody may use:\n%s", out)
	}
}

// TestHostDeb installs the Debian package on a host, uses it, upgrades it from the version
// before, removes and purges it.
func TestHostDeb(t *testing.T) {
	packages := upgrades(t)
	h := boot(t, packages)
	before := h.files(t)
	h.fabric(t)
	start := time.Now()
	h.run(t, "dpkg", "-i", "/packages/earlier.deb")
	h.run(t, "systemctl", "is-enabled", "ibwarden")
	h.write(t, "etc/ibwarden/conf.d/10-fabric.yaml", simulated)
	h.run(t, "systemctl", "restart", "ibwarden")
	h.reads(t)
	t.Logf("from the package to the first audit: %.1f s", time.Since(start).Seconds())
	h.private(t)
	if out, _ := h.try("ibwarden", "doctor", "--fabric", "ibsim:demo"); !strings.Contains(out, "ibwarden.service runs") {
		t.Errorf("doctor:\n%s", out)
	}
	if out, _ := h.try("ibwarden", "audit", "--fabric", "ibsim:demo"); !strings.Contains(out, "\nfindings: ") {
		t.Errorf("audit:\n%s", out)
	}

	h.write(t, "etc/ibwarden/ibwarden.yaml", "# changed by the operator\nread-only: true\n")
	h.run(t, "dpkg", "-i", "/packages/ibwarden.deb")
	if got := h.run(t, "ibwarden", "version"); !strings.HasPrefix(got, "ibwarden "+version) {
		t.Errorf("after the upgrade: %s", got)
	}
	h.reads(t)
	if got := h.settingsOf(t); !strings.Contains(got, "read-only: true ") {
		t.Errorf("a reader was upgraded to\n%s", got)
	}
	h.private(t)
	h.run(t, "dpkg", "-i", "/packages/ibwarden.deb") // again, which runs all scripts again
	h.reads(t)

	h.run(t, "dpkg", "-r", "ibwarden")
	if out, err := h.try("systemctl", "is-active", "ibwarden"); err == nil {
		t.Errorf("after removal the service is %s", out)
	}
	h.run(t, "dpkg", "-P", "ibwarden")
	h.run(t, "dpkg", "-P", "ibwarden") // nothing to do
	if got, want := h.left(t, before), []string{"etc/ibwarden", "etc/ibwarden/conf.d", "etc/ibwarden/conf.d/10-fabric.yaml"}; !slices.Equal(got, want) {
		t.Errorf("after purge there are %q, want %q", got, want)
	}
}

// TestHostManager: a host that managed the fabric with a package of the layout before goes
// on with the same arguments, and one that did not is not made a manager.
func TestHostManager(t *testing.T) {
	packages := upgrades(t)
	h := boot(t, packages)
	before := h.files(t)
	h.run(t, "dpkg", "-i", "/packages/layout.deb")
	h.fabric(t)
	example, err := os.ReadFile(filepath.Join("..", "..", "examples", "tenants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	h.write(t, "etc/ibwarden/policy", string(example))
	h.write(t, "etc/default/ibwarden", "IBWARDEN_FABRIC=ibsim:demo\nIBWARDEN_ARGS=\"--priority 7 --quarantine 0s\"\n")
	h.run(t, "systemctl", "restart", "ibwarden")
	h.status(t, "isolated")
	state := h.run(t, "cat", "/var/lib/ibwarden/state.json")
	h.run(t, "dpkg", "-i", "/packages/ibwarden.deb")
	h.status(t, "isolated")
	if got := h.settingsOf(t); !strings.Contains(got, "read-only: false ") || !strings.Contains(got, "policy: /etc/ibwarden/policy ") || !strings.Contains(got, "state: /var/lib/ibwarden/state.json ") ||
		!strings.Contains(got, "fabric: ibsim:demo ") || !strings.Contains(got, "priority: 7 ") {
		t.Errorf("a manager was upgraded to\n%s", got)
	}
	if !strings.Contains(state, "\"") {
		t.Errorf("state %q", state)
	}
	h.private(t)
	h.run(t, "dpkg", "-i", "/packages/ibwarden.deb")
	h.status(t, "isolated")
	// With --data in the directory of the service there is a master secret, from which ports have keys.
	h.write(t, "etc/ibwarden/conf.d/60-keys.yaml", "data: /var/lib/ibwarden\nprofile: tenant\n")
	h.run(t, "systemctl", "restart", "ibwarden")
	h.status(t, "isolated")
	secret := h.run(t, "sha256sum", "-b", "/var/lib/ibwarden/secret")
	if out := h.run(t, "dpkg", "-P", "ibwarden"); !strings.Contains(out, "a copy is in /var/backups/ibwarden;") {
		t.Errorf("purge says nothing of the secret:\n%s", out)
	}
	if got := h.run(t, "sha256sum", "-b", "/var/backups/ibwarden/secret"); strings.Fields(got)[0] != strings.Fields(secret)[0] {
		t.Errorf("the copy is %s, the secret was %s", got, secret)
	}
	if got, want := h.run(t, "stat", "-c", "%a %U %n", "/var/backups/ibwarden", "/var/backups/ibwarden/secret", "/var/backups/ibwarden/keys.json"),
		"700 root /var/backups/ibwarden\n600 root /var/backups/ibwarden/secret\n600 root /var/backups/ibwarden/keys.json\n"; got != want {
		t.Errorf("the copies are\n%s", got)
	}
	h.run(t, "rm", "-r", "/var/backups/ibwarden", "/etc/ibwarden/conf.d")
	if got, want := h.left(t, before), []string{"etc/ibwarden", "etc/ibwarden/policy"}; !slices.Equal(got, want) {
		t.Errorf("after purge there are %q, want %q", got, want)
	}

	// The policy that is left makes no manager of an installation that is new.
	h.write(t, "etc/ibwarden/conf.d/10-fabric.yaml", simulated)
	h.run(t, "dpkg", "-i", "/packages/ibwarden.deb")
	h.status(t, "read-only, findings")
	if got := h.settingsOf(t); !strings.Contains(got, "read-only: true ") {
		t.Errorf("a new installation has\n%s", got)
	}
	h.run(t, "dpkg", "-P", "ibwarden")

	// Neither does an upgrade where there was none.
	if err := os.Remove(filepath.Join(h.root, "etc/ibwarden/policy")); err != nil {
		t.Fatal(err)
	}
	h.run(t, "dpkg", "-i", "/packages/layout.deb")
	h.run(t, "dpkg", "-i", "/packages/ibwarden.deb")
	h.status(t, "read-only, findings")

	// What stands where the settings would be written is not written through.
	h.run(t, "dpkg", "-P", "ibwarden")
	h.run(t, "dpkg", "-i", "/packages/layout.deb")
	h.write(t, "etc/ibwarden/policy", string(example))
	h.write(t, "var/tmp/target", "not to be touched")
	h.run(t, "ln", "-s", "/var/tmp/target", "/etc/ibwarden/conf.d/50-managed-before.yaml")
	h.run(t, "dpkg", "-i", "/packages/ibwarden.deb")
	// A data directory that is a link goes, and what it leads to stays.
	h.run(t, "systemctl", "stop", "ibwarden")
	h.run(t, "sh", "-c", "rm -rf /var/lib/ibwarden && mkdir /var/tmp/elsewhere && touch /var/tmp/elsewhere/kept && ln -s /var/tmp/elsewhere /var/lib/ibwarden")
	h.run(t, "dpkg", "-P", "ibwarden")
	h.run(t, "sh", "-c", "test ! -e /var/lib/ibwarden && test -e /var/tmp/elsewhere/kept && grep -qx 'not to be touched' /var/tmp/target")
}

// TestHostRPM does what TestHostDeb does, with rpm.
func TestHostRPM(t *testing.T) {
	packages := upgrades(t)
	h := boot(t, packages)
	h.run(t, "rpm", "--initdb")
	// The package filesystem has it on every system that has rpm as its own package manager.
	h.run(t, "mkdir", "-p", "/usr/share/man/man1")
	before := h.files(t)
	h.run(t, "rpm", "-i", "/packages/earlier.rpm")
	h.fabric(t)
	h.write(t, "etc/ibwarden/conf.d/10-fabric.yaml", simulated)
	h.run(t, "systemctl", "start", "ibwarden")
	h.reads(t)
	h.private(t)
	h.write(t, "etc/ibwarden/ibwarden.yaml", "# changed by the operator\nread-only: true\n")
	h.run(t, "rpm", "-U", "/packages/ibwarden.rpm")
	if got := h.run(t, "ibwarden", "version"); !strings.HasPrefix(got, "ibwarden "+version) {
		t.Errorf("after the upgrade: %s", got)
	}
	h.reads(t)
	if got := h.run(t, "cat", "/etc/ibwarden/ibwarden.yaml"); !strings.HasPrefix(got, "# changed by the operator\n") {
		t.Errorf("the upgrade wrote over the operator's settings:\n%s", got)
	}
	h.run(t, "rpm", "-U", "--force", "/packages/ibwarden.rpm")
	h.reads(t)
	h.run(t, "rpm", "-e", "ibwarden")
	if out, err := h.try("systemctl", "is-active", "ibwarden"); err == nil {
		t.Errorf("after removal the service is %s", out)
	}
	// What the operator changed is kept, and what was assigned: rpm knows no purge.
	want := []string{"etc/ibwarden", "etc/ibwarden/conf.d", "etc/ibwarden/conf.d/10-fabric.yaml", "etc/ibwarden/ibwarden.yaml.rpmsave", "var/lib/ibwarden"}
	if got := h.left(t, before); !slices.Equal(got, want) {
		t.Errorf("after removal there are %q, want %q", got, want)
	}
}

// upgrades makes a directory with the packages, those of the version before, and a Debian
// package of the layout before there were configuration files.
func upgrades(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "earlier")
	now := released(t)
	if err := build(filepath.Join(scratch, "tree"), out, earlier, "deb", "rpm"); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{"ibwarden": now, "earlier": out} {
		for _, kind := range []string{"deb", "rpm"} {
			run(t, nil, "cp", only(t, from, "*."+kind), filepath.Join(dir, name+"."+kind))
		}
	}
	// The program of today with the files of then: testdata/layout.
	tree := t.TempDir()
	run(t, nil, "dpkg-deb", "-x", only(t, now, "*.deb"), tree)
	for _, gone := range []string{"etc/ibwarden/ibwarden.yaml", "etc/ibwarden/conf.d"} {
		if err := os.Remove(filepath.Join(tree, gone)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, nil, "cp", "-rT", filepath.Join("testdata", "layout"), tree)
	run(t, nil, "sh", "-c", "chmod 755 $0/DEBIAN/post* $0/DEBIAN/pre* && chmod 755 $0", tree)
	run(t, nil, "dpkg-deb", "-Znone", "--root-owner-group", "--build", tree, filepath.Join(dir, "layout.deb"))
	return dir
}
