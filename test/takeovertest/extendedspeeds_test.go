package takeovertest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// upToNDR are the extended speeds of the devices of ndr.
const upToNDR = smp.LinkSpeedFDR | smp.LinkSpeedEDR | smp.LinkSpeedHDR | smp.LinkSpeedNDR

// faster are devices that have XDR too, so that the elements of that speed are looked at as well.
var faster = []string{"Switch2", "Hca4"}

// ndr makes NDR devices that hide extended speeds from whoever does not say that he knows them,
// and keep theirs at a Set of such a one.
func ndr(n *topology.Node, c *sma.Config) {
	ibsims(n, c)
	c.HidesExtendedSpeeds = true
	for i := range c.Ports {
		p := &c.Ports[i]
		p.LinkSpeedExtSupported = upToNDR
		if slices.Contains(faster, n.ID) {
			p.LinkSpeedExtSupported2 = smp.LinkSpeedXDR
		}
	}
}

// speedsOf are the elements of a PortInfo that have the speeds of a link, and nothing else of it.
func speedsOf(i *smp.PortInfo) smp.PortInfo {
	return smp.PortInfo{
		LinkSpeedActive: i.LinkSpeedActive, LinkSpeedSupported: i.LinkSpeedSupported, LinkSpeedEnabled: i.LinkSpeedEnabled,
		LinkSpeedExtActive: i.LinkSpeedExtActive, LinkSpeedExtSupported: i.LinkSpeedExtSupported, LinkSpeedExtEnabled: i.LinkSpeedExtEnabled,
		LinkSpeedExtActive2: i.LinkSpeedExtActive2, LinkSpeedExtSupported2: i.LinkSpeedExtSupported2, LinkSpeedExtEnabled2: i.LinkSpeedExtEnabled2,
	}
}

// PI-01: OpenSM manages NDR devices that hide extended speeds from it and keep them,
// ibwarden takes over, and OpenSM gets them back. Each time every extended field is as its port was
// made, and as the policy limits it under ibwarden, which knows all of them and has every link pass
// packets of all sizes.
func TestExtendedSpeeds(t *testing.T) {
	need.Long(t, "takeovers of NDR devices")
	for name, settings := range map[string]string{"as they are": "", "limited to HDR": "settings: {link_speed: hdr}\n"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, five(t), ndr)
			h := hosts(r.topology)
			x := trial{}
			openSM := x.openSM(r, h[0])
			limit := smp.LinkSpeedExtAll
			if locked := r.wantSpeeds("OpenSM manages", limit); locked == 0 {
				t.Error("under OpenSM every link passes all packets: these devices hide nothing from it")
			}
			w := r.ward(h[len(h)-1], "--policy", r.file("policy.yaml", "version: 1\ndefault: full\n"+settings),
				"--priority", "7", "--sm-key", "1", "--trusted-sm", h[0].Ports[1].GUID.String())
			w.manages()
			if settings != "" {
				limit = smp.LinkSpeedFDR | smp.LinkSpeedEDR | smp.LinkSpeedHDR
			}
			if locked := r.wantSpeeds("ibwarden manages", limit); locked > 0 {
				t.Errorf("under ibwarden %d ports pass small packets only", locked)
			}
			w.wantKnown()
			openSM.Rank(15)
			r.eventually("OpenSM manages again", func() bool { return r.isMaster(h[0]) })
			r.quiet()
			r.wantSpeeds("OpenSM manages again", limit)
		})
	}
}

// linked calls back for each port with a cable.
func (r *rig) linked(call func(n *topology.Node, num ib.PortNum)) {
	for _, n := range r.topology.Nodes {
		for i := range n.Ports {
			if n.Ports[i].Peer != nil {
				call(n, ib.PortNum(i))
			}
		}
	}
}

// wantSpeeds wants every extended field of each port with a cable to be as it was made, but what is
// enabled of a port without XDR to be up to limit, which counts when a link trains next. It gives
// how many ports pass small packets only.
func (r *rig) wantSpeeds(when string, limit smp.LinkSpeedExt) (locked int) {
	r.Helper()
	r.do(func(f *fabric.Fabric) {
		r.linked(func(n *topology.Node, num ib.PortNum) {
			a := f.Agent(n.GUID)
			want, got := speedsOf(a.Port(num)), speedsOf(a.Port(num))
			want.LinkSpeedActive, want.LinkSpeedExtActive, want.LinkSpeedExtActive2 = 0, smp.LinkSpeedNDR, 0
			want.LinkSpeedExtSupported, want.LinkSpeedExtEnabled = upToNDR, upToNDR&limit
			want.LinkSpeedExtSupported2, want.LinkSpeedExtEnabled2 = 0, 0
			if slices.Contains(faster, n.ID) {
				want.LinkSpeedExtEnabled = upToNDR
				want.LinkSpeedExtSupported2, want.LinkSpeedExtEnabled2 = smp.LinkSpeedXDR, smp.LinkSpeedXDR
				if slices.Contains(faster, n.Ports[num].Peer.ID) {
					want.LinkSpeedExtActive, want.LinkSpeedExtActive2 = 0, smp.LinkSpeedXDR
				}
			}
			if got != want {
				r.Errorf("%s: %s port %d has\n%v, want\n%v", when, n.ID, num, got, want)
			}
			if a.IsLocked(num) {
				locked++
			}
		})
	})
	return locked
}

// wantKnown wants ibwarden to tell of each port with a cable the speeds that it has.
func (w *warden) wantKnown() {
	w.r.Helper()
	path, err := need.Ibwarden()
	w.r.must(err)
	w.r.linked(func(n *topology.Node, num ib.PortNum) {
		out, err := exec.Command(path, "device", "get", fmt.Sprintf("%s:%d", n.ID, num), "PortInfo", "--server", "unix:"+w.socket, "--json", "--raw").CombinedOutput()
		var told struct{ Blocks []struct{ Raw string } }
		if err == nil {
			err = json.Unmarshal(out, &told)
		}
		if err != nil || len(told.Blocks) != 1 {
			w.r.Fatalf("get of %s port %d: %v\n%s", n.ID, num, err, out)
		}
		bytes, err := hex.DecodeString(told.Blocks[0].Raw)
		w.r.must(err)
		var known smp.PortInfo
		w.r.must(known.UnmarshalBinary(bytes))
		w.r.do(func(f *fabric.Fabric) {
			if is := f.Agent(n.GUID).Port(num); speedsOf(&known) != speedsOf(is) {
				w.r.Errorf("ibwarden knows of %s port %d\n%v, it has\n%v", n.ID, num, speedsOf(&known), speedsOf(is))
			}
		})
	})
}
