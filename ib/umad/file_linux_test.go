package umad

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// never is a wait that no test sees the end of.
const never = time.Hour

// TestWake: a wait ends when another goroutine says so, and what there is to read is still
// there; the same for one that said so before, and one that comes while the file is closed.
func TestWake(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "dev/infiniband")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "umad0"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(root, "umad0")
	if err != nil {
		t.Fatal(err)
	}
	w, is := f.(Waker)
	if !is {
		t.Fatal("the file is no Waker")
	}
	wait := func(want bool) {
		t.Helper()
		if readable, err := f.Wait(never); err != nil || readable != want {
			t.Fatalf("%v, %v, want %v", readable, err, want)
		}
	}
	w.Wake()
	w.Wake()
	wait(false)
	for range 100 {
		go w.Wake()
		wait(false)
	}
	// What was woken for does not wake again.
	if readable, err := f.Wait(time.Millisecond); err != nil || readable {
		t.Fatal(readable, err)
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	w.Wake()
	wait(true)
	var wakers sync.WaitGroup
	for range 4 {
		wakers.Go(func() {
			for range 1000 {
				w.Wake()
			}
		})
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	wakers.Wait()
}
