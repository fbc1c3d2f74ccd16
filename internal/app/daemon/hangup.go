package daemon

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/ibwarden/ibwarden/internal/link"
)

// Hangups tells of SIGHUP, and wakes the link for it, if it can be woken.
func Hangups(to link.Link) (hangup chan struct{}, stop func()) {
	hangup = make(chan struct{}, 1)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for range signals {
			select {
			case hangup <- struct{}{}:
			default: // it is about to be noticed
			}
			if w, ok := to.(link.Waker); ok {
				w.Wake()
			}
		}
	}()
	return hangup, func() {
		signal.Stop(signals)
		close(signals)
	}
}
