package look

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	linkumad "github.com/ibwarden/ibwarden/internal/link/umad"
)

// Facts are what was found of a host.
type Facts struct {
	// Root is true for a user to whom every process shows its open files.
	Root bool
	// Container reports whether there are marks of a container's file tree.
	Container bool
	// Loaded are those of the modules that are there.
	Loaded map[string]bool
	// HasRDMA and HasMAD tell that the kernel has the classes infiniband and
	// infiniband_mad; an empty directory of the latter is a container's mount point.
	HasRDMA, HasMAD bool
	// Adapters are the network adapters on the PCI bus that may be InfiniBand's, and
	// PCI is why they could not be listed.
	Adapters []Adapter
	PCI      error
	// Devices are the RDMA devices, and Fault is why they could not be read.
	Devices []umad.Device
	Fault   error
	// Disabled are the ports that say IsSMDisabled.
	Disabled map[DoctorPlace]bool
	// Access is, for each file of /dev/infiniband that belongs to a port, why
	// this user cannot read and write it; nil where he can.
	Access map[string]error
	// Held are the programs that have such a file open.
	Held    map[string]linkumad.Holder
	Service Service
}

// DoctorPlace is a port of a device.
type DoctorPlace struct {
	Device string
	Num    ib.PortNum
}

// Service is what of ibwarden itself is installed and kept on a host.
type Service struct {
	// Unit and Active tell that the systemd unit is installed, and that it runs.
	Unit, Active bool
	// Data is the data directory, empty for none, and Kept says how it and the secret in
	// it are protected.
	Data          string
	Kept, Secret  DoctorFile
	Cables, State bool
}

// DoctorFile is a file or directory of ibwarden's own.
type DoctorFile struct {
	There bool
	Dir   bool
	Mode  fs.FileMode
	Err   error
}

// modules are those that make RDMA devices of an adapter.
var modules = []string{"mlx5_ib", "mlx4_ib", "ib_mthca"}

// containerMarks are files that container engines make.
var containerMarks = []string{".dockerenv", "run/.containerenv", "var/run/secrets/kubernetes.io"}

// LookAtHost finds the facts of the machine whose file tree is at root, "/" for this one.
// data is ibwarden's data directory, empty for none.
func LookAtHost(root, data string) *Facts {
	at := func(name string) string { return filepath.Join(root, name) }
	f := &Facts{
		Root: os.Geteuid() == 0, Loaded: map[string]bool{}, Disabled: map[DoctorPlace]bool{},
		Access: map[string]error{}, Held: map[string]linkumad.Holder{},
		HasRDMA: there(at("sys/class/infiniband")), HasMAD: there(at("sys/class/infiniband_mad/abi_version")),
	}
	for _, m := range modules {
		f.Loaded[m] = there(at("sys/module/" + m))
	}
	for _, m := range containerMarks {
		f.Container = f.Container || there(at(m))
	}
	f.Adapters, f.PCI = onPCI(root)
	f.Devices, f.Fault = umad.Devices(root)
	machine := linkumad.NewMachine(root)
	for _, d := range f.Devices {
		for _, p := range d.Ports {
			f.Disabled[DoctorPlace{d.Name, p.Num}] = disabled(root, &p)
			for _, name := range []string{p.MAD, p.IsSM} {
				if name == "" {
					continue
				}
				f.Access[name] = access(at("dev/infiniband/" + name))
				if h, some := machine.Holder(&p, name); some {
					f.Held[name] = h
				}
			}
		}
	}
	f.Service = service(root, data)
	return f
}

// disabled reads whether a port says IsSMDisabled.
func disabled(root string, p *umad.Port) bool {
	text, err := os.ReadFile(filepath.Join(root, "sys/class/infiniband", p.Device, "ports", strconv.Itoa(int(p.Num)), "cap_mask"))
	if err != nil {
		return false // an old kernel; not all drivers have it
	}
	mask, err := strconv.ParseUint(strings.TrimSpace(string(text)), 0, 32)
	return err == nil && smp.CapabilityMask(mask).Has(smp.CapSMDisabled)
}

// service finds what there is of ibwarden itself.
func service(root, data string) Service {
	at := func(name string) string { return filepath.Join(root, name) }
	s := Service{Data: data}
	for _, dir := range []string{"etc/systemd/system", "lib/systemd/system", "usr/lib/systemd/system"} {
		s.Unit = s.Unit || there(at(dir+"/ibwarden.service"))
	}
	for _, dir := range []string{"sys/fs/cgroup", "sys/fs/cgroup/systemd"} { // cgroup v2, and v1
		pids, err := os.ReadFile(at(dir + "/system.slice/ibwarden.service/cgroup.procs"))
		s.Active = s.Active || err == nil && len(pids) > 0
	}
	if data != "" {
		s.Kept, s.Secret = file(data), file(filepath.Join(data, "secret"))
		s.Cables, s.State = there(filepath.Join(data, "cables.topology")), there(filepath.Join(data, "state.json"))
	}
	return s
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func file(path string) DoctorFile {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return DoctorFile{}
	}
	if err != nil {
		return DoctorFile{Err: err}
	}
	return DoctorFile{There: true, Dir: info.IsDir(), Mode: info.Mode().Perm()}
}
