package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// What has to be looked at when an object changes. Who cannot list them now is told at the
// next resync.

// tenantOf are the tenants of the namespace that an object is in.
func (b *base) tenantOf(ctx context.Context, o kube.Object) (out []types.NamespacedName) {
	var list v1alpha1.IBTenantList
	if b.List(ctx, &list) != nil {
		return nil
	}
	for _, t := range list.Items {
		if t.Spec.Namespace == o.GetNamespace() && !t.DeletionTimestamp.IsZero() {
			out = append(out, types.NamespacedName{Name: t.Name})
		}
	}
	return out
}

// partitionsOf are the partitions of a tenant's namespace.
func (b *base) partitionsOf(ctx context.Context, o kube.Object) (out []types.NamespacedName) {
	t, is := o.(*v1alpha1.IBTenant)
	var list v1alpha1.IBPartitionList
	if !is || b.List(ctx, &list, kube.InNamespace(t.Spec.Namespace)) != nil {
		return nil
	}
	for _, p := range list.Items {
		out = append(out, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
	}
	return out
}

// bindingsOf are the bindings of a tenant's namespace.
func (b *base) bindingsOf(ctx context.Context, o kube.Object) []types.NamespacedName {
	if t, is := o.(*v1alpha1.IBTenant); is {
		return b.bindings(ctx, t.Spec.Namespace, "")
	}
	return nil
}

// bindingsIn are the bindings of a partition.
func (b *base) bindingsIn(ctx context.Context, o kube.Object) []types.NamespacedName {
	return b.bindings(ctx, o.GetNamespace(), o.GetName())
}

// bindings are those of a namespace, of one partition or all for "".
func (b *base) bindings(ctx context.Context, namespace, partition string) (out []types.NamespacedName) {
	var list v1alpha1.IBPortBindingList
	if b.List(ctx, &list, kube.InNamespace(namespace)) != nil {
		return nil
	}
	for _, x := range list.Items {
		if partition == "" || x.Spec.Partition == partition {
			out = append(out, types.NamespacedName{Namespace: x.Namespace, Name: x.Name})
		}
	}
	return out
}

// partitionOf is the partition of a binding.
func (b *base) partitionOf(_ context.Context, o kube.Object) []types.NamespacedName {
	if x, is := o.(*v1alpha1.IBPortBinding); is {
		return []types.NamespacedName{{Namespace: x.Namespace, Name: x.Spec.Partition}}
	}
	return nil
}
