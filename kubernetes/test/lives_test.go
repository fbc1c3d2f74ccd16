package kubetest

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// Ports of hosts of the demonstration fabric.
var hosts = []v1alpha1.GUID{
	"0x000000000010000b", "0x000000000010000d", "0x000000000010000f", "0x0000000000100011",
	"0x0000000000100015", "0x0000000000100017", "0x0000000000100019", "0x000000000010001b",
}

// pair is two tenants with a namespace and four hosts each.
type pair struct {
	red, blue     *v1alpha1.IBTenant
	reds, blues   []v1alpha1.GUID
	inRed, inBlue string
}

func (s *stand) pair() pair {
	s.Helper()
	p := pair{reds: hosts[:4], blues: hosts[4:], inRed: s.namespace("red"), inBlue: s.namespace("blue")}
	p.red = tenant("red", p.inRed, "0x0100", "0x01ff", p.reds...)
	p.blue = tenant("blue", p.inBlue, "0x0200", "0x02ff", p.blues...)
	s.create(p.red)
	s.create(p.blue)
	s.ready(p.red)
	s.ready(p.blue)
	return p
}

// From nothing to keys in the tables of the fabric, and back.
func TestTwoNamespaces(t *testing.T) {
	s := newStand(t)
	p := s.pair()
	training, other := partition(p.inRed, "training", "0x0110"), partition(p.inBlue, "training", "")
	training.Spec.IPOverIB, training.Spec.MTU, training.Spec.Rate = true, 4096, "100"
	s.create(binding(p.inRed, "early", "training", p.reds[1])) // before its partition
	s.create(training)
	s.create(other)
	s.ready(training)
	s.ready(other)
	if training.Status.PKey != "0x0110" || other.Status.PKey != "0x0200" {
		t.Errorf("the numbers are %s and %s: want 0x0110, and the lowest of 0x0200-0x02ff", training.Status.PKey, other.Status.PKey)
	}
	if got := s.has("0x0110"); got == nil || got.Owner != "red" || got.Name != "training" || got.MTU != 4096 || got.Rate != 100 || !got.IPoverIB {
		t.Errorf("the service has %+v", got)
	}
	full, limited := binding(p.inRed, "one", "training", p.reds[0]), binding(p.inRed, "two", "training", p.reds[2])
	limited.Spec.Membership = v1alpha1.Limited
	blue := binding(p.inBlue, "one", "training", p.blues[0])
	for _, b := range []*v1alpha1.IBPortBinding{full, limited, blue} {
		s.create(b)
	}
	early := binding(p.inRed, "early", "", "")
	for _, b := range []*v1alpha1.IBPortBinding{full, limited, blue, early} {
		s.ready(b)
		if b.Status.Verdict == "" || b.Status.Revision == 0 {
			t.Errorf("%s is proved with the verdict %q at revision %d", b.Name, b.Status.Verdict, b.Status.Revision)
		}
	}
	s.holds(p.reds[0], "0x0110 true")
	s.holds(p.reds[1], "0x0110 true")
	s.holds(p.reds[2], "0x0110 false")
	s.holds(p.blues[0], "0x0200 true")
	s.holds(p.blues[1])

	// Another membership is a change; then everything goes, in the order that waits the most.
	if err := s.change(limited, func() { limited.Spec.Membership = v1alpha1.Full }); err != nil {
		t.Fatal(err)
	}
	s.ready(limited)
	s.holds(p.reds[2], "0x0110 true")
	if err := s.admin.Delete(t.Context(), p.red); err != nil {
		t.Fatal(err)
	}
	s.condition(p.red, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse)
	if err := s.admin.Delete(t.Context(), training); err != nil {
		t.Fatal(err)
	}
	s.condition(training, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse)
	for i, b := range []*v1alpha1.IBPortBinding{full, early, limited} {
		s.delete(b)
		// The object is gone: so is the key, already.
		s.holds([]v1alpha1.GUID{p.reds[0], p.reds[1], p.reds[2]}[i])
	}
	s.gone(training)
	if s.has("0x0110") != nil {
		t.Error("the partition is there after its object")
	}
	s.gone(p.red)
	if _, _, err := client.Get[api.Tenant](t.Context(), s.provider, "/tenants/red", nil); err == nil {
		t.Error("the tenant is there after its object")
	}
	var secret corev1.Secret
	if err := s.admin.Get(t.Context(), types.NamespacedName{Namespace: system, Name: "ibtenant-red"}, &secret); err == nil {
		t.Error("the token is there after its tenant")
	}
	s.holds(p.blues[0], "0x0200 true")
	// A new tenant gets the ports without the keys of the old one.
	heir := tenant("green", s.namespace("green"), "0x0100", "0x01ff", p.reds...)
	s.create(heir)
	s.ready(heir)
	for _, g := range p.reds {
		s.holds(g)
	}
	s.saw(p.inRed, "training", v1alpha1.ReasonInUse, v1alpha1.ReasonReady, v1alpha1.ReasonDeleted)
}

// saw waits until an object has had events with these reasons.
func (s *stand) saw(namespace, name string, reasons ...string) {
	s.Helper()
	s.await("events of "+name, func() error {
		var list eventsv1.EventList
		if err := s.admin.List(s.Context(), &list, kube.InNamespace(namespace)); err != nil {
			return err
		}
		got := map[string]bool{}
		for _, e := range list.Items {
			if e.Regarding.Name == name {
				got[e.Reason] = true
			}
		}
		for _, r := range reasons {
			if !got[r] {
				return fmt.Errorf("no event %s among %v", r, got)
			}
		}
		return nil
	})
}

// What is another's is refused before it is stored, and everything while the webhooks do not
// answer.
func TestAdmission(t *testing.T) {
	s := newStand(t)
	p := s.pair()
	ports := func(k v1alpha1.PKey, m v1alpha1.PKey, g ...v1alpha1.GUID) *v1alpha1.IBTenant {
		return tenant("third", "third", k, m, g...)
	}
	s.denied(tenant("second", p.inRed, "0x0300", "0x03ff"), "is the namespace of IBTenant red")
	s.denied(ports("0x01ff", "0x01ff"), "IBTenant red has 0x0100-0x01ff")
	s.denied(ports("0x0300", "0x03ff", p.blues[1]), "is a port of IBTenant blue")
	s.denied(ports("0x0301", "0x0300"), "first must not be above last")
	s.denied(ports("0x0300", "0x7fff"), "nobody's")
	s.denied(tenant("provider", "third", "0x0300", "0x03ff"), "not provider")
	for k, words := range map[v1alpha1.PKey]string{"0x0200": "may have 0x0100-0x01ff", "0x00ff": "may have", "0x7fff": "may have", "0x0000": "may have", "0x8100": "spec.pkey", "256": "spec.pkey"} {
		s.denied(partition(p.inRed, "x", k), words)
	}
	s.denied(partition("default", "x", "0x0100"), "no IBTenant has the namespace default")
	s.denied(partition("default", "x", ""), "no IBTenant has the namespace default")
	s.denied(binding("default", "x", "x", p.reds[0]), "no IBTenant has the namespace default")
	s.denied(binding(p.inRed, "x", "training", p.blues[0]), "is no port of namespace")
	s.denied(binding(p.inRed, "x", "training", "0x0000000000000000"), "is no port of namespace")
	s.denied(binding(p.inRed, "x", "training", "0X000000000010000B"), "spec.port")
	s.denied(binding(p.inRed, "x", "training", ""), "want port or place")
	training, one := partition(p.inRed, "training", "0x0110"), binding(p.inRed, "one", "training", p.reds[0])
	s.create(training)
	s.create(one)
	s.denied(partition(p.inRed, "more", "0x0110"), "is the number of IBPartition training")
	s.denied(binding(p.inRed, "more", "training", p.reds[0]), "IBPortBinding one has")
	s.ready(one)
	for what, err := range map[string]error{
		"cannot be changed: make another IBPartition": s.change(training, func() { training.Spec.PKey = "0x0111" }),
		"the port cannot be changed":                  s.change(one, func() { one.Spec.Port = p.reds[1] }),
		"the partition cannot be changed":             s.change(one, func() { one.Spec.Partition = "more" }),
		"the namespace cannot be changed":             s.change(p.red, func() { p.red.Spec.Namespace = "default" }),
		"IBTenant blue has 0x0200-0x02ff":             s.change(p.red, func() { p.red.Spec.PKeys.Last = "0x0200" }),
		"is a port of IBTenant blue":                  s.change(p.red, func() { p.red.Spec.Ports[0].GUID = p.blues[0] }),
		"Unsupported value: \"both\"":                 s.change(one, func() { one.Spec.Membership = "both" }),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v: want %q", err, what)
		}
	}
	s.holds(p.blues[0])
	s.end(s.controller, syscall.SIGKILL)
	s.denied(partition(p.inRed, "late", "0x0120"), "failed calling webhook")
	s.denied(binding(p.inRed, "late", "training", p.reds[1]), "failed calling webhook")
	s.denied(tenant("late", "late", "0x0300", "0x03ff"), "failed calling webhook")
}

// Where admission was off, the service refuses what is another's, and the status says so.
func TestTheServiceRefuses(t *testing.T) {
	s := newStand(t)
	p := s.pair()
	s.unhook(t.Context())
	foreign, fine := partition(p.inRed, "foreign", "0x0210"), partition(p.inRed, "fine", "0x0110")
	port := binding(p.inRed, "port", "fine", p.blues[0])
	nobody := partition("default", "nobody", "0x0110")
	second := tenant("second", p.inRed, "0x0300", "0x03ff", hosts[0])
	thief := tenant("thief", s.namespace("thief"), "0x0400", "0x04ff", p.blues[3])
	overlap := tenant("overlap", s.namespace("overlap"), "0x0180", "0x0280")
	for _, o := range []kube.Object{foreign, fine, port, nobody, second, thief, overlap} {
		s.create(o)
	}
	s.ready(fine)
	if c := s.condition(foreign, v1alpha1.ConditionAccepted, metav1.ConditionFalse, "Forbidden"); !strings.Contains(c.Message, "may have 0x0100-0x01ff") {
		t.Errorf("%+v", c)
	}
	if c := s.condition(port, v1alpha1.ConditionAccepted, metav1.ConditionFalse, "Forbidden"); strings.Contains(c.Message, "blue") {
		t.Errorf("it says whose the port is: %+v", c)
	}
	s.condition(nobody, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonWaiting)
	s.condition(second, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict)
	s.condition(thief, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict)
	s.condition(overlap, v1alpha1.ConditionAccepted, metav1.ConditionFalse, "Exists")
	s.saw(p.inRed, "foreign", "Forbidden")
	if k := s.has("0x0210"); k != nil {
		t.Errorf("the service has %+v", k)
	}
	s.holds(p.blues[0])
	s.holds(p.blues[3])
	// What was refused has left nothing behind, and goes.
	for _, o := range []kube.Object{foreign, port, nobody, second, overlap} {
		s.delete(o)
	}
	// Nor was the other owner asked for his consent.
	if got := s.has("0x0110"); got == nil || got.Members != 0 || got.Waiting != 0 {
		t.Errorf("the service has %+v: want it without members", got)
	}
}

// A tenant that the service has already is taken over only where that is asked for, and takes
// nothing from it.
func TestAdopt(t *testing.T) {
	s := newStand(t)
	s.command("tenant", "create", "old", "--keys", "0x500-0x5ff", "--wait")
	s.command("port", "assign", "--tenant", "old", string(hosts[0]), string(hosts[1]), "--wait")
	o := tenant("old", s.namespace("old"), "0x0500", "0x05ff", hosts[0])
	s.create(o)
	s.condition(o, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict)
	if err := s.change(o, func() { o.Spec.Adopt = true }); err != nil {
		t.Fatal(err)
	}
	if c := s.condition(o, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict); !strings.Contains(c.Message, string(hosts[1])) {
		t.Errorf("%+v: want it to name %s", c, hosts[1])
	}
	if err := s.change(o, func() { o.Spec.Ports = append(o.Spec.Ports, v1alpha1.TenantPort{GUID: hosts[1]}) }); err != nil {
		t.Fatal(err)
	}
	s.ready(o)
	var list []api.Token
	list, err := client.All[api.Token](t.Context(), s.provider, "/tokens", nil)
	if err != nil || len(list) != 2 { // the provider's, and the tenant's
		t.Errorf("%d tokens, %v", len(list), err)
	}
}
