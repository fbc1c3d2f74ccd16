package guest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// kernelPackage is a package that depends on Debian's current kernel.
const kernelPackage = "linux-image-amd64"

// Tools are the packages of every guest: a shell, the verbs and the diagnostics.
var Tools = []string{
	"busybox-static", "libc6", "libgcc-s1", "libibverbs1", "ibverbs-providers", "ibverbs-utils",
	"libnl-3-200", "libnl-route-3-200", "libibumad3", "libibmad5", "libibnetdisc5",
	"infiniband-diags", "librdmacm1", "rdmacm-utils",
}

// needed are, by the name of a package, those that it does not run without.
var needed = map[string][]string{
	"opensm": {
		"libopensm9", "libosmcomp5", "libosmvendor5", "libwrap0", "libnsl2", "libtirpc3",
		"libgssapi-krb5-2", "libkrb5-3", "libk5crypto3", "libkrb5support0", "libcom-err2", "libkeyutils1",
	},
	"perftest": {"libpci3", "libudev1", "zlib1g"}, // and libmlx5 and libefa, of ibverbs-providers
}

// modules are those of the adapter and of what uses it, in the order in which they load.
var modules = []string{
	"ib_core", "ib_uverbs", "rdmavt", "dca", "ib_umad", "ib_qib",
	"configfs", "iw_cm", "ib_cm", "ib_ipoib", "rdma_cm", "rdma_ucm",
}

// builtIn are those of modules that a kernel may have in itself.
var builtIn = []string{"dca", "configfs"}

// left are parts of packages that no guest uses.
var left = []string{
	"usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/lintian/", "usr/share/bug/",
	"usr/share/perl5/", "usr/lib/systemd/", "usr/lib/x86_64-linux-gnu/gconv/", "usr/share/bash-completion/",
	"usr/lib/x86_64-linux-gnu/libmvec", "usr/lib/x86_64-linux-gnu/krb5/", "usr/lib/x86_64-linux-gnu/libmlx4", "usr/lib/x86_64-linux-gnu/libmana",
}

//go:embed image/init
var initScript []byte

//go:embed image/inittab
var inittab []byte

//go:embed image/agent
var agentScript []byte

// Image is what a machine boots.
type Image struct {
	Kernel, Root string // files
}

// MakeImage makes an image with Tools and more packages, opensm and perftest with what they need, or returns
// the one that was made before from the same list. An error names the package that is missing, and what
// installs it.
func MakeImage(ctx context.Context, packages []string) (Image, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return Image{}, fmt.Errorf("a guest's image: %w", err)
	}
	m := maker{ctx: ctx, debs: filepath.Join(cache, "ibwarden", "guest", "packages")}
	all := slices.Concat(Tools, packages)
	for _, name := range packages {
		all = append(all, needed[name]...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	sum := sha256.Sum256(slices.Concat([]byte(strings.Join(slices.Concat(all, left), " ")), initScript, inittab, agentScript))
	dir := filepath.Join(cache, "ibwarden", "guest", "image-"+hex.EncodeToString(sum[:8]))
	image := Image{Kernel: filepath.Join(dir, "vmlinuz"), Root: filepath.Join(dir, "root.cpio")}
	if err := os.MkdirAll(m.debs, 0o755); err != nil {
		return Image{}, err
	}
	lock, err := os.OpenFile(filepath.Join(m.debs, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return Image{}, err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return Image{}, os.NewSyscallError("flock", err)
	}
	if _, err := os.Stat(dir); err == nil {
		return image, nil
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return Image{}, err
	}
	defer os.RemoveAll(temporary)
	if err := m.make(temporary, all); err != nil {
		return Image{}, fmt.Errorf("a guest's image: %w", err)
	}
	return image, os.Rename(temporary, dir)
}

// maker makes one image.
type maker struct {
	ctx  context.Context
	debs string
	root *archive
	dir  string
	seen map[string]bool // modules of the kernel
}

func (m *maker) make(dir string, packages []string) error {
	m.dir = dir
	kernel, err := m.kernel()
	if err != nil {
		return err
	}
	files, err := m.fetch(append([]string{kernel}, packages...))
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, "root.cpio"))
	if err != nil {
		return err
	}
	defer out.Close()
	m.root, m.seen = newArchive(out), map[string]bool{}
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		m.root.add(link, modeLink|0o777, []byte("usr/"+link))
	}
	m.root.add("init", modeFile|0o755, initScript)
	m.root.add("etc/inittab", modeFile|0o644, inittab)
	m.root.add("etc/passwd", modeFile|0o644, []byte("root::0:0::/root:/bin/sh\n"))
	m.root.add("usr/bin/agent", modeFile|0o755, agentScript)
	m.root.add("usr/bin/sh", modeLink|0o777, []byte("busybox"))
	if err := m.unpack(files[0], m.kernelFile); err != nil {
		return err
	}
	var order strings.Builder
	for _, name := range modules {
		switch {
		case m.seen[name]:
			order.WriteString(name + "\n")
		case !slices.Contains(builtIn, name):
			return fmt.Errorf("package %s has no module %s", kernel, name)
		}
	}
	m.root.add("usr/lib/modules/order", modeFile|0o644, []byte(order.String()))
	for _, f := range files[1:] {
		if err := m.unpack(f, m.file); err != nil {
			return err
		}
	}
	if err := m.root.close(); err != nil {
		return err
	}
	return out.Close()
}

// run is the output of a program that Debian has.
func (m *maker) run(dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(m.ctx, name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "LC_ALL=C")
	var failed bytes.Buffer
	c.Stderr = &failed
	out, err := c.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not installed: the image is made of Debian's packages, on Debian", name)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(failed.Bytes()))
	}
	return string(out), nil
}

// kernel is the name of the package that has Debian's current kernel.
func (m *maker) kernel() (string, error) {
	out, err := m.run("", "apt-cache", "depends", kernelPackage)
	if err != nil {
		return "", fmt.Errorf("%w (apt-get update, as root, fetches the lists of packages)", err)
	}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok && strings.HasPrefix(name, "linux-image-") {
			return name, nil
		}
	}
	return "", fmt.Errorf("package %s depends on no kernel", kernelPackage)
}

// fetch has the package manager download those packages that were not before, and
// returns their files in the order of the names.
func (m *maker) fetch(packages []string) ([]string, error) {
	// It says nothing of what is in its directory already, so that is another.
	out, err := m.run(m.dir, "apt-get", append([]string{"download", "--print-uris"}, packages...)...)
	if err != nil {
		return nil, fmt.Errorf("%w (apt-get update, as root, fetches the lists of packages)", err)
	}
	named := map[string]string{}
	var missing []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line) // 'URI' FILE SIZE HASH
		if len(fields) < 3 {
			continue
		}
		name, _, _ := strings.Cut(fields[1], "_")
		file := filepath.Join(m.debs, filepath.Base(fields[1]))
		named[name] = file
		if info, err := os.Stat(file); err != nil || fmt.Sprint(info.Size()) != fields[2] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		if _, err := m.run(m.debs, "apt-get", append([]string{"download", "-q"}, missing...)...); err != nil {
			return nil, fmt.Errorf("%w (or, in %s: apt-get download %s)", err, m.debs, strings.Join(missing, " "))
		}
	}
	files := make([]string, len(packages))
	for i, name := range packages {
		var ok bool
		if files[i], ok = named[name]; !ok {
			return nil, fmt.Errorf("package %s: apt-get does not know where it is", name)
		}
	}
	return files, nil
}

// unpack gives each file of a package to a function, with its name below the root.
func (m *maker) unpack(deb string, take func(name string, h *tar.Header, content io.Reader) error) error {
	c := exec.CommandContext(m.ctx, "dpkg-deb", "--fsys-tarfile", deb)
	pipe, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("dpkg-deb, of Debian's package dpkg: %w", err)
	}
	for files := tar.NewReader(pipe); err == nil; {
		var h *tar.Header
		if h, err = files.Next(); err == nil {
			err = take(merged(path.Clean(h.Name)), h, files)
		}
	}
	if errors.Is(err, io.EOF) {
		_, err = io.Copy(io.Discard, pipe)
	}
	if err != nil { // dpkg-deb could be writing
		c.Process.Kill()
	}
	if ends := c.Wait(); err == nil {
		err = ends
	}
	if err != nil {
		return fmt.Errorf("%s: %w", deb, err)
	}
	return nil
}

// merged is a name with /bin and the like below /usr.
func merged(name string) string {
	top, _, _ := strings.Cut(name, "/")
	if slices.Contains([]string{"bin", "sbin", "lib", "lib64"}, top) {
		return "usr/" + name
	}
	return name
}

// file takes a file of a package with programs.
func (m *maker) file(name string, h *tar.Header, content io.Reader) error {
	if slices.ContainsFunc(left, func(prefix string) bool { return strings.HasPrefix(name+"/", prefix) }) {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeReg:
		b, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		m.root.add(name, modeFile|uint32(h.Mode&0o7777), b)
	case tar.TypeSymlink:
		m.root.add(name, modeLink|0o777, []byte(h.Linkname))
	case tar.TypeDir:
		if name != "." {
			m.root.add(name, modeDir|0o755, nil)
		}
	}
	return nil
}

// kernelFile takes the kernel, and its modules that a guest has.
func (m *maker) kernelFile(name string, h *tar.Header, content io.Reader) error {
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	if strings.HasPrefix(name, "boot/vmlinuz-") {
		b, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(m.dir, "vmlinuz"), b, 0o644)
	}
	module, ok := strings.CutSuffix(path.Base(name), ".ko")
	if !ok || !slices.Contains(modules, module) {
		return nil
	}
	m.seen[module] = true
	b, err := io.ReadAll(content)
	m.root.add("usr/lib/modules/"+module+".ko", modeFile|0o644, b)
	return err
}
