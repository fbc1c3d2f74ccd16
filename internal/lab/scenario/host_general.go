// host*.go: implements the statements of a scenario for root on a host: change the
// tables and answers of the host's own device, send traps, pose as a subnet manager,
// and query QP1 of other hosts. It turns statements into actions on a testbed.

package scenario

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

// HostReply is the result of a request to a queue pair 1.
type HostReply struct {
	*testbed.Answer
	// Silent reports whether no answer was wanted.
	Silent bool
	// records are those of a good answer.
	records []Record
}

// Good reports whether there was an answer without fault.
func (r *HostReply) Good() bool { return r.Answered && r.Status == mad.StatusOK }

// Outcome describes the result of a request, in the words of scripts.
func (r *HostReply) Outcome() string {
	return (&testbed.Request{Answered: r.Answered, Status: r.Status}).Outcome()
}

// HostRequest is what an sa or pm line says.
type HostRequest struct {
	from     OperandPlace
	method   mad.Method
	fields   []Assignment
	gids     [2][]OperandPlace // of MultiPathRecord: sources, destinations
	toLID    *Datum
	fromLID  *Datum
	key      ib.SMKey
	index    uint16
	pathBits uint8
	part     bool
	silent   bool
	fresh    func() Record // a record as the request has
	answered func() Record // and as the answer has
	head     func() ([rmpp.HeadSize]byte, error)
	mask     sa.ComponentMask
	counters bool                  // performance management
	pageSize func(head []byte) int // length of a record in a table, 0 for a single one
}

var saMethods = map[string]mad.Method{
	"get": mad.MethodGet, "gettable": mad.MethodGetTable, "set": mad.MethodSet, "delete": mad.MethodDelete, "getmulti": mad.MethodGetMulti,
}

// option takes a name=value word that is no field, and reports whether it was
// one.
func (g *HostRequest) option(a *Operands, s testbed.ScriptSetting) (is bool, err error) {
	var n uint64
	switch s.Name {
	case "to-lid", "from-lid":
		v, err := a.ToDatum(s, reflect.TypeFor[ib.LID]())
		if s.Name == "to-lid" {
			g.toLID = &v
		} else {
			g.fromLID = &v
		}
		return true, err
	case "sa-key":
		n, err = a.ToNumber(s.ScriptWord, s.Value, s.Name, 64)
		g.key = ib.SMKey(n)
	case "pkey-index":
		n, err = a.ToNumber(s.ScriptWord, s.Value, s.Name, 16)
		g.index = uint16(n)
	case "path-bits":
		n, err = a.ToNumber(s.ScriptWord, s.Value, s.Name, 7)
		g.pathBits = uint8(n)
	case "first-segment":
		g.part, err = a.ToOnOff(s.ScriptWord, s.Value, s.Name)
		g.silent = g.silent || g.part
	case "silent":
		g.silent, err = a.ToOnOff(s.ScriptWord, s.Value, s.Name)
	default:
		return false, nil
	}
	return true, err
}

// HostPlaces reads a list of nodes.
func HostPlaces(a *Operands, s testbed.ScriptSetting) (out []OperandPlace, err error) {
	for _, name := range strings.Split(s.Value, ",") {
		p, err := a.ToPlace(s.ScriptWord, name)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// read takes the name=value words of a line; component is nil where there is no
// component mask.
func (g *HostRequest) read(a *Operands, component func(string) (sa.ComponentMask, bool)) error {
	for a.More() {
		s, err := a.Setting("FIELD=VALUE", false)
		if err != nil {
			return err
		}
		if is, err := g.option(a, s); is || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if i := strings.Index("SD", strings.TrimSuffix(s.Name, "GIDs")); i >= 0 && strings.HasSuffix(s.Name, "GIDs") {
			if g.gids[i], err = HostPlaces(a, s); err != nil {
				return err
			}
		} else {
			at, err := AttributeField(reflect.ValueOf(g.fresh()).Elem(), s.Name)
			if err != nil {
				return a.Fault(s.ScriptWord, "%v", err)
			}
			v, err := a.ToDatum(s, at.Type())
			if err != nil {
				return err
			}
			g.fields = append(g.fields, Assignment{ScriptSetting: s, Datum: v, Field: s.Name})
		}
		if component == nil {
			continue
		}
		bit, ok := component(s.Name)
		if !ok {
			return a.Fault(s.ScriptWord, "%q: want a field that a query can be about", s.Name)
		}
		g.mask |= bit
	}
	g.answered = g.fresh
	return nil
}

// SA reads what follows the word.
func SA(a *Operands) (*HostRequest, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	name, err := a.Pick(strings.Split(AttributeKeys(saMethods), ", ")...)
	if err != nil {
		return nil, err
	}
	w, err := a.Next("a record")
	if err != nil {
		return nil, err
	}
	k, err := FindRecord(w.Text)
	if err != nil {
		return nil, a.Fault(w, "%v", err)
	}
	g := &HostRequest{from: p, method: saMethods[name], fresh: func() Record { return k.New() }}
	component := k.Component
	if k.Name == "InformInfo" {
		component = nil
	}
	if err := g.read(a, component); err != nil {
		return nil, err
	}
	if g.method == mad.MethodGetMulti {
		g.answered = func() Record { return new(sa.PathRecord) }
	}
	g.pageSize = func(head []byte) int { return int(binary.BigEndian.Uint16(head[44:])) * 8 }
	head := mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion, Method: g.method, AttributeID: k.New().ID(),
	}
	g.head = func() (out [rmpp.HeadSize]byte, err error) {
		m := sa.MAD{Header: head, SMKey: g.key, ComponentMask: g.mask}
		bytes, err := m.AppendBinary(nil)
		copy(out[:], bytes)
		return out, err
	}
	return g, nil
}

// PM reads what follows the word.
func PM(a *Operands) (*HostRequest, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	name, err := a.Pick("get", "set")
	if err != nil {
		return nil, err
	}
	w, err := a.Next("counters")
	if err != nil {
		return nil, err
	}
	fresh, err := FindCounters(w.Text)
	if err != nil {
		return nil, a.Fault(w, "%v", err)
	}
	g := &HostRequest{from: p, method: saMethods[name], fresh: func() Record { return fresh() }, counters: true, pageSize: func([]byte) int { return 0 }}
	if err := g.read(a, nil); err != nil {
		return nil, err
	}
	if g.toLID == nil {
		return nil, a.Fault(testbed.ScriptWord{}, "want to-lid=LID")
	}
	head := mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion, Method: g.method, AttributeID: fresh().ID(),
	}
	g.head = func() (out [rmpp.HeadSize]byte, err error) {
		m := pm.MAD{Header: head}
		bytes, err := m.AppendBinary(nil)
		copy(out[:], bytes)
		return out, err
	}
	return g, nil
}

// record is the record that a line says, in bytes.
func (g *HostRequest) record(w *testbed.Testbed) ([]byte, error) {
	r := g.fresh()
	for _, f := range g.fields {
		at, err := AttributeField(reflect.ValueOf(r).Elem(), f.Field)
		if err != nil {
			return nil, err
		}
		f.Store(w, at)
	}
	if many, ok := r.(*sa.MultiPathRecord); ok {
		for _, p := range g.gids[0] {
			many.SGIDs = append(many.SGIDs, p.GID(w))
		}
		for _, p := range g.gids[1] {
			many.DGIDs = append(many.DGIDs, p.GID(w))
		}
	}
	bytes, err := r.AppendBinary(nil)
	if g.part && len(bytes) <= rmpp.SegmentSize {
		bytes = append(bytes, make([]byte, rmpp.SegmentSize)...) // so that more would have to follow
	}
	return bytes, err
}

// Send sends the request and waits for its answer.
func (g *HostRequest) Send(w *testbed.Testbed) (*HostReply, error) {
	body, err := g.record(w)
	if err != nil {
		return nil, err
	}
	head, err := g.head()
	if err != nil {
		return nil, err
	}
	if g.counters {
		body = append(make([]byte, pm.DataOffset-rmpp.HeadSize), body...)
	}
	q := testbed.General{From: g.from.End(), PKeyIndex: g.index, PathBits: g.pathBits, Head: head, Body: body, Part: g.part, Silent: g.silent}
	if g.toLID != nil {
		q.To = ib.LID(g.toLID.Now(w))
	}
	if g.fromLID != nil {
		q.SLID = ib.LID(g.fromLID.Now(w))
	}
	answer, err := w.AskGeneral(q)
	if err != nil {
		return nil, err
	}
	r := &HostReply{Answer: answer, Silent: g.silent}
	if r.Good() {
		g.readRecords(r)
	}
	return r, nil
}

// readRecords reads the records of an answer.
func (g *HostRequest) readRecords(r *HostReply) {
	rest, size := r.Body, g.pageSize(r.Head[:])
	if size == 0 || mad.Method(r.Head[3]) == mad.MethodGetResp {
		size = len(rest)
	}
	if g.counters {
		rest = rest[pm.DataOffset-rmpp.HeadSize:]
		size = len(rest)
	}
	for ; len(rest) >= size && size > 0; rest = rest[size:] {
		x := g.answered()
		if x.UnmarshalBinary(rest[:size]) == nil {
			r.records = append(r.records, x)
		}
	}
}

// JudgeHost is an expectation of a reply.
type JudgeHost func(*testbed.Testbed, *HostReply) (holds bool, expected, got string)

// Expect reads an expectation of the answer to this request.
func (g *HostRequest) Expect(a *Operands) (JudgeHost, error) {
	what, err := a.Pick("status", "none", "records", "record")
	if err != nil {
		return nil, err
	}
	switch what {
	case "none":
		return func(_ *testbed.Testbed, r *HostReply) (bool, string, string) {
			return !r.Answered, "no answer", r.Outcome()
		}, nil
	case "records":
		return countRecords(a)
	case "record":
		return g.someRecord(a)
	}
	want := mad.StatusOK
	if !a.Keyword("ok") {
		n, err := a.Number("status", 16)
		if err != nil {
			return nil, err
		}
		want = mad.Status(n)
	}
	return func(_ *testbed.Testbed, r *HostReply) (bool, string, string) {
		return r.Answered && r.Status == want, (&testbed.Request{Answered: true, Status: want}).Outcome(), r.Outcome()
	}, nil
}

func countRecords(a *Operands) (JudgeHost, error) {
	some := a.Keyword("some")
	var want uint64
	var err error
	if !some {
		want, err = a.Number("number of records, or some", 32)
	}
	return func(_ *testbed.Testbed, r *HostReply) (bool, string, string) {
		n := len(r.records)
		return some && n > 0 || !some && uint64(n) == want, fmt.Sprintf("%d records", want), fmt.Sprintf("%d records; %s", n, r.Outcome())
	}, err
}

// someRecord is about one record of an answer that has all these fields.
func (g *HostRequest) someRecord(a *Operands) (JudgeHost, error) {
	var fields []Assignment
	var words []string
	for first := true; first || a.More(); first = false {
		s, err := a.Setting("FIELD=VALUE", true)
		if err != nil {
			return nil, err
		}
		at, err := AttributeField(reflect.ValueOf(g.answered()).Elem(), s.Name)
		if err != nil {
			return nil, a.Fault(s.ScriptWord, "%v", err)
		}
		v, err := a.ToDatum(s, at.Type())
		if err != nil {
			return nil, err
		}
		fields = append(fields, Assignment{ScriptSetting: s, Datum: v, Field: s.Name})
		words = append(words, s.Text)
	}
	return func(w *testbed.Testbed, r *HostReply) (bool, string, string) {
		got := r.Outcome()
		for _, x := range r.records {
			all := true
			for _, f := range fields {
				at, err := AttributeField(reflect.ValueOf(x).Elem(), f.Field)
				if all = all && err == nil && f.Compare(w, f.Relation, at); err == nil && len(r.records) == 1 {
					got = f.Name + "=" + ShowAttribute(at)
				}
			}
			if all {
				return true, "", ""
			}
		}
		return false, "a record with " + strings.Join(words, " "), fmt.Sprintf("%d records; %s", len(r.records), got)
	}, nil
}
