package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/test/need"
)

// topWait bounds the wait for a screen.
const topWait = time.Minute

// emulator is what a terminal shows of what a program writes: as much as ibwarden top needs of one.
type emulator struct {
	width, height, x, y int
	cells               [][]rune
	other               bool // the alternate screen is shown
	raw                 bytes.Buffer
}

// sequence is a control sequence, another escape, or a character.
var sequence = regexp.MustCompile(`^(?:\x1b\[([?>]?)([0-9;]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Za-z]|\x1b[^\[\]()]|[^\x1b])`)

// write shows what is whole of a text, and returns the rest.
func (e *emulator) write(data []byte) (rest []byte) {
	for len(data) > 0 {
		m := sequence.FindSubmatch(data)
		if m == nil {
			return data // it is not whole
		}
		size := len(m[0])
		switch {
		case m[0][0] != '\x1b':
			r := []rune(string(data[:min(len(data), 4)]))[0]
			size = len(string(r))
			e.put(r)
		case len(m[3]) == 1:
			e.control(string(m[1]), string(m[2]), m[3][0])
		}
		data = data[size:]
	}
	return nil
}

func (e *emulator) put(r rune) {
	switch {
	case r == '\r':
		e.x = 0
	case r == '\n':
		e.y++
	case r >= ' ' && e.y < e.height && e.x < e.width:
		e.cells[e.y][e.x] = r
		e.x++
	}
}

func (e *emulator) control(private, numbers string, final byte) {
	var n [2]int
	for i, text := range strings.SplitN(numbers, ";", 2) {
		n[i], _ = strconv.Atoi(text) // 0 for none
	}
	switch {
	case private == "?" && n[0] == 1049:
		e.other = final == 'h'
		fallthrough
	case final == 'J':
		e.cells = make([][]rune, e.height)
		for i := range e.cells {
			e.cells[i] = []rune(strings.Repeat(" ", e.width))
		}
	case final == 'H':
		e.y, e.x = max(n[0]-1, 0), max(n[1]-1, 0)
	case final == 'K' && e.y < e.height:
		for i := e.x; i < e.width; i++ {
			e.cells[e.y][i] = ' '
		}
	case final == 'C':
		e.x += max(n[0], 1)
	case final == 'G':
		e.x = max(n[0]-1, 0)
	case final == 'd':
		e.y = max(n[0]-1, 0)
	}
}

func (e *emulator) String() string {
	var b strings.Builder
	for _, line := range e.cells {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return b.String()
}

// topAt is ibwarden top in a terminal.
type topAt struct {
	*emulator
	t      *testing.T
	person *os.File
	output chan []byte
	rest   []byte
	before *unix.Termios
	top    *exec.Cmd
	ended  chan error
	after  *os.File // keeps the terminal, for what is left of it
}

// startTop runs ibwarden top in a terminal of a size.
func startTop(t *testing.T, server string, width, height int, environment ...string) *topAt {
	t.Helper()
	person, programs := cliTerminal(t)
	x := &topAt{emulator: &emulator{width: width, height: height}, t: t, person: person, output: make(chan []byte), ended: make(chan error, 1), after: programs}
	x.resize(width, height)
	var err error
	if x.before, err = unix.IoctlGetTermios(int(programs.Fd()), unix.TCGETS); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("ibwarden", "top", "--server", server, "--interval", "200ms")
	c.Stdin, c.Stdout, c.Stderr = programs, programs, programs
	c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "HOME=" + t.TempDir()}, environment...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	x.top = c
	go func() { x.ended <- c.Wait() }()
	t.Cleanup(func() { c.Process.Kill() })
	go func() {
		for {
			b := make([]byte, 4096)
			n, err := person.Read(b)
			if err != nil {
				return
			}
			x.output <- b[:n]
		}
	}()
	return x
}

func (x *topAt) resize(width, height int) {
	x.width, x.height = width, height
	x.control("", "", 'J')
	if err := unix.IoctlSetWinsize(int(x.person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}); err != nil {
		x.t.Fatal(err)
	}
}

// press types keys, and waits until the screen has a text.
func (x *topAt) press(keys, want string) {
	x.t.Helper()
	if _, err := io.WriteString(x.person, keys); err != nil {
		x.t.Fatal(err)
	}
	x.until(want, func() bool { return strings.Contains(x.String(), want) })
}

func (x *topAt) until(what string, is func() bool) {
	x.t.Helper()
	for late := time.After(topWait); !is(); {
		select {
		case b := <-x.output:
			x.raw.Write(b)
			x.rest = x.write(append(x.rest, b...))
		case err := <-x.ended:
			x.t.Fatalf("%s: top has ended: %v\n%s", what, err, x)
		case <-late:
			x.t.Fatalf("%s is not shown:\n%s", what, x)
		}
	}
}

// quit waits until top ends, with no error and the terminal as it was.
func (x *topAt) quit(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.person, keys); err != nil {
		x.t.Fatal(err)
	}
	var err error
	for late, gone := time.After(topWait), false; !gone; {
		select {
		case b := <-x.output:
			x.raw.Write(b)
			x.rest = x.write(append(x.rest, b...))
		case err = <-x.ended:
			gone = true
		case <-late:
			x.t.Fatalf("it does not quit:\n%s", x)
		}
	}
	after, wrong := unix.IoctlGetTermios(int(x.after.Fd()), unix.TCGETS)
	if err != nil || wrong != nil || *after != *x.before {
		x.t.Errorf("top ended with %v; terminal %+v, was %+v, %v", err, after, x.before, wrong)
	}
	fmt.Fprint(x.after, "the end") // what was written before it is read, too
	for !bytes.HasSuffix(x.raw.Bytes(), []byte("the end")) {
		b := <-x.output
		x.raw.Write(b)
		x.rest = x.write(append(x.rest, b...))
	}
	if hidden, shown := bytes.LastIndex(x.raw.Bytes(), []byte("\x1b[?25l")), bytes.LastIndex(x.raw.Bytes(), []byte("\x1b[?25h")); x.other || hidden > shown {
		x.t.Errorf("alternate screen %v, cursor hidden at %d, shown at %d", x.other, hidden, shown)
	}
}

// colours are the sequences that choose one.
var colours = regexp.MustCompile(`\x1b\[([0-9;]*;)?(3[0-8]|4[0-8]|9[0-7]|10[0-7])(;[0-9;]*)?m`)

// servedFabric runs the demonstration with a service at a socket, and returns how to end it.
func servedFabric(t *testing.T, dir string) (server string, end func()) {
	t.Helper()
	socket := filepath.Join(dir, "s")
	c := exec.Command("ibwarden", "run", "--fabric", "sim", "--policy", "../../../examples/tenants.yaml", "--data", filepath.Join(dir, "data"), "--socket", socket, "--metrics", "127.0.0.1:0")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err == nil {
		c.Stderr = log
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { c.Wait(); close(done) }()
	end = func() { c.Process.Signal(syscall.SIGTERM); <-done }
	t.Cleanup(end)
	for exec.Command("ibwarden", "prove", "--server", "unix:"+socket).Run() != nil {
		select {
		case <-done:
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the service has ended:\n%s", text)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return "unix:" + socket, end
}

// ibwarden top in a terminal: every key, another size, the service that goes and comes, and the
// terminal as it was.
func TestTop(t *testing.T) {
	need.Long(t, "a service that is started twice")
	dir := t.TempDir()
	server, end := servedFabric(t, dir)
	say := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ibwarden", append(args, "--server", server)...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	say("tenant", "create", "red", "--keys", "0x0100-0x01ff", "--approve-removals")
	say("port", "assign", "--tenant", "red", "--yes", "0x0000000000100009", "0x000000000010000b")
	say("partition", "create", "training", "--tenant", "red", "--pkey", "0x0101", "--member", "0x100009=full", "--member", "0x10000b=full", "--wait")
	token := filepath.Join(dir, "token")
	say("tenant", "token", "create", "--tenant", "red", "--output", token)
	say("partition", "member", "remove", "0x0101", "0x10000b", "--token-file", token)

	x := startTop(t, server, 80, 24)
	const up, down, pgdn, pgup, home, last = "\x1b[A", "\x1b[B", "\x1b[6~", "\x1b[5~", "\x1b[H", "\x1b[F"
	for _, k := range []struct{ keys, want string }{
		{"", "fabric: switches 6"}, {"", "master mgmt-1"}, {"2", "[2tenants]"}, {"", "> provider"}, {"j", "> red"}, {"\r", "tenants > red  2 rows"}, {"", "red-2 HCA-1"},
		{"\r", "training full"}, {"", "> mgmt-1 HCA-1"}, {down, "> red-2 HCA-1"}, {"w", "yes: red-1 HCA-1 and red-2 HCA-1 can talk"}, {"\x1b", "> red-2 HCA-1"}, {"\x7f", "tenants > red  2 rows"},
		{" ", "* red-1 HCA-1"}, {" ", "* red-1 HCA-1 and red-2 HCA-1"}, {"w", "tenants > red > why"}, {"3", "[3hosts]"}, {"", "22 rows"}, {pgdn, "> leaf-4"}, {pgup, "> mgmt-1"}, {last, "> spine-2"}, {home, "> mgmt-1"},
		{"k", "> mgmt-1"}, {up, "> mgmt-1"}, {"G", "> spine-2"}, {"g", "> mgmt-1"}, {"/blue", "/blue_"}, {"", "> blue-1"}, {"\r", "6 rows  with blue"}, {"\x1b", "22 rows"},
		{"s", "HOST^"}, {"ss", "OWNER^"}, {"4", "[4links]"}, {"", "spine-1"}, {"5", "[5load]"}, {"", "leaf-1:1"}, {"6", "[6errors]"}, {"7", "[7history]"}, {"", "apply policy file"}, {"\r", "> revision"},
		{"8", "[8plans]"}, {"", "> red-a"}, {"\r", "ibwarden approval approve"}, {"9", "[9events]"}, {"", "revision"}, {"?", "events > keys"}, {"1", "[1overview]"},
	} {
		x.press(k.keys, k.want)
	}
	x.resize(200, 50)
	x.press("3", "SWITCH")
	x.resize(80, 24)
	x.press("", "> mgmt-1")
	if strings.Contains(x.String(), "SWITCH") {
		t.Errorf("80 columns wide:\n%s", x)
	}
	end()
	x.press("", "NO ANSWER for")
	x.press("", "isolated, ") // checked, or proved where not all was read back yet
	again, _ := servedFabric(t, dir)
	x.until("the service again", func() bool { return !strings.Contains(x.String(), "NO ANSWER") })
	x.press("2", "> red")
	if !x.other || !colours.Match(x.raw.Bytes()) {
		t.Errorf("alternate screen %v, colours %v", x.other, colours.Match(x.raw.Bytes()))
	}
	x.quit("q")

	// Without colours; Ctrl-C; and a terminal that can do nothing gets it once.
	x = startTop(t, again, 200, 50, "NO_COLOR=1")
	x.press("7", "apply policy file")
	x.quit("\x03")
	if text := colours.FindString(x.raw.String()); text != "" {
		t.Errorf("NO_COLOR, and %q", text)
	}
	x = startTop(t, again, 80, 24, "TERM=dumb")
	x.quit("")
	if text := x.raw.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "verdict: isolated") {
		t.Errorf("in a dumb terminal: %q", text)
	}

	// A tenant, until SIGTERM.
	secret, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	x = startTop(t, again, 80, 24, "IBWARDEN_TOKEN="+strings.TrimSpace(string(secret)))
	for _, k := range []struct{ keys, want string }{
		{"4567893", "[3hosts]"}, {"", "2 rows"}, {"\r", "training full"}, {"jw", "why"}, {"8", "red-a"}, {"2", "> red"}, {"", "1 row"},
	} {
		x.press(k.keys, k.want)
	}
	if text := x.String(); strings.Contains(text, "links") || strings.Contains(text, "load") || strings.Contains(text, "master") {
		t.Errorf("a tenant is shown:\n%s", text)
	}
	x.top.Process.Signal(syscall.SIGTERM)
	x.quit("")
}
