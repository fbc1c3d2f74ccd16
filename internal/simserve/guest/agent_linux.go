package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// putChunk is how much of a file is written at once, in bytes: what the guest's serial line
// holds until it is read.
const putChunk = 16 << 10

// agent is the connection to the program that runs others in the guest; image/agent is
// the other half.
type agent struct {
	conn  net.Conn
	ready chan struct{}
	ended chan struct{}
	send  sync.Mutex

	mu   sync.Mutex
	last int
	jobs map[int]*job
}

// job is a request that was not answered yet.
type job struct {
	stdout, stderr io.Writer
	status         chan int
}

func newAgent(conn net.Conn) *agent {
	return &agent{conn: conn, ready: make(chan struct{}), ended: make(chan struct{}), jobs: map[int]*job{}}
}

// read takes what the agent sends, until the machine ends.
func (g *agent) read() {
	defer close(g.ended)
	lines := bufio.NewReader(g.conn)
	for ready := false; ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSpace(line)
		switch {
		case line == "ready" && !ready:
			ready = true
			close(g.ready)
		case line == "ready":
			g.lost()
		}
		if fields := strings.SplitN(line, " ", 3); len(fields) == 3 {
			g.take(fields[0], fields[1], fields[2])
		}
	}
}

// lost ends all requests: the agent was killed, and its successor knows nothing of them.
func (g *agent) lost() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, j := range g.jobs {
		close(j.status)
		delete(g.jobs, id)
	}
}

func (g *agent) take(number, kind, rest string) {
	id, _ := strconv.Atoi(number)
	g.mu.Lock()
	j := g.jobs[id]
	g.mu.Unlock()
	if j == nil {
		return
	}
	if kind == "x" {
		status, err := strconv.Atoi(rest)
		if err != nil {
			status = -1
		}
		g.mu.Lock()
		delete(g.jobs, id)
		g.mu.Unlock()
		j.status <- status
		return
	}
	b, err := base64.StdEncoding.DecodeString(rest)
	switch {
	case err != nil:
	case kind == "o":
		j.stdout.Write(b)
	case kind == "e":
		j.stderr.Write(b)
	}
}

// ask sends a request with its bytes and waits for its status. When ctx ends, so does what
// was started.
func (g *agent) ask(ctx context.Context, verb string, body func(id int) []byte, path string, stdout, stderr io.Writer) (int, error) {
	select {
	case <-g.ready:
	case <-g.ended:
		return 0, errEnded
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	j := &job{stdout: stdout, stderr: stderr, status: make(chan int, 1)}
	g.mu.Lock()
	g.last++
	id := g.last
	g.jobs[id] = j
	g.mu.Unlock()
	b := body(id)
	g.write(fmt.Appendf(nil, "%s %d %d %s\n", verb, id, len(b), path), b)
	select {
	case status, ok := <-j.status:
		if !ok {
			return 0, errLost
		}
		return status, nil
	case <-g.ended:
		return 0, errEnded
	case <-ctx.Done():
		g.write(fmt.Appendf(nil, "kill %d 0 -\n", id))
		return 0, ctx.Err()
	}
}

func (g *agent) write(parts ...[]byte) {
	g.send.Lock()
	defer g.send.Unlock()
	g.conn.Write(bytes.Join(parts, nil)) // an error is that of a machine that ended
}

// Ready waits until the machine has booted: its adapter's driver is loaded, and programs can run.
func (m *Machine) Ready(ctx context.Context) error {
	select {
	case <-m.agent.ready:
		return nil
	case <-m.done:
		if err := m.Err(); err != nil {
			return err
		}
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Exec runs a program in the machine, without input, and returns its exit status. It waits
// until the machine has booted, and until nothing has the program's output open. When ctx
// ends, the program gets SIGTERM.
func (m *Machine) Exec(ctx context.Context, stdout, stderr io.Writer, args ...string) (int, error) {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return m.Shell(ctx, stdout, stderr, "exec "+strings.Join(quoted, " "))
}

// Shell is Exec for a script, which busybox's shell runs.
func (m *Machine) Shell(ctx context.Context, stdout, stderr io.Writer, script string) (int, error) {
	return m.agent.ask(ctx, "run", func(id int) []byte {
		return fmt.Appendf(nil, "echo 0 >/proc/$$/oom_score_adj; echo $$ >/run/agent/%d.p\n%s\n", id, script)
	}, "-", stdout, stderr)
}

// Put writes a file in the machine, mode 0755. The path has no white space.
func (m *Machine) Put(ctx context.Context, path string, content []byte) error {
	if strings.ContainsAny(path, " \t\n\\") || !strings.HasPrefix(path, "/") {
		return fmt.Errorf("file %q in a guest: want an absolute path without white space", path)
	}
	var failed bytes.Buffer
	if status, err := m.Exec(ctx, io.Discard, &failed, "sh", "-c", `: >"$0" && chmod 755 "$0"`, path); err != nil || status != 0 {
		return fmt.Errorf("file %s in a guest: status %d: %w%s", path, status, err, failed.Bytes())
	}
	for len(content) > 0 {
		chunk := content[:min(len(content), putChunk)]
		content = content[len(chunk):]
		status, err := m.agent.ask(ctx, "put", func(int) []byte { return chunk }, path, io.Discard, io.Discard)
		if err != nil || status != 0 {
			return fmt.Errorf("file %s in a guest: status %d: %w", path, status, err)
		}
	}
	return nil
}

// Get is the content of a file in the machine.
func (m *Machine) Get(ctx context.Context, path string) ([]byte, error) {
	return get(ctx, m.Exec, path)
}

func get(ctx context.Context, exec func(ctx context.Context, stdout, stderr io.Writer, args ...string) (int, error), path string) ([]byte, error) {
	var content, failed bytes.Buffer
	status, err := exec(ctx, &content, &failed, "cat", path)
	if err == nil && status != 0 {
		err = fmt.Errorf("%s", bytes.TrimSpace(failed.Bytes()))
	}
	if err != nil {
		return nil, fmt.Errorf("file %s in a guest: %w", path, err)
	}
	return content.Bytes(), nil
}
