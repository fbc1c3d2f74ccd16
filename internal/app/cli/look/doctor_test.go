package look_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	linkumad "github.com/ibwarden/ibwarden/internal/link/umad"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// links marks what is a symbolic link in a tree, and where it leads.
const links = "-> "

// tree makes a file tree below a new directory.
func tree(t *testing.T, parts ...map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, files := range parts {
		for name, content := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			err := error(nil)
			if to, is := strings.CutPrefix(content, links); is {
				err = os.Symlink(strings.ReplaceAll(to, "ROOT", root), path)
			} else {
				if !strings.HasSuffix(content, "\x00") { // of words of a command line each ends so
					content += "\n"
				}
				err = os.WriteFile(path, []byte(content), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// function is one function of an adapter on the PCI bus.
func function(slot, vendor, device, class, driver string, devices ...string) map[string]string {
	dir := "sys/bus/pci/devices/" + slot + "/"
	out := map[string]string{dir + "vendor": vendor, dir + "device": device, dir + "class": class}
	if driver != "" {
		out[dir+"driver"] = links + "../../../../bus/pci/drivers/" + driver
	}
	for _, d := range devices {
		out[dir+"infiniband/"+d+"/uevent"] = ""
	}
	return out
}

// device is an RDMA device with its ports, each a link layer, state and physical state.
func device(name string, firstFile int, ports ...[3]string) map[string]string {
	out := map[string]string{"sys/class/infiniband_mad/abi_version": "5"}
	dir := "sys/class/infiniband/" + name + "/"
	out[dir+"node_type"], out[dir+"node_guid"], out[dir+"sys_image_guid"] = "1: CA", "0002:c903:0012:3456", "0002:c903:0012:3456"
	for i, p := range ports {
		at := fmt.Sprintf("%sports/%d/", dir, i+1)
		maps.Copy(out, map[string]string{
			at + "link_layer": p[0], at + "state": p[1], at + "phys_state": p[2], at + "rate": "200 Gb/sec (4X HDR)", at + "lid": "0x11", at + "sm_lid": "0x1",
			at + "gids/0": fmt.Sprintf("fe80:0000:0000:0000:0002:c903:0012:34%02x", 0x60+firstFile+i),
		})
		for _, kind := range []string{"umad", "issm"} {
			file := fmt.Sprintf("%s%d", kind, firstFile+i)
			out["sys/class/infiniband_mad/"+file+"/ibdev"], out["sys/class/infiniband_mad/"+file+"/port"] = name, fmt.Sprint(i+1)
			out["dev/infiniband/"+file] = ""
		}
	}
	return out
}

// without is files but for those whose name contains one of these.
func without(files map[string]string, names ...string) map[string]string {
	out := maps.Clone(files)
	for f := range files {
		for _, n := range names {
			if strings.Contains(f, n) {
				delete(out, f)
			}
		}
	}
	return out
}

var (
	active   = [3]string{"InfiniBand", "4: ACTIVE", "5: LinkUp"}
	inInit   = [3]string{"InfiniBand", "2: INIT", "5: LinkUp"}
	polling  = [3]string{"InfiniBand", "1: DOWN", "2: Polling"}
	disabled = [3]string{"InfiniBand", "1: DOWN", "3: Disabled"}
	ethernet = [3]string{"Ethernet", "4: ACTIVE", "5: LinkUp"}
)

// connectX is the function that has mlx5_0.
func connectX(driver string, devices ...string) map[string]string {
	return function("0000:3b:00.0", "0x15b3", "0x101b", "0x020700", driver, devices...)
}

// a check that is wanted: its subject, status, a part of its text, and a command.
type wanted struct {
	subject string
	status  look.Status
	text    string
	command string // empty: any, or none
}

// find finds a check, and complains if it is not as wanted.
func find(t *testing.T, r *look.DoctorReport, w wanted) {
	t.Helper()
	for _, c := range r.Checks {
		if c.Subject != w.subject || c.Status != w.status || !strings.Contains(c.Text, w.text) {
			continue
		}
		if w.command == "" || strings.Contains("\n"+strings.Join(c.Commands, "\n")+"\n", "\n"+w.command+"\n") {
			return
		}
	}
	t.Errorf("want %+v among\n%s", w, text(r))
}

func text(r *look.DoctorReport) string {
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%s | %s | %s | %q\n", c.Subject, c.Status, c.Text, c.Commands)
	}
	return b.String()
}

// TestHosts: what is said of hosts in each state that one meets.
func TestHosts(t *testing.T) {
	const fine = "port mlx5_0/1"
	for _, x := range []struct {
		name   string
		root   []map[string]string
		fabric string
		ready  bool
		port   string
		want   []wanted
	}{
		{"no adapter", []map[string]string{function("0000:00:1f.6", "0x8086", "0x15bb", "0x020000", "e1000e")}, "umad", false, "", []wanted{
			{"adapters", look.Missing, "no InfiniBand adapter on the PCI bus", "ibwarden doctor --fabric sim"},
			{"module ib_umad", look.Skipped, "without an adapter", ""},
		}},
		{"no PCI bus", nil, "umad", false, "", []wanted{{"adapters", look.Missing, "the PCI bus cannot be read", ""}}},
		{"no adapter is needed", nil, "sim", true, "", []wanted{{"adapters", look.Skipped, "--fabric sim needs no adapter", ""}}},
		{"no driver", []map[string]string{connectX("")}, "umad", false, "", []wanted{
			{"adapter 0000:3b:00.0", look.Missing, "PCI device 15b3:101b has no driver: mlx5_core", "modprobe mlx5_core"},
			{"module ib_core", look.Missing, "not loaded", "modprobe ib_core"},
		}},
		{"an older adapter without a driver", []map[string]string{function("0000:05:00.0", "0x15b3", "0x1003", "0x028000", "")}, "umad", false, "", []wanted{
			{"adapter 0000:05:00.0", look.Warning, "mlx4_core is not loaded", "modprobe mlx4_core"},
		}},
		{"the first adapters", []map[string]string{function("0000:05:00.0", "0x15b3", "0x6282", "0x0c0600", "")}, "umad", false, "", []wanted{
			{"adapter 0000:05:00.0", look.Missing, "ib_mthca is not loaded", "modprobe ib_mthca"},
		}},
		{"another maker's", []map[string]string{function("0000:05:00.0", "0x1077", "0x7322", "0x020700", "")}, "umad", false, "", []wanted{
			{"adapter 0000:05:00.0", look.Missing, "ibwarden does not know", "lspci -k -s 0000:05:00.0"},
		}},
		{"given to a guest", []map[string]string{connectX("vfio-pci")}, "umad", false, "", []wanted{{"adapter 0000:3b:00.0", look.Missing, "virtual machine", ""}}},
		{"functions for guests", []map[string]string{
			connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, active),
			function("0000:3b:00.1", "0x15b3", "0x101c", "0x020700", "vfio-pci"), {"sys/bus/pci/devices/0000:3b:00.1/physfn": links + "../0000:3b:00.0"},
		}, "umad", true, "mlx5_0/1", []wanted{{"adapter 0000:3b:00.0", look.OK, "", ""}}},
		{"no mlx5_ib", []map[string]string{connectX("mlx5_core"), {"sys/class/infiniband/.": "x"}}, "umad", false, "", []wanted{
			{"adapter 0000:3b:00.0", look.Missing, "mlx5_ib is not loaded", "echo mlx5_ib >/etc/modules-load.d/mlx5_ib.conf"},
		}},
		{"mlx5_ib made no device", []map[string]string{connectX("mlx5_core"), {"sys/module/mlx5_ib/refcnt": "0"}}, "umad", false, "", []wanted{
			{"adapter 0000:3b:00.0", look.Missing, "another network namespace", "dmesg | grep mlx5_ib"},
		}},
		{"no ib_umad", []map[string]string{connectX("mlx5_core", "mlx5_0"), without(device("mlx5_0", 0, active), "infiniband_mad", "dev/")}, "umad", false, "", []wanted{
			{"adapter 0000:3b:00.0", look.OK, "RDMA device mlx5_0", ""},
			{"module ib_umad", look.Missing, "not loaded", "echo ib_umad >/etc/modules-load.d/ib_umad.conf"},
			{"--fabric umad", look.Missing, "modprobe ib_umad", ""},
		}},
		{"a class that is empty", []map[string]string{connectX("mlx5_core", "mlx5_0"), without(device("mlx5_0", 0, active), "infiniband_mad", "dev/"), {"sys/class/infiniband_mad/other": ""}}, "umad", false, "", []wanted{
			{"module ib_umad", look.Missing, "not loaded", "modprobe ib_umad"},
		}},
		{"Ethernet only", []map[string]string{function("0000:3b:00.1", "0x15b3", "0x101d", "0x020000", "mlx5_core", "mlx5_1"), device("mlx5_1", 0, ethernet)}, "umad", false, "", []wanted{
			{"port mlx5_1/1", look.Warning, "RoCE has no subnet management", "mlxconfig -d 0000:3b:00.1 set LINK_TYPE_P2=1"},
			{"--fabric umad", look.Missing, "Ethernet", ""},
		}},
		{"Ethernet on mlx4", []map[string]string{function("0000:05:00.0", "0x15b3", "0x1003", "0x028000", "mlx4_core", "mlx4_0"), device("mlx4_0", 0, active, ethernet)}, "umad", true, "mlx4_0/1", []wanted{
			{"port mlx4_0/2", look.Warning, "RoCE", "mlxconfig -d 0000:05:00.0 set LINK_TYPE_P2=1"},
		}},
		{"one port down", []map[string]string{connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, polling, active)}, "umad", true, "mlx5_0/2", []wanted{
			{fine, look.Warning, "no link", "ibstat mlx5_0 1"},
			{"port mlx5_0/2", look.OK, "a subnet manager at LID 1 gave it LID 17", ""},
			{"--fabric umad", look.OK, "takes port mlx5_0/2", ""},
		}},
		{"the port that was named is down", []map[string]string{connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, polling, active)}, "umad:mlx5_0/1", false, "", []wanted{
			{fine, look.Missing, "no link", ""}, {"--fabric umad:mlx5_0/1", look.Missing, "is down", ""},
		}},
		{"disabled", []map[string]string{connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, disabled)}, "umad", false, "", []wanted{
			{fine, look.Missing, "the port was disabled", "ibportstate -C mlx5_0 -P 1 -D 0 1 enable"},
		}},
		{"nobody manages it", []map[string]string{connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, inInit)}, "umad", true, "mlx5_0/1", []wanted{
			{fine, look.Warning, "no subnet manager has configured it", ""},
		}},
		{"not in /dev", []map[string]string{connectX("mlx5_core", "mlx5_0"), without(device("mlx5_0", 0, active), "dev/infiniband")}, "umad", false, "", []wanted{
			{"/dev/infiniband/umad0", look.Missing, "/dev has not", "udevadm trigger --subsystem-match=infiniband_mad"},
			{"--fabric umad", look.Missing, "/dev has not", ""},
		}},
		{"a container", []map[string]string{connectX("mlx5_core", "mlx5_0"), without(device("mlx5_0", 0, active), "dev/infiniband"), {".dockerenv": ""}}, "umad", false, "", []wanted{
			{"/dev/infiniband/umad0", look.Missing, "this container has not", "docker run --device /dev/infiniband/umad0 ..."},
		}},
		{"Omni-Path", []map[string]string{function("0000:5e:00.0", "0x8086", "0x24f0", "0x020800", "hfi1", "hfi1_0"), device("hfi1_0", 0, active)}, "umad", false, "", []wanted{
			{"adapter 0000:5e:00.0", look.Warning, "Omni-Path (hfi1), which is not InfiniBand", ""}, {"--fabric umad", look.Missing, "Omni-Path", ""},
		}},
		{"no such device", []map[string]string{connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, active)}, "umad:mlx5_7", false, "", []wanted{
			{"--fabric umad:mlx5_7", look.Missing, "there are mlx5_0/1", ""},
		}},
		{"a driver that says nonsense", []map[string]string{connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, active), {"sys/class/infiniband/bad/node_type": "1: CA", "sys/class/infiniband/bad/node_guid": "x"}}, "umad", false, "", []wanted{
			{"RDMA devices", look.Missing, "bad/node_guid", ""},
		}},
		{"all is well", []map[string]string{connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, active)}, "umad", true, "mlx5_0/1", []wanted{
			{fine, look.OK, "ACTIVE", ""}, {"/dev/infiniband/umad0", look.OK, "can read and write", ""}, {"module ib_umad", look.OK, "", ""},
			{"manager at mlx5_0/1", look.OK, "no other program", ""},
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := look.LookAtHost(tree(t, x.root...), "")
			f.Root = true
			r := look.CheckHost(f, look.Choice{Fabric: x.fabric})
			for _, w := range x.want {
				find(t, r, w)
			}
			if x.name == "functions for guests" && strings.Contains(text(r), "0000:3b:00.1") {
				t.Errorf("a function for guests is listed:\n%s", text(r))
			}
			if r.Ready != x.ready || r.Port != x.port {
				t.Errorf("ready %v at %q, want %v at %q:\n%s", r.Ready, r.Port, x.ready, x.port, text(r))
			}
			r.Finish(nil, nil, true)
			if (len(r.Next) > 0) != x.ready {
				t.Errorf("next is %q", r.Next)
			}
		})
	}
}

// TestSeparateManagement: a port without subnet management is not taken for one with it;
// the device that has it is named, if it is the same adapter's.
func TestSeparateManagement(t *testing.T) {
	plain := without(device("mlx5_0", 0, active), "issm0")
	smi := device("smi1", 1, active, active)
	same := look.LookAtHost(tree(t, connectX("mlx5_core", "mlx5_0", "smi1"), plain, smi), "")
	find(t, look.CheckHost(same, look.Choice{Fabric: "umad"}), wanted{"port mlx5_0/1", look.Warning, "a device of its own for it, smi1", "ibwarden audit --fabric umad:smi1/1"})
	r := look.CheckHost(same, look.Choice{Fabric: "umad:smi1/1"})
	if !r.Ready || r.Port != "smi1/1" {
		t.Errorf("%q is ready: %v\n%s", r.Port, r.Ready, text(r))
	}
	other := look.LookAtHost(tree(t, connectX("mlx5_core", "mlx5_0"), plain, smi), "")
	find(t, look.CheckHost(other, look.Choice{Fabric: "umad"}), wanted{"port mlx5_0/1", look.Warning, "which is not there or not up", "rdma dev add smi0 type SMI parent mlx5_0"})
	// Firmware that says IsSMDisabled counts as well as a kernel that makes no file.
	said := look.LookAtHost(tree(t, connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, active), map[string]string{"sys/class/infiniband/mlx5_0/ports/1/cap_mask": "0x00000400"}), "")
	find(t, look.CheckHost(said, look.Choice{Fabric: "umad"}), wanted{"port mlx5_0/1", look.Warning, "no subnet management here", "rdma dev show"})
}

// TestPermission: a port that this user may not use is missing, and not one that
// only a manager needs.
func TestPermission(t *testing.T) {
	f := look.LookAtHost(tree(t, connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, active)), "")
	f.Root = false
	f.Access["umad0"], f.Access["issm0"] = fs.ErrPermission, fs.ErrPermission
	r := look.CheckHost(f, look.Choice{Fabric: "umad"})
	find(t, r, wanted{"--fabric umad", look.Missing, "no permission", ""})
	find(t, r, wanted{"/dev/infiniband/umad0", look.Missing, "no permission", "setfacl -m u:$(id -un):rw /dev/infiniband/umad0"})
	find(t, r, wanted{"manager at mlx5_0/1", look.Skipped, "only root sees", "sudo ibwarden doctor --fabric umad"})
	if r.Ready {
		t.Error("ready without permission")
	}
	f.Access["umad0"] = nil
	if r := look.CheckHost(f, look.Choice{Fabric: "umad"}); !r.Ready {
		t.Errorf("who only reads needs no issm file:\n%s", text(r))
	}
	f.Access["umad0"] = errors.New("input/output error")
	find(t, look.CheckHost(f, look.Choice{Fabric: "umad"}), wanted{"/dev/infiniband/umad0", look.Missing, "input/output error", ""})
}

// TestOtherManagers: who has the files of a port open is seen, by process; that prevents no
// reading.
func TestOtherManagers(t *testing.T) {
	for _, x := range []struct {
		cmdline, file string
		want          wanted
	}{
		{"/usr/sbin/opensm\x00-g\x000x1\x00", "issm0", wanted{"manager at mlx5_0/1", look.Warning, "opensm (process 812) is a subnet manager here", "ibwarden plan --fabric umad --policy policy.yaml"}},
		{"ibwarden\x00run\x00", "issm0", wanted{"manager at mlx5_0/1", look.OK, "ibwarden run (process 812) manages the fabric", "ibwarden show managers"}},
		{"ibdump\x00", "umad0", wanted{"manager at mlx5_0/1", look.Warning, "ibdump (process 812) has umad0 open", "ps -fp 812"}},
	} {
		root := tree(t, connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, active), map[string]string{
			"proc/812/cmdline": x.cmdline, "proc/812/fd/5": links + "ROOT/dev/infiniband/" + x.file,
		})
		r := look.CheckHost(look.LookAtHost(root, ""), look.Choice{Fabric: "umad"})
		find(t, r, x.want)
		if !r.Ready {
			t.Errorf("%s: not ready:\n%s", x.cmdline, text(r))
		}
	}
}

// TestHostileNames: what devices and programs call themselves neither steers a terminal
// nor gets into a command that somebody pastes into a shell.
func TestHostileNames(t *testing.T) {
	const name = "mlx5_0;reboot\x1b[2J"
	f := look.LookAtHost(tree(t, connectX("mlx5_core", name), device(name, 0, polling), device("a$(reboot)", 1, disabled)), "")
	f.Held["issm0"] = linkumad.Holder{PID: 5, Name: "x\x1b]0;y\a"}
	f.Root = true
	r := look.CheckHost(f, look.Choice{Fabric: "umad:" + name})
	r.Finish(&look.Survey{Nodes: 1, Faults: 1, Unread: []look.Unread{{Where: "x\x1b[1m", Why: "\a"}}, Managers: []look.SubnetManager{{Name: "\x1b[31mred", State: "master"}}}, nil, false)
	find(t, r, wanted{"subnet manager", look.OK, "?[31mred", ""})
	for _, c := range r.Checks {
		all := c.Subject + c.Text + strings.Join(c.Commands, "")
		if strings.ContainsAny(all, "\x1b\a") {
			t.Errorf("a terminal gets %q", all)
		}
		for _, x := range c.Commands {
			if strings.Contains(x, "reboot") {
				t.Errorf("a shell gets %q", x)
			}
		}
	}
	for _, x := range r.Next {
		if strings.Contains(x, "reboot") {
			t.Errorf("a shell gets %q", x)
		}
	}
}

// TestOwn: what is ibwarden's own is checked, and none of it is missing for a reading.
func TestOwn(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	own := func(root ...map[string]string) *look.DoctorReport {
		r := look.CheckHost(look.LookAtHost(tree(t, root...), data), look.Choice{Fabric: "sim"})
		if !r.Ready {
			t.Errorf("not ready:\n%s", text(r))
		}
		return r
	}
	find(t, own(), wanted{"data directory", look.OK, "not there yet", ""})
	if _, err := os.Stat(data); err == nil {
		t.Error("it was made")
	}
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	find(t, own(), wanted{"data directory", look.Warning, "mode 0755", "chmod 0700 " + data})
	if err := os.Chmod(data, 0o700); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	find(t, own(), wanted{"data directory", look.OK, "only its owner", ""})
	find(t, own(), wanted{"list of cables", look.Warning, "none", "ibwarden topology learn --fabric sim --cables " + data + "/cables.topology"})
	for _, f := range []string{"secret", "cables.topology"} {
		if err := os.WriteFile(filepath.Join(data, f), nil, 0o644); err != nil { //nolint:gosec // as wrong as can be
			t.Fatal(err)
		}
	}
	find(t, own(), wanted{"master secret", look.Warning, "mode 0644", "chmod 0600 " + data + "/secret"})
	find(t, own(), wanted{"list of cables", look.OK, "there is one", ""})
	unit := map[string]string{"usr/lib/systemd/system/ibwarden.service": ""}
	find(t, own(unit), wanted{"service", look.Warning, "does not run", "systemctl enable --now ibwarden"})
	find(t, own(unit, map[string]string{"sys/fs/cgroup/system.slice/ibwarden.service/cgroup.procs": "812"}), wanted{"service", look.OK, "runs", ""})
}

// TestSurvey: what was read of the fabric is judged; a fabric of which nothing answers is
// missing, whatever the host says.
func TestSurvey(t *testing.T) {
	facts := look.LookAtHost(tree(t, connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, active)), "")
	master := look.SubnetManager{Name: "m1", State: "master", LID: 3, Priority: 14}
	for _, x := range []struct {
		survey *look.Survey
		err    error
		ready  bool
		want   wanted
	}{
		{nil, errors.New("device is gone"), false, wanted{"fabric umad", look.Missing, "device is gone", ""}},
		{&look.Survey{Faults: 1, Silent: 1, Unread: []look.Unread{{Where: "own", Why: "no answer"}}}, nil, false, wanted{"fabric umad", look.Missing, "nothing answered", ""}},
		{&look.Survey{Nodes: 2, CAs: 2, Links: 1, Managers: []look.SubnetManager{master}}, nil, true, wanted{"subnet manager", look.OK, "m1 at port GUID , LID 3, is master, priority 14", ""}},
		{&look.Survey{Nodes: 2, Managers: []look.SubnetManager{master, master}}, nil, true, wanted{"subnet manager", look.Warning, "2 are master", ""}},
		{&look.Survey{Nodes: 2, Managers: []look.SubnetManager{{State: "silent"}}}, nil, true, wanted{"subnet manager", look.Warning, "none is master", ""}},
		{&look.Survey{Nodes: 2, Locked: 2}, nil, true, wanted{"M_Keys", look.Warning, "2 end ports conceal", "ibwarden keys import /var/cache/opensm/guid2mkey --data DIR"}},
		{&look.Survey{Nodes: 2, Faults: 9, Silent: 7}, nil, true, wanted{"fabric umad", look.Warning, "could not be read: 9, of which 7", ""}},
	} {
		r := look.CheckHost(facts, look.Choice{Fabric: "umad"})
		r.Finish(x.survey, x.err, false)
		find(t, r, x.want)
		if r.Ready != x.ready {
			t.Errorf("ready is %v:\n%s", r.Ready, text(r))
		}
	}
}

// TestSurveyOf: what was read is counted; an end port that has an M_Key and shows none
// conceals one that is not known here.
func TestSurveyOf(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	p, q := b.Host(leaf, "p"), b.Host(leaf, "q")
	for _, e := range b.Fabric.EndPorts() {
		e.InfoRead, e.Info.MKey, e.Info.MKeyProtectBits = true, 7, 1
	}
	p.Info.MKey = 0
	q.Node.Info.PartitionCap = 16
	b.Fabric.Self = p
	faults := []sweep.Fault{
		{Where: "a\x1b[1m", Err: fmt.Errorf("NodeInfo: %w", transact.ErrNoAnswer)},
		{Where: "b", Err: sweep.ErrUndeclared},
	}
	for range 10 {
		faults = append(faults, sweep.Fault{Where: "c", Err: errors.New("nonsense")})
	}
	s := look.SurveyOf(b.Fabric, faults, []observed.SubnetManager{
		{Port: p.GUID, Name: "p\a", LID: 3, Answered: true, State: smp.SMMaster, Priority: 14}, {Port: q.GUID},
	})
	if s.Nodes != 3 || s.Switches != 1 || s.CAs != 2 || s.Links != 2 || s.Locked != 1 || s.Keys != 16 || s.Faults != 11 || s.Silent != 1 || len(s.Unread) != 8 {
		t.Errorf("%+v", s)
	}
	if m := s.Managers; len(m) != 2 || !m[0].Here || m[0].State != "master" || m[0].Name != "p?" || m[1].Here || m[1].State != "silent" {
		t.Errorf("managers: %+v", m)
	}
	if s.Unread[0].Where != "a?[1m" {
		t.Errorf("a device's words: %q", s.Unread[0])
	}
}
