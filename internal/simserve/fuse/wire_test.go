package fuse

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// kernel is the other end of a connection: what a kernel asks, and what it is answered.
type kernel struct {
	t    *testing.T
	c    *connection
	fd   int
	box  *box
	last uint64
}

func newKernel(t *testing.T) *kernel {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	k := &kernel{t: t, fd: fds[1], box: new(box)}
	k.c = &connection{
		file: os.NewFile(uintptr(fds[0]), "fuse"), config: Config{Do: func(f func()) { f() }},
		ids: map[Node]uint64{}, nodes: map[uint64]Node{}, handles: map[uint64]*handle{}, texts: map[uint64][]byte{}, waiting: map[uint64]*waiting{},
	}
	t.Cleanup(func() { k.c.file.Close(); unix.Close(k.fd) })
	k.c.id(&folder{[]Entry{{"box", k.box}, {"text", &note{"some text"}}}})
	return k
}

// answered is the next answer; some is false for none.
func (k *kernel) answered() (unique uint64, errno unix.Errno, body []byte, some bool) {
	k.t.Helper()
	b := make([]byte, requestSize)
	n, err := unix.Read(k.fd, b)
	if err != nil {
		return 0, 0, nil, false
	}
	if n < outHeaderSize || int(native.Uint32(b)) != n {
		k.t.Fatalf("an answer of %d bytes: %x", n, b[:min(n, 64)])
	}
	return native.Uint64(b[8:]), unix.Errno(-int32(native.Uint32(b[4:]))), b[outHeaderSize:n], true
}

// post asks, and waits for no answer.
func (k *kernel) post(op opcode, node uint64, body []byte) (unique uint64) {
	k.t.Helper()
	k.last++
	b := native.AppendUint32(nil, uint32(inHeaderSize+len(body)))
	b = native.AppendUint32(b, uint32(op))
	b = native.AppendUint64(b, k.last)
	b = native.AppendUint64(b, node)
	b = append(b, make([]byte, inHeaderSize-len(b))...)
	native.PutUint32(b[32:], 77)
	r, ok := parseRequest(append(b, body...))
	if !ok || r.thread != 77 {
		k.t.Fatalf("request %x is read as %+v, %v", b, r, ok)
	}
	k.c.serve(&r)
	return k.last
}

// ask asks, and is the answer.
func (k *kernel) ask(op opcode, node uint64, body []byte) (unix.Errno, []byte) {
	k.t.Helper()
	asked := k.post(op, node, body)
	unique, errno, out, some := k.answered()
	if !some || unique != asked {
		k.t.Fatalf("request %d of kind %d: answered %v, as %d", asked, op, some, unique)
	}
	return errno, out
}

// words are numbers of 4 bytes one after another, and longs of 8.
func words(list ...uint32) (out []byte) {
	for _, x := range list {
		out = native.AppendUint32(out, x)
	}
	return out
}

func longs(list ...uint64) (out []byte) {
	for _, x := range list {
		out = native.AppendUint64(out, x)
	}
	return out
}

const (
	boxNode, textNode = 2, 3
	noNode            = 99
	noHandle          = 99
)

// opened is a handle of a node.
func (k *kernel) opened(node uint64, flags uint32) uint64 {
	k.t.Helper()
	errno, body := k.ask(opOpen, node, words(unix.O_RDWR, 0))
	if errno != 0 || len(body) != 16 || native.Uint32(body[8:]) != flags {
		k.t.Fatalf("open of node %d: %v, %x", node, errno, body)
	}
	return native.Uint64(body)
}

// TestEveryRequest: what each request is answered with, by which number, where what it names
// is there and where it is not.
func TestEveryRequest(t *testing.T) {
	k := newKernel(t)
	check := func(what string, op opcode, node uint64, body []byte, errno unix.Errno, want []byte) {
		t.Helper()
		if got, out := k.ask(op, node, body); got != errno || !bytes.Equal(out, want) {
			t.Errorf("%s: %v, %x\nwant %v, %x", what, got, out, errno, want)
		}
	}
	for minor, want := range map[uint32]uint32{28: 28, 30: 30, 31: 31, 32: 31, 40: 31} {
		check("init", opInit, 0, words(7, minor), 0, appendInit(nil, want))
	}
	check("an older kernel", opInit, 0, words(7, 27), unix.EPROTO, nil)
	check("another protocol", opInit, 0, words(8, 31), unix.EPROTO, nil)

	check("box", opLookup, rootID, []byte("box\x00"), 0, appendEntry(nil, boxNode, unix.S_IFREG|0o600))
	check("text", opLookup, rootID, []byte("text\x00"), 0, appendEntry(nil, textNode, unix.S_IFREG|0o444))
	check("no such name", opLookup, rootID, []byte("tex\x00"), unix.ENOENT, nil)
	check("a name in a file", opLookup, textNode, []byte("box\x00"), unix.ENOTDIR, nil)
	check("a name in nothing", opLookup, noNode, []byte("box\x00"), unix.ENOTDIR, nil)
	check("attributes of the root", opGetattr, rootID, nil, 0, appendAttrs(nil, rootID, unix.S_IFDIR|0o555))
	check("attributes of the box", opGetattr, boxNode, nil, 0, appendAttrs(nil, boxNode, unix.S_IFREG|0o600))
	check("attributes of nothing", opGetattr, noNode, nil, unix.ENOENT, nil)

	first := appendDirent(nil, boxNode, 1, unix.S_IFREG|0o600, "box")
	both := appendDirent(slices.Clone(first), textNode, 2, unix.S_IFREG|0o444, "text")
	if len(first) != 32 || len(both) != 64 {
		t.Fatalf("entries of %d and %d bytes", len(first), len(both)-len(first))
	}
	list := func(offset uint64, size uint32) []byte { return append(longs(0, offset), words(size, 0)...) }
	check("opendir", opOpendir, rootID, nil, 0, make([]byte, 16))
	for size, want := range map[uint32][]byte{0: nil, 31: nil, 32: first, 63: first, 64: both, 4096: both} {
		check("a list", opReaddir, rootID, list(0, size), 0, want)
	}
	check("the rest of a list", opReaddir, rootID, list(1, 4096), 0, both[len(first):])
	check("the end of a list", opReaddir, rootID, list(2, 4096), 0, nil)
	check("a list of a file", opReaddir, boxNode, list(0, 4096), unix.ENOTDIR, nil)

	text, device := k.opened(textNode, openDirectIO), k.opened(boxNode, openDirectIO|openStream)
	read := func(handle, offset uint64, size uint32) []byte {
		return append(longs(handle, offset), words(size, 0, 0, 0, unix.O_NONBLOCK, 0)...)
	}
	for at, want := range map[[2]uint64]string{{0, 100}: "some text", {0, 4}: "some", {5, 4}: "text", {5, 3}: "tex", {8, 9}: "t", {9, 1}: "", {100, 1}: ""} {
		check("a read of text", opRead, textNode, read(text, at[0], uint32(at[1])), 0, []byte(want))
	}
	check("a read of nothing", opRead, textNode, read(noHandle, 0, 10), unix.EBADF, nil)
	write := func(handle uint64, size uint32, data string) []byte {
		return append(append(longs(handle, 0), append(words(size, 0), make([]byte, 16)...)...), data...)
	}
	check("a read of an empty box", opRead, boxNode, read(device, 0, 10), unix.EAGAIN, nil)
	check("a write", opWrite, boxNode, write(device, 3, "abcd"), 0, words(3, 0))
	check("a write of more than there is", opWrite, boxNode, write(device, 9, "ef"), 0, words(2, 0))
	check("a write to nothing", opWrite, boxNode, write(noHandle, 1, "x"), unix.EBADF, nil)
	check("a write to text", opWrite, textNode, write(text, 1, "x"), unix.EBADF, nil)
	check("a read of what was written", opRead, boxNode, read(device, 0, 10), 0, []byte("abc"))
	check("a read of the next", opRead, boxNode, read(device, 0, 2), 0, []byte("ef"))

	ioctl := func(handle uint64, command, in, out uint32, data string) []byte {
		return append(append(longs(handle), words(0, command, 0, 0, in, out)...), data...)
	}
	check("ioctl", opIoctl, boxNode, ioctl(device, double, 4, 4, "\x01\x02\x03\x04"), 0, append(words(0, 0, 0, 0), 2, 4, 6, 8))
	check("ioctl with less in", opIoctl, boxNode, ioctl(device, double, 2, 4, "\x01\x02\x03\x04"), 0, append(words(0, 0, 0, 0), 2, 4))
	check("ioctl with less room", opIoctl, boxNode, ioctl(device, double, 4, 3, "\x01\x02\x03\x04"), 0, append(words(0, 0, 0, 0), 2, 4, 6))
	refused := -int32(unix.EINVAL)
	check("ioctl refused", opIoctl, boxNode, ioctl(device, doubleRefused, 4, 4, "abcd"), 0, append(words(uint32(refused), 0, 0, 0), 7, 7, 7, 7))
	check("ioctl of nothing", opIoctl, boxNode, ioctl(noHandle, plain, 0, 0, ""), unix.ENOTTY, nil)

	poll := func(handle, kernel uint64, flags uint32) []byte {
		return append(longs(handle, kernel), words(flags, 0)...)
	}
	check("poll of text", opPoll, textNode, poll(text, 5, 0), 0, words(unix.POLLIN|unix.POLLOUT, 0))
	check("poll of nothing", opPoll, textNode, poll(noHandle, 5, 0), 0, words(unix.POLLERR, 0))
	for _, flags := range []uint32{0, pollScheduleNotify, pollScheduleNotify} { // the first does not wait, the last is not another
		check("poll", opPoll, boxNode, poll(device, 6, flags), 0, words(unix.POLLOUT, 0))
	}
	check("poll of another", opPoll, boxNode, poll(device, 7, pollScheduleNotify), 0, words(unix.POLLOUT, 0))
	k.post(opWrite, boxNode, write(device, 1, "x"))
	for _, want := range []uint64{6, 7} {
		if unique, code, body, some := k.answered(); !some || unique != 0 || int(code) != -notifyPoll || !bytes.Equal(body, longs(want)) {
			t.Errorf("who waits is told %v: %d, %d, %x; want %d", some, unique, code, body, want)
		}
	}
	if _, errno, _, some := k.answered(); !some || errno != 0 {
		t.Errorf("the write: %v, %v", some, errno)
	}
	check("poll of what has some", opPoll, boxNode, poll(device, 0, 0), 0, words(unix.POLLIN|unix.POLLOUT, 0))
	check("a read of it", opRead, boxNode, read(device, 0, 10), 0, []byte("x"))

	// A read that waits is answered once: by an interrupt, or by what comes.
	waiting := read(device, 0, 10)
	clear(waiting[32:])
	asked := k.post(opRead, boxNode, waiting)
	k.post(opInterrupt, 0, longs(asked+1)) // of another
	if _, _, _, some := k.answered(); some || len(k.c.waiting) != 1 {
		t.Error("a read that waits is answered")
	}
	k.post(opInterrupt, 0, longs(asked))
	if unique, errno, _, some := k.answered(); !some || unique != asked || errno != unix.EINTR || len(k.c.waiting) != 0 {
		t.Errorf("an interrupted read: %v, %d, %v", some, unique, errno)
	}
	if r := k.box.readers[0]; !r.Abandoned() || r.Reply([]byte("late"), 0) || r.Reply(nil, unix.EIO) || r.thread != 77 || r.Size != 10 || r.NonBlocking || r.Rest {
		t.Errorf("a read that was interrupted: %+v", r)
	}
	k.box.readers = nil
	native.PutUint64(waiting[8:], 4)
	asked = k.post(opRead, boxNode, waiting)
	if r := k.box.readers[0]; !r.Rest || r.Offset != 4 || r.Abandoned() {
		t.Errorf("the rest of a read: %+v", r)
	}

	check("release of text", opRelease, textNode, longs(text), 0, nil)
	check("a read after it", opRead, textNode, read(text, 0, 10), unix.EBADF, nil)
	check("release of nothing", opRelease, textNode, longs(noHandle), 0, nil)
	if check("release", opRelease, boxNode, longs(device), 0, nil); k.box.closed != 1 {
		t.Errorf("closed %d times", k.box.closed)
	}
	check("release again", opRelease, boxNode, longs(device), 0, nil)
	check("statfs", opStatfs, rootID, nil, 0, make([]byte, 80))
	for _, op := range []opcode{opFlush, opReleasedir, opAccess, opDestroy} {
		check("nothing to do", op, rootID, nil, 0, nil)
	}
	check("what is not known", 98, rootID, nil, unix.ENOSYS, nil)
	for _, op := range []opcode{opForget, opBatchForget} {
		if k.post(op, rootID, longs(1)); true {
			if _, _, _, some := k.answered(); some {
				t.Errorf("request of kind %d is answered", op)
			}
		}
	}
	reader := k.box.readers[0]
	k.opened(boxNode, openDirectIO|openStream)
	if k.c.closeAll(); k.box.closed != 2 || len(k.c.handles)+len(k.c.waiting) != 0 || !reader.Abandoned() || reader.Reply(nil, 0) {
		t.Errorf("after the end: closed %d times, %d open, %d wait", k.box.closed, len(k.c.handles), len(k.c.waiting))
	}
	if _, _, _, some := k.answered(); some {
		t.Errorf("request %d is answered after the end", asked)
	}
}

// TestRequestsThatAreNone: a request is as long as it says, or there is none; a field behind
// its end is 0.
func TestRequestsThatAreNone(t *testing.T) {
	for _, x := range []struct {
		has, says int
		ok        bool
	}{{0, 0, false}, {39, 39, false}, {40, 39, false}, {40, 40, true}, {40, 41, false}, {48, 40, true}, {48, 48, true}, {48, 49, false}} {
		b := make([]byte, max(x.has, 4))
		native.PutUint32(b, uint32(x.says))
		r, ok := parseRequest(b[:x.has])
		if ok != x.ok || ok && len(r.body) != x.says-inHeaderSize {
			t.Errorf("%d bytes that say %d: %v, a body of %d", x.has, x.says, ok, len(r.body))
		}
	}
	r := request{body: words(1, 2, 3)}
	for at, want := range map[int]uint32{0: 1, 4: 2, 8: 3, 9: 0, 12: 0, 100: 0} {
		if got := r.u32(at); got != want {
			t.Errorf("4 bytes at %d: %d, want %d", at, got, want)
		}
	}
	for at, want := range map[int]uint64{4: native.Uint64(words(2, 3)), 5: 0, 12: 0, 100: 0} {
		if got := r.u64(at); got != want {
			t.Errorf("8 bytes at %d: %d, want %d", at, got, want)
		}
	}
	for at, want := range map[int]int{0: 12, 4: 8, 12: 0, 13: 0} {
		if got := len(r.from(at)); got != want {
			t.Errorf("from %d: %d bytes, want %d", at, got, want)
		}
	}
}
