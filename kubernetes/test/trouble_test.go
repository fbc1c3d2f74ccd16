package kubetest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
	"github.com/ibwarden/ibwarden/test/need"
)

// The controller is killed again and again while objects come and go: what it left half done
// it finishes, and nothing is there twice.
func TestKilled(t *testing.T) {
	s := newStand(t)
	p := s.pair()
	r := rand.New(rand.NewPCG(need.Seed(t, 1), 0))
	var made []kube.Object
	kill := func() {
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		s.end(s.controller, syscall.SIGKILL)
		s.control()
	}
	for i := range 4 {
		part := partition(p.inRed, fmt.Sprint("p", i), "")
		one := binding(p.inRed, fmt.Sprint("b", i), part.Name, p.reds[i])
		s.create(part)
		s.create(one)
		made = append(made, one, part)
		kill()
	}
	for _, o := range made {
		s.ready(o)
	}
	list, err := client.All[api.Partition](t.Context(), s.provider, "/partitions", nil)
	if err != nil || len(list) != 4 {
		t.Errorf("the service has %+v, %v: want four partitions", list, err)
	}
	for i, g := range p.reds {
		s.holds(g, string(made[2*i+1].(*v1alpha1.IBPartition).Status.PKey)+" true")
	}
	for _, o := range append(made, p.red) {
		if err := s.admin.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	kill()
	kill()
	for _, o := range append(made, p.red) {
		s.gone(o)
	}
	for _, g := range p.reds {
		s.holds(g)
	}
	if list, err = client.All[api.Partition](t.Context(), s.provider, "/partitions", nil); err != nil || len(list) != 0 {
		t.Errorf("the service has %+v, %v: want nothing", list, err)
	}
}

// While the service is away the status says so, nothing is lost, and what was asked for
// meanwhile is done when it is back. A tenant's token that is gone is made again.
func TestTheServiceIsAway(t *testing.T) {
	s := newStand(t)
	p := s.pair()
	training := partition(p.inRed, "training", "")
	s.create(training)
	s.ready(training)
	s.end(s.service, syscall.SIGTERM)
	one := binding(p.inRed, "one", "training", p.reds[0])
	s.create(one)
	s.condition(one, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonUnreachable)
	s.condition(training, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonUnreachable)
	if err := s.admin.Delete(t.Context(), p.blue); err != nil {
		t.Fatal(err)
	}
	s.condition(p.blue, v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonUnreachable)
	s.serve()
	s.ready(one)
	s.ready(training)
	s.holds(p.reds[0], "0x0100 true")
	s.gone(p.blue)
	before := s.token("red")
	if err := s.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "ibtenant-red"}}); err != nil {
		t.Fatal(err)
	}
	s.await("a new token", func() error {
		if now := s.token("red"); now == "" || now == before {
			return fmt.Errorf("it is the old one, or none")
		}
		return nil
	})
	list, err := client.All[api.Token](t.Context(), s.provider, "/tokens", nil)
	if err != nil || len(list) != 2 { // the provider's, and one of the tenant
		t.Errorf("%d tokens, %v: want the lost one deleted", len(list), err)
	}
	s.ready(one)
}

// token is the token of a tenant; empty for none.
func (s *stand) token(tenant string) string {
	s.Helper()
	var secret corev1.Secret
	err := s.admin.Get(s.Context(), types.NamespacedName{Namespace: system, Name: "ibtenant-" + tenant}, &secret)
	if kube.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return string(secret.Data["token"])
}

// What somebody else changes through the service's API is brought back, and told.
func TestConflictingEdits(t *testing.T) {
	s := newStand(t)
	p := s.pair()
	training, one := partition(p.inRed, "training", "0x0110"), binding(p.inRed, "one", "training", p.reds[0])
	s.create(training)
	s.create(one)
	s.ready(one)
	back := func(what string, is func() bool) {
		t.Helper()
		s.await(what, func() error {
			if !is() {
				return fmt.Errorf("it is not brought back")
			}
			return nil
		})
		s.ready(training)
		s.ready(one)
		s.holds(p.reds[0], "0x0110 true")
	}
	_, etag, err := client.Get[api.Partition](t.Context(), s.provider, "/partitions/0x0110", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.provide(http.MethodPut, "/partitions/0x0110", client.Params{Match: etag}, api.PartitionBody{Name: "mine", Owner: "red", SL: 3})
	back("the name", func() bool { got := s.has("0x0110"); return got != nil && got.Name == "training" && got.SL == 0 })
	s.provide(http.MethodDelete, "/partitions/0x0110/members/"+string(p.reds[0]), client.Params{}, nil)
	back("the member", func() bool { got := s.has("0x0110"); return got != nil && got.Members == 1 })
	s.provide(http.MethodDelete, "/partitions/0x0110", client.Params{}, nil)
	back("the partition", func() bool { got := s.has("0x0110"); return got != nil && got.Members == 1 })
	_, etag, err = client.Get[api.Tenant](t.Context(), s.provider, "/tenants/red", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.provide(http.MethodPut, "/tenants/red", client.Params{Match: etag}, api.TenantBody{Keys: &api.KeyRange{First: "0x0100", Last: "0x01fe"}})
	back("the keys", func() bool {
		got, _, err := client.Get[api.Tenant](t.Context(), s.provider, "/tenants/red", nil)
		return err == nil && got.Keys != nil && got.Keys.Last == "0x01ff"
	})
	// Both sides at once, many times: what Kubernetes says last is how it ends.
	for i := range 10 {
		if err := s.change(training, func() { training.Spec.ServiceLevel = int32(i % 4) }); err != nil {
			t.Fatal(err)
		}
		if _, etag, err := client.Get[api.Partition](t.Context(), s.provider, "/partitions/0x0110", nil); err == nil {
			var out api.Changed
			_ = s.provider.Write(t.Context(), http.MethodPut, "/partitions/0x0110", client.Params{Match: etag}, api.PartitionBody{Name: "training", Owner: "red", SL: 9}, &out)
		}
	}
	back("the level", func() bool { got := s.has("0x0110"); return got != nil && got.SL == 1 })
	s.saw(p.inRed, "training", v1alpha1.ReasonBroughtBack)
	s.saw(p.inRed, "one", v1alpha1.ReasonBroughtBack)
	// A port that the tenant loses leaves the partition at once, whatever its binding says.
	if err := s.change(p.red, func() { p.red.Spec.Ports = p.red.Spec.Ports[1:] }); err != nil {
		t.Fatal(err)
	}
	s.ready(p.red)
	s.condition(one, v1alpha1.ConditionAccepted, metav1.ConditionFalse, "Forbidden")
	s.holds(p.reds[0])
}

// provide makes a change as the provider.
func (s *stand) provide(method, path string, p client.Params, body any) {
	s.Helper()
	var out api.Changed
	if err := s.provider.Write(s.Context(), method, path, p, body, &out); err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
}

// ufm sends one of the calls that ib-kubernetes makes, as a tenant.
func (s *stand) ufm(tenant, method, path, body string) string {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, "http://"+s.listen+path, bytes.NewReader([]byte(body)))
	if err != nil {
		s.Fatal(err)
	}
	r.SetBasicAuth(tenant, s.token(tenant))
	r.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer a.Body.Close()
	out, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		s.Fatalf("%s %s: %s %s, %v", method, path, a.Status, out, err)
	}
	return string(out)
}

// ib-kubernetes works on other partitions of the same tenant at the same time, and on members
// of the controller's: neither touches what is the other's.
func TestBesideIBKubernetes(t *testing.T) {
	s := newStand(t)
	red := tenant("red", s.namespace("red"), "0x0100", "0x01ff", hosts[0])
	red.Spec.Pools = []v1alpha1.Pool{{First: "0x0200000000000000", Last: "0x02000000000000ff"}}
	s.create(red)
	s.ready(red)
	training, one := partition(red.Spec.Namespace, "training", "0x0110"), binding(red.Spec.Namespace, "one", "training", hosts[0])
	s.create(training)
	s.create(one)
	for i := range 20 {
		s.ufm("red", "POST", "/ufmRest/resources/pkeys", fmt.Sprintf(`{"pkey":"0x0101","index0":true,"ip_over_ib":true,"membership":"full","guids":["02000000000000%02x"]}`, i))
	}
	s.ready(one)
	s.ufm("red", "POST", "/ufmRest/resources/pkeys", `{"pkey":"0x0110","index0":true,"ip_over_ib":false,"membership":"full","guids":["0200000000000042"]}`)
	looked := time.Now().Add(3 * time.Second) // several resyncs
	for time.Now().Before(looked) {
		if a, b := s.has("0x0101"), s.has("0x0110"); a == nil || a.Members != 20 || b == nil || b.Members != 2 {
			t.Fatalf("the service has %+v and %+v: want 20 and 2 members", a, b)
		}
		time.Sleep(lookEvery)
	}
	s.delete(one)
	if err := s.admin.Delete(t.Context(), training); err != nil {
		t.Fatal(err)
	}
	if c := s.condition(training, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse); !strings.Contains(c.Message, "no IBPortBinding stands for") {
		t.Errorf("%+v", c)
	}
	s.ufm("red", "POST", "/ufmRest/actions/remove_guids_from_pkey", `{"pkey":"0x0110","guids":["0200000000000042"]}`)
	s.gone(training)
	if err := s.admin.Delete(t.Context(), red); err != nil {
		t.Fatal(err)
	}
	if c := s.condition(red, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse); !strings.Contains(c.Message, "0x0101") {
		t.Errorf("%+v", c)
	}
	if got := s.has("0x0101"); got == nil || got.Members != 20 {
		t.Errorf("the service has %+v", got)
	}
}

// Random operations, a model of what Kubernetes says, and the fabric: at no verdict holds a
// port a key of the other namespace, and at the end everything is as the model has it.
func TestRandom(t *testing.T) {
	s := newStand(t)
	p := s.pair()
	r := rand.New(rand.NewPCG(need.Seed(t, 7), 0))
	ours := map[string][]v1alpha1.GUID{p.inRed: p.reds, p.inBlue: p.blues}
	namespaces := []string{p.inRed, p.inBlue}
	check := func() {
		proof, err := client.Whole[struct{ Item views.Proof }](t.Context(), s.provider, "/proof", nil)
		if err == nil && proof.Item.Verdict == "violated" {
			t.Fatalf("the verdict is violated: %+v", proof.Item)
		}
		ports, err := client.All[views.Port](t.Context(), s.provider, "/ports", nil)
		if err != nil {
			return // it is away
		}
		for _, x := range ports {
			for ns, first := range map[string]string{p.inRed: "0x01", p.inBlue: "0x02"} {
				for _, k := range x.Partitions {
					if strings.HasPrefix(k, first) && !slices.Contains(ours[ns], v1alpha1.GUID(x.GUID)) {
						t.Fatalf("port %s of %s is in %s", x.GUID, x.Owner, k)
					}
				}
			}
		}
	}
	for range need.Rounds(50, 500) {
		ns := namespaces[r.IntN(2)]
		part, bind := partition(ns, fmt.Sprint("p", r.IntN(3)), ""), binding(ns, fmt.Sprint("b", r.IntN(6)), fmt.Sprint("p", r.IntN(3)), hosts[r.IntN(len(hosts))])
		if r.IntN(3) == 0 {
			bind.Spec.Membership = v1alpha1.Limited
		}
		var err error
		switch n := r.IntN(20); {
		case n < 5:
			err = s.admin.Create(t.Context(), part)
		case n < 12:
			if err = s.admin.Create(t.Context(), bind); err == nil && !slices.Contains(ours[ns], bind.Spec.Port) {
				t.Fatalf("%s is let into namespace %s", bind.Spec.Port, ns)
			}
		case n < 14:
			err = kube.IgnoreNotFound(s.admin.Delete(t.Context(), part))
		case n < 17:
			err = kube.IgnoreNotFound(s.admin.Delete(t.Context(), bind))
		case n < 19:
			var got v1alpha1.IBPortBinding
			if err = s.admin.Get(t.Context(), kube.ObjectKeyFromObject(bind), &got); err == nil {
				got.Spec.Membership = bind.Spec.Membership
				err = s.admin.Update(t.Context(), &got)
			}
		default:
			s.end(s.controller, syscall.SIGKILL)
			s.control()
		}
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		check()
	}
	s.settle(namespaces, ours, check)
}

// settle waits until the service's partitions and the tables of ports are as the objects say.
func (s *stand) settle(namespaces []string, ours map[string][]v1alpha1.GUID, check func()) {
	s.Helper()
	s.await("the fabric to be as Kubernetes says", func() error {
		check()
		keys, parts := map[v1alpha1.GUID][]string{}, 0
		for _, ns := range namespaces {
			var ps v1alpha1.IBPartitionList
			var bs v1alpha1.IBPortBindingList
			if err := s.admin.List(s.Context(), &ps, kube.InNamespace(ns)); err != nil {
				return err
			}
			if err := s.admin.List(s.Context(), &bs, kube.InNamespace(ns)); err != nil {
				return err
			}
			number := map[string]v1alpha1.PKey{}
			for _, x := range ps.Items {
				if x.Status.PKey == "" || s.has(x.Status.PKey) == nil {
					return fmt.Errorf("partition %s is not there: %+v", x.Name, x.Status)
				}
				number[x.Name] = x.Status.PKey
				parts++
			}
			for _, x := range bs.Items {
				if !x.DeletionTimestamp.IsZero() {
					return fmt.Errorf("binding %s is not gone: %+v", x.Name, x.Status)
				}
				if k := number[x.Spec.Partition]; k != "" {
					keys[x.Spec.Port] = append(keys[x.Spec.Port], fmt.Sprintf("%s %v", k, x.Spec.Membership == v1alpha1.Full))
				}
			}
		}
		list, err := client.All[api.Partition](s.Context(), s.provider, "/partitions", nil)
		if err != nil || len(list) != parts {
			return fmt.Errorf("the service has %d partitions, %v: want %d", len(list), err, parts)
		}
		for _, g := range hosts {
			slices.Sort(keys[g])
			if got := s.keys(g); !slices.Equal(got, keys[g]) {
				return fmt.Errorf("port %s holds %v: want %v", g, got, keys[g])
			}
		}
		return nil
	})
}
