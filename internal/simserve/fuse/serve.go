package fuse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Config says what is served and where its state lives.
type Config struct {
	Root Directory
	// Do runs a function where the tree may be touched, and returns when it
	// has run or never will. Opening.Reply, Reading.Reply and Wake may be
	// called from there only.
	Do func(func())
}

// Serve answers the kernel on a connection until the mount is gone, the context
// ends or the connection breaks. Then every handle is closed, and the connection
// too. The end of the mount is no error.
func Serve(ctx context.Context, f *os.File, config Config) error {
	c := &connection{
		file: f, config: config,
		ids: map[Node]uint64{}, nodes: map[uint64]Node{},
		handles: map[uint64]*handle{}, texts: map[uint64][]byte{}, waiting: map[uint64]*waiting{},
	}
	c.id(config.Root) // rootID
	defer config.Do(c.closeAll)
	defer f.Close()
	defer context.AfterFunc(ctx, func() { abort(f) })()
	buffer := make([]byte, requestSize)
	for {
		n, err := f.Read(buffer)
		switch {
		case errors.Is(err, unix.ENODEV): // unmounted
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOENT): // ENOENT: the request was taken back
			continue
		case err != nil && disconnected(f): // unmounted while the read waited
			return nil
		case err != nil:
			return fmt.Errorf("reading from /dev/fuse: %w", err)
		}
		r, ok := parseRequest(buffer[:n])
		if !ok {
			return fmt.Errorf("/dev/fuse: a request of %d bytes that says it has %d", n, native.Uint32(buffer))
		}
		config.Do(func() { c.serve(&r) })
	}
}

// disconnected reports whether the kernel has ended the connection. It wakes a
// read that waits then with an error condition and no data, for which package os
// has an error that it does not export ("not pollable") instead of ENODEV.
func disconnected(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	var ended bool
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		ended = n == 1 && err == nil && fds[0].Revents&unix.POLLERR != 0
	})
	return err == nil && ended
}

// abort ends a blocked read of the connection.
func abort(f *os.File) { f.Close() }

// connection is what is known about one mount.
type connection struct {
	file   *os.File
	config Config
	ids    map[Node]uint64
	nodes  map[uint64]Node

	lastHandle uint64
	handles    map[uint64]*handle // of devices
	texts      map[uint64][]byte
	waiting    map[uint64]*waiting // by request
	out        []byte
}

// handle is an open device and those who wait in poll(2) on it.
type handle struct {
	Handle
	pollers []uint64
}

// id numbers a node; the first is the root. Numbers are never used again.
func (c *connection) id(n Node) uint64 {
	if id, ok := c.ids[n]; ok {
		return id
	}
	id := uint64(len(c.ids) + rootID)
	c.ids[n], c.nodes[id] = id, n
	return id
}

// reply reports whether the kernel took the answer: it does not from a request
// that it has given up.
func (c *connection) reply(unique uint64, errno unix.Errno, body []byte) bool {
	if errno != 0 {
		body = nil
	}
	c.out = append(appendHeader(c.out[:0], len(body), -int32(errno), unique), body...)
	_, err := c.file.Write(c.out)
	return err == nil
}

func (c *connection) serve(r *request) {
	switch r.op {
	case opForget, opBatchForget:
		return // nodes are kept
	case opInterrupt:
		if w := c.waiting[r.u64(0)]; w != nil {
			w.fail(unix.EINTR)
		}
		return
	case opRead:
		c.read(r)
		return
	case opOpen:
		c.open(r)
		return
	}
	body, errno := c.answer(r)
	c.reply(r.unique, errno, body)
}

// answer does what is answered at once.
func (c *connection) answer(r *request) (body []byte, errno unix.Errno) {
	switch r.op {
	case opInit:
		if r.u32(0) != protocolMajor || r.u32(4) < oldestMinor {
			return nil, unix.EPROTO
		}
		return appendInit(nil, r.u32(4)), 0
	case opLookup:
		return c.lookup(r)
	case opGetattr:
		n, ok := c.nodes[r.node]
		if !ok {
			return nil, unix.ENOENT
		}
		return appendAttrs(nil, r.node, mode(n)), 0
	case opOpendir:
		return openOut{}.append(nil), 0
	case opReaddir:
		return c.list(r)
	case opWrite:
		return c.write(r)
	case opIoctl:
		return c.ioctl(r)
	case opPoll:
		return c.poll(r)
	case opRelease:
		c.release(r.u64(0))
		return nil, 0
	case opStatfs:
		return make([]byte, 80), 0
	case opFlush, opReleasedir, opAccess, opDestroy:
		return nil, 0
	}
	return nil, unix.ENOSYS
}

// mode is the kind and the permissions of a node.
func mode(n Node) uint32 {
	switch n.(type) {
	case Directory:
		return unix.S_IFDIR | 0o555
	case Device:
		return unix.S_IFREG | 0o600
	}
	return unix.S_IFREG | 0o444
}

func (c *connection) lookup(r *request) ([]byte, unix.Errno) {
	d, ok := c.nodes[r.node].(Directory)
	if !ok {
		return nil, unix.ENOTDIR
	}
	name := strings.TrimRight(string(r.body), "\x00")
	entries := d.Entries()
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return nil, unix.ENOENT
	}
	return appendEntry(nil, c.id(entries[i].Node), mode(entries[i].Node)), 0
}

func (c *connection) list(r *request) ([]byte, unix.Errno) {
	d, ok := c.nodes[r.node].(Directory)
	if !ok {
		return nil, unix.ENOTDIR
	}
	offset, size := r.u64(8), int(r.u32(16))
	var out []byte
	for i, e := range d.Entries() {
		if uint64(i) < offset {
			continue
		}
		before := len(out)
		out = appendDirent(out, c.id(e.Node), uint64(i+1), mode(e.Node), e.Name)
		if len(out) > size {
			return out[:before], 0
		}
	}
	return out, 0
}

func (c *connection) open(r *request) {
	switch n := c.nodes[r.node].(type) {
	case Text:
		c.lastHandle++
		c.texts[c.lastHandle] = []byte(n.Text())
		c.reply(r.unique, 0, openOut{handle: c.lastHandle, flags: openDirectIO}.append(nil))
	case Device:
		h := &handle{}
		w := &waiting{connection: c, unique: r.unique}
		c.waiting[r.unique] = w
		c.lastHandle++
		id := c.lastHandle
		n.Open(&Opening{
			Flags: r.u32(0), waiting: w,
			Wake:   func() { c.wake(h) },
			opened: func(device Handle) uint64 { h.Handle, c.handles[id] = device, h; return id },
		})
	default:
		c.reply(r.unique, unix.EISDIR, nil)
	}
}

func (c *connection) read(r *request) {
	offset, size := r.u64(8), int(r.u32(16))
	if text, ok := c.texts[r.u64(0)]; ok {
		begin := min(offset, uint64(len(text)))
		c.reply(r.unique, 0, text[begin:min(begin+uint64(size), uint64(len(text)))])
		return
	}
	h, ok := c.handles[r.u64(0)]
	if !ok {
		c.reply(r.unique, unix.EBADF, nil)
		return
	}
	w := &waiting{connection: c, unique: r.unique}
	c.waiting[r.unique] = w
	h.Read(&Reading{
		Size: size, NonBlocking: r.u32(32)&unix.O_NONBLOCK != 0,
		Rest: offset > 0, Offset: int(offset), thread: r.thread, waiting: w,
	})
}

func (c *connection) write(r *request) ([]byte, unix.Errno) {
	h, ok := c.handles[r.u64(0)]
	if !ok {
		return nil, unix.EBADF
	}
	data := r.from(40)
	n, errno := h.Write(data[:min(len(data), int(r.u32(16)))])
	return append(native.AppendUint32(nil, uint32(n)), 0, 0, 0, 0), errno
}

func (c *connection) ioctl(r *request) ([]byte, unix.Errno) {
	h, ok := c.handles[r.u64(0)]
	if !ok {
		return nil, unix.ENOTTY
	}
	data := r.from(32)
	out, errno := h.Ioctl(r.u32(12), data[:min(len(data), int(r.u32(24)))])
	if room := int(r.u32(28)); len(out) > room {
		out = out[:room]
	}
	// The error goes into the result, so that the kernel writes back too.
	body := native.AppendUint32(nil, uint32(-int32(errno)))
	return append(append(body, make([]byte, 12)...), out...), 0
}

func (c *connection) poll(r *request) ([]byte, unix.Errno) {
	if _, ok := c.texts[r.u64(0)]; ok {
		return append(native.AppendUint32(nil, unix.POLLIN|unix.POLLOUT), 0, 0, 0, 0), 0
	}
	h, ok := c.handles[r.u64(0)]
	if !ok {
		return append(native.AppendUint32(nil, unix.POLLERR), 0, 0, 0, 0), 0
	}
	if kernelHandle := r.u64(8); r.u32(16)&pollScheduleNotify != 0 && !slices.Contains(h.pollers, kernelHandle) {
		h.pollers = append(h.pollers, kernelHandle)
	}
	return append(native.AppendUint32(nil, h.Poll()), 0, 0, 0, 0), 0
}

// wake lets the kernel ask again on behalf of those who wait in poll(2).
func (c *connection) wake(h *handle) {
	for _, kernelHandle := range h.pollers {
		c.out = native.AppendUint64(appendHeader(c.out[:0], 8, notifyPoll, 0), kernelHandle)
		if _, err := c.file.Write(c.out); err != nil && !errors.Is(err, unix.ENOENT) {
			return // the connection is gone, which Serve sees
		}
	}
	h.pollers = h.pollers[:0]
}

func (c *connection) release(id uint64) {
	delete(c.texts, id)
	if h, ok := c.handles[id]; ok {
		delete(c.handles, id)
		h.Close()
	}
}

// closeAll closes what is open when the connection has ended.
func (c *connection) closeAll() {
	ids := make([]uint64, 0, len(c.handles))
	for id := range c.handles {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, w := range c.waiting {
		w.answered = true
	}
	clear(c.waiting)
	for _, id := range ids {
		c.release(id)
	}
}
