package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// MapOutput is a map as it is sent.
type MapOutput struct {
	ETag     string `header:"ETag" doc:"stands for the map but when it was read, for If-None-Match"`
	Old      string `header:"Ibwarden-Old" doc:"why this may be old; none when it is not"`
	ReadAt   string `header:"Ibwarden-Read-At" doc:"read_at, also of an answer 304"`
	Encoding string `header:"Content-Encoding"`
	Vary     string `header:"Vary"`
	Type     string `header:"Content-Type"`
	Body     []byte
}

// drawn registers the map, what it is held against, and what is on it.
func (a *api) drawn() {
	a.cables()
	a.devices()
	type mapInput struct {
		Accept string `header:"Accept-Encoding" doc:"gzip makes a large map a tenth as large"`
		None   string `header:"If-None-Match" doc:"ETags of maps that the caller has"`
	}
	op := notModified(operation(http.MethodGet, "/map", "get-map", "The whole fabric for a picture: where each device stands, whose it is and how it is, and the cables; for a tenant its own devices alone"))
	schema := a.huma.OpenAPI().Components.Schemas.Schema(typeOf[views.Map](), true, "Map")
	op.Responses["200"] = &huma.Response{Description: "a map", Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
	register(a, op, func(ctx context.Context, in *mapInput) (*MapOutput, error) {
		answer, facts, err := a.mapFor(ctx)
		if err != nil {
			return nil, err
		}
		out := &MapOutput{
			ETag: answer.ETag, Old: OneLine(facts.Old), ReadAt: facts.Snapshot.ReadAt.UTC().Format(time.RFC3339Nano),
			Vary: "Accept-Encoding", Type: "application/json", Body: answer.Body,
		}
		if in.None != "" && answer.Has(in.None) {
			return nil, Unmodified{Header: http.Header{"Etag": {out.ETag}, "Ibwarden-Read-At": {out.ReadAt}, "Vary": {out.Vary}}}
		}
		if views.TakesGzip(in.Accept) {
			out.Encoding, out.Body = "gzip", answer.Zipped
		}
		return out, nil
	})
}

// mapFor is the map as a caller sees it.
func (a *api) mapFor(ctx context.Context) (*views.MapAnswer, *views.MapFacts, error) {
	facts, err := a.factsFor(ctx)
	if err != nil {
		return nil, nil, err
	}
	old := a.service.Read(func(s *resource.State) { facts.Gather(s, callerOf(ctx)) })
	if old != nil {
		facts.Old = WhyOld(callerOf(ctx), old)
	}
	facts.Parties = func() ([]string, map[ib.PortGUID]int) {
		view, err := a.seen(ctx, &Reading{})
		if err != nil {
			return nil, nil // there is no proof yet
		}
		return view.Parties()
	}
	var answer *views.MapAnswer
	if caller := callerOf(ctx); caller.IsProvider() {
		answer, err = a.maps.Whole(facts)
	} else {
		answer, err = a.maps.Own(facts, caller.Tenant)
	}
	return answer, facts, err
}

// factsFor are what is known of the whole fabric.
func (a *api) factsFor(ctx context.Context) (*views.MapFacts, error) {
	snap, err := a.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	facts := &views.MapFacts{Snapshot: snap}
	if a.options.Racks != nil {
		facts.Racks = a.options.Racks()
	}
	facts.Proof, _ = a.proofIfAny(ctx)
	if a.options.Cabling != nil {
		if facts.Cabling, err = a.options.Cabling.Cabling(ctx); err != nil {
			facts.Cabling = nil // nothing is known of it yet
		}
	}
	return facts, nil
}

// CableList is a page of differences, and how long the list of cables is.
type CableList struct {
	List[views.Difference]
	Listed *int `json:"listed,omitempty" doc:"how many cables are on the list; absent where there is none"`
}

// cables registers what differs from the list of cables.
func (a *api) cables() {
	type input struct{ PageParams }
	register(a, operation(http.MethodGet, "/cables", "list-cables", "Where the fabric is not as the list of cables says; for the provider"),
		func(ctx context.Context, in *input) (*Output[CableList], error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			facts, err := a.factsFor(ctx)
			if err != nil {
				return nil, err
			}
			all, listed := a.maps.Differences(facts)
			type numbered struct {
				views.Difference
				n int
			}
			list := make([]numbered, len(all))
			for i, d := range all {
				list[i] = numbered{d, i}
			}
			page, err := fabricList(ctx, a, in.PageParams, list, func(d numbered) string { return fmt.Sprintf("%09d", d.n) }, func(d numbered) views.Difference { return d.Difference })
			if err != nil {
				return nil, err
			}
			return &Output[CableList]{ETag: page.ETag, Old: page.Old, Body: CableList{page.Body, listed}}, nil
		})
}

// devices registers what is known of one device and of one port.
func (a *api) devices() {
	type one struct {
		GUID GUID `path:"guid" doc:"node GUID"`
	}
	register(a, operation(http.MethodGet, "/nodes/{guid}", "get-node", "A device with its ports, in words; for a tenant one with an end port of its own, and these alone"),
		func(ctx context.Context, in *one) (*Output[Single[views.Device]], error) {
			return lookAt(a, ctx, in.GUID, views.MissingDevice, func(v *views.DeviceView) (views.Device, error) { return v.Device(), nil })
		})
	type port struct {
		GUID   GUID `path:"guid" doc:"node GUID"`
		Number int  `path:"number" minimum:"0" maximum:"254"`
	}
	register(a, operation(http.MethodGet, "/nodes/{guid}/ports/{number}", "get-node-port", "A port of a device whole: in words, its P_Keys, and what it answered; for a tenant an end port of its own"),
		func(ctx context.Context, in *port) (*Output[Single[views.PortDetails]], error) {
			return lookAt(a, ctx, in.GUID, nil, func(v *views.DeviceView) (out views.PortDetails, err error) {
				p := v.Port(in.Number)
				if p == nil {
					return out, fault(http.StatusNotFound, string(resource.NotFound), "number", fmt.Sprintf("no port %d of node %s", in.Number, v.Node.GUID()))
				}
				return v.Details(p), nil
			})
		})
}

// lookAt answers about a device as the caller sees it; for the provider missing, if it is not
// nil, about one that is listed and was not found.
func lookAt[V any](a *api, ctx context.Context, guid GUID, missing func(*views.DeviceView, ib.NodeGUID) (V, bool), show func(*views.DeviceView) (V, error)) (*Output[Single[V]], error) {
	g, err := guid.Port()
	if err != nil {
		return nil, err
	}
	facts, err := a.factsFor(ctx)
	if err != nil {
		return nil, err
	}
	caller := callerOf(ctx)
	v := &views.DeviceView{Node: facts.Snapshot.Fabric.Node(ib.NodeGUID(g)), ReadAt: facts.Snapshot.ReadAt, Facts: facts}
	if caller.IsProvider() {
		v.Differences, _ = a.maps.Differences(facts)
		v.Level, v.Group = a.maps.Place(facts, ib.NodeGUID(g))
	}
	return readOne(ctx, a, "", func(s *resource.State) (out V, _ uint64, err error) {
		facts.GatherDrained(s)
		if v.Node == nil && missing != nil && caller.IsProvider() {
			if out, listed := missing(v, ib.NodeGUID(g)); listed {
				return out, s.Last(), nil
			}
		}
		if v.Node == nil || !v.By(s, caller) {
			return out, 0, fault(http.StatusNotFound, string(resource.NotFound), "guid", "no node "+ib.NodeGUID(g).String())
		}
		out, err = show(v)
		return out, s.Last(), err
	})
}
