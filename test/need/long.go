package need

import "testing"

// LongReason begins the reason for which Long skips a test.
const LongReason = "long: "

// Long skips a test when go test runs with -short, as make test does; make test-all runs
// it. why is what takes long, or where else a share of it is tested.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip(LongReason + why)
	}
}

// Share is how many rounds, cases or the like a test takes: few of them with -short, which
// make test runs, else all.
func Share[N int | uint64](few, all N) N {
	if testing.Short() {
		return few
	}
	return all
}
