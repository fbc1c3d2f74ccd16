// This file prints the progress of long operations to standard error about once
// a second. An operation of less than a second prints nothing.

package terminal

import (
	"fmt"
	"io"
	"time"
)

// ProgressEvery is how often something that takes long says that it goes on.
const ProgressEvery = time.Second

// During does something, and tells w about it as long as it lasts. W is not
// written to any more when it returns.
func During(w io.Writer, what string, do func() error) error {
	return during(w, what, do, ProgressEvery)
}

func during(w io.Writer, what string, do func() error, every time.Duration) error {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for began := time.Now(); ; {
			select {
			case <-done:
				return
			case <-tick.C:
				fmt.Fprintf(w, "%s: %d s\n", what, int(time.Since(began).Seconds()))
			}
		}
	}()
	err := do()
	close(done)
	<-stopped
	return err
}

// ReadingProgress tells w how far the reading of a fabric is.
func ReadingProgress(w io.Writer) func(sent int) {
	return func(sent int) { fmt.Fprintf(w, "reading: %d packets sent\n", sent) }
}
