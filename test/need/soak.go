package need

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Soak reports whether the long form of a test was asked for: IBWARDEN_SOAK is set.
func Soak() bool { return os.Getenv("IBWARDEN_SOAK") != "" }

// Rounds is a number of rounds: few, or many in a soak.
func Rounds(few, many uint64) uint64 {
	if Soak() {
		return many
	}
	return few
}

// Seed is the seed of a random test, which it prints: SOAK_SEED if that is set, in a soak
// another one every time, and else the given one.
func Seed(t testing.TB, otherwise uint64) uint64 {
	t.Helper()
	seed := otherwise
	if text := os.Getenv("SOAK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 0, 64); err != nil {
			t.Fatalf("SOAK_SEED: %v", err)
		}
	} else if Soak() {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("SOAK_SEED=%d", seed)
	return seed
}
