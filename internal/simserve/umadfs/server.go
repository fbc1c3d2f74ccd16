package umadfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/simserve/fuse"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// MaxNamespaces is how many commands may have devices at one time.
const MaxNamespaces = 1024

// deviceName is what a node's adapter is called in sysfs: no namespace sees
// more than one.
const deviceName = "sim0"

// Simulator is what serves the fabric.
type Simulator interface {
	// Do calls something when the fabric may be used, and waits for its end.
	Do(func(*fabric.Fabric)) error
	Topology() *topology.Netlist
	// Record is told of every datagram that a program sends or gets, where the
	// fabric may be used.
	Record(*packet.MADPacket)
}

// Server hands out devices of the nodes of a simulator's fabric. Turn and
// Wait are the simulator's to call, where the fabric may be used.
type Server struct {
	// Users are those who may have devices. It is set before Serve.
	Users door.Users

	simulator  Simulator
	listener   *net.UnixListener
	origin     time.Time
	namespaces sync.WaitGroup

	// Touched only where the fabric may be used:
	hosts []*host
	count int // namespaces
}

// Listen opens the place where commands ask for devices.
func Listen(name string, s Simulator) (*Server, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unixpacket", address(name))
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("%s: another simulator of this name hands out devices", name)
	}
	if err != nil {
		return nil, err
	}
	return &Server{simulator: s, listener: l, origin: time.Now()}, nil
}

// Serve hands out devices until the context ends. When it returns nobody has
// any more: the files that are still open fail.
func (s *Server) Serve(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer s.namespaces.Wait()
	defer end()
	defer context.AfterFunc(ctx, func() { s.listener.Close() })()
	for {
		c, err := s.listener.AcceptUnix()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("waiting for commands that want devices: %w", err)
		}
		s.namespaces.Go(func() { s.greet(ctx, c) })
	}
}

// greet answers a command and serves its namespace until that is gone.
func (s *Server) greet(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	g, connections, err := s.hear(c)
	defer func() {
		for _, f := range connections {
			f.Close()
		}
	}()
	var h *host
	if err == nil {
		err = s.enter(g.Node, &h)
	}
	reply := greeting{Version: greetingVersion, Node: g.Node}
	if err != nil {
		reply.Error = err.Error()
	} else {
		reply.At = Place{Fabric: fabricSum(s.simulator.Topology()), Node: h.guid}
	}
	message, _ := json.Marshal(reply) // of strings and numbers
	if _, writeErr := c.Write(message); err != nil || writeErr != nil {
		if h != nil {
			s.leave(h)
		}
		return
	}
	c.Close()
	roots := s.roots(h)
	var served sync.WaitGroup
	for i, f := range connections {
		served.Go(func() {
			_ = fuse.Serve(ctx, f, fuse.Config{Root: roots[i], Do: s.do}) // the namespace is gone, however
		})
	}
	served.Wait()
	s.leave(h)
}

// Connections are those to /dev/fuse that the rights of a message carry, closed when this program
// becomes another one. They are the caller's, with an error too.
func Connections(rights []byte) (list []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	for i := range messages {
		fds, parseErr := unix.ParseUnixRights(&messages[i])
		err = errors.Join(err, parseErr)
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			list = append(list, os.NewFile(uintptr(fd), "/dev/fuse"))
		}
	}
	return list, err
}

// hear reads what a command says first, and takes its connections.
func (s *Server) hear(c *net.UnixConn) (g greeting, connections []*os.File, err error) {
	if err := c.SetDeadline(time.Now().Add(greetingTime)); err != nil {
		return g, nil, err
	}
	buffer, rights := make([]byte, maxGreeting), make([]byte, unix.CmsgSpace(len(Mounts)*4))
	n, rightsLen, flags, _, err := c.ReadMsgUnix(buffer, rights)
	if err != nil {
		return g, nil, err
	}
	connections, err = Connections(rights[:rightsLen])
	// Once it is read: who is turned away with something unread is not told why.
	uid, peerErr := door.Peer(c)
	if peerErr == nil {
		peerErr = s.Users.Admit(uid)
	}
	if peerErr != nil {
		return g, connections, peerErr
	}
	if err == nil {
		err = json.Unmarshal(buffer[:n], &g)
	}
	switch {
	case err != nil:
		return g, connections, fmt.Errorf("what was asked makes no sense: %w", err)
	case g.Version != greetingVersion:
		return g, connections, fmt.Errorf("the command speaks version %d of the handshake, the simulator %d: use one ibwarden", g.Version, greetingVersion)
	case len(connections) != len(Mounts) || flags&unix.MSG_CTRUNC != 0:
		return g, connections, fmt.Errorf("%d Mounts came with the request, want %d", len(connections), len(Mounts))
	}
	return g, connections, nil
}

func (s *Server) do(call func()) { _ = s.simulator.Do(func(*fabric.Fabric) { call() }) } // an error: it will not run

// enter finds a node's host, or makes it.
func (s *Server) enter(name string, h **host) error {
	n, err := find(s.simulator.Topology(), name)
	if err != nil {
		return err
	}
	var entered error
	err = s.simulator.Do(func(f *fabric.Fabric) {
		if s.count >= MaxNamespaces {
			entered = fmt.Errorf("%d commands have devices already", s.count)
			return
		}
		i := slices.IndexFunc(s.hosts, func(h *host) bool { return h.guid == n.GUID })
		if i < 0 {
			var fresh *host
			if fresh, entered = newHost(f, n.GUID, s.simulator.Record); entered != nil {
				entered = fmt.Errorf("node %s: %w", n.ID, entered)
				return
			}
			i = len(s.hosts)
			s.hosts = append(s.hosts, fresh)
		}
		s.hosts[i].users++
		s.count++
		*h = s.hosts[i]
	})
	return errors.Join(err, entered)
}

// leave ends a namespace; with the last one the node's devices go.
func (s *Server) leave(h *host) {
	s.do(func() {
		s.count--
		if h.users--; h.users == 0 {
			h.leave()
			s.hosts = slices.DeleteFunc(s.hosts, func(x *host) bool { return x == h })
		}
	})
}

// find is the node that a person means, the first CA for no name.
func find(l *topology.Netlist, name string) (*topology.Node, error) {
	if name != "" {
		return l.Find(name)
	}
	for _, n := range l.Nodes {
		if n.Type == ib.NodeCA {
			return n, nil
		}
	}
	return nil, errors.New("the fabric has no CA")
}

// roots are the directories of a namespace, in the order of Mounts.
func (s *Server) roots(h *host) []fuse.Directory {
	devices, adapters, management := &Folder{}, &Folder{}, &Folder{}
	s.do(func() {
		management.Constant("abi_version", strconv.Itoa(umad.Version))
		for i, p := range h.ports {
			umadName, managerName := fmt.Sprintf("umad%d", i), fmt.Sprintf("issm%d", i)
			devices.Add(umadName, NewDevice(p.open(s.now)))
			devices.Add(managerName, &managerDevice{port: p})
			for _, name := range []string{umadName, managerName} {
				of := &Folder{}
				of.Constant("ibdev", deviceName)
				of.Constant("port", strconv.Itoa(int(p.num)))
				management.Add(name, of)
			}
		}
		adapters.Add(deviceName, sysDevice(func() *sma.Agent { return h.fabric.Agent(h.guid) }))
	})
	return []fuse.Directory{devices, adapters, management}
}

// now is the time that time-outs of programs count in.
func (s *Server) now() time.Duration { return time.Since(s.origin) }

// Turn moves what is on its way between the fabric and programs, and reports
// whether anything was.
func (s *Server) Turn() (moved bool) {
	for _, h := range s.hosts {
		for _, p := range h.ports {
			moved = p.turn(s.now()) || moved
		}
	}
	return moved
}

// Wait is how long nothing is to be done but for what arrives; false for ever.
func (s *Server) Wait() (wait time.Duration, ok bool) {
	now := s.now()
	for _, h := range s.hosts {
		for _, p := range h.ports {
			if at, due := p.layer.Deadline(); due && (!ok || at-now < wait) {
				wait, ok = at-now, true
			}
		}
	}
	return max(wait, 0), ok
}
