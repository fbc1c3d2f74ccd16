package controller

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

var update = flag.Bool("update", false, "write testdata/scenarios.txt again")

// given are answers of the service to reads by path, or to writes by method and path: JSON, or
// a status. What it does not have is not there.
type given map[string]string

// usual is what the service has in most scenarios: tenant red with partition 0x0100 and port 11,
// and a last revision that is proved.
var usual = given{
	"/tenants/red":       `{"item":{"name":"red","keys":{"first":"0x0100","last":"0x01ff"},"quota":{"partitions":4}}}`,
	"/revisions":         `{"items":[{"revision":9}]}`,
	"/revisions/9":       `{"item":{"revision":9,"outcome":{"state":"proved","verdict":"isolated"}}}`,
	"/revisions/8":       `{"item":{"revision":8,"outcome":{"state":"proved","verdict":"isolated"}}}`,
	"/partitions/0x0100": `{"item":{"pkey":"0x0100","name":"training","owner":"red","members":2}}`,
	"/partitions":        `{"items":[]}`,
	"/ports":             `{"items":[` + port11 + `]}`,
	"/ports/" + guid11:   `{"item":` + port11 + `}`,
	"/pools":             `{"items":[]}`,
	"/tokens":            `{"items":[]}`,
	"/approvals":         `{"items":[]}`,
	member11:             `{"item":{"port":"` + guid11 + `","membership":"full","state":"member"}}`,
}

const (
	guid11   = "0x0000000000000011"
	guid12   = "0x0000000000000012"
	member11 = "/partitions/0x0100/members/" + guid11
	port11   = `{"guid":"` + guid11 + `","owner":"red","switch":"0x0000000000000051","switch_port":7}`
	failed8  = `{"item":{"revision":8,"outcome":{"state":"failed","verdict":"violated"}}}`
)

// fakeService answers as given, and keeps what it was asked. then has what it answers to
// reads after a write.
type fakeService struct {
	mu     sync.Mutex
	has    given
	then   map[string]given
	asked  []string
	writes int
	fails  int // the number of the request that fails, from 1; 0 for none
}

func (s *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body) // of this test
	path := strings.TrimPrefix(r.URL.Path, api.Prefix)
	text := r.Method + " " + path
	if r.URL.RawQuery != "" {
		text += "?" + r.URL.RawQuery
	}
	for _, name := range []string{"If-Match", "If-None-Match", "Why", "Authorization"} {
		if v := r.Header.Get(name); v != "" {
			text += ", " + name + ": " + v
		}
	}
	if len(body) > 0 {
		text += " " + string(body)
	}
	s.asked = append(s.asked, text)
	key, write := path, r.Method != http.MethodGet
	answer, ok := s.has[r.Header.Get("Authorization")+" "+key] // to one caller alone
	if !ok {
		answer, ok = s.has[key]
	}
	if write {
		key = r.Method + " " + path
		if answer, ok = s.has[key]; !ok {
			answer, ok = `{"revision":8,"words":["done"],"secret":"ibw_new"}`, true
		}
	}
	w.Header().Set("ETag", `"7"`)
	status := http.StatusOK
	switch {
	case len(s.asked) == s.fails:
		status, answer = http.StatusInternalServerError, `{"reason":"broken","detail":"the service is broken"}`
	case !ok:
		status, answer = http.StatusNotFound, `{"reason":"not-found","detail":"there is no such thing"}`
	case len(answer) == 3:
		fmt.Sscan(answer, &status)
		answer = map[string]string{"409": `{"reason":"over-quota","detail":"that is too much"}`, "412": `{"reason":"stale","detail":"it has changed"}`, "401": `{"reason":"unauthorized","detail":"who is that"}`}[answer]
	case write && r.URL.Query().Get("dry_run") == "":
		s.writes++
		for k, v := range s.then[key] {
			if s.has[k] = v; v == "" {
				delete(s.has, k)
			}
		}
	}
	w.WriteHeader(status)
	fmt.Fprint(w, answer)
}

// recorded keeps the reasons of events.
type recorded []string

func (e *recorded) Eventf(_ runtime.Object, _ runtime.Object, kind, reason, action, note string, args ...any) {
	*e = append(*e, fmt.Sprintf("%s %s %s: %s", kind, reason, action, fmt.Sprintf(note, args...)))
}

// scenario is one look at an object.
type scenario struct {
	name    string
	object  kube.Object
	others  []kube.Object
	service given // over what is usual; an empty answer takes one away
	then    map[string]given
}

// run looks at the object once, and says what came of it.
func (x *scenario) run(t *testing.T, fails int) (text string, s *fakeService, result reconcile.Result, err error) {
	t.Helper()
	return x.runOn(t, fails, new(failing))
}

// failing is an API server of which one call fails.
type failing struct {
	calls []string
	fails int // its number, from 1; 0 for none
	ended bool
}

var errFails = errors.New("the API server does not answer")

// call notes a call, and says what it comes to.
func (f *failing) call(verb string, o any) error {
	if f.ended {
		return nil // what is left is read
	}
	if f.calls = append(f.calls, fmt.Sprintf("%s %T", verb, o)); len(f.calls) == f.fails {
		return errFails
	}
	return nil
}

// funcs are the calls.
func (f *failing) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c kube.WithWatch, key kube.ObjectKey, o kube.Object, opts ...kube.GetOption) error {
			return cmp.Or(f.call("get", o), c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c kube.WithWatch, o kube.ObjectList, opts ...kube.ListOption) error {
			return cmp.Or(f.call("list", o), c.List(ctx, o, opts...))
		},
		Create: func(ctx context.Context, c kube.WithWatch, o kube.Object, opts ...kube.CreateOption) error {
			if err := f.call("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c kube.WithWatch, o kube.Object, opts ...kube.DeleteOption) error {
			if err := f.call("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c kube.WithWatch, o kube.Object, opts ...kube.UpdateOption) error {
			if err := f.call("update", o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c kube.WithWatch, o kube.Object, patch kube.Patch, opts ...kube.PatchOption) error {
			if err := f.call("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c kube.Client, sub string, o kube.Object, patch kube.Patch, opts ...kube.SubResourcePatchOption) error {
			if err := f.call("patch "+sub, o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
	}
}

// runOn is run with an API server.
func (x *scenario) runOn(t *testing.T, fails int, on *failing) (text string, s *fakeService, result reconcile.Result, err error) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s = &fakeService{has: given{}, then: x.then, fails: fails}
	for _, g := range []given{usual, x.service} {
		for k, v := range g {
			if s.has[k] = v; v == "" {
				delete(s.has, k)
			}
		}
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s}
	go func() { _ = server.Serve(l) }() // until it is closed
	defer server.Close()
	objects := []kube.Object{x.object.DeepCopyObject().(kube.Object)}
	for _, o := range x.others {
		objects = append(objects, o.DeepCopyObject().(kube.Object))
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.IBTenant{}, &v1alpha1.IBPartition{}, &v1alpha1.IBPortBinding{}).
		WithInterceptorFuncs(on.funcs()).Build()
	var seen recorded
	b := base{Client: c, reader: c, service: &Service{Server: listen.Server{Socket: socket}}, events: &seen, limits: DefaultLimits, namespace: "system"}
	var r reconcile.Reconciler
	switch x.object.(type) {
	case *v1alpha1.IBTenant:
		r = &tenants{b}
	case *v1alpha1.IBPartition:
		r = &partitions{b}
	case *v1alpha1.IBPortBinding:
		r = &bindings{b}
	}
	key := kube.ObjectKeyFromObject(x.object)
	result, err = r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	on.ended = true
	var out strings.Builder
	for _, a := range s.asked {
		out.WriteString("  " + a + "\n")
	}
	for _, e := range seen {
		out.WriteString("  event " + e + "\n")
	}
	if result.RequeueAfter != 0 {
		unit := time.Second
		if result.RequeueAfter > time.Minute {
			unit = time.Minute // of what is left of it
		}
		fmt.Fprintf(&out, "  again after %v\n", result.RequeueAfter.Round(unit))
	}
	if err != nil {
		fmt.Fprintf(&out, "  error %v\n", strings.ReplaceAll(err.Error(), socket, "SOCKET"))
	}
	out.WriteString(left(c, x.object))
	var secret corev1.Secret
	if c.Get(context.Background(), types.NamespacedName{Namespace: "system", Name: "ibtenant-red"}, &secret) == nil {
		fmt.Fprintf(&out, "  token %s\n", secret.Data["token"])
	}
	return out.String(), s, result, err
}

// left is what is left of an object: its status, and whether it is held.
func left(c kube.Client, o kube.Object) string {
	o = o.DeepCopyObject().(kube.Object)
	if c.Get(context.Background(), kube.ObjectKeyFromObject(o), o) != nil {
		return "  gone\n"
	}
	out, s := "", v1alpha1.Status{}
	switch o := o.(type) {
	case *v1alpha1.IBTenant:
		out, s = fmt.Sprintf("owned %v, ports %d", o.Status.Owned, o.Status.Ports), o.Status.Status
	case *v1alpha1.IBPartition:
		out, s = fmt.Sprintf("pkey %s, members %d", o.Status.PKey, o.Status.Members), o.Status.Status
	case *v1alpha1.IBPortBinding:
		out, s = fmt.Sprintf("pkey %s, port %s", o.Status.PKey, o.Status.Port), o.Status.Status
	}
	out = fmt.Sprintf("  %s, held %v, generation %d, revision %d, verdict %s, approval %s\n", out, len(o.GetFinalizers()) > 0, s.ObservedGeneration, s.Revision, s.Verdict, s.Approval)
	for _, c := range s.Conditions {
		out += fmt.Sprintf("  %s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return out
}

var (
	longAgo = metav1.NewTime(time.Unix(1e9, 0))
	secret  = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "ibtenant-red"}, Data: map[string][]byte{"token": []byte("ibw_old")}}
)

// head makes the metadata of an object that the controller holds already.
func head(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1, Finalizers: []string{v1alpha1.Finalizer}, CreationTimestamp: longAgo}
}

func redTenant(change ...func(*v1alpha1.IBTenant)) *v1alpha1.IBTenant {
	t := &v1alpha1.IBTenant{ObjectMeta: head("", "red")}
	t.Spec = v1alpha1.IBTenantSpec{Namespace: "ns", PKeys: v1alpha1.PKeyRange{First: "0x0100", Last: "0x01ff"}, Quota: v1alpha1.Quota{Partitions: 4}, Ports: []v1alpha1.TenantPort{{GUID: guid11}}}
	t.Status.Owned, t.Status.Ports, t.Status.Revision, t.Status.ObservedGeneration = true, 1, 8, 1
	for _, c := range change {
		c(t)
	}
	return t
}

func training(change ...func(*v1alpha1.IBPartition)) *v1alpha1.IBPartition {
	p := &v1alpha1.IBPartition{ObjectMeta: head("ns", "training")}
	p.Status.PKey, p.Status.Members, p.Status.Revision, p.Status.ObservedGeneration = "0x0100", 2, 8, 1
	for _, c := range change {
		c(p)
	}
	return p
}

func bound(change ...func(*v1alpha1.IBPortBinding)) *v1alpha1.IBPortBinding {
	b := &v1alpha1.IBPortBinding{ObjectMeta: head("ns", "one"), Spec: v1alpha1.IBPortBindingSpec{Partition: "training", Port: guid11, Membership: v1alpha1.Full}}
	b.Status.PKey, b.Status.Port, b.Status.Revision, b.Status.ObservedGeneration, b.Status.Verdict = "0x0100", guid11, 8, 1, "isolated"
	for _, c := range change {
		c(b)
	}
	return b
}

func deleting(o kube.Object) { now := longAgo; o.SetDeletionTimestamp(&now) }

func condition(s *v1alpha1.Status, kind, reason string, at time.Time) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "as before", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(at)})
}

// owner is what a namespace has whose tenant is settled.
var owner = []kube.Object{redTenant(), secret}

func with(o ...kube.Object) []kube.Object { return append(o, owner...) }

// TestScenarios: what each look at an object asks the service for, and leaves behind.
// testdata/scenarios.txt has all of it: go test -update writes it, and the difference is to be
// read.
func TestScenarios(t *testing.T) {
	var b strings.Builder
	for _, x := range scenarios() {
		text, _, _, _ := x.run(t, 0)
		fmt.Fprintf(&b, "%s\n%s\n", x.name, text)
	}
	path := filepath.Join("testdata", "scenarios.txt")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.Split(b.String(), "\n\n"), strings.Split(string(data), "\n\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			t.Fatalf("%d scenarios, want %d", len(got), len(want))
		}
		if got[i] != want[i] {
			t.Errorf("got\n%s\nwant\n%s", got[i], want[i])
		}
	}
}

// TestServiceFails: whichever request fails, the object is not said to be ready, nor let go,
// and it is looked at again; and after a read that failed nothing is written.
func TestServiceFails(t *testing.T) {
	for _, x := range scenarios() {
		_, s, _, _ := x.run(t, 0)
		for n := 1; n <= len(s.asked); n++ {
			text, failing, result, err := x.run(t, n)
			if err == nil && result.RequeueAfter == 0 {
				t.Errorf("%s: request %d fails, and the object is not looked at again\n%s", x.name, n, text)
			}
			if strings.Contains(text, "Ready True") || strings.Contains(text, "  gone\n") {
				t.Errorf("%s: request %d fails, and the object is ready or gone\n%s", x.name, n, text)
			}
			for _, a := range failing.asked[n:] {
				if strings.HasPrefix(failing.asked[n-1], "GET") && !strings.HasPrefix(a, "GET") {
					t.Errorf("%s: %s fails, and then comes %s", x.name, failing.asked[n-1], a)
				}
			}
		}
	}
}

// TestAPIServerFails: whichever call of Kubernetes fails, the object is looked at again, is not
// said to be ready, and what it holds is not let go.
func TestAPIServerFails(t *testing.T) {
	for _, x := range scenarios() {
		whole := new(failing)
		x.runOn(t, 0, whole)
		calls := whole.calls
		for n := 1; n <= len(calls); n++ {
			text, _, result, err := x.runOn(t, 0, &failing{fails: n})
			if err == nil && result.RequeueAfter == 0 {
				t.Errorf("%s: %s (%d) fails, and the object is not looked at again\n%s", x.name, calls[n-1], n, text)
			}
			if strings.Contains(text, "  gone\n") {
				t.Errorf("%s: %s (%d) fails, and the object is gone\n%s", x.name, calls[n-1], n, text)
			}
		}
	}
}
