package doctest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// patience is how long a command may take; one that takes longer hangs.
	patience = 2 * time.Minute
	// lookEvery is how often the output of a command in the background is looked at.
	lookEvery = 20 * time.Millisecond
	// farewell is how long commands in the background have to end.
	farewell = 5 * time.Second
)

// errNotEnough is that of a command in the background that did not print what the
// page shows.
var errNotEnough = errors.New("it did not print that in time")

// session is the shell in which the commands of one page run.
type session struct {
	dir    string
	socket string // stands for the name "demo" of the pages
	shell  *exec.Cmd
	input  io.WriteCloser
	count  int

	mutex   sync.Mutex
	printed bytes.Buffer
	ended   bool
}

// demo is where commands name the simulated fabric. Names of fabrics are the
// machine's: pages that run at the same time must not share one.
var demo = regexp.MustCompile(`(--socket |ibsim:|IBSIM_SOCKNAME=)demo\b`)

// goRun is how a reader in a clone starts the program. Here it is built already.
const goRun = "go run ./cmd/ibwarden "

// open starts a shell in a copy of the examples.
func open(t *testing.T, program, socket string) *session {
	t.Helper()
	s := &session{dir: t.TempDir(), socket: socket}
	work := filepath.Join(s.dir, "examples")
	root := filepath.Join("..", "..")
	for from, to := range map[string]string{"examples": work, "scenarios": filepath.Join(work, "scenarios")} {
		if err := os.CopyFS(to, os.DirFS(filepath.Join(root, from))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".", filepath.Join(work, "examples")); err != nil { // for commands that run in the root
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	s.shell = exec.Command("bash", "--noprofile", "--norc")
	s.shell.Dir = work
	s.shell.Env = []string{
		"IBWARDEN_SERVER=none", // of those that other tests run on this machine
		"PATH=" + filepath.Dir(program) + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"HOME=" + s.dir, "TMPDIR=" + s.dir, "TERM=dumb", "LC_ALL=C.UTF-8", "TZ=UTC",
		"XDG_CACHE_HOME=" + cache, // the packages of Linux machines are large
		"OSM_CACHE_DIR=" + s.dir, "OSM_TMP_DIR=" + s.dir,
	}
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.shell.Stdout, s.shell.Stderr = write, write
	if s.input, err = s.shell.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.shell.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	go s.collect(read)
	t.Cleanup(s.close)
	return s
}

// collect keeps what is printed.
func (s *session) collect(from io.ReadCloser) {
	defer from.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		s.mutex.Lock()
		s.printed.Write(buffer[:n])
		s.ended = err != nil
		s.mutex.Unlock()
		if err != nil {
			return
		}
	}
}

// close ends the shell and whatever it left in the background.
func (s *session) close() {
	s.input.Close()
	group := -s.shell.Process.Pid
	syscall.Kill(group, syscall.SIGTERM)
	gone := make(chan struct{})
	go func() {
		s.shell.Wait()
		for syscall.Kill(group, 0) == nil {
			time.Sleep(lookEvery)
		}
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(farewell):
		syscall.Kill(group, syscall.SIGKILL)
		<-gone
	}
}

// run runs a command and returns what it prints. Of one in the background it is
// what was printed until enough was, for as long as wait at the most.
func (s *session) run(c *command, wait time.Duration, enough func(lines []string) bool) ([]string, error) {
	s.count++
	text := demo.ReplaceAllString(c.text, "${1}"+s.socket)
	if own, ok := strings.CutPrefix(text, goRun); ok {
		text = "ibwarden " + own
	}
	file := filepath.Join(s.dir, fmt.Sprintf("command-%d", s.count))
	background := file + ".out"
	if c.background() {
		text = strings.TrimSuffix(text, "&") + ">" + background + " 2>&1 &"
	}
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		return nil, err
	}
	mark := fmt.Sprintf("ends command %d of %s", s.count, s.socket)
	if _, err := fmt.Fprintf(s.input, "eval \"$(<%s)\" </dev/null; echo; echo '%s'\n", file, mark); err != nil {
		return nil, err
	}
	out, err := s.until(mark)
	if err != nil || !c.background() {
		return s.lines(out), err
	}
	for end := time.Now().Add(wait); ; time.Sleep(lookEvery) {
		out, err := os.ReadFile(background)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the shell opens it in its own time
			return nil, err
		}
		if got := s.lines(string(out)); enough(got) {
			return got, nil
		} else if time.Now().After(end) {
			return got, errNotEnough
		}
	}
}

// until waits for the mark and returns what was printed before.
func (s *session) until(mark string) (string, error) {
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s.mutex.Lock()
		out, ended := s.printed.String(), s.ended
		if before, after, found := strings.Cut(out, "\n"+mark+"\n"); found {
			s.printed.Reset()
			s.printed.WriteString(after)
			s.mutex.Unlock()
			return before, nil
		}
		s.mutex.Unlock()
		if ended {
			return out, errors.New("the shell has ended")
		}
		if time.Now().After(end) {
			return out, fmt.Errorf("did not end in %v", patience)
		}
	}
}

// lines are those of an output, in the names of the pages.
func (s *session) lines(out string) []string {
	out = strings.TrimSuffix(strings.ReplaceAll(out, s.socket, "demo"), "\n")
	if out == "" {
		return nil
	}
	lines := strings.Split(out, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}
