package sma

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// testBothKeysFirst shows MK-04: whichever of the two keys is wrong, the request
// returns nothing and changes nothing: no element and no table of any port, and no
// lease, not even that of the key which was right. What is left behind is what a
// refusal leaves: a violation at the port that it reached, and the lease of the key
// that was wrong.
func testBothKeysFirst(t *testing.T) {
	const lease = 30 // seconds
	keys := [4]ib.MKey{0, 0x111, 0x222, 0x333}
	open := func(t *testing.T) *device {
		d := start(t, caConfig(3))
		for n := ib.PortNum(1); n <= 3; n++ {
			d.mkey = 0
			d.mustChange(n, 0, func(p *smp.PortInfo) {
				p.LID, p.MasterSMLID, p.MKey, p.MKeyProtectBits, p.MKeyLeasePeriod = 0x10+ib.LID(n), testSM, keys[n], 2, lease
			})
		}
		return d
	}
	state := func(d *device) (all [4]smp.PortInfo) {
		for n := range ib.PortNum(3) {
			all[n+1] = *d.Port(n + 1)
		}
		return all
	}
	ends := func(d *device) (at [4]time.Duration) { // 0 where no lease runs
		for n := range at {
			if p := d.port(ib.PortNum(n)); p != nil && p.leased {
				at[n] = p.leaseEnd
			}
		}
		return at
	}
	for _, c := range []struct {
		name        string
		method      mad.Method
		id          mad.AttributeID
		through, of ib.PortNum
		key         ib.MKey
		wrong       ib.PortNum // whose key it is not
	}{
		{"Get, key of the selected port", mad.MethodGet, smp.AttrPortInfo, 2, 3, keys[3], 2},
		{"Get, key of the receiving port", mad.MethodGet, smp.AttrPortInfo, 2, 3, keys[2], 3},
		{"Get, key of neither", mad.MethodGet, smp.AttrPortInfo, 2, 3, keys[1], 2},
		{"Set, key of the selected port", mad.MethodSet, smp.AttrPortInfo, 2, 3, keys[3], 2},
		{"Set, key of the receiving port", mad.MethodSet, smp.AttrPortInfo, 2, 3, keys[2], 3},
		{"Set of the port itself", mad.MethodSet, smp.AttrPortInfo, 3, 3, keys[2], 3},
		{"Set of keys", mad.MethodSet, smp.AttrPKeyTable, 3, 0, keys[2], 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t)
			d.now = time.Minute // the leases of all three begin to run out
			for n := ib.PortNum(1); n <= 3; n++ {
				d.mkey = otherKey
				d.request(n, mad.MethodGet, smp.AttrNodeInfo, 0, [mad.DataSize]byte{})
			}
			running := ends(d)
			running[c.wrong] = 0
			d.ports[c.wrong].leased = false // but for that which the refusal has to start
			d.now += 7 * time.Second

			want := state(d)
			change := smp.PortInfo{LID: 0x99, MasterSMLID: 0x98, MKey: 0x777, GIDPrefix: 5, MasterSMSL: 3, SubnetTimeOut: 4, NeighborMTU: ib.MTU512}
			p := mad.SMP{Method: c.method, AttributeID: c.id, AttributeModifier: uint32(c.of)}
			if err := change.Encode(&p.Data); err != nil {
				t.Fatal(err)
			}
			if c.id == smp.AttrPKeyTable {
				p.Data = [mad.DataSize]byte{0x80, 5}
			}
			d.mkey = c.key
			got := d.send(c.through, p)
			if d.last.Verdict != BadMKey || got.Method != c.method || got.Data != p.Data || got.Status != 0 {
				t.Errorf("verdict %d, packet %+v", d.last.Verdict, got)
			}
			want[c.through].MKeyViolations++
			if now := state(d); now != want {
				t.Errorf("ports changed to\n%+v, want\n%+v", now, want)
			}
			for n := ib.PortNum(1); n <= 3; n++ {
				if keys := d.PKeys(n); len(keys) != 1 || keys[0] != ib.PKeyDefaultFull {
					t.Errorf("port %d holds %v", n, keys)
				}
			}
			running[c.wrong] = d.now + lease*time.Second
			if now := ends(d); now != running {
				t.Errorf("leases end at %v, want %v", now, running)
			}
		})
	}
	t.Run("both right", func(t *testing.T) {
		d := open(t)
		d.ports[3].info.MKey = keys[2]
		for n := ib.PortNum(1); n <= 3; n++ {
			d.mkey = otherKey
			d.request(n, mad.MethodGet, smp.AttrNodeInfo, 0, [mad.DataSize]byte{})
		}
		d.mkey = keys[2]
		if got := d.portInfo(2, 3).LID; got != 0x13 {
			t.Errorf("LID %v", got)
		}
		if at := ends(d); at[1] == 0 || at[2] != 0 || at[3] != 0 {
			t.Errorf("leases end at %v, want that of port 1 alone to go on", at)
		}
	})
}
