package sma

import (
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// testGetData shows AT-05: whatever stands in the data of a Get, the answer is that
// to a Get with zeros, for every attribute, and nothing on the device changes.
func testGetData(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 5))
	for _, c := range allConfigs() {
		for i := range c.Ports {
			c.Ports[i].CapabilityMask |= smp.CapNoticeSupported | smp.CapLEDInfo
			c.Ports[i].CapabilityMask |= smp.CapHasCapabilityMask2
			c.Ports[i].CapabilityMask2 |= smp.Cap2SetNodeDescription
		}
		if c.Switch != nil {
			c.Switch.Port0.CapabilityMask |= smp.CapNoticeSupported | smp.CapLEDInfo
		}
		d := start(t, c)
		d.address(1, 0x10)
		d.bring(1, 1, smp.PortArmed)
		d.mustSet(1, smp.PKeyModifier(0, 1), &smp.PKeyTable{Keys: [32]ib.PKey{3: 0x8123}})
		gets := []struct {
			id       mad.AttributeID
			modifier uint32
		}{
			{0x02, 0}, {0x10, 0}, {0x11, 0}, {0x12, 0}, {0x14, 0}, {0x15, 0}, {0x15, 1}, {0x15, 3}, {0x16, 0}, {0x16, 1},
			{0x16, 0x00030001}, {0x17, 0}, {0x17, 0x0102}, {0x17, 0x0302}, {0x18, 0x10001}, {0x18, 0x30003}, {0x19, 0}, {0x19, 3},
			{0x1A, 0}, {0x1B, 0}, {0x1B, 1}, {0x20, 0}, {0x30, 0}, {0x30, 9}, {0x31, 0}, {0xFF00, 0},
		}
		read := func(noisy bool) (out []mad.SMP) {
			for _, g := range gets {
				var data [mad.DataSize]byte
				for i := range data {
					if noisy {
						data[i] = byte(r.Uint32())
					}
				}
				p := d.request(1, mad.MethodGet, g.id, g.modifier, data)
				if p.Status != mad.StatusOK {
					p.Data = [mad.DataSize]byte{} // a refusal may bring back what it refused
				}
				out = append(out, p)
			}
			return out
		}
		quiet := read(false)
		good := 0
		for range 20 {
			for i, p := range read(true) {
				if p != quiet[i] {
					t.Errorf("%v, %s modifier %#x: the data of a Get changes the answer (seed 13, 5)", c.NodeType, smp.AttributeName(p.AttributeID), p.AttributeModifier)
				}
				if p.Status == mad.StatusOK {
					good++
				}
			}
		}
		if good < 20*10 {
			t.Errorf("%v: %d answers without a refusal: too few to show anything", c.NodeType, good)
		}
		for i, p := range read(false) {
			if p != quiet[i] {
				t.Errorf("%v, %s modifier %#x: a Get has changed it", c.NodeType, smp.AttributeName(p.AttributeID), p.AttributeModifier)
			}
		}
	}
}
