package sma

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/test/need"
)

const otherKey ib.MKey = 0xBAD

// guarded is a device with a key on the end port that packets through port 1
// reach, whose manager knows the key.
func guarded(t testing.TB, c Config, level uint8, lease uint16) *device {
	t.Helper()
	d := start(t, c)
	d.mustChange(1, 0, func(p *smp.PortInfo) {
		p.LID, p.MasterSMLID, p.SubnetTimeOut = 0x10, testSM, 0
		p.MKey, p.MKeyProtectBits, p.MKeyLeasePeriod = testMKey, level, lease
	})
	d.mkey = testMKey
	return d
}

// try sends one request with a key and gives the verdict and the M_Key that
// the answer holds.
func (d *device) try(key ib.MKey, method mad.Method) (Verdict, ib.MKey) {
	kept := d.mkey
	d.mkey = key
	data := d.lastInfo()
	p := d.request(1, method, smp.AttrPortInfo, 0, data)
	d.mkey = kept
	var info smp.PortInfo
	if err := info.UnmarshalBinary(p.Data[:]); err != nil {
		d.Fatal(err)
	}
	return d.last.Verdict, info.MKey
}

// lastInfo is a PortInfo that can be written without changing anything.
func (d *device) lastInfo() (data [mad.DataSize]byte) {
	info := *d.endPort(1)
	p := info.info
	p.PortState, p.PortPhysicalState = 0, 0
	p.MKeyViolations = 1
	if err := p.Encode(&data); err != nil {
		d.Fatal(err)
	}
	return data
}

func TestMKeyLevels(t *testing.T) {
	tests := []struct {
		level   uint8
		get     Verdict // with another key
		shown   ib.MKey
		getting uint16 // violations
	}{
		{0, Answered, testMKey, 0},
		{1, Answered, 0, 0},
		{2, BadMKey, 0, 1},
		{3, BadMKey, 0, 1},
	}
	for _, test := range tests {
		for _, c := range []Config{caConfig(2), routerConfig(2), switchConfig(2)} {
			for _, rule := range []string{"MK-05", "MK-07"} {
				t.Run(fmt.Sprintf("%s/level %d, %v", rule, test.level, c.NodeType), func(t *testing.T) {
					d := guarded(t, c, test.level, 0)
					violations := func() uint16 { return d.endPort(1).info.MKeyViolations }
					if v, key := d.try(testMKey, mad.MethodGet); v != Answered || key != testMKey {
						t.Errorf("Get with the key: verdict %d, M_Key %v", v, key)
					}
					if v, key := d.try(testMKey, mad.MethodSet); v != Answered || key != testMKey {
						t.Errorf("Set with the key: verdict %d, M_Key %v", v, key)
					}
					v, key := d.try(otherKey, mad.MethodGet)
					if v != test.get || v == Answered && key != test.shown {
						t.Errorf("Get with another key: verdict %d, M_Key %v", v, key)
					}
					if got := violations(); got != test.getting {
						t.Errorf("%d violations after a Get", got)
					}
					for i, method := range []mad.Method{mad.MethodSet, mad.MethodTrapRepress} {
						for _, key := range []ib.MKey{otherKey, 0} {
							if v, _ := d.try(key, method); v != BadMKey {
								t.Errorf("%v with key %v: verdict %d", method, key, v)
							}
						}
						if got, want := violations(), test.getting+uint16(2*i+2); got != want {
							t.Errorf("%d violations after %v, want %d", got, method, want)
						}
					}
				})
			}
		}
	}
	t.Run("MK-01/key 0 guards nothing", func(t *testing.T) {
		d := start(t, caConfig(1))
		d.mustChange(1, 0, func(p *smp.PortInfo) { p.LID, p.MasterSMLID, p.MKeyProtectBits = 0x10, testSM, 3 })
		for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
			if v, _ := d.try(otherKey, method); v != Answered {
				t.Errorf("%v: verdict %d", method, v)
			}
		}
	})
	t.Run("new key in the answer to the Set that brings it", func(t *testing.T) {
		d := guarded(t, caConfig(1), 1, 0)
		p := d.portInfo(1, 1)
		p.MKey, p.PortState, p.PortPhysicalState = otherKey, 0, 0
		if d.mustSet(1, 0, &p); p.MKey != otherKey {
			t.Errorf("%v", p.MKey)
		}
	})
}

func TestMKeyOfAnotherPort(t *testing.T) {
	const key1, key2 ib.MKey = 0x111, 0x222
	open := func(t *testing.T) *device {
		d := start(t, caConfig(2))
		for n, key := range map[ib.PortNum]ib.MKey{1: key1, 2: key2} {
			d.mkey = 0
			d.mustChange(n, 0, func(p *smp.PortInfo) {
				p.LID, p.MasterSMLID, p.MKey, p.MKeyProtectBits = 0x10, testSM, key, 2
			})
		}
		return d
	}
	ask := func(d *device, key ib.MKey, through, n ib.PortNum) Verdict {
		d.mkey = key
		d.request(through, mad.MethodGet, smp.AttrPortInfo, uint32(n), [mad.DataSize]byte{})
		got := d.last.Verdict
		p := *d.Port(n)
		p.PortState, p.PortPhysicalState, p.MKeyViolations = 0, 0, 1
		var data [mad.DataSize]byte
		if err := p.Encode(&data); err != nil {
			d.Fatal(err)
		}
		if d.request(through, mad.MethodSet, smp.AttrPortInfo, uint32(n), data); d.last.Verdict != got {
			d.Errorf("key %v through port %d: Get of port %d has verdict %d, Set %d", key, through, n, got, d.last.Verdict)
		}
		return got
	}
	t.Run("MK-02", func(t *testing.T) {
		d := open(t)
		if v := ask(d, key1, 2, 1); v != BadMKey {
			t.Errorf("key of the selected port alone: verdict %d", v)
		}
	})
	t.Run("MK-03", func(t *testing.T) {
		d := open(t)
		if v := ask(d, key2, 2, 1); v != BadMKey {
			t.Errorf("key of the receiving port alone: verdict %d", v)
		}
		if v := ask(d, key2, 2, 2); v != Answered {
			t.Errorf("receiving port itself: verdict %d", v)
		}
	})
	t.Run("MK-03/both", func(t *testing.T) {
		d := open(t)
		d.ports[1].info.MKey = key2
		if v := ask(d, key2, 2, 1); v != Answered {
			t.Errorf("key of both: verdict %d", v)
		}
	})
	t.Run("MK-04", testBothKeysFirst)
	t.Run("a switch has one key", func(t *testing.T) {
		d := guarded(t, switchConfig(2), 2, 0)
		d.mustGet(2, smp.PortInfoModifier(1, false), new(smp.PortInfo))
		if v := ask(d, otherKey, 2, 1); v != BadMKey {
			t.Errorf("verdict %d", v)
		}
		if p := d.Port(0); p.MKeyViolations != 2 { // of the Get and of the Set
			t.Errorf("%d violations at port 0", p.MKeyViolations)
		}
	})
}

func TestMKeyLease(t *testing.T) {
	const period = 30 * time.Second
	t.Run("MK-06", func(t *testing.T) {
		d := guarded(t, caConfig(1), 2, 30)
		if _, ok := d.Deadline(); ok {
			t.Error("a lease runs before anything was refused")
		}
		d.now = time.Minute
		d.try(otherKey, mad.MethodGet)
		d.now += 10 * time.Second
		d.try(otherKey, mad.MethodGet) // does not prolong it
		d.Expire(time.Minute + period - 1)
		if v, _ := d.try(otherKey, mad.MethodGet); v != BadMKey {
			t.Errorf("before the end: verdict %d", v)
		}
		d.Expire(time.Minute + period)
		if p := d.Port(1); p.MKeyProtectBits != 0 || p.MKey != testMKey {
			t.Errorf("at the end: level %d, M_Key %v", p.MKeyProtectBits, p.MKey)
		}
		if v, key := d.try(otherKey, mad.MethodGet); v != Answered || key != testMKey {
			t.Errorf("after the end: verdict %d, M_Key %v", v, key)
		}
		if v, _ := d.try(otherKey, mad.MethodSet); v != BadMKey {
			t.Errorf("Set after the end: verdict %d", v)
		}
	})
	t.Run("MK-06/the right key stops it", func(t *testing.T) {
		for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodTrapRepress} {
			d := guarded(t, switchConfig(1), 2, 30)
			d.ports[0].info.CapabilityMask = 0 // no traps to wait for
			d.try(otherKey, mad.MethodGet)
			if at, ok := d.Deadline(); !ok || at != period {
				t.Errorf("deadline %v, %v", at, ok)
			}
			d.try(testMKey, method)
			if at, ok := d.Deadline(); ok {
				t.Errorf("after %v: deadline %v", method, at)
			}
			d.Expire(time.Hour)
			if p := d.Port(0); p.MKeyProtectBits != 2 {
				t.Errorf("after %v: level %d", method, p.MKeyProtectBits)
			}
		}
	})
	t.Run("MK-06/16 bits", func(t *testing.T) {
		for _, lease := range []uint16{1, 0x0101, 0xFFFE, 0xFFFF} {
			d := guarded(t, caConfig(1), 2, lease)
			d.ports[1].info.CapabilityMask = 0
			d.try(otherKey, mad.MethodGet)
			if at, ok := d.Deadline(); !ok || at != time.Duration(lease)*time.Second {
				t.Errorf("%d s: deadline %v, %v", lease, at, ok)
			}
		}
	})
	t.Run("MK-06/period 0", func(t *testing.T) {
		d := guarded(t, caConfig(1), 2, 0)
		d.ports[1].info.CapabilityMask = 0
		d.try(otherKey, mad.MethodGet)
		if at, ok := d.Deadline(); ok {
			t.Errorf("deadline %v", at)
		}
	})
}

// Whatever is asked of a device that has an M_Key, of whatever version, method and attribute:
// without the key nothing is answered but a Get where the protection lets it pass, and nothing
// else happens. With the key, or where there is none, what the device cannot do it says.
func TestMKeyComesFirst(t *testing.T) {
	seed := need.Seed(t, 4)
	rnd := rand.New(rand.NewPCG(seed, 0))
	t.Run("MK-04", func(t *testing.T) {
		for _, c := range []Config{caConfig(2), routerConfig(2), switchConfig(2)} {
			for level := range uint8(4) {
				for range 400 {
					d := guarded(t, c, level, 0)
					p := mad.SMP{
						BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, TransactionID: rnd.Uint64(),
						Class:             []mad.Class{mad.ClassSubnLID, mad.ClassSubnDirected}[rnd.IntN(2)],
						Method:            mad.Method(rnd.IntN(0x80)),
						AttributeID:       []mad.AttributeID{smp.AttrNodeInfo, smp.AttrPortInfo, smp.AttrSMInfo, smp.AttrNotice, 0x77}[rnd.IntN(5)],
						AttributeModifier: uint32(rnd.IntN(3)), MKey: []ib.MKey{0, otherKey, testMKey}[rnd.IntN(3)],
					}
					if rnd.IntN(4) == 0 {
						p.BaseVersion, p.ClassVersion = uint8(rnd.IntN(3)), uint8(rnd.IntN(3))
					}
					if rnd.IntN(2) == 0 {
						p.Method = []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodTrapRepress, mad.MethodGetTable}[rnd.IntN(4)]
					}
					asked, before := p, d.endPort(1).info
					verdict := d.Handle(0, Ingress{Port: 1, SLID: testSM}, &p).Verdict
					after := d.endPort(1).info
					after.MKeyViolations = before.MKeyViolations
					passes := asked.MKey == testMKey || asked.Method == mad.MethodGet && level < protectAll
					switch {
					case asked.Method == mad.MethodTrap:
						if verdict != Unwanted {
							t.Fatalf("seed %d, level %d: %+v: verdict %d of a trap", seed, level, asked, verdict)
						}
					case !passes && (verdict != BadMKey || p != asked || after != before):
						t.Fatalf("seed %d, level %d, %v: %+v\nhas verdict %d without the key", seed, level, c.NodeType, asked, verdict)
					case passes && verdict == BadMKey && asked.AttributeModifier != 2:
						t.Fatalf("seed %d, level %d, %v: %+v\nis refused", seed, level, c.NodeType, asked)
					}
				}
			}
		}
	})
}
