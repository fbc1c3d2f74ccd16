// This file tells systemd how a service is: ready, its status, and that it is
// alive (sd_notify).

package telemetry

import (
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Notifier sends to the service manager. The zero value sends nothing. One goroutine
// uses it.
type Notifier struct {
	conn     *net.UnixConn
	watchdog time.Duration // the service is killed after so long without a sign; 0 for never
	alive    time.Time     // when the last one was sent
	status   string
	ready    bool
}

// watchdogShare is how many signs of life are sent in the time of the watchdog.
const watchdogShare = 4

// statusMax is the most bytes of a status.
const statusMax = 200

// NewNotifier connects to the service manager that the environment names, if it names one:
// NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.
func NewNotifier(environment func(string) string) (*Notifier, error) {
	path := environment("NOTIFY_SOCKET")
	if path == "" {
		return &Notifier{}, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // "@" means an abstract name
	if err != nil {
		return nil, err
	}
	n := &Notifier{conn: conn}
	if pid := environment("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if us, err := strconv.ParseInt(environment("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
			n.watchdog = time.Duration(us) * time.Microsecond
		}
	}
	return n, nil
}

// Turn is called whenever the main loop turns: the first time it says that the service
// is ready, and from then on that it is alive and what its status is. A loop that hangs
// sends nothing.
func (n *Notifier) Turn(now time.Time, status string) {
	if n == nil || n.conn == nil {
		return
	}
	var lines []string
	if !n.ready {
		n.ready = true
		lines = append(lines, "READY=1")
	}
	if status = oneLine(status); status != n.status {
		n.status = status
		lines = append(lines, "STATUS="+status)
	}
	if n.watchdog > 0 && now.Sub(n.alive) >= n.watchdog/watchdogShare {
		n.alive = now
		lines = append(lines, "WATCHDOG=1")
	}
	n.send(lines...)
}

// Stop says that the service ends.
func (n *Notifier) Stop() {
	if n == nil || n.conn == nil {
		return
	}
	n.send("STOPPING=1")
	_ = n.conn.Close()
	n.conn = nil
}

// send sends lines. A service manager that does not read must not stop the service.
func (n *Notifier) send(lines ...string) {
	if len(lines) == 0 {
		return
	}
	_ = n.conn.SetWriteDeadline(time.Now().Add(sendTimeout))
	_, _ = n.conn.Write([]byte(strings.Join(lines, "\n")))
}

// sendTimeout is how long the service manager may keep the loop waiting.
const sendTimeout = 10 * time.Millisecond

// oneLine makes a status one line that fits: a status of several would set other
// variables.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), statusMax)], "")
}
