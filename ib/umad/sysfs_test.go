package umad_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/umad"
	transport "github.com/ibwarden/ibwarden/internal/link/umad"
)

// tree writes files below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// host is a machine with an adapter of two ports, one of them Ethernet.
func host() map[string]string {
	files := map[string]string{"sys/class/infiniband_mad/abi_version": "5"}
	ib0, mad := "sys/class/infiniband/mlx5_0/", "sys/class/infiniband_mad/"
	for name, value := range map[string]string{
		"node_type": "1: CA", "node_guid": "0002:c903:0012:3456", "sys_image_guid": "0002:c903:0012:3459",
		"fw_ver": "20.31.1014", "hca_type": "MT4123",
		"ports/1/link_layer": "InfiniBand", "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp",
		"ports/1/rate": "200 Gb/sec (4X HDR)", "ports/1/lid": "0x11", "ports/1/sm_lid": "0x1",
		"ports/1/gids/0":     "fe80:0000:0000:0000:0002:c903:0012:3457",
		"ports/2/link_layer": "Ethernet", "ports/2/state": "4: ACTIVE", "ports/2/phys_state": "5: LinkUp",
		"ports/2/rate": "100 Gb/sec (4X EDR)", "ports/2/lid": "0x0", "ports/2/sm_lid": "0x0",
		"ports/2/gids/0": "fe80:0000:0000:0000:0002:c9ff:fe12:3458",
	} {
		files[ib0+name] = value
	}
	for _, kind := range []string{"umad", "issm"} {
		for i, port := range []string{"1", "2"} {
			files[mad+kind+string(rune('0'+i))+"/ibdev"] = "mlx5_0"
			files[mad+kind+string(rune('0'+i))+"/port"] = port
		}
	}
	return files
}

func TestDevices(t *testing.T) {
	got, err := umad.Devices(tree(t, host()))
	if err != nil || len(got) != 1 || len(got[0].Ports) != 2 {
		t.Fatalf("%+v, %v, want one device with two ports", got, err)
	}
	d := got[0]
	if d.Name != "mlx5_0" || d.Type != "CA" || d.NodeGUID != 0x0002c90300123456 || d.SystemImageGUID != 0x0002c90300123459 ||
		d.Firmware != "20.31.1014" || d.Board != "MT4123" {
		t.Errorf("%+v", d)
	}
	want := umad.Port{
		Device: "mlx5_0", Num: 1, GUID: 0x0002c90300123457, LID: 0x11, SMLID: 1, State: "ACTIVE", Physical: "LinkUp",
		Rate: "200 Gb/sec (4X HDR)", LinkLayer: "InfiniBand", MAD: "umad0", IsSM: "issm0",
	}
	if d.Ports[0] != want {
		t.Errorf("%+v, want\n%+v", d.Ports[0], want)
	}
}

func TestNoDevices(t *testing.T) {
	if got, err := umad.Devices(t.TempDir()); err != nil || len(got) != 0 {
		t.Errorf("%v, %v, want none", got, err)
	}
}

// TestBadTree: what cannot be read names the file.
func TestBadTree(t *testing.T) {
	for name, value := range map[string]string{
		"sys/class/infiniband_mad/abi_version":               "4",
		"sys/class/infiniband/mlx5_0/node_guid":              "x",
		"sys/class/infiniband/mlx5_0/ports/1/lid":            "0x10000",
		"sys/class/infiniband/mlx5_0/ports/1/gids/0":         "none",
		"sys/class/infiniband/mlx5_0/ports/eth/state":        "1",
		"sys/class/infiniband/mlx5_0/ports/300/link_layer":   "InfiniBand",
		"sys/class/infiniband/mlx5_0/sys_image_guid":         "1:2:3:4:5:6:7:8:9:a:b:c:d:e:f:0:1",
		"sys/class/infiniband/mlx5_0/ports/2/sm_lid":         "-1",
		"sys/class/infiniband/mlx5_0/ports/2/gids/0/not-dir": "",
	} {
		files := host()
		files[name] = value
		if strings.HasSuffix(name, "not-dir") {
			delete(files, filepath.Dir(name))
		}
		_, err := umad.Devices(tree(t, files))
		part := strings.TrimSuffix(filepath.Base(name), "not-dir")
		if part == "state" || part == "link_layer" {
			part = filepath.Base(filepath.Dir(name))
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s = %q: %v, want an error that names it", name, value, err)
		}
	}
}

// TestOpenFaults: what goes wrong in practice is said in words. The files in
// /dev are ordinary ones: whoever gets so far learns that they are no devices.
func TestOpenFaults(t *testing.T) {
	const p1, p2 = "sys/class/infiniband/mlx5_0/ports/1/", "sys/class/infiniband/mlx5_0/ports/2/"
	for _, c := range []struct {
		name   string
		place  string
		guid   ib.PortGUID
		change map[string]string
		drop   string
		want   string
	}{
		{name: "no driver", drop: "sys/", want: "no InfiniBand device: no adapter, or its driver is not loaded"},
		{name: "no module", drop: "sys/class/infiniband_mad/", want: "mlx5_0 port 1: no /sys/class/infiniband_mad: the kernel module ib_umad is not loaded"},
		{name: "no such device", place: "mlx4_0", want: "no device mlx4_0; there are mlx5_0/1, mlx5_0/2"},
		{name: "no such port", place: "mlx5_0/3", want: "no device mlx5_0, port 3; there are mlx5_0/1, mlx5_0/2"},
		{name: "no such GUID", guid: 5, want: "no port GUID 0x0000000000000005; there are"},
		{name: "RoCE", place: "mlx5_0/2", want: "mlx5_0 port 2: its link layer is Ethernet (RoCE)"},
		{name: "port down", change: map[string]string{p1 + "state": "1: DOWN", p1 + "phys_state": "2: Polling"},
			want: "mlx5_0 port 1 is down (physical state Polling)"},
		{name: "all RoCE", change: map[string]string{p1 + "link_layer": "Ethernet"}, want: "mlx5_0 port 1: its link layer is Ethernet"},
		{name: "no file in /dev", want: "/dev/infiniband/umad0: the kernel has this device but /dev has not"},
		{name: "no device behind it", change: map[string]string{"dev/infiniband/umad0": ""}, want: "/dev/infiniband/umad0: inappropriate ioctl for device"},
		{name: "the other port is used when the first is not InfiniBand",
			change: map[string]string{p1 + "link_layer": "Ethernet", p2 + "link_layer": "InfiniBand"}, want: "/dev/infiniband/umad1: "},
	} {
		files := host()
		for name := range files {
			if c.drop != "" && strings.HasPrefix(name, c.drop) {
				delete(files, name)
			}
		}
		for name, value := range c.change {
			files[name] = value
		}
		place, err := umad.ParsePlace(c.place)
		if err != nil {
			t.Fatal(err)
		}
		place.GUID = c.guid
		root := tree(t, files)
		if _, _, err := umad.Open(root, place); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if _, err = transport.Open(transport.NewMachine(root), place, transport.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the link says %v, want %q", c.name, err, c.want)
		}
	}
}

// TestNoPermission needs a user whom modes bind.
func TestNoPermission(t *testing.T) {
	files := host()
	files["dev/infiniband/umad0"] = ""
	root := tree(t, files)
	path := filepath.Join(root, "dev/infiniband/umad0")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	want := "/dev/infiniband/umad0: no permission: run as root"
	if f, err := os.Open(path); err == nil {
		f.Close()
		want = "inappropriate ioctl" // root reads everything, and is told about the next fault
	}
	if _, err := transport.Open(transport.NewMachine(root), umad.Place{}, transport.Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestParsePlace(t *testing.T) {
	for in, want := range map[string]umad.Place{"": {}, "mlx5_0": {Device: "mlx5_0"}, "mlx5_0/2": {Device: "mlx5_0", Num: 2}} {
		if got, err := umad.ParsePlace(in); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"mlx5_0/", "mlx5_0/0", "mlx5_0/256", "mlx5_0/x", "/1"} {
		if _, err := umad.ParsePlace(in); err == nil {
			t.Errorf("%q was taken", in)
		}
	}
}
