package daemon

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// ending is how requests of one kind ended.
type ending struct {
	method    mad.Method
	attribute mad.AttributeID
	result    result
}

// result is how a request ended.
type result uint8

const (
	answered result = iota
	refused         // with a status
	unanswered
)

// String is the result's label in the metrics.
func (r result) String() string { return [...]string{"ok", "status", "no-answer"}[r] }

func resultOf(err error) result {
	if err == nil { // nearly always, and errors.As would allocate
		return answered
	}
	var status transact.StatusError
	if errors.As(err, &status) {
		return refused
	}
	return unanswered
}

// endings counts them.
type endings map[ending]uint64

func (e endings) count(m mad.Method, a mad.AttributeID, err error) {
	e[ending{m, a, resultOf(err)}]++
}

// State copies what is exported as metrics. Only the goroutine that drives the manager
// calls it. observer may be nil.
func (r *Runner) State(now time.Time, observer *metrics.Observer) *metrics.State {
	e := r.Engine()
	s := &metrics.State{
		Made: now, GoVersion: runtime.Version(), Version: version(), Manager: e.Status(),
		Window: e.Counts(), Administration: r.Administration().Counts(),
	}
	var known []observed.SubnetManager
	s.Charge, known = r.InCharge()
	s.CopyManagers(known)
	for _, a := range r.SMPs().ByAttribute {
		s.SMPs = append(s.SMPs,
			metrics.Labelled{Labels: []string{"Get", a.Attribute}, N: uint64(a.Get)},
			metrics.Labelled{Labels: []string{"Set", a.Attribute}, N: uint64(a.Set)})
	}
	for k, n := range r.endings {
		s.Requests = append(s.Requests, metrics.Labelled{Labels: []string{k.method.String(), smp.AttributeName(k.attribute), k.result.String()}, N: n})
	}
	r.Administration().Answers(func(k server.Kind, n uint64) {
		method, attribute := "other", "other"
		if k.Method != 0 {
			method, attribute = k.Method.String(), sa.AttributeName(k.Attribute)
		}
		s.Answers = append(s.Answers, metrics.Labelled{Labels: []string{method, attribute, fmt.Sprintf("0x%04x", uint16(k.Status))}, N: n})
	})
	s.Phases = r.record.Totals()
	if observer != nil {
		observer.Copy(s)
	}
	var readings func(func(perfmgr.Reading) bool)
	if p := r.Counters(); p != nil {
		s.Reading, s.Polls, readings = true, p.Counts(), p.Readings(r.Now())
	}
	metrics.CopyFabric(s, e.Fabric(), readings)
	if observer != nil {
		observer.Rise(s)
	}
	return s
}

// version is that of the module, as the Go linker knows it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
