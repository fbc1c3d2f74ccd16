package views

import (
	"slices"
	"strconv"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Event is what the stream of events says, as JSON in the data of an event.
type Event struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	Kind     string    `json:"kind" enum:"revision,outcome,manager,reset"`
	Revision uint64    `json:"revision,omitempty"`
	Name     string    `json:"name,omitempty" doc:"of the manager's event"`
	Text     string    `json:"text"`
	Outcome  *Outcome  `json:"outcome,omitempty"`
}

// EventOf is an event as a caller sees it. A sentence about a change that others made or have a part
// in too is not for a tenant: it may name what is theirs, as the reason does for which the manager
// takes a change back. The revision says what of it concerns the tenant.
func EventOf(s *resource.State, e service.Event, c resource.Caller) Event {
	out := Event{ID: e.ID, At: e.At, Kind: string(e.Kind), Revision: s.NumberFor(c, e.Revision), Name: e.Name, Text: e.Text, Outcome: OutcomeOf(e.Outcome, c)}
	if c.IsProvider() || e.Kind != service.EventRevision {
		return out
	}
	if e.By != c.Tenant || slices.ContainsFunc(e.Tenants, func(t string) bool { return t != c.Tenant }) {
		out.Text = "revision " + strconv.FormatUint(out.Revision, 10) + " changed something of yours"
	}
	return out
}
