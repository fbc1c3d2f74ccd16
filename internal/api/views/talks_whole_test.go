package views

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// told is a matrix, with the ports of every two parties, as a caller is told.
func (w *matrixWorld) told(tenant string) string {
	f := &MatrixFacts{Snapshot: &snapshot.Snapshot{Fabric: w.b.Fabric}, Proof: isolation.Prove(w.b.Fabric, w.allowed), Allowed: w.allowed}
	var c MatrixCache
	view := SeeMatrix(w.state, talksAs(tenant), f)
	m := c.Matrix(view)
	var out strings.Builder
	fmt.Fprintf(&out, " %s: %s, sparse %v\n", tenant, m.Verdict, m.Sparse)
	names, of := view.Parties()
	for i, p := range m.Parties {
		count := 0
		for _, n := range of {
			if n == i {
				count++
			}
		}
		fmt.Fprintf(&out, "  %s %s of %q: %d ports in %q, %s; %d in the map\n", names[i], p.Kind, p.Owner, p.Ports, p.Partitions, p.Example, count)
	}
	for _, x := range m.Cells {
		allowed := "?"
		if x.Allowed != nil {
			allowed = fmt.Sprint(*x.Allowed)
		}
		fmt.Fprintf(&out, "   %d-%d %s: %d pairs, %d talk, %d unread, %s allowed, %d may not, %s, %q: %s", x.A, x.B, x.Talk, x.Pairs, x.Talking, x.Unread, allowed, x.Violations, x.Verdict, x.Partitions, x.Reason)
		if x.Witness != nil {
			fmt.Fprintf(&out, " %+v", *x.Witness)
		}
		fmt.Fprintln(&out)
	}
	for i, a := range m.Parties {
		for _, b := range m.Parties[i:] {
			ports, missing := c.Ports(view, a.Name, b.Name, MatrixWindow{Limit: 100})
			if missing != "" {
				fmt.Fprintf(&out, "   %s, %s: no %s\n", a.Name, b.Name, missing)
				continue
			}
			for i, row := range ports.Rows {
				fmt.Fprintf(&out, "   %s:", row.Name)
				for j, column := range ports.Columns {
					x := ports.Cells[i][j]
					if fmt.Fprintf(&out, " %s %s", column.Name, x.Talk); x.Verdict+x.Reason != "" {
						fmt.Fprintf(&out, " (%s: %s)", x.Verdict, x.Reason)
					}
				}
				fmt.Fprintln(&out)
			}
		}
	}
	return out.String()
}

// TestMatrices: who is told what of who can talk with whom, in every state of a fabric that the
// words have. testdata/matrices.txt has all of it: IBWARDEN_UPDATE=1 writes it, and the difference
// is to be read.
func TestMatrices(t *testing.T) {
	var out strings.Builder
	for _, x := range []struct {
		name   string
		change func(w *matrixWorld)
	}{
		{"as the policy says", func(*matrixWorld) {}},
		{"a key too many", func(w *matrixWorld) { w.hold("green-1", 0x8020) }},
		{"three ports with a key too many", func(w *matrixWorld) { w.hold("green-1", 0x8020); w.hold("green-2", 0x8020) }},
		{"a port of nobody in a partition", func(w *matrixWorld) { w.hold("host9", 0x8020) }},
		{"a key that nobody knows", func(w *matrixWorld) { w.hold("green-1", 0x8077); w.hold("red-2", 0x8077) }},
		{"both are limited members of more", func(w *matrixWorld) { w.hold("green-1", 0x0044); w.hold("red-2", 0x0044) }},
		{"keys that were not read", func(w *matrixWorld) { w.ports["blue-1"].PKeysRead[0] = false }},
		{"a port that was not read", func(w *matrixWorld) { w.ports["host9"].InfoRead = false }},
		{"a switch that does not check", func(w *matrixWorld) { subnettest.Enforce(w.ports["red-1"].Peer, false, false) }},
		{"many keys", func(w *matrixWorld) {
			w.hold("host9", 0x8041, 0x8042, 0x8043, 0x0044)
			other := w.b.Host(w.b.Fabric.Switches()[0], "host8")
			w.ports["host8"] = other
			w.hold("host8", 0x8041, 0x8042, 0x8043, 0x8045, 0x8046)
			w.b.Route()
		}},
		{"as many keys as are named", func(w *matrixWorld) { w.hold("host9", 0x8041, 0x8042, 0x8043) }},
	} {
		w := newMatrixWorld(t)
		x.change(w)
		fmt.Fprintln(&out, x.name)
		for _, tenant := range []string{resource.Provider, "red", "blue"} {
			out.WriteString(w.told(tenant))
		}
	}
	file := filepath.Join("testdata", "matrices.txt")
	if os.Getenv("IBWARDEN_UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	have, due := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(have), len(due)) {
		if have[i] != due[i] {
			t.Fatalf("%s:%d: %s\nwant\n%s", file, i+1, have[i], due[i])
		}
	}
	if len(have) != len(due) {
		t.Errorf("%s: %d lines, want %d", file, len(have), len(due))
	}
}

// TestWordsOfPairs: each word for which pairs can talk, and each sentence for why.
func TestWordsOfPairs(t *testing.T) {
	for _, x := range []struct {
		pairs, talking, unread int
		want                   string
	}{{0, 0, 0, "none"}, {1, 1, 0, "all"}, {2, 1, 0, "some"}, {2, 1, 1, "some"}, {2, 0, 1, "unknown"}, {2, 0, 0, "none"}} {
		if got := talk(x.pairs, x.talking, x.unread); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
	for v, want := range map[isolation.Verdict]string{isolation.Isolated: "kept-apart", isolation.Unguarded: "kept-apart", isolation.ByEndPorts: "unenforced", isolation.Unknown: "unknown", isolation.Violated: "violated"} {
		if got := word(v); got != want {
			t.Errorf("%v: %s", v, got)
		}
	}
	v := &view{names: map[ib.PKeyBase]string{1: "one", 2: "two", 3: "three"}}
	for want, b := range map[string]isolation.Between{
		"there is no pair of ports":                                                                          {},
		"they can talk over one":                                                                             {Pairs: 2, Talking: 2, Over: []ib.PKeyBase{1}},
		"they can talk over one, two and three":                                                              {Pairs: 2, Talking: 2, Over: []ib.PKeyBase{1, 2, 3}},
		"they can talk over one and two":                                                                     {Pairs: 2, Talking: 2, Over: []ib.PKeyBase{1, 2}},
		"they can talk over a partition that is not told":                                                    {Pairs: 2, Talking: 2, Over: []ib.PKeyBase{9}},
		"1 of 2 pairs can talk, over one; the others share no partition":                                     {Pairs: 2, Talking: 1, Over: []ib.PKeyBase{1}},
		"1 of 2 pairs can talk, over one; of 1 the keys were not read whole":                                 {Pairs: 2, Talking: 1, Unread: 1, Over: []ib.PKeyBase{1}},
		"1 of 2 pairs can talk, over one; the others are both limited members of two and share nothing else": {Pairs: 2, Talking: 1, Over: []ib.PKeyBase{1}, Limited: []ib.PKeyBase{2}},
		"their keys differ too much to compare them all":                                                     {Pairs: 2, TooMany: true, Unread: 1},
		"of 1 of 2 pairs the keys were not read whole; by what was read, they share no partition":            {Pairs: 2, Unread: 1},
		"they share no partition":                                                                            {Pairs: 2},
		"they are both limited members of one and share nothing else":                                        {Pairs: 2, Limited: []ib.PKeyBase{1}},
		"they share no partition; why":                                                                       {Pairs: 2, Verdict: isolation.Unknown, Cause: "why"},
	} {
		if got := v.reason(&b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	b := isolation.Between{Pairs: 2, Verdict: isolation.Isolated, Cause: "nothing"}
	if got := v.reason(&b); got != "they share no partition" {
		t.Errorf("kept apart: %q", got)
	}
	for n := range listed + 3 {
		v.names[ib.PKeyBase(n+100)] = fmt.Sprint("p", n)
	}
	var keys []ib.PKeyBase
	for n := range listed + 3 {
		keys = append(keys, ib.PKeyBase(n+100))
	}
	for n := range keys {
		if got := v.named(keys[:n]); len(got) != min(n, listed) {
			t.Errorf("%d of %d partitions are named", len(got), n)
		}
	}
}

// TestWindow: a part of a list, and what is after it.
func TestWindow(t *testing.T) {
	list := make([]*observed.Port, 5)
	for _, x := range [][4]int{{0, 5, 5, 0}, {0, 2, 2, 3}, {2, 2, 2, 1}, {4, 2, 1, 0}, {5, 2, 0, 0}, {9, 2, 0, 0}, {0, 0, 0, 5}} {
		if got, more := part(list, x[0], x[1]); len(got) != x[2] || more != x[3] {
			t.Errorf("from %d at most %d: %d, %d more", x[0], x[1], len(got), more)
		}
	}
}

// TestCacheIsOfItsFacts: facts are looked at once, and others again.
func TestCacheIsOfItsFacts(t *testing.T) {
	w := newMatrixWorld(t)
	var c MatrixCache
	f := &MatrixFacts{Snapshot: &snapshot.Snapshot{Fabric: w.b.Fabric}, Proof: isolation.Prove(w.b.Fabric, w.allowed), Allowed: w.allowed}
	first := c.prover(f)
	same := *f
	if c.prover(&same) != first {
		t.Error("the same facts are looked at twice")
	}
	proof, read := *f, *f
	proof.Proof = isolation.Prove(w.b.Fabric, nil)
	read.Snapshot = &snapshot.Snapshot{Fabric: w.b.Fabric}
	second := c.prover(&proof)
	if second == first {
		t.Error("another proof is not looked at")
	}
	if c.prover(&read) == second {
		t.Error("another snapshot is not looked at")
	}
	read.Proof = proof.Proof
	third := c.prover(&read)
	again := read
	again.Snapshot = &snapshot.Snapshot{Fabric: w.b.Fabric}
	if c.prover(&again) == third {
		t.Error("another snapshot of the same proof is not looked at")
	}
}
