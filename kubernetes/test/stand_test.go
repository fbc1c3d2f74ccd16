package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/go-logr/logr"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
	"github.com/ibwarden/ibwarden/test/need"
)

// Limits of the tests.
const (
	startWait = 120 * time.Second // for the API server to come up, on a machine that is busy
	readyWait = 60 * time.Second  // for what the tests wait for
	lookEvery = 20 * time.Millisecond
)

// system is the namespace of the controller.
const system = "ibwarden-system"

// cluster is the API server with its etcd, which all tests share.
type cluster struct {
	env        *envtest.Environment
	admin      kube.Client
	controller []byte // the kubeconfig of the controller's own service account
	scheme     *runtime.Scheme
}

var (
	builtIn string // where programs are built
	running *cluster
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	status := func() int {
		var err error
		if builtIn, err = os.MkdirTemp("", "ibwarden-kubetest-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(builtIn)
		defer func() {
			if running != nil {
				if err := running.env.Stop(); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		}()
		return need.Main(m)
	}()
	os.Exit(status)
}

// build builds a program of a module.
func build(dir, pkg, name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		to := filepath.Join(builtIn, name)
		if out, err := exec.Command("go", "build", "-C", dir, "-o", to, pkg).CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
		}
		return to, nil
	})
}

var (
	ibwarden   = need.Ibwarden
	controller = build("..", "./cmd/ibwarden-kubernetes", "ibwarden-kubernetes")
)

// APIServer names a kube-apiserver.
const APIServer = "IBWARDEN_KUBE_APISERVER"

// programs are etcd and the API server.
var programs = sync.OnceValues(func() (p struct{ etcd, server string }, err error) {
	p.server = os.Getenv(APIServer)
	p.etcd, err = need.Find("etcd")
	return p, err
})

// start starts the API server, once for all tests.
var start = sync.OnceValues(func() (*cluster, error) {
	p, err := programs()
	if err != nil {
		return nil, err
	}
	c := &cluster{scheme: runtime.NewScheme()}
	if err := clientgo.AddToScheme(c.scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(c.scheme); err != nil {
		return nil, err
	}
	no := false
	c.env = &envtest.Environment{
		UseExistingCluster: &no, ControlPlaneStartTimeout: startWait, ControlPlaneStopTimeout: startWait, Scheme: c.scheme,
		CRDDirectoryPaths: []string{"../config/crd"}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"../config/webhook.yaml"}},
	}
	c.env.ControlPlane.GetAPIServer().Path = p.server
	c.env.ControlPlane.Etcd = &envtest.Etcd{Path: p.etcd}
	if _, err = c.env.Start(); err != nil {
		return nil, fmt.Errorf("%s with %s: %w", p.server, p.etcd, err)
	}
	running = c
	if c.admin, err = kube.New(c.env.Config, kube.Options{Scheme: c.scheme}); err != nil {
		return nil, err
	}
	if err := c.apply("../config/rbac.yaml"); err != nil {
		return nil, err
	}
	user, err := c.env.AddUser(envtest.User{Name: "system:serviceaccount:" + system + ":ibwarden-kubernetes", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + system}}, nil)
	if err != nil {
		return nil, err
	}
	c.controller, err = user.KubeConfig()
	return c, err
})

// stand is a service, and a controller between it and the cluster.
type stand struct {
	*testing.T
	*cluster
	dir        string
	service    *program
	controller *program
	provider   *client.Client
	listen     string
	flags      []string // of the controller
}

// program is a process of a test.
type program struct {
	*exec.Cmd
	log   need.Log
	ended chan struct{}
}

func (s *stand) run(path string, env []string, args ...string) *program {
	s.Helper()
	p := &program{Cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.Env = append(os.Environ(), env...)
	p.Stdout, p.Stderr = &p.log, &p.log
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		s.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.ended) }()
	return p
}

// end ends a process by a signal.
func (s *stand) end(p *program, with syscall.Signal) {
	s.Helper()
	if p == nil || p.Process == nil {
		return
	}
	_ = p.Process.Signal(with)
	select {
	case <-p.ended:
	case <-time.After(readyWait):
		_ = p.Process.Kill()
		s.Errorf("%s does not end:\n%s", filepath.Base(p.Path), p.log.String())
	}
}

// freePort is a port of this machine that nobody uses now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// newStand starts a service and a controller for a test.
func newStand(t *testing.T) *stand {
	t.Helper()
	if os.Getenv(APIServer) == "" {
		t.Skip(APIServer + " names no kube-apiserver") // make test-kubernetes builds one
	}
	_, err := programs()
	need.Need(t, err)
	c, err := start()
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{T: t, cluster: c, dir: t.TempDir(), listen: freePort(t)}
	t.Cleanup(s.clear)
	s.serve()
	where, err := listen.ParseServer("unix:" + filepath.Join(s.dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	if s.provider, err = client.New(where, client.Options{}); err != nil {
		t.Fatal(err)
	}
	s.await("the service", func() error { _, err := s.provider.Probe(s.Context()); return err })
	s.write("token", s.command("tenant", "token", "create", "--tenant", "provider"))
	s.write("kubeconfig", string(c.controller))
	s.control()
	s.hook()
	return s
}

func (s *stand) write(name, text string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

// serve starts the service.
func (s *stand) serve() {
	s.Helper()
	path, err := ibwarden()
	if err != nil {
		s.Fatal(err)
	}
	s.service = s.run(path, nil, "run", "--fabric", "sim", "--policy", "none", "--data", filepath.Join(s.dir, "data"), "--socket", filepath.Join(s.dir, "s"),
		"--listen", s.listen, "--sweep-interval", "1s")
}

// control starts the controller.
func (s *stand) control() {
	s.Helper()
	path, err := controller()
	if err != nil {
		s.Fatal(err)
	}
	hooks := s.env.WebhookInstallOptions
	args := append([]string{
		"--server", "http://" + s.listen, "--token-file", filepath.Join(s.dir, "token"), "--namespace", system, "--resync", "1s", "--leader-elect=false",
		"--webhooks", s.hooks(), "--webhook-cert-dir", hooks.LocalServingCertDir,
	}, s.flags...)
	s.controller = s.run(path, []string{"KUBECONFIG=" + filepath.Join(s.dir, "kubeconfig")}, args...)
	s.await("the webhooks", func() error {
		conn, err := net.Dial("tcp", s.hooks())
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// hooks is where the API server finds the webhooks.
func (s *stand) hooks() string {
	o := s.env.WebhookInstallOptions
	return net.JoinHostPort(o.LocalServingHost, strconv.Itoa(o.LocalServingPort))
}

// command runs ibwarden against the service.
func (s *stand) command(args ...string) string {
	s.Helper()
	path, err := ibwarden()
	if err != nil {
		s.Fatal(err)
	}
	var out, errs bytes.Buffer
	c := exec.Command(path, append(args, "--server", "unix:"+filepath.Join(s.dir, "s"))...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		s.Fatalf("ibwarden %s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	return out.String()
}

// await waits until try has no error.
func (s *stand) await(what string, try func() error) {
	s.Helper()
	var err error
	for end := time.Now().Add(readyWait); time.Now().Before(end); time.Sleep(lookEvery) {
		if err = try(); err == nil {
			return
		}
	}
	s.Fatalf("%s: %v", what, err)
}

// hook has the API server ask the webhooks.
func (s *stand) hook() {
	s.Helper()
	for _, h := range s.env.WebhookInstallOptions.ValidatingWebhooks {
		h = h.DeepCopy()
		h.ResourceVersion, h.UID = "", ""
		if err := s.admin.Create(s.Context(), h); err != nil && !apierrors.IsAlreadyExists(err) {
			s.Fatal(err)
		}
	}
	s.await("the webhooks to count", func() error {
		if s.admin.Create(s.Context(), partition("default", "probe", ""), kube.DryRunAll) == nil {
			return errors.New("nothing is refused")
		}
		return nil
	})
}

// unhook has it ask them no more.
func (s *stand) unhook(ctx context.Context) {
	s.Helper()
	for _, h := range s.env.WebhookInstallOptions.ValidatingWebhooks {
		if err := s.admin.Delete(ctx, h.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			s.Error(err)
		}
	}
	s.await("the webhooks to count no more", func() error {
		return s.admin.Create(ctx, partition("default", "probe", ""), kube.DryRunAll)
	})
}

// clear deletes what a test left, and ends its processes.
func (s *stand) clear() {
	// The test's own context has ended.
	ctx, stop := context.WithTimeout(context.Background(), readyWait)
	defer stop()
	if s.Failed() {
		for _, p := range []*program{s.controller, s.service} {
			if p != nil {
				s.Logf("%s:\n%s", filepath.Base(p.Path), tail(p.log.String()))
			}
		}
	}
	s.end(s.controller, syscall.SIGKILL)
	s.end(s.service, syscall.SIGTERM)
	// The webhooks, which nobody answers now, would keep the finalizers.
	s.unhook(ctx)
	for _, list := range []kube.ObjectList{&v1alpha1.IBPortBindingList{}, &v1alpha1.IBPartitionList{}, &v1alpha1.IBTenantList{}} {
		if err := s.admin.List(ctx, list); err != nil {
			s.Error(err)
			continue
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			x := o.(kube.Object)
			before := x.DeepCopyObject().(kube.Object)
			x.SetFinalizers(nil)
			_ = s.admin.Patch(ctx, x, kube.MergeFrom(before))
			_ = s.admin.Delete(ctx, x)
			return nil
		})
	}
	var secrets corev1.SecretList
	if err := s.admin.List(ctx, &secrets, kube.InNamespace(system)); err == nil {
		for i := range secrets.Items {
			_ = s.admin.Delete(ctx, &secrets.Items[i])
		}
	}
}

// tail is the end of a log.
func tail(text string) string {
	const most = 6000
	return text[max(0, len(text)-most):]
}

// ready waits until an object is ready in its newest generation.
func (s *stand) ready(o kube.Object) {
	s.Helper()
	s.condition(o, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

// condition waits until an object has a condition of its newest generation, and returns it.
func (s *stand) condition(o kube.Object, kind string, status metav1.ConditionStatus, reason string) (got metav1.Condition) {
	s.Helper()
	s.await(fmt.Sprintf("%T %s", o, kube.ObjectKeyFromObject(o)), func() error {
		if err := s.admin.Get(s.Context(), kube.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		conditions := statusOf(o).Conditions
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil || c.ObservedGeneration != o.GetGeneration() || c.Status != status || c.Reason != reason {
			text, _ := json.Marshal(conditions)
			return fmt.Errorf("want %s %s %s of generation %d: %s", kind, status, reason, o.GetGeneration(), text)
		}
		got = *c
		return nil
	})
	return got
}

func statusOf(o kube.Object) v1alpha1.Status {
	switch o := o.(type) {
	case *v1alpha1.IBTenant:
		return o.Status.Status
	case *v1alpha1.IBPartition:
		return o.Status.Status
	case *v1alpha1.IBPortBinding:
		return o.Status.Status
	}
	panic(fmt.Sprintf("%T", o))
}

// create makes an object.
func (s *stand) create(o kube.Object) {
	s.Helper()
	if err := s.admin.Create(s.Context(), o); err != nil {
		s.Fatalf("%T %s: %v", o, o.GetName(), err)
	}
}

// namespace makes a namespace with a name of its own, which begins as told.
func (s *stand) namespace(prefix string) string {
	s.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	s.create(n)
	return n.Name
}
