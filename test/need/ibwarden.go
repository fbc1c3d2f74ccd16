package need

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var builtIn string

// Ibwarden is the path of ibwarden, built once for all tests of a package, and removed
// by Main. Any user may run it.
var Ibwarden = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ibwarden-test-")
	if err != nil {
		return "", err
	}
	builtIn = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ibwarden")
	return path, Build(path, Module+"/cmd/ibwarden")
})

// Module is the path of the module.
const Module = "github.com/ibwarden/ibwarden"

// Build builds a package into a file, or several into a directory.
func Build(to string, packages ...string) error {
	if out, err := exec.Command("go", append([]string{"build", "-o", to}, packages...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// Main is the TestMain of a package whose tests call Ibwarden: it runs them, removes
// what was built, and returns their exit status.
func Main(m *testing.M) int {
	defer func() {
		if builtIn != "" {
			os.RemoveAll(builtIn)
		}
	}()
	return m.Run()
}
