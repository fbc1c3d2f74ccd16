// Package admission refuses resources that ask for what is another tenant's, before they are
// stored: keys outside the range of the namespace's IBTenant, ports that it does not have, a
// second IBTenant for a namespace. What it lets through the service checks again, with the
// tenant's own token.
package admission

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
	"github.com/ibwarden/ibwarden/kubernetes/controller"
)

// Setup adds the webhooks to a manager's webhook server. They read past the cache, so that an
// IBTenant counts as soon as it is stored.
func Setup(m manager.Manager) error {
	r := m.GetAPIReader()
	if err := builder.WebhookManagedBy(m, &v1alpha1.IBTenant{}).WithValidator(tenants{r}).Complete(); err != nil {
		return err
	}
	if err := builder.WebhookManagedBy(m, &v1alpha1.IBPartition{}).WithValidator(partitions{r}).Complete(); err != nil {
		return err
	}
	return builder.WebhookManagedBy(m, &v1alpha1.IBPortBinding{}).WithValidator(bindings{r}).Complete()
}

// of is the IBTenant that has a namespace.
func of(ctx context.Context, r kube.Reader, namespace string) (*v1alpha1.IBTenant, error) {
	var list v1alpha1.IBTenantList
	if err := r.List(ctx, &list); err != nil {
		return nil, err
	}
	t := controller.First(list.Items, namespace)
	if t == nil {
		return nil, fmt.Errorf("no IBTenant has the namespace %s: want the cluster's administrator to make one", namespace)
	}
	return t, nil
}

type tenants struct{ kube.Reader }

// ValidateCreate implements admission.Validator.
func (v tenants) ValidateCreate(ctx context.Context, t *v1alpha1.IBTenant) (admission.Warnings, error) {
	return nil, v.check(ctx, t)
}

// ValidateUpdate implements admission.Validator.
func (v tenants) ValidateUpdate(ctx context.Context, old, t *v1alpha1.IBTenant) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(old.Spec, t.Spec) {
		return nil, nil // finalizers and labels
	}
	if old.Spec.Namespace != t.Spec.Namespace {
		return nil, fmt.Errorf("spec.namespace: %s: cannot be changed: delete the IBTenant, and make another", t.Spec.Namespace)
	}
	return nil, v.check(ctx, t)
}

// ValidateDelete implements admission.Validator.
func (tenants) ValidateDelete(context.Context, *v1alpha1.IBTenant) (admission.Warnings, error) {
	return nil, nil
}

// check holds a tenant against the others.
func (v tenants) check(ctx context.Context, t *v1alpha1.IBTenant) error {
	var list v1alpha1.IBTenantList
	if err := v.List(ctx, &list); err != nil {
		return err
	}
	for i := range list.Items {
		o := &list.Items[i]
		if o.Name == t.Name {
			continue
		}
		if o.Spec.Namespace == t.Spec.Namespace {
			return fmt.Errorf("spec.namespace: %s is the namespace of IBTenant %s", t.Spec.Namespace, o.Name)
		}
		if a, b := o.Spec.PKeys, t.Spec.PKeys; a.First <= b.Last && b.First <= a.Last {
			return fmt.Errorf("spec.pkeys: %s-%s: IBTenant %s has %s-%s", b.First, b.Last, o.Name, a.First, a.Last)
		}
		for _, p := range t.Spec.Ports {
			if has(o, p.GUID) && !inPool(o, p.GUID) {
				return fmt.Errorf("spec.ports: %s is a port of IBTenant %s", p.GUID, o.Name)
			}
		}
		for _, p := range t.Spec.Pools {
			for _, q := range o.Spec.Pools {
				if p.First <= q.Last && q.First <= p.Last {
					return fmt.Errorf("spec.pools: %s-%s: IBTenant %s has %s-%s", p.First, p.Last, o.Name, q.First, q.Last)
				}
			}
		}
	}
	return nil
}

// has reports whether a tenant has a port.
func has(t *v1alpha1.IBTenant, g v1alpha1.GUID) bool {
	for _, p := range t.Spec.Ports {
		if p.GUID == g {
			return true
		}
	}
	return inPool(t, g)
}

// inPool reports whether a port is in a pool of a tenant. GUIDs are written with all their
// digits, so that text is ordered as numbers are.
func inPool(t *v1alpha1.IBTenant, g v1alpha1.GUID) bool {
	for _, p := range t.Spec.Pools {
		if p.First <= g && g <= p.Last {
			return true
		}
	}
	return false
}

type partitions struct{ kube.Reader }

// ValidateCreate implements admission.Validator.
func (v partitions) ValidateCreate(ctx context.Context, p *v1alpha1.IBPartition) (admission.Warnings, error) {
	t, err := of(ctx, v, p.Namespace)
	if err != nil {
		return nil, err
	}
	if p.Spec.PKey == "" {
		return nil, nil
	}
	if r := t.Spec.PKeys; p.Spec.PKey < r.First || r.Last < p.Spec.PKey {
		return nil, fmt.Errorf("spec.pkey: %s: namespace %s may have %s-%s", p.Spec.PKey, p.Namespace, r.First, r.Last)
	}
	var list v1alpha1.IBPartitionList
	if err := v.List(ctx, &list, kube.InNamespace(p.Namespace)); err != nil {
		return nil, err
	}
	for _, o := range list.Items {
		if o.Name != p.Name && (o.Spec.PKey == p.Spec.PKey || o.Status.PKey == p.Spec.PKey) {
			return nil, fmt.Errorf("spec.pkey: %s is the number of IBPartition %s", p.Spec.PKey, o.Name)
		}
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (partitions) ValidateUpdate(_ context.Context, old, p *v1alpha1.IBPartition) (admission.Warnings, error) {
	if old.Spec.PKey != p.Spec.PKey {
		return nil, fmt.Errorf("spec.pkey: %q: cannot be changed: make another IBPartition", p.Spec.PKey)
	}
	return nil, nil
}

// ValidateDelete implements admission.Validator.
func (partitions) ValidateDelete(context.Context, *v1alpha1.IBPartition) (admission.Warnings, error) {
	return nil, nil
}

type bindings struct{ kube.Reader }

// ValidateCreate implements admission.Validator.
func (v bindings) ValidateCreate(ctx context.Context, b *v1alpha1.IBPortBinding) (admission.Warnings, error) {
	t, err := of(ctx, v, b.Namespace)
	if err != nil {
		return nil, err
	}
	if b.Spec.Port != "" && !has(t, b.Spec.Port) {
		// Whose it is is not for this namespace to know.
		return nil, fmt.Errorf("spec.port: %s is no port of namespace %s", b.Spec.Port, b.Namespace)
	}
	var list v1alpha1.IBPortBindingList
	if err := v.List(ctx, &list, kube.InNamespace(b.Namespace)); err != nil {
		return nil, err
	}
	for _, o := range list.Items {
		if o.Name != b.Name && o.Spec.Partition == b.Spec.Partition && b.Spec.Port != "" && (o.Spec.Port == b.Spec.Port || o.Status.Port == b.Spec.Port) {
			return nil, fmt.Errorf("spec.port: IBPortBinding %s has %s in this partition already", o.Name, b.Spec.Port)
		}
	}
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (bindings) ValidateUpdate(_ context.Context, old, b *v1alpha1.IBPortBinding) (admission.Warnings, error) {
	if old.Spec.Partition != b.Spec.Partition || old.Spec.Port != b.Spec.Port || !equality.Semantic.DeepEqual(old.Spec.Place, b.Spec.Place) {
		return nil, fmt.Errorf("spec: the partition and the port cannot be changed: make another IBPortBinding")
	}
	return nil, nil
}

// ValidateDelete implements admission.Validator.
func (bindings) ValidateDelete(context.Context, *v1alpha1.IBPortBinding) (admission.Warnings, error) {
	return nil, nil
}
