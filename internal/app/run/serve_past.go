package run

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/past"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// pastName is the directory in the data directory that has how the fabric was.
const pastName = "past"

// pastRest is how many times as long as the matrix and the alarms took the manager is left alone before they are worked
// out again.
const pastRest = 50

// pastCaller is who looks: the provider.
var pastCaller = resource.Caller{Name: "run", Tenant: resource.Provider}

// history keeps how the fabric of a service was.
type history struct {
	*past.Keeper
	service *Service
	scratch string    // a directory to remove at the end; "" for none
	failed  bool      // the last sample, which was told
	last    time.Time // when it was taken

	proof  *isolation.Proof // of which the next two are
	matrix *views.Matrix
	alarms int
	again  time.Time // when they may be worked out again
}

// openPast opens the history; without a data directory, one that is removed at the end.
func (s *Service) openPast(data daemon.DataDir, log *slog.Logger) *history {
	h := &history{service: s}
	dir := data.File(pastName)
	var err error
	if data == "" {
		if dir, err = os.MkdirTemp("", "ibwarden-past-"); err == nil {
			h.scratch = dir
		}
	}
	if err == nil {
		h.Keeper, err = past.Open(dir)
	}
	if err != nil {
		log.Warn("how the fabric was is not kept as a whole: " + err.Error())
	}
	return h
}

// source is the history for the API; nil where there is none.
func (h *history) source() views.PastSource {
	if h.Keeper == nil {
		return nil
	}
	return h
}

// keep adds how the fabric is, again and again until ctx ends.
func (h *history) keep(ctx context.Context, log *slog.Logger) {
	if h.Keeper == nil {
		return
	}
	every := time.NewTicker(past.Every)
	defer every.Stop()
	defer h.Close()
	for {
		if err := h.add(ctx); ctx.Err() == nil {
			if err != nil && !h.failed {
				log.Warn("how the fabric is could not be kept as a whole: " + err.Error())
			}
			h.failed = err != nil
		}
		select {
		case <-ctx.Done():
			if h.scratch != "" {
				os.RemoveAll(h.scratch)
			}
			return
		case <-every.C:
		}
	}
}

// add adds how the fabric is. A manager that has proved nothing yet, since another is the master, keeps nothing.
func (h *history) add(ctx context.Context) error {
	manager := h.service.manager
	proof, at, err := manager.Proof(ctx)
	if err != nil {
		return nil
	}
	cables, err := manager.Loads(ctx)
	if err != nil {
		return nil // it ends
	}
	if proof != h.proof && time.Now().After(h.again) {
		h.look(ctx, proof, at)
	}
	s := past.Sample{At: time.Now(), Cables: cables}
	h.service.Read(func(r *resource.State) {
		p := views.ProofOf(r, pastCaller, proof, nil, at)
		s.State = views.PastState{
			Revision: r.Last(), Verdict: p.Verdict, Holds: p.Holds, Pairs: p.Counts.Pairs, Partitions: p.Counts.Partitions, EndPorts: p.Counts.EndPorts,
			Violations: p.Counts.Violations, Alarms: h.alarms,
		}
	})
	if proof == h.proof {
		s.Matrix = h.matrix
	}
	changes, _ := manager.Past(ctx)
	for _, c := range changes { // what was over before anybody looked
		if !c.At.Before(h.last) && past.Rank(c.Verdict) > past.Rank(s.State.Verdict) {
			s.State.Revision, s.State.Verdict, s.State.Holds, s.State.Violations, s.Matrix = c.Revision, c.Verdict, c.Holds, c.Violations, nil
		}
	}
	h.last = s.At
	return h.Add(s)
}

// look works out who can talk with whom, and what is wrong.
func (h *history) look(ctx context.Context, proof *isolation.Proof, at time.Time) {
	began, manager := time.Now(), h.service.manager
	defer func() { h.again = time.Now().Add(pastRest * time.Since(began)) }()
	snap, err := manager.Snapshot(ctx)
	if err != nil {
		return
	}
	allowed, err := manager.Allowed(ctx)
	if err != nil {
		return
	}
	var differences []views.Difference
	if c, err := manager.Cabling(ctx); err == nil && c.List != nil && c.Differences != nil {
		differences = c.Differences(snap.Fabric)
	}
	var view *views.MatrixView
	h.service.Read(func(r *resource.State) {
		view = views.SeeMatrix(r, pastCaller, &views.MatrixFacts{Snapshot: snap, Proof: proof, Allowed: allowed})
		p := views.ProofOf(r, pastCaller, proof, allowed, at)
		h.alarms = len(views.AlarmsOf(r, pastCaller, began, snap.Fabric, &p, differences, nil))
	})
	matrix := new(views.MatrixCache).Matrix(view).Kept()
	h.matrix, h.proof = &matrix, proof
}
