package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// Flags are the flags of a command that runs a manager.
type Flags struct {
	address string
	period  time.Duration
	hosts   bool
	details bool
	webhook string
	secret  string
	// alertmanagers are URLs.
	alertmanagers []string
}

// Variable names the address of a command that is not given one.
const Variable = "IBWARDEN_METRICS"

// leastPeriod is the shortest time between two readings of a port's counters.
const leastPeriod = time.Second

// Add adds the flags.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "metrics", os.Getenv(Variable), "loopback address that serves /metrics, /healthz and /readyz, such as 127.0.0.1:9316 ("+Variable+" names a default)")
	flags.DurationVar(&f.period, "counters-period", perfmgr.DefaultPeriod, "with --metrics, time between two readings of the performance counters of a port; 0s reads none")
	flags.BoolVar(&f.hosts, "counters-hca", false, "with --metrics, read the counters of hosts too; they are the metrics infiniband_hca_*")
	flags.BoolVar(&f.details, "counters-rcv-err-details", false, "with --metrics, read PortRcvErrorDetails too; it says why packets were received with an error")
	flags.StringVar(&f.webhook, "webhook", "", "URL that alarms are posted to (drift, exposure, unknown verdicts, managers that are not trusted); https, or http on a loopback address")
	flags.StringVar(&f.secret, "webhook-secret-file", "", "file with the secret that signs what is posted, at least 16 bytes; only its owner may be able to read it")
	flags.StringSliceVar(&f.alertmanagers, "alertmanager", nil, "URLs of Alertmanagers, for alarms (those of GET /alarms, from the master); https, or http on a loopback address")
}

// Address is where metrics are to be served; empty for nowhere.
func (f *Flags) Address() string { return f.address }

// Check says what is wrong with the flags, before there is a manager.
func (f *Flags) Check() error {
	if err := f.checkPeriod(); err != nil {
		return err
	}
	s, err := f.openWebhook(io.Discard)
	if s != nil {
		s.Close()
	}
	if err != nil {
		return err
	}
	a, err := f.openAlertmanagers(io.Discard)
	if a != nil {
		a.Close()
	}
	return err
}

// openAlertmanagers returns a sender; nil where none is wanted.
func (f *Flags) openAlertmanagers(w io.Writer) (*Alertmanagers, error) {
	if len(f.alertmanagers) == 0 {
		return nil, nil
	}
	a, err := NewAlertmanagers(f.alertmanagers, func(err error) { fmt.Fprintln(w, "ibwarden: Alertmanager", err) })
	if err != nil {
		return nil, fmt.Errorf("--alertmanager: %w", err)
	}
	return a, nil
}

func (f *Flags) checkPeriod() error {
	if f.period < 0 || f.period > 0 && f.period < leastPeriod {
		return fmt.Errorf("--counters-period %v: want 0s or at least %v", f.period, leastPeriod)
	}
	return nil
}

// secretMax is the most bytes of a file with a secret.
const secretMax = 4096

// openWebhook returns a sender; nil where none is wanted.
func (f *Flags) openWebhook(w io.Writer) (*WebhookSender, error) {
	if f.webhook == "" {
		if f.secret != "" {
			return nil, errors.New("--webhook-secret-file: there is no --webhook")
		}
		return nil, nil
	}
	if f.secret == "" {
		return nil, errors.New("--webhook: needs --webhook-secret-file, since what is posted is signed")
	}
	secret, err := files.Secret(f.secret, secretMax)
	if err != nil {
		return nil, fmt.Errorf("--webhook-secret-file: %w", err)
	}
	s, err := NewWebhookSender(f.webhook, bytes.TrimSpace(secret), func(err error) { fmt.Fprintln(w, "ibwarden: webhook:", err) })
	if err != nil {
		return nil, fmt.Errorf("--webhook: %w", err)
	}
	return s, nil
}

// Run is a manager that others watch: systemd, and those who read its metrics.
type Run struct {
	*Telemetry
	runner   *daemon.Runner
	notifier *Notifier
	server   *Server
	observer *metrics.Observer
	alarms   *WebhookSender // nil for none
	watcher  *AlarmWatcher
	// Alertmanagers are sent what is wrong; nil for none.
	Alertmanagers *Alertmanagers
	status        Status
	hosts         bool   // as State.Hosts
	turns         int    // until the next look
	worded        Status // what text says
	text          string
}

// Start serves the metrics of a manager that does not run yet, and tells systemd of it. It
// writes to w where the metrics are. The error says what is wrong with the flags.
func (f *Flags) Start(w io.Writer, r *daemon.Runner) (*Run, error) {
	x := &Run{runner: r, Telemetry: New(time.Now), observer: metrics.NewObserver(), status: Status{Phase: "start"}, hosts: f.hosts}
	err := f.checkPeriod()
	if err != nil {
		return nil, err
	}
	if x.notifier, err = NewNotifier(os.Getenv); err != nil {
		fmt.Fprintln(w, "ibwarden: systemd cannot be told of this service:", err)
		x.notifier = nil
	}
	if x.alarms, err = f.openWebhook(w); err != nil {
		return nil, err
	}
	if x.alarms != nil {
		x.watcher = NewWatcher(x.alarms.Send)
	}
	if x.Alertmanagers, err = f.openAlertmanagers(w); err != nil {
		x.Close()
		return nil, err
	}
	if f.address == "" {
		return x, nil
	}
	if x.server, err = x.Listen(f.address); err != nil {
		x.Close()
		return nil, fmt.Errorf("--metrics: %w", err)
	}
	if f.period > 0 {
		limits := perfmgr.DefaultLimits()
		limits.Period, limits.Hosts, limits.Details = f.period, f.hosts, f.details
		r.ReadCounters(limits)
	}
	fmt.Fprintln(w, "ibwarden: metrics at", x.Address())
	return x, nil
}

// Address is where metrics are served, a URL; empty for nowhere.
func (x *Run) Address() string {
	if x.server == nil {
		return ""
	}
	return "http://" + x.server.Address() + "/metrics"
}

// Event counts an event. It may be called of a nil Run.
func (x *Run) Event(e event.Event) {
	if x == nil {
		return
	}
	x.observer.Event(x.now(), Describe(e).Kind, e)
	if x.watcher != nil {
		x.watcher.Event(e)
	}
	switch e := e.(type) {
	case event.PhaseBegun:
		x.status.Phase = e.Phase
	case event.Completed:
		x.status.Verdict = e.Result.Proof.Verdict.String()
	}
}

// Count counts an event of the log that is not the manager's. It may be called of a nil Run.
func (x *Run) Count(id string) {
	if x != nil {
		x.observer.Count(id)
	}
}

// lookEvery is how many turns of a busy engine loop pass between two looks at the clock
// and the manager. A turn lasts at most as long as a link waits for packets, 100 ms: what
// is told is never more than 1.6 s old.
const lookEvery = 16

// Turned is called whenever the engine loop turns. It reports whether it looked at the
// manager. During a bring-up a turn takes microseconds, and looking at every turn would be
// a third of the work; a manager at rest turns seldom, and every turn is looked at.
func (x *Run) Turned() (looked bool) {
	e := x.runner.Engine()
	if x.turns--; x.turns > 0 && !e.Settled() {
		return false
	}
	x.turns = lookEvery
	now := x.now()
	x.status.Manager = metrics.StateName(e.Status().State)
	x.Turn(x.status, !e.Settled(), func() *metrics.State {
		s := x.runner.State(now, x.observer)
		s.Hosts = x.hosts
		if x.alarms != nil {
			c := x.alarms.Counts()
			s.Alarms = map[string]uint64{"delivered": c.Delivered, "failed": c.Failed, "dropped": c.Dropped}
		}
		if x.Alertmanagers != nil {
			s.Alerts = x.Alertmanagers.Counts()
		}
		return s
	})
	if x.status != x.worded {
		x.worded, x.text = x.status, x.status.Text()
	}
	x.notifier.Turn(now, x.text)
	return true
}

// Close ends what Start began.
func (x *Run) Close() {
	x.notifier.Stop()
	if x.server != nil {
		x.server.Close()
	}
	if x.alarms != nil {
		x.alarms.Close()
	}
	if x.Alertmanagers != nil {
		x.Alertmanagers.Close()
	}
}
