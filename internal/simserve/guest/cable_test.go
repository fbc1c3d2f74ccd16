//go:build linux

package guest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/simserve/qib"
	"github.com/ibwarden/ibwarden/test/need"
)

// cable joins two machines, as long as it is plugged in.
type cable struct {
	mu     sync.Mutex
	ends   [2]*Machine
	offers [2]qib.End
	pulled bool
}

// end is one end of a cable, a Wire.
type end struct {
	c *cable
	i int
}

func (e end) Send(p []byte) {
	e.c.mu.Lock()
	to := e.c.ends[1-e.i]
	if e.c.pulled {
		to = nil
	}
	e.c.mu.Unlock()
	if to != nil {
		to.Deliver(p)
	}
}

func (e end) SetLink(offer qib.End) {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	e.c.offers[e.i] = offer
	e.c.tell(1 - e.i)
}

// tell says to an end what there is at the other.
func (c *cable) tell(i int) {
	if c.ends[i] == nil {
		return
	}
	if c.pulled {
		c.ends[i].SetPeer(qib.End{})
	} else {
		c.ends[i].SetPeer(c.offers[1-i])
	}
}

// plug puts a machine at an end.
func (c *cable) plug(i int, m *Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[i] = m
	c.tell(i)
}

// pull pulls the cable, or puts it back.
func (c *cable) pull(pulled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pulled = pulled
	c.tell(0)
	c.tell(1)
}

// testMemory is that of machines that have OpenSM and several interfaces, in MB.
const testMemory = 192

// host is a machine of a test.
type host struct {
	*Machine
	t       *testing.T
	console need.Log
}

func boot(t *testing.T, image Image, name string, g ib.NodeGUID, w Wire) *host {
	h := &host{t: t}
	m, err := Start(t.Context(), Options{Name: name, GUID: g, Image: image, Wire: w, Memory: testMemory, Console: &h.console})
	if err != nil {
		t.Fatal(err)
	}
	h.Machine = m
	t.Cleanup(func() {
		m.Stop()
		t.Logf("%s: %v of processor time", name, m.CPUTime())
		if t.Failed() {
			t.Logf("console of %s:\n%s", name, h.console.String())
		}
	})
	return h
}

// sh runs a script, which has to succeed, and returns what it prints.
func (h *host) sh(script string) string {
	h.t.Helper()
	out, err := h.try(script)
	if err != nil {
		h.t.Fatalf("%s: %v", script, err)
	}
	return out
}

func (h *host) try(script string) (string, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*need.Patience)
	defer cancel()
	var out, failed bytes.Buffer
	status, err := h.Shell(ctx, &out, &failed, script)
	if err == nil && status != 0 {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		return out.String(), fmt.Errorf("%w\n%s%s", err, out.String(), failed.String())
	}
	return out.String(), nil
}

// until runs a script until it prints a text.
func (h *host) until(script, want string) string {
	h.t.Helper()
	for end := time.Now().Add(need.Patience); ; {
		out, err := h.try(script)
		if strings.Contains(out, want) {
			return out
		}
		if time.Now().After(end) {
			h.t.Fatalf("%s: %v, not within %v: want %q, got\n%s", script, err, need.Patience, want, out)
		}
	}
}

// imageOf makes an image for a test that boots it.
func imageOf(t *testing.T, packages ...string) Image {
	t.Helper()
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set") // QEMU and a kernel are fetched, and a machine boots in 7 s of processor time
	}
	need.Need(t, Missing())
	ctx, cancel := context.WithTimeout(t.Context(), 5*need.Patience)
	defer cancel()
	begun := time.Now()
	image, err := MakeImage(ctx, packages)
	need.Need(t, err)
	t.Logf("image: %v", time.Since(begun))
	return image
}

// parentOf is the variable by which TestEndsWithParent starts its own program again, and the
// directory in which the image is that it needs.
const parentOf = "IBWARDEN_TEST_GUEST_IMAGE"

// A machine ends with the program that started it, even if that is killed.
func TestEndsWithParent(t *testing.T) {
	if dir := os.Getenv(parentOf); dir != "" {
		image := Image{Kernel: filepath.Join(dir, "vmlinuz"), Root: filepath.Join(dir, "root.cpio")}
		m, err := Start(context.Background(), Options{Name: "red-1", GUID: 0x0011750000000101, Image: image})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("pid", m.cmd.Process.Pid)
		<-m.Done()
		return
	}
	image := imageOf(t, "opensm")
	parent := exec.Command(os.Args[0], "-test.run=^TestEndsWithParent$", "-test.v")
	parent.Env = append(os.Environ(), parentOf+"="+filepath.Dir(image.Kernel))
	var out need.Log
	parent.Stdout = &out
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	need.Eventually(t, need.Patience, "the machine runs", func() bool {
		_, line, _ := strings.Cut(out.String(), "pid ")
		n, _ := fmt.Sscan(line, &pid)
		return n == 1 && strings.Contains(line, "\n")
	})
	runs := func() bool {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err == nil && bytes.HasPrefix(command, []byte(qemuProgram)) // empty of one that nobody has waited for
	}
	if !runs() {
		t.Errorf("process %d is not QEMU", pid)
	}
	parent.Process.Kill()
	parent.Wait()
	need.Eventually(t, need.Patience, "QEMU ends", func() bool { return !runs() })
}
