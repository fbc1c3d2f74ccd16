package scenario

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

func happeningVerbs() []verb {
	return []verb{
		{"advance", "TIME", "let time pass", false, compileAdvance},
		{"run", "", "let time pass until nothing is left to happen", false, compileRun},
		{"link", "NODE:PORT NODE:PORT", "lay a cable between two free ports", false, compileLink},
		{"unlink", "NODE:PORT", "pull the cable at a port", false, compileUnlink},
		{"swap", "NODE:PORT NODE:PORT", "exchange the far ends of two cables", false, compileSwap},
		{"flap", "NODE:PORT [TIME]", "pull a cable and lay it again after a time, 1ms when none is said", false, compileFlap},
		{"power", "on|off NODE", "give or take a node's power", false, compilePower},
		{"reboot", "NODE", "take a node's power and give it back at once", false, compileReboot},
		{"fault", "NODE mute | late=TIME | loss=SHARE | loss=SHARE,ATTRIBUTE | none", "let a node misbehave from now on", false, compileFault},
		{"lie", "NODE[:PORT] ATTRIBUTE[modifier] FIELD=VALUE...", "a node's answers say this from now on, whatever it holds, until fault NODE none", false, compileLie},
		{"withhold", "on|off NODE:PORT", "a port gives no credits for what it receives: packets to it wait", false, compileWithhold},
		{"reckless", "on|off NODE:PORT", "a port sends without asking for credits: what finds no room there is lost", false, compileReckless},
		{"noise", "NODE:PORT none | [flips=SHARE] [loss=SHARE] [delay=TIME]", "the link changes, loses or delays packets that leave by a port", false, compileNoise},
		{"spoil", "on|off NODE", "a switch passes on what it refuses for its P_Key, spoiled on purpose", false, compileSpoil},
		{"diag", "NODE[:PORT] CODE", "give a port another DiagCode: with self-test (1), initializing (2) or hard failure (4) it carries no data", false, compileDiag},
		{"vendordiag", "NODE[:PORT] INDEX FIELD=VALUE...", "put a block of VendorDiag into a port", false, compileVendorDiag},
		{"forget", "", "forget the traps, drops and requests seen so far", false, compileForget},
	}
}

func compileAdvance(a *args) (action, error) {
	d, err := a.Duration("a time")
	return func(w *world) error { return w.Advance(d) }, err
}

func compileRun(*args) (action, error) {
	return func(w *world) error { return w.Rest() }, nil
}

func compileLink(a *args) (action, error) {
	p, err := a.External()
	if err != nil {
		return nil, err
	}
	q, err := a.External()
	return func(w *world) error { return w.Fabric.Link(p.Node.GUID, p.Num, q.Node.GUID, q.Num) }, err
}

func compileUnlink(a *args) (action, error) {
	p, err := a.External()
	return func(w *world) error { return w.Fabric.Unlink(p.Node.GUID, p.Num) }, err
}

// far is the other end of the cable at a port.
func (w *world) far(p OperandPlace) (observed.Place, error) {
	node, port, ok := w.Fabric.Peer(p.Node.GUID, p.Num)
	if !ok {
		return observed.Place{}, fmt.Errorf("%v has no cable", p)
	}
	return observed.Place{Node: node, Port: port}, nil
}

func compileSwap(a *args) (action, error) {
	p, err := a.External()
	if err != nil {
		return nil, err
	}
	q, err := a.External()
	return func(w *world) error {
		farP, err := w.far(p)
		if err != nil {
			return err
		}
		farQ, err := w.far(q)
		if err != nil {
			return err
		}
		if farP == q.Exact() {
			return fmt.Errorf("%v and %v are the two ends of one cable", p, q)
		}
		for _, x := range []OperandPlace{p, q} {
			if err := w.Fabric.Unlink(x.Node.GUID, x.Num); err != nil {
				return err
			}
		}
		if err := w.Fabric.Link(p.Node.GUID, p.Num, farQ.Node, farQ.Port); err != nil {
			return err
		}
		return w.Fabric.Link(q.Node.GUID, q.Num, farP.Node, farP.Port)
	}, err
}

func compileFlap(a *args) (action, error) {
	p, err := a.External()
	if err != nil {
		return nil, err
	}
	down := time.Millisecond
	if a.More() {
		if down, err = a.Duration("a time"); err != nil {
			return nil, err
		}
	}
	return func(w *world) error {
		far, err := w.far(p)
		if err != nil {
			return err
		}
		if err := w.Fabric.Unlink(p.Node.GUID, p.Num); err != nil {
			return err
		}
		if err := w.Advance(down); err != nil {
			return err
		}
		return w.Fabric.Link(p.Node.GUID, p.Num, far.Node, far.Port)
	}, nil
}

func compilePower(a *args) (action, error) {
	state, err := a.Pick("on", "off")
	if err != nil {
		return nil, err
	}
	n, err := a.Node()
	return func(w *world) error {
		if state == "off" {
			return w.PowerOff(n.GUID)
		}
		return w.PowerOn(n.GUID)
	}, err
}

func compileReboot(a *args) (action, error) {
	n, err := a.Node()
	return func(w *world) error { return w.Reboot(n.GUID) }, err
}

// compileFault reads a fault. Faults of one node add up until none ends them.
func compileFault(a *args) (action, error) {
	n, err := a.Node()
	if err != nil {
		return nil, err
	}
	if a.Keyword("none") {
		return func(w *world) error { return w.Misbehave(n.GUID, nil) }, nil
	}
	if a.Keyword("mute") {
		return func(w *world) error {
			return w.Misbehave(n.GUID, func(f *fabric.Fault) { f.Mute = true })
		}, nil
	}
	s, err := a.Setting("mute, late=TIME, loss=SHARE or none", false)
	if err != nil {
		return nil, err
	}
	switch s.Name {
	case "late":
		d, err := a.ToDuration(s.ScriptWord, s.Value, s.Name)
		return func(w *world) error {
			return w.Misbehave(n.GUID, func(f *fabric.Fault) { f.Late = d })
		}, err
	case "loss":
		l, err := a.toLoss(s)
		return func(w *world) error {
			return w.Misbehave(n.GUID, func(f *fabric.Fault) { f.Drop = l.of(w) })
		}, err
	}
	return nil, a.Fault(s.ScriptWord, "%q: want mute, late=TIME, loss=SHARE or none", s.Name)
}

// loss is a share of the packets that arrive, of one attribute or of all.
type loss struct {
	share float64
	id    mad.AttributeID
	all   bool
}

func (a *args) toLoss(s testbed.ScriptSetting) (loss, error) {
	l := loss{all: true}
	for i, c := range s.Value {
		if c != ',' {
			continue
		}
		k, err := a.Kind(s.ScriptWord, s.Value[i+1:])
		if err != nil {
			return l, err
		}
		l.id, l.all = k.New().ID(), false
		s.Value = s.Value[:i]
		break
	}
	var err error
	l.share, err = a.ToShare(s.ScriptWord, s.Value, s.Name)
	return l, err
}

// of makes the hook that loses packets; its chance comes from the seed.
func (l loss) of(w *world) func(time.Duration, ib.PortNum, *[mad.Size]byte) bool {
	w.faults++
	random := rand.New(rand.NewPCG(w.script.setup.Fabric.Seed, w.faults))
	return func(_ time.Duration, _ ib.PortNum, m *[mad.Size]byte) bool {
		var h mad.Header
		if err := h.UnmarshalBinary(m[:]); err != nil || !l.all && h.AttributeID != l.id {
			return false
		}
		return random.Float64() < l.share
	}
}

// compileLie reads what a node's answers shall say.
func compileLie(a *args) (action, error) {
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	q := asking{target: t, set: true}
	for a.More() {
		f, err := a.Assignment(&q.target, false)
		if err != nil {
			return nil, err
		}
		q.fields = append(q.fields, f)
	}
	if len(q.fields) == 0 {
		return nil, a.Fault(testbed.ScriptWord{}, "want FIELD=VALUE: what it says that is not so")
	}
	return func(w *world) error { return w.lie(q) }, a.Fits(q.target, q.fields)
}

// lie changes the answers of a node that are about one attribute.
func (w *world) lie(q asking) error {
	attr := q.target.AttributeKind.New()
	return w.Lie(q.target.Node.GUID, attr.ID(), q.target.Modifier, func(data *[mad.DataSize]byte) {
		if attr.UnmarshalBinary(data[:]) != nil {
			return
		}
		for _, f := range q.fields {
			if at, err := AttributeField(reflect.ValueOf(attr).Elem(), f.Field); err == nil {
				f.Store(w.Testbed, at)
			}
		}
		_ = attr.Encode(data) // it was checked that the values fit
	})
}

func compileWithhold(a *args) (action, error) {
	state, err := a.Pick("on", "off")
	if err != nil {
		return nil, err
	}
	p, err := a.External()
	return func(w *world) error { return w.Fabric.Withhold(p.Node.GUID, p.Num, state == "on") }, err
}

func compileSpoil(a *args) (action, error) {
	state, err := a.Pick("on", "off")
	if err != nil {
		return nil, err
	}
	n, err := a.Node()
	if err == nil && n.Type == ib.NodeCA {
		err = a.Fault(a.Line.Words[2], "%s: want a switch or router", n.ID)
	}
	return func(w *world) error { return w.Fabric.SetSpoiling(n.GUID, state == "on") }, err
}

func compileForget(*args) (action, error) {
	return func(w *world) error { w.Forget(); return nil }, nil
}
