package need

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// AxeVersion is the version of axe-core that scripts/install-axe fetches.
const AxeVersion = "4.14.1"

// Axe is the text of axe-core, for a test that needs it.
func Axe(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	Need(t, err)
	text, err := os.ReadFile(filepath.Join(cache, "ibwarden", "axe-core-"+AxeVersion, "axe.min.js"))
	if os.IsNotExist(err) {
		err = fmt.Errorf("axe-core %s is not there: make tools fetches it", AxeVersion)
	}
	Need(t, err)
	return string(text)
}
