package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// SecretPrefix begins the names of the Secrets with the tokens of tenants.
const SecretPrefix = "ibtenant-"

// secretKey is the key of the token in its Secret.
const secretKey = "token"

// First is the one of several IBTenants that a namespace has: the oldest. Admission lets none
// be second, but may have been off.
func First(list []v1alpha1.IBTenant, namespace string) *v1alpha1.IBTenant {
	var of []*v1alpha1.IBTenant
	for i := range list {
		if list[i].Spec.Namespace == namespace {
			of = append(of, &list[i])
		}
	}
	if len(of) == 0 {
		return nil
	}
	return slices.MinFunc(of, func(a, b *v1alpha1.IBTenant) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// caller is a client with the token of the tenant that a namespace has.
func (b *base) caller(ctx context.Context, namespace string) (*v1alpha1.IBTenant, *client.Client, *step) {
	var list v1alpha1.IBTenantList
	if err := b.List(ctx, &list); err != nil {
		return nil, nil, &step{err: err}
	}
	t := First(list.Items, namespace)
	if t == nil {
		return nil, nil, b.refused(v1alpha1.ReasonWaiting, "no IBTenant has the namespace "+namespace)
	}
	if !t.Status.Owned {
		return nil, nil, b.refused(v1alpha1.ReasonWaiting, "the service does not have IBTenant "+t.Name+" yet")
	}
	token, err := b.token(ctx, t.Name)
	if err != nil {
		return nil, nil, &step{err: err}
	}
	if token == "" {
		return nil, nil, b.refused(v1alpha1.ReasonWaiting, "IBTenant "+t.Name+" has no token yet")
	}
	c, err := b.service.with(t.Name, token)
	if err != nil {
		return nil, nil, &step{err: err}
	}
	return t, c, nil
}

// token is the token of a tenant; empty for none.
func (b *base) token(ctx context.Context, tenant string) (string, error) {
	var s corev1.Secret
	err := b.reader.Get(ctx, types.NamespacedName{Namespace: b.namespace, Name: SecretPrefix + tenant}, &s)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("the token of tenant %s: %w", tenant, err)
	}
	return string(s.Data[secretKey]), nil
}

// inNamespace lists objects of a namespace, past the cache.
func (b *base) inNamespace(ctx context.Context, list kube.ObjectList, namespace string) error {
	return b.reader.List(ctx, list, kube.InNamespace(namespace))
}
