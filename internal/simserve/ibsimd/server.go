package ibsimd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Times that a request may take.
const (
	// AnswerTime is how long an agent may take, in the fabric's time.
	AnswerTime = 200 * time.Millisecond
	// PeerTime is how long another client may take, in that of the clock.
	PeerTime = 4 * time.Second
)

const (
	// stepsPerTurn bounds what happens in the fabric before the sockets are
	// looked at again: a storm of traps must not keep clients out.
	stepsPerTurn = 1 << 10
	// turnsUnpolled bounds how long busy clients keep others waiting.
	turnsUnpolled = 8
	// loneUnpolled is the same while one client is waited for alone.
	loneUnpolled = 32
	// loneTurns is how many turns a client has to be the only one to want
	// something before it alone is waited for.
	loneTurns = 16
	// controlsPerTurn is how many control requests are taken in a turn.
	controlsPerTurn = 16
	// expiryPeriod is the time between two looks for requests that nobody
	// answered, and deathPeriod between two looks for clients that died.
	expiryPeriod = 10 * time.Millisecond
	deathPeriod  = time.Second
)

// Config says what is served and how.
type Config struct {
	// Socket is the base of the local socket names, DefaultSocket when empty.
	Socket string
	// UDP, when set, is the IPv4 address and port of the control socket of a
	// server that is reached by UDP instead; the data sockets have the ten
	// ports that follow.
	UDP string
	// Users are those who may use the fabric. Of UDP nobody knows which user sends: it
	// needs Users.Any.
	Users door.Users
	// Fabric is how the fabric behaves.
	Fabric fabric.Config
	// RealTime makes the fabric's delays real; see the package's notes.
	RealTime bool
	// Quiet, when set, makes the fabric's delays count without anybody waiting for them:
	// its time moves only after Quiet has reported that every client's program sleeps, and
	// only until a client gets a packet. So the time that a program's own work takes is
	// none. It is called often, and must not be with RealTime.
	Quiet func() bool
	// Capture, when set, gets a capture file of every datagram that a client
	// sends or gets, and of every data packet that an end node sends.
	Capture io.Writer
}

type attachment = *fabric.Attachment

// lone is the client that asks while nobody else wants anything. When nothing more
// of it is there its next packet is waited for at its own socket, which is less
// work than asking the kernel who has sent; others may wait for as long as that.
type lone struct {
	client *client
	turns  int // in which nobody else wanted anything
	fd     int32
	// taken and err are what was received while it was waited for.
	taken int
	err   error
}

// Companion is another user of the fabric, in the turns of Serve.
type Companion interface {
	// Turn moves what is on its way to and from the fabric, and reports
	// whether anything was.
	Turn() (moved bool)
	// Wait is how long it has nothing to do but for what arrives; false for
	// ever.
	Wait() (time.Duration, bool)
}

// Server serves one fabric.
type Server struct {
	config     Config
	topology   *topology.Netlist
	fabric     *fabric.Fabric
	counters   *Counters
	recorder   *recorder // nil for none
	companions []Companion

	names   namespace
	wake    *os.File // an event counter that ends the wait for packets
	control int
	out     [maxClients]int
	clients [maxClients]*client // nil for a free place
	places  []*place
	replies replies
	refused uint64 // control requests

	controls *DgramReceiver
	sender   *DgramSender
	delivery fabric.Delivery
	waits

	origin   time.Time
	lag      time.Duration // of the fabric behind the clock, for want of processor time
	more     bool          // there is work without waiting
	clock    time.Duration // when advance was called
	expireAt time.Duration // by the clock, as deathAt
	deathAt  time.Duration
	// mutex guards all of this but for waits.
	mutex  sync.Mutex
	wakeAt time.Duration // by the clock: when Serve's wait ends by itself
	ended  chan struct{} // closed when Serve has ended
}

// waits is how Serve waits for packets; only Serve uses it.
type waits struct {
	packets  *DgramReceiver
	polled   [2 + maxClients]unix.PollFd // wake, control, clients
	lively   bool                        // the last wait ended with a packet or by itself
	unpolled int                         // turns since the kernel was asked who has sent
	lone     lone
}

// Listen makes the fabric of a topology and opens the sockets. Close gives them
// back.
func Listen(l *topology.Netlist, c Config) (*Server, error) {
	s := &Server{
		config: c, topology: l, control: -1,
		controls: NewReceiver(controlsPerTurn, controlSize, true),
		waits:    waits{packets: NewReceiver(packetsPerTurn, packetSize, false)},
		sender:   NewSender(packetsPerTurn),
		ended:    make(chan struct{}),
	}
	for i := range s.out {
		s.out[i] = -1
	}
	if len(l.Nodes) == 0 {
		return nil, errors.New("the topology has no nodes")
	}
	f := c.Fabric
	s.counters = New(l)
	f.Trace = s.sighted
	if c.Capture != nil {
		f.DataTrace = s.sightedData
	}
	var err error
	if s.fabric, err = fabric.New(l, f); err != nil {
		return nil, err
	}
	s.counters.SetFabric(s.fabric)
	if s.names, err = newNamespace(c.Socket, c.UDP); err != nil {
		return nil, err
	}
	if s.names.udp && !c.Users.Any {
		return nil, fmt.Errorf("UDP address %s: a datagram does not say which user sent it: want --any-user too, which lets everybody in who reaches the port", s.Name())
	}
	if err := s.open(); err != nil {
		s.Close()
		return nil, err
	}
	s.origin = time.Now()
	if c.Capture != nil {
		if s.recorder, err = newRecorder(c.Capture, s.origin); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) open() (err error) {
	wake, err := EventCounter()
	if err != nil {
		return err
	}
	s.wake = os.NewFile(uintptr(wake), "wake")
	s.polled[pollWake] = unix.PollFd{Fd: int32(wake), Events: unix.POLLIN}
	if s.control, err = ListenDgram(s.names.control()); err != nil {
		return fmt.Errorf("%s: control socket: %w", s.Name(), inUse(err))
	}
	if !s.names.udp {
		if err := NoteUsers(s.control); err != nil {
			return fmt.Errorf("%s: control socket: %w", s.Name(), err)
		}
	}
	s.replies = newReplies(s.control)
	s.polled[pollControl] = unix.PollFd{Fd: int32(s.control), Events: unix.POLLIN}
	for i := range s.out {
		if s.out[i], err = ListenDgram(s.names.out(i)); err != nil {
			return fmt.Errorf("%s: data socket %d: %w", s.Name(), i, inUse(err))
		}
	}
	return nil
}

func inUse(err error) error {
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("another simulator has this name: %w", err)
	}
	return err
}

// Name is the base of the socket names, or the address of a server that is
// reached by UDP.
func (s *Server) Name() string {
	if s.names.udp {
		return s.names.remote.String()
	}
	return s.names.base
}

// Environment is what a client's environment has to say, as NAME=VALUE.
func (s *Server) Environment() []string {
	if !s.names.udp {
		return []string{"IBSIM_SOCKNAME=" + s.names.base}
	}
	host := s.names.remote.Addr()
	if host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return []string{"IBSIM_SERVER_NAME=" + host.String(), fmt.Sprintf("IBSIM_SERVER_PORT=%d", s.names.remote.Port())}
}

// Accompany adds another user of the fabric. It is called before Serve.
func (s *Server) Accompany(c Companion) { s.companions = append(s.companions, c) }

// Topology is what the fabric was made of.
func (s *Server) Topology() *topology.Netlist { return s.topology }

// Close gives the sockets back. Serve must have ended, or not have begun.
func (s *Server) Close() {
	for _, fd := range append(s.out[:], s.control) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if s.wake != nil {
		s.wake.Close()
	}
}

// Serve answers clients until the context ends, and reports why it ended. It
// can be called once.
func (s *Server) Serve(ctx context.Context) error {
	defer func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		close(s.ended)
	}()
	ctx, end := context.WithCancel(ctx)
	defer end()
	go s.remind(ctx)
	for ctx.Err() == nil {
		if err := s.turn(); err != nil {
			return err
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.recorder != nil {
		if err := s.recorder.flush(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// remind sees to it that dead clients are looked for, and that the end of the
// context is noticed: even one that ended before this began, since Serve may
// already sleep then.
func (s *Server) remind(ctx context.Context) {
	clock := time.NewTicker(deathPeriod)
	defer clock.Stop()
	defer s.nudge()
	for {
		select {
		case <-clock.C:
			s.nudge()
		case <-ctx.Done():
			return
		}
	}
}

// nudge ends the wait for packets.
func (s *Server) nudge() {
	one := [8]byte{1} // any number that is not 0
	_, _ = s.wake.Write(one[:])
}

// errEnded says that nobody serves any more.
var errEnded = errors.New("the simulator has ended")

// Do calls something between two turns of Serve, when the fabric may be used,
// and moves what comes of it as far as it goes: what a companion's program asks
// is answered before Do returns, without waking Serve.
func (s *Server) Do(call func(*fabric.Fabric)) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	select {
	case <-s.ended:
		return errEnded
	default:
	}
	call(s.fabric)
	s.advance()
	if !s.config.RealTime && s.config.Quiet == nil {
		s.hurry()
	}
	s.more = s.exchange() || s.more
	if clock := time.Since(s.origin); s.owes() || s.more || s.wakeAt-clock > s.patience(clock) {
		s.nudge()
	}
	return nil
}

// owes reports whether something waits to be sent to a client.
func (s *Server) owes() bool {
	return slices.ContainsFunc(s.clients[:], func(c *client) bool { return c != nil && (c.outbox.count > 0 || c.gone) })
}

// rest drains the counter of nudges.
func (s *Server) rest() {
	var count [8]byte
	_, _ = s.wake.Read(count[:])
}

// Places in Server.polled; a client's is behind them, by its slot.
const (
	pollWake = iota
	pollControl
	pollClients
)

// turn waits for something to do and does it.
func (s *Server) turn() error {
	w, err := s.wait()
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.more = false
	s.advance()
	if s.polled[pollWake].Revents != 0 {
		s.rest()
	}
	// What a client sent before it said something on the control socket comes
	// first; after that it waits for the answer.
	if w == oneAlone {
		s.heard()
	}
	for i, c := range s.clients {
		if c != nil && s.polled[pollClients+i].Revents&^unix.POLLOUT != 0 {
			s.takePackets(c)
		}
	}
	if s.polled[pollControl].Revents != 0 {
		s.takeControls()
	}
	switch {
	case s.config.Quiet != nil:
		s.keepStep()
	case !s.config.RealTime:
		s.hurry()
	}
	s.more = s.exchange() || s.more
	s.counters.Settle()
	for _, c := range s.clients {
		if c != nil {
			s.flush(c)
		}
	}
	return s.housekeep()
}

// wait waits for a packet, a nudge, or the time of the next thing to do.
func (s *Server) wait() (whom, error) {
	patience, w := s.prepare()
	switch w {
	case nobody:
		return w, nil // who has just sent has sent more: looking costs less than asking
	case oneAlone:
		s.lone.taken, s.lone.err = s.packets.Await(int(s.lone.fd))
		return w, nil
	}
	s.unpolled = 0
	err := PollDgram(s.polled[:], patience, s.lively)
	s.lively = err == nil
	if err != nil && !errors.Is(err, unix.EINTR) {
		return w, fmt.Errorf("waiting for packets: %w", err)
	}
	return w, nil
}

// whom is for whom to wait.
type whom uint8

const (
	nobody whom = iota
	everybody
	oneAlone
)

// prepare says for whom to wait and how long.
func (s *Server) prepare() (patience time.Duration, w whom) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	clients, busy := 0, 0
	for i, c := range s.clients {
		p := &s.polled[pollClients+i]
		p.Fd, p.Events, p.Revents = -1, unix.POLLIN, 0
		if c == nil {
			continue
		}
		clients++
		p.Fd = int32(s.out[i])
		if c.outbox.count > 0 {
			p.Events |= unix.POLLOUT
		}
		if c.busy {
			p.Revents = unix.POLLIN
			busy++
		}
	}
	s.polled[pollWake].Revents, s.polled[pollControl].Revents = 0, 0
	s.unpolled++
	if s.isLone() {
		return 0, oneAlone
	}
	if busy > 0 && busy == clients && s.unpolled < turnsUnpolled {
		return 0, nobody
	}
	clock := time.Since(s.origin)
	patience = s.patience(clock)
	if s.wakeAt = Forever; patience != Forever {
		s.wakeAt = clock + patience
	}
	return patience, everybody
}

// isLone reports whether the lone client, if there is one, is to be waited for
// alone: there is nothing else to do so soon, and others were not kept waiting
// for long.
func (s *Server) isLone() bool {
	l := &s.lone
	if s.config.Quiet != nil || l.turns < loneTurns || s.unpolled >= loneUnpolled || len(s.companions) > 0 {
		return false
	}
	c := l.client
	if c != s.clients[c.slot] || c.busy || c.outbox.count > 0 || s.patience(s.clock) < awaitMax {
		return false
	}
	l.fd = int32(s.out[c.slot])
	return true
}

// awaitMax is more than waiting for one client ever takes: two ticks of a kernel
// that has few of them.
const awaitMax = 30 * AwaitTime

// heard processes what arrived while waiting for one client alone.
func (s *Server) heard() {
	l := &s.lone
	n, err := l.taken, l.err
	l.taken, l.err = 0, nil
	switch {
	case l.client != s.clients[l.client.slot]: // it was sent away meanwhile
		*l = lone{}
	case n > 0:
		s.take(l.client, n, nil)
		if l.client.bulk {
			s.takePackets(l.client)
		}
	case errors.Is(err, unix.EINTR):
		s.unpolled = loneUnpolled // the scheduler wants the thread
	default:
		s.take(l.client, 0, err)
		*l = lone{}
	}
}

// patience is how long from a time by the clock nothing is to be done but for
// what clients send and what remind reminds of.
func (s *Server) patience(clock time.Duration) time.Duration {
	if s.more {
		return 0
	}
	wait := Forever
	if s.config.Quiet != nil {
		if s.fabric.InFlight() > 0 {
			return quietLook
		}
	} else if next, ok := s.fabric.NextEvent(); ok {
		wait = next - (clock - s.lag)
	}
	for _, c := range s.clients {
		if c != nil && c.waiting > 0 {
			wait = min(wait, s.expireAt-clock)
		}
	}
	for _, c := range s.companions {
		if due, ok := c.Wait(); ok {
			wait = min(wait, due)
		}
	}
	return max(wait, 0)
}

// advance lets everything happen in the fabric that the clock says is due.
func (s *Server) advance() {
	s.clock = time.Since(s.origin)
	if s.config.Quiet != nil {
		return
	}
	now := s.clock - s.lag
	for range stepsPerTurn {
		if next, ok := s.fabric.NextEvent(); !ok || next > now {
			s.fabric.AdvanceTo(now)
			return
		}
		s.fabric.Step()
	}
	s.lag += now - s.fabric.Now()
	s.more = true
}

// hurry lets time jump until no packet is under way.
func (s *Server) hurry() {
	for range stepsPerTurn {
		if s.exchange(); s.fabric.InFlight() == 0 || !s.fabric.Step() {
			return
		}
	}
	s.more = true
}

// exchange gives clients and companions what has arrived for them, and reports
// whether a companion has sent something.
func (s *Server) exchange() (moved bool) {
	s.deliver()
	for _, c := range s.companions {
		moved = c.Turn() || moved
	}
	return moved
}

// housekeep looks after what is due by the clock.
func (s *Server) housekeep() error {
	now := s.clock
	if now >= s.expireAt {
		s.expireAt = now + expiryPeriod
		s.expire()
	}
	if now >= s.deathAt {
		s.deathAt = now + deathPeriod
		s.bury()
		if s.recorder != nil {
			return s.recorder.flush()
		}
	}
	return nil
}
