package api

import (
	"context"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// AlertmanagerPrefix begins the paths of what is served of the API v2 of Prometheus's Alertmanager: the alarms that a
// caller sees are its alerts, and those that his tenant has acknowledged its silences, one for each alarm.
const AlertmanagerPrefix = "/alertmanager/api/v2"

const (
	// silenceEarly is how much later than now a silence may begin: it begins now, and clocks differ.
	silenceEarly = time.Minute
	// namedMost is how many alarms an error names.
	namedMost = 5
)

// What Alertmanager's API has, in its words.
type (
	alertReceiver struct {
		Name string `json:"name"`
	}
	alertStatus struct {
		State       string   `json:"state"` // active or suppressed
		SilencedBy  []string `json:"silencedBy"`
		InhibitedBy []string `json:"inhibitedBy"`
	}
	gettableAlert struct {
		views.Alert
		Fingerprint string          `json:"fingerprint"`
		Receivers   []alertReceiver `json:"receivers"`
		Status      alertStatus     `json:"status"`
		UpdatedAt   time.Time       `json:"updatedAt"`
		alarm       views.Alarm
	}
	alertGroup struct {
		Labels   map[string]string `json:"labels"`
		Receiver alertReceiver     `json:"receiver"`
		Alerts   []gettableAlert   `json:"alerts"`
	}
	postableSilence struct {
		ID        string    `json:"id"`
		Matchers  matchers  `json:"matchers"`
		StartsAt  time.Time `json:"startsAt"`
		EndsAt    time.Time `json:"endsAt"`
		CreatedBy string    `json:"createdBy"`
		Comment   string    `json:"comment"`
	}
	gettableSilence struct {
		postableSilence
		UpdatedAt time.Time         `json:"updatedAt"`
		Status    map[string]string `json:"status"` // state: active or expired
		alarm     views.Alarm
	}
)

// toAll is the one receiver that Alertmanager's clients are told of.
var toAll = alertReceiver{"ibwarden"}

// alertmanager registers Alertmanager's calls, for the callers of every other operation.
func (a *api) alertmanager() {
	began := time.Now()
	for pattern, do := range map[string]func(*http.Request) (any, error){
		"GET /status":          func(*http.Request) (any, error) { return a.alertmanagerStatus(began), nil },
		"GET /receivers":       func(*http.Request) (any, error) { return []alertReceiver{toAll}, nil },
		"GET /alerts":          func(r *http.Request) (any, error) { return a.listAlerts(r) },
		"GET /alerts/groups":   a.groupAlerts,
		"GET /silences":        a.listSilences,
		"GET /silence/{id}":    func(r *http.Request) (any, error) { return a.silence(r) },
		"POST /silences":       a.putSilence,
		"DELETE /silence/{id}": a.expireSilence,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		a.mux.HandleFunc(method+" "+AlertmanagerPrefix+path, func(w http.ResponseWriter, r *http.Request) {
			requestOf(r.Context()).operation = operationAlertmanager
			out, err := do(r)
			if p, is := a.failed(r.Context(), err).(*Problem); is {
				refuseAlertmanager(w, p)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = listen.JSON.Marshal(w, out) // the client may be gone
		})
	}
}

// refuseAlertmanager writes a problem as Alertmanager does: as a text in JSON, by status 400 where the request is wrong.
func refuseAlertmanager(w http.ResponseWriter, p *Problem) {
	maps.Copy(w.Header(), p.Header)
	w.Header().Set("Content-Type", "application/json")
	if p.Status == http.StatusUnprocessableEntity {
		w.WriteHeader(http.StatusBadRequest)
	} else {
		w.WriteHeader(p.Status)
	}
	_ = listen.JSON.Marshal(w, p.Detail) // the client may be gone
}

func (a *api) alertmanagerStatus(began time.Time) any {
	type m = map[string]any
	return m{
		"cluster": m{"status": "disabled"}, "uptime": began.UTC(), "config": m{"original": "route: {receiver: ibwarden}\nreceivers: [{name: ibwarden}]\n"},
		"versionInfo": m{"version": a.options.Version, "goVersion": runtime.Version(), "revision": "", "branch": "", "buildDate": "", "buildUser": ""},
	}
}

// alerts are the alarms that a caller sees, the worst first.
func (a *api) alerts(ctx context.Context) ([]gettableAlert, error) {
	of, err := a.alarmed(ctx, false)
	if err != nil {
		return nil, err
	}
	snap, err := a.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var alarms []views.Alarm
	a.service.Read(func(s *resource.State) { alarms = of(s) })
	now := a.service.Now()
	began, list := a.since.Began(callerOf(ctx).Tenant, alarms, now), []gettableAlert{}
	for _, x := range alarms {
		g := gettableAlert{views.AlertOf(x, snap.Fabric, a.options.Console, began[x.ID], now), x.ID, []alertReceiver{toAll}, alertStatus{"active", []string{}, []string{}}, now.UTC(), x}
		if x.Acknowledged != nil {
			g.Status.State, g.Status.SilencedBy = "suppressed", []string{silenceID(x.ID)}
		}
		list = append(list, g)
	}
	return list, nil
}

// openAlerts are the alerts of the provider, for Alertmanagers.
func (a *api) openAlerts(ctx context.Context) (open []views.Alert, err error) {
	by := &request{who: listen.Account{Caller: resource.Caller{Name: "run --alertmanager", Tenant: resource.Provider}}}
	list, err := a.alerts(context.WithValue(ctx, requestKey{}, by))
	for _, x := range list {
		open = append(open, x.Alert)
	}
	return open, err
}

// listAlerts are the alerts that a query asks for.
func (a *api) listAlerts(r *http.Request) ([]gettableAlert, error) {
	query := r.URL.Query()
	filter, err := parsedMatchers(query["filter"])
	if err != nil {
		return nil, err
	}
	without := func(name string) bool {
		is, err := strconv.ParseBool(query.Get(name))
		return err == nil && !is
	}
	list, err := a.alerts(r.Context())
	return slices.DeleteFunc(list, func(x gettableAlert) bool {
		return !filter.match(x.Labels) || without(map[bool]string{true: "silenced", false: "active"}[x.alarm.Acknowledged != nil])
	}), err
}

// groupAlerts are the alerts of a query by their names.
func (a *api) groupAlerts(r *http.Request) (any, error) {
	list, err := a.listAlerts(r)
	groups, of := []*alertGroup{}, map[string]*alertGroup{}
	for _, x := range list {
		name := x.Labels["alertname"]
		if of[name] == nil {
			of[name] = &alertGroup{Labels: map[string]string{"alertname": name}, Receiver: toAll}
			groups = append(groups, of[name])
		}
		of[name].Alerts = append(of[name].Alerts, x)
	}
	return groups, err
}

// silences are what the caller's tenant has acknowledged. The matchers are the labels of the alert, or, where the alarm is
// over, its ID.
func (a *api) silences(ctx context.Context) ([]gettableSilence, error) {
	alerts, err := a.alerts(ctx)
	if err != nil {
		return nil, err
	}
	of := map[string]gettableAlert{}
	for _, x := range alerts {
		of[x.alarm.ID] = x
	}
	list, now, equal := []gettableSilence{}, a.service.Now(), true
	a.service.Read(func(s *resource.State) {
		for _, k := range s.Acknowledgements(callerOf(ctx).Tenant) {
			x, open := of[k.Alarm]
			if !open {
				x.Labels, x.alarm = map[string]string{views.AlertLabel: k.Alarm}, views.Alarm{ID: k.Alarm, Where: "alarm " + k.Alarm, Text: "it is over"}
			}
			g := gettableSilence{postableSilence{silenceID(k.Alarm), nil, k.At, k.Until, k.By, k.Note}, k.At, map[string]string{"state": "active"}, x.alarm}
			if !now.Before(k.Until) {
				g.Status["state"] = "expired"
			}
			for _, name := range slices.Sorted(maps.Keys(x.Labels)) {
				g.Matchers = append(g.Matchers, matcher{Name: name, Value: x.Labels[name], IsEqual: &equal})
			}
			list = append(list, g)
		}
	})
	return list, nil
}

// listSilences are those silences for whose labels a query asks.
func (a *api) listSilences(r *http.Request) (any, error) {
	filter, err := parsedMatchers(r.URL.Query()["filter"])
	if err != nil {
		return nil, err
	}
	list, err := a.silences(r.Context())
	return slices.DeleteFunc(list, func(x gettableSilence) bool {
		labels := map[string]string{}
		for _, m := range x.Matchers {
			labels[m.Name] = m.Value
		}
		return !filter.match(labels)
	}), err
}

// silence is the one in the path of a request.
func (a *api) silence(r *http.Request) (*gettableSilence, error) {
	list, err := a.silences(r.Context())
	for _, x := range list {
		if x.ID == r.PathValue("id") {
			return &x, nil
		}
	}
	if err == nil {
		err = problem(http.StatusNotFound, string(resource.NotFound), "there is no such silence")
	}
	return nil, err
}

// putSilence acknowledges the one alarm that the matchers match.
func (a *api) putSilence(r *http.Request) (any, error) {
	ctx := r.Context()
	var in postableSilence
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = listen.Unmarshal(body, &in)
	}
	switch {
	case err != nil:
		return nil, invalid("%v", err)
	case len(in.Matchers) == 0 || in.EndsAt.IsZero():
		return nil, invalid("want matchers of one alarm, such as %s=ID, and endsAt", views.AlertLabel)
	case in.StartsAt.After(a.service.Now().Add(silenceEarly)):
		return nil, invalid("startsAt %s: a silence begins now", in.StartsAt.UTC().Format(time.RFC3339))
	}
	if err := in.Matchers.compile(); err != nil {
		return nil, err
	}
	list, err := a.alerts(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(x gettableAlert) bool { return !in.Matchers.match(x.Labels) })
	if len(list) != 1 {
		var ids []string
		for _, x := range list[:min(len(list), namedMost)] {
			ids = append(ids, x.alarm.ID)
		}
		return nil, invalid("the matchers match %d alarms: want one, such as by %s=ID; some of them: %q", len(list), views.AlertLabel, ids)
	}
	x := list[0].alarm
	if in.ID != "" && (in.ID != silenceID(x.ID) || x.Acknowledged == nil) {
		return nil, problem(http.StatusNotFound, string(resource.NotFound), "the alarm has no such silence")
	}
	note, author := in.Comment, in.CreatedBy+": "
	if in.CreatedBy != "" && in.CreatedBy != callerOf(ctx).Name && !strings.HasPrefix(note, author) {
		note = author + note
	}
	_, err = a.acknowledge(ctx, &WriteParams{}, x, note, in.EndsAt)
	return map[string]string{"silenceID": silenceID(x.ID)}, err
}

// expireSilence ends the acknowledgement of an alarm, which may be over.
func (a *api) expireSilence(r *http.Request) (any, error) {
	x, err := a.silence(r)
	if err == nil {
		_, err = a.acknowledge(r.Context(), &WriteParams{}, x.alarm, "", time.Time{})
	}
	return map[string]string{}, err
}

// silenceID is the UUID (version 8) of the silence of an alarm.
func silenceID(alarm string) string {
	return alarm[:8] + "-" + alarm[8:12] + "-8" + alarm[12:15] + "-8" + alarm[15:] + "00-000000000000"
}
