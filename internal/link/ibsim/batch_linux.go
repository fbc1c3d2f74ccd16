package ibsim

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// supported is nil: Linux has the sockets and the system calls.
func supported() error { return nil }

// yield lets another thread run first; as for call, the scheduler is not told.
func yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// message is Linux's struct mmsghdr.
type message struct {
	header unix.Msghdr
	bytes  uint32
	_      [4]byte
}

// batch is room for packets that one system call moves. It does not move itself:
// messages point into it.
type batch struct {
	packets  [batchSize][packetSize + 1]byte // one byte more tells a packet that is too long
	vectors  [batchSize]unix.Iovec
	messages [batchSize]message
}

func newBatch() *batch {
	b := &batch{}
	for i := range b.messages {
		b.vectors[i].Base = &b.packets[i][0]
		b.messages[i].header.Iov = &b.vectors[i]
		b.messages[i].header.Iovlen = 1
	}
	return b
}

// receive takes in what has arrived, without waiting.
func (b *batch) receive(fd uintptr) (n int, err error) {
	for i := range b.vectors {
		b.vectors[i].SetLen(packetSize + 1)
	}
	return b.call(unix.SYS_RECVMMSG, fd, batchSize)
}

// send sends the first n packets, without waiting, and returns how many left.
func (b *batch) send(fd uintptr, n int) (sent int, err error) {
	for i := range b.vectors[:n] {
		b.vectors[i].SetLen(packetSize)
	}
	return b.call(unix.SYS_SENDMMSG, fd, n)
}

// call makes a system call that never waits. The scheduler is not told: a program that is
// woken by a packet runs at once in place of this thread, and the scheduler, which takes
// that for a wait, would give the processor to another thread of ours.
func (b *batch) call(number, fd uintptr, n int) (int, error) {
	for {
		done, _, errno := unix.RawSyscall6(number, fd, uintptr(unsafe.Pointer(&b.messages[0])), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
		runtime.KeepAlive(b)
		switch errno {
		case 0:
			return int(done), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
