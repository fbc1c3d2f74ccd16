package need

import (
	"os"
	"strings"
	"testing"
)

// The script fetches the version that tests look for.
func TestAxeVersion(t *testing.T) {
	script, err := os.ReadFile("../../scripts/install-axe")
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nversion=" + AxeVersion + "\n"; !strings.Contains(string(script), want) {
		t.Errorf("scripts/install-axe: want %q", want)
	}
}
