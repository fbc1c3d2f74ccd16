package service

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/preview"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// TestPartsHas: one part stands for itself, and what an audit looks at has the aliases too.
func TestPartsHas(t *testing.T) {
	all := []Parts{}
	for n := range 8 {
		all = append(all, Parts{QoS: n&1 != 0, Aliases: n&2 != 0, Audit: n&4 != 0})
	}
	for _, p := range all {
		for _, q := range all {
			want := true
			for part, asked := range map[string]bool{"qos": q.QoS, "aliases": q.Aliases, "audit": q.Audit} {
				has := map[string]bool{"qos": p.QoS, "aliases": p.Aliases || p.Audit, "audit": p.Audit}[part]
				want = want && (has || !asked)
			}
			if p.Has(q) != want {
				t.Errorf("%+v has %+v: %v", p, q, !want)
			}
		}
	}
}

// TestDocument: a plan as ibwarden plan --json prints it.
func TestDocument(t *testing.T) {
	p := Plan{Preview: &preview.Preview{Unread: 7}, Fabric: observed.Counts{Nodes: 1, Switches: 2, CAs: 3, Routers: 4, Links: 5}, Warnings: []string{"w"}, Faults: 6}
	var got map[string]any
	if err := json.Unmarshal(p.Document(), &got); err != nil {
		t.Fatal(err)
	}
	for part, is := range map[string]any{
		"fabric": map[string]any{"nodes": 1.0, "switches": 2.0, "cas": 3.0, "routers": 4.0, "links": 5.0}, "warnings": []any{"w"}, "faults": 6.0, "unread_tables": 7.0,
		"read": map[string]any{"get": 0.0, "set": 0.0, "by_attribute": []any{}},
	} {
		if fmt.Sprint(got[part]) != fmt.Sprint(is) {
			t.Errorf("%s is %v, want %v", part, got[part], is)
		}
	}
	p.Warnings = nil
	if !strings.Contains(string(p.Document()), `"warnings":[]`) {
		t.Errorf("no warnings: %s", p.Document())
	}
}

// clock stands still.
func clock() time.Time { return time.Unix(1e9, 0) }

// TestHub: a reader gets the events after the one that it names, and is told to read everything
// again if some are missing, wherever it stands.
func TestHub(t *testing.T) {
	const kept = 4
	for added := range 3*kept + 2 {
		h := newHub("run", kept, clock)
		for n := range added {
			h.add(Event{Text: fmt.Sprint(n + 1)})
		}
		if h.last() != uint64(added) {
			t.Fatalf("the last of %d is %d", added, h.last())
		}
		first := 1 // the oldest that is kept
		for n := 2 * kept; n <= added; n += kept {
			first += kept
		}
		for from := -1; from <= added+1; from++ {
			after, reset := fmt.Sprintf("run-%d", from), from >= 0 && from < first-1
			switch {
			case from == -1: // "" is all that are kept
				after, reset = "", false
			case from == 0:
				reset = false // the same as ""
			case from > added:
				reset = true
			}
			var got []string
			for e := range h.follow(t.Context(), after, true) {
				if e.Kind == EventReset {
					if !e.At.Equal(clock()) {
						t.Errorf("a reset of %v, want %v", e.At, clock())
					}
					got = append(got, "reset "+e.ID+" "+e.Text)
				} else {
					got = append(got, e.Text+" "+e.ID)
				}
			}
			var want []string
			begin := max(from+1, first)
			if reset {
				at := first - 1
				if from > added {
					at, begin = added, added+1
				}
				want = append(want, fmt.Sprintf("reset run-%d events before this one are not kept: read everything again", at))
			}
			for n := begin; n <= added; n++ {
				want = append(want, fmt.Sprintf("%d run-%d", n, n))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d events, after %q: %q, want %q", added, after, got, want)
			}
			for range h.follow(t.Context(), after, true) {
				break // a reader may go at any event
			}
		}
	}
	h := newHub("run", kept, clock)
	for id, known := range map[string]bool{"": true, "run-0": true, "run-1": false, "other-0": false, "run": false, "run-x": false, "run--1": false} {
		if _, got := h.number(id); got != known {
			t.Errorf("event %q: known %v", id, got)
		}
	}
}

// TestHubsAreOfATenant: the provider's events are not a tenant's of that name.
func TestHubsAreOfATenant(t *testing.T) {
	h := newHubs("run", clock)
	h.add(Event{Text: "one", Tenants: []string{"red", resource.Provider}})
	h.add(Event{Text: "two"})
	for tenant, want := range map[string]uint64{"red": 1, "blue": 0, resource.Provider: 2} {
		if got := h.seenBy(resource.Caller{Tenant: tenant}).last(); got != want {
			t.Errorf("%s sees %d events, want %d", tenant, got, want)
		}
	}
	if h.of(resource.Provider).last() != 0 {
		t.Error("the provider's events are kept twice")
	}
}

// TestNumbersAreRead: chunks of a store are taken whole and in order, or not at all.
func TestNumbersAreRead(t *testing.T) {
	run := func(from, n int) (list []uint64) {
		for i := range n {
			list = append(list, uint64(from+i))
		}
		return list
	}
	enter := func(last uint64, objects ...store.Object) (map[string][]uint64, error) {
		var n numbersRead
		for _, o := range objects {
			if is, err := n.take(o); err != nil || !is {
				return nil, fmt.Errorf("taken %v: %w", is, err)
			}
		}
		s := resource.New(&policy.Policy{Default: policy.Limited})
		s.SetLast(last)
		err := n.enter(s)
		return s.Numbers, err
	}
	object := func(key, value string) store.Object { return store.Object{Key: key, Value: []byte(value)} }
	for _, length := range []int{1, numbersChunk - 1, numbersChunk, numbersChunk + 1, 2 * numbersChunk, 2*numbersChunk + 5} {
		list := run(3, length)
		var objects []store.Object
		for n := 0; n*numbersChunk < length; n++ {
			objects = append(objects, chunk("red", n, list))
		}
		slices.Reverse(objects)
		got, err := enter(uint64(length+2), objects...)
		if err != nil || !slices.Equal(got["red"], list) {
			t.Errorf("%d revisions: %v, %v", length, got, err)
		}
		const late = "revision %d is out of order, or after the last, %d"
		if _, err := enter(uint64(length+1), objects...); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(late, length+2, length+1)) {
			t.Errorf("%d revisions, of which the last is not there: %v", length, err)
		}
	}
	full := chunk("red", 0, run(1, numbersChunk))
	for _, x := range []struct {
		objects []store.Object
		want    string
	}{
		{[]store.Object{object("numbers/format", "2")}, `store: numbers/format: "2", want 1: a newer ibwarden has written it`},
		{[]store.Object{object("numbers/red/x", "[1]")}, `store: numbers/red/x: strconv.Atoi: parsing "x": invalid syntax`},
		{[]store.Object{object("numbers/red/00000000", "{}")}, "store: numbers/red/00000000: json: cannot unmarshal"},
		{[]store.Object{object("numbers/red/00000000", "[]")}, "store: numbers/red: 0 revisions in chunk 0 of 1: want 100, or fewer in the last"},
		{[]store.Object{object("numbers/red/00000001", "[1]")}, "store: numbers/red: 0 revisions in chunk 0 of 1"},
		{[]store.Object{object("numbers/red/00000000", "[1]"), object("numbers/red/00000001", "[2]")}, "store: numbers/red: 1 revisions in chunk 0 of 2"},
		{[]store.Object{full, object("numbers/red/00000001", "[100]")}, "store: numbers/red: revision 100 is out of order, or after the last, 1000"},
		{[]store.Object{object("numbers/red/00000000", "[2,1]")}, "store: numbers/red: revision 1 is out of order"},
		{[]store.Object{object("numbers/red/00000000", "[1,1]")}, "store: numbers/red: revision 1 is out of order"},
		{[]store.Object{{Key: "numbers/red/00000000", Value: mustJSON(run(1, numbersChunk+1))}}, "store: numbers/red: 101 revisions in chunk 0 of 1"},
	} {
		if _, err := enter(1000, x.objects...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, want %s", x.objects, err, x.want)
		}
	}
	var n numbersRead
	if is, err := n.take(object("numbersx", "2")); is || err != nil {
		t.Errorf("another object: %v, %v", is, err)
	}
	if is, err := n.take(object("numbers/format", "1")); !is || err != nil || !n.numbered {
		t.Errorf("the format: %v, %v, %v", is, err, n.numbered)
	}
}

func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// TestRecordsAreRead: a revision that cannot be read is named.
func TestRecordsAreRead(t *testing.T) {
	for _, x := range []struct {
		rev  store.Revision
		want string
	}{
		{store.Revision{Number: 7, Data: []byte("{")}, "revision 7: unexpected end of JSON input"},
		{store.Revision{Number: 7, Data: []byte("{}"), Outcome: []byte("{")}, "outcome of revision 7: unexpected end of JSON input"},
	} {
		if _, err := decodeRecord(x.rev); err == nil || err.Error() != x.want {
			t.Errorf("%+v: %v, want %s", x.rev, err, x.want)
		}
	}
	r, err := decodeRecord(store.Revision{Number: 7, Data: []byte(`{"by":"me"}`), Outcome: []byte(`{"state":"proved"}`)})
	if err != nil || r.Number != 7 || r.By != "me" || r.Outcome == nil || r.Outcome.State != Proved {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := decodeRecord(store.Revision{Number: 7, Data: []byte(`{}`)}); err != nil || r.Outcome != nil {
		t.Errorf("without an outcome: %+v, %v", r, err)
	}
	bad := Record{Edits: []Edit{{Key: "partition/0x0005", Before: []byte("{")}, {Key: "tenant/red", After: []byte("{")}}}
	for _, r := range []Record{bad, {Edits: []Edit{{Key: "partition/0x0005", After: []byte("{")}}}} {
		if _, err := r.diff(); err == nil {
			t.Errorf("%+v: its diff is read", r)
		}
		if _, err := undo(r); err == nil {
			t.Errorf("%+v: it is undone", r)
		}
	}
	rights := Record{Edits: []Edit{{Key: "tenant/red", After: []byte("{")}, {Key: "token/a", After: []byte("{")}, {Key: "approval/a", After: []byte("{")}}}
	if d, err := undo(rights); err != nil || len(d.Edits) != 0 {
		t.Errorf("rights are undone: %+v, %v", d, err)
	}
}

// TestBounded: what is kept of a long text is valid UTF-8 and fits.
func TestBounded(t *testing.T) {
	for _, text := range []string{"", strings.Repeat("a", store.MaxField), strings.Repeat("a", store.MaxField+1), "a" + strings.Repeat("ü", store.MaxField)} {
		want := text[:min(len(text), store.MaxField)]
		if len(text) > store.MaxField {
			want = strings.ToValidUTF8(want, "")
		}
		if got := bounded(text); got != want || len(got) > store.MaxField {
			t.Errorf("%d bytes of %d", len(got), len(text))
		}
	}
}

// TestDigestOfARequest: what a caller sent counts, or else the change and what it is.
func TestDigestOfARequest(t *testing.T) {
	put, drop := Request{Change: resource.PutPartition{}}, Request{Change: resource.DeletePartition{}}
	if put.digest([]byte("{}")) == drop.digest([]byte("{}")) || put.digest([]byte("{}")) == put.digest([]byte("{ }")) {
		t.Error("two requests have one digest")
	}
	put.Digest = "given"
	if put.digest([]byte("{}")) != "given" {
		t.Error("the digest of what was sent does not count")
	}
}
