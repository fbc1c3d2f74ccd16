package egress

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// DataLanes is the largest number of data virtual lanes, VL0 to VL14.
const DataLanes = 15

// Times that lifetimes are made of.
const (
	// LimitPercent is where in the allowed window, 45 to 105 % of the nominal
	// value, both limits lie: at the nominal value itself.
	LimitPercent = 100
	// LimitCodeMax is the largest code of LifeTimeValue and HOQLife that is a
	// time; the codes above mean for ever.
	LimitCodeMax ib.TimeValue = 19
	// StallLimits is how many head-of-queue limits a virtual lane stays stalled.
	StallLimits = 8
)

// Units of arbitration.
const (
	// BlockBytes is the unit of credits, of weights and of a packet's size.
	BlockBytes = 64
	// HighLimitBlocks is the unit of VLHighLimit, 4096 bytes, in blocks.
	HighLimitBlocks = 4096 / BlockBytes
	// HighUnlimited is the VLHighLimit that never gives way to the
	// low-priority table.
	HighUnlimited = 255
)

// WaitingLimit is how many packets can wait in one virtual lane. Flow control keeps
// the virtual lanes of switches far below it; it bounds what a sender can pile up.
const WaitingLimit = 1 << 14

// Settings are what a port's agent and the training of its link decide about
// sending.
type Settings struct {
	DataVLs int // virtual lanes in operation, VL0 to VL(n-1): 0 to 15. VL15 always is

	// Exit reports whether the port is an external port of a switch or router. Only
	// there packets are dropped for waiting.
	Exit          bool
	HOQLife       ib.TimeValue // PortInfo: head-of-queue limit, 0 to 31
	LifeTimeValue ib.TimeValue // SwitchInfo: age limit, 0 to 31
	VLStallCount  uint8        // PortInfo: drops that stall a virtual lane, 1 to 7, 0 never
	// PromisesTransit reports whether the switch promises to send every packet
	// within 2.5 ms as long as credits last. Such a switch drops packets for
	// their age only if DropsAged says so; any other always does.
	PromisesTransit, DropsAged bool

	// High and Low are the arbitration tables, at most 64 entries each, copied.
	// Entries of weight 0 and of virtual lanes not in operation are skipped. Both empty
	// means never written.
	High, Low   []smp.VLArbitrationEntry
	VLHighLimit uint8 // PortInfo: units of 4096 bytes

	// Buffer is the room that the other end announced for each data virtual lane, in
	// blocks.
	Buffer [DataLanes]uint16
}

func (s *Settings) check() error {
	switch {
	case s.DataVLs < 0 || s.DataVLs > DataLanes:
		return fmt.Errorf("egress: %d data VLs: want 0 to %d", s.DataVLs, DataLanes)
	case s.HOQLife > 31:
		return fmt.Errorf("egress: HOQLife %d: want 0 to 31", s.HOQLife)
	case s.LifeTimeValue > 31:
		return fmt.Errorf("egress: LifeTimeValue %d: want 0 to 31", s.LifeTimeValue)
	case s.VLStallCount > 7:
		return fmt.Errorf("egress: VLStallCount %d: want 0 to 7", s.VLStallCount)
	}
	if err := checkTable("high", s.High); err != nil {
		return err
	}
	return checkTable("low", s.Low)
}

func checkTable(name string, table []smp.VLArbitrationEntry) error {
	if len(table) > smp.VLArbitrationMax {
		return fmt.Errorf("egress: %s-priority table of %d entries: want at most %d", name, len(table), smp.VLArbitrationMax)
	}
	for i, e := range table {
		if e.VL >= ib.VLManagement {
			return fmt.Errorf("egress: %s-priority entry %d: VL%d: want VL0 to VL14", name, i, e.VL)
		}
	}
	return nil
}

// headLimit is how long a packet may be at the head of its virtual lane.
func (s *Settings) headLimit() time.Duration {
	if !s.Exit {
		return forever
	}
	return limit(s.HOQLife)
}

// ageLimit is how old a packet may become before it begins to leave.
func (s *Settings) ageLimit() time.Duration {
	if !s.Exit || s.PromisesTransit && !s.DropsAged {
		return forever
	}
	return limit(s.LifeTimeValue)
}

func limit(code ib.TimeValue) time.Duration {
	if code > LimitCodeMax {
		return forever
	}
	return code.Duration() * LimitPercent / 100
}
