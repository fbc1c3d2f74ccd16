package inside

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/simserve/fuse"
	"github.com/ibwarden/ibwarden/internal/simserve/umadfs"
)

// sysDepth bounds how deep directories below a port's are shown, sysEntries how many files a
// directory may have: a P_Key table has 65,535 at most.
const (
	sysDepth   = 4
	sysEntries = 1 << 17
)

// roots are the directories of the namespace, in the order of umadfs.Mounts: the port's umad
// file, and what this machine says of its device and of that port alone. There is no issm
// file: a program cannot be a subnet manager.
func roots(root string, p *umad.Port, device *umadfs.Device) []fuse.Directory {
	devices, adapters, management := &umadfs.Folder{}, &umadfs.Folder{}, &umadfs.Folder{}
	devices.Add(p.MAD, device)
	dir := filepath.Join(root, "sys/class/infiniband", p.Device)
	adapter, ports := &umadfs.Folder{}, &umadfs.Folder{}
	mirror(adapter, dir, 0)
	port := &umadfs.Folder{}
	num := strconv.Itoa(int(p.Num))
	mirror(port, filepath.Join(dir, "ports", num), sysDepth)
	ports.Add(num, port)
	adapter.Add("ports", ports)
	adapters.Add(p.Device, adapter)
	dir = filepath.Join(root, "sys/class/infiniband_mad")
	mirror(management, dir, 0)
	of := &umadfs.Folder{}
	mirror(of, filepath.Join(dir, p.MAD), 0)
	management.Add(p.MAD, of)
	return []fuse.Directory{devices, adapters, management}
}

// mirror shows the regular files of a directory, which are read when somebody opens them, and
// so many levels of directories below. Links lead out of it and are left out.
func mirror(to *umadfs.Folder, dir string, depth int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it went away, and the device with it
	}
	for _, e := range entries[:min(len(entries), sysEntries)] {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.Type().IsRegular():
			to.Text(e.Name(), func() string {
				text, _ := os.ReadFile(path) // empty where it cannot be read, as of a GID that is not set
				return string(text)
			})
		case e.IsDir() && depth > 0:
			below := &umadfs.Folder{}
			mirror(below, path, depth-1)
			to.Add(e.Name(), below)
		}
	}
}
