package simfabric_test

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
)

// attributes are those of Modify by the names that docs/dev/verbs.md has.
var attributes = map[string]verbs.QPAttrMask{
	"Port": verbs.AttrPort, "PKeyIndex": verbs.AttrPKeyIndex, "QKey": verbs.AttrQKey, "AV": verbs.AttrAV,
	"PathMTU": verbs.AttrPathMTU, "DestQPN": verbs.AttrDestQPN, "RQPSN": verbs.AttrRQPSN, "SQPSN": verbs.AttrSQPSN,
	"MinRNRTimer": verbs.AttrMinRNRTimer, "Timeout": verbs.AttrTimeout, "RetryCount": verbs.AttrRetryCount, "RNRRetry": verbs.AttrRNRRetry,
}

// types are the columns of the table of Modify.
var types = []verbs.QPType{verbs.QPTypeRC, verbs.QPTypeUC, verbs.QPTypeUD, verbs.QPTypeRawIPv6, verbs.QPTypeRD}

// ways are how a queue pair gets to the state before a row's.
var ways = map[string][]verbs.QPState{
	"RESET": nil, "INIT": {verbs.StateInit}, "RTR": {verbs.StateInit, verbs.StateRTR},
	"RTS": {verbs.StateInit, verbs.StateRTR, verbs.StateRTS}, "SQD": {verbs.StateInit, verbs.StateRTR, verbs.StateRTS, verbs.StateSQD},
}

var states = map[string]verbs.QPState{
	"RESET": verbs.StateReset, "INIT": verbs.StateInit, "RTR": verbs.StateRTR, "RTS": verbs.StateRTS, "SQD": verbs.StateSQD, "ERR": verbs.StateErr,
}

// modifyRow is what the page says of one change of state and type.
type modifyRow struct {
	wants, takes verbs.QPAttrMask
	not          bool
}

// modifyTable reads the table of Modify in docs/dev/verbs.md: by "FROM, TO" and type.
func modifyTable(t *testing.T) map[string][]modifyRow {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "## Attributes of Modify\n")
	if !ok {
		t.Fatal("docs/dev/verbs.md has no table of Modify")
	}
	out := map[string][]modifyRow{}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		from, to, ok := strings.Cut(strings.TrimSpace(cells[0]), ", ")
		if !strings.HasPrefix(line, "| ") || !ok || from == "from" {
			continue
		}
		var rows []modifyRow
		for i := range types {
			cell := ""
			if i+1 < len(cells) {
				cell = strings.TrimSpace(cells[i+1])
			}
			r := modifyRow{not: cell == "not"}
			wants, takes, _ := strings.Cut(cell, "[")
			for text, mask := range map[string]*verbs.QPAttrMask{wants: &r.wants, strings.TrimSuffix(takes, "]"): &r.takes} {
				for _, name := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" ,;", c) }) {
					if name == "not" {
						continue
					}
					if attributes[name] == 0 {
						t.Fatalf("%q: no attribute %q", line, name)
					}
					*mask |= attributes[name]
				}
			}
			rows = append(rows, r)
		}
		for _, end := range strings.Split(to, " or ") {
			for _, begin := range strings.Split(from, " or ") {
				out[begin+", "+end] = rows
			}
		}
	}
	return out
}

// TestModifyTable holds the table of docs/dev/verbs.md against what Modify takes: all
// that a row wants is enough, one less is refused, each of the rest is taken if the
// row has it and refused otherwise.
func TestModifyTable(t *testing.T) {
	f := open(guide)
	defer f.Close()
	d := is(f.OpenDevice("A"))
	cq := is(d.CreateCQ(1))
	table := modifyTable(t)
	if len(table) < 9 {
		t.Fatalf("the table has %d rows", len(table))
	}
	value := func(to verbs.QPState) verbs.QPAttr {
		return verbs.QPAttr{
			State: to, Port: 1, PKeyIndex: 1, QKey: 5, AV: verbs.AHAttr{DLID: 1}, PathMTU: ib.MTU256, DestQPN: 9, RQPSN: 7, SQPSN: 8,
			MinRNRTimer: 1, Timeout: 2, RetryCount: 3, RNRRetry: 4,
		}
	}
	at := func(i int, from string) *verbs.QP {
		init := verbs.QPInit{Type: types[i], SendCQ: cq, ReceiveCQ: cq}
		create := d.CreateQP
		if types[i] == verbs.QPTypeRD {
			create = d.CreateRDQP
		}
		qp, before := is(create(init)), "RESET"
		for _, s := range ways[from] {
			name := s.String()
			must(qp.Modify(value(s), verbs.AttrState|table[before+", "+name][i].wants))
			before = name
		}
		return qp
	}
	tries := 0
	for _, change := range slices.Sorted(maps.Keys(table)) {
		from, to, _ := strings.Cut(change, ", ")
		for i, row := range table[change] {
			try := func(mask verbs.QPAttrMask, want bool) {
				t.Helper()
				tries++
				for _, begin := range map[bool][]string{true: {"RESET", "INIT", "RTR", "RTS"}, false: {from}}[from == "any"] {
					qp := at(i, begin)
					before := is(qp.Query())
					err := qp.Modify(value(states[to]), verbs.AttrState|mask)
					if (err == nil) != want || err != nil && !errors.Is(err, verbs.ErrAttribute) && !errors.Is(err, verbs.ErrState) {
						t.Errorf("%v from %s to %s with %#x: %v, the table says %v", types[i], begin, to, mask, err, want)
					}
					if after := is(qp.Query()); err != nil && after != before {
						t.Errorf("%v from %s to %s: refused, and changed %+v to %+v", types[i], begin, to, before, after)
					}
					must(qp.Destroy())
				}
			}
			if from == "SQE" || row.not || types[i] == verbs.QPTypeRD && from == "SQD" {
				continue // SQE is not entered by Modify, nor is SQD by RD
			}
			try(row.wants, true)
			for _, mask := range attributes {
				switch {
				case row.wants&mask != 0:
					try(row.wants&^mask, false)
				default:
					try(row.wants|mask, row.takes&mask != 0)
				}
			}
		}
	}
	rd := at(4, "RTS")
	if err := rd.Modify(value(verbs.StateSQD), verbs.AttrState); !errors.Is(err, verbs.ErrState) {
		t.Errorf("RD to SQD: %v", err)
	}
	if tries < 400 {
		t.Errorf("%d tries", tries)
	}
}
