package run

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ibwarden/ibwarden/internal/app/withkeys"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// execAction is what the audit log calls a program that gets M_Keys.
const execAction = "exec"

// serveKeys serves M_Keys to ibwarden keys exec beside the socket of the API. Without a socket
// there is none; where it cannot be opened, the service does without.
func (s *Service) serveKeys(socket string, log *slog.Logger) *withkeys.KeyServer {
	d := &withkeys.KeyServer{
		Log: log, Table: s.manager.KeyTable,
		Record: func(ctx context.Context, v withkeys.Request) error {
			by := resource.Caller{Name: fmt.Sprintf("uid %d", v.UID), Tenant: resource.Provider}
			return s.Service.Note(ctx, service.Request{By: by, Why: v.String()}, execAction, "", nil)
		},
	}
	if socket == "" {
		return d
	}
	if err := d.Open(socket); err != nil {
		log.Warn("ibwarden keys exec cannot ask this service for M_Keys", "error", err)
	}
	return d
}
