package fuse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/test/need"
)

// folder, note and box are the tree of these tests.
type folder struct{ entries []Entry }

func (f *folder) Entries() []Entry { return f.entries }

type note struct{ text string }

func (n *note) Text() string { return n.text }

// box is a device: what is written to it can be read from it, in pieces.
type box struct {
	wake    []func()
	pieces  [][]byte
	readers []*Reading
	opening []*Opening
	held    bool // Open waits
	closed  int
	ioctls  []uint32
	// deposited is what became of a deposit.
	deposited error
}

func (b *box) Open(o *Opening) {
	if b.held {
		if o.Flags&unix.O_NONBLOCK != 0 {
			o.Reply(nil, unix.EAGAIN)
			return
		}
		b.opening = append(b.opening, o)
		return
	}
	b.wake = append(b.wake, o.Wake)
	o.Reply(b, 0)
}

func (b *box) Read(r *Reading) {
	if len(b.pieces) == 0 {
		if r.NonBlocking {
			r.Reply(nil, unix.EAGAIN)
			return
		}
		b.readers = append(b.readers, r)
		return
	}
	if len(b.pieces[0]) > r.Size {
		b.deposited = r.Deposit([]byte("short"))
		r.Reply(nil, unix.ENOSPC)
		return
	}
	if r.Reply(b.pieces[0], 0) {
		b.pieces = b.pieces[1:]
	}
}

func (b *box) Write(data []byte) (int, unix.Errno) {
	b.pieces = append(b.pieces, bytes.Clone(data))
	for len(b.readers) > 0 && len(b.pieces) > 0 {
		r := b.readers[0]
		b.readers = b.readers[1:]
		if r.Reply(b.pieces[0], 0) {
			b.pieces = b.pieces[1:]
		}
	}
	for _, wake := range b.wake {
		wake()
	}
	return len(data), 0
}

func (b *box) Ioctl(command uint32, argument []byte) ([]byte, unix.Errno) {
	b.ioctls = append(b.ioctls, command)
	switch command {
	case double:
		for i := range argument {
			argument[i] *= 2
		}
		return argument, 0
	case doubleRefused:
		return []byte{7, 7, 7, 7}, unix.EINVAL
	case plain:
		return nil, 0
	}
	return nil, unix.ENOTTY
}

func (b *box) Poll() uint32 {
	if len(b.pieces) > 0 {
		return unix.POLLIN | unix.POLLOUT
	}
	return unix.POLLOUT
}

func (b *box) Close() { b.closed++ }

// ioctls that read and write 4 bytes, and one without argument.
const (
	double        = 0xC0040001 | 'x'<<8
	doubleRefused = 0xC0040002 | 'x'<<8
	plain         = 'x'<<8 | 3
)

// mounted mounts a tree in a mount namespace of the test's own and serves it.
func mounted(t *testing.T, root Directory) (dir string, do func(func())) {
	t.Helper()
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		need.Need(t, fmt.Errorf("no FUSE mounts here: %w", err))
	}
	dir = t.TempDir()
	f, err := Mount(dir, "ibwarden")
	if err != nil {
		need.Need(t, fmt.Errorf("no FUSE mounts here: %w", err))
	}
	var mutex sync.Mutex
	do = func(f func()) { mutex.Lock(); defer mutex.Unlock(); f() }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, f, Config{Root: root, Do: do}) }()
	t.Cleanup(func() {
		unix.Unmount(dir, unix.MNT_DETACH)
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Serve goes on after the mount is gone")
		}
		cancel()
	})
	return dir, do
}

func TestTexts(t *testing.T) {
	n := &note{"4: ACTIVE\n"}
	long := &note{string(bytes.Repeat([]byte("0123456789"), 1<<12))}
	many := &folder{}
	for i := range 300 {
		many.entries = append(many.entries, Entry{string([]byte{'a' + byte(i/26), 'a' + byte(i%26)}), n})
	}
	dir, do := mounted(t, &folder{[]Entry{{"state", n}, {"long", long}, {"many", many}}})
	read := func(name string) string {
		b, err := content(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if got := read("state"); got != n.text {
		t.Errorf("read %q", got)
	}
	do(func() { n.text = "1: DOWN\n" })
	if got := read("state"); got != "1: DOWN\n" {
		t.Errorf("an old text: %q", got)
	}
	if got := read("long"); got != long.text {
		t.Errorf("%d bytes, want %d", len(got), len(long.text))
	}
	names, err := os.ReadDir(filepath.Join(dir, "many"))
	if err != nil || len(names) != 300 {
		t.Errorf("%d names, %v", len(names), err)
	}
	for name, want := range map[string]error{"none": unix.ENOENT, "state/x": unix.ENOTDIR} {
		if _, err := content(filepath.Join(dir, name)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	fd := open(t, filepath.Join(dir, "state"), 0)
	if _, err := unix.Write(fd, []byte("5")); err == nil {
		t.Error("a text was written")
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); n != 1 || err != nil {
		t.Errorf("a text is not ready: %d, %v", n, err)
	}
}

// TestUnmountedWhileServing ends the connection while the server is busy with a
// request, so that it comes back to one that is gone; TestTexts met that by chance.
func TestUnmountedWhileServing(t *testing.T) {
	dir, do := mounted(t, &folder{[]Entry{{"state", &note{"4: ACTIVE\n"}}}})
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	answered := make(chan error, 1)
	do(func() { // the server waits for this lock with the request in its hands
		go func() { answered <- unix.Fstatat(fd, "state", &unix.Stat_t{}, 0) }()
		time.Sleep(50 * time.Millisecond)
		if err := unix.Unmount(dir, unix.MNT_FORCE); err != nil && !errors.Is(err, unix.EBUSY) { // busy: fd is open, and aborted all the same
			t.Error(err)
		}
	})
	if err := <-answered; err == nil {
		t.Error("a request was answered over a connection that was gone")
	}
}

// content reads a file without package os, which asks the kernel to poll the
// file, in a way that stops this process; but this process is who answers.
func content(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var out []byte
	for buffer := make([]byte, 1<<12); ; {
		n, err := unix.Read(fd, buffer)
		if n <= 0 {
			return string(out), err
		}
		out = append(out, buffer[:n]...)
	}
}

// open opens the device beside Go's own polling.
func open(t *testing.T, path string, flags int) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestDevice(t *testing.T) {
	b := &box{}
	dir, do := mounted(t, &folder{[]Entry{{"box", b}}})
	fd := open(t, filepath.Join(dir, "box"), unix.O_NONBLOCK)
	buffer := make([]byte, 64)
	if _, err := unix.Read(fd, buffer); err != unix.EAGAIN {
		t.Errorf("nothing to read: %v", err)
	}
	if n, err := unix.Write(fd, []byte("abc")); n != 3 || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
	_, err := unix.Read(fd, buffer[:2])
	var deposited error
	do(func() { deposited = b.deposited })
	if err != unix.ENOSPC || deposited != nil || string(buffer[:3]) != "sh\x00" {
		t.Errorf("no room: %v, and in the buffer %q, %v", err, buffer[:3], deposited)
	}
	clear(buffer)
	if n, err := unix.Read(fd, buffer); n != 3 || err != nil || string(buffer[:3]) != "abc" {
		t.Errorf("read: %d, %v", n, err)
	}
	big := bytes.Repeat([]byte{1, 2, 3}, MaxTransfer/3)
	if n, err := unix.Write(fd, big); n != len(big) || err != nil {
		t.Errorf("write of %d: %d, %v", len(big), n, err)
	}
	back := make([]byte, MaxTransfer)
	if n, err := unix.Read(fd, back); n != len(big) || err != nil || !bytes.Equal(back[:n], big) {
		t.Errorf("read of %d: %d, %v", len(big), n, err)
	}
	unix.Close(fd)
	waitFor(t, do, "the device is closed", func() bool { return b.closed == 1 })
}

func TestIoctl(t *testing.T) {
	b := &box{}
	dir, _ := mounted(t, &folder{[]Entry{{"box", b}}})
	fd := open(t, filepath.Join(dir, "box"), 0)
	value, err := unix.IoctlGetUint32(fd, double)
	if err != nil || value != 0 {
		t.Errorf("%v, %v", value, err)
	}
	argument := uint32(0x01020304)
	if errno := ioctl(fd, double, &argument); errno != 0 || argument != 0x02040608 {
		t.Errorf("%#x, %v", argument, errno)
	}
	if errno := ioctl(fd, doubleRefused, &argument); errno != unix.EINVAL || argument != 0x07070707 {
		t.Errorf("refused: %#x, %v", argument, errno)
	}
	if errno := ioctl(fd, plain, nil); errno != 0 {
		t.Errorf("without argument: %v", errno)
	}
	if errno := ioctl(fd, plain+1, nil); errno != unix.ENOTTY {
		t.Errorf("unknown: %v", errno)
	}
}

// Poll waits, and is woken by what becomes readable. An open file is not always
// ready, as it would be without poll in the file system.
func TestPoll(t *testing.T) {
	b := &box{}
	dir, _ := mounted(t, &folder{[]Entry{{"box", b}}})
	fd, other := open(t, filepath.Join(dir, "box"), unix.O_NONBLOCK), open(t, filepath.Join(dir, "box"), 0)
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(fds, 20); n != 0 || err != nil {
		t.Fatalf("ready with nothing to read: %d, %v", n, err)
	}
	for range 100 {
		go func() {
			time.Sleep(time.Millisecond)
			unix.Write(other, []byte("x"))
		}()
		if n, err := unix.Poll(fds, 10_000); n != 1 || err != nil || fds[0].Revents != unix.POLLIN {
			t.Fatalf("%d, %v, events %#x", n, err, fds[0].Revents)
		}
		var one [1]byte
		if n, err := unix.Read(fd, one[:]); n != 1 || err != nil {
			t.Fatalf("read: %d, %v", n, err)
		}
	}
}

// What a reader that a signal took away waited for is there for the next.
func TestInterruptedRead(t *testing.T) {
	b := &box{}
	dir, do := mounted(t, &folder{[]Entry{{"box", b}}})
	path := filepath.Join(dir, "box")
	fd := open(t, path, 0)
	got := make(chan int, 1)
	go func() { // a wait that ends by itself
		var raw [8]byte
		n, _ := unix.Read(fd, raw[:])
		got <- n
	}()
	waitFor(t, do, "a reader waits", func() bool { return len(b.readers) == 1 })
	unix.Write(fd, []byte("abcd"))
	if n := <-got; n != 4 {
		t.Errorf("read %d bytes", n)
	}
	killed := exec.Command("cat", path)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, do, "cat waits", func() bool { return len(b.readers) == 1 })
	killed.Process.Kill()
	killed.Wait()
	waitFor(t, do, "cat is gone", func() bool { return b.readers[0].Abandoned() && b.closed == 1 })
	unix.Write(fd, []byte("ef"))
	var raw [8]byte
	if n, err := unix.Read(fd, raw[:]); n != 2 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
}

// An opening can wait, as the second opener of issm does.
func TestOpenWaits(t *testing.T) {
	b := &box{held: true}
	dir, do := mounted(t, &folder{[]Entry{{"box", b}}})
	path := filepath.Join(dir, "box")
	if _, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK, 0); err != unix.EAGAIN {
		t.Errorf("without waiting: %v", err)
	}
	waiting := exec.Command("sh", "-c", "exec 3<>"+path)
	if err := waiting.Start(); err != nil { // on this thread, which alone sees the mount
		t.Fatal(err)
	}
	waitFor(t, do, "somebody waits", func() bool { return len(b.opening) == 1 })
	do(func() { b.opening[0].Reply(b, 0) })
	if err := waiting.Wait(); err != nil {
		t.Error(err)
	}
	killed := exec.Command("sh", "-c", "exec 3<>"+path)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, do, "another waits", func() bool { return len(b.opening) == 2 })
	killed.Process.Kill()
	killed.Wait()
	waitFor(t, do, "the other has given up", func() bool { return b.opening[1].Abandoned() })
	do(func() {
		if b.opening[1].Reply(b, 0) {
			t.Error("an opening that was given up was answered")
		}
	})
}

// When the server dies the files fail, and nobody hangs.
func TestServerGone(t *testing.T) {
	runtime.LockOSThread()
	if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
		need.Need(t, fmt.Errorf("no FUSE mounts here: %w", err))
	}
	dir := t.TempDir()
	f, err := Mount(dir, "ibwarden")
	if err != nil {
		need.Need(t, fmt.Errorf("no FUSE mounts here: %w", err))
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	b := &box{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var mutex sync.Mutex
	do := func(f func()) { mutex.Lock(); defer mutex.Unlock(); f() }
	go func() { ended <- Serve(ctx, f, Config{Root: &folder{[]Entry{{"box", b}}}, Do: do}) }()
	fd := open(t, filepath.Join(dir, "box"), 0)
	got := make(chan error, 1)
	go func() {
		var raw [8]byte
		_, err := unix.Read(fd, raw[:])
		got <- err
	}()
	waitFor(t, do, "a reader waits", func() bool { return len(b.readers) == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Serve: %v", err)
	}
	if err := <-got; err == nil {
		t.Error("the reader got something from nobody")
	}
	if b.closed != 1 {
		t.Errorf("closed %d times", b.closed)
	}
}

func waitFor(t *testing.T, do func(func()), what string, done func() bool) {
	t.Helper()
	need.Eventually(t, need.Patience, what, func() (is bool) {
		do(func() { is = done() })
		return is
	})
}

// Whatever comes for a request, it is refused or answered.
func FuzzRequest(f *testing.F) {
	f.Add(append(slices.Clone(make([]byte, 40)), 1, 2, 3))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) >= 4 {
			native.PutUint32(raw, uint32(len(raw)))
		}
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		b := &box{}
		c := &connection{
			file: null, config: Config{Do: func(f func()) { f() }},
			ids: map[Node]uint64{}, nodes: map[uint64]Node{},
			handles: map[uint64]*handle{1: {Handle: b}}, texts: map[uint64][]byte{2: []byte("text")}, waiting: map[uint64]*waiting{},
		}
		c.id(&folder{[]Entry{{"box", b}, {"text", &note{"x"}}}})
		r, ok := parseRequest(raw)
		if !ok {
			return
		}
		c.serve(&r)
		c.closeAll()
		if len(c.waiting) != 0 || len(c.handles) != 0 {
			t.Errorf("%d waiting, %d open", len(c.waiting), len(c.handles))
		}
	})
}
