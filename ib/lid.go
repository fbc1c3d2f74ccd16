package ib

import (
	"fmt"
	"strconv"
)

// LID is a local identifier, the 16-bit address of a port inside one subnet.
type LID uint16

// Ranges of the LID space.
const (
	// LIDReserved names no port.
	LIDReserved LID = 0x0000
	// LIDUnicastMin is the lowest unicast LID.
	LIDUnicastMin LID = 0x0001
	// LIDUnicastMax is the highest unicast LID.
	LIDUnicastMax LID = 0xBFFF
	// LIDMulticastMin is the lowest multicast LID.
	LIDMulticastMin LID = 0xC000
	// LIDMulticastMax is the highest multicast LID.
	LIDMulticastMax LID = 0xFFFE
	// LIDPermissive is taken by whichever port receives it.
	LIDPermissive LID = 0xFFFF
)

// IsUnicast reports whether l can be the LID of a port.
func (l LID) IsUnicast() bool { return l >= LIDUnicastMin && l <= LIDUnicastMax }

// IsMulticast reports whether l names a multicast group.
func (l LID) IsMulticast() bool { return l >= LIDMulticastMin && l <= LIDMulticastMax }

// String prints the LID in decimal, as the InfiniBand diagnostics do.
func (l LID) String() string { return strconv.FormatUint(uint64(l), 10) }

// ParseLID reads a LID in decimal or, with 0x, in hexadecimal.
func ParseLID(s string) (LID, error) {
	v, err := strconv.ParseUint(s, 0, 16)
	if err != nil {
		return 0, fmt.Errorf("LID %q: want a number from 0 to 65535", s)
	}
	return LID(v), nil
}

// LMC is a LID mask count, 0 to 7: a port answers to 2^LMC LIDs from its base.
type LMC uint8

// LMCMax is the largest LID mask count.
const LMCMax LMC = 7

// Count is the number of LIDs that a port with this mask count answers to.
func (m LMC) Count() int { return 1 << m }

// CheckLIDs reports an error when the unicast LIDs of one subnet do not suffice: for ends,
// a number of end ports with 2^lmc LIDs each, and for so many switches with one each. It
// says how many they need, and which LMC would do.
func CheckLIDs(ends, switches int, lmc LMC) error {
	need := func(m LMC) int { return ends*m.Count() + switches }
	if need(lmc) <= int(LIDUnicastMax) {
		return nil
	}
	what := fmt.Sprintf("%d CA and router ports", ends)
	if lmc > 0 {
		what = fmt.Sprintf("%d end ports with %d LIDs each (LMC %d)", ends, lmc.Count(), lmc)
	}
	advice := "divide the fabric into several subnets"
	for m := lmc; m > 0; m-- {
		if need(m-1) <= int(LIDUnicastMax) {
			if advice = fmt.Sprintf("take LMC %d or less", m-1); m == 1 {
				advice = "take LMC 0"
			}
			break
		}
	}
	return fmt.Errorf("%s and %d switches need %d unicast LIDs, and a subnet has %d: %s", what, switches, need(lmc), LIDUnicastMax, advice)
}
