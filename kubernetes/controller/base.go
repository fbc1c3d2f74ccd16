package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// Actions of events, what the controller was doing.
const (
	actionReconcile = "Reconcile"
	actionDelete    = "Delete"
)

// base is what every reconciler has.
type base struct {
	kube.Client
	reader    kube.Reader // past the cache
	service   *Service
	events    events.EventRecorder
	limits    Limits
	namespace string // of the controller, where its Secrets are
}

// object is a resource of ours.
type object interface {
	kube.Object
	common() *v1alpha1.Status
}

type (
	tenant    struct{ *v1alpha1.IBTenant }
	partition struct{ *v1alpha1.IBPartition }
	binding   struct{ *v1alpha1.IBPortBinding }
)

func (t tenant) common() *v1alpha1.Status    { return &t.Status.Status }
func (p partition) common() *v1alpha1.Status { return &p.Status.Status }
func (p binding) common() *v1alpha1.Status   { return &p.Status.Status }

// raw is the resource itself, which the client of Kubernetes knows.
func raw(o object) kube.Object {
	switch o := o.(type) {
	case tenant:
		return o.IBTenant
	case partition:
		return o.IBPartition
	case binding:
		return o.IBPortBinding
	}
	panic(fmt.Sprintf("%T is no resource", o))
}

// claim writes the status as change leaves it, before what it says is made. An object that
// changed meanwhile is looked at again.
func (b *base) claim(ctx context.Context, o object, change func()) error {
	before := raw(o).DeepCopyObject().(kube.Object)
	change()
	if equality.Semantic.DeepEqual(before, raw(o)) {
		return nil
	}
	return b.Status().Patch(ctx, raw(o), kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}))
}

// hold puts the finalizer on an object.
func (b *base) hold(ctx context.Context, o object) error {
	if controllerutil.ContainsFinalizer(raw(o), v1alpha1.Finalizer) {
		return nil
	}
	before := raw(o).DeepCopyObject().(kube.Object)
	controllerutil.AddFinalizer(raw(o), v1alpha1.Finalizer)
	return b.Patch(ctx, raw(o), kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}))
}

// release lets an object go of which the fabric has nothing any more.
func (b *base) release(ctx context.Context, o object) (reconcile.Result, error) {
	before := raw(o).DeepCopyObject().(kube.Object)
	if controllerutil.RemoveFinalizer(raw(o), v1alpha1.Finalizer) {
		b.events.Eventf(raw(o), nil, corev1.EventTypeNormal, v1alpha1.ReasonDeleted, actionDelete, "the fabric is proved to have nothing of it")
		if err := b.Patch(ctx, raw(o), kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{})); err != nil {
			return reconcile.Result{}, kube.IgnoreNotFound(err)
		}
	}
	return reconcile.Result{}, nil
}

// end writes into the status where a reconcile has ended, and says when to look again.
func (b *base) end(ctx context.Context, o object, s step) (reconcile.Result, error) {
	status, was := o.common(), ""
	if c := meta.FindStatusCondition(o.common().Conditions, v1alpha1.ConditionReady); c != nil {
		was = c.Reason + c.Message
	}
	s.message = shorten(s.message)
	err := b.claim(ctx, o, func() {
		set := func(kind string, value metav1.ConditionStatus, reason, message string) {
			meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: value, ObservedGeneration: o.GetGeneration(), Reason: reason, Message: message})
		}
		status.ObservedGeneration = o.GetGeneration()
		switch s.condition {
		case "":
			set(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "")
			set(v1alpha1.ConditionProved, metav1.ConditionTrue, v1alpha1.ReasonProved, s.message)
			set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, s.message)
			return
		case v1alpha1.ConditionProved:
			set(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "")
		case v1alpha1.ConditionAccepted:
			// What is not accepted is not proved either; what was proved of an earlier
			// generation, or before the service was lost, is not known to hold still.
			set(v1alpha1.ConditionProved, metav1.ConditionUnknown, s.reason, "")
		}
		set(s.condition, s.status, s.reason, s.message)
		set(v1alpha1.ConditionReady, s.status, s.reason, s.message)
	})
	if err != nil {
		return reconcile.Result{}, kube.IgnoreNotFound(err)
	}
	if now := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); was != now.Reason+now.Message {
		kind := corev1.EventTypeNormal
		if s.condition != "" && s.status != metav1.ConditionUnknown || s.err != nil {
			kind = corev1.EventTypeWarning
		}
		b.events.Eventf(raw(o), nil, kind, now.Reason, actionReconcile, "%s", now.Message)
	}
	if s.err != nil {
		return reconcile.Result{}, s.err
	}
	if s.after == 0 {
		s.after = b.limits.Resync
	}
	return reconcile.Result{RequeueAfter: s.after}, nil
}

// write makes a change of the service for an object, and notes its revision. A change that
// waits for a second person ends the reconcile.
func (b *base) write(ctx context.Context, c *client.Client, o object, method, path string, p client.Params, body any) (api.Changed, *step) {
	var out api.Changed
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	p.Why = fmt.Sprintf("%T %s %s", raw(o), kube.ObjectKeyFromObject(o), o.GetUID())
	if err := c.Write(ctx, method, path, p, body, &out); err != nil {
		return out, b.failed(err)
	}
	if out.Approval != "" {
		err := b.claim(ctx, o, func() { o.common().Approval = out.Approval })
		if err != nil {
			return out, &step{err: err}
		}
		return out, b.approval(out.Approval)
	}
	if len(out.Words) > 0 {
		if err := b.claim(ctx, o, func() { o.common().Revision = int64(out.Revision) }); err != nil {
			return out, &step{err: err}
		}
	}
	return out, nil
}

func (b *base) approval(id string) *step {
	return &step{
		condition: v1alpha1.ConditionProved, status: metav1.ConditionUnknown, reason: v1alpha1.ReasonApproval, after: b.limits.Again,
		message: "a second person has to approve it: ibwarden approval approve " + id,
	}
}

// waits reports whether a change that an object asked for still waits for a second person.
func (b *base) waits(ctx context.Context, c *client.Client, o object) *step {
	id := o.common().Approval
	if id == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	list, err := client.All[api.Approval](ctx, c, "/approvals", nil)
	if err != nil {
		return b.failed(err)
	}
	for _, a := range list {
		if a.ID == id {
			return b.approval(id)
		}
	}
	if err := b.claim(ctx, o, func() { o.common().Approval = "" }); err != nil {
		return &step{err: err}
	}
	return nil
}

// proof is where the last revision of an object leads.
func (b *base) proof(ctx context.Context, c *client.Client, o object) *step {
	status := o.common()
	if status.Revision == 0 {
		// Nothing had to be changed: what was newest then stands for it.
		n, err := newest(ctx, c)
		if err != nil {
			return b.failed(err)
		}
		if n == 0 {
			return nil
		}
		if err := b.claim(ctx, o, func() { status.Revision = n }); err != nil {
			return &step{err: err}
		}
	}
	r, _, err := get[views.Revision](ctx, c, fmt.Sprint("/revisions/", status.Revision))
	if err != nil {
		return b.failed(err)
	}
	state := views.Outcome{State: "pending"}
	if r.Outcome != nil {
		state = *r.Outcome
	}
	if state.State == "failed" {
		// A later revision that is proved has what this one changed.
		if n, err := newest(ctx, c); err == nil && n > status.Revision {
			if r, _, err := get[views.Revision](ctx, c, fmt.Sprint("/revisions/", n)); err == nil && r.Outcome != nil && r.Outcome.State == "proved" {
				state = *r.Outcome
			}
		}
	}
	if err := b.claim(ctx, o, func() { status.Verdict = state.Verdict }); err != nil {
		return &step{err: err}
	}
	s := &step{condition: v1alpha1.ConditionProved, status: metav1.ConditionUnknown, reason: v1alpha1.ReasonPending, after: b.limits.Pending, message: fmt.Sprintf("revision %d is stored, and not proved yet", status.Revision)}
	switch state.State {
	case "proved":
		return nil
	case "failed":
		s.status, s.reason, s.after = metav1.ConditionFalse, v1alpha1.ReasonFailed, b.limits.Again
		s.message = fmt.Sprintf("revision %d is written, and not proved: the verdict is %s", status.Revision, state.Verdict)
	case "refused":
		s.status, s.reason, s.after = metav1.ConditionFalse, v1alpha1.ReasonRefused, b.limits.Refused
		s.message = fmt.Sprintf("the fabric cannot take revision %d, which was taken back", status.Revision)
	}
	return s
}

// newest is the last revision that the caller sees; 0 for none.
func newest(ctx context.Context, c *client.Client) (int64, error) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	list, err := client.Page[views.Revision](ctx, c, "/revisions", 1, url.Values{})
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return int64(list[0].Number), nil
}

// damped keeps what the fabric could not take from being asked for again at once: the
// service has taken it back, so that it is missing there.
func (b *base) damped(o object) *step {
	c := meta.FindStatusCondition(o.common().Conditions, v1alpha1.ConditionProved)
	if c == nil || c.Reason != v1alpha1.ReasonRefused || c.ObservedGeneration != o.GetGeneration() {
		return nil
	}
	left := b.limits.Refused - time.Since(c.LastTransitionTime.Time)
	if left <= 0 {
		return nil
	}
	return &step{condition: v1alpha1.ConditionProved, status: c.Status, reason: c.Reason, message: c.Message, after: left}
}

// gone is where an object leads that is being deleted and that the service has no more:
// nil when the fabric is proved to have lost it. Whoever removed it, and however often this
// program was started since, a revision after the removal has to be proved.
func (b *base) gone(ctx context.Context, c *client.Client, o object) *step {
	ready := meta.FindStatusCondition(o.common().Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != v1alpha1.ReasonDeleting {
		n, err := newest(ctx, c)
		if err != nil {
			return b.failed(err)
		}
		err = b.claim(ctx, o, func() {
			o.common().Revision = max(o.common().Revision, n)
			meta.SetStatusCondition(&o.common().Conditions, metav1.Condition{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: o.GetGeneration(), Reason: v1alpha1.ReasonDeleting,
				Message: fmt.Sprintf("removed; waits until revision %d is proved", max(o.common().Revision, n)),
			})
		})
		if err != nil {
			return &step{err: err}
		}
	}
	s := b.proof(ctx, c, o)
	if s != nil && s.err == nil && s.condition == v1alpha1.ConditionProved && s.reason != v1alpha1.ReasonRefused {
		s.message = "removed; " + s.message
		s.reason, s.status, s.after = v1alpha1.ReasonDeleting, metav1.ConditionFalse, b.limits.Pending
	}
	return s
}

// broughtBack reports whether somebody changed what an object stands for.
func (b *base) broughtBack(o object, format string, args ...any) {
	b.events.Eventf(raw(o), nil, corev1.EventTypeWarning, v1alpha1.ReasonBroughtBack, actionReconcile, format, args...)
}

// missing reports whether an error says that an object of the service is not there.
func missing(err error) bool { return isStatus(err, http.StatusNotFound) }
