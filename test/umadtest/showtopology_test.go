package umadtest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// wayward has what generated fabrics have not: hosts with two ports, at two switches and at one,
// a host whose second port is not cabled, a router, a switch with an enhanced port 0, several
// cables between two switches, links of several widths and speeds, one that is down, and
// descriptions that are hard to print.
const wayward = `vendid=0x2c9
devid=0x1234
sysimgguid=0xaa00
switchguid=0xaa01(aa02)
Switch 8 "S-000000000000aa01" # "first ' switch" enhanced port 0 lid 0 lmc 0
[1] "H-000000000000bb01"[1](bb02) # 4xHDR
[2] "H-000000000000bb11"[1](bb12) # 1xSDR
[3] "S-000000000000cc01"[3] # 4xEDR
[4] "S-000000000000cc01"[4] # 12xQDR
[5] "R-000000000000dd01"[2](dd03) # 4xNDR
[6] "H-000000000000bb01"[2](bb03) # 4xFDR
[7] "S-000000000000cc01"[8] # 4xDDR

vendid=0x2c9
devid=0x1234
switchguid=0xcc01(cc01)
Switch 8 "S-000000000000cc01" # "second" base port 0 lid 0 lmc 0
[1] "H-000000000000bb11"[2](bb13) # 4xSDR
[2] "H-000000000000bb21"[1](bb22) # 4xHDR
[3] "S-000000000000aa01"[3]
[4] "S-000000000000aa01"[4]
[8] "S-000000000000aa01"[7]

vendid=0x15b3
devid=0x1019
sysimgguid=0xbb00
caguid=0xbb01
Ca 2 "H-000000000000bb01" # "twice here"
[1](bb02) "S-000000000000aa01"[1]
[2](bb03) "S-000000000000aa01"[6]

vendid=0x15b3
devid=0x1019
caguid=0xbb11
Ca 2 "H-000000000000bb11" # "at both"
[1](bb12) "S-000000000000aa01"[2]
[2](bb13) "S-000000000000cc01"[1]

caguid=0xbb21
Ca 2 "H-000000000000bb21" # "half"
[1](bb22) "S-000000000000cc01"[2]

rtguid=0xdd01
Rt 2 "R-000000000000dd01" # "router"
[2](dd03) "S-000000000000aa01"[5]
`

// withoutHeader is a topology file without its first comments.
func withoutHeader(text string) string {
	for strings.HasPrefix(text, "#") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// TestShowTopology: without a tool, ibwarden prints what ibnetdiscover prints, byte by byte but
// for the first comments: from every place, with LIDs and without, and by the service.
func TestShowTopology(t *testing.T) {
	need.Long(t, "ibnetdiscover from every place")
	needPrograms(t, "ibnetdiscover")
	for _, spec := range []string{"", "fattree,radix=8,levels=3", "torus,x=3,y=3,hosts=2", "dragonfly,groups=4,leafs=2,spines=2,hosts=2", "random,seed=7,switches=8,hosts=20", wayward} {
		t.Run(strings.TrimSpace(spec[:min(len(spec), 30)]), func(t *testing.T) {
			r := newRig(t, spec)
			hosts := r.hosts()
			for _, at := range []string{hosts[0].ID, hosts[len(hosts)/2].ID, hosts[len(hosts)-1].ID} {
				want := withoutHeader(r.ask(at, "ibnetdiscover"))
				got := withoutHeader(r.ask(at, "ibwarden", "show", "topology", "--fabric", "umad", "--server", "none"))
				if got != want || !strings.Contains(got, "guid=") {
					t.Errorf("at %s: %s\n%s", at, firstDifference(want, got), got)
				}
			}
		})
	}
	t.Run("of a service", func(t *testing.T) {
		r := newRig(t, "fattree,radix=6,levels=2")
		defer r.guarded("tenant", "--lmc 1")()
		whole := r.ask("", "ibwarden", "keys", "exec", "--", "ibnetdiscover")
		want := withoutHeader(whole)
		for _, from := range [][]string{{"--server", "unix:" + filepath.Join(r.dir, "data", "ibwarden.sock")}, {"--fabric", "umad"}} {
			text := r.ask("", append([]string{"ibwarden", "show", "topology", "--format", "ibnetdiscover"}, from...)...)
			if got := withoutHeader(text); got != want {
				t.Errorf("%v: %s", from, firstDifference(want, got))
			}
			if line := strings.Split(whole, "\n")[3]; !strings.Contains(text, line+"\n") {
				t.Errorf("%v: no %q in the first comments", from, line)
			}
		}
	})
}
