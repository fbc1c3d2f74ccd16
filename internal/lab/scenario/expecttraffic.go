package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// expectRefused is about the last verb: qp, connect or modify.
func expectRefused(*args) (action, error) {
	return func(w *world) error {
		if w.verb == nil {
			return errors.New("want a qp, connect or modify line before it")
		}
		w.verb.judged = true
		w.check(w.verb.err != nil, "refused", w.verb.outcome())
		return nil
	}, nil
}

// expectReceived takes what a queue pair has received since it was last asked.
func expectReceived(a *args) (action, error) {
	name, err := a.qp()
	if err != nil {
		return nil, err
	}
	n, err := a.Number("a number of messages", 16)
	if err != nil {
		return nil, err
	}
	k, err := a.knobs("pkey", "pkey-index", "bytes")
	return func(w *world) error { return w.expectReceived(name, int(n), k) }, err
}

func expectNothing(a *args) (action, error) {
	name, err := a.qp()
	return func(w *world) error { return w.expectReceived(name, 0, knobs{}) }, err
}

func (w *world) expectReceived(name string, n int, k knobs) error {
	q, err := w.pair(name)
	if err != nil {
		return err
	}
	got, err := q.Received()
	if err != nil {
		return err
	}
	w.check(len(got) == n, fmt.Sprintf("%d received", n), fmt.Sprintf("%d received; %s", len(got), w.DropList()))
	for _, c := range got {
		if c.Status != endpoint.Success {
			w.check(false, endpoint.Success.String(), c.Status.String())
		}
		bytes := uint64(len(c.Bytes))
		if q.Service == endpoint.UD || q.Service == endpoint.GSI || q.Service == endpoint.SMI {
			bytes -= endpoint.GRHSize
		}
		for _, x := range []struct {
			name string
			got  uint64
		}{{"pkey", uint64(c.PKey)}, {"pkey-index", uint64(c.PKeyIndex)}, {"bytes", bytes}} {
			if want, ok := k.Knobs[x.name]; ok {
				w.check(x.got == want, fmt.Sprintf("%s=%#x", x.name, want), fmt.Sprintf("%s=%#x", x.name, x.got))
			}
		}
	}
	return nil
}

// expectCompletion takes the oldest send request of a queue pair that has ended
// and that no line has taken.
func expectCompletion(a *args) (action, error) {
	name, err := a.qp()
	if err != nil {
		return nil, err
	}
	w, err := a.Next("a status")
	if err != nil {
		return nil, err
	}
	want, ok := testbed.Statuses()[w.Text]
	if !ok {
		return nil, a.Fault(w, "%q: want one of %s, in quotation marks", w.Text, AttributeKeys(testbed.Statuses()))
	}
	return func(r *world) error {
		q, err := r.pair(name)
		if err != nil {
			return err
		}
		c, some, err := q.Completed()
		got := "no completion"
		if some {
			got = c.Status.String()
		}
		r.check(some && c.Status == want, want.String(), got)
		return err
	}, nil
}

// expectQP compares a queue pair's state or attributes: state=RTS
// pkey-index=0 qkey=5.
func expectQP(a *args) (action, error) {
	name, err := a.qp()
	if err != nil {
		return nil, err
	}
	var state string
	if s, ok := strings.CutPrefix(a.Peek(), "state="); ok {
		state = s
		w, _ := a.Next("")
		if !slices.ContainsFunc([]endpoint.State{0, 1, 2, 3, 4, 5, 6}, func(x endpoint.State) bool { return x.String() == state }) {
			return nil, a.Fault(w, "state %q: want RESET, INIT, RTR, RTS, SQD, SQE or ERR", state)
		}
	}
	k, err := a.knobs("pkey-index", "qkey")
	if err == nil && state == "" && len(k.Knobs) == 0 {
		err = a.Fault(testbed.ScriptWord{}, "want state=, pkey-index= or qkey=")
	}
	return func(w *world) error {
		q, err := w.pair(name)
		if err != nil {
			return err
		}
		got, attr := q.Query()
		if state != "" {
			w.check(got.String() == state, "state="+state, "state="+got.String())
		}
		if n, ok := k.Knobs["pkey-index"]; ok {
			w.check(uint64(attr.PKeyIndex) == n, fmt.Sprintf("pkey-index=%d", n), fmt.Sprintf("pkey-index=%d", attr.PKeyIndex))
		}
		if n, ok := k.Knobs["qkey"]; ok {
			w.check(uint64(attr.QKey) == n, "qkey="+ib.QKey(n).String(), "qkey="+attr.QKey.String())
		}
		return nil
	}, err
}

var eventKinds = map[string]endpoint.EventKind{
	"pkey-change": endpoint.EventPKeyChange, "port-active": endpoint.EventPortActive, "port-error": endpoint.EventPortError,
	"lid-change": endpoint.EventLIDChange, "gid-change": endpoint.EventGIDChange, "sm-change": endpoint.EventSMChange,
	"reregister": endpoint.EventClientReregister,
}

// expectEvent looks among the events of a port that came since the last such
// line about its node, and takes them all.
func expectEvent(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	kind, err := a.Pick(strings.Split(AttributeKeys(eventKinds), ", ")...)
	return func(w *world) error {
		all, err := w.Events(p.Node.GUID)
		if err != nil {
			return err
		}
		var names []string
		some := false
		for _, e := range all {
			for name, k := range eventKinds {
				if k == e.Kind {
					names = append(names, fmt.Sprintf("%s at port %d", name, e.Port))
				}
			}
			some = some || e.Kind == eventKinds[kind] && e.Port == p.End().Port
		}
		got := "no event"
		if len(names) > 0 {
			got = strings.Join(names, ", ")
		}
		w.check(some, kind+" at "+p.String(), got)
		return nil
	}, err
}

// expectSent is about the data packets that left a port since the last send,
// forge or inject line: there is one at least, and all of them are so.
func expectSent(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	raw := a.Keyword("raw")
	k, err := a.knobs("packets", "pkey", "qkey", "sl", "vl")
	return func(w *world) error {
		at := p.Exact()
		var packets []testbed.Sent
		for _, s := range w.Sent {
			if s.Place == at {
				packets = append(packets, s)
			}
		}
		if len(packets) == 0 {
			w.fail("packets from "+p.String(), "none; "+w.DropList())
			return nil
		}
		w.hold()
		if n, ok := k.Knobs["packets"]; ok {
			w.check(uint64(len(packets)) == n, fmt.Sprintf("%d packets", n), fmt.Sprintf("%d packets", len(packets)))
		}
		for _, s := range packets {
			w.checkSent(s, raw, k)
		}
		return nil
	}, err
}

func (w *world) checkSent(s testbed.Sent, raw bool, k knobs) {
	if raw {
		w.check(!s.HasPKey, "a packet without a P_Key", "pkey="+s.PKey.String())
	}
	for _, x := range []struct {
		name string
		has  bool
		got  uint64
	}{
		{"pkey", s.HasPKey, uint64(s.PKey)}, {"qkey", s.HasQKey, uint64(s.QKey)}, {"sl", true, uint64(s.SL)}, {"vl", true, uint64(s.VL)},
	} {
		want, ok := k.Knobs[x.name]
		if !ok {
			continue
		}
		got := fmt.Sprintf("%s=%#x", x.name, x.got)
		if !x.has {
			got = "a packet without " + x.name
		}
		w.check(x.has && x.got == want, fmt.Sprintf("%s=%#x", x.name, want), got)
	}
}
