package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// workers is how many objects of one kind are looked at at a time.
const workers = 4

// Setup adds the controllers to a manager. Secrets are kept in namespace.
func Setup(m manager.Manager, service *Service, namespace string, limits Limits) error {
	b := base{
		Client: m.GetClient(), reader: m.GetAPIReader(), service: service, limits: limits, namespace: namespace,
		events: m.GetEventRecorder("ibwarden-kubernetes"),
	}
	begin := func(o kube.Object) *builder.Builder {
		return builder.ControllerManagedBy(m).For(o, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			WithOptions(controller.Options{
				MaxConcurrentReconciles: workers,
				RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](limits.First, limits.Most),
			})
	}
	if err := begin(&v1alpha1.IBTenant{}).
		Watches(&v1alpha1.IBPartition{}, b.tell(b.tenantOf)).
		Watches(&v1alpha1.IBPortBinding{}, b.tell(b.tenantOf)).
		Complete(quiet{&tenants{b}, limits}); err != nil {
		return err
	}
	if err := begin(&v1alpha1.IBPartition{}).
		Watches(&v1alpha1.IBTenant{}, b.tell(b.partitionsOf)).
		Watches(&v1alpha1.IBPortBinding{}, b.tell(b.partitionOf)).
		Complete(quiet{&partitions{b}, limits}); err != nil {
		return err
	}
	return begin(&v1alpha1.IBPortBinding{}).
		Watches(&v1alpha1.IBTenant{}, b.tell(b.bindingsOf)).
		Watches(&v1alpha1.IBPartition{}, b.tell(b.bindingsIn)).
		Complete(quiet{&bindings{b}, limits})
}

// quiet looks again at an object of which the cache was older than the API server, which is
// no error.
type quiet struct {
	reconcile.Reconciler
	limits Limits
}

// Reconcile implements reconcile.Reconciler.
func (q quiet) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	out, err := q.Reconciler.Reconcile(ctx, r)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: q.limits.First}, nil
	}
	return out, err
}

// tell has the objects looked at that depend on one that changed.
func (b *base) tell(of func(context.Context, kube.Object) []types.NamespacedName) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o kube.Object) (out []reconcile.Request) {
		for _, n := range of(ctx, o) {
			out = append(out, reconcile.Request{NamespacedName: n})
		}
		return out
	})
}
