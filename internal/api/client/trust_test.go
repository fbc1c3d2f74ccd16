package client

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestTrusted: each way in which another user could have put a socket there.
func TestTrusted(t *testing.T) {
	base := t.TempDir()
	made := 0
	// place makes a directory with a socket in it.
	place := func(t *testing.T) (dir, path string) {
		made++
		dir = filepath.Join(base, string(rune('a'+made)))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(dir, "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return dir, path
	}
	const nobody = 65534
	for _, x := range []struct {
		name string
		root bool // takes root to try
		do   func(dir, path string) (string, error)
		want string
	}{
		{"as it is made", false, func(_, path string) (string, error) { return path, nil }, ""},
		{"a directory of everybody", false, func(dir, path string) (string, error) { return path, os.Chmod(dir, 0o777) }, "others can write"},
		{"a directory of a group", false, func(dir, path string) (string, error) { return path, os.Chmod(dir, 0o770) }, "others can write"},
		{"a directory where only owners replace", false, func(dir, path string) (string, error) { return path, os.Chmod(dir, 0o777|os.ModeSticky) }, ""},
		{"a link of one's own", false, func(dir, path string) (string, error) { return path + "l/s", os.Symlink(dir, path+"l") }, ""},
		{"a link into a directory of everybody", false, func(dir, path string) (string, error) {
			return path + "l/s", errors.Join(os.Chmod(dir, 0o777), os.Symlink(dir, path+"l"))
		}, "others can write"},
		{"a link in the place of the socket", false, func(_, path string) (string, error) { return path + "l", os.Symlink(path, path+"l") }, "is no socket"},
		{"a file", false, func(_, path string) (string, error) { return path + "f", os.WriteFile(path+"f", nil, 0o600) }, "is no socket"},
		{"a directory of another's", true, func(dir, path string) (string, error) { return path, os.Chown(dir, nobody, nobody) }, "belongs to another user"},
		{"a socket of another's", true, func(dir, path string) (string, error) {
			return path, errors.Join(os.Chmod(dir, 0o777|os.ModeSticky), os.Chown(path, nobody, nobody))
		}, "belongs to another user"},
		{"a link of another's", true, func(dir, path string) (string, error) {
			return path + "l/s", errors.Join(os.Chmod(dir, 0o777|os.ModeSticky), os.Symlink(dir, path+"l"), os.Lchown(path+"l", nobody, nobody))
		}, "belongs to another user"},
	} {
		t.Run(x.name, func(t *testing.T) {
			if x.root && os.Geteuid() != 0 {
				need.Need(t, errors.New("only root can give files away"))
			}
			path, err := x.do(place(t))
			if err != nil {
				t.Fatal(err)
			}
			err = Trusted(path)
			if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
				t.Errorf("%v, want %q", err, x.want)
			}
		})
	}
}

// foreignVariable has this test program serve a socket as another user.
const foreignVariable = "IBWARDEN_TEST_FOREIGN"

// TestForeignServer: a socket at a place of root's that another user serves, as one who
// was handed it by a program of root's.
func TestForeignServer(t *testing.T) {
	if path := os.Getenv(foreignVariable); path != "" {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}
	if os.Geteuid() != 0 {
		need.Need(t, errors.New("only root can run a program as another user"))
	}
	dir := t.TempDir()
	for at := dir; at != filepath.Dir(at) && at != os.TempDir(); at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(open, "s")
	program := filepath.Join(dir, "test")
	self, err := os.Executable()
	if err == nil {
		var b []byte
		if b, err = os.ReadFile(self); err == nil {
			err = os.WriteFile(program, b, 0o755)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestForeignServer$")
	cmd.Env, cmd.Dir = append(os.Environ(), foreignVariable+"="+path), open
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	need.Eventually(t, need.Patience, "somebody listens, which is after the file is there", func() bool {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	// Its owner and its directory are root's: the kernel still tells who serves it.
	if err := errors.Join(err, os.Chown(path, 0, 0), os.Chmod(open, 0o755), Trusted(path)); err != nil {
		t.Fatal(err)
	}
	c, err := New(listen.Server{Socket: path}, Options{OwnOnly: true, Token: "ibw_secret"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Probe(t.Context()); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "user 65534 serves") {
		t.Errorf("%v, want %v", err, ErrForeign)
	}
}
