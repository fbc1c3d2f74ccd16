package need

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Need goes on when err is nil. Else err tells what is missing: then the test is
// skipped, or fails in CI.
func Need(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%v: CI has to have it", err)
	}
	t.Skip(err)
}

// Find is the path of a program. It looks in the directories for administrators
// too, where the path of an ordinary user does not lead.
func Find(name string) (string, error) {
	for _, dir := range []string{"", "/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// Program is Find for a test that needs the program.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := Find(name)
	Need(t, err)
	return path
}
