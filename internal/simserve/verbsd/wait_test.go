package verbsd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

// asking sends a request whose answer comes later.
func asking(t *testing.T, c net.Conn, r verbs.Request) {
	t.Helper()
	if err := errors.Join(c.SetDeadline(time.Now().Add(time.Minute)), verbs.WriteFrame(c, &r)); err != nil {
		t.Fatal(err)
	}
}

// answered are the words of the next answer.
func answered(t *testing.T, c net.Conn) string {
	t.Helper()
	var a verbs.Answer
	if err := verbs.ReadFrame(c, &a); err != nil {
		return err.Error()
	}
	return fmt.Sprint(a.Number, " ", a.Err())
}

// group is a call that joins a group, or leaves it.
func group(call verbs.Call, number uint64, wait time.Duration) verbs.Request {
	return verbs.Request{Call: call, Number: number, Port: 1, Address: &verbs.AHAttr{DGID: ib.GID{0xFF, 0x12}}, Wait: int64(wait)}
}

// TestNobodyAnswers: what is asked of an administration that is not there waits for its time,
// and the queue pair 1 that it takes is free again when it is over, or when its program is gone.
func TestNobodyAnswers(t *testing.T) {
	b := newBench(t)
	one, two := b.raw(t, "red-1"), b.raw(t, "red-1")
	var h *host
	under := func(want string) {
		t.Helper()
		_ = b.Do(func(*fabric.Fabric) { // a bench that has not ended
			var got []string
			for port, g := range h.joining {
				got = append(got, fmt.Sprintf("port %d: %d", port, len(g.asked)))
			}
			if s := strings.Join(got, ", "); s != want {
				t.Errorf("under way: %q, want %q", s, want)
			}
		})
	}
	_ = b.Do(func(f *fabric.Fabric) {
		h = b.server.hosts[0]
		f.Agent(h.node.GUID).Port(1).MasterSMLID = 7
	})
	const refused = ": the administration of the subnet, at LID 7, does not answer: no answer from the fabric"
	want := func(c net.Conn, text string) {
		t.Helper()
		if got := answered(t, c); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	asking(t, one, group(verbs.CallJoin, 1, 0))
	want(one, "1 join"+refused)
	under("")
	asking(t, one, group(verbs.CallLeave, 2, time.Millisecond))
	want(one, "2 leave"+refused)
	under("")
	asking(t, one, group(verbs.CallJoin, 3, time.Hour))
	asking(t, one, verbs.Request{Call: verbs.CallNextEvent, Number: 4}) // when it is answered, the join before it is under way
	want(one, "4 <nil>")
	asking(t, two, group(verbs.CallJoin, 5, time.Hour))
	asking(t, two, verbs.Request{Call: verbs.CallNextEvent, Number: 6})
	want(two, "6 <nil>")
	under("port 1: 2")
	asking(t, two, group(verbs.CallJoin, 7, time.Millisecond))
	want(two, "7 join"+refused)
	under("port 1: 2")
	two.Close()
	need.Eventually(t, need.Patience, "the other session has ended", func() bool {
		left := false
		_ = b.Do(func(*fabric.Fabric) { left = len(h.sessions) == 1 })
		return left
	})
	under("port 1: 1")
	one.Close()
	b.idle(t)
	under("")
	c := b.raw(t, "red-1")
	var pair *endpoint.GSIPair
	_ = b.Do(func(*fabric.Fabric) {
		var err error
		if pair, err = endpoint.OpenGSI(b.server.hosts[0].device, 1); err != nil {
			t.Fatal(err) // the programs that are gone have it
		}
	})
	wantErr(t, "QP1 is in use", ask(t, c, group(verbs.CallJoin, 8, time.Hour)).Err(), verbs.ErrBusy)
	_ = b.Do(func(*fabric.Fabric) { pair.Close() })
}

// TestMostWaits: so many calls of a connection wait, and one more does not.
func TestMostWaits(t *testing.T) {
	c := newBench(t).raw(t, "red-1")
	for i := range MaxWaits {
		asking(t, c, verbs.Request{Call: verbs.CallNextEvent, Number: uint64(i), Wait: int64(time.Hour)})
	}
	a := ask(t, c, verbs.Request{Call: verbs.CallNextEvent, Number: 900, Wait: int64(time.Hour)})
	if err := a.Err(); a.Number != 900 || !errors.Is(err, verbs.ErrFull) || err.Error() != "64 calls of this connection wait already: no room" {
		t.Errorf("%d: %v", a.Number, err)
	}
	if a := ask(t, c, verbs.Request{Call: verbs.CallNextEvent, Number: 901}); a.Number != 901 || a.Err() != nil {
		t.Errorf("one that does not wait: %d, %v", a.Number, a.Err())
	}
}

// TestPowerLost: every call of a device that is no more says so, but those that wait for events
// are told of the end.
func TestPowerLost(t *testing.T) {
	b := newBench(t)
	c := b.raw(t, "red-1")
	if a := ask(t, c, verbs.Request{Call: verbs.CallCreateCQ, Count: 4}); a.Err() != nil {
		t.Fatal(a.Err())
	}
	asking(t, c, verbs.Request{Call: verbs.CallPoll, Number: 1, Object: 1, Count: 1, Wait: int64(time.Hour)})
	asking(t, c, verbs.Request{Call: verbs.CallNextEvent, Number: 2, Wait: int64(time.Hour)})
	if a := ask(t, c, verbs.Request{Call: verbs.CallQueryPort, Number: 3, Port: 1}); a.Err() != nil {
		t.Fatal(a.Err())
	}
	_ = b.Do(func(f *fabric.Fabric) {
		if err := f.PowerOff(b.server.hosts[0].node.GUID); err != nil {
			t.Error(err)
		}
	})
	const gone = " the host lost its power since it was opened: the device was removed"
	late := []string{answered(t, c), answered(t, c)}
	slices.Sort(late)
	if want := []string{"1" + gone, "2 <nil>"}; !slices.Equal(late, want) {
		t.Errorf("%q, want %q", late, want)
	}
	for i, r := range []verbs.Request{{Call: verbs.CallPoll, Object: 1, Count: 1}, {Call: verbs.CallQueryPort, Port: 1}, {Call: verbs.CallDestroyCQ, Object: 1}} {
		r.Number = uint64(10 + i)
		asking(t, c, r)
		if got, want := answered(t, c), fmt.Sprint(10+i, gone); got != want {
			t.Errorf("%s: %q, want %q", r.Call, got, want)
		}
	}
}

// TestSimulatorEnds: a call of a simulator that has ended ends its connection.
func TestSimulatorEnds(t *testing.T) {
	for _, r := range []verbs.Request{{Call: verbs.CallQueryPort, Port: 1}, {Call: verbs.CallNextEvent}, {Call: verbs.CallNextEvent, Wait: int64(time.Hour)}} {
		b := newBench(t)
		c := b.raw(t, "red-1")
		b.mutex.Lock()
		b.ended = errors.New("it has ended")
		b.mutex.Unlock()
		asking(t, c, r)
		if got := answered(t, c); got != io.EOF.Error() {
			t.Errorf("%s: %q", r.Call, got)
		}
		c = b.connect(t, false)
		asking(t, c, verbs.Request{Call: verbs.CallOpen, Version: verbs.ProtocolVersion, Node: "red-1"})
		if got := answered(t, c); !strings.HasPrefix(got, "0 it has ended") {
			t.Errorf("open: %q", got)
		}
	}
}

// TestTwoSimulators: one name takes the calls of one simulator.
func TestTwoSimulators(t *testing.T) {
	name := "verbsd-two-" + t.Name()
	l, err := Listen(name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen(name); err == nil || err.Error() != name+": another simulator of this name takes verbs calls" {
		t.Errorf("a second: %v", err)
	}
}

// TestMostPrograms: one program more than may be is told why.
func TestMostPrograms(t *testing.T) {
	b := newBench(t)
	for range MaxConnections {
		b.raw(t, "red-1")
	}
	c := b.connect(t, false)
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := answered(t, c); got != "0 32 programs have devices already: no room" {
		t.Errorf("one more: %q", got)
	}
}
