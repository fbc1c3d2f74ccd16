// Command ibwarden-kubernetes carries the resources IBTenant, IBPartition and IBPortBinding of
// a Kubernetes cluster to ibwarden's service, and answers the API server's questions about
// whether they may be stored.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"log/slog"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/kubernetes/admission"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
	"github.com/ibwarden/ibwarden/kubernetes/controller"
)

// resyncLeast is the shortest time between two looks at every object.
const resyncLeast = 100 * time.Millisecond

// shutdownTimeout is how long what is under way may take when the program ends.
const shutdownTimeout = 10 * time.Second

// settings are what the command line says.
type settings struct {
	server, ca, token, namespace string
	certificates, webhooks       string
	metrics, health              string
	election                     bool
	resync                       time.Duration
	rest                         []string
}

func main() {
	var s settings
	flag.StringVar(&s.server, "server", "", "the service: https://HOST:PORT, unix:PATH, or http://ADDRESS:PORT with a loopback address")
	flag.StringVar(&s.ca, "ca-file", "", "CAs of the service's certificate, PEM (default: those of the system)")
	flag.StringVar(&s.token, "token-file", "", "file with a token of the provider; read again for every use")
	flag.StringVar(&s.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "the namespace of this program, for the tokens of tenants and the lease (default: POD_NAMESPACE)")
	flag.StringVar(&s.webhooks, "webhooks", ":9443", "ADDRESS:PORT that answers the API server's questions, with TLS; none for none")
	flag.StringVar(&s.certificates, "webhook-cert-dir", "/etc/ibwarden-kubernetes/tls", "directory with tls.crt and tls.key for --webhooks; read again when they change")
	flag.StringVar(&s.metrics, "metrics", "none", "ADDRESS:PORT that serves /metrics; none for none")
	flag.StringVar(&s.health, "health", "none", "ADDRESS:PORT that serves /healthz and /readyz; none for none")
	flag.BoolVar(&s.election, "leader-elect", true, "of several of this program, only one acts at a time")
	flag.DurationVar(&s.resync, "resync", controller.DefaultLimits.Resync, "how often what the service has is compared with the resources")
	flag.Parse()
	s.rest = flag.Args()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "ibwarden-kubernetes:", err)
		os.Exit(1)
	}
}

// check says what is wrong with the settings, and makes of them where the service is.
func check(s settings) (*controller.Service, error) {
	where, err := listen.ParseServer(s.server)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--server: %w", err)
	case len(s.rest) > 0:
		return nil, fmt.Errorf("%q: want flags only", s.rest[0])
	case s.namespace == "":
		return nil, fmt.Errorf("--namespace: want the namespace of this program, here or in POD_NAMESPACE")
	case s.token == "" && where.Socket == "":
		return nil, fmt.Errorf("--token-file: want a file with a token of the provider")
	case s.resync < resyncLeast:
		return nil, fmt.Errorf("--resync: %v: want at least %v", s.resync, resyncLeast)
	}
	service := &controller.Service{Server: where, TokenFile: s.token}
	if s.ca != "" {
		if service.CA, err = os.ReadFile(s.ca); err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
	}
	return service, nil
}

// listener is an address as controller-runtime has it, with 0 for none.
func listener(text string) string {
	if text == "none" {
		return "0"
	}
	return text
}

func run(s settings) error {
	service, err := check(s)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("the Kubernetes API server: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := clientgo.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	patience := shutdownTimeout
	options := ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: listener(s.metrics)}, HealthProbeBindAddress: listener(s.health),
		LeaderElection: s.election, LeaderElectionID: "ibwarden-kubernetes", LeaderElectionNamespace: s.namespace, LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout: &patience,
		// A cache of Secrets would need to list them all.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	if s.webhooks != "none" {
		host, port, err := net.SplitHostPort(s.webhooks)
		if err != nil {
			return fmt.Errorf("--webhooks: %w", err)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return fmt.Errorf("--webhooks: port %q: want a number up to 65535", port)
		}
		options.WebhookServer = webhook.NewServer(webhook.Options{Host: host, Port: int(n), CertDir: s.certificates})
	}
	m, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	limits := controller.DefaultLimits
	limits.Resync = s.resync
	limits.Again = min(limits.Again, s.resync)
	if err := controller.Setup(m, service, s.namespace, limits); err != nil {
		return err
	}
	if s.webhooks != "none" {
		if err := admission.Setup(m); err != nil {
			return err
		}
		if err := m.AddReadyzCheck("webhooks", m.GetWebhookServer().StartedChecker()); err != nil {
			return err
		}
	}
	if err := m.AddHealthzCheck("alive", healthz.Ping); err != nil {
		return err
	}
	return m.Start(ctrl.SetupSignalHandler())
}
