package look

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/umad"
)

// linkInfiniBand is the link layer that has subnet management.
const linkInfiniBand = "InfiniBand"

// choose finds the port that --fabric umad:PLACE takes.
func choose(f *Facts, place string, guid ib.PortGUID) (umad.Port, error) {
	if f.Fault != nil {
		return umad.Port{}, f.Fault
	}
	at, err := umad.ParsePlace(place)
	if err != nil {
		return umad.Port{}, err
	}
	at.GUID = guid
	return umad.Choose(f.Devices, at)
}

func name(p *umad.Port) string { return p.Device + "/" + strconv.Itoa(int(p.Num)) }

// adapterOf is the function on the PCI bus that a device is; nil where it is none.
func (f *Facts) adapterOf(device string) *Adapter {
	for i := range f.Adapters {
		if slices.Contains(f.Adapters[i].Names, device) {
			return &f.Adapters[i]
		}
	}
	return nil
}

// omniPath reports whether a device is no InfiniBand, whatever its ports say.
func (f *Facts) omniPath(device string) bool {
	a := f.adapterOf(device)
	return a != nil && a.omniPath() || a == nil && strings.HasPrefix(device, "hfi1_")
}

// noSMI reports whether the kernel offers no subnet management packets at a port with a
// MAD file: it makes no issm file for one, and its firmware says IsSMDisabled.
func (f *Facts) noSMI(p *umad.Port) bool {
	return p.LinkLayer == linkInfiniBand && p.MAD != "" && (p.IsSM == "" || f.Disabled[DoctorPlace{p.Device, p.Num}])
}

// ports checks each port, with its files.
func (r *DoctorReport) ports(f *Facts) {
	if f.Fault != nil {
		r.add(Missing, "RDMA devices", f.Fault.Error())
		return
	}
	for _, d := range f.Devices {
		for i := range d.Ports {
			p := &d.Ports[i]
			r.port(f, p)
			if p.LinkLayer == linkInfiniBand && !f.omniPath(p.Device) {
				r.files(f, p)
				r.holders(f, p)
			}
		}
	}
}

// port checks the link and the state of one port.
func (r *DoctorReport) port(f *Facts, p *umad.Port) {
	subject := "port " + name(p)
	link := fmt.Sprintf("%s, %s, physical state %s, %s", p.LinkLayer, p.State, p.Physical, p.Rate)
	switch {
	case f.omniPath(p.Device):
		r.add(Skipped, subject, "Omni-Path is not InfiniBand")
	case p.LinkLayer != linkInfiniBand:
		r.add(Warning, subject, link+": RoCE has no subnet management; a port of a VPI adapter can be set to InfiniBand, which takes effect with the next reset", f.toInfiniBand(p))
	case f.noSMI(p):
		r.separate(f, p)
	case p.Physical == "Disabled":
		r.add(r.worst, subject, link+": the port was disabled", doctorCommand("ibportstate -C %s -P %s -D 0 "+strconv.Itoa(int(p.Num))+" enable", p.Device, strconv.Itoa(int(p.Num))))
	case p.Usable() != nil && p.MAD != "":
		r.add(r.worst, subject, link+": no link: look for the cable, and whether the other end has power", doctorCommand("ibstat %s %s", p.Device, strconv.Itoa(int(p.Num))))
	case p.MAD == "":
		r.add(r.worst, subject, link+", without a MAD file: ib_umad is not loaded")
	case p.State == "INIT":
		r.add(Warning, subject, link+": no subnet manager has configured it; it can be read all the same, by directed route")
	case p.State == "ARMED":
		r.add(Warning, subject, fmt.Sprintf("%s: a subnet manager is configuring it, or ended while it was; LID %d", link, p.LID))
	default:
		r.add(OK, subject, fmt.Sprintf("%s; a subnet manager at LID %d gave it LID %d", link, p.SMLID, p.LID))
	}
}

// toInfiniBand is the command that sets the link layer of a port of an adapter of Mellanox.
// An adapter of mlx5 is a function for each port, and its settings count all of them.
func (f *Facts) toInfiniBand(p *umad.Port) string {
	a := f.adapterOf(p.Device)
	if a == nil || a.Vendor != vendorMellanox {
		return ""
	}
	num := int(p.Num)
	if core, _ := a.drivers(); core == "mlx5_core" {
		_, function, _ := strings.Cut(a.Slot, ".")
		n, err := strconv.Atoi(function)
		if err != nil || n > 1 {
			return "" // a virtual function, which has the link layer of its port
		}
		num = n + 1
	}
	return doctorCommand("mlxconfig -d %s set LINK_TYPE_P"+strconv.Itoa(num)+"=1", a.Slot)
}

// separate tells of a port whose management is a device of its own, as the kernel makes
// for adapters with several planes (XDR).
func (r *DoctorReport) separate(f *Facts, p *umad.Port) {
	a := f.adapterOf(p.Device)
	for _, d := range f.Devices {
		for i := range d.Ports {
			q := &d.Ports[i]
			if d.Name != p.Device && q.LinkLayer == linkInfiniBand && !f.noSMI(q) && q.Usable() == nil && a != nil && f.adapterOf(d.Name) == a {
				r.add(Warning, "port "+name(p), "the kernel offers no subnet management here: this adapter has a device of its own for it, "+d.Name+": name that one; one port of it is one plane",
					doctorCommand("ibwarden audit --fabric umad:%s", name(q)), doctorCommand("rdma dev show %s", d.Name))
				return
			}
		}
	}
	r.add(r.worst, "port "+name(p), "the kernel offers no subnet management here: a virtual function, or an adapter whose management is a device of its own, which is not there or not up",
		"rdma dev show", doctorCommand("rdma dev add smi0 type SMI parent %s", p.Device))
}

// files checks the device files of a port.
func (r *DoctorReport) files(f *Facts, p *umad.Port) {
	for _, file := range []string{p.MAD, p.IsSM} {
		if file == "" {
			continue
		}
		status, what := r.worst, "subnet management packets"
		if file == p.IsSM {
			status, what = Warning, "a manager that runs" // who only reads opens no issm file
		}
		subject, path := "/dev/infiniband/"+file, "/dev/infiniband/"+file
		err := f.Access[file]
		switch {
		case err == nil:
			r.add(OK, subject, "of "+name(p)+", for "+what+": this user can read and write it")
		case errors.Is(err, fs.ErrNotExist) && f.Container:
			r.add(status, subject, "the kernel has it, and this container has not: pass it in", doctorCommand("docker run --device %s ...", path))
		case errors.Is(err, fs.ErrNotExist):
			r.add(status, subject, "the kernel has it, and /dev has not: udev does not run, or in a container the file was not passed in",
				"udevadm trigger --subsystem-match=infiniband_mad", doctorCommand("docker run --device %s ...", path))
		case errors.Is(err, fs.ErrPermission) && f.Root:
			r.add(status, subject, "no permission, for root: a container or a security module refuses it", doctorCommand("docker run --device %s ...", path))
		case errors.Is(err, fs.ErrPermission):
			r.add(status, subject, "no permission: only who can write to it can send "+what+". Run as root, or give the file to a group, whose members can then manage the fabric",
				"sudo ibwarden doctor --fabric "+r.fabricWord(), doctorCommand("setfacl -m u:$(id -un):rw %s", path))
		default:
			r.add(status, subject, err.Error())
		}
	}
}

// fabricWord is the fabric for a command; umad if it is no word of one.
func (r *DoctorReport) fabricWord() string {
	if w, ok := word(r.Fabric); ok {
		return w
	}
	return "umad"
}

// holders tells who else uses a port.
func (r *DoctorReport) holders(f *Facts, p *umad.Port) {
	subject := "manager at " + name(p)
	sm, runs := f.Held[p.IsSM]
	if p.IsSM == "" {
		runs = false
	}
	mad, uses := f.Held[p.MAD]
	ours := func(n string) bool { return n == "ibwarden" || strings.HasPrefix(n, "ibwarden ") }
	switch {
	case runs && ours(sm.Name):
		r.add(OK, subject, fmt.Sprintf("%s (process %d) manages the fabric from here", sm.Name, sm.PID), "ibwarden show managers")
	case runs:
		r.add(Warning, subject, fmt.Sprintf("%s (process %d) is a subnet manager here. Reading does not disturb it; ibwarden run needs the port alone", sm.Name, sm.PID), doctorCommand("ibwarden plan --fabric %s --policy policy.yaml", r.Fabric))
	case uses:
		r.add(Warning, subject, fmt.Sprintf("%s (process %d) has %s open. Reading does not disturb it; if it registered as a manager, ibwarden run needs the port alone", mad.Name, mad.PID, p.MAD), fmt.Sprintf("ps -fp %d", mad.PID))
	case !f.Root:
		r.add(Skipped, subject, "only root sees which files the programs of others have open", "sudo ibwarden doctor --fabric "+r.fabricWord())
	default:
		r.add(OK, subject, "no other program of this host has its files open")
	}
}

// chosen tells which port --fabric takes.
func (r *DoctorReport) chosen(f *Facts, p umad.Port, err error) {
	subject := "--fabric " + r.Fabric
	switch {
	case errors.Is(err, umad.ErrNoDevice) && len(f.Adapters) == 0, f.Fault != nil:
		// said already
	case err != nil:
		r.add(Missing, subject, err.Error())
	case f.omniPath(p.Device):
		r.add(Missing, subject, name(&p)+", which is Omni-Path: name another port", "ibwarden show adapters")
	case f.Access[p.MAD] != nil:
		r.add(Missing, subject, umad.Explain(p.MAD, f.Access[p.MAD]).Error())
	default:
		r.Port = name(&p)
		r.add(OK, subject, "takes port "+r.Port+", port GUID "+p.GUID.String())
	}
}
