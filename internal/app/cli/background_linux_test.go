package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/test/need"
)

// cliTerminal is a pseudo-cliTerminal: what is typed goes into the first file, and what is
// shown comes out of it; programs have the second.
func cliTerminal(t *testing.T) (person, programs *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	need.Need(t, err)
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		programs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	need.Need(t, err)
	t.Cleanup(func() { programs.Close() })
	return person, programs
}

// TestBackground: ibwarden sim & in a terminal goes on, and asks nobody for commands;
// in the foreground it does ask.
func TestBackground(t *testing.T) {
	bash := need.Program(t, "bash")
	person, programs := cliTerminal(t)
	shell := exec.Command(bash, "--noprofile", "--norc", "-i")
	shell.Stdin, shell.Stdout, shell.Stderr = programs, programs, programs
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=dumb", "PS1=", "HOME=" + t.TempDir()}
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { shell.Process.Kill(); shell.Wait() }()
	shown := make(chan []byte)
	go func() {
		for {
			b := make([]byte, 4096)
			n, err := person.Read(b)
			if err != nil {
				close(shown)
				return
			}
			shown <- b[:n]
		}
	}()
	var all bytes.Buffer
	until := func(word string) string {
		t.Helper()
		for late := time.After(time.Minute); ; {
			if before, _, ok := strings.Cut(all.String(), word); ok {
				rest := all.String()[len(before)+len(word):]
				all.Reset()
				all.WriteString(rest)
				return before
			}
			select {
			case b := <-shown:
				all.Write(b)
			case <-late:
				t.Fatalf("%q is not shown:\n%s", word, &all)
			}
		}
	}
	name := fmt.Sprintf("clibg%d", os.Getpid())
	fmt.Fprintf(person, "ibwarden sim --socket %s &\n", name)
	until("ready: ")
	// It has had its time to be stopped when another program has been answered by it.
	fmt.Fprintf(person, "ibwarden show nodes --fabric ibsim:%s | tail -1; jobs; kill -9 %%1; wait; echo over''''all\n", name)
	text := until("overall")
	if !strings.Contains(text, "HCA-1") || !strings.Contains(text, "Running") || strings.Contains(text, "Stopped") {
		t.Errorf("in the background:\n%s", text)
	}
	if strings.Contains(text, "sim> ") {
		t.Errorf("in the background it asks for commands:\n%s", text)
	}
	fmt.Fprintf(person, "ibwarden sim --socket %s\n", name)
	until("sim> ")
	fmt.Fprintln(person, "Quit")
}
