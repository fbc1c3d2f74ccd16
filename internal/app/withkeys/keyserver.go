package withkeys

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

const (
	// socketSuffix, in place of that of the service's socket, names this socket.
	socketSuffix = "-keys.sock"
	// socketMode is that of the socket: who may open it is asked of the kernel all the same.
	socketMode = 0o600
	// firstTime is how long a client has to say what for, socketTime how long an
	// answer may take.
	firstTime  = 10 * time.Second
	socketTime = 30 * time.Second
	// askMax bounds what is asked, tableMax a table, in bytes.
	askMax   = 64 << 10
	tableMax = 256 << 20

	socketVersion = 1
)

// SocketOf is the path of the socket for M_Keys beside that of a service.
func SocketOf(socket string) string { return strings.TrimSuffix(socket, ".sock") + socketSuffix }

// Request is who asks for keys, and what for.
type Request struct {
	UID   uint32   `json:"-"` // as the kernel says
	Words []string `json:"command"`
	Write bool     `json:"write,omitempty"`
}

// String is the request as the audit log has it.
func (v Request) String() string {
	what := "reads with M_Keys"
	if v.Write {
		what = "reads and writes with M_Keys"
	}
	return what + ": " + strings.Join(v.Words, " ")
}

// KeyServer hands the keys of a running manager to root and to the user of the service, on this
// machine alone.
type KeyServer struct {
	// Record records a request before it gets anything; an error refuses it.
	Record func(context.Context, Request) error
	// Table is what the manager knows now.
	Table func(context.Context) (*Table, error)
	Log   *slog.Logger

	listeners *listen.Listeners
	end       func()
	serving   sync.WaitGroup
}

// ask is what a client says: first for what, then nothing but that it wants the table again.
type ask struct {
	Version int `json:"version"`
	Request
}

type answer struct {
	Table *Table `json:"table,omitempty"`
	Error string `json:"error,omitempty"`
}

// Open listens beside the socket of a service, until Close.
func (d *KeyServer) Open(socket string) error {
	path := SocketOf(socket)
	l, err := listen.Listen(listen.Where{Socket: path})
	if err == nil {
		if err = os.Chmod(path, socketMode); err != nil {
			l.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("the socket of ibwarden keys exec: %w", err)
	}
	var ctx context.Context
	ctx, d.end = context.WithCancel(context.Background())
	d.listeners = l
	for _, x := range l.All() {
		d.serving.Go(func() { d.accept(ctx, x) })
	}
	return nil
}

// Close stops listening and ends the connections.
func (d *KeyServer) Close() {
	if d.listeners != nil {
		d.end()
		d.listeners.Close()
		d.serving.Wait()
	}
}

func (d *KeyServer) accept(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // it is closed
		}
		d.serving.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			d.serve(ctx, c)
		})
	}
}

// serve answers one client until it goes. Nothing that a client that may not have keys sends
// is read.
func (d *KeyServer) serve(ctx context.Context, c net.Conn) {
	tell := func(a answer) bool {
		return c.SetWriteDeadline(time.Now().Add(socketTime)) == nil && json.NewEncoder(c).Encode(a) == nil
	}
	peer, local := listen.PeerOfConn(c)
	if !local || peer.UID != 0 && int(peer.UID) != os.Geteuid() {
		d.Log.Warn("M_Keys refused", "uid", peer.UID)
		tell(answer{Error: fmt.Sprintf("uid %d is neither root nor the user of the service: M_Keys are for those alone", peer.UID)})
		return
	}
	if c.SetReadDeadline(time.Now().Add(firstTime)) != nil {
		return
	}
	in := bufio.NewReaderSize(c, askMax)
	var first ask
	line, err := in.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(line, &first)
	}
	if err != nil || first.Version != socketVersion || len(first.Words) == 0 {
		tell(answer{Error: fmt.Sprintf("want version %d and a command: use one ibwarden", socketVersion)})
		return
	}
	first.UID = peer.UID
	if err := d.Record(ctx, first.Request); err != nil {
		tell(answer{Error: err.Error()})
		return
	}
	for {
		t, err := d.Table(ctx)
		if err != nil {
			t = nil
		}
		if !tell(answer{Table: t, Error: text(err)}) || c.SetReadDeadline(time.Time{}) != nil {
			return
		}
		if _, err := in.ReadByte(); err != nil {
			return
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// IsOpen reports whether somebody serves M_Keys beside the socket of a service: a process
// that was killed leaves its socket behind.
func IsOpen(socket string) bool {
	c, err := net.DialTimeout("unix", SocketOf(socket), firstTime)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// refusal is why a service that was asked hands out nothing.
type refusal string

func (r refusal) Error() string { return string(r) }

// Client is a request that was let in.
type Client struct {
	socket  string
	request Request
	c       net.Conn
	room    *io.LimitedReader
	in      *json.Decoder
}

// NewClient asks for M_Keys beside the socket of a service.
func NewClient(socket string, v Request) *Client {
	return &Client{socket: SocketOf(socket), request: v}
}

// Table asks for the table, by a new connection where the last has ended: that is another
// request. The error says who does not hand it out.
func (v *Client) Table() (*Table, error) {
	if v.c != nil {
		t, err := v.again()
		if err == nil || errors.As(err, new(refusal)) {
			return t, err
		}
		v.Close()
	}
	c, err := net.DialTimeout("unix", v.socket, firstTime)
	if err != nil {
		return nil, fmt.Errorf("no service hands out M_Keys here: %w", err)
	}
	v.c, v.room = c, &io.LimitedReader{R: c}
	v.in = json.NewDecoder(v.room)
	if err := json.NewEncoder(c).Encode(ask{Version: socketVersion, Request: v.request}); err != nil {
		return nil, v.ended(err)
	}
	t, err := v.answer()
	if err != nil {
		return nil, v.ended(err)
	}
	return t, nil
}

func (v *Client) ended(err error) error {
	v.Close()
	return err
}

// Close ends the request.
func (v *Client) Close() {
	if v.c != nil {
		v.c.Close()
	}
	v.c = nil
}

func (v *Client) again() (*Table, error) {
	if _, err := v.c.Write([]byte{'\n'}); err != nil {
		return nil, err
	}
	return v.answer()
}

func (v *Client) answer() (*Table, error) {
	if err := v.c.SetDeadline(time.Now().Add(socketTime)); err != nil {
		return nil, err
	}
	var a answer
	v.room.N = tableMax
	err := v.in.Decode(&a)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the service did not answer: %w", err)
	case a.Error != "":
		return nil, refusal(a.Error)
	case a.Table == nil:
		return nil, errors.New("the service answered with nothing")
	}
	return a.Table, nil
}
