package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/simserve/umadfs"
)

// rootHomes is where root's commands inside simulated fabrics keep their data: beside that of
// the manager of this machine, never in it.
const rootHomes = "/var/lib/ibwarden-sim"

// homes is the directory below which simulated hosts have theirs: root's, or below the state
// directory of the user.
func homes() (string, error) {
	if os.Geteuid() == 0 {
		return rootHomes, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ibwarden-sim"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("a data directory for the simulated host: %w: want %s", err, daemon.DataVariable)
	}
	return filepath.Join(home, ".local", "state", "ibwarden-sim"), nil
}

// hostHome is the data directory of a host of a fabric. Who serves the fabric says which host
// and which nodes it has, in numbers; the kernel says who he is. So the simulator of another
// user, under whatever name, leads to nothing that was kept for one's own.
func hostHome(base, socket string, at umadfs.Place) string {
	return filepath.Join(base, fmt.Sprintf("uid-%d", at.UID), "socket-"+url.PathEscape(socket), fmt.Sprintf("fabric-%016x", at.Fabric), fmt.Sprintf("node-%016x", uint64(at.Node)))
}

// runInside is the environment of a command at a host: IBWARDEN_DATA names a directory of its own,
// unless the caller has named one.
func runInside(environment []string, socket string, at umadfs.Place) ([]string, error) {
	for _, e := range environment {
		if strings.HasPrefix(e, daemon.DataVariable+"=") {
			return environment, nil
		}
	}
	base, err := homes()
	if err != nil {
		return nil, err
	}
	dir := hostHome(base, socket, at)
	if err := ownDirectories(base, dir); err != nil {
		return nil, err
	}
	return append(environment, daemon.DataVariable+"="+dir), nil
}

// ownDirectories refuses a path of which what is there already, from base on, could be led
// elsewhere by another user, or is. Nothing is made: commands that keep nothing leave nothing.
func ownDirectories(base, dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s: want a directory, and no link: it is for the data of simulated hosts", dir)
		case info.Mode().Perm()&0o022 != 0:
			return fmt.Errorf("%s: others can write to it (mode %04o): want 0700", dir, info.Mode().Perm())
		default:
			if uid, known := ownerOf(info); known && uid != os.Geteuid() {
				return fmt.Errorf("%s: it is owned by user %d, want %d, who runs the command", dir, uid, os.Geteuid())
			}
		}
		if dir == base || len(dir) <= len(base) {
			return nil
		}
	}
}
