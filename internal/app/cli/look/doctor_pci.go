package look

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Adapter is a function on the PCI bus that is, or may be, an InfiniBand adapter.
type Adapter struct {
	// Slot is its address, such as 0000:3b:00.0.
	Slot           string
	Vendor, Device uint16
	// Class has the class in the upper 16 bits and the programming interface below.
	Class uint32
	// Driver is the module of the driver that has it, empty for none.
	Driver string
	// Names are its RDMA devices.
	Names []string
}

// What adapters say of themselves on the PCI bus.
const (
	vendorMellanox = 0x15b3
	vendorIntel    = 0x8086

	classNetwork    = 0x02   // the upper 8 bits of Class
	classInfiniBand = 0x0207 // the upper 16
	classFabric     = 0x0208 // Omni-Path
	classOldIB      = 0x0c06 // InfiniBand as a serial bus, of the first adapters
)

// mthcaIDs are the adapters before ConnectX.
var mthcaIDs = []uint16{0x5a44, 0x5a45, 0x5a46, 0x6278, 0x6279, 0x6282, 0x6274, 0x5e8c, 0x5e8d}

// onPCI lists the adapters on the PCI bus, ordered by slot.
func onPCI(root string) ([]Adapter, error) {
	dir := filepath.Join(root, "sys/bus/pci/devices")
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := []Adapter{}
	for _, e := range list {
		a := Adapter{Slot: e.Name()}
		vendor, err1 := hexadecimal(dir, a.Slot, "vendor")
		device, err2 := hexadecimal(dir, a.Slot, "device")
		class, err3 := hexadecimal(dir, a.Slot, "class")
		if err1 != nil || err2 != nil || err3 != nil {
			continue // it went away
		}
		a.Vendor, a.Device, a.Class = uint16(vendor), uint16(device), uint32(class)
		if !a.interesting() {
			continue
		}
		guest := there(filepath.Join(dir, a.Slot, "physfn")) // a virtual function, beside the physical one
		if driver, err := os.Readlink(filepath.Join(dir, a.Slot, "driver")); err == nil {
			a.Driver = filepath.Base(driver)
		}
		names, _ := os.ReadDir(filepath.Join(dir, a.Slot, "infiniband")) // not there before the driver has made one
		for _, n := range names {
			a.Names = append(a.Names, n.Name())
		}
		if guest && len(a.Names) == 0 {
			continue // there may be hundreds, for guests
		}
		out = append(out, a)
	}
	return out, nil
}

func hexadecimal(dir, slot, name string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(dir, slot, name))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 0, 32)
}

// interesting reports whether this may be an adapter with InfiniBand: any that says so, and
// Mellanox's network adapters, whose ports may be set to either link layer.
func (a *Adapter) interesting() bool {
	switch a.Class >> 8 {
	case classInfiniBand, classOldIB:
		return true
	}
	return a.Vendor == vendorMellanox && a.Class>>16 == classNetwork || a.omniPath()
}

// omniPath reports whether it is Omni-Path, which looks like InfiniBand to many programs and
// has another management.
func (a *Adapter) omniPath() bool {
	return a.Vendor == vendorIntel && (a.Class>>8 == classFabric || a.Driver == "hfi1")
}

// saysInfiniBand reports whether its ports are InfiniBand's by its class.
func (a *Adapter) saysInfiniBand() bool {
	return a.Class>>8 == classInfiniBand || a.Class>>8 == classOldIB
}

// drivers are the module that takes it, and the one that makes it an RDMA device; both
// empty where that is not known.
func (a *Adapter) drivers() (core, rdma string) {
	switch {
	case a.Vendor != vendorMellanox:
		return "", ""
	case slices.Contains(mthcaIDs, a.Device):
		return "ib_mthca", "ib_mthca"
	case a.Device >= 0x1002 && a.Device <= 0x1010, a.Device >= 0x6340 && a.Device <= 0x6778:
		return "mlx4_core", "mlx4_ib" // ConnectX to ConnectX-3 Pro
	}
	return "mlx5_core", "mlx5_ib" // Connect-IB, ConnectX-4 and later, BlueField
}

func (a *Adapter) subject() string { return "adapter " + a.Slot }

func (a *Adapter) what() string { return fmt.Sprintf("PCI device %04x:%04x", a.Vendor, a.Device) }

// elsewhere are commands for a host without an adapter.
var elsewhere = []string{"ibwarden doctor --fabric sim", "ibwarden audit --fabric sim"}

// adapters checks the PCI bus.
func (r *DoctorReport) adapters(f *Facts) {
	for i := range f.Adapters {
		r.adapter(&f.Adapters[i], f)
	}
	switch {
	case len(f.Adapters) > 0:
	case len(f.Devices) > 0: // simulated, or not on PCI
		r.add(OK, "adapters", "none on the PCI bus; the kernel has RDMA devices all the same")
	case f.PCI != nil:
		r.add(Missing, "adapters", "no RDMA device of the kernel, and the PCI bus cannot be read: "+f.PCI.Error(), elsewhere...)
	default:
		r.add(Missing, "adapters", "no InfiniBand adapter on the PCI bus, and no RDMA device of the kernel: run this on a host with an adapter, or try the simulated fabric", elsewhere...)
	}
}

func (r *DoctorReport) adapter(a *Adapter, f *Facts) {
	core, rdma := a.drivers()
	status := r.worst
	if !a.saysInfiniBand() {
		status = Warning // an Ethernet adapter need not be one for InfiniBand
	}
	boot := func(m string) string { return "echo " + m + " >/etc/modules-load.d/" + m + ".conf" }
	switch {
	case a.omniPath():
		r.add(Warning, a.subject(), a.what()+" is Omni-Path (hfi1), which is not InfiniBand: it has a manager of its own, and ibwarden cannot manage or audit it")
	case a.Driver == "vfio-pci":
		r.add(status, a.subject(), a.what()+" is handed to a virtual machine (vfio-pci): look inside that")
	case a.Driver == "" && core == "":
		r.add(status, a.subject(), a.what()+" has no driver; which module is its driver, ibwarden does not know", doctorCommand("lspci -k -s %s", a.Slot))
	case a.Driver == "":
		r.add(status, a.subject(), a.what()+" has no driver: "+core+" is not loaded, or did not start it", "modprobe "+core, boot(core), "dmesg | grep "+core)
	case len(a.Names) == 0 && rdma != "" && f.Loaded[rdma]:
		r.add(status, a.subject(), a.what()+" has the driver "+a.Driver+" and "+rdma+", and no RDMA device here: "+rdma+" made none, or another network namespace has it", "dmesg | grep "+rdma, "rdma system show netns")
	case len(a.Names) == 0 && rdma != "":
		r.add(status, a.subject(), a.what()+" has the driver "+a.Driver+", and no RDMA device: "+rdma+" is not loaded", "modprobe "+rdma, boot(rdma))
	case len(a.Names) == 0:
		r.add(status, a.subject(), a.what()+" has the driver "+a.Driver+", and no RDMA device", doctorCommand("lspci -k -s %s", a.Slot))
	default:
		r.add(OK, a.subject(), a.what()+", driver "+a.Driver+", RDMA device "+strings.Join(a.Names, ", "))
	}
}

// modules checks the modules that every adapter needs.
func (r *DoctorReport) modules(f *Facts) {
	switch {
	case f.HasRDMA:
		r.add(OK, "module ib_core", "there is /sys/class/infiniband")
	case len(f.Adapters) == 0:
		r.add(Skipped, "module ib_core", "nothing needs it without an adapter")
	default:
		r.add(Missing, "module ib_core", "not loaded: there is no /sys/class/infiniband", "modprobe ib_core")
	}
	switch {
	case f.HasMAD:
		r.add(OK, "module ib_umad", "there is /sys/class/infiniband_mad")
	case len(f.Adapters) == 0 && len(f.Devices) == 0:
		r.add(Skipped, "module ib_umad", "nothing needs it without an adapter")
	default:
		r.add(Missing, "module ib_umad", "not loaded: there is no /sys/class/infiniband_mad, through which management packets are sent",
			"modprobe ib_umad", "echo ib_umad >/etc/modules-load.d/ib_umad.conf")
	}
}
