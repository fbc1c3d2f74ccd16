package servicecmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
)

// TestMatrix: each cell has its sign in both halves, what is wrong is said below, and what a
// device says of itself moves no cursor.
func TestMatrix(t *testing.T) {
	m := &views.Matrix{ReadAt: time.Unix(1e9, 0), Verdict: "violated", Cells: []views.MatrixCell{
		{A: 0, B: 0, Talk: "all", Verdict: "kept-apart", Reason: "they can talk over crimson"},
		{A: 0, B: 1, Talk: "some", Verdict: "violated", Violations: 1, Reason: "evil\x1b[2J and red-1 can talk", Witness: &views.MatrixWitness{From: "0x01", To: "0x02"}},
		{A: 0, B: 2, Talk: "none", Verdict: "kept-apart"},
		{A: 1, B: 1, Talk: "some", Verdict: "kept-apart", Witness: &views.MatrixWitness{From: "0x03", To: "0x04"}},
		{A: 1, B: 2, Talk: "unknown", Verdict: "unknown", Reason: "leaf-1:3: P_KeyTable was not read"},
	}}
	for _, name := range []string{"red", "ports in \x1b[31mblue", "all others"} {
		m.Parties = append(m.Parties, views.MatrixParty{Name: name, Kind: "tenant", Ports: 12})
	}
	m.Parties[2].Kind = "others"
	var out bytes.Buffer
	if err := printMatrix(&out, m); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.ContainsRune(text, 0x1b) {
		t.Errorf("%q has control characters", text)
	}
	lines := strings.Split(text, "\n")
	for i, want := range []string{"12  # ! .", "12  ! + ?", " -  . ?"} {
		if line := lines[3+i]; !strings.HasSuffix(line, want) {
			t.Errorf("line %q, want it to end in %q", line, want)
		}
	}
	if !strings.Contains(text, "violated; evil") || !strings.Contains(text, "witness: 0x01 and 0x02 (ibwarden why 0x01 0x02)") || !strings.Contains(text, "leaf-1:3") || strings.Contains(text, "crimson") {
		t.Errorf("%s: want what is wrong, and that alone", text)
	}
	out.Reset()
	many := *m
	for range 2 * wrongMost {
		many.Cells = append(many.Cells, views.MatrixCell{A: 1, B: 2, Talk: "none", Verdict: "unenforced", Reason: "nobody holds it"})
	}
	many.Cells = append(many.Cells, views.MatrixCell{A: 0, B: 2, Talk: "some", Verdict: "violated", Reason: "the worst"})
	if err := printMatrix(&out, &many); err != nil || strings.Count(out.String(), "nobody holds it") != wrongMost-3 || !strings.Contains(out.String(), "the worst") || !strings.Contains(out.String(), "and 23 more") {
		t.Errorf("%s, %v: want the worst %d", &out, err, wrongMost)
	}
	m.Sparse = true
	for args, want := range map[string]string{
		"red": "crimson", "red,red": "red among themselves: kept-apart", "all others,red": "red and all others: kept-apart", "all others,all others": "none of their ports can talk",
	} {
		out.Reset()
		if err := printParties(&out, m, strings.Split(args, ",")); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s, %v: want %q", args, &out, err, want)
		}
	}
	m.Sparse = false
	for args, want := range map[string]string{"all others,all others": "is not told", "green": "no party \"green\""} {
		if err := printParties(&out, m, strings.Split(args, ",")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
