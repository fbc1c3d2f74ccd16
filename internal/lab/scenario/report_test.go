package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestWriteTo: rules, goals and failures, and the sum, as a person reads them.
func TestWriteTo(t *testing.T) {
	r := Report{
		Name: "x.ibs", Seed: 7, Held: 3, Elapsed: 5 * time.Millisecond, Packets: 42,
		Rules: []Rule{{Line: 2, IDs: []string{"PK-01", "PK-02"}, Text: "keys"}, {Line: 9, IDs: []string{"QP-13"}, Text: "pairs", Failed: 1}},
		Goals: []Goal{{Line: 11, Statement: "goal reach b", Reached: true}, {Line: 12, Statement: "goal read keys", Got: "timeout"}},
		Failures: []Failure{
			{Line: 10, Statement: "expect delivered", Expected: "delivered", Got: "dropped", Rules: []string{"QP-13"}, At: time.Microsecond},
			{Line: 14, Statement: "expect status ok", Expected: "status ok", Got: "timeout", At: time.Second},
		},
	}
	const want = `holds  line 2    PK-01 PK-02  keys
FAILS  line 9    QP-13  pairs
reached  line 11   goal reach b
missed   line 12   goal read keys
  got:      timeout
x.ibs:10: expect delivered
  expected: delivered
  got:      dropped
  rules:    QP-13
  seed:     7, at 1µs
x.ibs:14: expect status ok
  expected: status ok
  got:      timeout
  seed:     7, at 1s
x.ibs: 3 of 5 expectations hold; seed 7, 42 management packets in 5ms
`
	var b strings.Builder
	n, err := r.WriteTo(&b)
	if b.String() != want || n != int64(len(want)) || err != nil {
		t.Errorf("%d bytes, %v:\n%s", n, err, b.String())
	}
	if r.Good() {
		t.Error("a report with failures is good")
	}
	if !(&Report{Goals: r.Goals}).Good() {
		t.Error("a goal that was missed makes a report bad")
	}
}

// TestAborted: of a run that ended early only the sections hold that were over, and the sum
// says so.
func TestAborted(t *testing.T) {
	r := Report{
		Name: "x.ibs", Seed: 7, Held: 3, Aborted: 10,
		Rules: []Rule{{Line: 2, IDs: []string{"PK-01"}}, {Line: 5, IDs: []string{"PK-02"}, Failed: 1}, {Line: 9, IDs: []string{"QP-13"}}, {Line: 10, IDs: []string{"QP-14"}}},
	}
	const want = `holds  line 2    PK-01  
FAILS  line 5    PK-02  
ABORTS  line 9    QP-13  
not run  line 10   QP-14  
x.ibs:10: aborted here, after 3 expectations that held and 0 that did not; seed 7
`
	var b strings.Builder
	if _, err := r.WriteTo(&b); b.String() != want || err != nil {
		t.Errorf("%v:\n%s", err, b.String())
	}
	if r.Good() {
		t.Error("a run that ended early is good")
	}
}

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteToFullDisk(t *testing.T) {
	if _, err := new(Report).WriteTo(full{}); err == nil {
		t.Error("a report that was not written is no error")
	}
}
