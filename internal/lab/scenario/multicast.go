package scenario

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

// multicastLID takes the LID of a group.
func (a *args) multicastLID() (ib.LID, error) {
	w, err := a.Next("a multicast LID")
	if err != nil {
		return 0, err
	}
	n, err := a.ToNumber(w, w.Text, "LID", 16)
	if lid := ib.LID(n); err == nil && !lid.IsMulticast() {
		return 0, a.Fault(w, "%q: want a multicast LID, 0xC000 to 0xFFFE", w.Text)
	}
	return ib.LID(n), err
}

func compileAttach(a *args) (action, error) {
	name, err := a.qp()
	if err != nil {
		return nil, err
	}
	lid, err := a.multicastLID()
	return func(w *world) error {
		q, err := w.pair(name)
		if err != nil {
			return err
		}
		w.called(q.Attach(lid))
		return nil
	}, err
}

func compileMulticast(a *args) (action, error) {
	from, err := a.qp()
	if err != nil {
		return nil, err
	}
	if err := a.arrow(); err != nil {
		return nil, err
	}
	lid, err := a.multicastLID()
	if err != nil {
		return nil, err
	}
	k, err := a.knobs("bytes", "count", "qkey", "sl")
	m := testbed.Message{
		Bytes: int(k.Or("bytes", defaultBytes)), Count: int(k.Or("count", 1)), QKey: k.qkey(),
		SL: ib.SL(k.Knobs["sl"]), HopLimit: defaultHops,
	}
	return func(w *world) error {
		q, err := w.pair(from)
		if err != nil {
			return err
		}
		return w.Multicast(q, lid, m)
	}, err
}
