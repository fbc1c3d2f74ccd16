package ibsimd

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// quietLook is the time between two looks whether the programs of clients sleep.
const quietLook = 20 * time.Microsecond

// keepStep lets the fabric's time move until a client gets something, once no program will
// send anything more before that: all of them sleep, and have sent nothing before they did.
func (s *Server) keepStep() {
	if s.heardAny() || s.fabric.InFlight() == 0 || !s.config.Quiet() {
		return
	}
	if err := PollDgram(s.polled[:], 0, false); err != nil || s.heardAny() {
		return // the next turn hears it, as its wait finds it again
	}
	for s.deliver(); s.fabric.InFlight() > 0 && !s.owes() && s.fabric.Step(); {
		s.deliver()
	}
}

// heardAny reports whether a client has sent something.
func (s *Server) heardAny() bool {
	return s.polled[pollControl].Revents != 0 || slices.ContainsFunc(s.polled[pollClients:], func(p unix.PollFd) bool { return p.Revents&^unix.POLLOUT != 0 })
}
