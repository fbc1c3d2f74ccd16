package umad

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ibwarden/ibwarden/ib/umad"
)

// Holder is another program that has a file of a port open.
type Holder struct {
	PID int
	// Name is how it was started, as far as that tells programs apart: what can be
	// printed of its first words.
	Name string
}

// own is the name of this program, however it was built.
const own = "ibwarden"

// what says who it is, and what to do.
func (h Holder) what() string {
	who := fmt.Sprintf("%s (process %d)", h.Name, h.PID)
	if h.Name == own || strings.HasPrefix(h.Name, own+" ") {
		return who + ": to change its policy, change its policy file and run kill -HUP " + strconv.Itoa(h.PID)
	}
	return who + ": stop it first, there is one manager at a port"
}

// Holder looks in /proc for another program that has one of these files of
// /dev/infiniband, which are a port's, open; some is false when none is seen, as by
// who may not look.
func (m *Machine) Holder(at *umad.Port, names ...string) (h Holder, some bool) {
	var files []os.FileInfo
	port := filepath.Join("sys/class/infiniband", at.Device, "ports", strconv.Itoa(int(at.Num)), "gids/0")
	gid, _ := os.ReadFile(filepath.Join(m.root, port)) // without one nobody has the same
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(m.root, "dev/infiniband", name)); err == nil {
			files = append(files, info)
		}
	}
	mount := mountOf(filepath.Join(m.root, "proc/self"))
	processes, err := os.ReadDir(filepath.Join(m.root, "proc"))
	if err != nil {
		return Holder{}, false
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir := filepath.Join(m.root, "proc", p.Name())
		their, err := os.ReadFile(filepath.Join(dir, "root", port))
		samePort := err == nil && len(gid) > 0 && bytes.Equal(their, gid) && mountOf(dir) == mount
		if hasOpen(filepath.Join(dir, "fd"), files, names, samePort) {
			return Holder{PID: pid, Name: nameOf(dir)}, true
		}
	}
	return Holder{}, false
}

// mountOf is what is mounted at a process's /dev/infiniband, as its type and source, or
// "". Two simulated fabrics have ports with the same GID, and mount their devices from
// different sources.
func mountOf(process string) (source string) {
	text, err := os.ReadFile(filepath.Join(process, "mountinfo"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		at, of := strings.Fields(before), strings.Fields(after)
		if len(at) > mountPoint && at[mountPoint] == "/dev/infiniband" && len(of) > 1 {
			source = of[0] + " " + of[1] // of several the last lies on top
		}
	}
	return source
}

// mountPoint is which field of a line of /proc/PID/mountinfo tells where it is mounted.
const mountPoint = 4

// hasOpen reports whether a process has one of files open. In another container the
// same device is another file, and its name tells where that container has the same
// port by that name.
func hasOpen(dir string, files []os.FileInfo, names []string, samePort bool) bool {
	open, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, fd := range open {
		path := filepath.Join(dir, fd.Name())
		target, err := os.Readlink(path)
		if err != nil || !strings.Contains(target, "/infiniband/") {
			continue
		}
		if samePort && slices.Contains(names, filepath.Base(target)) {
			return true
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		for _, f := range files {
			if os.SameFile(info, f) || sameDevice(info, f) {
				return true
			}
		}
	}
	return false
}

func sameDevice(a, b os.FileInfo) bool {
	if a.Mode()&b.Mode()&fs.ModeCharDevice == 0 {
		return false
	}
	x, y := a.Sys().(*syscall.Stat_t), b.Sys().(*syscall.Stat_t)
	return x.Rdev == y.Rdev
}

// nameMax is the longest name, in bytes.
const nameMax = 40

// nameOf is the program of a process, with the word after it if that is no flag: who
// runs as anybody may call himself what he likes.
func nameOf(dir string) string {
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err == nil && len(bytes.TrimRight(line, "\x00")) == 0 { // it is just being started, or has ended
		line, err = os.ReadFile(filepath.Join(dir, "comm"))
	}
	if line = bytes.TrimRight(line, "\x00\n"); err != nil || len(line) == 0 {
		return "a program that cannot be named"
	}
	words := strings.Split(string(line), "\x00")
	name := filepath.Base(words[0])
	if len(words) > 1 && name == own && !strings.HasPrefix(words[1], "-") {
		name += " " + words[1]
	}
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
	return name[:min(len(name), nameMax)]
}
