package ibsimd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// DgramAddress is a socket address as the kernel writes it, byte by byte: what a
// datagram came from can be compared and answered whatever its form. (A name in
// the abstract namespace may or may not have a closing zero that counts.)
type DgramAddress struct {
	bytes [unix.SizeofSockaddrAny]byte
	size  uint32
}

// IsNamed reports whether there is anything to answer to.
func (a *DgramAddress) IsNamed() bool { return a.size > 2 }

// IPv4 is the address's, which must be one of Internet.
func (a *DgramAddress) IPv4() netip.Addr { return netip.AddrFrom4([4]byte(a.bytes[4:8])) }

// Abstract is a name in the abstract namespace as ibsim writes it: with a
// closing zero that counts.
func Abstract(name string) (e DgramAddress) {
	binary.NativeEndian.PutUint16(e.bytes[0:], unix.AF_UNIX)
	e.size = uint32(3 + copy(e.bytes[3:], name) + 1)
	return e
}

// Internet is an IPv4 address and a UDP port.
func Internet(a netip.Addr, port uint16) (e DgramAddress) {
	binary.NativeEndian.PutUint16(e.bytes[0:], unix.AF_INET)
	binary.BigEndian.PutUint16(e.bytes[2:], port)
	ip := a.As4()
	copy(e.bytes[4:], ip[:])
	e.size = unix.SizeofSockaddrInet4
	return e
}

// ListenDgram makes a datagram socket of this address.
func ListenDgram(at DgramAddress) (fd int, err error) {
	family := int(binary.NativeEndian.Uint16(at.bytes[0:]))
	fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	wait := unix.NsecToTimeval(int64(AwaitTime))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("SO_RCVTIMEO: %w", err) // Await would never end
	}
	for _, option := range []int{unix.SO_SNDBUF, unix.SO_RCVBUF} {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, DgramBuffer)
	}
	if err := addressCall(unix.SYS_BIND, fd, &at); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// EventCounter makes a descriptor that Poll waits for as for a socket: a write adds
// to a count, and it can be read while the count is not zero.
func EventCounter() (fd int, err error) {
	if fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return -1, fmt.Errorf("eventfd: %w", err)
	}
	return fd, nil
}

// Unread is how many bytes of a socket's buffer are taken by what was sent and
// nobody has read.
func Unread(fd int) (bytes int, err error) { return unix.IoctlGetInt(fd, unix.SIOCOUTQ) }

// NoteUsers has the kernel add to every datagram of a local socket which user sent it; see
// Receiver.User.
func NoteUsers(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return fmt.Errorf("SO_PASSCRED: %w", err)
	}
	return nil
}

// ConnectDgram makes a socket exchange datagrams with one other only.
func ConnectDgram(fd int, to DgramAddress) error { return addressCall(unix.SYS_CONNECT, fd, &to) }

// DgramAnswers reports whether a socket is there. It may be one that accepts datagrams only
// from another peer.
func DgramAnswers(to DgramAddress) bool {
	fd, err := unix.Socket(int(binary.NativeEndian.Uint16(to.bytes[0:])), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true // cannot tell
	}
	defer unix.Close(fd)
	return !errors.Is(ConnectDgram(fd, to), unix.ECONNREFUSED)
}

func addressCall(call uintptr, fd int, at *DgramAddress) error {
	_, _, errno := unix.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(&at.bytes)), uintptr(at.size))
	if errno != 0 {
		return errno
	}
	return nil
}

// message is one entry of recvmmsg and sendmmsg.
type message struct {
	header unix.Msghdr
	size   uint32 // of the datagram that was received
}

func (m *message) set(iovec *unix.Iovec, data *byte, size int) {
	iovec.Base = data
	iovec.SetLen(size)
	m.header.Iov = iovec
	m.header.SetIovlen(1)
}

// DgramReceiver takes several datagrams at once. Datagrams longer than its slots
// show with one byte more than they should have.
type DgramReceiver struct {
	slot     int
	buffer   []byte
	messages []message
	iovecs   []unix.Iovec
	Senders  []DgramAddress // empty unless they are noted
	users    []byte         // what the kernel adds to each, userSize bytes; empty as Senders
}

// NewReceiver makes one for count datagrams of at most size bytes, with or
// without a note of who sent them.
func NewReceiver(count, size int, noteSenders bool) *DgramReceiver {
	r := &DgramReceiver{
		slot: size + 1, buffer: make([]byte, count*(size+1)),
		messages: make([]message, count), iovecs: make([]unix.Iovec, count),
	}
	if noteSenders {
		r.Senders, r.users = make([]DgramAddress, count), make([]byte, count*userSize)
	}
	for i := range r.messages {
		r.messages[i].set(&r.iovecs[i], &r.buffer[i*r.slot], r.slot)
	}
	return r
}

// ReceiveOne takes a datagram, if there is one; without its sender.
func (r *DgramReceiver) ReceiveOne(fd int) (count int, err error) {
	for {
		count, err = r.receiveOne(fd, unix.MSG_DONTWAIT)
		if err != unix.EINTR {
			return count, passing(err)
		}
	}
}

// Await is ReceiveOne that waits a little: to the kernel that is less work than a
// PollDgram and a ReceiveOne after it. The scheduler of goroutines does not know of it;
// see Poll. Its interrupts end the wait with EINTR.
func (r *DgramReceiver) Await(fd int) (count int, err error) {
	count, err = r.receiveOne(fd, 0)
	return count, passing(err)
}

func (r *DgramReceiver) receiveOne(fd, flags int) (count int, err error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&r.buffer[0])), uintptr(r.slot), uintptr(flags), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	r.messages[0].size = uint32(n)
	return 1, nil
}

// Receive takes what has arrived, at most as many datagrams as it has slots.
func (r *DgramReceiver) Receive(fd int) (count int, err error) {
	for i := range r.Senders {
		r.Senders[i] = DgramAddress{}
		h := &r.messages[i].header
		h.Name, h.Namelen = &r.Senders[i].bytes[0], uint32(len(r.Senders[i].bytes))
		h.Control = &r.users[i*userSize]
		h.SetControllen(userSize)
	}
	count, err = batchCall(unix.SYS_RECVMMSG, fd, r.messages)
	for i := range min(count, len(r.Senders)) {
		r.Senders[i].size = r.messages[i].header.Namelen
	}
	return count, err
}

// Datagram is the i-th that was received; it is good until the next receive.
func (r *DgramReceiver) Datagram(i int) []byte {
	at := i * r.slot
	return r.buffer[at : at+min(int(r.messages[i].size), r.slot)]
}

// userSize is what the kernel's word of a sender takes. File descriptors that a sender adds
// find no room behind it, and are not installed.
var userSize = unix.CmsgSpace(unix.SizeofUcred)

// User is the user ID of who sent the i-th that was received, by the kernel's word; known is
// false where it says nothing, as of UDP and of sockets without NoteUsers.
func (r *DgramReceiver) User(i int) (uid int, known bool) {
	if len(r.users) == 0 {
		return 0, false
	}
	size := min(int(r.messages[i].header.Controllen), userSize)
	messages, err := unix.ParseSocketControlMessage(r.users[i*userSize:][:size])
	if err != nil || len(messages) == 0 {
		return 0, false
	}
	who, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil {
		return 0, false
	}
	return int(who.Uid), true
}

// SendTo sends one datagram, if that can be done at once.
func SendTo(fd int, data []byte, to *DgramAddress) {
	var iovec unix.Iovec
	messages := make([]message, 1)
	messages[0].set(&iovec, &data[0], len(data))
	messages[0].header.Name, messages[0].header.Namelen = &to.bytes[0], to.size
	_, _ = batchCall(unix.SYS_SENDMMSG, fd, messages)
}

// batchCall receives or sends without waiting. It reports how many messages
// were moved; that none could be is no error.
func batchCall(call uintptr, fd int, messages []message) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(&messages[0])),
			uintptr(len(messages)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, passing(errno)
		}
	}
}

// write sends one datagram without waiting.
func write(fd int, b []byte) error {
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

// passing is nil for an error that only means that it cannot be done now.
func passing(err error) error {
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS) {
		return nil
	}
	return err
}

// PollDgram waits until there is something to read or write, at most so long. It can
// do so without a word to the scheduler of goroutines, whose measures for a
// thread that sleeps cost more than a packet; the scheduler interrupts a wait of
// that kind when it needs the thread, and after 10 ms in any case.
func PollDgram(fds []unix.PollFd, wait time.Duration, aside bool) error {
	var limit *unix.Timespec
	if wait != Forever {
		timespec := unix.NsecToTimespec(int64(wait))
		limit = &timespec
	}
	call := unix.Syscall6
	if aside {
		call = unix.RawSyscall6
	}
	_, _, errno := call(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)),
		uintptr(unsafe.Pointer(limit)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// DgramSender sends several datagrams at once.
type DgramSender struct {
	messages []message
	iovecs   []unix.Iovec
}

// NewSender makes one for as many datagrams at most.
func NewSender(count int) *DgramSender {
	return &DgramSender{messages: make([]message, count), iovecs: make([]unix.Iovec, count)}
}

// Send sends n datagrams, which at gives, to whom the socket is connected to. It
// does not wait, and reports how many could be sent; fewer are no error.
func (s *DgramSender) Send(fd, n int, at func(i int) []byte) (sent int, err error) {
	if n == 1 { // the usual case, for which there is a cheaper call
		if err := write(fd, at(0)); err != nil {
			return 0, passing(err)
		}
		return 1, nil
	}
	for i := range n {
		b := at(i)
		s.messages[i].set(&s.iovecs[i], &b[0], len(b))
	}
	return batchCall(unix.SYS_SENDMMSG, fd, s.messages[:n])
}
