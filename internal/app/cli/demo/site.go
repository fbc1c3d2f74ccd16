package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/views"
)

// Numbers of the partitions of the tenants.
const (
	redKeys  ib.PKeyBase = 0x0100
	blueKeys ib.PKeyBase = 0x0200
	keysEach             = 16
)

// reason is why the provider makes what the demonstration begins with.
const reason = "a tenant of the demonstration"

// js is a body of a request.
type js = map[string]any

// site is the service of the demonstration.
type site struct {
	dir      string // of its data
	out      io.Writer
	at       listen.Server
	provider *client.Client
}

func (s *site) printf(format string, a ...any) { fmt.Fprintf(s.out, format+"\n", a...) }

// setUp makes the tenants, and what waits, is broken and is wrong.
func (s *site) setUp(ctx context.Context, f *fabric) (err error) {
	s.at = listen.Server{Socket: listen.SocketIn(s.dir)}
	if s.provider, err = client.New(s.at, client.Options{}); err != nil {
		return err
	}
	if err := s.isolated(ctx); err != nil {
		return err
	}
	hosts := map[string][]ib.PortGUID{}
	for _, n := range f.server.Topology().Nodes {
		tenant, _, _ := strings.Cut(n.ID, "-")
		if n.Type == ib.NodeCA {
			hosts[tenant] = append(hosts[tenant], n.Ports[1].GUID)
		}
	}
	for _, t := range []struct {
		name  string
		first ib.PKeyBase
	}{{"red", redKeys}, {"blue", blueKeys}} {
		if err := s.tenant(ctx, t.name, t.first, hosts[t.name]); err != nil {
			return fmt.Errorf("tenant %s: %w", t.name, err)
		}
		s.printf("tenant %s: %d hosts in partition %#04x", t.name, len(hosts[t.name]), uint16(t.first))
	}
	if err := s.ask(ctx, hosts["red"][0]); err != nil {
		return err
	}
	s.printf("waiting: blue asks for a host of red in a partition of its own, and red has not consented")
	if err := f.execute(fmt.Sprintf("Unlink %q[%d]", brokenLeaf, brokenPort)); err != nil {
		return err
	}
	s.printf("broken: the cable at port %d of %s is pulled", brokenPort, brokenLeaf)
	s.printf("wrong: root of %s writes the P_Key of blue into its port every %v, and the manager takes it out", tampered, tamperEvery)
	s.printf("in another terminal: ibwarden top --server unix:%s", s.at.Socket)
	return nil
}

// isolated waits for the first verdict.
func (s *site) isolated(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, startLimit)
	defer stop()
	for every(ctx, askEvery) {
		status, _, err := client.Get[views.Status](ctx, s.provider, "/status", nil)
		if err == nil && status.Verdict == "isolated" {
			s.printf("the fabric is up: 6 switches, 16 hosts; verdict: %s", status.Verdict)
			return nil
		}
	}
	if context.Cause(ctx) == context.DeadlineExceeded {
		return fmt.Errorf("no verdict within %v", startLimit)
	}
	return context.Cause(ctx)
}

// tenant makes a tenant with its ports, and a partition of all of them.
func (s *site) tenant(ctx context.Context, name string, first ib.PKeyBase, hosts []ib.PortGUID) error {
	write := func(method, path string, p client.Params, body any) error {
		p.Why = reason
		return s.provider.Write(ctx, method, path, p, body, new(api.Changed))
	}
	var ports, members []js
	for _, h := range hosts {
		ports = append(ports, js{"guid": h.String()})
		members = append(members, js{"port": h.String(), "membership": "full"})
	}
	return errors.Join(
		write(http.MethodPut, "/tenants/"+name, client.Params{None: true}, js{"keys": js{"first": number(first), "last": number(first + keysEach - 1)}}),
		write(http.MethodPost, "/ports/assign", client.Params{}, js{"tenant": name, "ports": ports}),
		write(http.MethodPut, "/partitions/"+number(first), client.Params{None: true, Wait: true}, js{"name": name, "owner": name, "members": members}),
	)
}

// number is how the API writes the number of a partition.
func number(k ib.PKeyBase) string { return fmt.Sprintf("0x%04x", uint16(k)) }

// ask has blue make a partition and ask for a port of red in it.
func (s *site) ask(ctx context.Context, port ib.PortGUID) error {
	var made api.TokenMade
	if err := s.provider.Write(ctx, http.MethodPost, "/tokens", client.Params{Why: reason}, js{"tenant": "blue", "note": "blue's administrator"}, &made); err != nil {
		return err
	}
	blue, err := client.New(s.at, client.Options{Token: made.Secret})
	if err != nil {
		return err
	}
	return blue.Write(ctx, http.MethodPut, "/partitions/"+number(blueKeys+1), client.Params{None: true, Why: "red-1 is to read our results"},
		js{"name": "results", "members": []js{{"port": port.String(), "membership": "limited"}}}, new(api.Changed))
}

// printAddress prints an address that opens the console once, with the tour.
func (s *site) printAddress(ctx context.Context) error {
	var login listen.Login
	if err := s.provider.Write(ctx, http.MethodPost, "/logins", client.Params{}, nil, &login); err != nil {
		return err
	}
	at, err := url.Parse(login.Address)
	if err != nil {
		return err
	}
	s.printf("open %v/console/?tour=1#code=%s", at, login.Code)
	return nil
}
