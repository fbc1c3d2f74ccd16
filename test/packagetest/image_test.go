package packagetest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// descriptor is OCI's way to name a blob.
type descriptor struct {
	MediaType, Digest string
	Size              int64
	Platform          struct{ OS, Architecture string }
}

// blob reads a blob of an unpacked image, and checks that it is what its name says.
func blob(t *testing.T, dir string, d descriptor, into any) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "blobs", strings.ReplaceAll(d.Digest, ":", "/")))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("sha256:%x", sha256.Sum256(text)); got != d.Digest || int64(len(text)) != d.Size {
		t.Fatalf("%s is %s, %d bytes", d.Digest, got, len(text))
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

// TestImage unpacks the image and runs it as a container would be run: as its own user,
// with no file that it may write but those of its data directory.
func TestImage(t *testing.T) {
	f, err := os.Open(only(t, released(t), "*_image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	unpack(t, f, dir)
	var index, manifest struct {
		Manifests, Layers []descriptor
		Config            descriptor
	}
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &index); err != nil || len(index.Manifests) != 1 || index.Manifests[0].Platform.OS != "linux" {
		t.Fatalf("index %s (%v)", text, err)
	}
	blob(t, dir, index.Manifests[0], &manifest)
	var config struct {
		Architecture, Created string
		Config                struct {
			User       string
			Entrypoint []string
			Env        []string
			Labels     map[string]string
		}
	}
	blob(t, dir, manifest.Config, &config)
	c := config.Config
	if config.Architecture != index.Manifests[0].Platform.Architecture || config.Created != "2026-11-23T12:00:00Z" || c.User != "65532:65532" || len(c.Entrypoint) != 1 ||
		c.Labels["org.opencontainers.image.version"] != version || c.Labels["org.opencontainers.image.revision"] == "" {
		t.Errorf("config %+v", config)
	}
	if len(manifest.Layers) != 1 {
		t.Fatalf("%d layers", len(manifest.Layers))
	}
	z, err := gzip.NewReader(bytes.NewReader(blob(t, dir, manifest.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	unpack(t, z, root)

	if os.Getuid() != 0 {
		need.Need(t, fmt.Errorf("not root: no file system of its own for the image"))
	}
	needPrograms(t, "unshare", "mount", "chroot")
	chroot, err := exec.LookPath("chroot")
	if err != nil {
		t.Fatal(err)
	}
	inside := func(command ...string) (string, error) {
		const script = `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && mount -t tmpfs -o mode=700,uid=65532,gid=65532 none "$0/var/lib/ibwarden" && exec "$CHROOT" --userspec=65532:65532 "$0" "$@"`
		x := exec.Command("unshare", append([]string{"-m", "-n", "sh", "-c", script, root}, append(c.Entrypoint, command...)...)...)
		x.Env = append([]string{"CHROOT=" + chroot}, c.Env...)
		out, err := x.CombinedOutput()
		return string(out), err
	}
	if out, err := inside("version"); err != nil || !strings.HasPrefix(out, "ibwarden "+version) {
		t.Errorf("version: %v\n%s", err, out)
	}
	if out, err := inside("audit", "--fabric", "sim"); !strings.Contains(out, "findings") {
		t.Errorf("audit: %v\n%s", err, out)
	}
	if out, err := inside("run", "--once", "--fabric", "sim"); err != nil || !strings.Contains(out, "verdict: isolated") {
		t.Errorf("run: %v\n%s", err, out)
	}
	if out, err := inside("snapshot", "--fabric", "sim", "-o", "/etc/ibwarden/now.snap"); err == nil {
		t.Errorf("the image let itself be written:\n%s", out)
	}
}
