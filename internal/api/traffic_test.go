package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// counted is a manager that reads counters, or why there are none.
type counted struct {
	list []views.PortCounters
	err  error
}

func (c counted) Counters(context.Context) ([]views.PortCounters, error) { return c.list, c.err }

// Ports come in the order that is asked for, also page by page; where nobody reads
// counters the answer says what would.
func TestCounters(t *testing.T) {
	s := newStand(t)
	rate := func(n float64) *float64 { return &n }
	s.api.options.Traffic = counted{list: []views.PortCounters{
		{Node: "a", Port: 1, Sends: rate(5), Errors: 1}, {Node: "a", Port: 2, Errors: 7}, {Node: "b", Port: 1, Sends: rate(9)}, {Node: "b", Port: 2, Sends: rate(9)},
	}}
	for order, want := range map[string]string{"": "a1a2b1b2", "place": "a1a2b1b2", "sends": "b1b2a1a2", "errors": "a2a1b1b2"} {
		got, next := "", ""
		for first := true; first || next != ""; first = false {
			path := "/counters?limit=3"
			if order != "" {
				path += "&order=" + order
			}
			if next != "" {
				path += "&cursor=" + next
			}
			out := s.want(200, call{method: "GET", path: path})
			for _, x := range items(out) {
				got += x.(js)["node"].(string) + string(rune('0'+int(x.(js)["port"].(float64))))
			}
			next, _ = out["next"].(string)
		}
		if got != want {
			t.Errorf("order %q: %s, want %s", order, got, want)
		}
	}
	of := ib.NodeGUID(7)
	s.api.options.Traffic = counted{list: []views.PortCounters{{Node: ib.NodeGUID(6).String(), Port: 1}, {Node: of.String(), Port: 1}, {Node: of.String(), Port: 3, Errors: 1}}}
	out := items(s.want(200, call{method: "GET", path: "/counters?order=errors&node=" + of.String()}))
	if len(out) != 2 || out[0].(js)["port"] != 3.0 || out[0].(js)["node"] != of.String() || out[1].(js)["node"] != of.String() {
		t.Errorf("of one device: %v", out)
	}
	s.want(422, call{method: "GET", path: "/counters?node=leaf"})
	s.api.options.Traffic = counted{err: views.ErrNotRead}
	if out := s.want(409, call{method: "GET", path: "/counters"}); out["detail"] != views.ErrNotRead.Error() {
		t.Errorf("%v", out)
	}
	s.api.options.Traffic = counted{err: errors.New("the manager ends")}
	s.want(503, call{method: "GET", path: "/counters"})
	s.api.options.Traffic = nil
	s.want(503, call{method: "GET", path: "/counters"})
}

// The provider is told of the fabric and of all tenants, a tenant of its own part.
func TestStatus(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.members("red", "0x0100", "red-net", s.hosts[0], s.hosts[4])
	s.members("blue", "0x0200", "blue-net", s.hosts[5])
	status := func(as string) js { return s.want(200, call{as: as, method: "GET", path: "/status"})["item"].(js) }
	got := status("")
	if f := got["fabric"].(js); f["switches"] != 6.0 || f["cas"] != 16.0 || f["links"] != 32.0 || f["inactive"] != 0.0 {
		t.Errorf("%v", f)
	}
	if got["tenants"] != 2.0 || got["partitions"] != 2.0 || got["members"] != 3.0 || got["ports"] != 8.0 || got["verdict"] == "" {
		t.Errorf("the provider: %v", got)
	}
	got = status("blue")
	if got["fabric"] != nil || got["tenants"] != 1.0 || got["partitions"] != 2.0 || got["members"] != 2.0 || got["ports"] != 4.0 {
		t.Errorf("blue, with a port in a partition of red: %v", got)
	}
	if got = status("reader"); got["partitions"] != 1.0 || got["members"] != 2.0 || got["fabric"] != nil {
		t.Errorf("red: %v", got)
	}
}

// TestLoadOfCables: each cable of the map has the load of the direction that carries more, of what its
// width and speed carry, and the errors of both ends; what was not read is not 0.
func TestLoadOfCables(t *testing.T) {
	s := newStand(t)
	list := s.manager.snap.Fabric.Links()
	a, b, c := list[0], list[1], list[2]
	for _, l := range list {
		l.A.Info.LinkWidthActive, l.A.Info.LinkSpeedActive, l.A.Info.LinkSpeedExtActive, l.A.Info.LinkSpeedExtActive2 = smp.LinkWidth4X, 0, smp.LinkSpeedEDR, 0
	}
	const full = 4 * 25e9 / 8 // bytes a second of 4X EDR
	rate := func(share float64) *float64 { n := share * full; return &n }
	at := func(p *observed.Port, sends, receives *float64, errors uint64) views.PortCounters {
		return views.PortCounters{Node: p.Node.GUID().String(), Port: int(p.Num), Sends: sends, Receives: receives, Errors: errors, Counters: map[string]uint64{"SymbolErrorCounter": errors}}
	}
	s.api.options.Traffic = counted{list: []views.PortCounters{
		at(a.A, rate(0.101), rate(0.5), 1), at(a.B, rate(0.502), nil, 2), at(b.A, rate(0), nil, 0),
		{Node: c.A.Node.GUID().String(), Port: int(c.A.Num), Fault: "no answer"},
	}}
	m := s.want(200, call{method: "GET", path: "/map"})
	load := s.want(200, call{method: "GET", path: "/map/load"})["item"].(js)
	if tag := s.do(call{method: "GET", path: "/map"}).Result().Header.Get("ETag"); load["map"] != tag {
		t.Errorf("of the map %v, want %v", load["map"], tag)
	}
	links, guids := m["links"].(js), m["nodes"].(js)["guid"].([]any)
	percent, errors := load["percent"].([]any), load["errors"].([]any)
	if len(percent) != len(list) || len(errors) != len(list) {
		t.Fatalf("%d and %d cables, want %d", len(percent), len(errors), len(list))
	}
	for i := range percent {
		node, port := guids[int(links["a"].([]any)[i].(float64))], int(links["a_port"].([]any)[i].(float64))
		other, otherPort := guids[int(links["b"].([]any)[i].(float64))], int(links["b_port"].([]any)[i].(float64))
		is := func(l observed.Link) bool {
			for _, p := range []*observed.Port{l.A, l.B} {
				if g := p.Node.GUID().String(); (g != node || int(p.Num) != port) && (g != other || int(p.Num) != otherPort) {
					return false
				}
			}
			return true
		}
		want := [2]any{-1.0, -1.0}
		switch {
		case is(a):
			want = [2]any{51.0, 3.0}
		case is(b):
			want = [2]any{0.0, 0.0}
		}
		if got := [2]any{percent[i], errors[i]}; got != want {
			t.Errorf("%v port %d: %v, want %v", node, port, got, want)
		}
	}
	s.api.options.Traffic = counted{err: views.ErrNotRead}
	s.want(409, call{method: "GET", path: "/map/load"})
}

// TestAnswersAreCompressed: for who takes gzip an answer of some length is the same in fewer bytes; a
// short one, a stream, and one for who takes no gzip go as they are.
func TestAnswersAreCompressed(t *testing.T) {
	s := newStand(t)
	s.tenants()
	read := func(path, accept string) (string, []byte) {
		w := s.do(call{method: "GET", path: path, header: map[string]string{"Accept-Encoding": accept}}).Result()
		body, err := io.ReadAll(w.Body)
		if err != nil || w.StatusCode != 200 {
			t.Fatalf("%s: %d, %v", path, w.StatusCode, err)
		}
		return w.Header.Get("Content-Encoding"), body
	}
	_, plain := read("/ports", "")
	encoding, small := read("/ports", "gzip")
	r, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil || encoding != "gzip" || len(small) >= len(plain)/2 {
		t.Fatalf("%q, %d bytes of %d: %v", encoding, len(small), len(plain), err)
	}
	if again, err := io.ReadAll(r); err != nil || !bytes.Equal(again, plain) {
		t.Errorf("another answer: %v", err)
	}
	for _, x := range [][2]string{{"/tenants", "gzip"}, {"/ports", "identity"}, {"/ports", "gzip;q=0"}} {
		if encoding, _ := read(x[0], x[1]); encoding != "" {
			t.Errorf("%s for who takes %s: %s", x[0], x[1], encoding)
		}
	}
}
