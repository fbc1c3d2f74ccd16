package kernel

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
)

// File is one open umad file.
type File struct {
	layer   *Layer
	agents  [umad.MaxAgents]*agent
	long    bool // it has the header with a P_Key index
	used    bool // an agent was registered
	dead    bool // the device is gone
	closed  bool
	flagged bool // it is in Layer.ready
	sends   map[sendKey][]*send
	count   int // of sends
	serial  uint64
	unread  []message
	waiting map[ib.LID]int // of unread, those that nobody asked for, by senderOf
}

// message is something to read.
type message struct {
	header umad.Header
	bytes  []byte
	from   ib.LID // whom it counts for in File.waiting, 0 for nobody
}

// Events of Poll, with the numbers of Linux.
const (
	PollIn      uint32 = 0x001
	PollOut     uint32 = 0x004
	PollErr     uint32 = 0x008
	PollReadNor uint32 = 0x040
	PollWritNor uint32 = 0x100
)

// Poll is the set of events that are true now.
func (f *File) Poll() uint32 {
	switch {
	case f.dead:
		return PollErr
	case len(f.unread) > 0:
		return PollOut | PollWritNor | PollIn | PollReadNor
	}
	return PollOut | PollWritNor
}

// Ioctl carries out a command. What it returns is written back to the
// program's argument, with an error too.
func (f *File) Ioctl(command uint32, argument []byte) ([]byte, umad.Errno) {
	switch command {
	case umad.CommandRegister, umad.CommandRegister2:
		return f.register(command, argument)
	case umad.CommandUnregister:
		return nil, f.unregister(argument)
	case umad.CommandEnablePKey:
		if f.used {
			return nil, umad.EINVAL
		}
		f.long = true
		return nil, umad.OK
	}
	return nil, umad.ENOTTY
}

func (f *File) register(command uint32, argument []byte) ([]byte, umad.Errno) {
	if f.dead {
		return nil, umad.EPIPE
	}
	r, err := umad.ReadRegistration(command, argument)
	if err != nil {
		return nil, umad.EFAULT
	}
	encode := r.Encode
	second := command == umad.CommandRegister2
	if second {
		encode = r.Encode2
	}
	switch {
	case r.QPN > 1:
		return nil, umad.EINVAL
	case r.Flags&^umad.FlagUserRMPP != 0:
		r.Flags = umad.FlagUserRMPP // tells what is supported
		return encode(), umad.EINVAL
	}
	slot := slices.Index(f.agents[:], nil)
	switch {
	case slot < 0:
		return nil, umad.ENOMEM
	case r.Class != 0 && r.OUI > 0xFFFFFF,
		r.Class == 0 && r.Flags != 0: // there is no RMPP without a class
		return nil, umad.EINVAL
	}
	if errno := f.layer.register(f, slot, r); errno != umad.OK {
		return nil, errno
	}
	f.long = f.long || second && !f.used
	f.used = true
	r.ID = uint32(slot)
	return encode(), umad.OK
}

func (f *File) unregister(argument []byte) umad.Errno {
	id, ok := umad.ReadID(argument)
	if !ok {
		return umad.EFAULT
	}
	if id >= umad.MaxAgents || f.agents[id] == nil {
		return umad.EINVAL
	}
	f.layer.unregister(f.agents[id])
	return umad.OK
}

// Read takes the first message that fits into room bytes: the header, the
// heads of the first datagram and what follows. It answers EAGAIN when there is
// none, EINVAL when room is too small for it, and ENOSPC, with the header and
// the first datagram, when it is too small for the rest; the message then stays.
func (f *File) Read(room int) ([]byte, umad.Errno) {
	size := umad.SizeOf(f.long)
	switch {
	case room < size:
		return nil, umad.EINVAL
	case f.dead:
		return nil, umad.EIO
	case len(f.unread) == 0:
		return nil, umad.EAGAIN
	}
	m := &f.unread[0]
	first := min(len(m.bytes), mad.Size)
	if room < size+first {
		return nil, umad.EINVAL
	}
	if m.header.Status == 0 { // of what comes back unanswered it stays as written
		m.header.Length = uint32(size + len(m.bytes))
	}
	short := room < size+len(m.bytes)
	if !short {
		first = len(m.bytes)
	}
	out := make([]byte, size+first)
	m.header.Put(out, f.long)
	copy(out[size:], m.bytes[:first])
	if short {
		return out, umad.ENOSPC
	}
	if lid := m.from; lid != 0 {
		if f.waiting[lid]--; f.waiting[lid] == 0 {
			delete(f.waiting, lid)
		}
	}
	f.unread[0] = message{}
	f.unread = f.unread[1:]
	return out, umad.OK
}

// Close ends the file: its agents go, what they asked is not answered.
func (f *File) Close() {
	if f.closed {
		return
	}
	f.dropAgents()
	f.closed, f.dead, f.unread = true, true, nil
	l := f.layer
	l.files = slices.DeleteFunc(l.files, func(g *File) bool { return f == g })
	l.ready = slices.DeleteFunc(l.ready, func(g *File) bool { return f == g })
}

func (f *File) dropAgents() {
	for _, a := range f.agents {
		if a != nil {
			f.layer.unregister(a)
		}
	}
}

// deliver puts a message where Read finds it.
func (f *File) deliver(m message) {
	f.unread = append(f.unread, m)
	f.layer.wake(f)
}

// outstanding are the file's sends in the order in which they were written.
func (f *File) outstanding() []*send {
	out := make([]*send, 0, f.count)
	for _, some := range f.sends {
		out = append(out, some...)
	}
	slices.SortFunc(out, func(a, b *send) int { return cmp.Compare(a.serial, b.serial) })
	return out
}
