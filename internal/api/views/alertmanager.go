// This file shows alarms as Prometheus's Alertmanager has them.

package views

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// AlertLife is how long an alert stands that is not sent again; Prometheus lets its own stand as long.
	AlertLife = 4 * time.Minute
	// alertTextMost is the most bytes of an annotation, alertNamesMost how many tenants or ports one lists.
	alertTextMost, alertNamesMost = 500, 16
	// AlertLabel is the label that has the ID of the alarm.
	AlertLabel = "alarm"
)

// Alert is an alarm as Alertmanager has it (postableAlert of its API v2). Its labels are the same for as long as the alarm
// has its ID, whichever manager tells of it.
type Alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// AlertOf is an alarm of a fabric as an alert that began at a time and is told of now. console is the URL of the
// console, "" for none.
func AlertOf(x Alarm, f *observed.Fabric, console string, began, now time.Time) Alert {
	name := "Ibwarden" + strings.ToUpper(x.Kind[:1]) + x.Kind[1:]
	a := Alert{map[string]string{"alertname": name, "severity": x.Severity, AlertLabel: x.ID}, map[string]string{}, began.UTC(), now.Add(AlertLife).UTC(), console}
	if p := f.Self; p != nil && p.InfoRead {
		a.Labels["subnet_prefix"] = fmt.Sprintf("0x%016x", p.Info.GIDPrefix)
	}
	if len(x.Ports) == 1 {
		a.Labels["guid"] = x.Ports[0]
	}
	if len(x.Tenants) == 1 {
		a.Labels["tenant"] = x.Tenants[0]
	}
	acknowledged := ""
	if k := x.Acknowledged; k != nil {
		acknowledged = fmt.Sprintf("by %s until %s: %s", k.By, k.Until.UTC().Format(time.RFC3339), k.Note)
	}
	for name, text := range map[string]string{
		"summary": x.Where + ": " + x.Text, "advice": x.Advice, "tenants": firstOf(x.Tenants), "ports": firstOf(x.Ports), "acknowledged": acknowledged,
	} {
		if text != "" {
			a.Annotations[name] = OneLine(text, alertTextMost)
		}
	}
	return a
}

// firstOf lists the first few names.
func firstOf(names []string) string {
	if n := len(names) - alertNamesMost; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:alertNamesMost], ", "), n)
	}
	return strings.Join(names, ", ")
}

// OneLine makes text that names devices one line of a bounded length, in bytes.
func OneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	for len(s) > most || !utf8.ValidString(s) {
		s = s[:min(len(s)-1, most)]
	}
	return s
}

// Since remembers since when alarms have been told of. Any goroutine may use it; the zero value remembers none.
type Since struct {
	mu    sync.Mutex
	began map[string]map[string]time.Time // by tenant and ID
}

// Began enters the alarms that a tenant is told of now. It returns since when he has been told of each, by ID.
func (s *Since) Began(tenant string, list []Alarm, now time.Time) map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := map[string]time.Time{} // nobody changes it once it is entered
	for _, x := range list {
		if of[x.ID] = now; !s.began[tenant][x.ID].IsZero() {
			of[x.ID] = s.began[tenant][x.ID]
		}
	}
	if s.began == nil {
		s.began = map[string]map[string]time.Time{}
	}
	s.began[tenant] = of
	return of
}
