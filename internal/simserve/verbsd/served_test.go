package verbsd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/simserve/verbsd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// served is a simulator as ibwarden sim has it, which counts how often the fabric is
// used.
type served struct {
	*ibsimd.Server
	calls atomic.Int64
}

func (s *served) Do(call func(*fabric.Fabric)) error {
	s.calls.Add(1)
	return s.Server.Do(call)
}

// serve serves the demonstration fabric until stop is called, or the test ends.
func serve(t *testing.T, users ...door.Users) (s *served, name string, stop func()) {
	t.Helper()
	name = fmt.Sprintf("verbsd-%d-%s", os.Getpid(), t.Name())
	simulator, err := ibsimd.Listen(topology.Demo(), ibsimd.Config{Socket: name, Fabric: fabric.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := verbsd.Listen(name)
	if err != nil {
		t.Fatal(err)
	}
	s = &served{Server: simulator}
	programs := verbsd.New(s)
	if len(users) > 0 {
		programs.Users = users[0]
	}
	simulator.Accompany(programs)
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = simulator.Serve(ctx) }) // it ends with the context
	all.Go(func() { _ = programs.Serve(ctx, l) })
	stop = sync.OnceFunc(func() {
		end()
		all.Wait()
		simulator.Close()
	})
	t.Cleanup(stop)
	return s, name, stop
}

// Another user of the machine opens no device, unless everybody may; and the reserved Q_Keys
// are root's even then.
func TestOtherUsers(t *testing.T) {
	for _, everybody := range []bool{false, true} {
		t.Run(fmt.Sprint(everybody), func(t *testing.T) {
			_, name, _ := serve(t, door.Users{Any: everybody})
			dial(t, name, "red-1")
			need.AsUser(t, need.Nobody, func() {
				d, err := verbs.Dial(name, "red-2")
				if everybody && err != nil || !everybody && !errors.Is(err, verbs.ErrPermission) {
					t.Errorf("another user: %v", err)
				}
				if err == nil {
					d.Close()
				}
				if d, err := verbs.Dial(name, "red-3", verbs.Privileged()); !errors.Is(err, verbs.ErrPermission) {
					t.Errorf("another user who wants root's Q_Keys: %v", err)
					d.Close()
				}
			})
		})
	}
}

func dial(t *testing.T, name, node string) *verbs.Device {
	t.Helper()
	d, err := verbs.Dial(name, node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// flushed is a completion queue with completions that nobody takes.
func flushed(t *testing.T, d *verbs.Device) *verbs.CQ {
	t.Helper()
	cq, err := d.CreateCQ(8)
	if err != nil {
		t.Fatal(err)
	}
	qp, err := d.CreateQP(verbs.QPInit{Type: verbs.QPTypeRawEtherType, SendCQ: cq, ReceiveCQ: cq})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []verbs.QPState{verbs.StateInit, verbs.StateErr} {
		mask := verbs.AttrState
		if to == verbs.StateInit {
			mask |= verbs.AttrPort
		}
		if err := qp.Modify(verbs.QPAttr{State: to, Port: 1}, mask); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		if err := qp.PostReceive(uint64(i), 64); err != nil {
			t.Fatal(err)
		}
	}
	return cq
}

// TestServedWait: who waits on a served fabric is woken by what comes, and until then
// uses the fabric a few times only, whatever else lies there.
func TestServedWait(t *testing.T) {
	s, name, _ := serve(t)
	d := dial(t, name, "red-1")
	cq := flushed(t, d)
	before := s.calls.Load()
	if e, ok, err := d.WaitEvent(200 * time.Millisecond); ok || err != nil {
		t.Errorf("event %v, %v", e, err)
	}
	if n := s.calls.Load() - before; n > 20 {
		t.Errorf("the fabric was used %d times while nothing came", n)
	}
	wcs, err := cq.Wait(8, time.Minute)
	if err != nil || len(wcs) != 4 || wcs[3].ID != 3 || wcs[3].Status != verbs.WCWRFlushErr {
		t.Errorf("%+v, %v", wcs, err)
	}
	came := make(chan error, 1)
	go func() {
		e, _, err := d.WaitEvent(time.Minute)
		if err == nil && e.Type != verbs.EventDeviceFatal {
			err = fmt.Errorf("event %v", e.Type)
		}
		came <- err
	}()
	node, err := topology.Demo().Find("red-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Do(func(f *fabric.Fabric) { err = f.PowerOff(node.GUID) }); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := <-came; err != nil {
		t.Error(err)
	}
	if _, err := verbs.Dial(name, "red-1"); !errors.Is(err, verbs.ErrRemoved) {
		t.Errorf("a host without power: %v", err)
	}
	if err := s.Do(func(f *fabric.Fabric) { err = f.PowerOn(node.GUID) }); err != nil {
		t.Fatal(err)
	}
	dial(t, name, "red-1")
}

// TestServedEnd: when the simulator ends every call ends, those that wait too.
func TestServedEnd(t *testing.T) {
	_, name, stop := serve(t)
	d := dial(t, name, "red-1")
	cq, err := d.CreateCQ(1)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := cq.Wait(1, time.Hour)
		ended <- err
	}()
	if _, err := d.QueryPort(1); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("a call that waited came to nothing, and says nothing")
	}
	if _, err := d.QueryPort(1); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("a call afterwards: %v", err)
	}
	if _, err := verbs.Dial(name, "red-1"); err == nil {
		t.Error("a simulator that has ended opens a device")
	}
}

// TestServedCrowd: many programs on few hosts, at one time.
func TestServedCrowd(t *testing.T) {
	_, name, _ := serve(t)
	var all sync.WaitGroup
	for i := range verbsd.MaxConnections {
		all.Go(func() {
			d, err := verbs.Dial(name, fmt.Sprintf("red-%d", 1+i%3))
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			numbers := map[any]bool{}
			cq, err := d.CreateCQ(4)
			for range 20 {
				var qp *verbs.QP
				if err == nil {
					qp, err = d.CreateQP(verbs.QPInit{Type: verbs.QPTypeUD, SendCQ: cq, ReceiveCQ: cq})
				}
				if err == nil {
					numbers[qp.Number()] = true
					_, err = cq.Wait(1, time.Millisecond)
				}
			}
			if err != nil || len(numbers) != 20 {
				t.Errorf("%d queue pairs, %v", len(numbers), err)
			}
		})
	}
	all.Wait()
}
