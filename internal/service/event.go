package service

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// EventKind says what an Event is about.
type EventKind string

// The kinds of events.
const (
	// EventRevision: a change was accepted.
	EventRevision EventKind = "revision"
	// EventOutcome: the manager carried out a revision, or could not.
	EventOutcome EventKind = "outcome"
	// EventManager: the subnet manager reports something about the fabric.
	EventManager EventKind = "manager"
	// EventReset: events before this one are not kept any more, or were of an earlier
	// run: what was read before has to be read again.
	EventReset EventKind = "reset"
)

// Event is something that happened.
type Event struct {
	// ID orders events; with it a reader asks for those after it.
	ID   string    `json:"id"`
	At   time.Time `json:"at"`
	Kind EventKind `json:"kind"`
	// Tenants are those who may see the event besides the provider.
	Tenants []string `json:"-"`
	// By is the tenant whose caller made the change of EventRevision: its sentences are for
	// that tenant and the provider.
	By       string `json:"-"`
	Revision uint64 `json:"revision,omitempty"`
	// Name is the identifier of the manager's event.
	Name string `json:"name,omitempty"`
	Text string `json:"text"`
	// Outcome is that of EventOutcome.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// How many events are kept for readers that come back: for the provider, who sees all, and for
// each tenant, of its own.
const (
	eventsKept       = 10_000
	eventsKeptTenant = 500
)

// hubs keep the last events, for the provider and for each tenant by itself: the IDs that a tenant
// sees, and what is kept for it, do not depend on what happens to others.
type hubs struct {
	run string // tells the IDs of this run from those of others
	now func() time.Time
	all *hub

	mu      sync.Mutex
	tenants map[string]*hub
}

func newHubs(run string, now func() time.Time) *hubs {
	return &hubs{run: run, now: now, all: newHub(run, eventsKept, now), tenants: map[string]*hub{}}
}

func (h *hubs) add(e Event) {
	h.all.add(e)
	for _, t := range e.Tenants {
		if t != resource.Provider {
			h.of(t).add(e)
		}
	}
}

// of is the hub of a tenant.
func (h *hubs) of(tenant string) *hub {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tenants[tenant] == nil {
		h.tenants[tenant] = newHub(h.run, eventsKeptTenant, h.now)
	}
	return h.tenants[tenant]
}

// seenBy is the hub with the events that a caller may see.
func (h *hubs) seenBy(by resource.Caller) *hub {
	if by.IsProvider() {
		return h.all
	}
	return h.of(by.Tenant)
}

// changed adds the events of a revision, one for each of its words. A tenant that shares it, or did
// not make it, is told once that there was one: how many words it has is of others too.
func (s *Service) changed(r Record) {
	for i, text := range r.Words {
		e := Event{At: r.At, Kind: EventRevision, Revision: r.Number, Text: text, By: r.Tenant}
		if i == 0 || len(r.Concerns) == 1 && r.Concerns[0] == r.Tenant {
			e.Tenants = r.Concerns
		}
		s.events.add(e)
	}
}

// Stirred is closed when something happens next: whoever looks at the state again then, and takes the
// channel before he looks, misses nothing.
func (s *Service) Stirred() <-chan struct{} {
	_, _, more := s.events.all.after(s.events.all.last())
	return more
}

// hub keeps the last events and wakes those who wait for more.
type hub struct {
	run  string // tells the IDs of this run from those of others
	kept int    // how many events are kept at least
	now  func() time.Time

	mu    sync.Mutex
	list  []Event
	first uint64 // number of list[0]
	more  chan struct{}
}

func newHub(run string, kept int, now func() time.Time) *hub {
	return &hub{run: run, kept: kept, now: now, first: 1, more: make(chan struct{})}
}

// reset is what a reader is told who missed events, up to the one with a number.
func (h *hub) reset(n uint64) Event {
	return Event{ID: h.id(n), At: h.now(), Kind: EventReset, Text: "events before this one are not kept: read everything again"}
}

func (h *hub) id(n uint64) string { return fmt.Sprintf("%s-%d", h.run, n) }

func (h *hub) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.ID = h.id(h.first + uint64(len(h.list)))
	if h.list = append(h.list, e); len(h.list) >= 2*h.kept {
		h.first += uint64(h.kept)
		h.list = append(h.list[:0:0], h.list[h.kept:]...)
	}
	close(h.more)
	h.more = make(chan struct{})
}

// after are the events after a number, and what tells of more.
func (h *hub) after(n uint64) (list []Event, first uint64, more <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := max(n+1, h.first)
	if from-h.first < uint64(len(h.list)) {
		list = h.list[from-h.first:]
	}
	return list, from, h.more
}

// last is the number of the last event.
func (h *hub) last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first + uint64(len(h.list)) - 1
}

// follow yields the events after the one with an ID, all that are kept for "", and then,
// unless it is to end there, each as it happens until ctx ends. Where some are missing it
// begins with EventReset.
func (h *hub) follow(ctx context.Context, after string, end bool) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		n, known := h.number(after)
		if !known {
			n = h.last()
			if !yield(h.reset(n)) {
				return
			}
		}
		for {
			list, first, more := h.after(n)
			if first > n+1 && n > 0 {
				if !yield(h.reset(first - 1)) {
					return
				}
			}
			for _, e := range list {
				if !yield(e) {
					return
				}
			}
			n = first + uint64(len(list)) - 1
			if end {
				return
			}
			if len(list) > 0 {
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-more:
			}
		}
	}
}

// number is that of the event with an ID; not known for one of another run or of the
// future.
func (h *hub) number(id string) (n uint64, known bool) {
	if id == "" {
		return 0, true
	}
	run, text, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && run == h.run && n <= h.last()
}
