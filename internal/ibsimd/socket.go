package ibsimd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// endpoint is a socket address as the kernel writes it, octet by octet: what a
// datagram came from can be compared and answered whatever its form. (A name in
// the abstract namespace may or may not have a closing zero that counts.)
type endpoint struct {
	octets [unix.SizeofSockaddrAny]byte
	size   uint32
}

// namespace says how the sockets of a simulator are called.
type namespace struct {
	base string // of local names
	// remote is the control socket's address when it serves UDP; the data
	// sockets have the ports that follow.
	remote netip.AddrPort
	udp    bool
}

// DefaultSocket is the base of the socket names when none is given.
const DefaultSocket = "sim"

// maxBase is what a base may have of the 107 octets of a name: the longest
// ending has some 15.
const maxBase = 80

// newNamespace checks names: a base for local sockets, or an address and port.
func newNamespace(base, udp string) (namespace, error) {
	if udp != "" {
		at, err := netip.ParseAddrPort(udp)
		if err != nil || !at.Addr().Is4() {
			return namespace{}, fmt.Errorf("UDP address %q: want an IPv4 address and a port, as 127.0.0.1:7070", udp)
		}
		if last := int(at.Port()) + maxClients; at.Port() == 0 || last > 0xFFFF {
			return namespace{}, fmt.Errorf("UDP port %d: want 1 to %d, since the %d that follow are used too", at.Port(), 0xFFFF-maxClients, maxClients)
		}
		return namespace{remote: at, udp: true}, nil
	}
	if base == "" {
		base = DefaultSocket
	}
	if len(base) > maxBase {
		return namespace{}, fmt.Errorf("socket name of %d octets: want at most %d", len(base), maxBase)
	}
	return namespace{base: base}, nil
}

func (n namespace) control() endpoint { return n.at("ctl", 0) }

// out is the data socket of client i.
func (n namespace) out(i int) endpoint { return n.at("out"+strconv.Itoa(i), 1+uint16(i)) }

func (n namespace) at(name string, port uint16) endpoint {
	if n.udp {
		return internet(n.remote.Addr(), n.remote.Port()+port)
	}
	return abstract(n.base + ":" + name)
}

// in is the data socket of a client that sent a connect request from its
// control socket with this number in it.
func (n namespace) in(from *endpoint, id uint32) endpoint {
	if n.udp {
		return internet(netip.AddrFrom4([4]byte(from.octets[4:8])), uint16(id))
	}
	return abstract(n.base + ":in" + strconv.FormatUint(uint64(id), 10))
}

// abstract is a name in the abstract namespace as ibsim writes it: with a
// closing zero that counts.
func abstract(name string) (e endpoint) {
	binary.NativeEndian.PutUint16(e.octets[0:], unix.AF_UNIX)
	e.size = uint32(3 + copy(e.octets[3:], name) + 1)
	return e
}

func internet(a netip.Addr, port uint16) (e endpoint) {
	binary.NativeEndian.PutUint16(e.octets[0:], unix.AF_INET)
	binary.BigEndian.PutUint16(e.octets[2:], port)
	ip := a.As4()
	copy(e.octets[4:], ip[:])
	e.size = unix.SizeofSockaddrInet4
	return e
}

// socketBuffer is asked for in octets; the kernel may give less.
const socketBuffer = 4 << 20

// listen makes a datagram socket of this address.
func listen(at endpoint) (fd int, err error) {
	family := int(binary.NativeEndian.Uint16(at.octets[0:]))
	fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	for _, option := range []int{unix.SO_SNDBUF, unix.SO_RCVBUF} {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, socketBuffer)
	}
	if err := addressCall(unix.SYS_BIND, fd, &at); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// connect makes a socket exchange datagrams with one other only.
func connect(fd int, to endpoint) error { return addressCall(unix.SYS_CONNECT, fd, &to) }

// answers reports whether a socket is there. It may be one that takes
// datagrams from somebody else only.
func answers(to endpoint) bool {
	fd, err := unix.Socket(int(binary.NativeEndian.Uint16(to.octets[0:])), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true // cannot tell
	}
	defer unix.Close(fd)
	return !errors.Is(connect(fd, to), unix.ECONNREFUSED)
}

func addressCall(call uintptr, fd int, at *endpoint) error {
	_, _, errno := unix.Syscall(call, uintptr(fd), uintptr(unsafe.Pointer(&at.octets)), uintptr(at.size))
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

// receiver takes several datagrams at once. Datagrams longer than its slots
// show with one octet more than they should have.
type receiver struct {
	slot     int
	buffer   []byte
	messages []message
	iovecs   []unix.Iovec
	senders  []endpoint // empty unless they are noted
}

func newReceiver(count, size int, noteSenders bool) *receiver {
	r := &receiver{
		slot: size + 1, buffer: make([]byte, count*(size+1)),
		messages: make([]message, count), iovecs: make([]unix.Iovec, count),
	}
	if noteSenders {
		r.senders = make([]endpoint, count)
	}
	for i := range r.messages {
		r.messages[i].set(&r.iovecs[i], &r.buffer[i*r.slot], r.slot)
	}
	return r
}

// receiveOne takes a datagram, if there is one; without its sender.
func (r *receiver) receiveOne(fd int) (count int, err error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&r.buffer[0])), uintptr(r.slot))
		switch errno {
		case 0:
			r.messages[0].size = uint32(n)
			return 1, nil
		case unix.EINTR:
		default:
			return 0, passing(errno)
		}
	}
}

// receive takes what has arrived, at most as many datagrams as it has slots.
func (r *receiver) receive(fd int) (count int, err error) {
	for i := range r.senders {
		r.senders[i] = endpoint{}
		h := &r.messages[i].header
		h.Name, h.Namelen = &r.senders[i].octets[0], uint32(len(r.senders[i].octets))
	}
	count, err = batchCall(unix.SYS_RECVMMSG, fd, r.messages)
	for i := range min(count, len(r.senders)) {
		r.senders[i].size = r.messages[i].header.Namelen
	}
	return count, err
}

// datagram is the i-th that was received; it is good until the next receive.
func (r *receiver) datagram(i int) []byte {
	at := i * r.slot
	return r.buffer[at : at+min(int(r.messages[i].size), r.slot)]
}

// sendTo sends one datagram, if that can be done at once.
func sendTo(fd int, data []byte, to *endpoint) {
	var iovec unix.Iovec
	messages := make([]message, 1)
	messages[0].set(&iovec, &data[0], len(data))
	messages[0].header.Name, messages[0].header.Namelen = &to.octets[0], to.size
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
		_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
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

// forever is a wait that only a packet ends. To the kernel it is less work than
// one that ends.
const forever = time.Duration(math.MaxInt64)

// poll waits until there is something to read or write, at most so long. It can
// do so without a word to the scheduler of goroutines, whose measures for a
// thread that sleeps cost more than a packet; the scheduler interrupts a wait of
// that kind when it needs the thread, and after 10 ms in any case.
func poll(fds []unix.PollFd, wait time.Duration, aside bool) error {
	var limit *unix.Timespec
	if wait != forever {
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
