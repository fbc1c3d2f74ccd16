package servicecmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// TestOwnerIsTenant: --owner asks what --tenant asks, after one line about it; both are refused.
func TestOwnerIsTenant(t *testing.T) {
	s, server := recording(t)
	const hint = "ibwarden: \"--owner\" is now \"--tenant\"\n"
	for _, line := range []string{"port list", "partition list", "partition create x --pkey 0x0100"} {
		now, asked, err := s.again(t, server, line+" --tenant red", 0, 0)
		old, askedOld, errOld := s.again(t, server, line+" --owner red", 0, 0)
		if err != nil || errOld != nil || old != hint+now || strings.Contains(now, "--owner") || !slices.Equal(asked, askedOld) || !strings.Contains(strings.Join(asked, ""), "red") {
			t.Errorf("%s: %v, %v\n%s%v\n%s%v", line, err, errOld, now, asked, old, askedOld)
		}
		if _, asked, err := s.again(t, server, line+" --owner red --tenant blue", 0, 0); statusOf(err) != terminal.Misuse || len(asked) > 0 {
			t.Errorf("%s with both: %v, %v", line, err, asked)
		}
	}
}
