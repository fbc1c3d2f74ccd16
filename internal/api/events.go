package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ibwarden/ibwarden/internal/api/history"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Event is what the stream of events says, as JSON in the data of an event.
type Event struct {
	ID       string           `json:"id"`
	At       time.Time        `json:"at"`
	Kind     string           `json:"kind" enum:"revision,outcome,manager,reset"`
	Revision uint64           `json:"revision,omitempty"`
	Name     string           `json:"name,omitempty" doc:"of the manager's event"`
	Text     string           `json:"text"`
	Outcome  *history.Outcome `json:"outcome,omitempty"`
}

// eventOf is an event as a caller sees it. A sentence about a change that others made or have a part
// in too is not for a tenant: it may name what is theirs, as the reason does for which the manager
// takes a change back. The revision says what of it concerns the tenant.
func eventOf(s *resource.State, e service.Event, c resource.Caller) Event {
	out := Event{ID: e.ID, At: e.At, Kind: string(e.Kind), Revision: s.NumberFor(c, e.Revision), Name: e.Name, Text: e.Text, Outcome: history.OutcomeOf(e.Outcome, c)}
	if c.IsProvider() || e.Kind != service.EventRevision {
		return out
	}
	if e.By != c.Tenant || slices.ContainsFunc(e.Tenants, func(t string) bool { return t != c.Tenant }) {
		out.Text = "revision " + strconv.FormatUint(out.Revision, 10) + " changed something of yours"
	}
	return out
}

func (a *api) events() {
	type input struct {
		After string `query:"after" maxLength:"64" doc:"the ID of the last event that was seen; Last-Event-ID is the same"`
		Last  string `header:"Last-Event-ID" maxLength:"64" doc:"the ID of the last event that was seen"`
		Kept  bool   `query:"kept" doc:"only what has happened: the stream ends then"`
	}
	op := operation(http.MethodGet, "/events", "watch-events", "Events as they happen (server-sent events): those that are kept first, or those after the last one seen")
	op = streams(op, "text/event-stream", "events; the data of each is an Event in JSON. An event of the kind reset says that some are missing: read everything again")
	a.huma.OpenAPI().Components.Schemas.Schema(typeOf[Event](), true, "Event")
	register(a, op, func(ctx context.Context, in *input) (*huma.StreamResponse, error) {
		after := in.Last
		if after == "" {
			after = in.After
		}
		if strings.ContainsAny(after, "\r\n\x00") {
			return nil, fault(http.StatusUnprocessableEntity, "invalid", "query.after", "want the ID of an event")
		}
		if !a.opened() {
			return nil, problem(http.StatusServiceUnavailable, reasonBusy, fmt.Sprintf("%d streams are open, which is the most", StreamsMax)).RetryAfter(storeAfter)
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			defer a.closed()
			_, w := humago.Unwrap(c)
			w.Header().Set("Content-Type", "text/event-stream")
			a.stream(ctx, w, after, in.Kept)
		}}, nil
	})
}

func (a *api) opened() bool {
	a.watching.Lock()
	defer a.watching.Unlock()
	if a.watchers >= StreamsMax {
		return false
	}
	a.watchers++
	return true
}

func (a *api) closed() {
	a.watching.Lock()
	defer a.watching.Unlock()
	a.watchers--
}

// stream writes events until the client is gone, or too slow, or may not see them any
// more; of those that have happened only if that is asked.
func (a *api) stream(ctx context.Context, w http.ResponseWriter, after string, kept bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	req := requestOf(ctx)
	events := make(chan service.Event)
	go func() {
		defer close(events)
		list := a.service.Events(ctx, req.who.Caller, after)
		if kept {
			list = a.service.KeptEvents(req.who.Caller, after)
		}
		for e := range list {
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	alive := time.NewTicker(limitsOf(ctx).alive)
	defer alive.Stop()
	control := http.NewResponseController(w)
	send := func(text string) error {
		_ = control.SetWriteDeadline(time.Now().Add(limitsOf(ctx).stream)) // one of a test has none
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
		return control.Flush()
	}
	if send(": events\n\n") != nil {
		return
	}
	for {
		var err error
		select {
		case e, more := <-events:
			if !more || !a.still(req) {
				return
			}
			var data []byte
			var event Event
			a.service.Read(func(s *resource.State) { event = eventOf(s, e, req.who.Caller) })
			if data, err = json.Marshal(event); err == nil {
				err = send(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, data))
			}
		case <-alive.C:
			if !a.still(req) {
				return
			}
			err = send(": alive\n\n")
		}
		if err != nil {
			return
		}
	}
}
