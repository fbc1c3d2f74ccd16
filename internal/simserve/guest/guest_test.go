//go:build linux

package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/simserve/qib"
	"github.com/ibwarden/ibwarden/test/need"
)

// pair2 are two machines of a test, with a cable between them.
type pair2 struct {
	t    *testing.T
	c    *cable
	a, b *host
}

// partitions are OpenSM's: all are full members of one and limited members of the other.
const partitions = "Default=0x7fff,ipoib:ALL=full; Full=0x1,ipoib:ALL=full; Limited=0x2,ipoib:ALL=limited;"

// TestTwoGuests boots two machines with a cable between them. OpenSM in one brings the
// subnet up; then programs of each kind reach the other, and what goes wrong on the way is
// counted by the kernel.
func TestTwoGuests(t *testing.T) {
	image := imageOf(t, "opensm")
	p := &pair2{t: t, c: &cable{}}
	begun := time.Now()
	p.a = boot(t, image, "red-1", 0x0011750000000101, end{p.c, 0})
	p.c.plug(0, p.a.Machine)
	p.b = boot(t, image, "red-2", 0x0011750000000202, end{p.c, 1})
	p.c.plug(1, p.b.Machine)
	for _, h := range []*host{p.a, p.b} {
		if err := h.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("both are ready after %v", time.Since(begun))
	p.a.until("ibstat", "State: Initializing")
	if out := p.a.sh("smpquery -D nodedesc 0,1"); !strings.Contains(out, "red-2") {
		t.Errorf("the node description of the other end: %q", out)
	}
	p.a.sh("echo '" + partitions + "' >/tmp/partitions; opensm -B -P /tmp/partitions >/dev/null 2>&1 </dev/null")
	p.active()
	t.Logf("both are active after %v", time.Since(begun))
	p.b.sh("ifconfig ib0 10.9.0.2 netmask 255.255.255.0 up")
	p.a.sh("ifconfig ib0 10.9.0.1 netmask 255.255.255.0 up")
	p.ping()
	for _, step := range []struct {
		name string
		run  func(p *pair2)
	}{
		{"diagnostics", (*pair2).diagnostics}, {"tcp", (*pair2).tcp},
		{"counters", (*pair2).counters}, {"pkey", (*pair2).pkey}, {"cable", (*pair2).cable},
		{"backpressure", (*pair2).backPressure}, {"driver", (*pair2).driver}, {"exec", (*pair2).exec},
	} {
		begun := time.Now()
		step.run(p)
		t.Logf("%s: %v", step.name, time.Since(begun))
		if t.Failed() {
			t.Fatalf("%s failed", step.name)
		}
	}
}

func (p *pair2) active() {
	p.t.Helper()
	p.a.until("ibstat", "State: Active")
	p.b.until("ibstat", "State: Active")
}

func (p *pair2) ping() {
	p.t.Helper()
	p.a.until("ping -c 1 -W 2 10.9.0.2", " 0% packet loss")
}

func (p *pair2) diagnostics() {
	for script, want := range map[string]string{
		"smpquery nodeinfo -D 0":      "0x0011750000000202",
		"smpquery pkeys -D 0,1":       "0xffff",
		"ibnetdiscover":               "red-1",
		"ibportstate -D 0 1 query":    "LinkWidthActive:.................4X",
		"saquery":                     "red-1",
		"perfquery":                   "PortXmitData",
		"ibv_devinfo":                 "PORT_ACTIVE",
		"cat /sys/class/net/ib0/pkey": "0xffff",
		"ls /dev/infiniband | sort":   "issm0",
	} {
		if out := p.b.sh(script); !strings.Contains(out, want) {
			p.t.Errorf("%s: want %q, got\n%s", script, want, out)
		}
	}
}

func (p *pair2) tcp() {
	content := bytes.Repeat([]byte("0123456789abcde\n"), 4096)
	if err := p.a.Put(p.t.Context(), "/tmp/big", content); err != nil {
		p.t.Fatal(err)
	}
	p.b.sh("{ sleep 60 | nc -l -p 77 >/tmp/big; } >/dev/null 2>&1 & sleep 0.5")
	p.a.sh("nc 10.9.0.2 77 </tmp/big")
	p.b.until("ls -l /tmp/big", " 65536 ")
	if got, err := p.b.Get(p.t.Context(), "/tmp/big"); err != nil || !slices.Equal(got, content) {
		p.t.Errorf("a file by TCP: %d bytes, %v: want %d", len(got), err, len(content))
	}
}

// counters are shown by the kernel's performance agent.
func (p *pair2) counters() {
	for range 3 {
		p.b.LinkError(qib.SymbolError)
	}
	damaged := []byte("a packet that was damaged on its way")
	p.b.Deliver(damaged)
	if out := p.b.sh("perfquery"); !strings.Contains(out, "SymbolErrorCounter:..............3\n") || !strings.Contains(out, "PortRcvErrors:...................1\n") {
		p.t.Errorf("perfquery: %s", out)
	}
}

// pkey pings in a partition of which both hosts are full members, and in one of which
// neither is: there the adapter refuses what arrives.
func (p *pair2) pkey() {
	for h, address := range map[*host]string{p.a: "1", p.b: "2"} {
		h.sh("for k in 1 2; do echo 0x800$k >/sys/class/net/ib0/create_child; ifconfig ib0.800$k 10.$k.0." + address + " netmask 255.255.255.0 up; done")
	}
	refused := func() (n uint64) {
		p.b.Adapter(func(a *qib.Adapter) { n = a.Counter(qib.PKeyMismatch) })
		return n
	}
	p.a.until("ping -c 1 -W 2 10.1.0.2", " 0% packet loss")
	before := refused()
	if out, err := p.a.try("ping -c 2 -W 2 10.2.0.2"); err == nil || refused() == before {
		p.t.Errorf("limited members: %d packets are refused: %s", refused()-before, out)
	}
}

// cable pulls it and puts it back: OpenSM brings the link up again.
func (p *pair2) cable() {
	p.c.pull(true)
	p.a.until("ibstat", "State: Down")
	p.b.until("ibstat", "State: Down")
	p.c.pull(false)
	p.active()
	p.ping()
	if out := p.b.sh("perfquery"); !strings.Contains(out, "LinkDownedCounter:...............1\n") {
		p.t.Errorf("perfquery: %s", out)
	}
}

// backPressure leaves the sender without room at the other end while it sends more than
// its buffers hold.
func (p *pair2) backPressure() {
	p.a.SetReady(false)
	p.a.sh("for i in $(seq 60); do ping -c 1 -W 1 10.9.0.2 >/dev/null & done; sleep 1")
	var stalled uint64
	p.a.SetReady(true)
	p.a.Adapter(func(a *qib.Adapter) { stalled = a.Counter(qib.TxStall) })
	if stalled == 0 {
		p.t.Error("no packet waited")
	}
	p.ping()
}

// driver unloads it and loads it again.
func (p *pair2) driver() {
	p.b.sh("ifconfig ib0 down; rmmod ib_ipoib && rmmod ib_qib")
	p.a.until("ibstat", "State: Down")
	p.b.sh("insmod /lib/modules/ib_qib.ko && insmod /lib/modules/ib_ipoib.ko")
	p.active()
	p.b.sh("ifconfig ib0 10.9.0.2 netmask 255.255.255.0 up")
	p.ping()
}

func (p *pair2) exec() {
	var out, failed bytes.Buffer
	status, err := p.b.Exec(p.t.Context(), &out, &failed, "sh", "-c", `echo "it's $1"; echo no >&2; exit 7`, "sh", "a  b")
	if err != nil || status != 7 || out.String() != "it's a  b\n" || failed.String() != "no\n" {
		p.t.Errorf("a program: status %d, %v, %q, %q", status, err, out.String(), failed.String())
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Second)
	defer cancel()
	if _, err := p.b.Exec(ctx, io.Discard, io.Discard, "sleep", "12345"); !errors.Is(err, context.DeadlineExceeded) {
		p.t.Errorf("a program that goes on: %v", err)
	}
	p.b.until("ps | grep 'sleep 1234[5]' || echo none", "none")
	if _, err := p.b.Get(p.t.Context(), "/nowhere"); err == nil || !strings.Contains(err.Error(), "No such file") {
		p.t.Errorf("a file that is not there: %v", err)
	}
	p.cutRequest()
	io.WriteString(p.b.Console(), "echo conso''le\n")
	need.Eventually(p.t, need.Patience, "the console answers", func() bool { return strings.Contains(p.b.console.String(), "console") })
	p.b.try("poweroff -f") // ends before it answers
	<-p.b.Done()
	if err := p.b.Err(); err != nil {
		p.t.Errorf("powered off: %v", err)
	}
	if _, err := p.b.try("true"); err == nil {
		p.t.Error("a program runs in a machine that has ended")
	}
	p.a.until("ibstat", "State: Down")
}

// cutRequest has a program end while a part of the next request has come.
func (p *pair2) cutRequest() {
	g := p.b.agent
	first := make(chan error, 1)
	go func() {
		_, err := p.b.Exec(p.t.Context(), io.Discard, io.Discard, "sleep", "1")
		first <- err
	}()
	p.b.until("ps | grep 'sleep [1]' && echo runs", "runs")
	g.send.Lock()
	whole := g.conn
	whole.Write([]byte("ru"))
	g.conn = &cut{whole, 2}
	g.send.Unlock()
	if err := <-first; err != nil {
		p.t.Error(err)
	}
	// It has cleaned up once what reads requests is alone again; only the console can be asked.
	io.WriteString(p.b.Console(), "until [ $(ps | grep -c '[/]bin/agent') = 1 ]; do sleep 0.1; done; echo alo''ne\n")
	need.Eventually(p.t, need.Patience, "the program has ended", func() bool { return strings.Contains(p.b.console.String(), "alone") })
	ctx, cancel := context.WithTimeout(p.t.Context(), need.Patience)
	defer cancel()
	if status, err := p.b.Exec(ctx, io.Discard, io.Discard, "true"); err != nil || status != 0 {
		p.t.Errorf("a request that came in two parts: status %d, %v", status, err)
	}
}

// cut leaves out the first bytes, which were written before.
type cut struct {
	net.Conn
	n int
}

func (c *cut) Write(b []byte) (int, error) {
	n := min(c.n, len(b))
	c.n -= n
	m, err := c.Conn.Write(b[n:])
	return n + m, err
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := Missing(); err == nil || !strings.Contains(err.Error(), "apt-get install --no-install-recommends qemu-system-x86") {
		t.Errorf("without QEMU: %v", err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := MakeImage(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "apt-cache is not installed") {
		t.Errorf("without apt: %v", err)
	}
}

func TestUnknownPackage(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set") // it needs the lists of Debian's packages
	}
	if out, err := exec.Command("apt-cache", "show", kernelPackage).CombinedOutput(); err != nil {
		need.Need(t, fmt.Errorf("the lists of Debian's packages are not there: %w: %s", err, out))
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := MakeImage(t.Context(), []string{"no-such-package"}); err == nil || !strings.Contains(err.Error(), "no-such-package") {
		t.Errorf("a package that nobody has: %v", err)
	}
}
