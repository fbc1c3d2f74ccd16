package daemon

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// TestEndings: requests are counted by method, attribute and how they ended, with the
// labels that docs/metrics.md names; an answer is counted without garbage.
func TestEndings(t *testing.T) {
	e := make(endings)
	e.count(mad.MethodGet, smp.AttrPortInfo, nil)
	e.count(mad.MethodGet, smp.AttrPortInfo, nil)
	e.count(mad.MethodSet, smp.AttrPortInfo, nil)
	e.count(mad.MethodGet, smp.AttrPortInfo, fmt.Errorf("leaf: %w", transact.StatusError{Status: mad.StatusInvalidField}))
	e.count(mad.MethodGet, smp.AttrPortInfo, errors.New("no answer after 4 tries"))
	got := make(map[string]uint64)
	for k, n := range e {
		got[fmt.Sprint(k.method, " ", smp.AttributeName(k.attribute), " ", k.result)] = n
	}
	want := map[string]uint64{"Get PortInfo ok": 2, "Set PortInfo ok": 1, "Get PortInfo status": 1, "Get PortInfo no-answer": 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { e.count(mad.MethodGet, smp.AttrPortInfo, nil) }); n != 0 {
		t.Errorf("counting an answer allocates %v times, want 0", n)
	}
}
