package umadfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/simserve/fuse"
)

// Exec becomes a command in a mount namespace of its own, in which
// /dev/infiniband and sysfs show the ports of one node of the fabric that the
// simulator of this name serves. It returns only when that fails; nothing has
// changed for other processes then or later. It needs the right to mount. The command's
// environment depends on where it is.
func Exec(name, node string, command []string, environment func(Place) ([]string, error)) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	simulator, err := net.DialUnix("unixpacket", nil, address(name))
	if errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("no simulator named %q hands out devices: start ibwarden sim --socket %s --devices", name, name)
	}
	if err != nil {
		return err
	}
	defer simulator.Close()
	runtime.LockOSThread() // for good: the namespace is this thread's
	if err := KeepDeathSignal(); err != nil {
		return err
	}
	connections, err := Enter("ibwarden:" + name)
	if err != nil {
		return err
	}
	at, err := introduce(simulator, node, connections)
	if err != nil {
		return err
	}
	// Closed here, so that the simulator alone holds the devices.
	for _, f := range connections {
		f.Close()
	}
	settings, err := environment(at)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, command, settings))
}

// Enter moves this thread, which is locked to its goroutine for good, into a mount namespace
// of its own and mounts the directories of Mounts there, which tell by their source whose
// they are. They answer once the connections are served.
func Enter(source string) (connections []*os.File, err error) {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return nil, fmt.Errorf("a mount namespace of its own: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("keeping mounts to the namespace: %w", err)
	}
	for _, dir := range Mounts {
		if err := provide(dir); err != nil {
			return nil, err
		}
		f, err := fuse.Mount(dir, source)
		if err != nil {
			return nil, err
		}
		connections = append(connections, f)
	}
	return connections, nil
}

// provide sees to it that a directory exists in this namespace. Where its parent
// cannot be written, or should not be for the sake of others, the parent is
// covered by a copy of which the entries are those of the original.
func provide(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := cover(parent); err != nil {
		return fmt.Errorf("covering %s: %w", parent, err)
	}
	return os.Mkdir(dir, 0o755)
}

// cover mounts an empty file system over a directory and brings the directory's
// entries back into it.
func cover(dir string) error {
	original, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer original.Close()
	entries, err := original.ReadDir(-1)
	if err != nil {
		return err
	}
	if err := unix.Mount("ibwarden", dir, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	for _, e := range entries {
		from, to := fmt.Sprintf("/proc/self/fd/%d/%s", original.Fd(), e.Name()), filepath.Join(dir, e.Name())
		if err := bringBack(e, from, to); err != nil {
			return fmt.Errorf("%s: %w", to, err)
		}
	}
	return nil
}

func bringBack(e os.DirEntry, from, to string) error {
	switch {
	case e.Type()&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case e.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(to, nil, 0o600); err != nil {
			return err
		}
	}
	return unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
}

// introduce hands the connections to the simulator and waits until it serves
// them. It returns where the command is then.
func introduce(simulator *net.UnixConn, node string, connections []*os.File) (at Place, err error) {
	if err := simulator.SetDeadline(time.Now().Add(greetingTime)); err != nil {
		return at, err
	}
	message, err := json.Marshal(greeting{Version: greetingVersion, Node: node})
	if err != nil {
		return at, err
	}
	var fds []int
	for _, f := range connections {
		fds = append(fds, int(f.Fd()))
	}
	if _, _, err := simulator.WriteMsgUnix(message, unix.UnixRights(fds...), nil); err != nil {
		return at, fmt.Errorf("asking the simulator: %w", err)
	}
	buffer := make([]byte, maxGreeting)
	n, err := simulator.Read(buffer)
	if err != nil {
		return at, fmt.Errorf("the simulator did not answer: %w", err)
	}
	var answer greeting
	if err := json.Unmarshal(buffer[:n], &answer); err != nil {
		return at, fmt.Errorf("the simulator's answer: %w", err)
	}
	if answer.Error != "" {
		return at, errors.New(answer.Error)
	}
	at = answer.At
	at.UID, err = door.Peer(simulator)
	return at, err
}

// supported is nil: Linux has mount namespaces and FUSE.
func supported() error { return nil }
