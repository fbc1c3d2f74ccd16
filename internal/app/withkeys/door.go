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
	// doorSuffix, in place of that of the service's socket, names the door.
	doorSuffix = "-keys.sock"
	// doorMode is that of the socket: who may open it is asked of the kernel all the same.
	doorMode = 0o600
	// firstTime is how long who opens the door has to say what for, doorTime how long an
	// answer may take.
	firstTime = 10 * time.Second
	doorTime  = 30 * time.Second
	// askMax bounds what is asked, tableMax a table, in octets.
	askMax   = 64 << 10
	tableMax = 256 << 20

	doorVersion = 1
)

// DoorOf is the path of the door beside the socket of a service.
func DoorOf(socket string) string { return strings.TrimSuffix(socket, ".sock") + doorSuffix }

// Visit is who asks for keys, and what for.
type Visit struct {
	UID   uint32   `json:"-"` // as the kernel says
	Words []string `json:"command"`
	Write bool     `json:"write,omitempty"`
}

// String is the visit as the audit log has it.
func (v Visit) String() string {
	what := "reads with M_Keys"
	if v.Write {
		what = "reads and writes with M_Keys"
	}
	return what + ": " + strings.Join(v.Words, " ")
}

// Door hands the keys of a running manager to root and to the user of the service, on this
// machine alone.
type Door struct {
	// Enter records a visit before it gets anything; an error refuses it.
	Enter func(context.Context, Visit) error
	// Table is what the manager knows now.
	Table func(context.Context) (*Table, error)
	Log   *slog.Logger

	listeners *listen.Listeners
	end       func()
	visits    sync.WaitGroup
}

// ask is what a visitor says: first for what, then nothing but that it wants the table again.
type ask struct {
	Version int `json:"version"`
	Visit
}

type answer struct {
	Table *Table `json:"table,omitempty"`
	Error string `json:"error,omitempty"`
}

// Open opens the door beside the socket of a service, until Close.
func (d *Door) Open(socket string) error {
	path := DoorOf(socket)
	l, err := listen.Listen(listen.Where{Socket: path})
	if err == nil {
		if err = os.Chmod(path, doorMode); err != nil {
			l.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("the door for ibwarden exec: %w", err)
	}
	var ctx context.Context
	ctx, d.end = context.WithCancel(context.Background())
	d.listeners = l
	for _, x := range l.All() {
		d.visits.Go(func() { d.accept(ctx, x) })
	}
	return nil
}

// Close closes the door; whoever has come in goes.
func (d *Door) Close() {
	if d.listeners != nil {
		d.end()
		d.listeners.Close()
		d.visits.Wait()
	}
}

func (d *Door) accept(ctx context.Context, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // it is closed
		}
		d.visits.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			d.serve(ctx, c)
		})
	}
}

// serve answers one visitor until he goes. Nothing that a visitor who may not come in sends
// is read.
func (d *Door) serve(ctx context.Context, c net.Conn) {
	tell := func(a answer) bool {
		return c.SetWriteDeadline(time.Now().Add(doorTime)) == nil && json.NewEncoder(c).Encode(a) == nil
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
	if err != nil || first.Version != doorVersion || len(first.Words) == 0 {
		tell(answer{Error: fmt.Sprintf("want version %d and a command: use one ibwarden", doorVersion)})
		return
	}
	first.UID = peer.UID
	if err := d.Enter(ctx, first.Visit); err != nil {
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

// IsOpen reports whether somebody serves the door beside the socket of a service: a process
// that was killed leaves its socket behind.
func IsOpen(socket string) bool {
	c, err := net.DialTimeout("unix", DoorOf(socket), firstTime)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// refusal is why a service that was asked hands out nothing.
type refusal string

func (r refusal) Error() string { return string(r) }

// Visitor is a visit that was let in.
type Visitor struct {
	socket string
	visit  Visit
	c      net.Conn
	room   *io.LimitedReader
	in     *json.Decoder
}

// NewVisitor asks at the door beside the socket of a service.
func NewVisitor(socket string, v Visit) *Visitor { return &Visitor{socket: DoorOf(socket), visit: v} }

// Table asks for the table, by a new connection where the last has ended: that is another
// visit. The error says who does not hand it out.
func (v *Visitor) Table() (*Table, error) {
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
	if err := json.NewEncoder(c).Encode(ask{Version: doorVersion, Visit: v.visit}); err != nil {
		return nil, v.ended(err)
	}
	t, err := v.answer()
	if err != nil {
		return nil, v.ended(err)
	}
	return t, nil
}

func (v *Visitor) ended(err error) error {
	v.Close()
	return err
}

// Close ends the visit.
func (v *Visitor) Close() {
	if v.c != nil {
		v.c.Close()
	}
	v.c = nil
}

func (v *Visitor) again() (*Table, error) {
	if _, err := v.c.Write([]byte{'\n'}); err != nil {
		return nil, err
	}
	return v.answer()
}

func (v *Visitor) answer() (*Table, error) {
	if err := v.c.SetDeadline(time.Now().Add(doorTime)); err != nil {
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
