package look_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
)

// TestLook: each fact is read where it stands, and only there; what a host does not have is no
// fact.
func TestLook(t *testing.T) {
	empty := look.LookAtHost(tree(t), "")
	if empty.HasRDMA || empty.HasMAD || empty.Container || len(empty.Devices)+len(empty.Access)+len(empty.Held)+len(empty.Disabled) != 0 || empty.Service != (look.Service{}) ||
		slices.Contains(slices.Collect(maps.Values(empty.Loaded)), true) {
		t.Errorf("an empty machine: %+v", empty)
	}
	if empty.Root != (os.Geteuid() == 0) {
		t.Errorf("root %v", empty.Root)
	}
	for name, x := range map[string]struct {
		files map[string]string
		has   func(*look.Facts) bool
	}{
		"rdma":         {map[string]string{"sys/class/infiniband/x": ""}, func(f *look.Facts) bool { return f.HasRDMA && !f.HasMAD }},
		"mad":          {map[string]string{"sys/class/infiniband_mad/abi_version": "5"}, func(f *look.Facts) bool { return f.HasMAD && !f.HasRDMA }},
		"a module":     {map[string]string{"sys/module/mlx5_ib/x": ""}, func(f *look.Facts) bool { return f.Loaded["mlx5_ib"] && !f.Loaded["mlx4_ib"] }},
		"docker":       {map[string]string{".dockerenv": ""}, func(f *look.Facts) bool { return f.Container }},
		"unit":         {map[string]string{"etc/systemd/system/ibwarden.service": ""}, func(f *look.Facts) bool { return f.Service.Unit && !f.Service.Active }},
		"unit of lib":  {map[string]string{"lib/systemd/system/ibwarden.service": ""}, func(f *look.Facts) bool { return f.Service.Unit && !f.Service.Active }},
		"unit of usr":  {map[string]string{"usr/lib/systemd/system/ibwarden.service": ""}, func(f *look.Facts) bool { return f.Service.Unit && !f.Service.Active }},
		"cgroup v2":    {map[string]string{"sys/fs/cgroup/system.slice/ibwarden.service/cgroup.procs": "7"}, func(f *look.Facts) bool { return f.Service.Active && !f.Service.Unit }},
		"cgroup v1":    {map[string]string{"sys/fs/cgroup/systemd/system.slice/ibwarden.service/cgroup.procs": "7"}, func(f *look.Facts) bool { return f.Service.Active && !f.Service.Unit }},
		"other cgroup": {map[string]string{"sys/fs/cgroup/system.slice/opensm.service/cgroup.procs": "7"}, func(f *look.Facts) bool { return !f.Service.Active }},
	} {
		if f := look.LookAtHost(tree(t, x.files), ""); !x.has(f) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// A cgroup that is left over has nobody in it.
	root := tree(t, map[string]string{"sys/fs/cgroup/system.slice/ibwarden.service/cgroup.procs": ""})
	if err := os.Truncate(filepath.Join(root, "sys/fs/cgroup/system.slice/ibwarden.service/cgroup.procs"), 0); err != nil {
		t.Fatal(err)
	}
	if look.LookAtHost(root, "").Service.Active {
		t.Error("a service of no process is active")
	}
	// Of a port that has no device file there is no fact about one.
	for _, lacks := range [][]string{nil, {"issm0"}, {"umad0", "issm0"}} {
		f := look.LookAtHost(tree(t, connectX("mlx5_core", "mlx5_0"), without(device("mlx5_0", 0, active), lacks...)), "")
		want := []string{"issm0", "umad0"}
		want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(lacks, name) })
		if got := slices.Sorted(maps.Keys(f.Access)); !slices.Equal(got, want) || len(f.Held) != 0 {
			t.Errorf("without %v: access %v, held %v", lacks, got, f.Held)
		}
	}
	// IsSMDisabled is bit 10 of the capability mask.
	for mask, want := range map[string]bool{"0x00000400": true, "0x2651e84a": false, "0x2651ec4a": true, "0xfffffbff": false, "x": false, "0x100000400": false} {
		f := look.LookAtHost(tree(t, connectX("mlx5_core", "mlx5_0"), device("mlx5_0", 0, active), map[string]string{"sys/class/infiniband/mlx5_0/ports/1/cap_mask": mask}), "")
		if got := f.Disabled[look.DoctorPlace{Device: "mlx5_0", Num: 1}]; got != want {
			t.Errorf("mask %s: disabled %v", mask, got)
		}
	}
}

// TestDataDirectory: each state of the data directory and of the secret in it is told apart.
func TestDataDirectory(t *testing.T) {
	top := t.TempDir()
	make := func(name string, mode os.FileMode, secret os.FileMode, more ...string) string {
		dir := filepath.Join(top, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		files := more
		if secret != 0 {
			files = append(files, "secret")
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if secret != 0 {
			if err := os.Chmod(filepath.Join(dir, "secret"), secret); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	file := filepath.Join(top, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	whole, open, bare, shown := make("whole", 0o700, 0o600, "cables.topology", "state.json"), make("open", 0o701, 0), make("bare", 0o700, 0), make("shown", 0o700, 0o604)
	const dir, secret, list = "data directory", "master secret", "list of cables"
	for _, x := range []struct {
		data string
		want []wanted
	}{
		{"", []wanted{{dir, look.Skipped, "none is named", ""}}},
		{filepath.Join(top, "gone"), []wanted{{dir, look.OK, "gone is not there yet: ibwarden run makes it", ""}}},
		{file, []wanted{{dir, look.Warning, "file is no directory: name another with --data or IBWARDEN_DATA", ""}}},
		{filepath.Join(file, "below"), []wanted{{dir, look.Skipped, "not a directory", ""}}},
		{open, []wanted{{dir, look.Warning, fmt.Sprintf("others can use %s (mode 0701): ibwarden run refuses it", open), "chmod 0700 " + open}, {secret, look.OK, "none yet: ibwarden run makes it", ""}}},
		{bare, []wanted{{dir, look.OK, bare + ", which only its owner can use", ""}, {secret, look.OK, "none yet", ""}, {list, look.Warning, "none: a device that is put where another was is not noticed", ""}}},
		{shown, []wanted{{secret, look.Warning, "others can use it (mode 0604): all keys are made of it", "chmod 0600 " + shown + "/secret"}}},
		{whole, []wanted{{dir, look.OK, "which only its owner can use", ""}, {secret, look.OK, "only its owner can read it", ""}, {list, look.OK, "there is one", ""}}},
	} {
		f := look.LookAtHost(tree(t), x.data)
		r := look.CheckHost(f, look.Choice{Fabric: "umad"})
		r.Finish(nil, nil, false)
		for _, w := range x.want {
			find(t, r, w)
		}
		if f.Service.State != (x.data == whole) || f.Service.Cables != (x.data == whole) {
			t.Errorf("%s: %+v", x.data, f.Service)
		}
	}
}

// TestLinkTypeOfAFunction: each of the two functions of an mlx5 adapter is a port of it, and has
// the setting of that port; a virtual function, and an adapter of somebody else, has none.
func TestLinkTypeOfAFunction(t *testing.T) {
	for _, x := range []struct{ slot, vendor, driver, port string }{
		{"0000:3b:00.0", "0x15b3", "mlx5_core", "P1"}, {"0000:3b:00.1", "0x15b3", "mlx5_core", "P2"}, {"0000:3b:00.2", "0x15b3", "mlx5_core", ""},
		{"0000:3b:00.7", "0x15b3", "mlx5_core", ""}, {"0000:3b:00.0", "0x8086", "mlx5_core", ""},
	} {
		f := look.LookAtHost(tree(t, function(x.slot, x.vendor, "0x101b", "0x020700", x.driver, "mlx5_0"), device("mlx5_0", 0, ethernet)), "")
		r := look.CheckHost(f, look.Choice{Fabric: "umad"})
		r.Finish(nil, nil, false)
		got := ""
		for _, c := range r.Checks {
			for _, line := range c.Commands {
				if strings.HasPrefix(line, "mlxconfig ") {
					got += line
				}
			}
		}
		want := ""
		if x.port != "" {
			want = "mlxconfig -d " + x.slot + " set LINK_TYPE_" + x.port + "=1"
		}
		if got != want {
			t.Errorf("%+v: %q, want %q\n%s", x, got, want, text(r))
		}
	}
}
