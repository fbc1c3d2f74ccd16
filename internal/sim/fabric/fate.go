package fabric

import "github.com/ibwarden/ibwarden/internal/sim/fabric/fate"

// Fate is what becomes of a data packet at one place; see package fate.
type Fate = fate.Fate

// The fates: three ways on, then the ends.
const (
	FateLeft       = fate.Left
	FateTaken      = fate.Taken
	FateManagement = fate.Management
	FateRefused    = fate.Refused
	FateVCRC       = fate.VCRC
	FateMalformed  = fate.Malformed
	FateEntryState = fate.EntryState
	FateEntryLane  = fate.EntryLane
	FateEntryRaw   = fate.EntryRaw
	FateEntryPKey  = fate.EntryPKey
	FateNoRoute    = fate.NoRoute
	FateLoop       = fate.Loop
	FateExitState  = fate.ExitState
	FateExitRaw    = fate.ExitRaw
	FateExitPKey   = fate.ExitPKey
	FateExitLane   = fate.ExitLane
	FateTooLong    = fate.TooLong
	FateHopLimit   = fate.HopLimit
	FateHeadTooOld = fate.HeadTooOld
	FateTooOld     = fate.TooOld
	FateStalled    = fate.Stalled
	FateLaneClosed = fate.LaneClosed
	FateLinkDown   = fate.LinkDown
	FateLost       = fate.Lost
	FateBuffer     = fate.Buffer
	FateHops       = fate.Hops
)
