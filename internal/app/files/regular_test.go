package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	for _, size := range []int{0, 1, pieceSize - 1, pieceSize, pieceSize + 1, 3*pieceSize + 7} {
		want := bytes.Repeat([]byte("bytes, "), size/7+1)[:size]
		path := write(t, want)
		if got, err := Read(path, int64(size)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d were read, %v", size, len(got), err)
		}
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(link, pieceSize*4); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes by a link: %d were read, %v", size, len(got), err)
		}
		if size > 0 {
			if got, err := Read(path, int64(size-1)); err == nil || got != nil || !strings.Contains(err.Error(), path+": larger than") {
				t.Errorf("%d bytes where one fewer may be: %d were read, %v", size, len(got), err)
			}
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// Whatever else a path leads to is named, at once, and nobody waits.
func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	to := filepath.Join(dir, "to-fifo")
	if err := os.Symlink(fifo, to); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]string{
		fifo: "a FIFO", to: "a FIFO", dir: "a directory", socket: "a socket", "/dev/zero": "a device", "/dev/tty": "a device",
	} {
		_, err := Read(path, 1<<20)
		if want := path + ": " + kind + ": want a regular file"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A FIFO that comes to stand where a file was is found out once it is open.
func TestFIFOInPlaceOfAFile(t *testing.T) {
	dir := t.TempDir()
	path, spare := filepath.Join(dir, "file"), filepath.Join(dir, "spare")
	if err := syscall.Mkfifo(spare, 0o600); err != nil {
		t.Fatal(err)
	}
	stop := make(chan bool)
	swapped := make(chan bool)
	go func() {
		defer close(swapped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(path)
			_ = os.WriteFile(path, []byte("bytes"), 0o600)
			_ = os.Remove(path)
			_ = os.Link(spare, path)
		}
	}()
	read, refused := 0, 0
	for range 3000 {
		switch data, err := Read(path, 64); {
		case err == nil && (string(data) == "bytes" || len(data) == 0):
			read++
		case err != nil && (errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "a FIFO: want a regular file")):
			refused++
		default:
			t.Fatalf("%q, %v", data, err)
		}
	}
	close(stop)
	<-swapped
	if read == 0 || refused == 0 {
		t.Errorf("%d read, %d refused", read, refused)
	}
}

// A file that grows while it is read gives no more than it may.
func TestFileThatGrows(t *testing.T) {
	path := write(t, []byte("12345678"))
	f, err := Open(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(path, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(f); err == nil || len(data) != 0 || !strings.Contains(err.Error(), "larger than 10 bytes") {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// slow is a file that does not answer: within is given a function that waits.
func TestWhatDoesNotAnswer(t *testing.T) {
	f := &File{path: "slow", patience: 10 * time.Millisecond}
	release, late := make(chan bool), make(chan int, 1)
	_, err := within(f, "opened", func() (int, error) {
		<-release
		return 7, nil
	}, func(n int) { late <- n })
	if err == nil || err.Error() != "slow: not opened within 10ms: want a regular file that can be read" {
		t.Errorf("%v", err)
	}
	close(release)
	if n := <-late; n != 7 {
		t.Errorf("late: %d", n)
	}
}

// SIGTERM ends the wait for a file that does not answer.
func TestToldToEnd(t *testing.T) {
	if os.Getenv("REGULAR_WAITS") != "" {
		f := &File{path: "slow", patience: time.Hour}
		_, err := within(f, "read", func() (int, error) {
			os.Stdout.WriteString("waiting\n")
			select {}
		}, nil)
		os.Stdout.WriteString(err.Error() + "\n")
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestToldToEnd$")
	c.Env = append(os.Environ(), "REGULAR_WAITS=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("waiting\n"))
	if _, err := io.ReadFull(out, said); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil || !strings.Contains(string(rest), "slow: interrupted before it was read") {
		t.Errorf("%v: %s", err, rest)
	}
}

// TestSecret: with every mode, a secret is read if nobody but its owner can read or write the
// file; from the directory of systemd's credentials also with 0440.
func TestSecret(t *testing.T) {
	given := t.TempDir()
	t.Setenv(credentialsVariable, given+"/")
	for _, dir := range []string{t.TempDir(), given} {
		path := filepath.Join(dir, "secret")
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		for mode := range fs.FileMode(0o1000) {
			if mode&0o400 == 0 { // root reads it, and others do not
				continue
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			good := mode&0o077 == 0 || dir == given && mode&0o037 == 0
			data, err := Secret(path, 1)
			if good && (err != nil || string(data) != "x") {
				t.Errorf("%s, mode %04o: %q, %v", path, mode, data, err)
			}
			if !good && (err == nil || data != nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: mode %04o", path, mode)) || !strings.Contains(err.Error(), "chmod 600 "+path)) {
				t.Errorf("%s, mode %04o: %q, %v: want an error that names the file, its mode and what to do", path, mode, data, err)
			}
		}
	}
	// What is below it is not what systemd gave.
	below := filepath.Join(given, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(below, "secret"), nil, 0o440); err != nil {
		t.Fatal(err)
	}
	if _, err := Secret(filepath.Join(below, "secret"), 1); err == nil {
		t.Error("mode 0440 below the directory of credentials is taken")
	}
}

// TestNewSecret: whatever the umask, nobody else can read it, and no file is lost for it.
func TestNewSecret(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "token")
	f, err := NewSecret(path)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("first")
	f.Close()
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := NewSecret(path); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("once more: %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "first" {
		t.Errorf("the file has %q", data)
	}
}
