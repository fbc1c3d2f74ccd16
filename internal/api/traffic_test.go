package api

import (
	"context"
	"errors"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
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
