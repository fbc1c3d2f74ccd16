//go:build !linux

package ibsimd

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// errLinuxOnly is what a system other than Linux says: the local sockets of ibsim
// are in Linux's abstract namespace. Without a socket nothing else here is called.
var errLinuxOnly = fmt.Errorf("a simulated fabric is served to other programs on Linux only, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)

// DgramAddress names nothing here.
type Address struct{}

// IsNamed is false.
func (a *Address) IsNamed() bool { return false }

// IPv4 is no address.
func (a *Address) IPv4() netip.Addr { return netip.Addr{} }

// Abstract names nothing here.
func Abstract(string) Address { return Address{} }

// Internet names nothing here.
func Internet(netip.Addr, uint16) Address { return Address{} }

// ListenDgram is an error.
func Listen(Address) (int, error) { return -1, errLinuxOnly }

// EventCounter is an error.
func EventCounter() (int, error) { return -1, errLinuxOnly }

// Unread is an error.
func Unread(int) (int, error) { return 0, errLinuxOnly }

// NoteUsers is an error.
func NoteUsers(int) error { return errLinuxOnly }

// ConnectDgram is an error.
func Connect(int, Address) error { return errLinuxOnly }

// DgramAnswers is false: no socket is there.
func Answers(Address) bool { return false }

// DgramReceiver receives nothing.
type Receiver struct{ Senders []Address }

// NewReceiver makes one that receives nothing.
func NewReceiver(int, int, bool) *Receiver { return &Receiver{} }

// ReceiveOne is an error.
func (r *Receiver) ReceiveOne(int) (int, error) { return 0, errLinuxOnly }

// Await is an error.
func (r *Receiver) Await(int) (int, error) { return 0, errLinuxOnly }

// Receive is an error.
func (r *Receiver) Receive(int) (int, error) { return 0, errLinuxOnly }

// Datagram is empty.
func (r *Receiver) Datagram(int) []byte { return nil }

// User knows nobody.
func (r *Receiver) User(int) (uid int, known bool) { return 0, false }

// SendTo sends nothing.
func SendTo(int, []byte, *Address) {}

// PollDgram is an error.
func Poll([]unix.PollFd, time.Duration, bool) error { return errLinuxOnly }

// DgramSender sends nothing.
type Sender struct{}

// NewSender makes one that sends nothing.
func NewSender(int) *Sender { return &Sender{} }

// Send is an error.
func (s *Sender) Send(int, int, func(int) []byte) (int, error) { return 0, errLinuxOnly }
