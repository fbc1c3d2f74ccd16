package need

import (
	"testing"
	"time"
)

// Patience is the limit of waits for what a process or a goroutine does soon, on a machine
// that is busy too.
const Patience = time.Minute

// askEvery is how long Eventually pauses between two questions.
const askEvery = 2 * time.Millisecond

// Eventually asks until something is so, and fails the test when it is not within the limit.
func Eventually(t testing.TB, limit time.Duration, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(askEvery) {
		if time.Now().After(end) {
			t.Fatalf("not so within %v: %s", limit, what)
		}
	}
}
