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
// by Main. Any user may run it. It is a copy of the program IBWARDEN_BUILT where that is
// set: scripts/test builds one for all packages.
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
	built := os.Getenv("IBWARDEN_BUILT")
	if built == "" {
		return path, Build(path, Module+"/cmd/ibwarden")
	}
	// Not by package os: go test would keep no result of a test that reads a file so new.
	if out, err := exec.Command("cp", built, path).CombinedOutput(); err != nil {
		return "", fmt.Errorf("IBWARDEN_BUILT: %w: %s", err, out)
	}
	return path, nil
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
