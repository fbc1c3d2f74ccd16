package verbsd

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/verbs"
)

// waiting is a call that may wait: try is called until it reports true or an
// error, and give, if it is not nil, when the time is over.
type waiting struct {
	try  func(*session, *verbs.Answer) (done bool, err error)
	give func(*session) error
}

// waits are the calls that may wait.
var waits = map[verbs.Call]func(*session, *verbs.Request) (*waiting, error){
	verbs.CallPoll:      (*session).poll,
	verbs.CallNextEvent: (*session).nextEvent,
	verbs.CallJoin:      (*session).join,
	verbs.CallLeave:     (*session).join,
}

func (s *session) poll(r *verbs.Request) (*waiting, error) {
	if r.Count < 1 {
		return nil, fmt.Errorf("poll for %d completions, want 1 or more: %w", r.Count, verbs.ErrRequest)
	}
	most := min(r.Count, maxPolled)
	return &waiting{try: func(s *session, a *verbs.Answer) (bool, error) {
		q, err := what("completion queue", s.cqs, r.Object)
		if err != nil {
			return false, err
		}
		n, bytes := 0, 0
		for n < min(most, len(q.done)) {
			c := &q.done[n]
			if bytes += len(c.wc.Data) + len(c.wc.GRH); n > 0 && bytes > verbs.MaxMessage {
				break
			}
			a.WCs = append(a.WCs, c.wc)
			s.bytes -= c.bytes
			n++
		}
		rest := copy(q.done, q.done[n:])
		clear(q.done[rest:])
		q.done = q.done[:rest]
		s.pump() // what waited for room
		return n > 0, nil
	}}, nil
}

func (s *session) nextEvent(*verbs.Request) (*waiting, error) {
	return &waiting{try: func(s *session, a *verbs.Answer) (bool, error) {
		if len(s.events) == 0 {
			return false, nil
		}
		e := s.events[0]
		a.Event = &e
		s.events = s.events[1:]
		return true, nil
	}}, nil
}
