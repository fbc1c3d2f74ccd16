package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// tenants carries IBTenants to the service.
type tenants struct{ base }

// named is how many objects a message names.
const named = 3

// Reconcile implements reconcile.Reconciler.
func (r *tenants) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	t := tenant{&v1alpha1.IBTenant{}}
	if err := r.Get(ctx, q.NamespacedName, t.IBTenant); err != nil {
		return reconcile.Result{}, kube.IgnoreNotFound(err)
	}
	c, err := r.service.provider()
	if err != nil {
		return r.end(ctx, t, step{condition: v1alpha1.ConditionAccepted, status: metav1.ConditionUnknown, reason: "Unauthorized", message: err.Error(), err: err})
	}
	if !t.DeletionTimestamp.IsZero() {
		return r.remove(ctx, c, t)
	}
	if err := r.hold(ctx, t); err != nil {
		return reconcile.Result{}, err
	}
	if s := r.ensure(ctx, c, t); s != nil {
		return r.end(ctx, t, *s)
	}
	return r.end(ctx, t, step{message: fmt.Sprintf("tenant %s has the keys %s-%s and %d ports", t.Name, t.Spec.PKeys.First, t.Spec.PKeys.Last, t.Status.Ports)})
}

func path(t tenant) string { return "/tenants/" + url.PathEscape(t.Name) }

// ensure makes the service's tenant as the object says.
func (r *tenants) ensure(ctx context.Context, c *client.Client, t tenant) *step {
	var list v1alpha1.IBTenantList
	if err := r.inNamespace(ctx, &list, ""); err != nil {
		return &step{err: err}
	}
	if first := First(list.Items, t.Spec.Namespace); first != nil && first.UID != t.UID {
		return r.refused(v1alpha1.ReasonConflict, fmt.Sprintf("namespace %s is that of IBTenant %s", t.Spec.Namespace, first.Name))
	}
	if s := r.describe(ctx, c, t); s != nil {
		return s
	}
	if s := r.authorize(ctx, c, t); s != nil {
		return s
	}
	trouble := r.pools(ctx, c, t)
	if trouble != nil && trouble.err != nil {
		return trouble
	}
	if s := r.ports(ctx, c, t); s != nil {
		trouble = s
	}
	if trouble != nil {
		return trouble
	}
	return r.proof(ctx, c, t)
}

// describe makes the tenant itself.
func (r *tenants) describe(ctx context.Context, c *client.Client, t tenant) *step {
	spec := t.Spec
	quota := api.Quota{Partitions: int(spec.Quota.Partitions), Members: int(spec.Quota.Members), KeysPerPort: int(spec.Quota.KeysPerPort), ChangesPerMinute: int(spec.Quota.ChangesPerMinute)}
	body := api.TenantBody{Keys: &api.KeyRange{First: api.PKey(spec.PKeys.First), Last: api.PKey(spec.PKeys.Last)}, Quota: quota, KnownPortsOnly: spec.KnownPortsOnly}
	have, etag, err := get[api.Tenant](ctx, c, path(t))
	switch {
	case missing(err):
		if err := r.claim(ctx, t, func() { t.Status.Owned = true }); err != nil {
			return &step{err: err}
		}
		_, s := r.write(ctx, c, t, http.MethodPut, path(t), client.Params{None: true}, body)
		if s != nil && s.err == nil || s != nil && s.reason == camel("stale") {
			if err := r.claim(ctx, t, func() { t.Status.Owned = false }); err != nil {
				return &step{err: err}
			}
		}
		return s
	case err != nil:
		return r.failed(err)
	case !t.Status.Owned && !spec.Adopt:
		return r.refused(v1alpha1.ReasonConflict, fmt.Sprintf("the service has a tenant %s already, which was not made for this IBTenant: give this one another name, or set adopt", t.Name))
	case !t.Status.Owned:
		if s := r.adopt(ctx, c, t); s != nil {
			return s
		}
	}
	body.ApproveRemovals = have.ApproveRemovals // which the provider alone decides
	if have.Keys != nil && *have.Keys == *body.Keys && have.Quota == quota && have.KnownPortsOnly == body.KnownPortsOnly {
		return nil
	}
	if t.Status.ObservedGeneration == t.Generation {
		r.broughtBack(t, "somebody changed tenant %s through the service's API", t.Name)
	}
	_, s := r.write(ctx, c, t, http.MethodPut, path(t), client.Params{Match: etag}, body)
	return s
}

// adopt takes over a tenant that is there, unless that would take something from it.
func (r *tenants) adopt(ctx context.Context, c *client.Client, t tenant) *step {
	extra, _, s := r.portsNow(ctx, c, t)
	if s != nil {
		return s
	}
	gone, _, s := r.poolsNow(ctx, c, t)
	if s != nil {
		return s
	}
	for _, p := range gone {
		extra = append(extra, api.GUID(p.First+"-"+p.Last))
	}
	if len(extra) > 0 {
		return r.refused(v1alpha1.ReasonConflict, fmt.Sprintf("tenant %s has %d ports or pools that this IBTenant has not, among them %s: add them first", t.Name, len(extra), extra[0]))
	}
	if err := r.claim(ctx, t, func() { t.Status.Owned = true }); err != nil {
		return &step{err: err}
	}
	return nil
}

// authorize sees to it that there is a token of the tenant, in a Secret, that the service takes.
func (r *tenants) authorize(ctx context.Context, c *client.Client, t tenant) *step {
	token, err := r.token(ctx, t.Name)
	if err != nil {
		return &step{err: err}
	}
	if token != "" {
		own, err := r.service.with(t.Name, token)
		if err != nil {
			return &step{err: err}
		}
		if _, _, err = get[api.Tenant](ctx, own, path(t)); err == nil {
			return nil
		}
		if !isStatus(err, http.StatusUnauthorized) {
			return r.failed(err)
		}
	}
	// Tokens of which the secret was lost before it was stored are of no use to anybody.
	note := "kubernetes " + string(t.UID)
	lists, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	old, err := client.All[api.Token](lists, c, "/tokens", url.Values{"tenant": {t.Name}})
	if err != nil {
		return r.failed(err)
	}
	for _, o := range old {
		if o.Note != note {
			continue
		}
		var out api.Changed
		if err := c.Write(lists, http.MethodDelete, "/tokens/"+o.ID, client.Params{}, nil, &out); err != nil && !missing(err) {
			return r.failed(err)
		}
	}
	var made api.TokenMade
	if err := c.Write(lists, http.MethodPost, "/tokens", client.Params{}, api.TokenBody{Tenant: t.Name, Note: note}, &made); err != nil {
		return r.failed(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: SecretPrefix + t.Name}}
	secret.Data = map[string][]byte{secretKey: []byte(made.Secret)}
	if err = r.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		err = r.Update(ctx, secret)
	}
	if err != nil {
		return &step{err: fmt.Errorf("the token of tenant %s: %w", t.Name, err)}
	}
	return nil
}

// portsNow are the ports of the service's tenant that are too many, and those that are
// missing or are bound to another place.
func (r *tenants) portsNow(ctx context.Context, c *client.Client, t tenant) (extra []api.GUID, lack []api.AssignPort, s *step) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	have, err := client.All[views.Port](ctx, c, "/ports", url.Values{"owner": {t.Name}})
	if err != nil {
		return nil, nil, r.failed(err)
	}
	pools, err := client.All[api.Pool](ctx, c, "/pools", nil)
	if err != nil {
		return nil, nil, r.failed(err)
	}
	pooled := func(g string) bool {
		return slices.ContainsFunc(pools, func(p api.Pool) bool { return p.Owner == t.Name && p.First <= g && g <= p.Last })
	}
	now := map[string]views.Port{}
	for _, p := range have {
		now[p.GUID] = p
	}
	want := map[string]bool{}
	for _, p := range t.Spec.Ports {
		want[string(p.GUID)] = true
		a := api.AssignPort{GUID: api.GUID(p.GUID)}
		if p.Bound != nil {
			a.Bound = &views.Place{Switch: string(p.Bound.Switch), Port: int(p.Bound.Port)}
		}
		is, there := now[string(p.GUID)]
		if !there || (is.Bound == nil) != (a.Bound == nil) || a.Bound != nil && *is.Bound != *a.Bound {
			lack = append(lack, a)
		}
	}
	for _, p := range have {
		if !want[p.GUID] && !pooled(p.GUID) {
			extra = append(extra, api.GUID(p.GUID))
		}
	}
	if n := int32(len(have)); t.Status.Ports != n {
		if err := r.claim(ctx, t, func() { t.Status.Ports = n }); err != nil {
			return nil, nil, &step{err: err}
		}
	}
	return extra, lack, nil
}

// ports gives the tenant its ports, and takes the others.
func (r *tenants) ports(ctx context.Context, c *client.Client, t tenant) *step {
	extra, lack, s := r.portsNow(ctx, c, t)
	if s != nil {
		return s
	}
	if len(extra) > 0 {
		if _, s := r.write(ctx, c, t, http.MethodPost, "/ports/release", client.Params{}, api.ReleaseBody{Ports: extra}); s != nil {
			return s
		}
	}
	if len(lack) == 0 {
		return nil
	}
	_, s = r.write(ctx, c, t, http.MethodPost, "/ports/assign", client.Params{}, api.AssignBody{Tenant: t.Name, Ports: lack})
	if s != nil && s.err == nil && len(lack) > 1 {
		// One that cannot be had keeps the others from nothing.
		var messages []string
		for _, p := range lack {
			_, one := r.write(ctx, c, t, http.MethodPost, "/ports/assign", client.Params{}, api.AssignBody{Tenant: t.Name, Ports: []api.AssignPort{p}})
			if one != nil && one.err != nil {
				return one
			}
			if one != nil {
				s = one
				messages = append(messages, one.message)
			}
		}
		if s.message = strings.Join(messages[:min(named, len(messages))], "; "); len(messages) > named {
			s.message += fmt.Sprintf("; and %d more", len(messages)-named)
		}
	}
	if s == nil || len(lack) > 1 {
		if _, _, counted := r.portsNow(ctx, c, t); counted != nil {
			return counted
		}
	}
	return s
}

// poolsNow are the pools of the service's tenant that are too many, and those that are missing.
func (r *tenants) poolsNow(ctx context.Context, c *client.Client, t tenant) (extra []api.Pool, lack []v1alpha1.Pool, s *step) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	have, err := client.All[api.Pool](ctx, c, "/pools", nil)
	if err != nil {
		return nil, nil, r.failed(err)
	}
	want := map[v1alpha1.Pool]bool{}
	for _, p := range t.Spec.Pools {
		want[p] = true
	}
	for _, p := range have {
		if p.Owner != t.Name {
			continue
		}
		k := v1alpha1.Pool{First: v1alpha1.GUID(p.First), Last: v1alpha1.GUID(p.Last)}
		if !want[k] {
			extra = append(extra, p)
		}
		delete(want, k)
	}
	for p := range want {
		lack = append(lack, p)
	}
	slices.SortFunc(lack, func(a, b v1alpha1.Pool) int { return cmp.Compare(a.First, b.First) })
	return extra, lack, nil
}

// pools gives the tenant its ranges of GUIDs, and takes the others.
func (r *tenants) pools(ctx context.Context, c *client.Client, t tenant) (trouble *step) {
	extra, lack, s := r.poolsNow(ctx, c, t)
	if s != nil {
		return s
	}
	for _, p := range extra {
		if _, s := r.write(ctx, c, t, http.MethodDelete, "/pools/"+p.First, client.Params{}, nil); s != nil {
			return s
		}
	}
	for _, p := range lack {
		_, s := r.write(ctx, c, t, http.MethodPost, "/pools", client.Params{}, api.PoolBody{Tenant: t.Name, First: api.GUID(p.First), Last: api.GUID(p.Last)})
		if s != nil && s.err != nil {
			return s
		}
		if s != nil {
			trouble = s
		}
	}
	return trouble
}

// remove takes everything from the tenant, and then the tenant from the service.
func (r *tenants) remove(ctx context.Context, c *client.Client, t tenant) (reconcile.Result, error) {
	if !slices.Contains(t.Finalizers, v1alpha1.Finalizer) {
		return reconcile.Result{}, nil
	}
	if !t.Status.Owned {
		return r.release(ctx, t)
	}
	if s := r.removed(ctx, c, t); s != nil {
		return r.end(ctx, t, *s)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: SecretPrefix + t.Name}}
	if err := r.Delete(ctx, secret); kube.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	r.service.forget(t.Name)
	return r.release(ctx, t)
}

// removed removes the service's tenant; nil when that is proved.
func (r *tenants) removed(ctx context.Context, c *client.Client, t tenant) *step {
	_, _, err := get[api.Tenant](ctx, c, path(t))
	if missing(err) {
		return r.gone(ctx, c, t)
	}
	if err != nil {
		return r.failed(err)
	}
	if s := r.used(ctx, c, t); s != nil {
		return s
	}
	if s := r.waits(ctx, c, t); s != nil {
		return s
	}
	if s := r.damped(t); s != nil {
		return s
	}
	empty := tenant{t.DeepCopy()}
	empty.Spec.Ports, empty.Spec.Pools = nil, nil
	pools, _, s := r.poolsNow(ctx, c, empty)
	if s != nil {
		return s
	}
	for _, p := range pools {
		if _, s := r.write(ctx, c, t, http.MethodDelete, "/pools/"+p.First, client.Params{}, nil); s != nil {
			return s
		}
	}
	ports, err := client.All[views.Port](ctx, c, "/ports", url.Values{"owner": {t.Name}})
	if err != nil {
		return r.failed(err)
	}
	if len(ports) > 0 {
		body := api.ReleaseBody{}
		for _, p := range ports {
			body.Ports = append(body.Ports, api.GUID(p.GUID))
		}
		if _, s := r.write(ctx, c, t, http.MethodPost, "/ports/release", client.Params{}, body); s != nil {
			return s
		}
	}
	if _, s := r.write(ctx, c, t, http.MethodDelete, path(t), client.Params{}, nil); s != nil {
		return s
	}
	return r.gone(ctx, c, t)
}

// used says what keeps a tenant from being deleted.
func (r *tenants) used(ctx context.Context, c *client.Client, t tenant) *step {
	use := func(what string) *step {
		return &step{condition: v1alpha1.ConditionProved, status: metav1.ConditionFalse, reason: v1alpha1.ReasonInUse, message: what, after: r.limits.Again}
	}
	var partitions v1alpha1.IBPartitionList
	if err := r.inNamespace(ctx, &partitions, t.Spec.Namespace); err != nil {
		return &step{err: err}
	}
	var bindings v1alpha1.IBPortBindingList
	if err := r.inNamespace(ctx, &bindings, t.Spec.Namespace); err != nil {
		return &step{err: err}
	}
	if n, m := len(partitions.Items), len(bindings.Items); n+m > 0 {
		return use(fmt.Sprintf("namespace %s has %d IBPartitions and %d IBPortBindings: delete them first", t.Spec.Namespace, n, m))
	}
	lists, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	left, err := client.All[api.Partition](lists, c, "/partitions", url.Values{"owner": {t.Name}})
	if err != nil {
		return r.failed(err)
	}
	if len(left) > 0 {
		return use(fmt.Sprintf("tenant %s has %d partitions that no IBPartition stands for, among them %s %q: delete them first", t.Name, len(left), left[0].PKey, left[0].Name))
	}
	return nil
}
