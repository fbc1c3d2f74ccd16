package telemetry

import (
	"fmt"
	"maps"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// textMax is the most bytes of a text that names devices.
const textMax = 500

// AlarmWatcher turns the events of one manager into alarms. One goroutine uses it.
type AlarmWatcher struct {
	send func(Alarm)
	// drift counts what somebody else changed since the last verdict, by attribute, and
	// first is the first of it.
	drift map[string]int
	first string
	// bad is the alarm that holds since the verdict turned: exposure, unknown, or none.
	bad string
}

// NewWatcher returns a watcher that hands alarms to send.
func NewWatcher(send func(Alarm)) *AlarmWatcher {
	return &AlarmWatcher{send: send, drift: make(map[string]int)}
}

// Event looks at an event. Foreign changes of one pass are one alarm; a verdict is an
// alarm when it turns.
func (w *AlarmWatcher) Event(e event.Event) {
	switch e := e.(type) {
	case event.Drifted:
		if w.first == "" {
			w.first = e.String()
		}
		w.drift[smp.AttributeName(e.Op.Attribute)]++
	case event.RogueManager:
		w.send(Alarm{Type: "rogue-manager", Text: plain(e.String()), Details: map[string]any{"port_guid": e.Port, "at": plain(e.At), "reason": plain(e.Reason)}})
	case event.NoMaster:
		w.send(Alarm{Type: "no-master", Text: plain(e.String()), Details: map[string]any{"last": e.Last.Port}})
	case event.SeveralMasters:
		w.send(Alarm{Type: "several-masters", Text: plain(e.String()), Details: map[string]any{"count": e.Count, "masters": webhookPortsOf(e.Masters)}})
	case event.OneMaster:
		w.send(Alarm{Type: "one-master", Text: plain(e.String()), Details: map[string]any{"master": e.Master.Port}})
	case event.MasterChanged:
		w.send(Alarm{Type: "master-changed", Text: plain(e.String()), Details: map[string]any{"from": e.From.Port, "to": e.To.Port}})
	case event.MasterFlapping:
		w.send(Alarm{Type: "master-flapping", Text: plain(e.String()), Details: map[string]any{"changes": e.Changes, "within_seconds": e.Within.Seconds(), "master": e.Master.Port}})
	case event.OtherPolicy:
		w.send(Alarm{Type: "other-policy", Text: plain(e.String()), Details: map[string]any{"count": e.Count, "managers": webhookPortsOf(e.Managers)}})
	case event.SamePolicy:
		w.send(Alarm{Type: "same-policy", Text: plain(e.String())})
	case event.Guarding:
		w.send(Alarm{Type: "other-policy-guarded", Text: plain(e.String()), Details: map[string]any{"reason": plain(e.Reason)}})
	case event.Completed:
		w.drifted()
		w.judged(e.Result.Proof)
	}
}

func (w *AlarmWatcher) drifted() {
	if len(w.drift) == 0 {
		return
	}
	n := 0
	for _, x := range w.drift {
		n += x
	}
	text := w.first
	if n > 1 {
		text += fmt.Sprintf("; and %d more", n-1)
	}
	w.send(Alarm{Type: "drift", Text: plain(text), Details: map[string]any{"changes": maps.Clone(w.drift)}})
	clear(w.drift)
	w.first = ""
}

func (w *AlarmWatcher) judged(p *isolation.Proof) {
	bad := ""
	switch {
	case p.Verdict == isolation.Violated || p.Counts.Exposed > 0:
		bad = "exposure"
	case p.Verdict == isolation.Unknown:
		bad = "unknown"
	}
	if bad == w.bad {
		return
	}
	a := Alarm{Type: bad, Text: "verdict: " + p.Verdict.String(), Details: map[string]any{
		"verdict": p.Verdict.String(), "violations": p.Counts.Violations, "exposed": p.Counts.Exposed, "unknown": p.Counts.Unknown,
	}}
	if bad == "" {
		a.Type = "resolved"
	} else if len(p.Reasons) > 0 {
		a.Text = plain(a.Text + ": " + p.Reasons[0])
	}
	w.bad = bad
	w.send(a)
}

// plain makes text that names devices one line of bounded length.
func plain(s string) string { return views.OneLine(s, textMax) }

func webhookPortsOf(masters []event.Master) []ib.PortGUID {
	out := make([]ib.PortGUID, 0, len(masters))
	for _, m := range masters {
		out = append(out, m.Port)
	}
	return out
}
