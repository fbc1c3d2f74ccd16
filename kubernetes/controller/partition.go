package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// partitions carries IBPartitions to the service.
type partitions struct{ base }

// Reconcile implements reconcile.Reconciler.
func (r *partitions) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	p := partition{&v1alpha1.IBPartition{}}
	if err := r.Get(ctx, q.NamespacedName, p.IBPartition); err != nil {
		return reconcile.Result{}, kube.IgnoreNotFound(err)
	}
	deleting := !p.DeletionTimestamp.IsZero()
	if deleting && (!slices.Contains(p.Finalizers, v1alpha1.Finalizer) || p.Status.PKey == "") {
		return r.release(ctx, p)
	}
	if !deleting {
		if err := r.hold(ctx, p); err != nil {
			return reconcile.Result{}, err
		}
	}
	_, c, s := r.caller(ctx, p.Namespace)
	switch {
	case s != nil:
	case deleting:
		if s = r.removed(ctx, c, p); s == nil {
			return r.release(ctx, p)
		}
	default:
		if s = r.ensure(ctx, c, p); s == nil {
			s = &step{message: fmt.Sprintf("partition %s has %d members", p.Status.PKey, p.Status.Members)}
		}
	}
	return r.end(ctx, p, *s)
}

func numbered(k v1alpha1.PKey) string { return "/partitions/" + string(k) }

// body is what the service is told of a partition.
func body(p partition) (api.PartitionBody, error) {
	b := api.PartitionBody{Name: p.Name, SL: int(p.Spec.ServiceLevel), MTU: int(p.Spec.MTU), IPoverIB: p.Spec.IPOverIB}
	if p.Spec.Rate != "" {
		rate, err := strconv.ParseFloat(p.Spec.Rate, 64)
		if err != nil {
			return b, fmt.Errorf("rate %q: want Gb/s, such as 100 or 2.5", p.Spec.Rate)
		}
		b.Rate = rate
	}
	return b, nil
}

// ensure makes the service's partition as the object says.
func (r *partitions) ensure(ctx context.Context, c *client.Client, p partition) *step {
	want, err := body(p)
	if err != nil {
		return r.refused("Invalid", err.Error())
	}
	if s := r.damped(p); s != nil {
		return s
	}
	if s := r.number(ctx, c, p, want); s != nil {
		return s
	}
	have, etag, err := get[api.Partition](ctx, c, numbered(p.Status.PKey))
	switch {
	case missing(err):
		if p.Status.Revision != 0 {
			r.broughtBack(p, "somebody deleted partition %s through the service's API", p.Status.PKey)
		}
		_, s := r.write(ctx, c, p, http.MethodPut, numbered(p.Status.PKey), client.Params{None: true}, want)
		if s != nil && p.Status.Revision == 0 && (s.err == nil || s.reason == camel("stale")) {
			// It was not made: another number may be had, and nothing is to be deleted.
			if err := r.claim(ctx, p, func() { p.Status.PKey = "" }); err != nil {
				return &step{err: err}
			}
		}
		if s != nil {
			return s
		}
	case err != nil:
		return r.failed(err)
	case p.Status.Revision == 0 && have.Name != p.Name && !p.Spec.Adopt:
		// The number was taken before this object's partition was made.
		if err := r.claim(ctx, p, func() { p.Status.PKey = "" }); err != nil {
			return &step{err: err}
		}
		return r.refused(v1alpha1.ReasonConflict, fmt.Sprintf("%s is the number of partition %q", have.PKey, have.Name))
	case have.Name != want.Name || have.SL != want.SL || have.MTU != want.MTU || have.Rate != want.Rate || have.IPoverIB != want.IPoverIB:
		if p.Status.ObservedGeneration == p.Generation && p.Status.Revision != 0 {
			r.broughtBack(p, "somebody changed partition %s through the service's API", p.Status.PKey)
		}
		if _, s := r.write(ctx, c, p, http.MethodPut, numbered(p.Status.PKey), client.Params{Match: etag}, want); s != nil {
			return s
		}
	}
	if err := r.claim(ctx, p, func() { p.Status.Members = int32(have.Members) }); err != nil {
		return &step{err: err}
	}
	return r.proof(ctx, c, p)
}

// number decides which number the partition has, before it is made.
func (r *partitions) number(ctx context.Context, c *client.Client, p partition, want api.PartitionBody) *step {
	if p.Status.PKey != "" {
		return nil
	}
	k := p.Spec.PKey
	if k == "" {
		// The lowest that is free; nothing is made yet.
		var out api.Changed
		ctx, stop := context.WithTimeout(ctx, callTimeout)
		defer stop()
		if err := c.Write(ctx, http.MethodPost, "/partitions", client.Params{DryRun: true}, api.NewPartitionBody{PartitionBody: want}, &out); err != nil {
			return r.failed(err)
		}
		k = v1alpha1.PKey(out.PKey)
	}
	have, _, err := get[api.Partition](ctx, c, numbered(k))
	switch {
	case missing(err):
	case err != nil:
		return r.failed(err)
	case !p.Spec.Adopt:
		return r.refused(v1alpha1.ReasonConflict, fmt.Sprintf("the service has a partition %s %q already, which was not made for this IBPartition: take another number, or set adopt", k, have.Name))
	}
	var others v1alpha1.IBPartitionList
	if err := r.inNamespace(ctx, &others, p.Namespace); err != nil {
		return &step{err: err}
	}
	for _, o := range others.Items {
		if o.UID != p.UID && o.Status.PKey == k {
			return r.refused(v1alpha1.ReasonConflict, fmt.Sprintf("%s is the number of IBPartition %s", k, o.Name))
		}
	}
	if err := r.claim(ctx, p, func() { p.Status.PKey = k }); err != nil {
		return &step{err: err}
	}
	return nil
}

// removed deletes the service's partition; nil when the fabric is proved to have lost it.
func (r *partitions) removed(ctx context.Context, c *client.Client, p partition) *step {
	use := func(what string) *step {
		return &step{condition: v1alpha1.ConditionProved, status: metav1.ConditionFalse, reason: v1alpha1.ReasonInUse, message: what, after: r.limits.Again}
	}
	var bindings v1alpha1.IBPortBindingList
	if err := r.inNamespace(ctx, &bindings, p.Namespace); err != nil {
		return &step{err: err}
	}
	for _, b := range bindings.Items {
		if b.Spec.Partition == p.Name && b.Status.PKey != "" {
			return use("IBPortBinding " + b.Name + " is of this partition: delete it first")
		}
	}
	have, etag, err := get[api.Partition](ctx, c, numbered(p.Status.PKey))
	switch {
	case missing(err):
		return r.gone(ctx, c, p)
	case err != nil:
		return r.failed(err)
	case p.Status.Revision == 0 && have.Name != p.Name:
		return nil // another's, which got the number before this one was made
	case have.Members > 0:
		return use(fmt.Sprintf("partition %s has %d members that no IBPortBinding stands for: remove them first", have.PKey, have.Members))
	}
	if s := r.waits(ctx, c, p); s != nil {
		return s
	}
	if s := r.damped(p); s != nil {
		return s
	}
	// With the ETag, so that a member that comes now is not deleted with it.
	if _, s := r.write(ctx, c, p, http.MethodDelete, numbered(p.Status.PKey), client.Params{Match: etag}, nil); s != nil {
		return s
	}
	return r.gone(ctx, c, p)
}
