package engine

import (
	"slices"

	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// Claims are the LIDs that ports have, as last read, against what they were
// assigned: until that is put right, nothing that comes from there can be taken
// for anybody's. version changes whenever they do.
func (e *Engine) Claims() (claims []desired.LIDClaim, version uint64) {
	return e.proof.claims, e.proof.claimed
}

// lookAtLIDs computes Claims, and reports LIDs that are assigned to another port.
func (e *Engine) lookAtLIDs() {
	if e.desired == nil {
		return
	}
	claims := desired.LIDClaims(e.ends, e.desired.Tables, e.known.Fences.Has)
	if slices.Equal(claims, e.proof.claims) {
		return
	}
	before := e.proof.claims
	e.proof.claims, e.proof.claimed = claims, e.proof.claimed+1
	for _, text := range desired.LIDThefts(claims, before, e.desired.PortsByLID) {
		e.emit(event.Warned{Text: text + ": nothing is taken from there until that is put right"})
	}
}
