package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/simserve/qib"
)

// Messages of QEMU's protocol for a device in another process.
const (
	cmdSyncMemory  = 0
	cmdReturn      = 1
	cmdConfigWrite = 2
	cmdConfigRead  = 3
	cmdBARWrite    = 4
	cmdBARRead     = 5
	cmdSetIRQ      = 6
	cmdReset       = 7

	headerSize = 16
	maxRegions = 8
	// maxPayload is that of the longest message, in bytes.
	maxPayload = 24 * maxRegions
	// maxFDs is the number of descriptors that come with one message.
	maxFDs = maxRegions
	// queueMax is how many packets wait for the wire before the port is as one whose other end has no
	// room. Those of virtual lane 15, which do not wait for room, are lost then.
	queueMax = 1024
	// cutStore is how many bytes QEMU writes one by one, each as a message, when the
	// guest's kernel stores 8 that are not aligned.
	cutStore = 8
)

// proxy is the device's side of the connection to QEMU, with the adapter.
type proxy struct {
	mu      sync.Mutex
	adapter *qib.Adapter
	memory  memory
	begun   time.Time
	wakeAt  time.Duration // for which a timer runs
	out     chan struct{} // there is something in queue
	queue   []qib.Event   // for the wire
	full    bool          // queueMax of them are there
	noRoom  bool          // at the other end of the cable
	ring    chan struct{} // an interrupt is to be sent
	msi     qib.Event     // the last one

	conn *net.UnixConn
	buf  []byte // read and not used
	fds  []int  // received and not used
	skip int    // messages to which the answer was sent before
}

func newProxy(settings qib.Settings, conn *net.UnixConn) *proxy {
	p := &proxy{conn: conn, begun: time.Now(), out: make(chan struct{}, 1), ring: make(chan struct{}, 1)}
	p.adapter = qib.New(settings, &p.memory)
	return p
}

// do runs a step of the adapter, and what follows from it.
func (p *proxy) do(step func(a *qib.Adapter)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adapter.Advance(time.Since(p.begun))
	step(p.adapter)
	for {
		e, ok := p.adapter.Next()
		if !ok {
			break
		}
		if e.Kind == qib.Interrupt {
			p.msi = e
			signal(p.ring)
			continue
		}
		p.enqueue(e)
	}
	if due, ok := p.adapter.Deadline(); ok && due != p.wakeAt {
		p.wakeAt = due
		time.AfterFunc(due-time.Since(p.begun), func() { p.do(func(*qib.Adapter) {}) })
	}
}

// enqueue has an event wait for the wire.
func (p *proxy) enqueue(e qib.Event) {
	if e.Kind == qib.Packet && len(p.queue) >= queueMax {
		if !p.full {
			p.full = true
			p.adapter.SetReady(false)
		}
		if (*packet.LRH)(e.Packet).VL() == ib.VLManagement {
			return
		}
	}
	p.queue = append(p.queue, e)
	signal(p.out)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// carry gives what comes out of the port to the wire, until the machine has ended.
func (p *proxy) carry(w Wire, done <-chan struct{}) {
	for {
		select {
		case <-done:
			w.SetLink(qib.End{})
			return
		case <-p.out:
		}
		p.mu.Lock()
		events, full := p.queue, p.full
		p.queue, p.full = nil, false
		p.mu.Unlock()
		if full {
			p.do(func(a *qib.Adapter) { a.SetReady(!p.noRoom) })
		}
		for _, e := range events {
			if e.Kind == qib.Link {
				w.SetLink(e.End)
			} else {
				w.Send(e.Packet)
			}
		}
	}
}

// interrupts writes interrupts to QEMU's test socket, one after the other: those that come
// before one is acknowledged are one.
func (p *proxy) interrupts(qtest io.ReadWriter, done <-chan struct{}) {
	answer := make([]byte, 256)
	for {
		select {
		case <-done:
			return
		case <-p.ring:
		}
		p.mu.Lock()
		e := p.msi
		p.mu.Unlock()
		if _, err := fmt.Fprintf(qtest, "writel %#x %#x\n", e.Address, e.Data); err != nil {
			return
		}
		for n := 0; n == 0 || answer[n-1] != '\n'; {
			var err error
			if n, err = qtest.Read(answer); err != nil {
				return
			}
		}
	}
}

// serve answers QEMU until it ends, and then returns nil.
func (p *proxy) serve() error {
	defer p.close()
	for {
		header, err := p.read(headerSize)
		if err != nil {
			return ended(err)
		}
		cmd, size := binary.LittleEndian.Uint32(header), binary.LittleEndian.Uint64(header[8:])
		if size > maxPayload {
			return fmt.Errorf("QEMU: message %d of %d bytes: want at most %d", cmd, size, maxPayload)
		}
		payload, err := p.read(int(size))
		if err != nil {
			return ended(err)
		}
		value, answers, err := p.message(cmd, payload)
		if err != nil {
			return fmt.Errorf("QEMU: message %d: %w", cmd, err)
		}
		if answers {
			if err := p.answer(cmd, payload, value); err != nil {
				return ended(err)
			}
		}
	}
}

// ended is nil for the errors of a connection that QEMU closed by ending.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}

// message carries out a message. answers reports whether QEMU waits for the value.
func (p *proxy) message(cmd uint32, b []byte) (value uint64, answers bool, err error) {
	switch {
	case cmd == cmdSyncMemory && len(b) == maxPayload:
		return 0, false, p.mapMemory(b)
	case cmd == cmdSetIRQ:
		p.drop(len(p.fds)) // interrupts go another way
		return 0, false, nil
	case (cmd == cmdConfigWrite || cmd == cmdConfigRead) && len(b) >= 12:
		at, v, size := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), int(binary.LittleEndian.Uint32(b[8:]))
		if size < 1 || size > 4 {
			return 0, false, fmt.Errorf("%d bytes of configuration space: want 1 to 4", size)
		}
		p.do(func(a *qib.Adapter) {
			if cmd == cmdConfigWrite {
				a.WriteConfig(at, size, v)
			} else {
				value = uint64(a.ReadConfig(at, size))
			}
		})
	case (cmd == cmdBARWrite || cmd == cmdBARRead) && len(b) >= 20:
		at, v, size := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), int(binary.LittleEndian.Uint32(b[16:]))
		if size < 1 || size > 8 {
			return 0, false, fmt.Errorf("%d bytes of a register: want 1 to 8", size)
		}
		p.do(func(a *qib.Adapter) {
			if offset := uint32(at - a.BAR()); cmd == cmdBARWrite {
				a.Write(offset, size, v)
			} else {
				value = a.Read(offset, size)
			}
		})
	case cmd == cmdReset:
		p.do((*qib.Adapter).Reset)
	default:
		return 0, false, fmt.Errorf("%d bytes: this program does not know it", len(b))
	}
	return value, true, nil
}

// answer returns a value. A store to a send buffer that is not aligned comes as single
// bytes, each of which would wait for its answer: the first is answered for all of them.
func (p *proxy) answer(cmd uint32, b []byte, value uint64) error {
	if p.skip > 0 {
		p.skip--
		return nil
	}
	n := 1
	if cmd == cmdBARWrite && b[16] == 1 {
		at := binary.LittleEndian.Uint64(b)
		if at%8 == 4 && qib.IsSendBuffer(uint32(at%qib.BARSize)) {
			n, p.skip = cutStore, cutStore-1
		}
	}
	out := make([]byte, 0, cutStore*(headerSize+8))
	for range n {
		out = binary.LittleEndian.AppendUint64(out, cmdReturn)
		out = binary.LittleEndian.AppendUint64(out, 8)
		out = binary.LittleEndian.AppendUint64(out, value)
	}
	_, err := p.conn.Write(out)
	return err
}

// read is the next n bytes of the connection, valid until the next call.
func (p *proxy) read(n int) ([]byte, error) {
	var in [4096]byte
	oob := make([]byte, unix.CmsgSpace(4*maxFDs))
	for len(p.buf) < n {
		got, control, _, _, err := p.conn.ReadMsgUnix(in[:], oob)
		if err != nil {
			return nil, err
		}
		if got == 0 {
			return nil, io.EOF
		}
		p.buf = append(p.buf, in[:got]...)
		messages, err := unix.ParseSocketControlMessage(oob[:control])
		if err != nil {
			return nil, err
		}
		for i := range messages {
			if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
				p.fds = append(p.fds, fds...)
			}
		}
	}
	b := p.buf[:n]
	p.buf = p.buf[n:]
	return b, nil
}

// drop closes the first n descriptors.
func (p *proxy) drop(n int) {
	for _, fd := range p.fds[:n] {
		unix.Close(fd)
	}
	p.fds = p.fds[n:]
}

// mapMemory takes a list of the guest's memory, instead of what was before.
func (p *proxy) mapMemory(b []byte) error {
	word := func(list, i int) uint64 { return binary.LittleEndian.Uint64(b[8*(list*maxRegions+i):]) }
	n := min(len(p.fds), maxRegions)
	defer p.drop(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	var now []region
	for i := range n {
		r, err := p.memory.open(p.fds[i], word(0, i), int64(word(2, i)), int(word(1, i)))
		if err != nil {
			return fmt.Errorf("the guest's memory: %w", err)
		}
		now = append(now, r)
	}
	p.memory.keep(now)
	return nil
}

func (p *proxy) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(len(p.fds))
	p.memory.keep(nil)
	p.conn.Close()
}

// region is a part of the guest's memory.
type region struct {
	address uint64
	inode   uint64
	offset  int64
	bytes   []byte
}

// memory is the guest's memory.
type memory struct{ regions []region }

// open maps a region, or takes the map that there is: QEMU sends the same list often.
func (m *memory) open(fd int, address uint64, offset int64, size int) (region, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return region{}, os.NewSyscallError("fstat", err)
	}
	for _, r := range m.regions {
		if r.inode == stat.Ino && r.offset == offset && len(r.bytes) == size {
			r.address = address
			return r, nil
		}
	}
	bytes, err := unix.Mmap(fd, offset, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return region{address, stat.Ino, offset, bytes}, os.NewSyscallError("mmap", err)
}

// keep lets go of the regions that are not among those that count from now on.
func (m *memory) keep(now []region) {
	for _, old := range m.regions {
		used := false
		for _, r := range now {
			used = used || &r.bytes[0] == &old.bytes[0]
		}
		if !used {
			unix.Munmap(old.bytes)
		}
	}
	m.regions = now
}

// WriteMemory implements qib.Memory.
func (m *memory) WriteMemory(address uint64, b []byte) {
	for _, r := range m.regions {
		if at := address - r.address; address >= r.address && at < uint64(len(r.bytes)) {
			n := copy(r.bytes[at:], b)
			if address, b = address+uint64(n), b[n:]; len(b) == 0 {
				return
			}
		}
	}
}
