package inside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/app/withkeys"
	"github.com/ibwarden/ibwarden/internal/simserve/fuse"
	"github.com/ibwarden/ibwarden/internal/simserve/umadfs"
)

// settleTime is how long a namespace may take to be there.
const settleTime = 10 * time.Second

// handFD is the descriptor by which Inside hands over the connections of its mounts.
const handFD = 3

// Program is what Run runs.
type Program struct {
	// Words are the program and its arguments.
	Words []string
	// Inside are the words by which this program, /proc/self/exe, calls Inside with Words.
	Inside []string
	// Port is where its packets go, of the machine whose /sys and /dev are below Root.
	Port umad.Port
	Root string
	Gate *withkeys.Gate
	// Streams of the program.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Hide keeps the memory of this process from other programs of its user, and out of core
// files. It is called before a key is read.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping the memory of this process from others: %w", err)
	}
	return nil
}

// Run runs a program to its end and returns its exit status, 128 and the number where a
// signal ended it. Signals to this process that ask it to end go to the program.
func Run(ctx context.Context, p Program) (status int, err error) {
	ours, theirs, err := pair()
	if err != nil {
		return 0, err
	}
	defer ours.Close()
	self, err := os.Executable()
	if err != nil {
		theirs.Close()
		return 0, err
	}
	c := exec.Command(self, append(append([]string{}, p.Inside...), p.Words...)...)
	c.Stdin, c.Stdout, c.Stderr = p.Stdin, p.Stdout, p.Stderr
	c.ExtraFiles = []*os.File{theirs}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	defer signal.Stop(signals)
	err = c.Start()
	theirs.Close()
	if err != nil {
		return 0, err
	}
	served, stop, err := p.serve(ctx, ours)
	if err != nil {
		_ = c.Process.Kill()
		_ = c.Wait() // it has said why on its own standard error, where it did
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for {
		select {
		case s := <-signals:
			if s != unix.SIGINT && s != unix.SIGQUIT { // a terminal sends those to both
				_ = c.Process.Signal(s) // it may have ended
			}
			continue
		case err = <-ended:
		}
		break
	}
	stop()
	served.Wait()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return 0, err
	}
	if ws, is := c.ProcessState.Sys().(syscall.WaitStatus); is && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return c.ProcessState.ExitCode(), nil
}

// serve takes the mounts of the program's namespace and serves them until stop.
func (p *Program) serve(ctx context.Context, ours *net.UnixConn) (*sync.WaitGroup, func(), error) {
	connections, err := receive(ours)
	if err != nil {
		return nil, nil, err
	}
	mu := new(sync.Mutex)
	open := func() (umad.File, error) { return umad.OpenFile(p.Root, p.Port.MAD) }
	directories := roots(p.Root, &p.Port, umadfs.NewDevice(opener(open, p.Gate, mu)))
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := new(sync.WaitGroup)
	do := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		f()
	}
	for i, f := range connections {
		served.Go(func() {
			_ = fuse.Serve(ctx, f, fuse.Config{Root: directories[i], Do: do}) // the namespace is gone, however
		})
	}
	if _, err := ours.Write([]byte{1}); err != nil {
		stop()
		return nil, nil, err
	}
	return served, stop, nil
}

// pair is a pair of sockets; the second is for the program.
func pair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")
	defer ours.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return c.(*net.UnixConn), theirs, nil
}

// errNotMounted says that the namespace was not made; why, it has said itself.
var errNotMounted = errors.New("the program has no /dev/infiniband of its own")

// receive takes the connections that Inside hands over.
func receive(c *net.UnixConn) (connections []*os.File, err error) {
	if err := c.SetDeadline(time.Now().Add(settleTime)); err != nil {
		return nil, err
	}
	buffer, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(len(umadfs.Mounts)*4))
	_, n, _, _, err := c.ReadMsgUnix(buffer, rights)
	if err != nil {
		return nil, errNotMounted
	}
	connections, err = umadfs.Connections(rights[:n])
	if err != nil || len(connections) != len(umadfs.Mounts) {
		for _, f := range connections {
			f.Close()
		}
		return nil, errors.Join(errNotMounted, err)
	}
	return connections, nil
}

// Inside becomes the program in a mount namespace of its own, of which it hands the
// connections to Run, in another process. It returns only when that fails.
func Inside(words []string) error {
	path, err := exec.LookPath(words[0])
	if err != nil {
		return err
	}
	hand := os.NewFile(handFD, "socket")
	c, err := net.FileConn(hand)
	if err != nil {
		return fmt.Errorf("this is for ibwarden keys exec alone: %w", err)
	}
	hand.Close()
	to, is := c.(*net.UnixConn)
	if !is {
		return errors.New("this is for ibwarden keys exec alone")
	}
	runtime.LockOSThread() // for good: the namespace and the rights are this thread's
	connections, err := umadfs.Enter("ibwarden:exec")
	if err != nil {
		return err
	}
	var fds []int
	for _, f := range connections {
		fds = append(fds, int(f.Fd()))
	}
	if _, _, err := to.WriteMsgUnix([]byte{1}, unix.UnixRights(fds...), nil); err != nil {
		return err
	}
	for _, f := range connections {
		f.Close() // so that Run alone holds the devices
	}
	if n, err := to.Read(make([]byte, 1)); n != 1 {
		return fmt.Errorf("the devices are not served: %w", err)
	}
	to.Close()
	if err := giveUpTracing(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, words, os.Environ()))
}

// giveUpTracing takes the right to trace other processes from this thread and all that it
// becomes: with it root reads the memory of any process.
func giveUpTracing() error {
	if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up the right to trace: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return fmt.Errorf("giving up the right to trace: %w", err)
	}
	for _, set := range []*uint32{&caps[0].Effective, &caps[0].Permitted, &caps[0].Inheritable} {
		*set &^= 1 << unix.CAP_SYS_PTRACE
	}
	if err := unix.Capset(&header, &caps[0]); err != nil {
		return fmt.Errorf("giving up the right to trace: %w", err)
	}
	return nil
}
