package terminal

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// told passes on what is written.
type told chan string

func (c told) Write(p []byte) (int, error) {
	c <- string(p)
	return len(p), nil
}

// What takes long is told of while it lasts, and its error comes back; what does
// not says nothing.
func TestDuring(t *testing.T) {
	heard, failure := make(told), errors.New("failed")
	err := during(heard, "counting", func() error {
		if line := <-heard; !strings.HasPrefix(line, "counting: ") {
			t.Errorf("told %q", line)
		}
		go func() { // one more may be on its way
			for range heard {
			}
		}()
		return failure
	}, time.Millisecond)
	close(heard)
	if !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	var quiet strings.Builder
	if err := during(&quiet, "nothing", func() error { return nil }, time.Hour); err != nil || quiet.Len() > 0 {
		t.Errorf("%v, told %q", err, quiet.String())
	}
	var w io.Writer = &quiet
	ReadingProgress(w)(7)
	if quiet.String() != "reading: 7 packets sent\n" {
		t.Errorf("told %q", quiet.String())
	}
}
