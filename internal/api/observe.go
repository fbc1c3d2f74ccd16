package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Operations that have no id in the description.
const (
	operationNone = "none" // refused before its operation was looked at
	operationUFM  = "ufm"  // a call of UFM's

	operationAlertmanager = "alertmanager" // a call of Alertmanager's API

	operationLogin = "login" // a browser on its way to an OpenID provider or back
)

// Operations are those that Options.Observe is told of, ordered.
func Operations() []string {
	list := []string{operationNone, operationUFM, operationAlertmanager, operationLogin}
	for _, item := range build(nil, Options{}).huma.OpenAPI().Paths {
		for _, op := range operationsOf(item) {
			list = append(list, op.OperationID)
		}
	}
	slices.Sort(list)
	return list
}

// answered is a writer that notes when an answer begins, and with which status.
type answered struct {
	http.ResponseWriter
	begun  time.Time
	status int
	took   time.Duration
}

// WriteHeader implements http.ResponseWriter.
func (w *answered) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status, w.took = status, time.Since(w.begun)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *answered) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status, w.took = http.StatusOK, time.Since(w.begun)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *answered) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher, which is what compression asks for: events go at once.
func (w *answered) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// observe tells who counts requests what became of one.
func (a *api) observe(w *answered, req *request) {
	if w.status == 0 {
		w.took = time.Since(w.begun)
	}
	if req.operation == "" {
		req.operation = operationNone
	}
	a.options.Observe(req.operation, w.status, w.took)
}

// named notes the operation of a request.
func named(c huma.Context, next func(huma.Context)) {
	requestOf(c.Context()).operation = c.Operation().OperationID
	next(c)
}
