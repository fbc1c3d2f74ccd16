package umadtest

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/test/need"
)

// byIndex reads the counters of every port that answers to a request with the P_Key at an index of the
// own table, by LID.
func byIndex(args []string) (answers int, err error) {
	index, err := strconv.ParseUint(args[0], 10, 16)
	if err != nil {
		return 0, err
	}
	f, err := openAttack(umad.Registration{QPN: 1, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion})
	if err != nil {
		return 0, err
	}
	own := ownNumber("lid")
	for lid := ib.LID(1); lid < 30; lid++ {
		if uint64(lid) == own {
			continue
		}
		h := generalTo(lid)
		h.PKeyIndex = uint16(index)
		n, err := f.counters(h, mad.MethodGet, 3)
		if err != nil {
			return answers, err
		}
		answers += n
	}
	return answers, nil
}

// TestLyingAdapters: a machine whose adapter has a key of the other tenant, and does not say so, reaches
// nobody with it; one that says the GUID of another host gets none of that host's keys.
func TestLyingAdapters(t *testing.T) {
	need.Long(t, "Linux machines boot")
	a := newAttacked(t)
	a.bootWith([]string{"--lie-pkey", foreign.String()}, 192, map[string]string{attacksInside: must(os.Executable())}, "red-1")
	stop := a.manager("tenant")
	defer stop()
	a.eventually("isolated", func() bool { return strings.Contains(a.said(), "verdict: isolated") })
	a.shows("red-1", "cat "+linuxPort+"state", "ACTIVE")
	keys := strings.Fields(a.script("red-1", "cat "+linuxPort+"pkeys/*"))
	if want := []string{"0x8010", "0x0000", "0x0000", foreign.String()}; !slices.Equal(keys, want) {
		t.Fatalf("the keys of red-1 are %v, want %v: no control", keys, want)
	}
	for index, reaches := range map[string]bool{"0": true, "3": false} {
		if o := a.program("red-1", "by-index", index); o.status != 0 || strings.HasPrefix(o.stdout, "reached: 0\n") == reaches {
			t.Errorf("with key %s: status %d, %s%s, want that it reaches somebody: %v", index, o.status, o.stdout, o.stderr, reaches)
		}
	}
	before := strings.Count(a.said(), "verdict: isolated")
	a.bootWith([]string{"--lie-guid", a.port("blue-2")}, 128, nil, "red-2")
	a.shows("red-2", "cat "+linuxPort+"phys_state", "LinkUp")
	a.eventually("red-2 is fenced", func() bool {
		_, after, fenced := strings.Cut(a.said(), "is fenced: not on the cable list: expected red-2")
		return fenced && strings.Contains(after, "verdict: isolated")
	})
	if keys := a.script("red-2", "cat "+linuxPort+"pkeys/* "+linuxPort+"state"); strings.Contains(keys, foreign.String()) || strings.Contains(keys, "ACTIVE") {
		t.Errorf("red-2 has %s", keys)
	}
	if keys := a.ask("blue-2", "sh", "-c", "cat /sys/class/infiniband/*/ports/1/pkeys/0"); strings.TrimSpace(keys) != foreign.String() {
		t.Errorf("blue-2 has %s", keys)
	}
	if text := a.said(); strings.Contains(text, "violated") || strings.Count(text, "verdict: isolated") <= before {
		t.Errorf("the verdict has changed")
	}
}
