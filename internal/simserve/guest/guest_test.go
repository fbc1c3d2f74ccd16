//go:build linux

package guest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTwoGuests boots two machines with a cable between them: OpenSM in one brings the
// subnet up, and programs of each kind reach the other.
func TestTwoGuests(t *testing.T) {
	image := imageOf(t, OpenSM...)
	c := &cable{}
	begun := time.Now()
	a := boot(t, image, "red-1", 0x0011750000000101, end{c, 0})
	c.plug(0, a.Machine)
	b := boot(t, image, "red-2", 0x0011750000000202, end{c, 1})
	c.plug(1, b.Machine)
	for _, h := range []*host{a, b} {
		if err := h.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("both are ready after %v", time.Since(begun))
	a.until("ibstat", "State: Initializing")
	if out := a.sh("smpquery -D nodedesc 0,1"); !strings.Contains(out, "red-2") {
		t.Errorf("the node description of the other end: %q", out)
	}
	a.sh("opensm -B >/dev/null 2>&1 </dev/null")
	a.until("ibstat", "State: Active")
	b.until("ibstat", "State: Active")
	t.Logf("both are active after %v", time.Since(begun))
	if out := b.sh("smpquery nodeinfo -D 0"); !strings.Contains(out, "0x0011750000000202") {
		t.Errorf("smpquery nodeinfo -D 0: %q", out)
	}
	b.sh("ifconfig ib0 10.9.0.2 up")
	a.sh("ifconfig ib0 10.9.0.1 up")
	a.until("ping -c 1 -W 2 10.9.0.2", " 0% packet loss")
	b.sh("ibv_rc_pingpong -c -m 2048 -s 8192 -n 20 >/tmp/rc 2>&1 </dev/null & sleep 1")
	if out := a.sh("ibv_rc_pingpong -c -m 2048 -s 8192 -n 20 10.9.0.2"); !strings.Contains(out, "20 iters") {
		t.Errorf("ibv_rc_pingpong: %q", out)
	}
	content := bytes.Repeat([]byte("0123456789abcde\n"), 4096)
	if err := a.Put(t.Context(), "/tmp/big", content); err != nil {
		t.Fatal(err)
	}
	b.sh("{ sleep 60 | nc -l -p 77 >/tmp/big; } >/dev/null 2>&1 & sleep 0.5")
	a.sh("nc 10.9.0.2 77 </tmp/big")
	b.until("ls -l /tmp/big", " 65536 ")
	if got, err := b.Get(t.Context(), "/tmp/big"); err != nil || !slices.Equal(got, content) {
		t.Errorf("a file by TCP: %d bytes, %v: want %d", len(got), err, len(content))
	}
}
