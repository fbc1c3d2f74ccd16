package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func (a *api) events() {
	type input struct {
		After string `query:"after" maxLength:"64" doc:"the ID of the last event that was seen; Last-Event-ID is the same"`
		Last  string `header:"Last-Event-ID" maxLength:"64" doc:"the ID of the last event that was seen"`
		Kept  bool   `query:"kept" doc:"only what has happened: the stream ends then"`
	}
	op := operation(http.MethodGet, "/events", "watch-events", "Events as they happen (server-sent events): those that are kept first, or those after the last one seen")
	op = streams(op, "text/event-stream", "events; the data of each is an Event in JSON. An event of the kind reset says that some are missing: read everything again")
	a.huma.OpenAPI().Components.Schemas.Schema(typeOf[views.Event](), true, "Event")
	register(a, op, func(ctx context.Context, in *input) (*huma.StreamResponse, error) {
		after := in.Last
		if after == "" {
			after = in.After
		}
		if strings.ContainsAny(after, "\r\n\x00") {
			return nil, fault(http.StatusUnprocessableEntity, "invalid", "query.after", "want the ID of an event")
		}
		return a.streaming(func(w http.ResponseWriter) { a.stream(ctx, w, after, in.Kept) })
	})
}

// streaming is an answer that goes on until f returns.
func (a *api) streaming(f func(w http.ResponseWriter)) (*huma.StreamResponse, error) {
	if !a.opened() {
		return nil, problem(http.StatusServiceUnavailable, reasonBusy, fmt.Sprintf("%d streams are open, which is the most", StreamsMax)).RetryAfter(storeAfter)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer a.closed()
		_, w := humago.Unwrap(c)
		w.Header().Set("Content-Type", "text/event-stream")
		f(w)
	}}, nil
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
	req := requestOf(ctx)
	a.send(ctx, w, ": events", func(ctx context.Context, say func(text string) bool) {
		list := a.service.Events(ctx, req.who.Caller, after)
		if kept {
			list = a.service.KeptEvents(req.who.Caller, after)
		}
		for e := range list {
			var event views.Event
			a.service.Read(func(s *resource.State) { event = views.EventOf(s, e, req.who.Caller) })
			data, err := json.Marshal(event)
			if err != nil || !say(fmt.Sprintf("id: %s\nevent: %s\ndata: %s", e.ID, e.Kind, data)) {
				return
			}
		}
	})
}

// send writes a first text and those that are said, in a goroutine of their own, until that ends, the
// client is gone or too slow, or the caller may not see anything any more.
func (a *api) send(ctx context.Context, w http.ResponseWriter, first string, tell func(ctx context.Context, say func(text string) bool)) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	req, texts := requestOf(ctx), make(chan string)
	go func() {
		defer close(texts)
		tell(ctx, func(text string) bool {
			select {
			case texts <- text:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	alive := time.NewTicker(limitsOf(ctx).alive)
	defer alive.Stop()
	control := http.NewResponseController(w)
	for text := first; ; {
		_ = control.SetWriteDeadline(time.Now().Add(limitsOf(ctx).stream)) // one of a test has none
		if _, err := io.WriteString(w, text+"\n\n"); err != nil || control.Flush() != nil {
			return
		}
		more := true
		select {
		case text, more = <-texts:
		case <-alive.C:
			text = ": alive"
		}
		if !more || !a.still(req) {
			return
		}
	}
}
