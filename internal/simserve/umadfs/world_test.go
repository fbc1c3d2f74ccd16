package umadfs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// world is a fabric that is up, served by this process, and namespaces of this
// process in which its devices are. A file of it is only ever touched by plain
// system calls: those of package os would ask the kernel's epoll, which asks
// the server, which may be waiting for that very lock.
type world struct {
	*testing.T
	name    string
	sim     *ibsimd.Server
	packets chan []byte // data packets that left a host
	hosts   []*topology.Node
}

// abiTopology has four hosts at two switches.
const abiTopology = "fattree,radix=4,levels=2"

// abiPolicy gives the second host a partition of its own, so that what both
// share has another index in each table.
const abiPolicy = `version: 1
descriptions: trusted
default: limited
partitions:
  - {name: own, pkey: 0x0010, members: {full: [{description: "H0_1"}]}}
  - {name: shared, pkey: 0x0020, members: {full: [{description: "H0_0"}, {description: "H0_1"}]}}
`

// What abiPolicy comes to: the index of the shared partition, and the path bits
// that there are.
const (
	sharedNear, sharedFar = 1, 2
	abiLMC                = 1
)

var worlds atomic.Uint32

type nobody struct{}

func (nobody) Event(event.Event)       {}
func (nobody) Progress(string, uint64) {}

// ground skips where a namespace of one's own or FUSE is missing.
func ground(t *testing.T) {
	t.Helper()
	need.Need(t, onThread(func() error {
		connections, err := Enter("test")
		for _, f := range connections {
			f.Close()
		}
		return err
	}))
}

// onThread runs something on a thread of its own, which ends with it.
func onThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ground(t)
	l, err := topology.Generate(abiTopology)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, name: fmt.Sprintf("umadfs-%d-%d", os.Getpid(), worlds.Add(1)), packets: make(chan []byte, 64)}
	for _, n := range l.Nodes {
		if n.Type == ib.NodeCA {
			w.hosts = append(w.hosts, n)
		}
	}
	config := fabric.DefaultConfig()
	config.DataTrace = func(s fabric.DataSighting) {
		if s.Outcome == fabric.OutcomeLeft && (s.Node == w.hosts[0].GUID || s.Node == w.hosts[1].GUID) {
			select {
			case w.packets <- append([]byte(nil), s.Bytes...):
			default:
			}
		}
	}
	if w.sim, err = ibsimd.Listen(l, ibsimd.Config{Socket: w.name, Fabric: config}); err != nil {
		t.Fatal(err)
	}
	devices, err := Listen(w.name, w.sim)
	if err != nil {
		t.Fatal(err)
	}
	w.sim.Accompany(devices)
	w.manage()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- w.sim.Serve(ctx) }()
	go func() { ended <- devices.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			select {
			case err := <-ended:
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("a server goes on after its context has ended")
			}
		}
		w.sim.Close()
	})
	return w
}

// manage brings the fabric up once.
func (w *world) manage() {
	w.Helper()
	p, err := policyfile.ReadYAML([]byte(abiPolicy), "abi.yaml")
	if err != nil {
		w.Fatal(err)
	}
	if doErr := w.sim.Do(func(f *fabric.Fabric) {
		var link *inproc.Link
		if link, err = inproc.New(f, w.hosts[2].GUID, 1, false); err != nil {
			return
		}
		defer link.Close()
		r := daemon.NewRunner(link, engine.Config{Routing: routing.UpDown, LMC: abiLMC}, server.Config{}, p, nobody{})
		err = r.Run(w.Context(), func() bool { return r.Engine().Settled() })
	}); doErr != nil || err != nil {
		w.Fatal(doErr, err)
	}
}

// lid is the base LID of a host.
func (w *world) lid(host int) (lid ib.LID) {
	w.Helper()
	if err := w.sim.Do(func(f *fabric.Fabric) { lid = f.Agent(w.hosts[host].GUID).Port(1).LID }); err != nil {
		w.Fatal(err)
	}
	return lid
}

// space is a namespace with the devices of a node.
type space struct {
	*world
	calls chan func()
}

// enter makes one, at a host.
func (w *world) enter(host int) *space {
	w.Helper()
	s := &space{w, make(chan func())}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the namespace goes with the thread
		simulator, err := net.DialUnix("unixpacket", nil, address(w.name))
		if err == nil {
			defer simulator.Close()
			var connections []*os.File
			if connections, err = Enter("test"); err == nil {
				_, err = introduce(simulator, w.hosts[host].ID, connections)
			}
			for _, f := range connections {
				f.Close()
			}
		}
		ready <- err
		for call := range s.calls {
			call()
		}
	}()
	if err := <-ready; err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { close(s.calls) })
	return s
}

// inside calls something on the namespace's thread.
func (s *space) inside(f func()) {
	done := make(chan struct{})
	s.calls <- func() { f(); close(done) }
	<-done
}

// opened is an open device file.
type opened struct {
	*space
	fd   int
	long bool
}

// open opens a file, without waiting unless flags say otherwise.
func (s *space) open(name string, flags int) (f *opened, err error) {
	s.inside(func() {
		var fd int
		if fd, err = unix.Open(deviceDir+"/"+name, flags|unix.O_CLOEXEC, 0); err == nil {
			f = &opened{space: s, fd: fd}
		}
	})
	return f, err
}

// umad opens the port's file.
func (s *space) umad() *opened {
	s.Helper()
	f, err := s.open("umad0", unix.O_RDWR|unix.O_NONBLOCK)
	if err != nil {
		s.Fatal(err)
	}
	return f
}

// text reads a whole file of sysfs.
func (s *space) text(path string) (out string) {
	s.Helper()
	var err error
	s.inside(func() {
		var fd int
		if fd, err = unix.Open(path, unix.O_RDONLY, 0); err != nil {
			return
		}
		defer unix.Close(fd)
		buffer := make([]byte, 4096)
		var n int
		if n, err = unix.Read(fd, buffer); err == nil {
			out = string(buffer[:n])
		}
	})
	if err != nil {
		s.Fatalf("%s: %v", path, err)
	}
	return out
}

func (f *opened) close() { unix.Close(f.fd) }

func (f *opened) ioctl(command uint32, argument []byte) error {
	var p unsafe.Pointer
	if len(argument) > 0 {
		p = unsafe.Pointer(&argument[0])
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(f.fd), uintptr(command), uintptr(p))
	runtime.KeepAlive(argument)
	if errno != 0 {
		return errno
	}
	return nil
}

// pkeys switches to the long header.
func (f *opened) pkeys() *opened {
	f.Helper()
	f.wantIoctl("ENABLE_PKEY", umad.CommandEnablePKey, nil, nil)
	f.long = true
	return f
}

func (f *opened) wantIoctl(what string, command uint32, argument []byte, want error) {
	f.Helper()
	if err := f.ioctl(command, argument); err != want {
		f.Errorf("%s: %v, want %v", what, err, want)
	}
}

func (f *opened) wantRegister(r umad.Registration, want error) {
	f.Helper()
	f.wantIoctl(fmt.Sprintf("REGISTER_AGENT %+v", r), umad.CommandRegister, r.Encode(), want)
}

// agent registers one and returns its number.
func (f *opened) agent(r umad.Registration) uint32 {
	f.Helper()
	argument := r.Encode()
	if err := f.ioctl(umad.CommandRegister, argument); err != nil {
		f.Fatalf("REGISTER_AGENT %+v: %v", r, err)
	}
	got, err := umad.ReadRegistration(umad.CommandRegister, argument)
	if err != nil {
		f.Fatal(err)
	}
	return got.ID
}

func (f *opened) unregister(id uint32) {
	f.Helper()
	f.wantIoctl("UNREGISTER_AGENT", umad.CommandUnregister, umad.EncodeID(id), nil)
}

// bytes puts a header in front of a datagram.
func (f *opened) bytes(h umad.Header, m []byte) []byte {
	out := make([]byte, umad.SizeOf(f.long), umad.SizeOf(f.long)+len(m))
	h.Put(out, f.long)
	return append(out, m...)
}

func (f *opened) wantWrite(bytes []byte, want error) {
	f.Helper()
	n, err := unix.Write(f.fd, bytes)
	if err != want || err == nil && n != len(bytes) {
		f.Errorf("write of %d bytes: %d, %v, want %v", len(bytes), n, err, want)
	}
}

func (f *opened) send(h umad.Header, m []byte) {
	f.Helper()
	f.wantWrite(f.bytes(h, m), nil)
}

// wantRead is the result of one read into so much room.
func (f *opened) wantRead(room int, want error) []byte {
	f.Helper()
	buffer := make([]byte, room)
	n, err := unix.Read(f.fd, buffer)
	if err != want {
		f.Fatalf("read into %d bytes: %d, %v, want %v", room, n, err, want)
	}
	return buffer[:max(n, 0)]
}

// longest bounds every wait for what has to come.
const longest = 20 * time.Second

// poll waits for events and returns those that are there.
func (f *opened) poll(events int16, wait time.Duration) int16 {
	f.Helper()
	fds := []unix.PollFd{{Fd: int32(f.fd), Events: events}}
	for {
		n, err := unix.Poll(fds, int(wait.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			f.Fatal(err)
		}
		if n == 0 {
			return 0
		}
		return fds[0].Revents
	}
}

// message waits for a message and reads it.
func (f *opened) message() (umad.Header, []byte) {
	f.Helper()
	if got := f.poll(unix.POLLIN, longest); got&unix.POLLIN == 0 {
		f.Fatalf("nothing to read: poll %#x", got)
	}
	b := f.wantRead(room, nil)
	h, err := umad.ReadHeader(b, f.long)
	if err != nil {
		f.Fatal(err)
	}
	return h, b[umad.SizeOf(f.long):]
}

// room is the size of a buffer that holds all but long messages.
const room = 4096

// The registrations that most cases use.
func smAgent() umad.Registration {
	return umad.Registration{Class: mad.ClassSubnDirected, ClassVersion: 1,
		Methods: umad.MethodSet(mad.MethodGet, mad.MethodSet, mad.MethodTrap)}
}

func saAgent() umad.Registration {
	return umad.Registration{QPN: 1, Class: mad.ClassSubnAdm, ClassVersion: 2, RMPPVersion: 1,
		Methods: umad.MethodSet(mad.MethodGet, mad.MethodGetTable)}
}

// vendor is the class of ibping, for which no adapter has an agent.
const vendor mad.Class = 0x32

func vendorAgent(methods ...mad.Method) umad.Registration {
	return umad.Registration{QPN: 1, Class: vendor, ClassVersion: 1, OUI: 0x001405, Methods: umad.MethodSet(methods...)}
}

// makeMAD makes one of a class: of its own port's NodeInfo by directed route,
// or for the vendor's agent.
func makeMAD(class mad.Class, method mad.Method, tid uint64) []byte {
	m := make([]byte, mad.Size)
	m[0], m[1], m[2], m[3] = mad.BaseVersion, byte(class), 1, byte(method)
	switch class {
	case mad.ClassSubnAdm:
		m[2] = 2
	case vendor:
		m[37], m[38], m[39] = 0x00, 0x14, 0x05
	case mad.ClassSubnDirected:
		for i := 32; i < 36; i++ { // permissive LIDs
			m[i] = 0xFF
		}
	}
	binary.BigEndian.PutUint64(m[8:], tid)
	binary.BigEndian.PutUint16(m[16:], 0x11)
	return m
}

// own is the header of a request to one's own port by directed route.
func own(id uint32) umad.Header {
	return umad.Header{ID: id, TimeoutMilliseconds: 1000, LID: ib.LIDPermissive}
}

// nowhere is that of a request to a LID that nobody has.
func nowhere(id, milliseconds, retries uint32) umad.Header {
	return umad.Header{ID: id, TimeoutMilliseconds: milliseconds, Retries: retries, LID: 0x4000, QPN: 1, QKey: uint32(ib.QKeyGSI)}
}

func tidOf(m []byte) uint64 { return binary.BigEndian.Uint64(m[8:]) }
