package umad

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// Device is one adapter, or the management port of a switch.
type Device struct {
	Name     string
	Type     string // "CA", "switch", "router", or what the kernel says
	NodeGUID ib.NodeGUID
	// SystemImageGUID is shared by the parts of one machine.
	SystemImageGUID ib.NodeGUID
	Firmware        string
	Board           string // hca_type
	Ports           []Port
}

// Port is one port of an adapter.
type Port struct {
	Device     string
	Num        ib.PortNum
	GUID       ib.PortGUID // of GID 0
	LID, SMLID ib.LID
	State      string // "ACTIVE", "INIT", "DOWN", ...
	Physical   string // "LinkUp", "Polling", ...
	Rate       string
	LinkLayer  string // "InfiniBand" or "Ethernet"
	// MAD and IsSM name the port's files in /dev/infiniband, empty when it has
	// none.
	MAD, IsSM string
}

// linkInfiniBand is the link layer of a port that has subnet management.
const linkInfiniBand = "InfiniBand"

// The faults of a machine without devices.
var (
	ErrNoModule = errors.New("no /sys/class/infiniband_mad: the kernel module ib_umad is not loaded (modprobe ib_umad)")
	ErrNoDevice = errors.New("no InfiniBand device: no adapter, or its driver is not loaded")
)

// Devices lists the adapters of the machine whose file tree is at root, "/" for
// this one, by name.
func Devices(root string) ([]Device, error) {
	if errPlatform != nil {
		return nil, errPlatform
	}
	names, err := entries(filepath.Join(root, "sys/class/infiniband"))
	if err != nil {
		return nil, err
	}
	files, err := madFiles(root)
	if err != nil && !errors.Is(err, ErrNoModule) {
		return nil, err
	}
	out := make([]Device, 0, len(names))
	for _, name := range names {
		d, err := readDevice(root, name, files)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went away while it was read
		}
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// PKeys is the P_Key table of a port, as far as it can be read.
func PKeys(root string, p *Port) (keys []ib.PKey) {
	dir := filepath.Join(root, "sys/class/infiniband", p.Device, "ports", strconv.Itoa(int(p.Num)), "pkeys")
	for i := 0; ; i++ {
		text, err := attribute(dir, strconv.Itoa(i))
		if err != nil {
			return keys
		}
		key, err := strconv.ParseUint(text, 0, 16)
		if err != nil {
			return keys
		}
		keys = append(keys, ib.PKey(key))
	}
}

// entries lists a directory; one that does not exist is empty.
func entries(dir string) (names []string, err error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names, err
}

// portKey names a port as /sys/class/infiniband_mad does.
type portKey struct {
	device string
	num    string
}

// madFiles finds the umad and issm file of each port.
func madFiles(root string) (map[portKey][2]string, error) {
	dir := filepath.Join(root, "sys/class/infiniband_mad")
	version, err := attribute(dir, "abi_version")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoModule
	}
	if err != nil {
		return nil, err
	}
	if version != strconv.Itoa(Version) {
		return nil, fmt.Errorf("%s/abi_version: %q, want %d", dir, version, Version)
	}
	names, err := entries(dir)
	if err != nil {
		return nil, err
	}
	out := make(map[portKey][2]string)
	for _, name := range names {
		kind := slices.Index([]string{"umad", "issm"}, strings.TrimRight(name, "0123456789"))
		if kind < 0 {
			continue
		}
		device, err1 := attribute(dir, name, "ibdev")
		num, err2 := attribute(dir, name, "port")
		if err1 != nil || err2 != nil {
			continue // it went away
		}
		at := out[portKey{device, num}]
		at[kind] = name
		out[portKey{device, num}] = at
	}
	return out, nil
}

// attribute reads a file of /sys.
func attribute(parts ...string) (string, error) {
	b, err := os.ReadFile(filepath.Join(parts...))
	return strings.TrimSpace(string(b)), err
}

func readDevice(root, name string, files map[portKey][2]string) (Device, error) {
	dir := filepath.Join(root, "sys/class/infiniband", name)
	d := Device{Name: name}
	kind, err := attribute(dir, "node_type")
	if err != nil {
		return d, err
	}
	d.Type = afterColon(kind)
	if d.NodeGUID, err = nodeGUID(dir, "node_guid"); err != nil {
		return d, err
	}
	if d.SystemImageGUID, err = nodeGUID(dir, "sys_image_guid"); err != nil {
		return d, err
	}
	d.Firmware, _ = attribute(dir, "fw_ver") // not every driver has these two
	d.Board, _ = attribute(dir, "hca_type")
	nums, err := entries(filepath.Join(dir, "ports"))
	if err != nil {
		return d, err
	}
	for _, num := range nums {
		p, err := readPort(dir, num)
		if err != nil {
			return d, err
		}
		p.Device = name
		file := files[portKey{name, num}]
		p.MAD, p.IsSM = file[0], file[1]
		d.Ports = append(d.Ports, p)
	}
	slices.SortFunc(d.Ports, func(a, b Port) int { return cmp.Compare(a.Num, b.Num) })
	return d, nil
}

func readPort(device, num string) (p Port, err error) {
	dir := filepath.Join(device, "ports", num)
	n, err := strconv.ParseUint(num, 10, 8)
	if err != nil {
		return p, fmt.Errorf("%s: want a port number", dir)
	}
	p.Num = ib.PortNum(n)
	for _, a := range []struct {
		name string
		take func(string) error
	}{
		{"link_layer", text(&p.LinkLayer)},
		{"state", text(&p.State)},
		{"phys_state", text(&p.Physical)},
		{"rate", text(&p.Rate)},
		{"lid", number(&p.LID)},
		{"sm_lid", number(&p.SMLID)},
		{"gids/0", func(s string) error {
			gid, err := ib.ParseGID(s)
			p.GUID = gid.PortGUID()
			return err
		}},
	} {
		value, err := attribute(dir, a.name)
		if err == nil {
			err = a.take(value)
		}
		if err != nil {
			return p, fmt.Errorf("%s: %w", filepath.Join(dir, a.name), err)
		}
	}
	return p, nil
}

// text keeps what follows "4: ", or all.
func text(to *string) func(string) error {
	return func(s string) error {
		*to = afterColon(s)
		return nil
	}
}

func number(to *ib.LID) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseUint(s, 0, 16)
		*to = ib.LID(n)
		return err
	}
}

func afterColon(s string) string {
	if before, after, ok := strings.Cut(s, ": "); ok && strings.Trim(before, "0123456789") == "" {
		return after
	}
	return s
}

// nodeGUID reads four groups of four digits.
func nodeGUID(dir, name string) (ib.NodeGUID, error) {
	s, err := attribute(dir, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%s/%s: %q is no GUID", dir, name, s)
	}
	return ib.NodeGUID(n), nil
}
