package umadtest

import (
	enc "encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
)

// attackWord is the first word with which this test binary is an attacker: a
// program of a tenant's root, with nothing but /dev/infiniband of his host.
const attackWord = "attack"

// attackMain runs the attack of that name and says what it came to.
func attackMain(name string, args []string) int {
	all := append([]anAttack{
		{name: "fuzz", run: fuzz}, {name: "register", run: register}, {name: "hear-channel", run: hearChannel}, {name: "speak-channel", run: speakChannel},
		{name: "by-index", run: byIndex}, {name: "calls", run: calls},
	}, attacks...)
	for _, a := range all {
		if a.name != name {
			continue
		}
		got, err := a.run(args)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println("reached:", got)
		return 0
	}
	fmt.Fprintf(os.Stderr, "no attack %q\n", name)
	return 2
}

// ownWord reads a word of the attributes in /sys of an attacker's own port.
func ownWord(name string) string {
	found, _ := filepath.Glob("/sys/class/infiniband/*/ports/1/" + name) // the pattern is right
	text, err := os.ReadFile(append(found, "")[0])
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func ownNumber(name string) uint64 {
	n, _ := strconv.ParseUint(ownWord(name), 0, 64)
	return n
}

// ownGID is the first GID of the port.
func ownGID() (g ib.GID) {
	for i, part := range strings.Split(ownWord("gids/0"), ":") {
		n, _ := strconv.ParseUint(part, 16, 16)
		enc.BigEndian.PutUint16(g[2*i:], uint16(n))
	}
	return g
}

// gidOf is the GID of the port with a GUID in the attacker's subnet.
func gidOf(text string) (ib.GID, error) {
	guid, err := ib.ParsePortGUID(text)
	if err != nil {
		return ib.GID{}, err
	}
	g := ownGID()
	enc.BigEndian.PutUint64(g[8:], uint64(guid))
	return g, nil
}

// attackFile is an open umad file with one agent.
type attackFile struct {
	fd   int
	id   uint32
	next uint64
}

// openAttack opens the port's file and registers for a class.
func openAttack(r umad.Registration) (*attackFile, error) {
	fd, err := unix.Open("/dev/infiniband/umad0", unix.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := &attackFile{fd: fd, next: uint64(os.Getpid())}
	if err := f.ioctl(umad.CommandEnablePKey, nil); err != nil {
		return nil, err
	}
	argument := r.Encode()
	if err := f.ioctl(umad.CommandRegister, argument); err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	r, err = umad.ReadRegistration(umad.CommandRegister, argument)
	f.id = r.ID
	return f, err
}

func (f *attackFile) ioctl(command uint32, argument []byte) error {
	var p unsafe.Pointer
	if len(argument) > 0 {
		p = unsafe.Pointer(&argument[0])
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(f.fd), uintptr(command), uintptr(p)); errno != 0 {
		return errno
	}
	return nil
}

// patienceMAD is how long the kernel waits for an answer to an attacker.
const patienceMAD = 60 * time.Millisecond

// post writes one message.
func (f *attackFile) post(h umad.Header, message []byte) error {
	h.ID = f.id
	b := make([]byte, umad.HeaderSize+len(message))
	h.Put(b, true)
	copy(b[umad.HeaderSize:], message)
	for {
		_, err := unix.Write(f.fd, b)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// read takes the next message, or none until time is up.
func (f *attackFile) read(wait time.Duration) (h umad.Header, message []byte, some bool) {
	fds := []unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}}
	ts := unix.NsecToTimespec(max(wait, 0).Nanoseconds())
	if n, err := unix.Ppoll(fds, &ts, nil); err != nil || n == 0 {
		return h, nil, false
	}
	b := make([]byte, 1<<20)
	n, err := unix.Read(f.fd, b)
	if err != nil || n < umad.HeaderSize {
		return h, nil, false
	}
	h, err = umad.ReadHeader(b[:n], true)
	return h, b[umad.HeaderSize:n], err == nil
}

// ask writes a request and waits for its answer or for the kernel to give up.
func (f *attackFile) ask(h umad.Header, message []byte, tries int) ([]byte, bool, error) {
	h.TimeoutMilliseconds, h.Retries = uint32(patienceMAD.Milliseconds()), uint32(tries-1)
	if err := f.post(h, message); errors.Is(err, unix.EINVAL) {
		return nil, false, nil // so Linux says that the agent of this very port gives no answer
	} else if err != nil {
		return nil, false, err
	}
	want := enc.BigEndian.Uint32(message[12:])
	for end := time.Now().Add(patience); time.Now().Before(end); {
		got, m, some := f.read(time.Until(end))
		if some && len(m) >= mad.HeaderSize && enc.BigEndian.Uint32(m[12:]) == want {
			return m, got.Status == 0, nil
		}
	}
	return nil, false, errors.New("the kernel says nothing of a request")
}

// smpFile is for requests of subnet management, by a directed route or LID.
func smpFile(class mad.Class) (*attackFile, error) {
	return openAttack(umad.Registration{Class: class, ClassVersion: mad.ClassVersion})
}

// smp sends a request of subnet management by a directed route, or to a LID when
// that is not 0.
func (f *attackFile) smp(path mad.Path, lid ib.LID, method mad.Method, modifier uint32, attr smp.Attribute, key ib.MKey) (*mad.SMP, bool, error) {
	f.next++
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion, Method: method,
		TransactionID: f.next, AttributeID: attr.ID(), AttributeModifier: modifier, MKey: key,
	}
	h := umad.Header{LID: lid}
	if lid == 0 {
		h.LID = ib.LIDPermissive
		p.Class, p.HopCount, p.DrSLID, p.DrDLID = mad.ClassSubnDirected, uint8(len(path)), ib.LIDPermissive, ib.LIDPermissive
		for i, n := range path {
			p.InitialPath[i+1] = byte(n)
		}
	}
	if method == mad.MethodSet {
		if err := attr.Encode(&p.Data); err != nil {
			return nil, false, err
		}
	}
	var bytes [mad.Size]byte
	if err := p.Encode(&bytes); err != nil {
		return nil, false, err
	}
	m, answered, err := f.ask(h, bytes[:], 1)
	if err != nil || !answered {
		return nil, false, err
	}
	var reply mad.SMP
	if err := reply.UnmarshalBinary(m); err != nil {
		return nil, false, err
	}
	if attr.UnmarshalBinary(reply.Data[:]) != nil {
		return &reply, false, nil
	}
	return &reply, reply.Status == mad.StatusOK, nil
}

// administration asks subnet administration; the kernel joins long answers.
func (f *attackFile) administration(method mad.Method, mask sa.ComponentMask, record sa.Record, tries int) (status mad.Status, records [][]byte, answered bool, err error) {
	f.next++
	body, err := record.AppendBinary(nil)
	if err != nil {
		return 0, nil, false, err
	}
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion, Method: method,
		TransactionID: f.next, AttributeID: record.ID(),
	}, ComponentMask: mask}
	copy(m.Data[:], body)
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		return 0, nil, false, err
	}
	got, answered, err := f.ask(generalTo(ib.LID(ownNumber("sm_lid"))), bytes, tries)
	if err != nil || !answered || len(got) < sa.DataOffset {
		return 0, nil, false, err
	}
	var head mad.Header
	if err := head.UnmarshalBinary(got); err != nil {
		return 0, nil, false, err
	}
	size := int(enc.BigEndian.Uint16(got[44:])) * 8
	rest := got[sa.DataOffset:]
	if head.Method == mad.MethodGetResp || size == 0 {
		size = len(rest)
	}
	for ; head.Status == mad.StatusOK && len(rest) >= size && size > 0; rest = rest[size:] {
		records = append(records, rest[:size])
	}
	return head.Status, records, true, nil
}

// generalTo addresses a queue pair 1.
func generalTo(lid ib.LID) umad.Header {
	return umad.Header{LID: lid, QPN: 1, QKey: uint32(ib.QKeyGSI)}
}

// adminFile is for requests of subnet administration.
func adminFile() (*attackFile, error) {
	return openAttack(umad.Registration{QPN: 1, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion, RMPPVersion: 1})
}
