package cli

import (
	"net"
	"net/http"

	"github.com/rogpeppe/go-internal/testscript"
)

// stranger serves HTTP at a Unix socket as something else than ibwarden does: stranger
// PATH.
func stranger(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stranger PATH")
	}
	l, err := net.Listen("unix", ts.MkAbs(args[0]))
	ts.Check(err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"items":[]}`))
	})}
	go server.Serve(l)
	ts.Defer(func() { server.Close() })
}
