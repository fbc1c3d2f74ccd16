package umad

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Times of a link.
const (
	// requestTimeout is how long the kernel waits for an answer: as OpenSM.
	requestTimeout = 200 * time.Millisecond
	// engineTimeout is how long the engine waits before it helps itself: it is
	// there for a kernel that says nothing.
	engineTimeout = requestTimeout + 100*time.Millisecond
	// longestNap bounds one wait, so that the end of a context is noticed soon.
	longestNap = 100 * time.Millisecond
)

// Options are what a link may be told.
type Options struct {
	// Notice, when set, is told in words what an operator should know: that
	// the device went, and that it is back.
	Notice func(text string)
}

// Link is a place at one port. One goroutine may use it; Wake is for all.
type Link struct {
	waking sync.Mutex
	waker  umad.Waker // of file; nil for none. waking guards it

	system  System
	options Options
	place   umad.Place // what is looked for, by GUID once the port was found
	port    umad.Port
	file    umad.File
	issm    io.Closer
	wantsSM bool
	// Agents: askers for requests and what answers others, hearers for what
	// nobody asked; of directed routes and of LIDs.
	askers, hearers []uint32
	// admin is the agent of subnet administration, while there is one.
	admin []uint32
	// performance is the agent for answers of performance management.
	performance []uint32
	keys        keyTable
	flights     map[uint32]*flight // under way, by our number
	copies      map[uint64]int     // of each of the engine's transactions
	serial      uint32
}

// flight is a request that is under way.
type flight struct{ smp mad.SMP }

var (
	_ link.Link  = (*Link)(nil)
	_ link.Waker = (*Link)(nil)
)

// Open opens a port. The error says what is missing.
func Open(s System, w umad.Place, o Options) (*Link, error) {
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	l := &Link{system: s, options: o, place: w}
	l.forget()
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("umad: %w", err)
	}
	l.place = umad.Place{GUID: l.port.GUID}
	return l, nil
}

// Own is the port as its adapter shows it to this machine.
func (l *Link) Own() (ib.NodeGUID, ib.PortGUID) { return 0, l.port.GUID }

// Port is the port of the link as it was when it was opened.
func (l *Link) Port() umad.Port { return l.port }

func (l *Link) forget() {
	l.flights = make(map[uint32]*flight)
	l.copies = make(map[uint64]int)
}

// open opens the umad file and registers for answers.
func (l *Link) open() error {
	devices, err := l.system.Devices()
	if err != nil {
		return err
	}
	port, err := umad.Choose(devices, l.place)
	if err != nil {
		return err
	}
	file, err := l.system.OpenMAD(port.MAD)
	if err != nil {
		return umad.Explain(port.MAD, err)
	}
	l.port, l.file = port, file
	waker, _ := file.(umad.Waker)
	l.setWaker(waker)
	if err = file.Ioctl(umad.CommandEnablePKey, nil); err == nil {
		l.askers, err = l.register(umad.Methods{})
	}
	if err != nil {
		l.close()
		return umad.Explain(port.MAD, err)
	}
	return nil
}

// register makes an agent for each of the two classes.
func (l *Link) register(methods umad.Methods) (ids []uint32, err error) {
	for _, class := range []mad.Class{mad.ClassSubnDirected, mad.ClassSubnLID} {
		r := umad.Registration{Class: class, ClassVersion: mad.ClassVersion, Methods: methods}
		argument := r.Encode()
		if err := l.file.Ioctl(umad.CommandRegister, argument); err != nil {
			l.unregister(ids)
			return nil, err
		}
		if r, err = umad.ReadRegistration(umad.CommandRegister, argument); err != nil {
			return nil, err
		}
		ids = append(ids, r.ID)
	}
	return ids, nil
}

func (l *Link) unregister(ids []uint32) {
	for _, id := range ids {
		_ = l.file.Ioctl(umad.CommandUnregister, umad.EncodeID(id)) // of a device that is gone there is none
	}
}

// Limits are those of a real fabric, with the kernel's clock for time-outs.
func (l *Link) Limits() transact.Limits {
	limits := transact.DefaultLimits()
	limits.FirstTimeout, limits.MinTimeout = engineTimeout, engineTimeout
	return limits
}

// SetIsSM announces a subnet manager at this port, and takes what others send
// to one. It fails while another manager does so.
func (l *Link) SetIsSM(on bool) error {
	l.wantsSM = on
	if !on {
		l.resign()
		return nil
	}
	if err := l.announce(); err != nil {
		l.wantsSM = false
		return fmt.Errorf("umad: %w", err)
	}
	return nil
}

func (l *Link) announce() (err error) {
	if l.issm != nil {
		return nil
	}
	l.hearers, err = l.register(umad.MethodSet(mad.MethodGet, mad.MethodSet, mad.MethodTrap))
	if err != nil {
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EPERM) {
			err = fmt.Errorf("another program has registered for subnet management at this port%s: %w", l.who(), err)
		}
		return fmt.Errorf("%s: %w", &l.port, err)
	}
	if l.admin, err = l.registerAdministration(); err != nil {
		l.resign()
		return fmt.Errorf("%s: another program has registered for subnet administration at this port%s: %w", &l.port, l.who(), err)
	}
	if l.performance, err = l.registerPerformance(); err != nil {
		l.resign()
		return fmt.Errorf("%s: registering for performance management: %w", &l.port, err)
	}
	if l.issm, err = l.system.OpenIsSM(l.port.IsSM); err != nil {
		l.issm = nil
		l.resign()
		if errors.Is(err, syscall.EAGAIN) {
			return fmt.Errorf("/dev/infiniband/%s: another subnet manager holds it on this port%s: %w", l.port.IsSM, l.who(), err)
		}
		return umad.Explain(l.port.IsSM, err)
	}
	return nil
}

// who says which program manages at the port, and what to do about it.
func (l *Link) who() string {
	h, some := l.system.Holder(&l.port, l.port.IsSM)
	if !some {
		h, some = l.system.Holder(&l.port, l.port.MAD)
	}
	if !some {
		return ", OpenSM or another ibwarden run: stop it, or change its policy file and send it SIGHUP"
	}
	return ": " + h.what()
}

func (l *Link) resign() {
	if l.file != nil {
		l.unregister(l.hearers)
		l.unregister(l.admin)
		l.unregister(l.performance)
	}
	l.hearers, l.admin, l.performance = nil, nil, nil
	if l.issm != nil {
		l.issm.Close()
		l.issm = nil
	}
}

// Close leaves the port.
func (l *Link) Close() error {
	l.resign()
	return l.close()
}

func (l *Link) close() error {
	if l.file == nil {
		return nil
	}
	l.setWaker(nil)
	err := l.file.Close()
	l.file = nil
	return err
}

func (l *Link) setWaker(w umad.Waker) {
	l.waking.Lock()
	defer l.waking.Unlock()
	l.waker = w
}

// Wake ends a wait of Drive's, as link.Waker says. While the device is gone a call is lost.
func (l *Link) Wake() {
	l.waking.Lock()
	defer l.waking.Unlock()
	if l.waker != nil {
		l.waker.Wake()
	}
}

// Drive moves packets between the engine and the port.
func (l *Link) Drive(ctx context.Context, e link.Engine, done func() bool) error {
	l.forget() // answers to another engine's requests are nobody's
	p := pump{Link: l, engine: e, buf: make([]byte, bufferSize)}
	p.general, _ = e.(link.Long)
	for !done() {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := p.turn()
		if umad.IsGone(err) {
			err = p.comeBack(ctx, done)
		}
		if err != nil {
			return fmt.Errorf("umad: %s: %w", &l.port, err)
		}
		e.Expire(l.system.Now())
	}
	return nil
}

// batchMax is how many messages are read before any is answered, and how many
// answers of subnet administration leave before more is read: the kernel keeps
// what arrived in one line, and who is served first is the administration's to
// say.
const batchMax = 256

// bufferSize holds any message of these classes and its header.
const bufferSize = umad.HeaderSize + mad.Size

type pump struct {
	*Link
	engine link.Engine
	// general is the engine, if it is one.
	general link.Long
	smp     mad.SMP
	buf     []byte // bufferSize or, for a while, longer
	more    bool   // the administration had more to send
}

// turn sends what there is, waits, and takes in what has come.
func (p *pump) turn() error {
	if p.file == nil {
		return syscall.ENODEV
	}
	if err := p.sendAll(); err != nil {
		return err
	}
	nap := longestNap
	if due, ok := p.engine.Deadline(); ok {
		nap = min(max(due-p.system.Now(), 0), longestNap)
	}
	if p.more {
		nap = 0
	}
	readable, err := p.file.Wait(nap)
	if err != nil || !readable {
		return err
	}
	for range batchMax {
		n, err := p.file.Read(p.buf)
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return p.sendAll()
		case errors.Is(err, syscall.ENOSPC):
			p.buf = make([]byte, 2*len(p.buf)) // the message is longer, and stays until it fits
			continue
		case err != nil:
			return err
		}
		p.take(p.buf[:n])
		if len(p.buf) > bufferSize {
			p.buf = make([]byte, bufferSize)
		}
	}
	return nil
}

func (p *pump) sendAll() error {
	for {
		dlid, ok := p.engine.Next(p.system.Now(), &p.smp)
		if !ok {
			return p.sendGeneral()
		}
		if err := p.send(dlid); err != nil {
			return err
		}
	}
}

// send writes one packet. One that the kernel refuses is as good as lost on
// the way: the engine's own clock sees to it.
func (p *pump) send(dlid ib.LID) error {
	h := umad.Header{LID: dlid}
	if p.smp.Class == mad.ClassSubnLID {
		h.ID = p.askers[1]
	} else {
		h.ID = p.askers[0]
	}
	out := p.smp
	asks := !out.Method.IsResponse() && out.Method != mad.MethodTrapRepress && out.Method != mad.MethodTrap
	if asks {
		h.TimeoutMilliseconds = uint32(p.patience() / time.Millisecond)
		p.serial = p.number()
		out.TransactionID = uint64(p.serial)
	}
	b := p.buf[:bufferSize]
	h.Put(b, true)
	if err := out.Encode((*[mad.Size]byte)(b[umad.HeaderSize:])); err != nil {
		return err
	}
	if _, err := p.file.Write(b); err != nil {
		if umad.IsGone(err) {
			return err
		}
		return nil
	}
	if asks {
		p.flights[p.serial] = &flight{p.smp}
		p.copies[p.smp.TransactionID]++
	}
	return nil
}

// patience is how long the kernel waits for the answer to the packet at hand. It
// drops what comes later, so that the last try has all the time that the agent
// may take.
func (p *pump) patience() time.Duration {
	wait := time.Duration(0)
	if e, ok := p.engine.(link.Patient); ok {
		wait = e.LastWait(&p.smp)
	}
	return max(requestTimeout, wait-(engineTimeout-requestTimeout))
}

// number is one that no request under way has, and that nobody can tell before:
// it is all that the other side needs to answer.
func (p *pump) number() uint32 {
	for {
		var b [4]byte
		rand.Read(b[:]) // never fails: it would end the program
		n := binary.BigEndian.Uint32(b[:])
		if _, taken := p.flights[n]; n != 0 && !taken {
			return n
		}
	}
}

// take hands the engine what was read.
func (p *pump) take(b []byte) {
	h, err := umad.ReadHeader(b, true)
	if err != nil {
		return
	}
	m, now := b[umad.HeaderSize:], p.system.Now()
	if len(m) >= mad.HeaderSize && (mad.Class(m[1]) == mad.ClassSubnAdm || mad.Class(m[1]) == mad.ClassPerfMgt) {
		p.takeGeneral(now, &h, m)
		return
	}
	if h.Status != 0 {
		var head mad.Header
		if head.UnmarshalBinary(m) == nil {
			p.timedOut(now, uint32(head.TransactionID))
		}
		return
	}
	if len(m) < mad.Size || p.smp.UnmarshalBinary(m[:mad.Size]) != nil {
		return
	}
	if p.smp.Method.IsResponse() {
		f := p.land(uint32(p.smp.TransactionID))
		if f == nil {
			return
		}
		p.smp.TransactionID = f.smp.TransactionID
		if p.smp.AttributeID == smp.AttrPKeyTable && p.smp.HopCount == 0 {
			p.keys.some = false // the port's own may be another now
		}
	}
	p.engine.Receive(now, &p.smp, h.LID)
}

// land takes a request off the books.
func (p *pump) land(number uint32) *flight {
	f := p.flights[number]
	if f == nil {
		return nil
	}
	delete(p.flights, number)
	if p.copies[f.smp.TransactionID]--; p.copies[f.smp.TransactionID] == 0 {
		delete(p.copies, f.smp.TransactionID)
	}
	return f
}

// timedOut is told by the kernel. While another copy is under way the request
// is not lost.
func (p *pump) timedOut(now time.Duration, number uint32) {
	if f := p.land(number); f != nil && p.copies[f.smp.TransactionID] == 0 {
		p.engine.Lost(now, &f.smp)
	}
}
