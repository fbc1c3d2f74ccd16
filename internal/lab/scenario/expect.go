package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/names"
)

func expectVerbs() []verb {
	return []verb{
		{"expect", "status CODE|ok | timeout | answer FIELD=VALUE... | NODE[:PORT] ATTRIBUTE[modifier] FIELD=VALUE... | " +
			"counter NODE:PORT FIELD VALUE | trap NUMBER FIELD=VALUE... | no trap [NUMBER] | drop at NODE[:PORT] REASON | no drop | " +
			"cable NODE:PORT NODE:PORT | no cable NODE:PORT | refused | received QP NUMBER [pkey=] [pkey-index=] [bytes=] | nothing QP | " +
			"completion QP STATUS | qp QP [state=] [pkey-index=] [qkey=] | event NODE[:PORT] KIND | sent NODE[:PORT] [raw] [packets=] [pkey=] [qkey=] [sl=] [vl=] | verdict NODE VERDICT | requests get|set ATTRIBUTE NUMBER|some | " +
			"reply status CODE|ok | reply none | reply records NUMBER|some | reply record FIELD=VALUE... | key NODE known|unknown to NODE | keys safe | heard NODE VALUE",
			"fail the script unless it is so", false, compileExpect},
		{"goal", "what an expect line can say", "what an attacker wants: the report says whether it is so", false, compileGoal},
	}
}

// expectation is a kind of expect line by its first word.
type expectation struct {
	name    string
	compile func(*args) (action, error)
	judges  bool // it is about the last request
}

func expectations() []expectation {
	return []expectation{
		{"status", expectStatus, true},
		{"timeout", expectTimeout, true},
		{"answer", expectAnswer, true},
		{"counter", expectCounter, false},
		{"trap", expectTrap, false},
		{"no", expectNo, false},
		{"drop", expectDrop, false},
		{"cable", expectCable, false},
		{"refused", expectRefused, true},
		{"received", expectReceived, false},
		{"nothing", expectNothing, false},
		{"completion", expectCompletion, false},
		{"qp", expectQP, false},
		{"event", expectEvent, false},
		{"sent", expectSent, false},
		{"verdict", expectVerdict, false},
		{"requests", expectRequests, false},
		{"reply", expectReply, true},
		{"key", expectKey, false},
		{"keys", expectKeys, false},
		{"heard", expectHeard, false},
	}
}

// judges reports whether the words of an expect line are about the last request or verb
func judges(words []testbed.ScriptWord) bool {
	for _, e := range expectations() {
		if len(words) > 0 && !words[0].Quoted && words[0].Text == e.name {
			return e.judges
		}
	}
	return false
}

func compileExpect(a *args) (action, error) {
	for _, e := range expectations() {
		if a.Keyword(e.name) {
			return e.compile(a)
		}
	}
	if a.More() && !a.IsNode(a.Words[0]) {
		var all []string
		for _, e := range expectations() {
			all = append(all, e.name)
		}
		w := a.Words[0]
		return nil, a.Fault(w, "%q is nothing that can be expected%s; want one of %s, or a node and an attribute",
			w.Text, names.DidYouMean(w.Text, all), strings.Join(all, ", "))
	}
	return expectAttribute(a)
}

var errNoRequest = errors.New("want a get or set before it")

func expectStatus(a *args) (action, error) {
	want := mad.StatusOK
	if !a.Keyword("ok") {
		n, err := a.Number("status", 16)
		if err != nil {
			return nil, err
		}
		want = mad.Status(n)
	}
	return func(w *world) error {
		if w.last == nil {
			return errNoRequest
		}
		w.last.judged = true
		w.check(w.last.Answered && w.last.Status == want, (&testbed.Request{Answered: true, Status: want}).Outcome(), w.last.Outcome())
		return nil
	}, nil
}

func expectTimeout(*args) (action, error) {
	return func(w *world) error {
		if w.last == nil {
			return errNoRequest
		}
		w.last.judged = true
		w.check(!w.last.Answered, (&testbed.Request{}).Outcome(), w.last.Outcome())
		return nil
	}, nil
}

// expectAnswer compares fields of the last answer, whatever its status was.
func expectAnswer(a *args) (action, error) {
	if a.lastTarget == nil {
		return nil, a.Fault(testbed.ScriptWord{}, "want a get or set line before it")
	}
	t := *a.lastTarget
	fields, err := a.comparisons(&t)
	if err != nil {
		return nil, err
	}
	return func(w *world) error {
		if w.last == nil {
			return errNoRequest
		}
		if !w.last.Answered {
			w.last.judged = true
		}
		w.compare(fields)
		return nil
	}, nil
}

// comparisons takes the FIELD=VALUE words of the rest of a line.
func (a *args) comparisons(t *OperandTarget) ([]Assignment, error) {
	var fields []Assignment
	for first := true; first || a.More(); first = false {
		f, err := a.Assignment(t, true)
		if err != nil {
			return nil, err
		}
		if n, err := testbed.ParseNumber(f.Value); err == nil && n == 0 && f.Relation == ">=" {
			return nil, a.Fault(f.ScriptWord, "%q: want a comparison that can fail: this holds of every value", f.Text)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// expectAttribute reads an attribute over the fabric and compares fields of it.
func expectAttribute(a *args) (action, error) {
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	fields, err := a.comparisons(&t)
	if err != nil {
		return nil, err
	}
	return func(w *world) error {
		if err := w.ask(asking{target: t}); err != nil {
			return err
		}
		w.last.judged = true
		if !w.last.Good() {
			w.fail(wanted(fields), w.last.Outcome())
			return nil
		}
		w.compare(fields)
		return nil
	}, nil
}

func wanted(fields []Assignment) string {
	var all []string
	for _, f := range fields {
		all = append(all, f.Text)
	}
	return strings.Join(all, " ")
}

// compare checks fields of the last answer, each an expectation of its own.
func (w *world) compare(fields []Assignment) {
	for _, f := range fields {
		if !w.last.Answered {
			w.fail(f.Text, w.last.Outcome())
			continue
		}
		got, err := AttributeField(reflect.ValueOf(w.last.Attribute).Elem(), f.Field)
		if err != nil {
			w.fail(f.Text, err.Error())
			continue
		}
		w.check(f.Compare(w.Testbed, f.Relation, got), f.Text, f.Name+"="+ShowAttribute(got))
	}
}

// expectCounter compares a field of PortInfo as the device holds it, without a
// packet: also where an M_Key would hide it.
func expectCounter(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	name, err := a.Next("a counter, as PKeyViolations")
	if err != nil {
		return nil, err
	}
	f, err := AttributeField(reflect.ValueOf(new(smp.PortInfo)).Elem(), name.Text)
	if err != nil {
		return nil, a.Fault(name, "%v", err)
	}
	if f.Kind() == reflect.Bool || f.Kind() == reflect.Array {
		return nil, a.Fault(name, "%q: want a number", name.Text)
	}
	want, err := a.Number("value", f.Type().Bits())
	return func(w *world) error {
		got, err := AttributeField(reflect.ValueOf(w.Fabric.Agent(p.Node.GUID).Port(p.Exact().Port)).Elem(), name.Text)
		if err != nil {
			return err
		}
		w.check(AttributeNumber(got) == want, fmt.Sprintf("%s=%d", name.Text, want), name.Text+"="+ShowAttribute(got))
		return nil
	}, err
}

// expectTrap takes the oldest notice of a number that a manager received and
// that no line has taken yet.
func expectTrap(a *args) (action, error) {
	n, err := a.Number("trap number", 16)
	if err != nil {
		return nil, err
	}
	number := smp.TrapNumber(n)
	var fields []TrapField
	var sl *uint64
	for a.More() {
		s, err := a.Setting("FIELD=VALUE", true)
		if err != nil {
			return nil, err
		}
		if s.Name == "sl" && s.Relation == "=" {
			v, err := a.ToNumber(s.ScriptWord, s.Value, s.Name, 4)
			if err != nil {
				return nil, err
			}
			sl = &v
			continue
		}
		f, err := ReadTrapField(a.Operands, s, number)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return func(w *world) error { w.expectTrap(number, sl, fields); return nil }, nil
}

func (w *world) expectTrap(n smp.TrapNumber, sl *uint64, fields []TrapField) {
	i := slices.IndexFunc(w.Traps, func(t testbed.Trap) bool { return t.IsGeneric && t.TrapNumber == n })
	if i < 0 {
		w.fail(fmt.Sprintf("trap %d", n), w.TrapList())
		return
	}
	t := w.Traps[i]
	w.Traps = slices.Delete(w.Traps, i, i+1)
	w.hold()
	if sl != nil {
		w.check(uint64(t.SL) == *sl, fmt.Sprintf("sl=%d", *sl), fmt.Sprintf("sl=%d", t.SL))
	}
	for _, f := range fields {
		from := reflect.ValueOf(&t.Notice).Elem()
		if f.InDetails {
			details, ok := t.Notice.TypedDetails()
			if !ok {
				w.fail(f.Text, "a trap without such details")
				continue
			}
			from = reflect.ValueOf(details).Elem()
		}
		got, err := AttributeField(from, f.Field)
		if err != nil {
			w.fail(f.Text, err.Error())
			continue
		}
		w.check(f.Compare(w.Testbed, f.Relation, got), f.Text, f.Name+"="+ShowAttribute(got))
	}
}

func expectNo(a *args) (action, error) {
	what, err := a.Pick("trap", "drop", "cable")
	if err != nil {
		return nil, err
	}
	switch what {
	case "drop":
		return func(w *world) error {
			w.check(len(w.Drops) == 0, "no drop", w.DropList())
			return nil
		}, nil
	case "cable":
		p, err := a.External()
		return func(w *world) error {
			far, err := w.far(p)
			w.check(err != nil, "no cable at "+p.String(), "a cable to "+w.Name(far))
			return nil
		}, err
	}
	if !a.More() {
		return func(w *world) error {
			w.check(len(w.Traps) == 0, "no trap", w.TrapList())
			return nil
		}, nil
	}
	n, err := a.Number("trap number", 16)
	return func(w *world) error {
		some := slices.ContainsFunc(w.Traps, func(t testbed.Trap) bool { return t.TrapNumber == smp.TrapNumber(n) })
		w.check(!some, fmt.Sprintf("no trap %d", n), w.TrapList())
		return nil
	}, err
}

func expectDrop(a *args) (action, error) {
	if _, err := a.Pick("at"); err != nil {
		return nil, err
	}
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	reason, err := a.Next("a reason in quotation marks")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(testbed.Reasons(), reason.Text) {
		return nil, a.Fault(reason, "%q: want one of \"%s\"", reason.Text, strings.Join(testbed.Reasons(), `", "`))
	}
	return func(w *world) error {
		some := slices.ContainsFunc(w.Drops, func(d testbed.Drop) bool {
			return d.Node == p.Node.GUID && (!p.HasPort || d.Port == p.Num) && d.Reason == reason.Text
		})
		w.check(some, fmt.Sprintf("a drop at %v: %s", p, reason.Text), w.DropList())
		return nil
	}, nil
}

func expectCable(a *args) (action, error) {
	p, err := a.External()
	if err != nil {
		return nil, err
	}
	q, err := a.External()
	return func(w *world) error {
		far, err := w.far(p)
		got := "no cable"
		if err == nil {
			got = "a cable to " + w.Name(far)
		}
		w.check(err == nil && far == q.Exact(), "a cable to "+q.String(), got)
		return nil
	}, err
}
