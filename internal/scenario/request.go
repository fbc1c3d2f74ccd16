package scenario

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/scenario/attribute"
	"github.com/ibwarden/ibwarden/internal/scenario/stage"
	"github.com/ibwarden/ibwarden/internal/scenario/text"
)

func requestVerbs() []verb {
	return []verb{
		{"from", "NODE[:PORT]", "packets are sent from here from now on, by a stranger", false, compileFrom},
		{"manager", "NODE[:PORT]", "packets are sent from here, and the port says that a subnet manager runs there", false, compileFrom},
		{"resign", "NODE[:PORT]", "no subnet manager runs there any more: traps go unheard", false, compileResign},
		{"mkey", "KEY", "the M_Key that requests carry from now on", false, compileMKey},
		{"get", "NODE[:PORT] ATTRIBUTE[modifier] [with-mkey=KEY] [to-lid=LID]", "read an attribute with one packet", false, compileRequest(false)},
		{"set", "NODE[:PORT] ATTRIBUTE[modifier] [blank] FIELD=VALUE... [with-mkey=KEY] [to-lid=LID]", "write an attribute with one packet", false, compileRequest(true)},
		{"pkeys", "NODE[:PORT] KEY...", "write a whole P_Key table", false, compilePKeys},
		{"bring-up", "", "give every port an address, every switch routes, and activate all links", false, compileBringUp},
	}
}

func compileFrom(a *args) (action, error) {
	manages := a.Line.Words[0].Text == "manager"
	p, err := a.place()
	if err != nil {
		return nil, err
	}
	return func(w *world) error { return w.SendFrom(p.end(), manages) }, nil
}

func compileResign(a *args) (action, error) {
	p, err := a.place()
	if err != nil {
		return nil, err
	}
	return func(w *world) error { return w.Resign(p.end()) }, nil
}

func compileMKey(a *args) (action, error) {
	n, err := a.Number("M_Key", 64)
	return func(w *world) error { w.mkey = ib.MKey(n); return nil }, err
}

// target is an attribute of a port.
type target struct {
	place
	attribute.Kind
	modifier uint32
	// block is the block that entries named by table index have to be in;
	// -1 when the script named a modifier.
	block int
}

func (t target) String() string { return fmt.Sprintf("%v %s", t.place, t.Kind.Name) }

// target takes NODE[:PORT] ATTRIBUTE[modifier].
func (a *args) target() (target, error) {
	p, err := a.place()
	if err != nil {
		return target{}, err
	}
	w, err := a.Next("an attribute, as PortInfo or PKeyTable[1]")
	if err != nil {
		return target{}, err
	}
	name, inside, bracket := strings.Cut(w.Text, "[")
	t := target{place: p}
	if t.Kind, err = a.kind(w, name); err != nil {
		return t, err
	}
	if !bracket {
		t.modifier, t.block = t.Kind.Modifier(p.own(), 0, 0), 0
		return t, nil
	}
	t.block = -1
	inside, closed := strings.CutSuffix(inside, "]")
	if !closed {
		return t, a.Fault(w, "%q: want a closing bracket", w.Text)
	}
	if raw, ok := strings.CutPrefix(inside, "="); ok {
		n, err := a.ToNumber(w, raw, "modifier", 32)
		t.modifier = uint32(n)
		return t, err
	}
	first, second, two := strings.Cut(inside, ",")
	n, err := a.ToNumber(w, first, "modifier", 16)
	if err != nil {
		return t, err
	}
	var m uint64
	if two {
		if m, err = a.ToNumber(w, second, "modifier", 8); err != nil {
			return t, err
		}
		if id := t.Kind.New().ID(); id != smp.AttrSLToVLMappingTable && id != smp.AttrMulticastForwardingTable {
			return t, a.Fault(w, "%q: want one number in brackets, or =NUMBER for a whole modifier", w.Text)
		}
	}
	t.modifier = t.Kind.Modifier(p.own(), uint16(n), uint8(m))
	return t, nil
}

// assignment is a field with what it is set to or compared with.
type assignment struct {
	text.Setting
	value
	field string // its name in the block
}

// assignment takes FIELD=VALUE of an attribute.
func (a *args) assignment(t *target, comparisons bool) (assignment, error) {
	s, err := a.Setting("FIELD=VALUE", comparisons)
	if err != nil {
		return assignment{}, err
	}
	return a.toAssignment(s, t)
}

func (a *args) toAssignment(s text.Setting, t *target) (assignment, error) {
	name := s.Name
	if t.Kind.PerBlock > 0 && t.block >= 0 {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 {
			block := i / t.Kind.PerBlock
			if t.block > 0 && t.block != block+1 {
				return assignment{}, a.Fault(s.Word, "entry %d is in block %d: want entries of one block in a line", i, block)
			}
			t.block = block + 1 // of the first entry, counted from 1
			t.modifier = t.Kind.Modifier(t.own(), uint16(min(block, 0xFFFF)), 0)
			name = strconv.Itoa(i % t.Kind.PerBlock)
		}
	}
	f, err := attribute.Field(reflect.ValueOf(t.Kind.New()).Elem(), name)
	if err != nil {
		return assignment{}, a.Fault(s.Word, "%s: %v", t.Kind.Name, err)
	}
	v, err := a.toValue(s, f.Type())
	return assignment{s, v, name}, err
}

// request is a Get or Set that a line sent.
type request struct {
	*stage.Request
	step   *step
	judged bool // what became of it was looked at
}

// asking is what a get or set line says.
type asking struct {
	target target
	set    bool
	blank  bool // begin with zeros
	fields []assignment
	mkey   *ib.MKey
	lid    *value // LID routed
}

func compileRequest(set bool) func(*args) (action, error) {
	return func(a *args) (action, error) {
		t, err := a.target()
		if err != nil {
			return nil, err
		}
		q := asking{target: t, set: set, blank: set && a.Keyword("blank")}
		for a.More() {
			if err := q.read(a); err != nil {
				return nil, err
			}
		}
		if set && len(q.fields) == 0 && !q.blank {
			return nil, a.Fault(text.Word{}, "want FIELD=VALUE, or blank for zeros")
		}
		if err := q.fits(a); err != nil {
			return nil, err
		}
		a.lastTarget = &q.target
		return func(w *world) error { return w.ask(q) }, nil
	}
}

// read takes one name=value of a get or set line.
func (q *asking) read(a *args) error {
	s, err := a.Setting("FIELD=VALUE, with-mkey=KEY or to-lid=LID", false)
	if err != nil {
		return err
	}
	switch {
	case s.Name == "with-mkey":
		n, err := a.ToNumber(s.Word, s.Value, s.Name, 64)
		key := ib.MKey(n)
		q.mkey = &key
		return err
	case s.Name == "to-lid":
		v, err := a.toValue(s, reflect.TypeFor[ib.LID]())
		q.lid = &v
		return err
	case !q.set:
		return a.Fault(s.Word, "%q: want with-mkey=KEY or to-lid=LID", s.Text)
	}
	f, err := a.toAssignment(s, &q.target)
	q.fields = append(q.fields, f)
	return err
}

// fits refuses values that no field can hold, before anything runs.
func (q *asking) fits(a *args) error {
	attr := q.target.Kind.New()
	var octets [mad.DataSize]byte
	for _, f := range q.fields {
		if f.late != nil {
			continue
		}
		to, err := attribute.Field(reflect.ValueOf(attr).Elem(), f.field)
		if err != nil {
			return a.Fault(f.Word, "%v", err)
		}
		f.store(nil, to)
		if err := attr.Encode(&octets); err != nil {
			return a.Fault(f.Word, "%v", err)
		}
	}
	return nil
}

// ask sends a request and waits for its answer, or for as long as one may take.
func (w *world) ask(q asking) error {
	to := q.target.end()
	attr := q.target.Kind.New()
	if q.set && !q.blank {
		w.Held(to, q.target.modifier, attr)
	}
	for _, f := range q.fields {
		at, err := attribute.Field(reflect.ValueOf(attr).Elem(), f.field)
		if err != nil {
			return err
		}
		f.store(w, at)
	}
	question := stage.Question{To: to, Modifier: q.target.modifier, MKey: w.mkey, Attribute: attr, Set: q.set}
	if q.mkey != nil {
		question.MKey = *q.mkey
	}
	if q.lid != nil {
		if question.LID = ib.LID(q.lid.now(w)); question.LID == 0 {
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
	p, err := a.place()
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
	k, err := a.kind(text.Word{}, "PKeyTable")
	return func(w *world) error { return w.writeKeys(p, k, keys) }, err
}

// writeKeys writes a table from entry 0 on and empties what is behind.
func (w *world) writeKeys(p place, k attribute.Kind, keys []ib.PKey) error {
	total := max(len(keys), len(w.Fabric.Agent(p.node.GUID).PKeys(p.exact().Num)))
	for block := 0; block*smp.PKeysPerBlock < total; block++ {
		q := asking{target: target{place: p, Kind: k, modifier: k.Modifier(p.own(), uint16(block), 0)}, set: true, blank: true}
		for i := range smp.PKeysPerBlock {
			if at := block*smp.PKeysPerBlock + i; at < len(keys) {
				q.fields = append(q.fields, assignment{value: value{number: uint64(keys[at])}, field: strconv.Itoa(i)})
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

// kind finds an attribute by its name, or by its number.
func (a *args) kind(w text.Word, name string) (attribute.Kind, error) {
	k, err := attribute.Find(name)
	if err != nil {
		err = a.Fault(w, "%v", err)
	}
	return k, err
}
