package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/sso"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/web"
)

// Flags are the flags of a command that serves the API.
type Flags struct {
	Store                              string
	Lease                              time.Duration
	socket, listen, cert, key, clients string
	prometheus, racks                  string
	sso                                ssoFlags
}

// NoSocket is the value of --socket that serves none.
const NoSocket = "none"

// Add adds the flags.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.Store, "store", "", "where tenants, partitions and their history are kept: bolt:DIR, or etcd:URL,... that several managers share (default: store in the data directory; without one, in a directory that is removed at the end)")
	flags.DurationVar(&f.Lease, "lease", mastership.DefaultTTL, "how long the right to write to the fabric stands in a shared store until it is renewed, 200ms to 10s")
	flags.StringVar(&f.socket, "socket", "", "Unix socket of the API, or none (default: ibwarden.sock in the data directory; without one, the socket where commands look for it)")
	flags.StringVar(&f.listen, "listen", "", "ADDRESS:PORT of the API, with TLS unless it is a loopback address")
	flags.StringVar(&f.cert, "tls-cert", "", "file with the certificate of the API, PEM")
	flags.StringVar(&f.key, "tls-key", "", "file with its key, PEM; only its owner may be able to read it")
	flags.StringVar(&f.prometheus, "prometheus", "", "URL of the Prometheus that reads --metrics; the console leads there for what is older than it keeps")
	flags.StringVar(&f.racks, "racks", "", racksHelp)
	flags.StringVar(&f.clients, "tls-client-ca", "", "file with the CAs of client certificates, PEM")
	f.sso.add(flags)
}

// secretMax bounds the files of certificates and keys, in bytes.
const secretMax = 1 << 20

// Check says what is wrong with the flags, before anything is opened.
func (f *Flags) Check() error {
	if _, err := f.where(); err != nil {
		return err
	}
	if _, err := f.readRacks(); err != nil {
		return err
	}
	_, err := f.sso.read(f.listen)
	return err
}

// where is on what the flags say to listen.
func (f *Flags) where() (w api.Where, err error) {
	w.Listen = f.listen
	if f.Lease < mastership.MinTTL || f.Lease > mastership.MaxTTL {
		return w, fmt.Errorf("--lease %v: want %v to %v", f.Lease, mastership.MinTTL, mastership.MaxTTL)
	}
	if u, err := url.Parse(f.prometheus); f.prometheus != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil) {
		return w, errors.New("--prometheus: want http:// or https://, a host, and no password") // which it may have
	}
	if f.listen == "" && f.cert+f.key+f.clients != "" {
		return w, errors.New("--tls-cert, --tls-key and --tls-client-ca: want --listen with them")
	}
	if (f.cert == "") != (f.key == "") {
		return w, errors.New("--tls-cert and --tls-key: want both or none")
	}
	for _, x := range []struct {
		flag, path string
		read       func(string, int64) ([]byte, error)
		to         *[]byte
	}{
		{"--tls-cert", f.cert, files.Read, &w.Certificate}, {"--tls-key", f.key, files.Secret, &w.Key},
		{"--tls-client-ca", f.clients, files.Read, &w.ClientCA},
	} {
		if x.path == "" {
			continue
		}
		if *x.to, err = x.read(x.path, secretMax); err != nil {
			return w, fmt.Errorf("%s: %w", x.flag, err)
		}
	}
	return w, nil
}

// open opens what the flags name. A socket that nobody asked for and that cannot be had,
// since another manager runs here or the directory is not the user's, is in the scratch
// directory instead.
func (f *Flags) open(data daemon.DataDir, scratch string) (*api.Listeners, error) {
	w, err := f.where()
	if err != nil {
		return nil, err
	}
	switch f.socket {
	case NoSocket:
		return api.Listen(w)
	case "":
		w.Socket = listen.SocketIn(string(data))
	default:
		w.Socket = f.socket
	}
	l, err := api.Listen(w)
	if err != nil && f.socket == "" && scratch != "" {
		w.Socket = filepath.Join(scratch, filepath.Base(w.Socket))
		l, err = api.Listen(w)
	}
	return l, err
}

// login logs people in with the OpenID provider of the flags; nil for none. url is where the service
// is reached.
func (f *Flags) login(url string, log *slog.Logger) (*sso.Service, error) {
	c, err := f.sso.read(f.listen)
	if c == nil || err != nil {
		return nil, err
	}
	c.Console = cmp.Or(c.Console, url)
	return sso.New(*c, time.Now, log), nil
}

// console is where the console of a service is; "" where the service is not reached over the network.
func console(url string) string {
	if url == "" {
		return ""
	}
	return url + web.Prefix
}

// Listen serves the API, and forgets what has had its time, until Close. It returns where, as clients name it.
func (s *Service) Listen(f *Flags, data daemon.DataDir, keys ufm.Keys, metricsAt string, log *slog.Logger) ([]string, error) {
	read, err := f.readRacks()
	if err != nil {
		return nil, err
	}
	s.racks.Store(read)
	l, err := f.open(data, s.scratch)
	if err != nil {
		return nil, err
	}
	login, err := f.login(l.URL, log)
	if err != nil {
		l.Close()
		return nil, err
	}
	past := s.openPast(data, log)
	var open openAlerts
	handler := web.Handler(login.Name(), api.New(s.Service, api.Options{
		Version: terminal.ThisProgram().Version, UID: os.Geteuid(), Store: s.store, Judge: s.manager, Certificates: daemon.NewCertificates(s.manager, data), Managers: s.manager, Sweeps: s.manager, Traffic: s.manager, Cabling: s.manager, Racks: s.racks.Load, StoreName: s.where, Address: l.URL, Log: log, UFM: ufm.Options{Keys: keys},
		Observe: s.calls.Request, Past: past.source(), MetricsAt: metricsAt, Prometheus: f.prometheus, SSO: login, Console: console(l.URL), Alerts: func(f openAlerts) { open = f },
	}))
	s.calls.SetConnections(func() (c metrics.Connections) {
		c.Open, c.Refused, c.RefusedPeer = l.Connections()
		return c
	})
	door := s.serveKeys(l.Socket(), log)
	s.writeHeads(log)
	s.seen.tells(log)
	ctx, stop := context.WithCancel(context.Background())
	var works sync.WaitGroup
	works.Go(func() { s.trims(ctx, log) })
	works.Go(func() { s.returns(ctx, log) })
	works.Go(func() { past.keep(ctx, log) })
	if s.alertmanagers != nil {
		works.Go(func() { s.alerts(ctx, open) })
	}
	again, asks := time.NewTicker(recoverEvery), time.NewTicker(sso.CheckEvery)
	works.Go(func() { s.recovers(ctx, again.C) })
	if login != nil {
		s.calls.SetChecks(func() (confirmed, ended, unanswered uint64) {
			c := login.Counts()
			return c.Confirmed, c.Ended, c.Unanswered
		})
		works.Go(func() { login.Watch(ctx, asks.C) })
	}
	works.Go(func() {
		if err := api.Serve(ctx, l, handler, log); err != nil {
			log.Error("the API is not served any more", "error", err)
		}
	})
	s.stop = func() {
		door.Close()
		stop()
		again.Stop()
		asks.Stop()
		works.Wait()
	}
	return l.Describe, nil
}
