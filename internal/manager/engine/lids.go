package engine

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/lid"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Claims are the LIDs that ports have, as last read, against what they were
// assigned: until that is put right, nothing that comes from there can be taken
// for anybody's. version changes whenever they do.
func (e *Engine) Claims() (claims []lid.Claim, version uint64) { return e.claims, e.claimed }

// lookAtLIDs computes Claims, and reports LIDs that are assigned to another port.
func (e *Engine) lookAtLIDs() {
	if e.desired == nil {
		return
	}
	claims := lid.Claims(e.ends, e.desired.Tables, e.known.Fences.Has)
	if slices.Equal(claims, e.claims) {
		return
	}
	before := e.claims
	e.claims, e.claimed = claims, e.claimed+1
	var owners map[ib.LID]*observed.Port
	for _, c := range claims {
		if slices.ContainsFunc(before, func(b lid.Claim) bool { return b.LID == c.LID && b.By.GUID == c.By.GUID }) {
			continue
		}
		if owners == nil {
			owners = e.desired.PortsByLID()
		}
		if owner := owners[c.LID]; owner != nil && owner != c.By {
			e.emit(event.Warned{Text: fmt.Sprintf("%s took LID %d of %s: nothing is taken from there until that is put right", c.By, c.LID, owner)})
		}
	}
}
