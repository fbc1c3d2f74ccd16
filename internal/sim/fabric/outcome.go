package fabric

import "github.com/ibwarden/ibwarden/internal/sim/fabric/outcome"

// Outcome is the outcome of a data packet at one hop; see package outcome.
type Outcome = outcome.Outcome

// The outcomes: three ways on, then the ends.
const (
	OutcomeLeft       = outcome.Left
	OutcomeTaken      = outcome.Taken
	OutcomeManagement = outcome.Management
	OutcomeRefused    = outcome.Refused
	OutcomeVCRC       = outcome.VCRC
	OutcomeMalformed  = outcome.Malformed
	OutcomeEntryState = outcome.EntryState
	OutcomeEntryLane  = outcome.EntryLane
	OutcomeEntryRaw   = outcome.EntryRaw
	OutcomeEntryPKey  = outcome.EntryPKey
	OutcomeNoRoute    = outcome.NoRoute
	OutcomeLoop       = outcome.Loop
	OutcomeExitState  = outcome.ExitState
	OutcomeExitRaw    = outcome.ExitRaw
	OutcomeExitPKey   = outcome.ExitPKey
	OutcomeExitLane   = outcome.ExitLane
	OutcomeTooLong    = outcome.TooLong
	OutcomeHopLimit   = outcome.HopLimit
	OutcomeHeadTooOld = outcome.HeadTooOld
	OutcomeTooOld     = outcome.TooOld
	OutcomeStalled    = outcome.Stalled
	OutcomeLaneClosed = outcome.LaneClosed
	OutcomeLinkDown   = outcome.LinkDown
	OutcomeLost       = outcome.Lost
	OutcomeBuffer     = outcome.Buffer
	OutcomeHops       = outcome.Hops
)
