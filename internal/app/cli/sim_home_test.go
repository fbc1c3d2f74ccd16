package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/simserve/umadfs"
)

// TestEachHostHasAHome: another user who serves, another name, fabric or host is another
// directory, the same ones are the same, and no name leads out of the base.
func TestEachHostHasAHome(t *testing.T) {
	seen := map[string]bool{}
	for _, uid := range []int{0, 1000} {
		for _, socket := range []string{"demo", "demo/x", "..", ".", "", "../../etc", "/etc", "a b", "uid-0"} {
			for _, fabric := range []uint64{0, 1, 1 << 63} {
				for _, node := range []ib.NodeGUID{1, 2} {
					at := umadfs.Place{UID: uid, Fabric: fabric, Node: node}
					dir := hostHome("/base", socket, at)
					if seen[dir] || dir != hostHome("/base", socket, at) {
						t.Errorf("%q is that of another", dir)
					}
					seen[dir] = true
					if !strings.HasPrefix(dir, "/base/uid-") || strings.Count(dir, "/") != 5 {
						t.Errorf("socket %q leads to %q", socket, dir)
					}
				}
			}
		}
	}
}

// TestHomesOfOthers: a link on the way, a file, and what others can write to are refused; what
// is not there is fine, and is not made.
func TestHomesOfOthers(t *testing.T) {
	at := umadfs.Place{Fabric: 1, Node: 2}
	for name, x := range map[string]struct {
		make func(base, dir string) error
		says string
	}{
		"nothing there": {func(string, string) error { return nil }, ""},
		"all there":     {func(_, dir string) error { return os.MkdirAll(dir, 0o700) }, ""},
		"a link at its end": {func(base, dir string) error {
			return first(os.MkdirAll(filepath.Dir(dir), 0o700), os.Symlink(base, dir))
		}, "no link"},
		"a link on the way": {func(base, dir string) error {
			return first(os.MkdirAll(base, 0o700), os.Symlink("/tmp", filepath.Join(base, "uid-0")))
		}, "no link"},
		"a link for the base": {func(base, _ string) error { return os.Symlink("/tmp", base) }, "no link"},
		"a file":              {func(base, dir string) error { return os.WriteFile(base, nil, 0o600) }, "not a directory"},
		"open to others": {func(base, dir string) error {
			return first(os.MkdirAll(dir, 0o700), os.Chmod(filepath.Dir(dir), 0o777))
		}, "others can write"},
		"of another user": {func(base, dir string) error {
			if os.Geteuid() != 0 {
				return first(os.MkdirAll(base, 0o700), os.Chmod(base, 0o777)) // refused too, for another reason
			}
			return first(os.MkdirAll(dir, 0o700), os.Chown(filepath.Dir(dir), 65534, 65534))
		}, map[bool]string{true: "owned by user 65534", false: "others can write"}[os.Geteuid() == 0]},
	} {
		base := filepath.Join(t.TempDir(), "sim")
		dir := hostHome(base, "demo", at)
		if err := x.make(base, dir); err != nil {
			t.Fatal(name, err)
		}
		_, before := os.Lstat(dir)
		err := ownDirectories(base, dir)
		if (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", name, err, x.says)
		}
		if _, after := os.Lstat(dir); (before == nil) != (after == nil) {
			t.Errorf("%s: the directory was made", name)
		}
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestInside: what the caller has named stays.
func TestInside(t *testing.T) {
	named := []string{"A=b", "IBWARDEN_DATA=/mine"}
	if got, err := runInside(named, "demo", umadfs.Place{}); err != nil || !slices.Equal(got, named) {
		t.Errorf("%v, %v", got, err)
	}
	got, err := runInside([]string{"A=b"}, "demo", umadfs.Place{Node: 7})
	if err != nil || len(got) != 2 || !strings.HasPrefix(got[1], "IBWARDEN_DATA=/") || !strings.HasSuffix(got[1], "/node-0000000000000007") {
		t.Errorf("%v, %v", got, err)
	}
}
