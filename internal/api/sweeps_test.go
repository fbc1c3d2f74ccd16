package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
)

// sweepsMade is a manager that has made so many sweeps.
type sweepsMade uint64

func (n sweepsMade) Sweeps(context.Context) (list []views.Sweep, err error) {
	for i := uint64(n); i > 0; i-- {
		cost := views.Cost{Seconds: 0.5, FabricSeconds: 0.25, Sent: 10 * i, Answered: 9, Repeated: 1, Lost: 1}
		list = append(list, views.Sweep{Number: i, Reason: "a link came up", Began: time.Unix(1000, 0).UTC(), Done: i < uint64(n), Cost: cost, Phases: []views.Phase{{Name: "discover", Cost: cost}}})
	}
	return list, nil
}

// TestSweeps: the last sweeps come the newest first, also page by page, with all that is
// known of each phase. A tenant is not told: the reasons name devices of others.
func TestSweeps(t *testing.T) {
	s := newStand(t)
	var got List[views.Sweep]
	var numbers []uint64
	for next := ""; len(numbers) == 0 || next != ""; next = got.Next {
		got = List[views.Sweep]{}
		path := "/sweeps?limit=2"
		if next != "" {
			path += "&cursor=" + next
		}
		w := s.do(call{method: http.MethodGet, path: path})
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || len(got.Items) > 2 {
			t.Fatalf("a page of 2: %d, %v, %s", w.Code, err, w.Body)
		}
		for _, x := range got.Items {
			numbers = append(numbers, x.Number)
		}
	}
	if !slices.Equal(numbers, []uint64{3, 2, 1}) {
		t.Errorf("sweeps %v, want 3, 2, 1", numbers)
	}
	made, _ := sweepsMade(1).Sweeps(t.Context())
	made[0].Done = true
	if !reflect.DeepEqual(got.Items, made) {
		t.Errorf("the first is\n%+v\nwant\n%+v", got.Items, made)
	}
	s.api.options.Sweeps = nil
	s.want(http.StatusServiceUnavailable, call{method: http.MethodGet, path: "/sweeps"})
}
