package guest

import (
	"fmt"
	"io"
	"path"
)

// Types of files in a mode.
const (
	modeDir  = 0o040000
	modeFile = 0o100000
	modeLink = 0o120000
)

// archive writes the root file system as the kernel takes it: cpio's format newc. The first
// file of a name counts.
type archive struct {
	to   io.Writer
	size int64
	has  map[string]bool
	err  error // the first one
}

func newArchive(to io.Writer) *archive { return &archive{to: to, has: map[string]bool{"": true}} }

// add adds a file, directory or symbolic link, and the directories above it. name has no
// slash at its beginning.
func (a *archive) add(name string, mode uint32, content []byte) {
	if a.has[name] {
		return
	}
	if dir := path.Dir(name); dir != "." {
		a.add(dir, modeDir|0o755, nil)
	}
	a.has[name] = true
	a.entry(name, mode, content)
}

func (a *archive) entry(name string, mode uint32, content []byte) {
	links := 1
	if mode&modeDir != 0 && mode&modeFile == 0 {
		links = 2
	}
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		len(a.has), mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
	a.write([]byte(header + name + "\x00"))
	a.align()
	a.write(content)
	a.align()
}

func (a *archive) align() { a.write(make([]byte, -a.size&3)) }

func (a *archive) write(b []byte) {
	if a.err == nil {
		_, a.err = a.to.Write(b)
	}
	a.size += int64(len(b))
}

// close ends the archive, and returns the first error of writing it.
func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, nil)
	return a.err
}
