package fuse

import "golang.org/x/sys/unix"

// Node is a place in the tree: a Directory, a Text or a Device. Nodes are told
// apart by identity, so that they are pointers or other comparable values.
type Node any

// Directory holds other nodes.
type Directory interface {
	// Entries are in the order in which they are listed, no name twice.
	Entries() []Entry
}

// Entry is a node and its name in its directory.
type Entry struct {
	Name string
	Node Node
}

// Text is a file whose content is made when it is opened, as in sysfs.
type Text interface {
	Text() string
}

// Device is a file that a program talks to.
type Device interface {
	// Open is answered by o.Reply, at once or later.
	Open(o *Opening)
}

// Handle is an open device.
type Handle interface {
	// Read is answered by r.Reply, at once or later.
	Read(r *Reading)
	Write(data []byte) (int, unix.Errno)
	// Ioctl gets the argument of a command that has one, by value. What it
	// returns is written back, with an error too.
	Ioctl(command uint32, argument []byte) ([]byte, unix.Errno)
	// Poll is the set of events (unix.POLLIN and so on) that are true now.
	Poll() uint32
	// Close is called once, when the last descriptor is gone.
	Close()
}

// Opening is a program that opens a device.
type Opening struct {
	// Flags are those of open(2).
	Flags uint32
	*waiting
	// Wake tells the kernel that what Handle.Poll answers has changed. It may
	// be kept, and called once Reply was.
	Wake func()

	opened func(Handle) uint64
}

// Reply ends the opening with a handle or an error. It reports false when the
// program has given up, and then keeps nothing.
func (o *Opening) Reply(h Handle, errno unix.Errno) bool {
	if errno != 0 {
		return o.fail(errno)
	}
	if o.answered {
		return false
	}
	return o.answer(openOut{handle: o.opened(h), flags: openDirectIO | openStream}.append(nil))
}

// Reading is a program that reads from a device.
type Reading struct {
	// Size is the room in its buffer, in bytes.
	Size int
	// NonBlocking is set when the program does not want to wait.
	NonBlocking bool
	// Rest is set when this is the continuation of a read whose first part
	// filled MaxTransfer, at Offset.
	Rest   bool
	Offset int
	thread int // that waits, as /proc knows it
	*waiting
}

// Reply ends the read with bytes or an error. It reports false when the
// program has given up: the bytes are not lost, the caller keeps them.
func (r *Reading) Reply(data []byte, errno unix.Errno) bool {
	if errno != 0 {
		return r.fail(errno)
	}
	return r.answer(data)
}

// waiting is a request that was not answered yet.
type waiting struct {
	connection *connection
	unique     uint64
	answered   bool
}

func (w *waiting) fail(errno unix.Errno) bool {
	if w.answered {
		return false
	}
	w.end()
	return w.connection.reply(w.unique, errno, nil)
}

func (w *waiting) answer(body []byte) bool {
	if w.answered {
		return false
	}
	w.end()
	return w.connection.reply(w.unique, 0, body)
}

func (w *waiting) end() {
	w.answered = true
	delete(w.connection.waiting, w.unique)
}

// Abandoned reports whether the program has given up, or was answered.
func (w *waiting) Abandoned() bool { return w.answered }
