package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/simserve/qib"
)

// FileMax is the longest file that goes into a machine, in bytes.
const FileMax = 64 << 20

// requestMax is the longest request: that of a file, in base64.
const requestMax = FileMax/3*4 + 1<<20

// RequestTime is how long a connection may take to say what it asks, ReplyTime to take a reply:
// meanwhile what other programs in the machine print waits.
const (
	RequestTime = 10 * time.Second
	ReplyTime   = time.Minute
)

// request is what a connection asks: one thing.
type request struct {
	Exec []string `json:"exec,omitempty"` // a program and its arguments
	Put  string   `json:"put,omitempty"`  // a file to write
	Data []byte   `json:"data,omitempty"` // its content
	Stop bool     `json:"stop,omitempty"`
	// With none of these it asks for the machine's Info.
}

// reply is one of the answers to a request: output while there is some, then how it ended.
type reply struct {
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	Status int    `json:"status,omitempty"` // of the program
	Error  string `json:"error,omitempty"`
	Info   *Info  `json:"info,omitempty"`
}

// Info is what is known of a machine.
type Info struct {
	Node   string        `json:"node"`
	GUID   ib.NodeGUID   `json:"guid"`
	PID    int           `json:"pid"`    // of the program that runs it
	Memory int           `json:"memory"` // in MB
	Booted bool          `json:"booted"`
	State  smp.PortState `json:"state"` // of its port
}

const addressOf = "@ibwarden:guest:"

func address(socket, node string) *net.UnixAddr {
	return &net.UnixAddr{Name: addressOf + socket + ":" + node, Net: "unix"}
}

// Listen opens the socket at which the machine in a host's place is asked for things.
func Listen(socket, node string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", address(socket, node))
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("node %s: a guest is there already", node)
	}
	return l, err
}

// Serve answers root and the user that runs the machine, until the machine has ended: who may use it
// is its root.
func (h *Host) Serve(l *net.UnixListener) error {
	var served sync.WaitGroup
	defer served.Wait()
	defer l.Close()
	go func() {
		<-h.done
		l.Close()
	}()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			select {
			case <-h.done:
				return nil
			default:
			}
			return fmt.Errorf("guest %s: waiting for those who ask: %w", h.Node, err)
		}
		served.Go(func() {
			defer c.Close()
			h.answer(c)
		})
	}
}

// answer answers one connection.
func (h *Host) answer(c *net.UnixConn) {
	out := &replies{conn: c}
	last := reply{Ended: true}
	asked, err := h.asked(c)
	if err == nil {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() { // the other end says nothing more: it has gone when it closes
			_, _ = c.Read(make([]byte, 1))
			cancel()
		}()
		last.Status, last.Info, err = h.obey(ctx, asked, out)
	}
	if err != nil {
		last.Error = err.Error()
	}
	out.send(&last)
}

// asked is what a connection asks, if it may ask. Who has not said it when the machine ends is not
// waited for.
func (h *Host) asked(c *net.UnixConn) (*request, error) {
	if err := admit(c); err != nil {
		return nil, err
	}
	if err := c.SetReadDeadline(time.Now().Add(RequestTime)); err != nil {
		return nil, err
	}
	said := make(chan struct{})
	defer close(said)
	go func() {
		select {
		case <-h.done:
			_ = c.CloseRead()
		case <-said:
		}
	}()
	var r request
	if err := json.NewDecoder(io.LimitReader(c, requestMax)).Decode(&r); err != nil {
		return nil, fmt.Errorf("a request to a guest: %w", err)
	}
	return &r, c.SetReadDeadline(time.Time{})
}

// admit returns an error when root and the own user are not at the other end: neither asks another, nor
// believes another who has taken the name of a machine's socket.
func admit(c *net.UnixConn) error {
	uid, err := door.Peer(c)
	if err != nil {
		return err
	}
	return door.Users{}.Admit(uid)
}

// obey does what is asked.
func (h *Host) obey(ctx context.Context, asked *request, out *replies) (status int, info *Info, err error) {
	select {
	case <-h.done:
		return 0, nil, errEnded
	default:
	}
	switch {
	case len(asked.Exec) > 0:
		status, err = h.Exec(ctx, stream(out.stdout), stream(out.stderr), asked.Exec...)
	case asked.Put != "":
		if len(asked.Data) > FileMax {
			return 0, nil, fmt.Errorf("a file of %d bytes, want at most %d", len(asked.Data), FileMax)
		}
		err = h.Put(ctx, asked.Put, asked.Data)
	case asked.Stop:
		h.Stop()
	default:
		info = &Info{Node: h.Node, GUID: h.GUID, PID: os.Getpid(), Memory: h.Memory}
		h.Adapter(func(a *qib.Adapter) { info.State = a.State() })
		select {
		case <-h.agent.ready:
			info.Booted = true
		default:
		}
	}
	return status, info, err
}

// replies writes replies, one at a time. An error is that of one who has gone.
type replies struct {
	mu   sync.Mutex
	conn net.Conn
}

func (r *replies) send(what *reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn.SetWriteDeadline(time.Now().Add(ReplyTime)) != nil || json.NewEncoder(r.conn).Encode(what) != nil {
		r.conn.Close() // so that nothing more waits for it
	}
}

func (r *replies) stdout(b []byte) { r.send(&reply{Stdout: b}) }
func (r *replies) stderr(b []byte) { r.send(&reply{Stderr: b}) }

// stream is a writer made of a function.
type stream func([]byte)

func (s stream) Write(b []byte) (int, error) {
	s(b)
	return len(b), nil
}

// Client asks the machine in the place of a host.
type Client struct{ Socket, Node string }

// ask asks for one thing, and gives what comes of it to two writers.
func (c Client) ask(ctx context.Context, asked *request, stdout, stderr io.Writer) (*reply, error) {
	conn, err := net.DialUnix("unix", nil, address(c.Socket, c.Node))
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil, fmt.Errorf("there is no guest in the place of node %s: start one with ibwarden sim guest --socket %s --node %s", c.Node, c.Socket, c.Node)
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := admit(conn); err != nil {
		return nil, fmt.Errorf("another user has taken the name of the guest's socket, that of node %s: %w", c.Node, err)
	}
	sent := json.NewEncoder(conn).Encode(asked) // who is refused at the door cannot even say this
	for in := json.NewDecoder(conn); ; {
		var r reply
		if err := in.Decode(&r); err != nil {
			return nil, fmt.Errorf("the guest in the place of node %s has ended: %w", c.Node, errors.Join(ctx.Err(), sent, err))
		}
		if _, err := stdout.Write(r.Stdout); err != nil {
			return nil, err
		}
		if _, err := stderr.Write(r.Stderr); err != nil {
			return nil, err
		}
		switch {
		case r.Error != "":
			return nil, errors.New(r.Error)
		case r.Ended:
			return &r, nil
		}
	}
}

// Exec runs a program in the machine, without input, and returns its exit status; see Machine.Exec.
func (c Client) Exec(ctx context.Context, stdout, stderr io.Writer, args ...string) (int, error) {
	r, err := c.ask(ctx, &request{Exec: args}, stdout, stderr)
	if err != nil {
		return 0, err
	}
	return r.Status, nil
}

// Put writes a file in the machine; see Machine.Put.
func (c Client) Put(ctx context.Context, path string, content []byte) error {
	_, err := c.ask(ctx, &request{Put: path, Data: content}, io.Discard, io.Discard)
	return err
}

// Get is the content of a file in the machine.
func (c Client) Get(ctx context.Context, path string) ([]byte, error) { return get(ctx, c.Exec, path) }

// Stop ends the machine as if its power failed, and returns when it has ended.
func (c Client) Stop(ctx context.Context) error {
	_, err := c.ask(ctx, &request{Stop: true}, io.Discard, io.Discard)
	return err
}

// List are the machines in a fabric that the user may use, by name.
func List(ctx context.Context, socket string) ([]Info, error) {
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	var nodes []string
	for line := range strings.Lines(string(b)) {
		if _, node, is := strings.Cut(strings.TrimSpace(line), " "+addressOf+socket+":"); is {
			nodes = append(nodes, node)
		}
	}
	var list []Info
	for _, node := range slices.Compact(slices.Sorted(slices.Values(nodes))) { // connections have the name too
		r, err := (Client{socket, node}).ask(ctx, &request{}, io.Discard, io.Discard)
		if err == nil && r.Info != nil {
			list = append(list, *r.Info)
		}
	}
	return list, nil
}
