package ibsim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Environment says where the simulator is and where to attach.
type Environment struct {
	// SockName is the base of the local socket names (IBSIM_SOCKNAME).
	SockName string
	// ServerName and ServerPort name a remote simulator (IBSIM_SERVER_NAME,
	// IBSIM_SERVER_PORT); an empty name means a local one.
	ServerName string
	ServerPort string
	// Host is the node to attach to (SIM_HOST); empty for the simulator's
	// default, the first node of its file.
	Host string
}

// The defaults of libumad2sim.
const (
	defaultSockName   = "sim"
	defaultServerPort = "7070"
	// answerWait bounds the wait for the answer to a control request: the
	// simulator serves one request at a time, behind the packets.
	answerWait = 10 * time.Second
	// socketBuffer is asked for in bytes; the kernel may give less.
	socketBuffer = 1 << 20
)

// EnvironmentFrom reads the variables through lookup, usually os.Getenv.
func EnvironmentFrom(lookup func(string) string) Environment {
	e := Environment{
		SockName: lookup("IBSIM_SOCKNAME"), ServerName: lookup("IBSIM_SERVER_NAME"),
		ServerPort: lookup("IBSIM_SERVER_PORT"), Host: lookup("SIM_HOST"),
	}
	if e.SockName == "" {
		e.SockName = defaultSockName
	}
	if e.ServerPort == "" {
		e.ServerPort = defaultServerPort
	}
	return e
}

// ErrNoServer says that no ibsim listens at the place that was named.
var ErrNoServer = errors.New("no ibsim is running there")

// Dial attaches to a simulator. On a system other than Linux it is an error that
// says so.
func Dial(e Environment) (*Link, error) {
	l := &Link{origin: time.Now()}
	err := supported()
	if err == nil {
		err = l.open(e)
	}
	if err == nil {
		err = l.connect(e)
	}
	if err != nil {
		l.closeSockets()
		if errors.Is(err, syscall.ECONNREFUSED) {
			err = ErrNoServer
		}
		return nil, fmt.Errorf("ibsim %s: %w", e.place(), err)
	}
	return l, nil
}

func (e Environment) place() string {
	if e.ServerName != "" {
		return net.JoinHostPort(e.ServerName, e.ServerPort)
	}
	return fmt.Sprintf("%q", e.SockName)
}

// abstract is a name in the abstract namespace as ibsim writes it: with a
// closing zero byte that counts.
func abstract(base, rest string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: "@" + base + ":" + rest + "\x00"}
}

// open makes the control socket, connected, and the data socket, not yet.
func (l *Link) open(e Environment) error {
	if e.ServerName != "" {
		return l.openRemote(e)
	}
	// The simulator finds the data socket by a number in its name: any that
	// no other client of this simulator uses. The process number is what
	// libumad2sim takes; several links of one process count on from it.
	for try := range maxLinks {
		l.id = uint32(os.Getpid() + try*pidStride)
		suffix := strconv.FormatUint(uint64(l.id), 10)
		data, err := net.ListenUnixgram("unixgram", abstract(e.SockName, "in"+suffix))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return err
		}
		l.data = data
		control, err := net.DialUnix("unixgram", abstract(e.SockName, "ctl"+suffix), abstract(e.SockName, "ctl"))
		if err != nil {
			return err
		}
		l.control = control
		return nil
	}
	return fmt.Errorf("all %d client names of this process are in use", maxLinks)
}

const (
	maxLinks = 10 // clients that an ibsim serves
	// pidStride keeps the names of one process's links apart from those of
	// other processes: process numbers stay below 2^22.
	pidStride = 1 << 22
)

func (l *Link) openRemote(e Environment) error {
	server, err := net.ResolveUDPAddr("udp4", net.JoinHostPort(e.ServerName, e.ServerPort))
	if err != nil {
		return err
	}
	data, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return err
	}
	l.data = data
	l.id = uint32(data.LocalAddr().(*net.UDPAddr).Port)
	l.server = server
	control, err := net.DialUDP("udp4", nil, server)
	if err != nil {
		return err
	}
	l.control = control
	return nil
}

// connect asks for a place and joins the data socket to the simulator's.
func (l *Link) connect(e Environment) error {
	payload, err := connectPayload(l.id, e.Host)
	if err != nil {
		return err
	}
	answer, err := l.ask(control{kind: controlConnect, payload: payload})
	if err != nil {
		if errors.Is(err, errRefused) {
			return fmt.Errorf("no place at node %q: it does not exist, all %d places are taken, or the simulator is another user's (ibwarden sim --any-user)", e.Host, maxLinks)
		}
		return err
	}
	l.client, l.node = connected(answer.payload)
	out := abstract(e.SockName, fmt.Sprintf("out%d", l.client))
	raw, err := l.data.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	var connectErr error
	if err := raw.Control(func(fd uintptr) {
		// A connected socket is what lets more than ten packets be under way.
		connectErr = syscall.Connect(int(fd), l.peer(out))
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, socketBuffer)
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, socketBuffer)
	}); err != nil {
		return err
	}
	return connectErr
}

func (l *Link) peer(local *net.UnixAddr) syscall.Sockaddr {
	if l.server == nil {
		return &syscall.SockaddrUnix{Name: local.Name}
	}
	sa := &syscall.SockaddrInet4{Port: l.server.Port + 1 + int(l.client)}
	copy(sa.Addr[:], l.server.IP.To4())
	return sa
}

var errRefused = errors.New("the simulator refused")

// ask sends one control request and waits for its answer.
func (l *Link) ask(c control) (control, error) {
	c.client = l.client
	if err := l.control.SetDeadline(time.Now().Add(answerWait)); err != nil {
		return control{}, err
	}
	if _, err := l.control.Write(c.encode()); err != nil {
		return control{}, err
	}
	buf := make([]byte, controlSize+1)
	n, err := l.control.Read(buf)
	if err != nil {
		return control{}, err
	}
	answer, err := decodeControl(buf[:n])
	if err == nil && answer.kind == controlError {
		err = errRefused
	}
	return answer, err
}
