package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// pastRevisions is how many revisions between two moments are looked at, for what they changed.
const pastRevisions = 5000

// PastAnswer is how the fabric was at a moment, or at two.
type PastAnswer struct {
	Moment     *views.PastMoment     `json:"moment"`
	With       *views.PastMoment     `json:"with,omitempty" doc:"the other moment"`
	Difference *views.PastDifference `json:"difference,omitempty" doc:"from the earlier to the later of the two"`
}

func (a *api) past() {
	type none struct{}
	register(a, operation(http.MethodGet, "/past", "list-moments", "The moments of the last 30 days of which it is kept how the fabric was: by short periods lately, by longer ones before; for the provider"),
		func(ctx context.Context, _ *none) (*Output[Single[views.PastMoments]], error) {
			if err := a.keptPast(ctx); err != nil {
				return nil, err
			}
			out := views.PastMomentsOf(a.options.Past.Moments())
			out.MetricsAt, out.Prometheus = a.options.MetricsAt, a.options.Prometheus
			return readOne(ctx, a, "", func(*resource.State) (views.PastMoments, uint64, error) { return out, resource.Unseen, nil })
		})
	type input struct {
		At   time.Time `query:"at" required:"true" doc:"a time"`
		With time.Time `query:"with" doc:"another time, to compare with"`
	}
	register(a, operation(http.MethodGet, "/past/moment", "get-moment", "How the fabric was at a time, and what was different at another: verdict, who could talk with whom, what cables carried; for the provider", http.StatusGone),
		func(ctx context.Context, in *input) (*Output[Single[PastAnswer]], error) {
			if err := a.keptPast(ctx); err != nil {
				return nil, err
			}
			_, facts, err := a.mapFor(ctx)
			if err != nil {
				return nil, err
			}
			var out PastAnswer
			var one, two *views.PastRecord
			if out.Moment, one, err = a.momentAt(facts, in.At); err != nil {
				return nil, err
			}
			if !in.With.IsZero() {
				if out.With, two, err = a.momentAt(facts, in.With); err != nil {
					return nil, err
				}
				if two.From.Before(one.From) {
					one, two = two, one
				}
				if out.Difference, err = a.difference(ctx, facts, one, two); err != nil {
					return nil, err
				}
			}
			return readOne(ctx, a, "", func(*resource.State) (PastAnswer, uint64, error) { return out, resource.Unseen, nil })
		})
}

// keptPast says why the caller may not ask how the fabric was.
func (a *api) keptPast(ctx context.Context) error {
	if err := provider(ctx); err != nil {
		return err
	}
	if a.options.Past == nil {
		return problem(http.StatusServiceUnavailable, reasonManager, "how the fabric was is not kept here").RetryAfter(storeAfter)
	}
	return nil
}

func (a *api) momentAt(facts *views.MapFacts, at time.Time) (*views.PastMoment, *views.PastRecord, error) {
	r, err := a.options.Past.At(at)
	if errors.Is(err, views.ErrOlder) {
		return nil, nil, problem(http.StatusGone, reasonTrimmed, "nothing is kept of "+at.UTC().Format(time.RFC3339)+": what is older than 30 days, or than the first start, is not")
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := a.maps.PastMomentOf(facts, r)
	return m, r, err
}

// difference is what is another at the later of two moments than at the earlier one.
func (a *api) difference(ctx context.Context, facts *views.MapFacts, earlier, later *views.PastRecord) (*views.PastDifference, error) {
	d := &views.PastDifference{Gained: []views.PastMember{}, Lost: []views.PastMember{}, Cables: facts.CablesBetween(earlier, later)}
	from, to := earlier.State.Revision, later.State.Revision
	switch {
	case to < from:
		d.Unknown = "revision " + fmt.Sprint(to) + " came after " + fmt.Sprint(from) + ": the store is another"
		return d, nil
	case to-from > pastRevisions:
		d.Unknown = fmt.Sprintf("there are %d revisions between the two: want at most %d", to-from, pastRevisions)
		return d, nil
	case to == from:
		return d, nil
	}
	records, err := a.service.History(ctx, callerOf(ctx), store.Range{From: from + 1, Limit: int(to - from), MayLack: true})
	if errors.Is(err, store.ErrCompacted) || errors.Is(err, store.ErrNotFound) {
		d.Unknown = "revisions between the two are not kept any more"
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	a.service.Read(func(s *resource.State) {
		d.Members(s, func(yield func(string, resource.Object, resource.Object)) {
			for i := range records {
				for _, e := range records[i].Edits {
					yield(e.Key, objectOf(&e, e.Before), objectOf(&e, e.After))
				}
			}
		})
	})
	return d, nil
}

// objectOf is one side of an edit; nil where there is none, or none that is known.
func objectOf(e *service.Edit, data json.RawMessage) resource.Object {
	if len(data) == 0 {
		return nil
	}
	o, err := resource.Decode(e.Key, data)
	if err != nil {
		return nil
	}
	return o
}
