package umadtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/test/need"
)

// channelWord is what the one tenant's program writes over the data of management packets.
var channelWord = bytes.Repeat([]byte("red's 16 bytes.."), mad.DataSize/16)

// channelTime is how long the program that listens does.
const channelTime = 8 * time.Second

// hearChannel has IsSM set and counts the management packets whose data another tenant's
// program has written.
func hearChannel([]string) (n int, err error) {
	f, err := openAttack(umad.Registration{
		Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion,
		Methods: umad.MethodSet(mad.MethodGet, mad.MethodSet, mad.MethodTrap, mad.MethodTrapRepress),
	})
	if err != nil {
		return 0, err
	}
	fd, err := unix.Open("/dev/infiniband/issm0", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for end := time.Now().Add(channelTime); time.Now().Before(end); {
		_, m, some := f.read(time.Until(end))
		var p mad.SMP
		if some && p.UnmarshalBinary(m) == nil && bytes.Equal(p.Data[:], channelWord) {
			n++
		}
	}
	return n, nil
}

// speakChannel sends SMInfo requests and traps to the port of another tenant, whatever is there.
func speakChannel([]string) (n int, err error) {
	f, err := smpFile(mad.ClassSubnDirected)
	if err != nil {
		return 0, err
	}
	for end := time.Now().Add(channelTime); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodTrap} {
			f.next++
			p := mad.SMP{
				BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion, Method: method,
				TransactionID: f.next, AttributeID: smp.AttrSMInfo, HopCount: uint8(len(aBlue)), DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
			}
			for i, num := range aBlue {
				p.InitialPath[i+1] = byte(num)
			}
			copy(p.Data[:], channelWord)
			var raw [mad.Size]byte
			if err := p.Encode(&raw); err != nil {
				return n, err
			}
			if err := f.post(umad.Header{LID: ib.LIDPermissive}, raw[:]); err == nil {
				n++
			}
		}
	}
	return n, nil
}

// TestAttackManagementChannel: programs of two tenants that both want to send to each other in
// management packets, past every partition, where one has IsSM set. No manager can stop that
// (docs/status.md): the verdict names the port, and profile strict fences it, though it answers
// nothing.
func TestAttackManagementChannel(t *testing.T) {
	need.Long(t, "an attack for some time; what simtest does with raw packets is near")
	for _, profile := range []string{"tenant", "strict"} {
		t.Run(profile, func(t *testing.T) {
			a := newAttacked(t)
			defer a.manager(profile)()
			a.up()
			const listener = "blue-3" // it is at the end of aBlue
			heard := make(chan output, 1)
			go func() { heard <- a.program(listener, "hear-channel") }()
			a.program("red-1", "speak-channel")
			o := <-heard
			var n int
			if _, err := fmt.Sscanf(o.stdout, "reached: %d", &n); err != nil {
				t.Fatalf("%v: %s%s", err, o.stdout, o.stderr)
			}
			t.Logf("%d packets with data of another tenant", n)
			if n == 0 {
				t.Error("nothing is heard: docs/status.md says that it can be")
			}
			said := a.said()
			if !strings.Contains(said, isolation.CaveatManagers) || !strings.Contains(said, listener) {
				t.Errorf("no verdict names the port:\n%s", said)
			}
			a.eventually("the verdict no longer names it", func() bool {
				_, last, _ := strings.Cut(a.said()[max(strings.LastIndex(a.said(), "verdict:"), 0):], "verdict:")
				return !strings.Contains(last, isolation.CaveatManagers)
			})
			if fenced := strings.Contains(said, "a subnet manager that nobody named"); fenced != (profile == "strict") {
				t.Errorf("fenced: %v\n%s", fenced, said)
			}
		})
	}
}
