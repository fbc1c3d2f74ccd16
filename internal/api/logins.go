package api

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/sso"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// sessionPath is the path of sessions.
const sessionPath = Prefix + "/session"

// beginsSession reports whether a request is one for a new session.
func beginsSession(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == sessionPath
}

func (a *api) logins() {
	type none struct{}
	type login struct{ Body listen.Login }
	op := operation(http.MethodPost, "/logins", "create-login", "Make a one-time code, with which a browser begins a session of the caller")
	op.DefaultStatus = http.StatusCreated
	register(a, op, func(ctx context.Context, _ *none) (*login, error) {
		if err := noSession(ctx); err != nil {
			return nil, err
		}
		out := &login{Body: listen.Login{Address: a.options.Address}}
		out.Body.Code, out.Body.Expires = a.sessions.Code(requestOf(ctx).who)
		out.Body.Expires = out.Body.Expires.UTC()
		return out, nil
	})
	type begun struct{ Body listen.NewSession }
	op = operation(http.MethodPost, "/session", "begin-session", "Begin a session: with a code, or as whom the caller is in any case")
	op.DefaultStatus = http.StatusCreated
	register(a, op, func(ctx context.Context, _ *none) (*begun, error) {
		if err := noSession(ctx); err != nil {
			return nil, err
		}
		r := requestOf(ctx)
		secret, made, ok := a.sessions.Begin(r.who)
		if !ok {
			return nil, problem(http.StatusTooManyRequests, string(resource.TooFast), "too many sessions were begun just now").RetryAfter(int(listen.BegunWithin / time.Second))
		}
		a.begun(ctx, r.who, r.from, made.Expires)
		return &begun{Body: listen.NewSession{Secret: secret, Identity: made.Identity()}}, nil
	})
	type me struct{ Body listen.Identity }
	register(a, operation(http.MethodGet, "/session", "get-session", "Who the caller is, and when his session ends"),
		func(ctx context.Context, _ *none) (*me, error) {
			r := requestOf(ctx)
			if r.session != nil {
				return &me{Body: r.session.Identity()}, nil
			}
			return &me{Body: listen.IdentityOf(r.who.Caller, r.who.Until)}, nil
		})
	op = operation(http.MethodDelete, "/session", "end-session", "End the session of the caller")
	op.DefaultStatus = http.StatusNoContent
	register(a, op, func(ctx context.Context, _ *none) (*none, error) {
		r := requestOf(ctx)
		if r.session == nil {
			return nil, problem(http.StatusNotFound, "not-found", "the caller has no session: want its secret as the bearer token")
		}
		a.sessions.End(r.session)
		return &none{}, nil
	})
}

// ssoHooks are what the API does for logins with an OpenID provider.
func (a *api) ssoHooks() sso.Hooks {
	return sso.Hooks{
		Code: func(who listen.Account) string {
			secret, _ := a.sessions.Code(who)
			return secret
		},
		Refused: func(r *http.Request, why string) bool { return a.nobody(r, true, why) },
		Exists: func(tenant string) (is bool) {
			a.service.Read(func(s *resource.State) { is = s.Tenant(tenant) != nil })
			return is
		},
		InUse: a.sessions.InUse,
	}
}

// noSession refuses callers who showed a session: what they make would outlast it.
func noSession(ctx context.Context) error {
	if requestOf(ctx).session != nil {
		return problem(http.StatusForbidden, "forbidden", "a session begins no other: want a token, a certificate or the Unix socket")
	}
	return nil
}

// from is where a request comes from: the user at the other end of the Unix socket, or an
// address of the network.
func from(r *http.Request) string {
	if peer, local := peerOf(r.Context()); local {
		return "uid " + strconv.FormatUint(uint64(peer.UID), 10)
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// begun logs a session that begins.
func (a *api) begun(ctx context.Context, who listen.Account, from string, until time.Time) {
	a.log.LogAttrs(ctx, slog.LevelInfo, who.Caller.Name+" begins a session", slog.String("event", listen.SessionBegun), slog.String("caller", who.Caller.Name),
		slog.String("tenant", who.Caller.Tenant), slog.String("by", who.Shown), slog.String("from", from), slog.Time("until", until))
}

// unknownCaller is the answer to somebody whom the service does not know.
func (a *api) unknownCaller(r *http.Request, p *Problem) *Problem {
	if a.nobody(r, beginsSession(r), p.Detail) {
		return problem(http.StatusTooManyRequests, string(resource.TooFast), "too many logins from this address failed: "+p.Detail).RetryAfter(int(listen.FailuresWithin / time.Second))
	}
	return p
}

// nobody logs a request of somebody whom the service does not know: each login, until too
// many failed, and of other requests one a minute from one address. They are not in the audit
// log, which anybody could fill then; the metrics count them all.
func (a *api) nobody(r *http.Request, login bool, why string) (tooMany bool) {
	event, what := listen.LoginRefused, "a login"
	if login {
		tooMany = a.sessions.Failed(from(r))
	} else {
		event, what = listen.CallerUnknown, "a request"
	}
	if tooMany || !login && !a.sessions.Unknown(from(r)) {
		return tooMany
	}
	a.log.LogAttrs(r.Context(), slog.LevelWarn, what+" from "+from(r)+" is refused: "+why, slog.String("event", event), slog.String("from", from(r)), slog.String("reason", why))
	return false
}
