package ibsimd_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
)

// recorded is a capture; fails says that it takes no more.
type recorded struct {
	bytes.Buffer
	fails error
}

func (r *recorded) Write(b []byte) (int, error) {
	if r.fails != nil {
		return 0, r.fails
	}
	return r.Buffer.Write(b)
}

// TestCaptureHasBothWays: a capture has every question of a client and its answer, once each, of
// queue pair 0 and of queue pair 1; a server without a capture answers the same.
func TestCaptureHasBothWays(t *testing.T) {
	full := errors.New("no space left")
	for _, captures := range []bool{true, false} {
		var file recorded
		c := ibsimd.Config{Fabric: fabric.DefaultConfig(), Socket: socketName()}
		if captures {
			c.Capture = &file
		}
		s, err := ibsimd.Listen(small(t), c)
		if err != nil {
			t.Fatal(err)
		}
		if head := file.Len(); captures != (head > 0) {
			t.Errorf("captures %v: %d bytes before anything came", captures, head)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx) }()
		bringUp(t, s)
		one := attach(t, s.Name(), "one")
		counters := general(0x1122334455667703, mad.ClassPerfMgt, mad.MethodGet, pm.AttrPortCounters, lidSwitch)
		counters.mad[65] = 3
		questions := []datagram{nodeInfo(0x1122334455667701), nodeInfo(0x1122334455667702, 1, 3), counters}
		for _, q := range questions {
			if r := one.query(q); r == nil || r.status != 0 {
				t.Fatalf("%v is answered with %v", &q, r)
			}
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		s.Close()
		for _, q := range questions {
			want := 0
			if captures {
				want = 2
			}
			if n := bytes.Count(file.Bytes(), q.mad[12:16]); n != want {
				t.Errorf("captures %v: question %x is there %d times, want %d", captures, q.mad[12:16], n, want)
			}
		}
	}
	file := recorded{fails: full}
	if s, err := ibsimd.Listen(small(t), ibsimd.Config{Fabric: fabric.DefaultConfig(), Socket: socketName(), Capture: &file}); err == nil || !errors.Is(err, full) || !strings.HasPrefix(err.Error(), "capture") {
		t.Errorf("a capture that takes nothing: %v", err)
		if s != nil {
			s.Close()
		}
	}
}
