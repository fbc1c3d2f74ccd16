package transact

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

func limits() Limits {
	return Limits{
		Window: 32, Tries: 4, FirstTimeout: 100 * time.Millisecond,
		MinTimeout: time.Microsecond, MaxTimeout: time.Second,
	}
}

// A probe is sent once, whatever is lost, and that nobody answers it narrows the window for no other.
func TestProbesAreSentOnce(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		w := NewWindow(limits())
		if lossy {
			w.loss = 0.5
		}
		open, loss, failed := w.open, w.loss, 0
		for range firstWindow {
			w.Do(Request{Path: mad.Path{1}, Method: mad.MethodGet, Attribute: 0x11, Respond: 300 * time.Millisecond, Probe: true}, func(r Reply) {
				if !errors.Is(r.Err, ErrNoAnswer) {
					t.Errorf("ended with %v", r.Err)
				}
				failed++
			})
		}
		sent := drain(w, 0)
		if len(sent) != firstWindow {
			t.Fatalf("%d packets for %d probes", len(sent), firstWindow)
		}
		// The agent may take so long, and this try is the last.
		if wait := w.LastWait(&sent[0]); wait != 400*time.Millisecond {
			t.Errorf("a probe waits %v, want %v", wait, 400*time.Millisecond)
		}
		w.Expire(400*time.Millisecond - 1)
		if failed != 0 {
			t.Errorf("%d given up before the agent has to have answered", failed)
		}
		w.Expire(400 * time.Millisecond)
		if failed != firstWindow || len(drain(w, time.Second)) != 0 || !w.Idle() {
			t.Errorf("%d of %d ended, idle %v", failed, firstWindow, w.Idle())
		}
		if w.open != open || w.loss != loss {
			t.Errorf("the window went from %v to %v, the loss from %v to %v", open, w.open, loss, w.loss)
		}
	}
}

// drain takes every packet that may go out now.
func drain(w *Window, now time.Duration) []mad.SMP {
	var out []mad.SMP
	var p mad.SMP
	for w.Next(now, &p) {
		out = append(out, p)
	}
	return out
}

func TestRequestsEndOnceWithTheirAnswer(t *testing.T) {
	w := NewWindow(limits())
	ended := map[uint32]int{}
	for i := range uint32(100) {
		w.Do(Request{Path: mad.Path{1, 2}, Method: mad.MethodGet, Attribute: 0x15, Modifier: i}, func(r Reply) {
			if r.Err != nil || r.SMP.AttributeModifier != i {
				t.Errorf("request %d: err %v, answer %+v", i, r.Err, r.SMP)
			}
			ended[i]++
		})
	}
	now := time.Duration(0)
	for !w.Idle() {
		sent := drain(w, now)
		if len(sent) == 0 {
			t.Fatal("nothing to send, not idle")
		}
		now += 10 * time.Microsecond
		for _, p := range sent {
			if p.HopCount != 2 || p.InitialPath[1] != 1 || p.InitialPath[2] != 2 || p.Class != mad.ClassSubnDirected {
				t.Fatalf("bad directed route: %+v", p)
			}
			p.MakeResponse(mad.StatusOK)
			w.Receive(now, &p)
			if w.Receive(now, &p) {
				t.Fatal("the same answer was taken twice")
			}
		}
	}
	for i := range uint32(100) {
		if ended[i] != 1 {
			t.Errorf("request %d ended %d times", i, ended[i])
		}
	}
	if c := w.Counts(); c.Answered != 100 || c.Unmatched != 100 || c.Retried != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestUnansweredRequestIsRetriedWithBackoffThenFails(t *testing.T) {
	l := limits()
	l.Tries = 6
	w := NewWindow(l)
	var got error
	w.Do(Request{LID: 7, Method: mad.MethodSet, Once: true}, func(r Reply) { got = r.Err })
	var sentAt []time.Duration
	now := time.Duration(0)
	for !w.Idle() {
		for _, p := range drain(w, now) {
			if w.LIDOf(&p) != 7 || p.Class != mad.ClassSubnLID {
				t.Fatalf("sent %+v", p)
			}
			sentAt = append(sentAt, now)
		}
		due, ok := w.Deadline()
		if !ok {
			t.Fatal("no deadline with a request outstanding")
		}
		now = due
		w.Expire(now)
	}
	if !errors.Is(got, ErrNoAnswer) {
		t.Fatalf("ended with %v", got)
	}
	if len(sentAt) != 6 {
		t.Fatalf("sent %d times, want 6", len(sentAt))
	}
	for i := 2; i < len(sentAt); i++ {
		was, is := sentAt[i-1]-sentAt[i-2], sentAt[i]-sentAt[i-1]
		if i < patience && is != was || i > patience && is <= was {
			t.Errorf("try %d came %v after the last, that one %v after its own: sent at %v", i+1, is, was, sentAt)
		}
	}
}

// TestCopiesWhileAnswersAreLost: once answers are overdue, what may be repeated
// goes out twice at the end of a phase, and what may not does not.
func TestCopiesWhileAnswersAreLost(t *testing.T) {
	w := NewWindow(limits())
	w.Do(Request{Method: mad.MethodGet, Modifier: 1}, func(Reply) {})
	if n := len(drain(w, 0)); n != 1 {
		t.Fatalf("sent %d times with nothing lost yet", n)
	}
	due, _ := w.Deadline()
	w.Expire(due)
	w.Do(Request{Method: mad.MethodGet, Modifier: 2}, func(Reply) {})
	w.Do(Request{Method: mad.MethodSet, Modifier: 3, Once: true}, func(Reply) {})
	copies := map[uint32]int{}
	for _, p := range drain(w, due) {
		copies[p.AttributeModifier]++
	}
	if copies[1] != 1+extraCopies || copies[2] != 1+extraCopies || copies[3] != 1 {
		t.Errorf("copies by modifier %v", copies)
	}
	if w.Counts().Extra != 2*extraCopies {
		t.Errorf("counts %+v", w.Counts())
	}
}

func TestLateAnswerEndsARequestThatWaitsToBeSentAgain(t *testing.T) {
	w := NewWindow(limits())
	ends := 0
	w.Do(Request{Method: mad.MethodGet}, func(r Reply) {
		if r.Err != nil {
			t.Error(r.Err)
		}
		ends++
	})
	first := drain(w, 0)[0]
	due, _ := w.Deadline()
	w.Expire(due)
	first.MakeResponse(mad.StatusOK)
	w.Receive(due, &first)
	if ends != 1 || len(drain(w, due)) != 0 || !w.Idle() {
		t.Fatalf("ended %d times, idle %v", ends, w.Idle())
	}
}

func TestStatusAndBusy(t *testing.T) {
	w := NewWindow(limits())
	var got error
	w.Do(Request{Method: mad.MethodSet}, func(r Reply) { got = r.Err })
	p := drain(w, 0)[0]
	busy := p
	busy.MakeResponse(mad.StatusBusy)
	if !w.Receive(1, &busy) || w.Idle() {
		t.Fatal("a busy agent's answer ended the request")
	}
	p.MakeResponse(mad.StatusInvalidField)
	w.Receive(2, &p)
	var status StatusError
	if !errors.As(got, &status) || status.Status != mad.StatusInvalidField {
		t.Fatalf("ended with %v", got)
	}
}

func TestForeignAnswersAreIgnored(t *testing.T) {
	w := NewWindow(limits())
	w.Do(Request{Method: mad.MethodGet, Attribute: 0x11}, func(Reply) { t.Error("ended by a foreign answer") })
	p := drain(w, 0)[0]
	p.MakeResponse(mad.StatusOK)
	for name, change := range map[string]func(*mad.SMP){
		"transaction":    func(p *mad.SMP) { p.TransactionID++ },
		"no transaction": func(p *mad.SMP) { p.TransactionID = 0 },
		"attribute":      func(p *mad.SMP) { p.AttributeID++ },
		"modifier":       func(p *mad.SMP) { p.AttributeModifier++ },
	} {
		q := p
		change(&q)
		if w.Receive(1, &q) {
			t.Errorf("%s: taken", name)
		}
	}
}

// Transaction identifiers follow from the seed alone, are different while under
// way, and give no hint of the next one: no step between two comes again, and
// every bit is as often set as not.
func TestTransactionIDsCannotBeGuessed(t *testing.T) {
	const n = 4000
	draw := func(seed byte) (ids []uint64) {
		l := limits()
		l.Window = n
		w := NewWindow(l)
		w.open = n
		w.Seed([32]byte{seed})
		for range n {
			w.Do(Request{Method: mad.MethodGet}, func(Reply) {})
		}
		for _, p := range drain(w, 0) {
			ids = append(ids, p.TransactionID)
		}
		return ids
	}
	a, again, b := draw(1), draw(1), draw(2)
	if len(a) != n || !slices.Equal(a, again) {
		t.Fatalf("%d ids, the same again: %v", len(a), slices.Equal(a, again))
	}
	seen, steps, bits := map[uint64]bool{}, map[uint32]int{}, [64]int{}
	for i, id := range a {
		if id == 0 || id>>32 != 0 || seen[id] || id == b[i] {
			t.Fatalf("id %d is 0x%x", i, id)
		}
		seen[id] = true
		if i > 0 {
			steps[uint32(id-a[i-1])]++
		}
		for bit := range bits {
			bits[bit] += int(id >> bit & 1)
		}
	}
	for step, times := range steps {
		if times > 2 {
			t.Errorf("step 0x%x came %d times", step, times)
		}
	}
	for bit, set := range bits[:32] {
		if set < n/2-n/8 || set > n/2+n/8 { // 16 standard deviations
			t.Errorf("bit %d is set in %d of %d", bit, set, n)
		}
	}
}

// TestLastTryWaitsForTheAgent: PI-114, an answer that comes as late as the agent
// says it may is still taken, and nobody is waited for longer than RespondMax.
func TestLastTryWaitsForTheAgent(t *testing.T) {
	for _, c := range []struct{ respond, want time.Duration }{
		{0, 200 * time.Millisecond}, {10 * time.Millisecond, 200 * time.Millisecond},
		{2 * time.Second, 2*time.Second + 100*time.Millisecond}, {time.Hour, RespondMax + 100*time.Millisecond},
	} {
		w := NewWindow(limits())
		var got []error
		w.Do(Request{Method: mad.MethodGet, Respond: c.respond}, func(r Reply) { got = append(got, r.Err) })
		now := time.Duration(0)
		var p mad.SMP
		for try := 1; w.Next(now, &p); try++ {
			if wait := w.LastWait(&p); try == limits().Tries {
				if wait != c.want {
					t.Errorf("an agent that takes %v: the last try waits %v, want %v", c.respond, wait, c.want)
				}
				now += wait - 1
				w.Expire(now)
				if len(got) != 0 {
					t.Fatalf("given up early: %v", got)
				}
				answer := p
				answer.MakeResponse(mad.StatusOK)
				w.Receive(now, &answer)
			} else {
				due, _ := w.Deadline()
				if wait != 0 || due-now > 200*time.Millisecond {
					t.Errorf("try %d waits %v, the last one %v", try, due-now, wait)
				}
				now = due
				w.Expire(now)
			}
		}
		if len(got) != 1 || got[0] != nil {
			t.Errorf("an agent that takes %v: ended with %v", c.respond, got)
		}
	}
}

// TestWindowAdapts drives a window over a lossy line with a fixed delay and
// looks at how wide it opens.
func TestWindowAdapts(t *testing.T) {
	const seed = 7
	widest := func(loss float64) (most int) {
		rng := rand.New(rand.NewPCG(seed, 0))
		w := NewWindow(limits())
		left := 2000
		for range left {
			w.Do(Request{Method: mad.MethodGet}, func(r Reply) {
				if r.Err == nil {
					left--
				}
			})
		}
		type arrival struct {
			at time.Duration
			p  mad.SMP
		}
		var line []arrival
		now := time.Duration(0)
		for !w.Idle() {
			for _, p := range drain(w, now) {
				if rng.Float64() >= loss {
					line = append(line, arrival{now + 20*time.Microsecond, p})
				}
			}
			most = max(most, w.flying)
			now += time.Microsecond
			for len(line) > 0 && line[0].at <= now {
				line[0].p.MakeResponse(mad.StatusOK)
				w.Receive(now, &line[0].p)
				line = line[1:]
			}
			w.Expire(now)
		}
		if left > 2 { // 0.05^4 of 2000 may fail
			t.Errorf("seed %d: at loss %v %d requests failed", seed, loss, left)
		}
		return most
	}
	if got := widest(0); got != 32 {
		t.Errorf("without loss the window opens to %d, want its limit 32", got)
	}
	w := NewWindow(limits())
	now := time.Duration(0)
	for range 64 {
		w.Do(Request{LID: ib.LID(1), Method: mad.MethodGet}, func(Reply) {})
	}
	for range 40 { // nothing is ever answered
		drain(w, now)
		if due, ok := w.Deadline(); ok {
			now = due
		}
		w.Expire(now)
	}
	if w.open != smallestOpen {
		t.Errorf("with nothing answered the window is %v, want %d", w.open, smallestOpen)
	}
	widest(0.05)
}

// An answer that came another way than its request went is not believed.
func TestAnswerOfAnotherClassIsIgnored(t *testing.T) {
	for _, lid := range []ib.LID{0, 7} {
		w := NewWindow(limits())
		w.Do(Request{LID: lid, Method: mad.MethodGet, Attribute: 0x15}, func(Reply) { t.Errorf("LID %d: a stray answer was taken", lid) })
		p := drain(w, 0)[0]
		p.MakeResponse(mad.StatusOK)
		p.Class ^= mad.ClassSubnLID ^ mad.ClassSubnDirected
		if w.Receive(1, &p) || w.Counts().Unmatched != 1 {
			t.Errorf("LID %d: counts %+v", lid, w.Counts())
		}
	}
}

// A write that had to be sent twice may still have a copy under way when it has
// been answered: the next write to the same place waits until that cannot be.
func TestNextWriteWaitsForLateCopies(t *testing.T) {
	l := limits()
	l.Lifetime = time.Second
	w := NewWindow(l)
	ended := 0
	write := func(modifier uint32) {
		w.Do(Request{Path: mad.Path{3}, Method: mad.MethodSet, Attribute: 0x16, Modifier: modifier, Once: true, Alone: true},
			func(Reply) { ended++ })
	}
	answer := func(now time.Duration, p mad.SMP) {
		p.MakeResponse(mad.StatusOK)
		w.Receive(now, &p)
	}
	write(1)
	drain(w, 0)
	const resent = 150 * time.Millisecond
	w.Expire(resent)
	again := drain(w, resent)
	if len(again) != 1 {
		t.Fatalf("%d packets, want the write again", len(again))
	}
	answer(resent+1, again[0])
	if at, waits := w.Settled(resent + 1); !waits || at != resent+l.Lifetime {
		t.Errorf("settles at %v (%v), want %v", at, waits, resent+l.Lifetime)
	}
	write(1)
	write(2) // elsewhere: does not wait
	out := drain(w, resent+2)
	if len(out) != 1 || out[0].AttributeModifier != 2 {
		t.Fatalf("sent %v, want the write to the other place alone", out)
	}
	answer(resent+3, out[0])
	if due, ok := w.Deadline(); !ok || due != resent+l.Lifetime || w.Idle() {
		t.Errorf("deadline %v (%v), idle %v", due, ok, w.Idle())
	}
	out = drain(w, resent+l.Lifetime)
	if len(out) != 1 || out[0].AttributeModifier != 1 {
		t.Fatalf("sent %v, want the write that waited", out)
	}
	answer(resent+l.Lifetime+1, out[0])
	if _, waits := w.Settled(resent + l.Lifetime + 1); waits || ended != 3 || !w.Idle() {
		t.Errorf("waits %v, %d ended, idle %v", waits, ended, w.Idle())
	}
}

// Answers that went another way belong to somebody else.
func TestAnswerOfAnotherNodeIsIgnored(t *testing.T) {
	w := NewWindow(limits())
	w.Do(Request{Path: mad.Path{1, 2}, Method: mad.MethodGet, Attribute: 0x15}, func(Reply) { t.Error("ended") })
	for _, p := range drain(w, 0) {
		p.MakeResponse(mad.StatusOK)
		p.InitialPath[2] = 3
		if w.Receive(1, &p) {
			t.Error("taken")
		}
	}
	if w.Counts().Unmatched != 1 {
		t.Errorf("counts %+v", w.Counts())
	}
}

// Whoever asks with a key in hand: SMInfo goes out without it, retries too.
func TestSMInfoHasNoMKey(t *testing.T) {
	w := NewWindow(limits())
	for _, m := range []mad.Method{mad.MethodGet, mad.MethodSet} {
		for _, a := range []mad.AttributeID{smp.AttrSMInfo, smp.AttrPortInfo} {
			w.Do(Request{LID: 7, MKey: 0x1234, Method: m, Attribute: a}, func(Reply) {})
		}
	}
	sent := drain(w, 0)
	due, _ := w.Deadline()
	w.Expire(due)
	for _, p := range append(sent, drain(w, due)...) {
		if want := p.AttributeID != smp.AttrSMInfo; (p.MKey == 0x1234) != want || p.MKey != 0 != want {
			t.Errorf("%v(%s) has M_Key %v", p.Method, smp.AttributeName(p.AttributeID), p.MKey)
		}
	}
	if len(sent) != 4 {
		t.Errorf("%d packets", len(sent))
	}
}

// A window that is read-only sends no Set, not one again either, and goes on with all else:
// reads, and the SMInfo with which managers talk.
func TestReadOnly(t *testing.T) {
	w := NewWindow(limits())
	ended := map[string]error{}
	ask := func(name string, method mad.Method, attribute mad.AttributeID) {
		w.Do(Request{LID: 7, Method: method, Attribute: attribute}, func(r Reply) { ended[name] = r.Err })
	}
	ask("sent", mad.MethodSet, smp.AttrPKeyTable)
	if got := len(drain(w, 0)); got != 1 {
		t.Fatalf("%d packets, want 1", got)
	}
	w.ReadOnly(true)
	ask("waits", mad.MethodSet, smp.AttrPKeyTable)
	ask("read", mad.MethodGet, smp.AttrPKeyTable)
	ask("handover", mad.MethodSet, smp.AttrSMInfo)
	now := time.Duration(0)
	for !w.Idle() {
		for _, p := range drain(w, now) {
			if p.Method == mad.MethodSet && p.AttributeID != smp.AttrSMInfo {
				t.Fatalf("at %v it sends %+v", now, p)
			}
		}
		if due, some := w.Deadline(); some {
			now = due
			w.Expire(now)
		}
	}
	for name, want := range map[string]error{"sent": ErrReadOnly, "waits": ErrReadOnly, "read": ErrNoAnswer, "handover": ErrNoAnswer} {
		if !errors.Is(ended[name], want) {
			t.Errorf("%s ended with %v, want %v", name, ended[name], want)
		}
	}
	w.ReadOnly(false)
	ask("master", mad.MethodSet, smp.AttrPKeyTable)
	if got := drain(w, now); len(got) == 0 || got[0].Method != mad.MethodSet {
		t.Errorf("as master it sends %+v", got)
	}
}
