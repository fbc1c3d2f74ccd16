package inside

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/app/withkeys"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
	"github.com/ibwarden/ibwarden/internal/simserve/umadfs"
)

const (
	// unreadMax is how many messages are taken from the port before the program has read
	// them; the kernel keeps the others.
	unreadMax = 256
	// messageMax bounds a message, in bytes: what a table of the largest subnet needs.
	messageMax = 64 << 20
	// waitTime is how long the port is waited for at a time.
	waitTime = time.Second
)

// passed is an open umad file of the program, behind which is one of the port.
type passed struct {
	port   umad.File
	gate   *withkeys.Gate
	long   bool // headers are of the longer form
	used   bool // an agent was registered
	unread [][]byte
	gone   umad.Errno // the port is not there any more
	room   sync.Cond  // there is room among unread, or the file is closed
	closed bool
	ended  chan struct{}
}

// opener opens files of a port behind a gate; mu guards all that the tree touches.
func opener(port func() (umad.File, error), gate *withkeys.Gate, mu *sync.Mutex) func(news func()) (umadfs.File, umad.Errno) {
	return func(news func()) (umadfs.File, umad.Errno) {
		f, err := port()
		if err != nil {
			return nil, errnoOf(err)
		}
		p := &passed{port: f, gate: gate, ended: make(chan struct{})}
		p.room.L = mu
		go p.take(mu, news)
		return p, umad.OK
	}
}

func errnoOf(err error) umad.Errno {
	var errno unix.Errno
	switch {
	case err == nil:
		return umad.OK
	case errors.As(err, &errno):
		return umad.Errno(errno)
	}
	return umad.EIO
}

// take brings what arrives at the port to where the program reads it, until the file is
// closed or the port is gone.
func (p *passed) take(mu *sync.Mutex, news func()) {
	defer close(p.ended)
	buffer := make([]byte, umad.HeaderSize+mad.Size)
	for {
		m, err := p.next(&buffer)
		mu.Lock()
		for !p.closed && len(p.unread) >= unreadMax {
			p.room.Wait()
		}
		if p.closed {
			mu.Unlock()
			return
		}
		if m != nil {
			p.hand(m)
		}
		if err != nil {
			p.gone = errnoOf(err)
		}
		if m != nil || err != nil {
			news()
		}
		mu.Unlock()
		if err != nil {
			return
		}
	}
}

// next waits for a message; nil when none came. A message that is longer than the buffer
// stays with the kernel, until there is a buffer for it.
func (p *passed) next(buffer *[]byte) ([]byte, error) {
	readable, err := p.port.Wait(waitTime)
	if err != nil || !readable {
		return nil, err
	}
	for {
		n, err := p.port.Read(*buffer)
		switch {
		case errors.Is(err, unix.ENOSPC) && len(*buffer) < messageMax:
			*buffer = make([]byte, min(8*len(*buffer), messageMax))
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return append([]byte(nil), (*buffer)[:n]...), nil
	}
}

// hand blanks the keys in a message, and has the program read it.
func (p *passed) hand(m []byte) {
	size := umad.SizeOf(p.long)
	if len(m) < size {
		return
	}
	h, _ := umad.ReadHeader(m, p.long) // it is long enough
	p.gate.In(h.Status, m[size:])
	p.unread = append(p.unread, m)
}

// Ioctl implements umadfs.File.
func (p *passed) Ioctl(command uint32, argument []byte) ([]byte, umad.Errno) {
	registers := command == umad.CommandRegister || command == umad.CommandRegister2
	if registers {
		r, err := umad.ReadRegistration(command, argument)
		if err != nil {
			return nil, umad.EFAULT
		}
		if errno := p.gate.Register(&r); errno != umad.OK {
			return nil, errno
		}
	}
	out := append([]byte(nil), argument...)
	if err := p.port.Ioctl(command, out); err != nil {
		return out, errnoOf(err)
	}
	if command == umad.CommandEnablePKey || command == umad.CommandRegister2 && !p.used {
		p.long = true
	}
	p.used = p.used || registers
	return out, umad.OK
}

// Write implements umadfs.File.
func (p *passed) Write(bytes []byte) (int, umad.Errno) {
	size := umad.SizeOf(p.long)
	if len(bytes) < size+umad.LeastMAD {
		return 0, umad.EINVAL
	}
	h, _ := umad.ReadHeader(bytes, p.long) // it is long enough
	own := append([]byte(nil), bytes...)   // the key is in this copy
	defer clear(own)
	if errno := p.gate.Out(own[size:], h.LID); errno != umad.OK {
		return 0, errno
	}
	n, err := p.port.Write(own)
	errno := errnoOf(err)
	if errno == umad.EINVAL {
		p.gate.Refused()
	}
	return n, errno
}

// Read implements umadfs.File.
func (p *passed) Read(room int) ([]byte, umad.Errno) {
	size := umad.SizeOf(p.long)
	switch {
	case room < size:
		return nil, umad.EINVAL
	case len(p.unread) == 0 && p.gone != umad.OK:
		return nil, p.gone
	case len(p.unread) == 0:
		return nil, umad.EAGAIN
	}
	m := p.unread[0]
	if first := min(len(m), size+mad.Size); room < first {
		return nil, umad.EINVAL
	} else if room < len(m) {
		return m[:first], umad.ENOSPC
	}
	p.unread = p.unread[1:]
	p.room.Signal()
	return m, umad.OK
}

// Poll implements umadfs.File.
func (p *passed) Poll() uint32 {
	switch {
	case len(p.unread) > 0:
		return kernel.PollOut | kernel.PollWritNor | kernel.PollIn | kernel.PollReadNor
	case p.gone != umad.OK:
		return kernel.PollErr
	}
	return kernel.PollOut | kernel.PollWritNor
}

// Close implements umadfs.File.
func (p *passed) Close() {
	p.closed = true
	p.room.Broadcast()
	if w, can := p.port.(umad.Waker); can {
		w.Wake()
	}
	go func() { // take may hold the file still
		<-p.ended
		p.port.Close()
	}()
}
