package ibsimtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// exposed is `ibwarden sim --devices`, whose nodes are where programs run with a
// /dev/infiniband of their own: no answer is cut there, whoever gives it.
type exposed struct {
	testing.TB
	tools  *Tools
	binary string
	name   string
	dir    string
}

// devices is why programs cannot be given devices here, nil where they can.
func devices() error {
	if os.Getuid() != 0 {
		return errors.New("sim exec needs root")
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("no FUSE: %w", err)
	}
	return f.Close()
}

// expose serves a fabric until the test ends.
func expose(t testing.TB, l *topology.Netlist) *exposed {
	t.Helper()
	tools := needTools(t)
	need.Need(t, devices())
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	x := &exposed{TB: t, tools: tools, binary: path, dir: workDir(t)}
	x.name = fmt.Sprintf(socketStyle, os.Getpid(), sims.Add(1))
	file := filepath.Join(x.dir, "fabric.net")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.WriteIbsim(out); err != nil {
		t.Fatal(err)
	}
	out.Close()
	ready := x.start(nil, path, "sim", file, "--socket", x.name, "--devices", "--no-console")
	if !strings.HasPrefix(ready.line("ready"), "ready") {
		t.Fatal("the simulator did not become ready")
	}
	return x
}

// process is a program that runs until it is stopped or the test ends.
type process struct {
	testing.TB
	cmd    *exec.Cmd
	lines  chan string
	stderr strings.Builder
	ended  bool
}

func (x *exposed) start(prefix []string, program string, args ...string) *process {
	x.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), simLife)
	all := append(append(slices.Clone(prefix), program), args...)
	p := &process{TB: x.TB, cmd: exec.CommandContext(ctx, all[0], all[1:]...), lines: make(chan string, 1<<12)}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "LC_ALL=C", "HOME=" + x.dir, "OSM_TMP_DIR=" + x.dir, "OSM_CACHE_DIR=" + x.dir,
		"IBWARDEN_DATA=" + filepath.Join(x.dir, "data")} // not what this machine's own manager keeps
	p.cmd.Stderr = &p.stderr
	tame(p.cmd, x.dir)
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		x.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case p.lines <- s.Text():
			default: // nobody reads so much
			}
		}
		io.Copy(io.Discard, out)
	}()
	x.Cleanup(func() { p.stop(); cancel() })
	return p
}

// line waits for a line of standard output that begins with prefix.
func (p *process) line(prefix string) string {
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.Fatalf("%v ended:\n%s", p.cmd.Args, &p.stderr)
			}
			if strings.HasPrefix(line, prefix) {
				return line
			}
		case <-time.After(commandTime):
			p.Fatalf("%v: no line %q in %v\n%s", p.cmd.Args, prefix, commandTime, &p.stderr)
		}
	}
}

// stop interrupts the program and waits for its end.
func (p *process) stop() {
	if p.ended {
		return
	}
	p.ended = true
	p.cmd.Process.Signal(os.Interrupt)
	p.cmd.Wait()
}

// at is what makes a program run at a node.
func (x *exposed) at(node string) []string {
	return []string{x.binary, "sim", "exec", "--socket", x.name, "--node", node, "--"}
}

// openSM runs an OpenSM that has brought the subnet up. It does not have
// switches enforce partitions: it copies limited keys to them, and then limited
// members cannot even ask.
func (x *exposed) openSM(node, policy string) *process {
	x.Helper()
	log := filepath.Join(x.dir, "opensm.log")
	conf := filepath.Join(x.dir, "partitions.conf")
	if err := os.WriteFile(conf, []byte(policy), 0o600); err != nil {
		x.Fatal(err)
	}
	p := x.start(x.at(node), x.tools.OpenSM, "-F", os.DevNull, "-P", conf, "-e", "-f", log, "-s", "0", "-d", "2", "-Z", "off")
	// It sweeps once more for the traps of its own bring-up, and what it answers meanwhile
	// is half of one sweep and half of the other: it is ready when it has written no more
	// for a while, and a sweep was the last that it wrote of.
	const quiet = 1500 * time.Millisecond
	size, since := 0, time.Now()
	for end := time.Now().Add(commandTime); ; time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(log) // it is not there at first
		if len(text) != size {
			size, since = len(text), time.Now()
		}
		if time.Since(since) > quiet && strings.Contains(lastLine(text), "SUBNET UP") {
			return p
		}
		if time.Now().After(end) {
			x.Fatalf("OpenSM does not come up\n%s\n%s", &p.stderr, text)
		}
	}
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// warden runs ibwarden until its first verdict.
func (x *exposed) warden(node, policy string, args ...string) *process {
	x.Helper()
	conf := filepath.Join(x.dir, "partitions.conf")
	if err := os.WriteFile(conf, []byte(policy), 0o600); err != nil {
		x.Fatal(err)
	}
	p := x.start(x.at(node), x.binary, append([]string{"run", "--fabric", "umad", "--policy", conf}, args...)...)
	p.line("verdict: isolated")
	return p
}

// saquery puts queries one after the other and returns what each printed.
func (x *exposed) saquery(node string, queries [][]string) []string {
	x.Helper()
	const mark = "==== "
	var script strings.Builder
	for _, q := range queries {
		// On a busy machine two seconds may pass: it asks again then.
		fmt.Fprintf(&script, "for try in 1 2 3; do %s -t 2000 '%s' >out 2>err; grep -q 'timed out' out err || break; done; cat out; grep -v ibwarn err; echo '%s'\n",
			x.tools.SAQuery, strings.Join(q, "' '"), mark)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	all := append(x.at(node), "/bin/sh", "-c", script.String())
	cmd := exec.CommandContext(ctx, all[0], all[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + x.dir}
	tame(cmd, x.dir)
	o, err := do(cmd)
	if err != nil {
		x.Fatal(err)
	}
	answers := strings.Split(o.stdout, mark+"\n")
	if len(answers) != len(queries)+1 {
		x.Fatalf("saquery at %s: %d answers to %d queries\n%s", node, len(answers)-1, len(queries), o.stderr)
	}
	return answers[:len(queries)]
}

// notCompared are parts of the names of fields that tell of the run, or of
// settings that each manager chooses for itself.
var notCompared = []string{
	"hoqlife", "subnettimeout", "actcount", "lifetimevalue", "pkt_life", "lft top", "linearfdbtop", "multicastfdbtop",
	"vlhighlimit", "m_key", "mkeyleaseperiod", "protectbits", "clientreregister",
}

// records are the records of an answer, or what was said instead.
func records(answer string) []string {
	var out []string
	var one strings.Builder
	end := func() {
		if r := strings.TrimSpace(one.String()); r != "" {
			out = append(out, r)
		}
		one.Reset()
	}
	for line := range strings.Lines(answer) {
		low := strings.ToLower(line)
		switch {
		case slices.ContainsFunc(notCompared, func(name string) bool { return strings.Contains(low, name) }):
		case !strings.HasPrefix(line, "\t") && strings.Contains(line, "dump"): // the head of a record
			end()
		default:
			one.WriteString(line)
		}
	}
	end()
	slices.Sort(out)
	return out
}

// without is what a has and b has not.
func without(a, b []string) (out []string) {
	left := map[string]int{}
	for _, s := range b {
		left[s]++
	}
	for _, s := range a {
		if left[s]--; left[s] < 0 {
			out = append(out, s)
		}
	}
	return out
}
