package api

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// kept is what is kept of two minutes, or why there is nothing.
type kept struct {
	records []*views.PastRecord
	err     error
}

var keptFrom = time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)

// keptOf is two minutes of a fabric, in which all cables carried 20 and then 40 per cent, the second with a violation.
func keptOf(snap *snapshot.Snapshot) *kept {
	k := new(kept)
	for i, verdict := range []string{"isolated", "violated"} {
		r := &views.PastRecord{
			PastPeriod: views.PastPeriod{From: keptFrom.Add(time.Duration(i) * time.Minute), Until: keptFrom.Add(time.Duration(i+1) * time.Minute), Verdict: verdict},
			State:      views.PastState{Verdict: verdict, Holds: i == 0, Violations: i},
			Matrix:     &views.Matrix{Parties: []views.MatrixParty{}, Cells: []views.MatrixCell{}, Sparse: true},
		}
		for _, l := range snap.Fabric.Links() {
			r.Cables = append(r.Cables, views.CableShare{Cable: views.Cable{A: l.A.Place(), B: l.B.Place()}.Ordered(), Percent: 20 * (i + 1)})
		}
		k.records = append(k.records, r)
	}
	return k
}

func (k *kept) Moments() (out []views.PastPeriod) {
	for _, r := range k.records {
		out = append(out, r.PastPeriod)
	}
	return out
}

func (k *kept) At(t time.Time) (last *views.PastRecord, err error) {
	for _, r := range k.records {
		if !r.From.After(t) {
			last = r
		}
	}
	if last == nil && k.err == nil {
		return nil, views.ErrOlder
	}
	return last, k.err
}

// The provider is told how it was, by the cables of the map of now; what differed between two moments is from
// the earlier to the later, in whatever order they were asked for.
func TestPast(t *testing.T) {
	s := newStand(t)
	s.tenants()
	of := s.api.options.Past.(*kept)
	last := func() uint64 { return uint64(s.want(200, call{method: "GET", path: "/status"})["revision"].(float64)) }
	s.members("red", "0x0100", "red-net", s.hosts[0], s.hosts[4])
	of.records[0].State.Revision = last()
	s.members("blue", "0x0200", "blue-net", s.hosts[5])
	s.want(200, call{as: "red", method: "DELETE", path: "/partitions/0x0100/members/" + s.hosts[4]})
	of.records[1].State.Revision = last()
	gone := of.records[1].Cables[0]
	gone.Cable.A.Node = 0xdead
	of.records[1].Cables[0] = gone

	list := s.want(200, call{method: "GET", path: "/past"})["item"].(js)
	if at := list["at"].([]any); len(at) != 2 || at[1] != float64(keptFrom.Unix()+60) || list["verdicts"].([]any)[int(list["verdict"].([]any)[1].(float64))] != "violated" {
		t.Errorf("%v", list)
	}
	one := s.want(200, call{method: "GET", path: "/past/moment?at=2026-11-29T10:00:30Z"})["item"].(js)
	moment := one["moment"].(js)
	m := s.want(200, call{method: "GET", path: "/map"})
	percent := moment["percent"].([]any)
	if moment["verdict"] != "isolated" || len(percent) != len(m["links"].(js)["a"].([]any)) || percent[0] != 20.0 || one["with"] != nil || moment["elsewhere"] != nil || len(moment["busiest"].([]any)) != 20 {
		t.Errorf("%v", one)
	}
	for path, later := range map[string]string{"at=2026-11-29T10:00:00Z&with=2026-11-29T10:01:00Z": "with", "at=2026-11-29T10:01:00Z&with=2026-11-29T10:00:00Z": "moment"} {
		two := s.want(200, call{method: "GET", path: "/past/moment?" + path})["item"].(js)
		d := two["difference"].(js)
		member := func(list any) string {
			m := list.([]any)[0].(js)
			return m["pkey"].(string) + " " + m["port"].(string)
		}
		if d["gained_total"] != 1.0 || d["lost_total"] != 1.0 || member(d["gained"]) != "0x0200 "+s.hosts[5] || member(d["lost"]) != "0x0100 "+s.hosts[4] || d["unknown"] != nil {
			t.Errorf("%s: %v", path, d)
		}
		cable := d["cables"].([]any)[0].(js)
		if cable["percent"] != 20.0 || cable["with"] != 40.0 || cable["a"] == "" {
			t.Errorf("%s: %v", path, cable)
		}
		if late := two[later].(js); late["verdict"] != "violated" || late["elsewhere"] != 1.0 || late["percent"].([]any)[0] != -1.0 {
			t.Errorf("%s: %v", path, late)
		}
	}
	// Later than anything is the last there is, with its times; earlier than anything is gone.
	if out := s.want(200, call{method: "GET", path: "/past/moment?at=2027-01-01T00:00:00Z"})["item"].(js)["moment"].(js); out["until"] != "2026-11-29T10:02:00Z" {
		t.Errorf("%v", out)
	}
	s.want(http.StatusGone, call{method: "GET", path: "/past/moment?at=2026-11-29T09:59:59Z"})
	s.want(http.StatusGone, call{method: "GET", path: "/past/moment?at=2026-11-29T10:00:00Z&with=2025-11-29T09:59:59Z"})
	s.want(422, call{method: "GET", path: "/past/moment?at=yesterday"})
	s.want(422, call{method: "GET", path: "/past/moment"})

	for _, x := range []struct {
		first, second uint64
		want          string
	}{{7, 3, "revision 3 came after 7: the store is another"}, {1, 5002, "there are 5001 revisions between the two: want at most 5000"}} {
		of.records[0].State.Revision, of.records[1].State.Revision = x.first, x.second
		d := s.want(200, call{method: "GET", path: "/past/moment?at=2026-11-29T10:00:00Z&with=2026-11-29T10:01:00Z"})["item"].(js)["difference"].(js)
		if d["unknown"] != x.want {
			t.Errorf("%v, want %s", d, x.want)
		}
	}
	of.err = errors.New("the disk is gone")
	s.want(500, call{method: "GET", path: "/past/moment?at=2026-11-29T10:00:00Z"})
	s.api.options.Past = nil
	s.want(503, call{method: "GET", path: "/past"})
	s.want(503, call{method: "GET", path: "/past/moment?at=2026-11-29T10:00:00Z"})
}
