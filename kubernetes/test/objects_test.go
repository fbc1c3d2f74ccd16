package kubetest

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// tenant is an IBTenant for a namespace.
func tenant(name, namespace string, first, last v1alpha1.PKey, ports ...v1alpha1.GUID) *v1alpha1.IBTenant {
	t := &v1alpha1.IBTenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Spec = v1alpha1.IBTenantSpec{Namespace: namespace, PKeys: v1alpha1.PKeyRange{First: first, Last: last}}
	for _, g := range ports {
		t.Spec.Ports = append(t.Spec.Ports, v1alpha1.TenantPort{GUID: g})
	}
	return t
}

// partition is an IBPartition; with "" the service chooses the number.
func partition(namespace, name string, k v1alpha1.PKey) *v1alpha1.IBPartition {
	return &v1alpha1.IBPartition{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.IBPartitionSpec{PKey: k}}
}

// binding is an IBPortBinding of full membership.
func binding(namespace, name, partition string, port v1alpha1.GUID) *v1alpha1.IBPortBinding {
	b := &v1alpha1.IBPortBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec = v1alpha1.IBPortBindingSpec{Partition: partition, Port: port, Membership: v1alpha1.Full}
	return b
}

// delete deletes an object, and waits until it is gone.
func (s *stand) delete(o kube.Object) {
	s.Helper()
	if err := s.admin.Delete(s.Context(), o); err != nil {
		s.Fatalf("%T %s: %v", o, o.GetName(), err)
	}
	s.gone(o)
}

// gone waits until an object is gone.
func (s *stand) gone(o kube.Object) {
	s.Helper()
	s.await(fmt.Sprintf("%T %s goes", o, o.GetName()), func() error {
		err := s.admin.Get(s.Context(), kube.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it is there: %+v", statusOf(o))
		}
		return err
	})
}

// denied makes an object, and has the API server refuse it with words of the webhook or the
// schema.
func (s *stand) denied(o kube.Object, words string) {
	s.Helper()
	err := s.admin.Create(s.Context(), o)
	if err == nil || !strings.Contains(err.Error(), words) {
		s.Errorf("%T %s: %v: want it refused with %q", o, o.GetName(), err, words)
	}
}

// change changes an object as it is now.
func (s *stand) change(o kube.Object, how func()) error {
	s.Helper()
	if err := s.admin.Get(s.Context(), kube.ObjectKeyFromObject(o), o); err != nil {
		s.Fatal(err)
	}
	before := o.DeepCopyObject().(kube.Object)
	how()
	return s.admin.Patch(s.Context(), o, kube.MergeFrom(before))
}

// keys are the P_Keys, with their bits of full membership, that the table of a port holds, as
// the manager read it from the simulated device: those of the default partition left out.
func (s *stand) keys(g v1alpha1.GUID) (keys []string) {
	s.Helper()
	p, _, err := client.Get[inventoryPort](s.Context(), s.provider, "/ports/"+string(g), nil)
	if err != nil {
		s.Fatal(err)
	}
	d, _, err := client.Get[views.PortDetails](s.Context(), s.provider, fmt.Sprintf("/nodes/%s/ports/%d", p.NodeGUID, p.Number), nil)
	if err != nil {
		s.Fatal(err)
	}
	for _, k := range d.PKeys {
		if k.PKey != "0x7fff" {
			keys = append(keys, fmt.Sprintf("%s %v", k.PKey, k.Full))
		}
	}
	slices.Sort(keys)
	return keys
}

type inventoryPort struct {
	NodeGUID string `json:"node_guid"`
	Number   int    `json:"number"`
	Owner    string `json:"owner"`
}

// holds checks which keys the table of a port holds.
func (s *stand) holds(g v1alpha1.GUID, want ...string) {
	s.Helper()
	if got := s.keys(g); !slices.Equal(got, want) {
		s.Errorf("the table of port %s holds %v: want %v", g, got, want)
	}
}

// has returns what the service has of a partition, and nil for none.
func (s *stand) has(k v1alpha1.PKey) *api.Partition {
	s.Helper()
	list, err := client.All[api.Partition](s.Context(), s.provider, "/partitions", nil)
	if err != nil {
		s.Fatal(err)
	}
	for i := range list {
		if list[i].PKey == string(k) {
			return &list[i]
		}
	}
	return nil
}
