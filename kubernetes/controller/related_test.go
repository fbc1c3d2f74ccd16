package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// TestRelated: when an object changes, those that depend on it are looked at, and none of
// another namespace or partition; where they cannot be listed, none.
func TestRelated(t *testing.T) {
	at := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	tenant := func(name, namespace string, gone bool) *v1alpha1.IBTenant {
		x := &v1alpha1.IBTenant{ObjectMeta: head("", name), Spec: v1alpha1.IBTenantSpec{Namespace: namespace}}
		if gone {
			deleting(x)
		}
		return x
	}
	binding := func(namespace, name, partition string) *v1alpha1.IBPortBinding {
		return &v1alpha1.IBPortBinding{ObjectMeta: at(namespace, name), Spec: v1alpha1.IBPortBindingSpec{Partition: partition}}
	}
	red := tenant("red", "ns", false)
	p := &v1alpha1.IBPartition{ObjectMeta: at("ns", "training")}
	one := binding("ns", "one", "training")
	objects := []kube.Object{
		red, tenant("going", "ns", true), tenant("blue", "other", true), p, &v1alpha1.IBPartition{ObjectMeta: at("ns", "storage")},
		&v1alpha1.IBPartition{ObjectMeta: at("other", "training")}, one, binding("ns", "two", "storage"), binding("other", "three", "training"),
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var fails error
	b := &base{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c kube.WithWatch, list kube.ObjectList, opts ...kube.ListOption) error {
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			return fails
		},
	}).Build()}
	for _, x := range []struct {
		what string
		of   func(context.Context, kube.Object) []types.NamespacedName
		o    kube.Object
		want string
	}{
		{"tenants of a partition", b.tenantOf, p, "[/going]"},
		{"tenants of a binding", b.tenantOf, one, "[/going]"},
		{"partitions of a tenant", b.partitionsOf, red, "[ns/storage ns/training]"},
		{"partitions of what is no tenant", b.partitionsOf, one, "[]"},
		{"bindings of a tenant", b.bindingsOf, red, "[ns/one ns/two]"},
		{"bindings of what is no tenant", b.bindingsOf, p, "[]"},
		{"bindings of a partition", b.bindingsIn, p, "[ns/one]"},
		{"partition of a binding", b.partitionOf, one, "[ns/training]"},
		{"partition of what is no binding", b.partitionOf, p, "[]"},
	} {
		for _, fails = range []error{nil, errFails} {
			want := x.want
			if fails != nil && x.what != "partition of a binding" {
				want = "[]"
			}
			got := x.of(t.Context(), x.o)
			slices.SortFunc(got, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
			if fmt.Sprint(got) != want {
				t.Errorf("%s, %v: %v, want %s", x.what, fails, got, want)
			}
		}
	}
	older, younger := tenant("b", "ns", false), tenant("a", "ns", false)
	younger.CreationTimestamp = metav1.NewTime(longAgo.Add(time.Second))
	same := tenant("c", "ns", false)
	list := []v1alpha1.IBTenant{*younger, *same, *older}
	if got := First(list, "ns"); got == nil || got.Name != "b" {
		t.Errorf("the first of a namespace is %v", got)
	}
	if got := First(list, "other"); got != nil {
		t.Errorf("a namespace of nobody has %v", got)
	}
}

// TestClients: the provider's token is read for every use, and a client is made again when its
// token is another; without a token only a Unix socket is asked.
func TestClients(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	s := &Service{Server: listen.Server{Socket: filepath.Join(dir, "s")}, TokenFile: file}
	for _, x := range []struct{ text, want string }{
		{"", "want a token, in at most 4096 bytes"}, {" \n", "want a token, in at most 4096 bytes"},
		{strings.Repeat("x", tokenMax+1), "want a token, in at most 4096 bytes"}, {strings.Repeat("x", tokenMax), ""},
	} {
		if err := os.WriteFile(file, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := s.provider()
		if (err == nil) != (x.want == "") || (c == nil) != (err != nil) || err != nil && err.Error() != "the provider's token: "+file+": "+x.want {
			t.Errorf("%.5q: %v, want %s", x.text, err, x.want)
		}
	}
	s.TokenFile += ".gone"
	if _, err := s.provider(); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "the provider's token: ") {
		t.Errorf("no file: %v", err)
	}
	s.TokenFile = ""
	if c, err := s.provider(); err != nil || c == nil || s.clients[""].token != "" {
		t.Errorf("a socket: %v", err)
	}
	if _, err := (&Service{Server: listen.Server{URL: "https://127.0.0.1:1"}}).provider(); err == nil || err.Error() != "the provider's token: want a file with it" {
		t.Errorf("no token for a URL: %v", err)
	}
	red, err := s.with("red", "a")
	if err != nil {
		t.Fatal(err)
	}
	blue, err := s.with("blue", "a")
	if err != nil || blue == red {
		t.Errorf("two tenants have one client: %v", err)
	}
	if again, err := s.with("red", "a"); err != nil || again != red {
		t.Errorf("the same token has another client: %v", err)
	}
	other, err := s.with("red", "b")
	if err != nil || other == red {
		t.Errorf("another token has the same client: %v", err)
	}
	s.forget("red")
	if s.clients["red"] != nil || s.clients["blue"] == nil {
		t.Error("a tenant that is gone has a client, or another has none")
	}
	if again, err := s.with("red", "b"); err != nil || again == other {
		t.Errorf("a client outlives its tenant: %v", err)
	}
	if _, err := (&Service{Server: listen.Server{URL: "https://127.0.0.1:1"}, CA: []byte("x")}).with("red", "a"); err == nil {
		t.Error("CAs that are none are taken")
	}
}

type once struct {
	result reconcile.Result
	err    error
}

func (o once) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return o.result, o.err
}

// TestWhereFailuresLead: what has changed meanwhile is no error; what the service does not take
// is tried again later, what it cannot answer is repeated; a message fits its condition.
func TestWhereFailuresLead(t *testing.T) {
	after := reconcile.Result{RequeueAfter: time.Hour}
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", errFails)
	for _, x := range []struct {
		in   once
		want once
	}{
		{once{after, nil}, once{after, nil}}, {once{after, errFails}, once{after, errFails}},
		{once{after, conflict}, once{reconcile.Result{RequeueAfter: DefaultLimits.First}, nil}},
	} {
		got, err := quiet{x.in, DefaultLimits}.Reconcile(t.Context(), reconcile.Request{})
		if got != x.want.result || err != x.want.err {
			t.Errorf("%+v: %+v, %v", x.in, got, err)
		}
	}
	b := &base{limits: DefaultLimits}
	if s := b.failed(errFails); s.reason != v1alpha1.ReasonUnreachable || s.err != errFails || s.status != metav1.ConditionUnknown || s.message != errFails.Error() || s.condition != v1alpha1.ConditionAccepted || s.settled() {
		t.Errorf("no answer: %+v", s)
	}
	for status, repeated := range map[int]bool{
		http.StatusBadRequest: false, http.StatusUnauthorized: true, http.StatusForbidden: false, http.StatusNotFound: false, http.StatusConflict: false,
		http.StatusRequestTimeout: true, http.StatusPreconditionFailed: true, http.StatusUnprocessableEntity: false, http.StatusTooManyRequests: true,
		499: false, 500: true, 503: true,
	} {
		err := error(&api.Problem{Status: status, Reason: "over-quota", Detail: "d"})
		s := b.failed(fmt.Errorf("asked: %w", err))
		want := step{condition: v1alpha1.ConditionAccepted, status: metav1.ConditionFalse, reason: "OverQuota", message: s.message, after: DefaultLimits.Again}
		if repeated {
			want.status, want.after, want.err = metav1.ConditionUnknown, 0, s.err
		}
		if *s != want || (s.err != nil) != repeated || !strings.Contains(s.message, "asked: ") {
			t.Errorf("%d: %+v, want %+v", status, s, want)
		}
		if !isStatus(err, status) || isStatus(err, status+1) || isStatus(errFails, status) {
			t.Errorf("status %d is not told", status)
		}
	}
	for reason, want := range map[string]string{"over-quota": "OverQuota", "busy": "Busy", "a--b-": "AB", "": v1alpha1.ReasonUnreachable, "-": v1alpha1.ReasonUnreachable} {
		if got := camel(reason); got != want {
			t.Errorf("%q is %s, want %s", reason, got, want)
		}
	}
	for text, want := range map[string]string{
		"short": "short", strings.Repeat("x", messageMax): strings.Repeat("x", messageMax),
		strings.Repeat("x", messageMax+1):              strings.Repeat("x", messageMax-3) + "...",
		strings.Repeat("x", messageMax-4) + "ééé":      strings.Repeat("x", messageMax-4) + "...",
		strings.Repeat("x", messageMax-4) + "yéxxxxxx": strings.Repeat("x", messageMax-4) + "y...",
	} {
		if got := shorten(text); got != want || len(got) > messageMax {
			t.Errorf("%d bytes: %d, want %d", len(text), len(got), len(want))
		}
	}
	for _, o := range []object{tenant{redTenant()}, partition{training()}, binding{bound()}} {
		if raw(o).GetName() == "" || o.common() == nil || o.common().Revision != 8 {
			t.Errorf("%T has the status %+v", o, o.common())
		}
	}
}
