package certificate_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/lab/replica"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
)

// checker is the program in verify/, as a stranger builds it.
type checker struct {
	t             testing.TB
	program, file string
}

func build(t testing.TB) *checker {
	c := &checker{t, filepath.Join(t.TempDir(), "verify"), filepath.Join(t.TempDir(), "certificate")}
	if out, err := exec.Command("go", "build", "-C", "../../../verify", "-o", c.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	return c
}

// check is the exit status for a certificate, and what is printed.
func (c *checker) check(text []byte) (status int, out string) {
	if err := os.WriteFile(c.file, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	printed, err := exec.Command(c.program, c.file).Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		c.t.Fatal(err)
	}
	if failed != nil {
		return failed.ExitCode(), string(printed)
	}
	return 0, string(printed)
}

// trial is one fabric, with a replica in which packets are sent.
type trial struct {
	*world
	t    *testing.T
	seed uint64
	r    *replica.Replica
	buf  []byte
}

func (w *world) trial(t *testing.T, seed uint64) *trial {
	r, err := replica.Build(w.Fabric)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for _, g := range r.Gaps() {
		t.Fatalf("seed %d: %v: %s", seed, g.At, g.Why)
	}
	return &trial{world: w, t: t, seed: seed, r: r}
}

// arrives reports whether a packet that a host forges comes to an end port: to a host, whatever
// its table holds, since that is the host's to rewrite.
func (x *trial) arrives(a, b *observed.Port, k ib.PKey) bool {
	m := packet.MADPacket{QP: ib.QP1, SLID: a.Info.LID, DLID: b.Info.LID, PKey: k, MAD: make([]byte, mad.Size)}
	var err error
	if x.buf, err = m.AppendBinary(x.buf[:0]); err != nil {
		x.t.Fatal(err)
	}
	if err := x.r.Forge(a.Place(), b.Place(), x.buf); err != nil {
		x.t.Fatalf("seed %d: %s to %s over %s: %v", x.seed, a, b, k, err)
	}
	end := x.r.Ended()
	return end == replica.Delivered || end == replica.DestinationKey && b.Node.Switch == nil
}

func (x *trial) rawArrives(a, b *observed.Port) bool {
	if err := x.r.Send(a.Place(), b.Place(), replica.Packet{Service: replica.Raw}); err != nil {
		x.t.Fatalf("seed %d: raw from %s to %s: %v", x.seed, a, b, err)
	}
	return x.r.Ended() == replica.Delivered
}

// crosses looks for a packet that arrives where the policy does not allow it: of each host, to
// each end port, with the full key of each partition, and raw. One of the two is concerned.
func (x *trial) crosses(concerned func(*observed.Port) bool) string {
	for _, a := range x.hosts() {
		for _, b := range x.Fabric.EndPorts() {
			if a == b || x.may(a.GUID, b.GUID) || !concerned(a) && !concerned(b) {
				continue
			}
			for i := range len(x.allowed) + 1 {
				if k := ib.PKeyBase(0x10 + i).Full(); x.arrives(a, b, k) {
					return fmt.Sprintf("%s to %s over %s", a, b, k)
				}
			}
			if !x.rawMay && b.Node.Switch == nil && x.rawArrives(a, b) {
				return fmt.Sprintf("raw from %s to %s", a, b)
			}
		}
	}
	return ""
}

var (
	crossing = regexp.MustCompile(`^no: (0x[0-9a-f]{16}) \(.*\) can send to (0x[0-9a-f]{16}) \(.*\) (?:with P_Key (0x[0-9a-f]{4})|(raw packets)): `)
	writable = regexp.MustCompile(`^no: switch (0x[0-9a-f]{16}) \(.*\) (?:takes|shows)`)
	differs  = regexp.MustCompile(`^no: the P_Key table of (?:port (0x[0-9a-f]{16}) (\d{3}) .*, which holds )?(0x[0-9a-f]{16}) .* (has|lacks) (0x[0-9a-f]{4}), which its class has`)
)

// confirm asks packets, the judge and the tables themselves whether a witness is right.
func (x *trial) confirm(line string, proof *isolation.Proof) bool {
	port := func(text string) *observed.Port {
		i := slices.IndexFunc(x.Fabric.EndPorts(), func(p *observed.Port) bool { return p.GUID.String() == text })
		return x.Fabric.EndPorts()[i]
	}
	if m := crossing.FindStringSubmatch(line); m != nil {
		a, b := port(m[1]), port(m[2])
		if x.may(a.GUID, b.GUID) {
			return false
		}
		if m[4] != "" {
			// A raw packet to port 0 of a switch finds no queue pair there; that no filter stops it is enough.
			return b.Node.Switch != nil && !a.Peer.Info.FilterRawInbound || b.Node.Switch != nil && !a.Peer.Node.Switch.Info.FilterRawInboundCap || x.rawArrives(a, b)
		}
		n, err := strconv.ParseUint(m[3], 0, 16)
		return err == nil && x.arrives(a, b, ib.PKey(n))
	}
	if m := writable.FindStringSubmatch(line); m != nil {
		return slices.ContainsFunc(proof.Changeable, func(f isolation.Finding) bool { return f.Node.String() == m[1] }) ||
			strings.Contains(line, "guessed") && slices.ContainsFunc(x.Fabric.Switches(), func(n *observed.Node) bool { return n.GUID().String() == m[1] && n.Ports[0].Info.MKey == 1 })
	}
	if m := differs.FindStringSubmatch(line); m != nil {
		at := port(m[3])
		class := subnettest.PKeys(x.allowed, at.GUID)
		if m[1] != "" {
			if at = at.Peer; at.Node.GUID().String() != m[1] || fmt.Sprintf("%03d", at.Num) != m[2] {
				return false
			}
		}
		n, err := strconv.ParseUint(m[5], 0, 16)
		k := ib.PKey(n)
		in := func(set []ib.PKey) bool { // membership counts in hosts only
			return slices.ContainsFunc(set, func(x ib.PKey) bool { return x.Base() == k.Base() && (x >= k || m[1] != "") })
		}
		return err == nil && in(at.PKeys) == (m[4] == "has") && in(class) == (m[4] == "lacks")
	}
	return false
}

// TestRandomFabrics: half of the fabrics have a fault, or some. No yes is false, every no has a witness
// that holds, and every unknown names the device.
func TestRandomFabrics(t *testing.T) {
	rounds := need.Rounds(need.Share[uint64](60, 600), 10_000)
	first, c := need.Seed(t, 1), build(t)
	statuses, faults := map[int]int{}, map[string]map[int]int{}
	for seed := first; seed < first+rounds; seed++ {
		w, what := newWorld(seed), fault{what: "none", do: func() {}}
		if seed%2 == 1 {
			what = w.fault()
		}
		for range 2 { // in some, up to three
			if more := w.fault(); seed%8 == 7 && !what.lost && !more.lost {
				more.do()
			}
		}
		var x *trial
		if what.lost {
			x = w.trial(t, seed)
			what.do()
		} else {
			what.do()
			x = w.trial(t, seed)
		}
		status, out := c.check(w.certificate())
		proof, crossed := w.judged(), x.crosses(func(*observed.Port) bool { return true })
		fail := func(why string) {
			t.Fatalf("seed %d, fault %s at %v: %s: status %d\n%sjudge: %s %v", seed, what.what, what.at, why, status, out, proof.Verdict, proof.Reasons)
		}
		statuses[status]++
		if faults[what.what] == nil {
			faults[what.what] = map[int]int{}
		}
		faults[what.what][status]++
		switch {
		case status == 0 && (crossed != "" || !proof.Verdict.Holds()):
			fail("a false yes, " + crossed)
		case status != 1 && crossed != "" && !what.lost:
			fail("packets cross, " + crossed)
		case status == 2 && !what.lost:
			fail("everything was read")
		case status == 0 && what.lost && what.what != "a host's table":
			fail("something was not read") // the table of a host that a switch lets do nothing is no matter
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "no: ") && !what.lost && !x.confirm(line, proof) {
				fail("this does not hold: " + line)
			}
		}
		if status == 2 && !strings.Contains(out, what.at.Node.GUID().String()) && !strings.Contains(out, what.at.GUID.String()) {
			fail("the device is not named")
		}
		if status > 2 {
			fail("no such status")
		}
	}
	t.Logf("%d fabrics, by status %v", rounds, statuses)
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		t.Logf("%-40s %v", name, faults[name])
	}
	for status := range 3 {
		if statuses[status] == 0 {
			t.Errorf("no fabric ended with status %d", status)
		}
	}
}
