package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/simserve/qib"
)

const (
	qemuProgram = "qemu-system-x86_64"
	qemuPackage = "qemu-system-x86"
	// DefaultMemory is that of a machine, in MB. The kernel needs some 110 to boot, and a second interface of IPoIB 192.
	DefaultMemory = 128
	// codeCache is what QEMU keeps of translated code, in MB.
	codeCache = 32
)

// commandLine is the kernel's, before the host name. Without no_timer_check a kernel can
// take a busy machine for one without a timer. What follows it saves a third of the
// processor time of a boot: checks, and defences against programs that spy on the processor.
const commandLine = "console=ttyS0 quiet loglevel=4 panic=-1 no_timer_check " +
	"mitigations=off nokaslr cryptomgr.notests nr_cpus=1 audit=0 random.trust_cpu=on ibwarden.host="

// Wire is what is at the other end of a machine's cable.
type Wire interface {
	// Send takes a packet that left the port, LRH to VCRC. It may keep it.
	Send(packet []byte)
	// SetLink says what the port offers from now on; the zero End when the machine ends.
	SetLink(end qib.End)
}

// Options are what Start makes a machine of.
type Options struct {
	Name    string      // its host name, and what its node description says
	GUID    ib.NodeGUID // of its node and port; qib.Settings says which are possible
	Memory  int         // in MB; 0 for DefaultMemory
	Image   Image       // from MakeImage
	Wire    Wire        // nil: there is no cable
	Console io.Writer   // takes what the console prints; nil for nothing
	End     qib.End     // widths and speeds of the port; zero for those of the adapter
	// Files are more files that it boots with, below /: their content by their path. They take memory.
	Files map[string][]byte
	Lie   Lie
}

// Machine is one that runs.
type Machine struct {
	proxy   *proxy
	agent   *agent
	console *net.UnixConn
	cmd     *exec.Cmd
	done    chan struct{}
	err     error // why it ended, when it did
	stop    sync.Once
	stopped bool
	last    tail          // of what the console has printed
	silent  chan struct{} // the console has ended
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailSize is how much of it, in bytes, and lastLines how many lines are shown of it.
const (
	tailSize  = 4096
	lastLines = 8
)

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	l.text = l.text[max(0, len(l.text)-tailSize):]
	return len(b), nil
}

// consoleTime is how long the end of a machine waits for the end of its console, which may have gone to
// somebody who does not read it.
const consoleTime = time.Second

// unbooted is the error of a machine that has ended by itself before it had booted.
func (m *Machine) unbooted(o *Options) error {
	select {
	case <-m.agent.ready:
		return nil
	default:
	}
	select {
	case <-m.silent:
	case <-time.After(consoleTime):
	}
	m.last.mu.Lock()
	defer m.last.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(m.last.text)), "\n")
	said := lines[max(0, len(lines)-lastLines):]
	for i, line := range lines {
		if strings.Contains(line, "Kernel panic") { // where it was then is of no use
			said = lines[i : i+1]
		}
	}
	return fmt.Errorf("guest %s, with %d MB of memory, ended before it had booted; its console: %s", o.Name, o.Memory, strings.Join(said, "\n"))
}

// Missing is an error that names what this machine lacks to run guests, and what
// installs it; nil when there is QEMU.
func Missing() error {
	if _, err := exec.LookPath(qemuProgram); err != nil {
		return fmt.Errorf("%s is not installed: apt-get install --no-install-recommends %s", qemuProgram, qemuPackage)
	}
	return nil
}

// Start starts a machine. It ends with ctx, by Stop, when it powers itself off, and with
// this process.
func Start(ctx context.Context, o Options) (*Machine, error) {
	if err := Missing(); err != nil {
		return nil, err
	}
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	if strings.ContainsAny(o.Name, " \t\n\"") || o.Name == "" {
		return nil, fmt.Errorf("guest %q: want a host name", o.Name)
	}
	root, err := o.root()
	if err != nil {
		return nil, fmt.Errorf("guest %s: %w", o.Name, err)
	}
	defer root.Close()
	var ours [4]*net.UnixConn
	var theirs [4]*os.File
	for i := range ours {
		var err error
		if ours[i], theirs[i], err = pair(); err != nil {
			return nil, fmt.Errorf("guest %s: %w", o.Name, err)
		}
		defer theirs[i].Close()
	}
	m := &Machine{
		proxy:   newProxy(qib.Settings{GUID: o.GUID, Serial: o.Name[:min(len(o.Name), 12)], End: o.End}, ours[0]),
		agent:   newAgent(ours[2]),
		console: ours[1],
		done:    make(chan struct{}),
		silent:  make(chan struct{}),
	}
	var failed bytes.Buffer
	m.cmd = exec.Command(qemuProgram, arguments(o)...)
	m.cmd.ExtraFiles, m.cmd.Stdout, m.cmd.Stderr = append(theirs[:], root), &failed, &failed
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // no ^C of a terminal
	started := make(chan error)
	go m.run(&o, started, &failed)
	if err := <-started; err != nil {
		for _, c := range ours {
			c.Close()
		}
		return nil, fmt.Errorf("guest %s: %w", o.Name, err)
	}
	context.AfterFunc(ctx, m.Stop)
	go m.serve(o)
	go m.agent.read()
	go m.proxy.interrupts(ours[3], m.done)
	if o.Wire != nil {
		go m.proxy.carry(o.Wire, m.done)
	}
	go func() {
		<-m.done
		for _, c := range ours {
			c.Close()
		}
	}()
	return m, nil
}

// serve answers QEMU, and reads the console.
func (m *Machine) serve(o Options) {
	var console io.Writer = &m.last
	if o.Console != nil {
		console = io.MultiWriter(console, o.Console)
	}
	go func() {
		io.Copy(console, m.console)
		close(m.silent)
	}()
	if err := m.proxy.serve(); err != nil {
		m.fail(err)
	}
}

// run runs QEMU. The signal by which it ends with this process is sent at the end of the
// thread that started it, so this goroutine has one for itself.
func (m *Machine) run(o *Options, started chan<- error, failed *bytes.Buffer) {
	runtime.LockOSThread()
	err := m.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	if err = m.cmd.Wait(); err != nil {
		err = fmt.Errorf("guest %s: %s: %w: %s", o.Name, qemuProgram, err, bytes.TrimSpace(failed.Bytes()))
	} else {
		err = m.unbooted(o)
	}
	m.proxy.mu.Lock()
	if m.err == nil && !m.stopped {
		m.err = err
	}
	m.proxy.mu.Unlock()
	close(m.done)
}

// pair is a pair of connected sockets: one for this process, one for QEMU.
func pair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	f := os.NewFile(uintptr(fds[0]), "guest")
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		unix.Close(fds[1])
		return nil, nil, err
	}
	return conn.(*net.UnixConn), os.NewFile(uintptr(fds[1]), "guest"), nil
}

// root is a file with what the machine boots from: the image's, and with further files those behind
// it in memory.
func (o *Options) root() (*os.File, error) {
	image, err := os.Open(o.Image.Root)
	if err != nil || len(o.Files) == 0 {
		return image, err
	}
	defer image.Close()
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	root := os.NewFile(uintptr(fd), "guest")
	if _, err = io.Copy(root, image); err == nil {
		more := newArchive(root)
		for name, content := range o.Files {
			more.add(strings.TrimPrefix(name, "/"), modeFile|0o755, content)
		}
		err = more.close()
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("files to boot with: %w", err)
	}
	return root, nil
}

// arguments are QEMU's. Its descriptors are 3, the adapter's socket, those of the console, of the
// agent and of interrupts, and 7, what root is.
func arguments(o Options) []string {
	size := strconv.Itoa(o.Memory) + "M"
	return []string{
		"-machine", "q35,memory-backend=mem", "-accel", "tcg,tb-size=" + strconv.Itoa(codeCache),
		"-object", "memory-backend-memfd,id=mem,share=on,size=" + size, "-m", size, "-cpu", "max",
		"-nodefaults", "-no-user-config", "-vga", "none", "-display", "none", "-no-reboot", "-name", o.Name,
		"-device", "pcie-root-port,id=rp,chassis=1", "-device", "x-pci-proxy-dev,id=hca,bus=rp,fd=3",
		"-chardev", "socket,id=console,fd=4", "-serial", "chardev:console",
		"-chardev", "socket,id=agent,fd=5", "-serial", "chardev:agent",
		"-chardev", "socket,id=qtest,fd=6", "-qtest", "chardev:qtest", "-qtest-log", "none",
		"-kernel", o.Image.Kernel, "-initrd", "/proc/self/fd/7",
		"-append", commandLine + o.Name,
	}
}

// Console is where what is typed at the console goes.
func (m *Machine) Console() io.Writer { return m.console }

// Stop ends the machine as if its power failed, and returns when it has ended.
func (m *Machine) Stop() {
	m.stop.Do(func() {
		m.proxy.mu.Lock()
		m.stopped = true
		m.proxy.mu.Unlock()
		m.cmd.Process.Kill()
	})
	<-m.done
}

// fail ends the machine, for a reason.
func (m *Machine) fail(err error) {
	m.proxy.mu.Lock()
	if m.err == nil && !m.stopped {
		m.err = err
	}
	m.proxy.mu.Unlock()
	m.Stop()
}

// Done is closed when the machine has ended.
func (m *Machine) Done() <-chan struct{} { return m.done }

// Err is why the machine ended; nil while it runs, after Stop, and when it powered itself
// off.
func (m *Machine) Err() error {
	m.proxy.mu.Lock()
	defer m.proxy.mu.Unlock()
	return m.err
}

// CPUTime is the processor time that a machine which has ended took.
func (m *Machine) CPUTime() time.Duration {
	<-m.done
	return m.cmd.ProcessState.UserTime() + m.cmd.ProcessState.SystemTime()
}

// Deliver gives a packet to the port, LRH to VCRC.
func (m *Machine) Deliver(packet []byte) { m.proxy.do(func(a *qib.Adapter) { a.Receive(packet) }) }

// SetPeer says what the other end of the cable offers; the zero End is no cable.
func (m *Machine) SetPeer(e qib.End) { m.proxy.do(func(a *qib.Adapter) { a.SetPeer(e) }) }

// SetReady says whether the other end has room for data packets. It has at first.
func (m *Machine) SetReady(ready bool) {
	m.proxy.do(func(a *qib.Adapter) {
		m.proxy.noRoom = !ready
		a.SetReady(ready && !m.proxy.full)
	})
}

// LinkError counts an error of the cable.
func (m *Machine) LinkError(c qib.Counter) { m.proxy.do(func(a *qib.Adapter) { a.LinkError(c) }) }

// Adapter runs a function with the adapter, which must not keep it.
func (m *Machine) Adapter(use func(a *qib.Adapter)) { m.proxy.do(use) }

// errEnded is the error of asking a machine that has ended, errLost of one whose agent was
// killed meanwhile.
var (
	errEnded = errors.New("the guest has ended")
	errLost  = errors.New("what runs programs in the guest was killed")
)
