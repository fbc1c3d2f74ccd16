package fabric_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// jam is a star whose switch cannot send on virtual lane 0 of port 2: the host there gives
// no credits back, and what it announced is used up but for room for small packets.
type jam struct {
	*bench
	qpn   ib.QPN
	taken []fabric.DataSighting // at host 2
	entry map[int]time.Duration // when a packet of so many bytes was at the switch
}

// never is a code of HOQLife and LifeTimeValue that stands for no limit.
const never ib.TimeValue = 20

// nominal is what a code of HOQLife or LifeTimeValue stands for.
func nominal(code ib.TimeValue) time.Duration { return 4096 * time.Nanosecond << code }

// Sizes of the payloads that are sent; a big packet has 33 blocks, a small one 2.
const (
	bigPayload   = 2048
	smallPayload = 64
	frameBytes   = 34 // of a packet beside its payload, CRCs included
)

func newJam(t *testing.T, life ib.TimeValue, edit func(p *smp.PortInfo)) *jam {
	t.Helper()
	return newJamOn(t, fabric.Config{Seed: 1, HopDelay: 300, AgentDelay: 1000}, life, edit)
}

func newJamOn(t *testing.T, c fabric.Config, life ib.TimeValue, edit func(p *smp.PortInfo)) *jam {
	t.Helper()
	j := &jam{entry: map[int]time.Duration{}}
	c.DataTrace = func(s fabric.DataSighting) {
		switch {
		case s.Outcome == fabric.OutcomeLeft && s.Node == hostGUID(1):
			j.entry[len(s.Bytes)] = s.At + c.HopDelay
		case s.Outcome == fabric.OutcomeTaken && s.Node == hostGUID(2):
			s.Bytes = append([]byte(nil), s.Bytes...)
			j.taken = append(j.taken, s)
		}
	}
	j.bench = newBench(t, star(t), c)
	j.qpn = j.qp(hostGUID(2), 0, 7, 64).Number()
	sw := switchGUID(0)
	j.change(sw, 2, edit)
	j.manage(sw, 0, func(c *client) {
		var info smp.SwitchInfo
		c.get(nil, 0, &info)
		info.LifeTimeValue = life
		c.set(nil, 0, &info)
	})
	j.must(j.Withhold(hostGUID(2), 1, true))
	for range fabric.InputBlocks / 33 {
		j.inject(bigPayload)
	}
	j.idle()
	if len(j.taken) != 7 || len(j.dropped) != 0 {
		t.Fatalf("%d packets arrived before the VL was full, want 7; %s", len(j.taken), j.outcomes())
	}
	j.taken = nil
	return j
}

// inject puts a packet for host 2 on the wire at host 1.
func (j *jam) inject(payload int) {
	j.t.Helper()
	j.must(j.Inject(hostGUID(1), 1, bytesOf(j.t, 3, j.qpn, 0xFFFF, 7, payload)))
}

// ends checks which packets ended at the switch, in order, by their payloads, and
// how long after their arrival; every time has to lie in the window that the texts
// allow.
func (j *jam) ends(want ...ending) {
	j.t.Helper()
	if len(j.dropped) != len(want) {
		j.t.Fatalf("%d packets ended, want %d; %s", len(j.dropped), len(want), j.outcomes())
	}
	for i, w := range want {
		d := j.dropped[i]
		after := d.At - j.entry[len(d.Bytes)]
		if d.Outcome != w.outcome || d.Node != switchGUID(0) || d.Port != 2 || len(d.Bytes) != w.payload+frameBytes {
			j.t.Errorf("end %d: %v of %d bytes at port %d of %v; want %v of a payload of %d at the switch's port 2",
				i, d.Outcome, len(d.Bytes), d.Port, d.Node, w.outcome, w.payload)
		}
		if after < w.after/100*45 || after > w.after/100*105 {
			j.t.Errorf("end %d: %v after it came, want 45 to 105 %% of %v", i, after, w.after)
		}
	}
}

// ending is one packet's.
type ending struct {
	payload int
	outcome fabric.Outcome
	after   time.Duration
}

// Lifetimes of packets, with whole packets in a switch whose tables a manager wrote.
func TestLifetimes(t *testing.T) {
	codes := []ib.TimeValue{0, 5, 11}
	t.Run("SI-23 SI-25 head of queue, the next leaves at once", func(t *testing.T) {
		for _, code := range codes {
			j := newJam(t, never, func(p *smp.PortInfo) { p.HOQLife = code })
			j.inject(bigPayload)
			j.inject(smallPayload)
			j.idle()
			j.ends(ending{bigPayload, fabric.OutcomeHeadTooOld, nominal(code)})
			if len(j.taken) != 1 || len(j.taken[0].Bytes) != smallPayload+frameBytes {
				t.Fatalf("code %d: %d packets arrived, want the small one; %s", code, len(j.taken), j.outcomes())
			}
			// It leaves in the instant in which the one before it was dropped.
			if got, want := j.taken[0].At, j.dropped[0].At+300; got != want {
				t.Errorf("code %d: the next packet arrived at %v, want %v", code, got, want)
			}
			if c := j.Counters(switchGUID(0)).Port(2); c.PortXmitDiscards != 1 || c.SwHOQLifetimeLimitDiscards != 1 {
				t.Errorf("discards %d, by the head-of-queue limit %d; want 1 and 1", c.PortXmitDiscards, c.SwHOQLifetimeLimitDiscards)
			}
		}
	})
	t.Run("SI-21 SI-30 as old as the switch allows", func(t *testing.T) {
		for _, code := range codes {
			j := newJam(t, code, func(p *smp.PortInfo) { p.HOQLife = never })
			j.inject(bigPayload)
			j.AdvanceTo(j.Now() + nominal(code)/4)
			j.inject(bigPayload - 4)
			j.idle()
			j.ends(ending{bigPayload, fabric.OutcomeTooOld, nominal(code)}, ending{bigPayload - 4, fabric.OutcomeTooOld, nominal(code)})
			if gap := j.dropped[1].At - j.dropped[0].At; gap != nominal(code)/4 {
				t.Errorf("code %d: the second ended %v after the first, want %v: each by its own age", code, gap, nominal(code)/4)
			}
			if c := j.Counters(switchGUID(0)).Port(2); c.PortXmitDiscards != 2 || c.SwLifetimeLimitDiscards != 2 {
				t.Errorf("discards %d, by the switch lifetime limit %d; want 2 and 2", c.PortXmitDiscards, c.SwLifetimeLimitDiscards)
			}
		}
	})
	// Over a link of 2.5 Gb/s a big packet takes 8.3 us to come in, half of the limit:
	// its age is counted from its first bit and not from when it was there.
	t.Run("SI-30 age from the first bit", func(t *testing.T) {
		const code, perByte = 2, 4 * time.Nanosecond
		c := fabric.Config{Seed: 1, HopDelay: 300, AgentDelay: 1000, WireTime: true}
		c.Profile = func(_ *topology.Node, d *sma.Config) {
			for i := range d.Ports {
				p := &d.Ports[i]
				p.LinkWidthSupported, p.LinkSpeedSupported, p.LinkSpeedExtSupported = smp.LinkWidth1X, smp.LinkSpeedSDR, 0
				p.LinkWidthEnabled, p.LinkSpeedEnabled = 0, 0
			}
		}
		j := newJamOn(t, c, code, func(p *smp.PortInfo) { p.HOQLife = never })
		start := j.Now()
		j.inject(bigPayload)
		j.idle()
		j.ends(ending{bigPayload, fabric.OutcomeTooOld, nominal(code)})
		first := start + c.HopDelay
		if got := j.entry[bigPayload+frameBytes]; got != first {
			t.Errorf("the first bit came at %v, want %v", got, first)
		}
		if wire, limit := (bigPayload+frameBytes)*perByte, nominal(code); wire <= limit/20 {
			t.Fatalf("it took %v to come in: too short against a limit of %v to show anything", wire, limit)
		}
		if after := j.dropped[0].At - first; after != nominal(code) {
			t.Errorf("it ended %v after its first bit came, want %v", after, nominal(code))
		}
	})
	t.Run("SI-22 SI-24 no limits", func(t *testing.T) {
		j := newJam(t, never, func(p *smp.PortInfo) { p.HOQLife = never })
		for range 3 {
			j.inject(bigPayload)
		}
		j.run()
		j.AdvanceTo(j.Now() + time.Hour)
		if n := j.DataWaiting(switchGUID(0), 2); n != 3 || len(j.dropped) != 0 {
			t.Fatalf("%d wait after an hour, want 3; %s", n, j.outcomes())
		}
		j.must(j.Withhold(hostGUID(2), 1, false))
		j.idle()
		if len(j.taken) != 3 {
			t.Errorf("%d arrived once there was room, want 3; %s", len(j.taken), j.outcomes())
		}
	})
	t.Run("SI-26 SI-27 SI-28 a stalled VL", func(t *testing.T) {
		const code = 6
		j := newJam(t, never, func(p *smp.PortInfo) { p.HOQLife, p.VLStallCount = code, 2 })
		for i := range 4 {
			j.inject(bigPayload - 4*i)
		}
		for len(j.dropped) < 4 && j.Step() {
		}
		// The first two in turn; the second stalls the virtual lane for those behind it.
		j.ends(ending{bigPayload, fabric.OutcomeHeadTooOld, nominal(code)},
			ending{bigPayload - 4, fabric.OutcomeHeadTooOld, 2 * nominal(code)},
			ending{bigPayload - 8, fabric.OutcomeStalled, 2 * nominal(code)},
			ending{bigPayload - 12, fabric.OutcomeStalled, 2 * nominal(code)})
		stalled := j.Now()
		j.must(j.Withhold(hostGUID(2), 1, false)) // there is room again, and still
		j.AdvanceTo(stalled + 8*nominal(code)/2)
		j.inject(smallPayload)
		j.AdvanceTo(j.Now() + time.Microsecond)
		if n := len(j.dropped); n != 5 || j.dropped[4].Outcome != fabric.OutcomeStalled {
			t.Fatalf("SI-26: what came to a stalled VL was not dropped at once; %s", j.outcomes())
		}
		j.AdvanceTo(stalled + 9*nominal(code))
		j.inject(smallPayload)
		j.idle()
		if len(j.taken) != 1 {
			t.Errorf("SI-28: the VL did not recover; %s", j.outcomes())
		}
	})
	t.Run("SI-27 a packet that leaves ends the row", func(t *testing.T) {
		j := newJam(t, never, func(p *smp.PortInfo) { p.HOQLife, p.VLStallCount = 6, 2 })
		for _, payload := range []int{bigPayload, smallPayload, bigPayload - 4, smallPayload + 4} {
			j.inject(payload)
		}
		j.idle()
		j.ends(ending{bigPayload, fabric.OutcomeHeadTooOld, nominal(6)}, ending{bigPayload - 4, fabric.OutcomeHeadTooOld, 2 * nominal(6)})
		if len(j.taken) != 2 {
			t.Errorf("%d arrived, want the two small ones; %s", len(j.taken), j.outcomes())
		}
	})
	t.Run("only at the exits of switches", func(t *testing.T) {
		j := newJam(t, 0, func(p *smp.PortInfo) { p.HOQLife = 0 })
		// The switch's room for virtual lane 0 of port 1 is withheld from host 1.
		j.change(hostGUID(1), 1, func(p *smp.PortInfo) { p.HOQLife, p.VLStallCount = 0, 1 })
		j.must(j.Withhold(switchGUID(0), 1, true))
		for range 9 {
			j.inject(bigPayload)
		}
		j.run()
		j.AdvanceTo(j.Now() + time.Hour)
		if n := j.DataWaiting(hostGUID(1), 1); n != 2 {
			t.Errorf("%d wait at the host after an hour, want 2; %s", n, j.outcomes())
		}
	})
	t.Run("another VL is not concerned", func(t *testing.T) {
		j := newJam(t, never, func(p *smp.PortInfo) { p.HOQLife, p.VLStallCount = 6, 1 })
		j.manage(switchGUID(0), 0, func(c *client) {
			var table smp.SLToVLMappingTable
			table.VLs[1] = 1
			c.set(nil, 0x0102, &table)
		})
		j.inject(bigPayload)
		for len(j.dropped) < 1 && j.Step() { // virtual lane 0 is stalled now
		}
		other := bytesOf(t, 3, j.qpn, 0xFFFF, 7, bigPayload)
		(*packet.LRH)(other).SetSL(1)
		j.must(j.Inject(hostGUID(1), 1, sealed(other)))
		j.idle()
		if len(j.taken) != 1 || len(j.dropped) != 1 {
			t.Errorf("%d arrived on VL 1, %d ended; want 1 and the one before; %s", len(j.taken), len(j.dropped), j.outcomes())
		}
	})
}
