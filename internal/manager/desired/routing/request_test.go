package routing

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestEqualRequests changes one field of a request at a time: routes are kept only where the
// question is the same.
func TestEqualRequests(t *testing.T) {
	drained := []*observed.Node{{}}
	file := &observed.LFTs{}
	base := func() *Request { return &Request{Engine: File, File: file, Drained: drained} }
	for _, x := range []struct {
		name        string
		change      func(*Request)
		like, equal bool
	}{
		{"nothing", func(*Request) {}, true, true},
		{"the engine", func(r *Request) { r.Engine = MinHop }, false, false},
		{"the room", func(r *Request) { r.Room.VLs++ }, false, false},
		{"the file", func(r *Request) { r.File = &observed.LFTs{} }, false, false},
		{"balance for tenants", func(r *Request) { r.Tenants = []graph.Tenant{} }, false, false},
		{"drained switches", func(r *Request) { r.Drained = nil }, true, false},
		{"the last routes", func(r *Request) { r.Last = &Tables{} }, true, true},
	} {
		r := base()
		x.change(r)
		if got := base().Like(r); got != x.like {
			t.Errorf("%s: Like is %v, want %v", x.name, got, x.like)
		}
		if got := base().Equal(r); got != x.equal {
			t.Errorf("%s: Equal is %v, want %v", x.name, got, x.equal)
		}
	}
	a, b := base(), base()
	a.Tenants, b.Tenants = []graph.Tenant{{}}, []graph.Tenant{{}, {}}
	if !a.Like(b) {
		t.Error("who is in which tenant moves no route")
	}
}
