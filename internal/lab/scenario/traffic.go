package scenario

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

func trafficVerbs() []verb {
	return []verb{
		{"qp", "NAME on NODE[:PORT] service=SERVICE [pkey-index=N] [qkey=KEY] [privileged=on]", "make a queue pair", false, compileQP},
		{"connect", "QP QP", "join two queue pairs of RC, UC or RD", false, compileConnect},
		{"modify", "QP [pkey-index=N] [qkey=KEY] [privileged=on]", "change a queue pair as a program would", false, compileModify},
		{"send", "QP -> QP [via NODE:PORT] [bytes=N] [count=N] [qkey=KEY] [pkey-index=N] [sl=N] [hops=N]", "send messages and let them arrive", false, compileSend},
		{"attach", "QP MLID", "let a queue pair of UD receive what is sent to a multicast LID", false, compileAttach},
		{"multicast", "QP -> MLID [bytes=N] [count=N] [qkey=KEY] [sl=N]", "send messages to a multicast LID and let them arrive", false, compileMulticast},
		{"forge", "NODE[:PORT] -> QP pkey=KEY [qkey=KEY] [sl=N] [bytes=N]", "put a datagram with any key on the wire", false, compileForge},
		{"inject", "NODE[:PORT] BYTES", "put bytes on the wire, in hexadecimal", false, compileInject},
	}
}

// services by their names.
var services = map[string]endpoint.Service{
	"UD": endpoint.UD, "RC": endpoint.RC, "UC": endpoint.UC, "RD": endpoint.RD, "GSI": endpoint.GSI, "SMI": endpoint.SMI,
	"IPv6": endpoint.RawIPv6, "EtherType": endpoint.RawEtherType,
}

// verbCall is what a verb of a queue pair answered; a refusal that nobody asks
// about is a failure.
type verbCall struct {
	step   *step
	err    error
	judged bool
}

func (v *verbCall) outcome() string {
	if v.err == nil {
		return "accepted"
	}
	return "refused: " + v.err.Error()
}

// knobs are the name=value words of a traffic line.
type knobs struct{ testbed.Knobs }

// knobs takes the rest of a line as settings with these names.
func (a *args) knobs(names ...string) (knobs, error) {
	k, err := a.Knobs(names...)
	return knobs{k}, err
}

func (k knobs) caller() endpoint.Caller {
	if k.Knobs["privileged"] == 1 {
		return endpoint.Kernel
	}
	return endpoint.Application
}

// qkey is the Q_Key that was named, nil for none.
func (k knobs) qkey() *ib.QKey {
	n, ok := k.Knobs["qkey"]
	if !ok {
		return nil
	}
	key := ib.QKey(n)
	return &key
}

// qp takes the name of a queue pair that a line above has made.
func (a *args) qp() (string, error) {
	w, err := a.Next("a queue pair")
	if err != nil {
		return "", err
	}
	if _, made := a.qps[w.Text]; !made {
		return "", a.Fault(w, "%q: want a queue pair that a qp line above makes: %s", w.Text, AttributeKeys(a.qps))
	}
	return w.Text, nil
}

// pair is a queue pair of a run; it is not there when making it was refused.
func (w *world) pair(name string) (*testbed.QP, error) {
	if q := w.qps[name]; q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("%s was refused: want a queue pair", name)
}

func (a *args) arrow() error {
	_, err := a.Pick("->")
	return err
}

func compileQP(a *args) (action, error) {
	w, err := a.Next("a name")
	if err != nil {
		return nil, err
	}
	if _, made := a.qps[w.Text]; made {
		return nil, a.Fault(w, "%q: want a name that no other queue pair has", w.Text)
	}
	if _, err := a.Pick("on"); err != nil {
		return nil, err
	}
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	s, err := a.Setting("service=SERVICE", false)
	if err != nil {
		return nil, err
	}
	service, ok := services[s.Value]
	if !ok || s.Name != "service" {
		return nil, a.Fault(s.ScriptWord, "%q: want service= one of %s", s.Text, AttributeKeys(services))
	}
	k, err := a.knobs("pkey-index", "qkey", "privileged")
	if err != nil {
		return nil, err
	}
	a.qps[w.Text] = service
	caller := k.caller()
	if service == endpoint.SMI || service == endpoint.GSI {
		caller = endpoint.Kernel // nobody else has these
	}
	return func(r *world) error {
		q, err := r.CreateQP(p.End(), service, caller, uint16(k.Knobs["pkey-index"]), ib.QKey(k.Knobs["qkey"]))
		r.called(err)
		if err == nil {
			r.qps[w.Text] = q
		}
		return nil
	}, nil
}

// called notes what a verb answered.
func (w *world) called(err error) { w.verb = &verbCall{step: w.step, err: err} }

func compileConnect(a *args) (action, error) {
	first, err := a.qp()
	if err != nil {
		return nil, err
	}
	second, err := a.qp()
	return func(w *world) error {
		p, err := w.pair(first)
		if err != nil {
			return err
		}
		q, err := w.pair(second)
		if err != nil {
			return err
		}
		w.called(testbed.Connect(p, q))
		return nil
	}, err
}

func compileModify(a *args) (action, error) {
	name, err := a.qp()
	if err != nil {
		return nil, err
	}
	k, err := a.knobs("pkey-index", "qkey", "privileged")
	if err != nil {
		return nil, err
	}
	var index *uint16
	if n, ok := k.Knobs["pkey-index"]; ok {
		i := uint16(n)
		index = &i
	}
	if index == nil && k.qkey() == nil {
		return nil, a.Fault(testbed.ScriptWord{}, "want pkey-index= or qkey=")
	}
	return func(w *world) error {
		q, err := w.pair(name)
		if err != nil {
			return err
		}
		w.called(q.Modify(k.qkey(), index, k.caller()))
		return nil
	}, nil
}

// defaultBytes is how long a message is when nothing is said: that of a
// management datagram.
const defaultBytes = 256

// defaultHops is the hop limit of a message that goes by way of a router.
const defaultHops = 64

func compileSend(a *args) (action, error) {
	from, err := a.qp()
	if err != nil {
		return nil, err
	}
	if err := a.arrow(); err != nil {
		return nil, err
	}
	to, err := a.qp()
	if err != nil {
		return nil, err
	}
	var router *OperandPlace
	if a.Keyword("via") {
		p, err := a.Place()
		if err != nil {
			return nil, err
		}
		router = &p
	}
	words := a.Words
	k, err := a.knobs("bytes", "count", "qkey", "pkey-index", "sl", "hops")
	if err == nil {
		err = a.fitting(a.qps[from], words)
	}
	m := testbed.Message{
		Bytes: int(k.Or("bytes", defaultBytes)), Count: int(k.Or("count", 1)), QKey: k.qkey(),
		PKeyIndex: uint16(k.Knobs["pkey-index"]), SL: ib.SL(k.Knobs["sl"]),
		HopLimit: uint8(k.Or("hops", defaultHops)),
	}
	if router != nil {
		end := router.End()
		m.Via = &end
	}
	return func(w *world) error {
		p, err := w.pair(from)
		if err != nil {
			return err
		}
		q, err := w.pair(to)
		if err != nil {
			return err
		}
		return w.Send(p, q, m)
	}, err
}

// fitting refuses what the messages of a service do not have: a script that asks for it
// would show something else than it says.
func (a *args) fitting(s endpoint.Service, words []testbed.ScriptWord) error {
	for _, w := range words {
		name, _, _ := strings.Cut(w.Text, "=")
		switch {
		case name == "qkey" && s == endpoint.GSI:
			return a.Fault(w, "%q: want no qkey= from QP1, whose messages have 0x80010000 whatever is asked", w.Text)
		case name == "qkey" && s != endpoint.UD && s != endpoint.RD:
			return a.Fault(w, "%q: want no qkey= from %v: only UD, RD and QP1 send one", w.Text, s)
		case name == "pkey-index" && s != endpoint.GSI && s != endpoint.SMI:
			return a.Fault(w, "%q: want no pkey-index= but from QP1: the others have that of the queue pair", w.Text)
		}
	}
	return nil
}

func compileForge(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	if err := a.arrow(); err != nil {
		return nil, err
	}
	to, err := a.qp()
	if err != nil {
		return nil, err
	}
	k, err := a.knobs("pkey", "qkey", "sl", "bytes")
	if _, ok := k.Knobs["pkey"]; err == nil && !ok {
		err = a.Fault(testbed.ScriptWord{}, "want pkey=KEY")
	}
	return func(w *world) error {
		q, err := w.pair(to)
		if err != nil {
			return err
		}
		return w.Forge(p.Exact(), q, ib.PKey(k.Knobs["pkey"]), ib.QKey(k.Knobs["qkey"]), ib.SL(k.Knobs["sl"]), int(k.Or("bytes", defaultBytes)))
	}, err
}

func compileInject(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	w, err := a.Next("bytes in hexadecimal")
	if err != nil {
		return nil, err
	}
	bytes, err := hex.DecodeString(w.Text)
	if err != nil || len(bytes) == 0 {
		return nil, a.Fault(w, "want pairs of hexadecimal digits without 0x")
	}
	return func(r *world) error { return r.Inject(p.End(), bytes) }, nil
}
