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
type DgramAddress struct{}

// IsNamed is false.
func (a *DgramAddress) IsNamed() bool { return false }

// IPv4 is no address.
func (a *DgramAddress) IPv4() netip.Addr { return netip.Addr{} }

// Abstract names nothing here.
func Abstract(string) DgramAddress { return DgramAddress{} }

// Internet names nothing here.
func Internet(netip.Addr, uint16) DgramAddress { return DgramAddress{} }

// ListenDgram is an error.
func ListenDgram(DgramAddress) (int, error) { return -1, errLinuxOnly }

// EventCounter is an error.
func EventCounter() (int, error) { return -1, errLinuxOnly }

// Unread is an error.
func Unread(int) (int, error) { return 0, errLinuxOnly }

// NoteUsers is an error.
func NoteUsers(int) error { return errLinuxOnly }

// ConnectDgram is an error.
func ConnectDgram(int, DgramAddress) error { return errLinuxOnly }

// DgramAnswers is false: no socket is there.
func DgramAnswers(DgramAddress) bool { return false }

// DgramReceiver receives nothing.
type DgramReceiver struct{ Senders []DgramAddress }

// NewReceiver makes one that receives nothing.
func NewReceiver(int, int, bool) *DgramReceiver { return &DgramReceiver{} }

// ReceiveOne is an error.
func (r *DgramReceiver) ReceiveOne(int) (int, error) { return 0, errLinuxOnly }

// Await is an error.
func (r *DgramReceiver) Await(int) (int, error) { return 0, errLinuxOnly }

// Receive is an error.
func (r *DgramReceiver) Receive(int) (int, error) { return 0, errLinuxOnly }

// Datagram is empty.
func (r *DgramReceiver) Datagram(int) []byte { return nil }

// User knows nobody.
func (r *DgramReceiver) User(int) (uid int, known bool) { return 0, false }

// SendTo sends nothing.
func SendTo(int, []byte, *DgramAddress) {}

// PollDgram is an error.
func PollDgram([]unix.PollFd, time.Duration, bool) error { return errLinuxOnly }

// DgramSender sends nothing.
type DgramSender struct{}

// NewSender makes one that sends nothing.
func NewSender(int) *DgramSender { return &DgramSender{} }

// Send is an error.
func (s *DgramSender) Send(int, int, func(int) []byte) (int, error) { return 0, errLinuxOnly }
