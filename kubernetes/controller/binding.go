package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// bindings carries IBPortBindings to the service.
type bindings struct{ base }

// Reconcile implements reconcile.Reconciler.
func (r *bindings) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	o := binding{&v1alpha1.IBPortBinding{}}
	if err := r.Get(ctx, q.NamespacedName, o.IBPortBinding); err != nil {
		return reconcile.Result{}, kube.IgnoreNotFound(err)
	}
	deleting := !o.DeletionTimestamp.IsZero()
	if deleting && (!slices.Contains(o.Finalizers, v1alpha1.Finalizer) || o.Status.PKey == "") {
		return r.release(ctx, o)
	}
	if !deleting {
		if err := r.hold(ctx, o); err != nil {
			return reconcile.Result{}, err
		}
	}
	_, c, s := r.caller(ctx, o.Namespace)
	switch {
	case s != nil:
	case deleting:
		if s = r.removed(ctx, c, o); s == nil {
			return r.release(ctx, o)
		}
	default:
		if s = r.ensure(ctx, c, o); s == nil {
			s = &step{message: fmt.Sprintf("%s is a %s member of %s", o.Status.Port, o.Spec.Membership, o.Status.PKey)}
		}
	}
	return r.end(ctx, o, *s)
}

func memberPath(k v1alpha1.PKey, g v1alpha1.GUID) string {
	return numbered(k) + "/members/" + string(g)
}

// ensure makes the port a member as the object says.
func (r *bindings) ensure(ctx context.Context, c *client.Client, o binding) *step {
	if s := r.damped(o); s != nil {
		return s
	}
	var p v1alpha1.IBPartition
	err := r.reader.Get(ctx, types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.Partition}, &p)
	switch {
	case apierrors.IsNotFound(err):
		return r.refused(v1alpha1.ReasonWaiting, "there is no IBPartition "+o.Spec.Partition)
	case err != nil:
		return &step{err: err}
	case p.Status.PKey == "" || p.Status.Revision == 0:
		return r.refused(v1alpha1.ReasonWaiting, "the service does not have IBPartition "+o.Spec.Partition+" yet")
	case !p.DeletionTimestamp.IsZero():
		return r.refused(v1alpha1.ReasonWaiting, "IBPartition "+o.Spec.Partition+" is being deleted")
	}
	port, s := r.port(ctx, c, o)
	if s != nil {
		return s
	}
	if o.Status.PKey != "" && (o.Status.PKey != p.Status.PKey || o.Status.Port != port) {
		// The partition was made again with another number, or another port is at the place:
		// what this object had is taken away first.
		if s := r.removed(ctx, c, o); s != nil {
			return s
		}
		if err := r.claim(ctx, o, func() { o.Status.PKey, o.Status.Port = "", "" }); err != nil {
			return &step{err: err}
		}
	}
	if first, err := r.rival(ctx, o, p.Status.PKey, port); err != nil || first != nil {
		if err != nil {
			return &step{err: err}
		}
		return r.refused(v1alpha1.ReasonConflict, fmt.Sprintf("IBPortBinding %s has %s in this partition already", first.Name, port))
	}
	if err := r.claim(ctx, o, func() { o.Status.PKey, o.Status.Port = p.Status.PKey, port }); err != nil {
		return &step{err: err}
	}
	if s := r.join(ctx, c, o); s != nil {
		return s
	}
	return r.proof(ctx, c, o)
}

// join makes the port a member, if it is none or another than it should be.
func (r *bindings) join(ctx context.Context, c *client.Client, o binding) *step {
	if s := r.owned(ctx, c, o); s != nil {
		return s
	}
	// The ETag is read first: what changes after that is noticed.
	_, etag, err := get[api.Partition](ctx, c, numbered(o.Status.PKey))
	if err != nil {
		return r.failed(err)
	}
	want := api.MembershipBody{Membership: api.Membership(o.Spec.Membership), Index0: o.Spec.Index0}
	have, _, err := get[api.Member](ctx, c, memberPath(o.Status.PKey, o.Status.Port))
	switch {
	case missing(err):
	case err != nil:
		return r.failed(err)
	case have.Membership == string(want.Membership) && have.Index0 == want.Index0 && have.State == "member":
		return nil
	}
	_, s := r.write(ctx, c, o, http.MethodPut, memberPath(o.Status.PKey, o.Status.Port), client.Params{Match: etag}, want)
	if s != nil {
		return s
	}
	have, _, err = get[api.Member](ctx, c, memberPath(o.Status.PKey, o.Status.Port))
	if err != nil {
		return r.failed(err)
	}
	if have.State != "member" {
		// The port went to another owner meanwhile, who would be asked for his consent.
		if _, s := r.write(ctx, c, o, http.MethodDelete, memberPath(o.Status.PKey, o.Status.Port), client.Params{}, nil); s != nil {
			return s
		}
		return r.foreign(o)
	}
	if o.Status.ObservedGeneration == o.Generation && o.Status.Verdict != "" {
		r.broughtBack(o, "somebody changed the membership of %s in %s through the service's API", o.Status.Port, o.Status.PKey)
	}
	return nil
}

func (r *bindings) foreign(o binding) *step {
	return r.refused("Forbidden", fmt.Sprintf("%s is no port of namespace %s", o.Status.Port, o.Namespace))
}

// owned refuses a port that is not the tenant's. The service would take the binding of a
// foreign port as a question to its owner, which is not what an object in Kubernetes is.
func (r *bindings) owned(ctx context.Context, c *client.Client, o binding) *step {
	p, _, err := get[views.Port](ctx, c, "/ports/"+string(o.Status.Port))
	if err == nil && p.Owner != "" {
		return nil // a tenant is told of its own ports alone
	}
	if err != nil && !missing(err) {
		return r.failed(err)
	}
	// One that the fabric has not seen yet may be in a pool.
	lists, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	pools, err := client.All[api.Pool](lists, c, "/pools", nil)
	if err != nil {
		return r.failed(err)
	}
	for _, x := range pools {
		if x.Owner != "" && x.First <= string(o.Status.Port) && string(o.Status.Port) <= x.Last {
			return nil
		}
	}
	return r.foreign(o)
}

// port is the port that a binding means.
func (r *bindings) port(ctx context.Context, c *client.Client, o binding) (v1alpha1.GUID, *step) {
	if o.Spec.Place == nil {
		return o.Spec.Port, nil
	}
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	// A tenant is told of its own ports alone.
	list, err := client.All[views.Port](ctx, c, "/ports", nil)
	if err != nil {
		return "", r.failed(err)
	}
	for _, p := range list {
		if p.Switch == string(o.Spec.Place.Switch) && p.SwitchPort == int(o.Spec.Place.Port) {
			return v1alpha1.GUID(p.GUID), nil
		}
	}
	return "", r.refused(v1alpha1.ReasonWaiting, fmt.Sprintf("no port of the tenant is cabled to port %d of switch %s", o.Spec.Place.Port, o.Spec.Place.Switch))
}

// rival is another binding of the same port in the same partition that came first.
func (r *bindings) rival(ctx context.Context, o binding, k v1alpha1.PKey, port v1alpha1.GUID) (*v1alpha1.IBPortBinding, error) {
	var list v1alpha1.IBPortBindingList
	if err := r.inNamespace(ctx, &list, o.Namespace); err != nil {
		return nil, err
	}
	for i := range list.Items {
		x := &list.Items[i]
		if x.UID != o.UID && x.Status.PKey == k && x.Status.Port == port && (o.Status.PKey == "" || earlier(x, o.IBPortBinding)) {
			return x, nil
		}
	}
	return nil, nil
}

// earlier orders bindings by age.
func earlier(a, b *v1alpha1.IBPortBinding) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// removed takes the member from the partition; nil when the fabric is proved to have lost it.
func (r *bindings) removed(ctx context.Context, c *client.Client, o binding) *step {
	_, etag, err := get[api.Partition](ctx, c, numbered(o.Status.PKey))
	if missing(err) {
		return r.gone(ctx, c, o)
	}
	if err != nil {
		return r.failed(err)
	}
	path := memberPath(o.Status.PKey, o.Status.Port)
	_, _, err = get[api.Member](ctx, c, path)
	if missing(err) {
		return r.gone(ctx, c, o)
	}
	if err != nil {
		return r.failed(err)
	}
	if s := r.waits(ctx, c, o); s != nil {
		return s
	}
	if s := r.damped(o); s != nil {
		return s
	}
	if _, s := r.write(ctx, c, o, http.MethodDelete, path, client.Params{Match: etag}, nil); s != nil {
		return s
	}
	return r.gone(ctx, c, o)
}
