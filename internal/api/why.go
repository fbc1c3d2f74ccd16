package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// reaching registers the questions about whom an end port can talk with.
func (a *api) reaching() {
	type whyInput struct {
		From string `query:"from" required:"true" minLength:"1" maxLength:"64" doc:"an end port: GUID, LID, or what its node says of itself"`
		To   string `query:"to" required:"true" minLength:"1" maxLength:"64" doc:"another"`
		SL   int    `query:"sl" minimum:"0" maximum:"15" doc:"service level of the packets"`
	}
	register(a, operation(http.MethodGet, "/why", "explain-pair", "Why two end ports can or cannot talk, and what would change it; of ports that the caller may ask about"),
		func(ctx context.Context, in *whyInput) (*Output[Single[views.Answer]], error) {
			snap, err := a.snapshot(ctx)
			if err != nil {
				return nil, err
			}
			caller := callerOf(ctx)
			proof, _ := a.proofIfAny(ctx)
			return readOne(ctx, a, "", func(s *resource.State) (out views.Answer, _ uint64, _ error) {
				from, err := endPort(s, caller, snap.Fabric, "query.from", in.From)
				if err != nil {
					return out, 0, err
				}
				to, err := endPort(s, caller, snap.Fabric, "query.to", in.To)
				if err != nil {
					return out, 0, err
				}
				if from == to {
					return out, 0, fault(http.StatusUnprocessableEntity, "invalid", "query.to", "the same port as from: want another")
				}
				return views.AnswerOf(from, to, views.WhyView(s, caller, snap, proof, ib.SL(in.SL)), snap.ReadAt,
					func(k ib.PKeyBase) bool { return s.Partition(k) == nil }), s.Last(), nil
			})
		})
	type peersInput struct {
		PageParams
		Port string `query:"port" required:"true" minLength:"1" maxLength:"64" doc:"an end port: GUID, LID, or what its node says of itself"`
		SL   int    `query:"sl" minimum:"0" maximum:"15" doc:"service level of the packets"`
	}
	register(a, operation(http.MethodGet, "/peers", "list-peers", "End ports whose keys match those of one, and whether packets get through; of ports that the caller may ask about"),
		func(ctx context.Context, in *peersInput) (*Output[List[views.Peer]], error) {
			snap, err := a.snapshot(ctx)
			if err != nil {
				return nil, err
			}
			caller := callerOf(ctx)
			proof, _ := a.proofIfAny(ctx)
			var missed error
			key := func(p views.Peer) string { return p.GUID }
			out, err := readList(ctx, a, in.PageParams, func(s *resource.State) []views.Peer {
				from, err := endPort(s, caller, snap.Fabric, "query.port", in.Port)
				if missed = err; err != nil {
					return nil
				}
				last, _ := in.after() // what is wrong with it is said when the page is cut
				after, _ := ib.ParsePortGUID(last)
				return views.PeersOf(reach.PeersAfter(snap.Fabric, from, views.WhyView(s, caller, snap, proof, ib.SL(in.SL)), after, in.Most()+1,
					func(g ib.PortGUID) bool { return s.SightOf(caller, g) != resource.SightNone }))
			}, key, func(*resource.State, views.Peer) bool { return true }, func(_ *resource.State, p views.Peer) views.Peer { return p })
			if missed != nil {
				return nil, missed
			}
			return out, err
		})
}

// proofIfAny is the proof, which names the partitions of the policy; nil where there is none
// yet. With it comes when the fabric was read.
func (a *api) proofIfAny(ctx context.Context) (*isolation.Proof, time.Time) {
	if a.options.Judge == nil {
		return nil, time.Time{}
	}
	proof, at, err := a.options.Judge.Proof(ctx)
	if err != nil {
		return nil, time.Time{}
	}
	return proof, at
}

// endPort is the end port that a caller means, of those that he may ask about.
func endPort(s *resource.State, c resource.Caller, f *observed.Fabric, field, name string) (*observed.Port, error) {
	ports := slices.DeleteFunc(f.EndPorts(), func(p *observed.Port) bool { return !p.InfoRead || s.SightOf(c, p.GUID) == resource.SightNone })
	p, err := views.FindEndPort(ports, name)
	if err != nil {
		return nil, fault(http.StatusNotFound, string(resource.NotFound), field, err.Error())
	}
	return p, nil
}
