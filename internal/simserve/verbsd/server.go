package verbsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Limits of a server.
const (
	MaxConnections = 32 // at one time
	// MaxWaits is how many calls of one connection may wait at one time.
	MaxWaits = 64
	// MaxWait is how long a call may wait.
	MaxWait = 10 * time.Minute
	// OpenTime is how long a connection may take to say whose device it opens, and
	// AnswerTime to take an answer.
	OpenTime   = 10 * time.Second
	AnswerTime = 10 * time.Second
)

// Simulator is what serves the fabric.
type Simulator interface {
	// Do calls something when the fabric may be used, and waits for its end.
	Do(func(*fabric.Fabric)) error
	Topology() *topology.Netlist
}

// Passer is a simulator whose time passes only while a call waits.
type Passer interface {
	// Pass lets time pass until done, or until limit of the fabric's time is over.
	// Done is called when the fabric may be used.
	Pass(limit time.Duration, done func() bool) error
}

// Server carries out the calls of programs. Turn and Wait are the simulator's to
// call, where the fabric may be used.
type Server struct {
	// Users are those who may use the fabric. It is set before Serve.
	Users door.Users

	simulator   Simulator
	connections chan struct{} // one for each

	// Touched only where the fabric may be used:
	hosts  []*host
	domain endpoint.Domain // that was given last
}

// New makes a server for a simulator.
func New(s Simulator) *Server {
	return &Server{simulator: s, connections: make(chan struct{}, MaxConnections)}
}

// Listen opens the socket for the simulator of a name.
func Listen(name string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", verbs.SocketAddress(name))
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("%s: another simulator of this name takes verbs calls", name)
	}
	return l, err
}

// Serve takes the calls of programs until the context ends. When it returns nobody
// has anything any more.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	ctx, end := context.WithCancel(ctx)
	var served sync.WaitGroup
	defer served.Wait()
	defer end()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("waiting for programs with verbs calls: %w", err)
		}
		served.Go(func() {
			uid, err := door.Peer(c)
			if err == nil {
				if err = s.Users.Admit(uid); err != nil {
					err = fmt.Errorf("%w: %w", err, verbs.ErrPermission)
				}
			}
			if err != nil {
				refuse(c, 0, err)
				c.Close()
				return
			}
			s.ServeConn(ctx, c, uid == 0)
		})
	}
}

// refuse answers a request that is not served.
func refuse(c net.Conn, number uint64, err error) {
	a := verbs.Answer{Number: number}
	a.SetErr(err)
	if c.SetWriteDeadline(time.Now().Add(AnswerTime)) == nil {
		_ = verbs.WriteFrame(c, &a) // it is told, if it listens
	}
}

// ServeConn serves one connection and closes it. It may use reserved Q_Keys, when
// it asks for that, only if root is true.
func (s *Server) ServeConn(ctx context.Context, c net.Conn, root bool) {
	defer c.Close()
	select {
	case s.connections <- struct{}{}:
		defer func() { <-s.connections }()
	default:
		refuse(c, 0, fmt.Errorf("%d programs have devices already: %w", MaxConnections, verbs.ErrFull))
		return
	}
	ctx, end := context.WithCancel(ctx)
	defer context.AfterFunc(ctx, func() { c.Close() })()
	var r verbs.Request
	if c.SetReadDeadline(time.Now().Add(OpenTime)) != nil {
		end()
		return
	}
	err := verbs.ReadFrame(c, &r)
	var on *connection
	if err == nil {
		on, err = s.enter(ctx, c, &r, root)
	}
	if err == nil {
		err = c.SetReadDeadline(time.Time{})
	}
	if err != nil {
		refuse(c, r.Number, err)
	}
	if on != nil {
		on.serve()
	}
	end()
	if on != nil {
		on.waits.Wait()
		_ = s.simulator.Do(func(*fabric.Fabric) { s.leave(on.session) }) // an error: nothing is left of it
	}
}

// connection is a program with an opened device.
type connection struct {
	server  *Server
	conn    net.Conn
	ctx     context.Context
	session *session
	writing sync.Mutex
	waits   sync.WaitGroup
	places  chan struct{} // one for each call that waits
}

// enter opens the device that the first request asks for, and answers it.
func (s *Server) enter(ctx context.Context, c net.Conn, r *verbs.Request, root bool) (*connection, error) {
	switch {
	case r.Call != verbs.CallOpen:
		return nil, fmt.Errorf("the first request is %q, want %q: %w", r.Call, verbs.CallOpen, verbs.ErrProtocol)
	case r.Version != verbs.ProtocolVersion:
		return nil, fmt.Errorf("the program speaks version %d, the simulator %d: %w", r.Version, verbs.ProtocolVersion, verbs.ErrProtocol)
	case r.Privileged && !root:
		return nil, fmt.Errorf("a privileged device is for root: %w", verbs.ErrPermission)
	}
	n, err := find(s.simulator.Topology(), r.Node)
	if err != nil {
		return nil, err
	}
	on := &connection{server: s, conn: c, ctx: ctx, places: make(chan struct{}, MaxWaits)}
	a := verbs.Answer{Number: r.Number}
	doErr := s.simulator.Do(func(f *fabric.Fabric) {
		device, _ := f.Device(n.GUID) // nil: newHost says why
		i := slices.IndexFunc(s.hosts, func(h *host) bool { return h.node == n && h.device == device })
		if i < 0 {
			var h *host
			if h, err = newHost(f, n); err != nil {
				return
			}
			i = len(s.hosts)
			s.hosts = append(s.hosts, h)
		}
		h := s.hosts[i]
		s.domain++
		on.session = newSession(h, r.Privileged, s.domain)
		h.sessions = append(h.sessions, on.session)
		err = on.session.queryDevice(r, &a)
	})
	if err = errors.Join(doErr, err); err != nil {
		return nil, err
	}
	on.answer(&a)
	return on, nil
}

// leave gives back what a session has; with the last one the host is forgotten. None of its
// calls waits any more.
func (s *Server) leave(x *session) {
	h := x.host
	x.leave()
	h.sessions = slices.DeleteFunc(h.sessions, func(o *session) bool { return o == x })
	if len(h.sessions) == 0 {
		s.hosts = slices.DeleteFunc(s.hosts, func(o *host) bool { return o == h })
	}
}

// serve takes requests until the connection ends.
func (on *connection) serve() {
	for {
		r := new(verbs.Request)
		err := verbs.ReadFrame(on.conn, r)
		if errors.Is(err, verbs.ErrProtocol) {
			on.fail(r.Number, err)
		}
		if err != nil {
			return
		}
		if on.take(r) != nil {
			return // nobody serves any more
		}
	}
}

// take carries out a request, or has it wait. The error says that the simulator has
// ended.
func (on *connection) take(r *verbs.Request) error {
	a := &verbs.Answer{Number: r.Number}
	if wait := waits[r.Call]; wait != nil {
		return on.await(r, a, wait)
	}
	call := calls[r.Call]
	if call == nil {
		on.fail(r.Number, fmt.Errorf("%q is no call: %w", r.Call, verbs.ErrProtocol))
		return nil
	}
	var err error
	if ended := on.do(func(s *session) {
		if err = errRemoved; !s.removed {
			err = told(call(s, r, a))
		}
	}); ended != nil {
		return ended
	}
	if err != nil {
		on.fail(r.Number, err)
		return nil
	}
	on.answer(a)
	return nil
}

// do calls something with the session up to date.
func (on *connection) do(call func(*session)) error {
	return on.server.simulator.Do(func(*fabric.Fabric) {
		on.session.host.follow()
		call(on.session)
	})
}

// await carries out a request that may wait.
func (on *connection) await(r *verbs.Request, a *verbs.Answer, begin func(*session, *verbs.Request) (*waiting, error)) error {
	var w *waiting
	var done bool
	var err error
	ended := on.do(func(s *session) {
		if s.removed && r.Call != verbs.CallNextEvent {
			err = errRemoved
			return
		}
		if w, err = begin(s, r); err == nil {
			done, err = w.try(s, a)
		}
		err = told(err)
	})
	limit := min(time.Duration(r.Wait), MaxWait)
	switch {
	case ended != nil:
		return ended
	case err != nil:
		on.fail(r.Number, err)
		return nil
	case !done && limit > 0:
		select {
		case on.places <- struct{}{}:
			on.waits.Go(func() {
				defer func() { <-on.places }()
				on.finish(r, a, w, limit)
			})
			return nil
		default:
			err = fmt.Errorf("%d calls of this connection wait already: %w", MaxWaits, verbs.ErrFull)
		}
	}
	on.end(r, a, w, done, err)
	return nil
}

// finish waits for what a call waits for, and answers.
func (on *connection) finish(r *verbs.Request, a *verbs.Answer, w *waiting, limit time.Duration) {
	var done bool
	var err error
	look := func(s *session) bool {
		if s.removed && r.Call != verbs.CallNextEvent {
			err = errRemoved
		} else {
			done, err = w.try(s, a)
		}
		return done || err != nil
	}
	var ended error
	if p, ok := on.server.simulator.(Passer); ok {
		ended = p.Pass(limit, func() bool {
			on.session.host.follow()
			return on.ctx.Err() != nil || look(on.session)
		})
	} else {
		ended = on.sleep(limit, look)
	}
	if err == nil {
		err = ended
	}
	on.end(r, a, w, done, told(err))
}

// sleep calls look whenever something came, until it reports true or limit is over.
func (on *connection) sleep(limit time.Duration, look func(*session) bool) error {
	alarm := time.NewTimer(limit)
	defer alarm.Stop()
	for {
		var wake <-chan struct{}
		ready := false
		if err := on.do(func(s *session) {
			if ready = look(s); !ready {
				wake = s.waker()
			}
		}); err != nil || ready {
			return err
		}
		select {
		case <-wake:
		case <-alarm.C:
			return nil
		case <-on.ctx.Done():
			return on.ctx.Err()
		}
	}
}

// end answers a call that waited, or did not have to.
func (on *connection) end(r *verbs.Request, a *verbs.Answer, w *waiting, done bool, err error) {
	if !done && w.give != nil {
		var late error
		_ = on.do(func(s *session) { late = w.give(s) }) // an error: there is nobody to tell
		if err == nil {
			err = late
		}
	}
	if err != nil {
		on.fail(r.Number, err)
		return
	}
	on.answer(a)
}

func (on *connection) fail(number uint64, err error) {
	a := &verbs.Answer{Number: number}
	a.SetErr(err)
	on.answer(a)
}

// answer writes an answer. Who does not take it loses the connection.
func (on *connection) answer(a *verbs.Answer) {
	on.writing.Lock()
	defer on.writing.Unlock()
	err := on.conn.SetWriteDeadline(time.Now().Add(AnswerTime))
	if err == nil {
		err = verbs.WriteFrame(on.conn, a)
	}
	if err != nil {
		on.conn.Close()
	}
}

// waker is closed when something comes.
func (s *session) waker() <-chan struct{} {
	if s.wake == nil {
		s.wake = make(chan struct{})
	}
	return s.wake
}

// Turn brings sessions up to date and wakes who waits. It moves nothing in the
// fabric.
func (s *Server) Turn() (moved bool) {
	for _, h := range s.hosts {
		h.follow()
		for _, x := range h.sessions {
			if x.fresh && x.wake != nil {
				close(x.wake)
				x.wake = nil
			}
			x.fresh = false
		}
	}
	return false
}

// Wait is how long a Server has nothing to do but for what arrives: for ever.
func (*Server) Wait() (time.Duration, bool) { return 0, false }
