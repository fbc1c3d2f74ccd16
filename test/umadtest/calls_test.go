package umadtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/test/need"
)

const (
	callsOf    = 80  // system calls of a sequence
	waits      = 500 // milliseconds that the kernel waits for an answer
	permissive = int(ib.LIDPermissive)
	callsKey   = 5 // the M_Key that the port has in some sequences, and some requests
)

// TestCalls: what the umad files of a Linux machine answer to random sequences of system calls, those
// of a simulated host answer too. Not asked is where they are known to differ: reads and writes of no
// bytes, which FUSE does not pass on, and LID 0, which the driver refuses.
func TestCalls(t *testing.T) {
	soakLinux(t)
	r := newRig(t, "")
	first := need.Seed(t, 1)
	program := must(os.Executable())
	const sequences = 25
	var ours [sequences]string
	for i := range ours {
		ours[i] = r.ask("red-1", program, attackWord, "calls", fmt.Sprint(first+uint64(i)))
	}
	r.boot(192, map[string]string{attacksInside: program}, "red-1")
	r.shows("red-1", "cat "+linuxPort+"phys_state", "LinkUp")
	answered, refused := 0, 0
	for i := range ours {
		answered += strings.Count(ours[i], "method 0x81")
		refused += len(ownRefused.FindAllString(ours[i], -1))
		linux := strings.Split(r.ask("red-1", attacksInside, attackWord, "calls", fmt.Sprint(first+uint64(i))), "\n")
		for n, line := range strings.Split(ours[i], "\n") {
			if n >= len(linux) || linux[n] != line {
				t.Errorf("seed %d, call %d: %s\nLinux answers\n%s\nafter\n%s", first+uint64(i), n, line, linux[min(n, len(linux)-1)], strings.Join(linux[:n], "\n"))
				break
			}
		}
	}
	if answered < sequences || refused == 0 {
		t.Errorf("%d requests were answered in %d sequences, and %d to the own port refused", answered, sequences, refused)
	}
}

var ownRefused = regexp.MustCompile(`to the own port, .*: 0 EINVAL`)

// calls makes a random sequence of system calls on up to two umad files, and prints what comes of each.
func calls(args []string) (int, error) {
	seed, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil {
		return 0, err
	}
	c := &caller{Rand: rand.New(rand.NewPCG(seed, 0))}
	if err := setOwnKey(ib.MKey(c.one(0, callsKey, callsKey))); err != nil {
		return 0, err
	}
	for range callsOf {
		what, result := c.call()
		fmt.Println(what+":", result)
	}
	return 0, nil
}

// setOwnKey gives the port an M_Key, without which it is not even read.
func setOwnKey(key ib.MKey) error {
	f, err := smpFile(mad.ClassSubnDirected)
	if err != nil {
		return err
	}
	defer unix.Close(f.fd)
	var info smp.PortInfo
	if _, ok, err := f.smp(nil, 0, mad.MethodGet, 1, &info, callsKey); !ok || err != nil {
		return fmt.Errorf("reading the own port: %w", err)
	}
	info.LID, info.MasterSMLID, info.PortState, info.PortPhysicalState = 1, 1, smp.PortStateNoChange, smp.PhysNoChange
	info.MKey, info.MKeyProtectBits = key, 2
	if _, ok, err := f.smp(nil, 0, mad.MethodSet, 1, &info, callsKey); !ok || err != nil {
		return fmt.Errorf("writing the own port: %w", err)
	}
	return nil
}

type caller struct {
	*rand.Rand
	files [2]*attackFile
	long  [2]bool // its header
	used  [2]bool // an agent has been registered
	next  uint64
}

func (c *caller) one(of ...int) int { return of[c.IntN(len(of))] }

func (c *caller) call() (what, result string) {
	i := c.IntN(len(c.files))
	f := c.files[i]
	if f == nil {
		fd, err := unix.Open("/dev/infiniband/umad0", unix.O_RDWR|unix.O_NONBLOCK, 0)
		if err == nil {
			c.files[i], c.long[i], c.used[i] = &attackFile{fd: fd}, false, false
		}
		return fmt.Sprint(i, " open"), named(err)
	}
	switch c.IntN(12) {
	case 0:
		c.files[i] = nil
		return fmt.Sprint(i, " close"), named(unix.Close(f.fd))
	case 1:
		err := f.ioctl(umad.CommandEnablePKey, nil)
		c.long[i] = c.long[i] || err == nil
		return fmt.Sprint(i, " enable P_Key"), named(err)
	case 2, 3, 4:
		return c.register(i, f)
	case 5:
		id := uint32(c.one(0, 1, 2, 31, 32, 77))
		return fmt.Sprint(i, " unregister ", id), named(f.ioctl(umad.CommandUnregister, umad.EncodeID(id)))
	case 6:
		return fmt.Sprint(i, " unknown command"), named(f.ioctl(0x1B77, nil))
	case 7:
		b := make([]byte, c.one(1, 10, 64, 400))
		n, err := unix.Read(f.fd, b)
		return fmt.Sprint(i, " read ", len(b)), fmt.Sprint(max(n, 0), " ", named(err))
	case 8:
		b := make([]byte, c.one(1, 55, 64, 99, 100))
		if h := (umad.Header{LID: ib.LIDPermissive}); len(b) >= umad.HeaderSize {
			h.Put(b, c.long[i])
		}
		n, err := unix.Write(f.fd, b)
		return fmt.Sprint(i, " write ", len(b)), fmt.Sprint(max(n, 0), " ", named(err))
	}
	return c.send(i, f)
}

func (c *caller) register(i int, f *attackFile) (what, result string) {
	r := umad.Registration{
		QPN: uint32(c.one(0, 0, 1, 1, 2)), Class: mad.Class(c.one(0, 1, 3, 4, 9, 0x31, 0x81, 0x81, 0x50)), ClassVersion: uint8(c.one(0, 1, 1, 1, 2, 9)),
		RMPPVersion: uint8(c.one(0, 0, 1)), OUI: uint32(c.one(0, 0x001405)),
	}
	for range c.IntN(3) {
		m := c.IntN(128)
		r.Methods[m/64] |= 1 << (m % 64)
	}
	if c.IntN(2) == 0 { // most others are refused
		r.QPN, r.Class, r.ClassVersion, r.RMPPVersion, r.OUI = 0, mad.Class(c.one(0, 1, 0x81)), 1, 0, 0
	}
	command, argument := umad.CommandRegister, r.Encode()
	if c.IntN(2) == 0 {
		r.Flags = uint32(c.one(0, 0, 1, 2))
		command, argument = umad.CommandRegister2, r.Encode2()
	}
	what = fmt.Sprintf("%d %#x %+v", i, command, r)
	err := f.ioctl(command, argument)
	var got umad.Registration
	if err == nil {
		c.long[i] = c.long[i] || command == umad.CommandRegister2 && !c.used[i]
		c.used[i] = true
		got, err = umad.ReadRegistration(command, argument)
	}
	if err != nil {
		return what, named(err)
	}
	return what, fmt.Sprint("agent ", got.ID)
}

// send writes a request to this port or the next one, by a directed route, and takes what comes of it.
func (c *caller) send(i int, f *attackFile) (what, result string) {
	c.next++
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion, Method: mad.MethodGet, TransactionID: c.next,
		AttributeID: mad.AttributeID(c.one(int(smp.AttrNodeInfo), int(smp.AttrNodeDescription), int(smp.AttrSMInfo), 0x77)),
		HopCount:    uint8(c.one(0, 0, 1, 1, 2, 64)), HopPointer: uint8(c.one(0, 0, 0, 0, 1, 2)), MKey: ib.MKey(c.one(0, callsKey)),
		DrSLID: ib.LID(c.one(permissive, permissive, permissive, 0)), DrDLID: ib.LID(c.one(permissive, permissive, permissive, 0)),
	}
	h := umad.Header{ID: uint32(c.one(0, 0, 0, 1, 5, 32)), LID: ib.LIDPermissive, TimeoutMilliseconds: uint32(c.one(waits, waits, 0)), Retries: uint32(c.one(0, 1))}
	for n := 1; n <= int(min(p.HopCount, mad.MaxHops)); n++ {
		p.InitialPath[n] = uint8(c.one(1, 1, 1, 2))
	}
	var m [mad.Size]byte
	if err := p.Encode(&m); err != nil {
		return "", err.Error()
	}
	size := umad.SizeOf(c.long[i])
	b := make([]byte, size+len(m))
	h.Put(b, c.long[i])
	copy(b[size:], m[:])
	n, err := unix.Write(f.fd, b)
	to := fmt.Sprintf("%d hops %v, pointer %d, from %v to %v", p.HopCount, p.InitialPath[1:4], p.HopPointer, p.DrSLID, p.DrDLID)
	if p.HopCount == 0 && p.HopPointer == 0 && p.DrSLID == ib.LIDPermissive && p.DrDLID == ib.LIDPermissive {
		to = "the own port"
	}
	what = fmt.Sprintf("%d send %v to %s, by agent %d, M_Key %v, time-out %d", i, p.AttributeID, to, h.ID, p.MKey, h.TimeoutMilliseconds)
	result = fmt.Sprint(max(n, 0), " ", named(err))
	if err != nil || h.TimeoutMilliseconds == 0 && p.HopCount > 0 {
		return what, result
	}
	fds := []unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}}
	if n, _ := unix.Poll(fds, 4*waits); n == 0 {
		return what, result + ", nothing"
	}
	got := make([]byte, 400)
	n, err = unix.Read(f.fd, got)
	result += fmt.Sprint(", then ", max(n, 0), " ", named(err))
	if err == nil && n >= size+mad.HeaderSize {
		h, _ := umad.ReadHeader(got, c.long[i])
		x := got[size:]
		result += fmt.Sprintf(": agent %d, status %d, length %d, LID %v, QP %d, SL %d, GRH %d; class %#x, method %#x, status %x, pointer %d of %d, attribute %x",
			h.ID, h.Status, h.Length, h.LID, h.QPN, h.SL, h.GRHPresent, x[1], x[3], x[4:6], x[6], x[7], x[16:18])
	}
	return what, result
}

// named is an error's name in the kernel.
func named(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprint(err)
}
