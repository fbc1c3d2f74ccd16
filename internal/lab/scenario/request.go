package scenario

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

func requestVerbs() []verb {
	return []verb{
		{"from", "NODE[:PORT]", "packets are sent from here from now on, by a stranger", false, compileFrom},
		{"manager", "NODE[:PORT]", "packets are sent from here, and the port says that a subnet manager runs there", false, compileFrom},
		{"resign", "NODE[:PORT]", "no subnet manager runs there any more: traps go unheard", false, compileResign},
		{"mkey", "KEY", "the M_Key that requests carry from now on", false, compileMKey},
		{"get", "NODE[:PORT] ATTRIBUTE[modifier] [with-mkey=KEY] [to-lid=LID | route=PORT,... [hop-count=N]]", "read an attribute with one packet", false, compileRequest(false)},
		{"set", "NODE[:PORT] ATTRIBUTE[modifier] [blank] FIELD=VALUE... [with-mkey=KEY] [to-lid=LID | route=PORT,... [hop-count=N]]", "write an attribute with one packet", false, compileRequest(true)},
		{"pkeys", "NODE[:PORT] KEY...", "write a whole P_Key table", false, compilePKeys},
		{"bring-up", "", "give every port an address, every switch routes, and activate all links", false, compileBringUp},
	}
}

func compileFrom(a *args) (action, error) {
	manages := a.Line.Words[0].Text == "manager"
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	return func(w *world) error { return w.SendFrom(p.End(), manages) }, nil
}

func compileResign(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	return func(w *world) error { return w.Resign(p.End()) }, nil
}

func compileMKey(a *args) (action, error) {
	n, err := a.Number("M_Key", 64)
	return func(w *world) error { w.mkey = ib.MKey(n); return nil }, err
}

// request is a Get or Set that a line sent.
type request struct {
	*testbed.Request
	step   *step
	judged bool // its result was checked
}

// asking is what a get or set line says.
type asking struct {
	target OperandTarget
	set    bool
	blank  bool // begin with zeros
	fields []Assignment
	mkey   *Datum
	lid    *Datum   // LID routed
	route  mad.Path // nil for the shortest
	hops   *uint8   // what it says of its hops, nil for the truth
}

func compileRequest(set bool) func(*args) (action, error) {
	return func(a *args) (action, error) {
		t, err := a.Target()
		if err != nil {
			return nil, err
		}
		q := asking{target: t, set: set, blank: set && a.Keyword("blank")}
		for a.More() {
			if err := q.read(a); err != nil {
				return nil, err
			}
		}
		if q.lid != nil && (q.route != nil || q.hops != nil) {
			return nil, a.Fault(testbed.ScriptWord{}, "to-lid=: want no route= and no hop-count=")
		}
		if set && len(q.fields) == 0 && !q.blank {
			return nil, a.Fault(testbed.ScriptWord{}, "want FIELD=VALUE, or blank for zeros")
		}
		if err := a.Fits(q.target, q.fields); err != nil {
			return nil, err
		}
		a.lastTarget = &q.target
		return func(w *world) error { return w.ask(q) }, nil
	}
}

// read takes one name=value of a get or set line.
func (q *asking) read(a *args) error {
	s, err := a.Setting("FIELD=VALUE, with-mkey=KEY, to-lid=LID, route=PORT,... or hop-count=N", false)
	if err != nil {
		return err
	}
	switch {
	case s.Name == "with-mkey":
		v, err := a.ToDatum(s, reflect.TypeFor[ib.MKey]())
		q.mkey = &v
		return err
	case s.Name == "to-lid":
		v, err := a.ToDatum(s, reflect.TypeFor[ib.LID]())
		q.lid = &v
		return err
	case s.Name == "route":
		return q.readRoute(a, s)
	case s.Name == "hop-count":
		n, err := a.ToNumber(s.ScriptWord, s.Value, s.Name, 8)
		if err == nil && n > mad.MaxHops {
			err = a.Fault(s.ScriptWord, "%q: want 0 to %d", s.Text, mad.MaxHops)
		}
		hops := uint8(n)
		q.hops = &hops
		return err
	case !q.set:
		return a.Fault(s.ScriptWord, "%q: want with-mkey=KEY, to-lid=LID, route=PORT,... or hop-count=N", s.Text)
	}
	f, err := a.ToAssignment(s, &q.target)
	q.fields = append(q.fields, f)
	return err
}

// readRoute takes the ports by which a directed route leaves each node.
func (q *asking) readRoute(a *args, s testbed.ScriptSetting) error {
	for _, word := range strings.Split(s.Value, ",") {
		n, err := a.ToNumber(s.ScriptWord, word, s.Name, 8)
		if err != nil {
			return err
		}
		q.route = append(q.route, ib.PortNum(n))
	}
	if len(q.route) > mad.MaxHops {
		return a.Fault(s.ScriptWord, "route: %d hops, want %d at most", len(q.route), mad.MaxHops)
	}
	return nil
}

// ask sends a request and waits for its answer, or for as long as one may take.
func (w *world) ask(q asking) error {
	to := q.target.End()
	attr := q.target.AttributeKind.New()
	if q.set && !q.blank {
		w.Held(to, q.target.Modifier, attr)
	}
	for _, f := range q.fields {
		at, err := AttributeField(reflect.ValueOf(attr).Elem(), f.Field)
		if err != nil {
			return err
		}
		f.Store(w.Testbed, at)
	}
	question := testbed.Question{To: to, Modifier: q.target.Modifier, Whole: q.target.Whole, MKey: w.mkey, Attribute: attr, Set: q.set, Route: q.route, HopCount: q.hops}
	if q.mkey != nil {
		question.MKey = ib.MKey(q.mkey.Now(w.Testbed))
	}
	if q.lid != nil {
		if question.LID = ib.LID(q.lid.Now(w.Testbed)); question.LID == 0 {
			return fmt.Errorf("to-lid=0: want the LID of a port that has one")
		}
	}
	w.last = nil
	r, err := w.Ask(question)
	if r != nil {
		w.last = &request{Request: r, step: w.step}
	}
	return err
}

func compilePKeys(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	var keys []ib.PKey
	for first := true; first || a.More(); first = false {
		n, err := a.Number("P_Key", 16)
		if err != nil {
			return nil, err
		}
		keys = append(keys, ib.PKey(n))
	}
	k, err := a.Kind(testbed.ScriptWord{}, "PKeyTable")
	return func(w *world) error { return w.writeKeys(p, k, keys) }, err
}

// writeKeys writes a table from entry 0 on and empties what is behind.
func (w *world) writeKeys(p OperandPlace, k AttributeKind, keys []ib.PKey) error {
	total := max(len(keys), len(w.Fabric.Agent(p.Node.GUID).PKeys(p.Exact().Port)))
	for block := 0; block*smp.PKeysPerBlock < total; block++ {
		q := asking{target: OperandTarget{OperandPlace: p, AttributeKind: k, Modifier: k.Modifier(p.Own(), uint16(block), 0)}, set: true, blank: true}
		for i := range smp.PKeysPerBlock {
			if at := block*smp.PKeysPerBlock + i; at < len(keys) {
				q.fields = append(q.fields, Assignment{Datum: Number(uint64(keys[at])), Field: strconv.Itoa(i)})
			}
		}
		if err := w.ask(q); err != nil {
			return err
		}
		if !w.last.Good() {
			return nil // the next statement looks at it
		}
	}
	return nil
}

func compileBringUp(*args) (action, error) {
	return func(w *world) error { return w.BringUp(w.mkey) }, nil
}
