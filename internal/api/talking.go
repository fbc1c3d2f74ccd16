package api

import (
	"context"
	"net/http"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// MatrixBody is the matrix with what it was read from.
type MatrixBody struct {
	Reading
	views.Matrix
}

// MatrixPortsBody is the matrix of the ports of two parties with what it was read from.
type MatrixPortsBody struct {
	Reading
	views.MatrixPorts
}

// talking registers who can talk with whom.
func (a *api) talking() {
	type none struct{}
	register(a, operation(http.MethodGet, "/matrix", "get-matrix", "Who can talk with whom, tenants and classes of other ports; for a tenant its own ports and how they stand to others"),
		func(ctx context.Context, _ *none) (*Output[MatrixBody], error) {
			out := &Output[MatrixBody]{}
			view, err := a.seen(ctx, &out.Body.Reading)
			if err != nil {
				return nil, err
			}
			out.Old = OneLine(out.Body.Old)
			out.Body.Matrix = a.talks.Matrix(view)
			return out, nil
		})
	type portsInput struct {
		A      string `query:"a" required:"true" minLength:"1" maxLength:"400" doc:"name of a party of the matrix"`
		B      string `query:"b" required:"true" minLength:"1" maxLength:"400" doc:"name of a party of the matrix; for a tenant one of the two is its own"`
		Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"200" doc:"how many rows and columns at most"`
		Row    int    `query:"row" minimum:"0" maximum:"100000" doc:"the first row, from 0"`
		Column int    `query:"column" minimum:"0" maximum:"100000" doc:"the first column, from 0"`
	}
	register(a, operation(http.MethodGet, "/matrix/ports", "get-matrix-ports", "Who can talk with whom of two parties of the matrix, port by port"),
		func(ctx context.Context, in *portsInput) (*Output[MatrixPortsBody], error) {
			out := &Output[MatrixPortsBody]{}
			view, err := a.seen(ctx, &out.Body.Reading)
			if err != nil {
				return nil, err
			}
			out.Old = OneLine(out.Body.Old)
			ports, missing := a.talks.Ports(view, in.A, in.B, views.MatrixWindow{Limit: in.Limit, Row: in.Row, Column: in.Column})
			if missing != "" {
				return nil, problem(http.StatusNotFound, string(resource.NotFound), "there is no such party, or none of which you may ask: want names of parties of "+Prefix+"/matrix")
			}
			out.Body.MatrixPorts = ports
			return out, nil
		})
}

// seen is what a caller sees of who can talk with whom.
func (a *api) seen(ctx context.Context, r *Reading) (view *views.MatrixView, err error) {
	facts := &views.MatrixFacts{}
	if facts.Snapshot, err = a.snapshot(ctx); err != nil {
		return nil, err
	}
	if facts.Proof, _, err = a.options.Judge.Proof(ctx); err != nil {
		return nil, unjudged(err)
	}
	if facts.Allowed, err = a.options.Judge.Allowed(ctx); err != nil {
		return nil, unjudged(err)
	}
	caller := callerOf(ctx)
	old := a.service.Read(func(s *resource.State) {
		view = views.SeeMatrix(s, caller, facts)
		r.Revision = s.LastFor(caller)
	})
	if old != nil {
		r.Old = WhyOld(caller, old)
	}
	return view, nil
}
