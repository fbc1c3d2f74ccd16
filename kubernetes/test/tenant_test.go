package kubetest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// The example of docs/kubernetes.md does what the page says.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../config/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil || !strings.Contains(string(page), "\n```yaml\n"+string(text)+"```\n") {
		t.Errorf("docs/kubernetes.md does not have config/example.yaml as it is (%v)", err)
	}
	s := newStand(t)
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-red"}})
	if err := s.apply("../config/example.yaml"); err != nil {
		t.Fatal(err)
	}
	s.ready(tenant("red", "", "", ""))
	s.ready(partition("team-red", "training", ""))
	s.ready(binding("team-red", "node-1", "", ""))
	s.holds("0x000000000010001d", "0x0100 true")
	if got := s.has("0x0100"); got == nil || !got.IPoverIB || got.Owner != "red" {
		t.Errorf("the service has %+v", got)
	}
	// As it is shipped, the program has to be elected first; a binding may name a place.
	s.end(s.controller, syscall.SIGTERM)
	s.flags = []string{"--leader-elect=true"}
	s.control()
	at, _, err := client.Get[views.Port](t.Context(), s.provider, "/ports/0x000000000010001f", nil)
	if err != nil {
		t.Fatal(err)
	}
	placed := binding("team-red", "node-2", "training", "")
	placed.Spec.Place = &v1alpha1.Place{Switch: v1alpha1.GUID(at.Switch), Port: int32(at.SwitchPort)}
	s.create(placed)
	s.ready(placed)
	s.holds("0x000000000010001f", "0x0100 true")
	s.delete(placed)
	s.holds("0x000000000010001f")
	// The place of another's port means nothing here.
	if at, _, err = client.Get[views.Port](t.Context(), s.provider, "/ports/"+string(hosts[0]), nil); err != nil {
		t.Fatal(err)
	}
	foreign := binding("team-red", "node-3", "training", "")
	foreign.Spec.Place = &v1alpha1.Place{Switch: v1alpha1.GUID(at.Switch), Port: int32(at.SwitchPort)}
	s.create(foreign)
	s.condition(foreign, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonWaiting)
	s.holds(hosts[0])
}

// The manifests can be applied, and give nobody more than he needs.
func TestRights(t *testing.T) {
	s := newStand(t)
	if err := s.apply("../config/deployment.yaml"); err != nil {
		t.Error(err)
	}
	// A cluster's own controllers join ibwarden-edit to edit; here there are none, so that the
	// role itself is bound.
	s.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "editor", Namespace: "default"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ibwarden-edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "editor"}},
	})
	const own = "system:serviceaccount:" + system + ":ibwarden-kubernetes"
	for _, c := range []struct {
		user, verb, group, resource, sub, namespace string
		may                                         bool
	}{
		{own, "get", "", "secrets", "", system, true},
		{own, "list", "", "secrets", "", system, false},
		{own, "get", "", "secrets", "", "default", false},
		{own, "get", "", "secrets", "", "kube-system", false},
		{own, "create", "", "pods", "", system, false},
		{own, "patch", v1alpha1.GroupVersion.Group, "ibpartitions", "status", "default", true},
		{own, "delete", v1alpha1.GroupVersion.Group, "ibpartitions", "", "default", false},
		{own, "create", v1alpha1.GroupVersion.Group, "ibtenants", "", "", false},
		{"editor", "create", v1alpha1.GroupVersion.Group, "ibpartitions", "", "default", true},
		{"editor", "create", v1alpha1.GroupVersion.Group, "ibportbindings", "", "default", true},
		{"editor", "patch", v1alpha1.GroupVersion.Group, "ibpartitions", "status", "default", false},
		{"editor", "create", v1alpha1.GroupVersion.Group, "ibpartitions", "", "kube-system", false},
		{"editor", "create", v1alpha1.GroupVersion.Group, "ibtenants", "", "", false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: c.user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: c.verb, Group: c.group, Resource: c.resource, Subresource: c.sub, Namespace: c.namespace,
		}}}
		s.await("the roles to count", func() error {
			x := &authorizationv1.SubjectAccessReview{Spec: review.Spec}
			if err := s.admin.Create(t.Context(), x); err != nil {
				return err
			}
			if review = x; c.may && !x.Status.Allowed {
				return fmt.Errorf("%+v is refused", c)
			}
			return nil
		})
		if review.Status.Allowed != c.may {
			t.Errorf("%+v: allowed %v", c, review.Status.Allowed)
		}
	}
}
