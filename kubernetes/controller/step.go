package controller

import (
	"errors"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// Limits are how long the controller waits.
type Limits struct {
	Resync  time.Duration // between two looks at an object that is settled
	Pending time.Duration // between two looks at a revision that is not proved yet
	Again   time.Duration // until what was refused, or waits for something, is tried again
	Refused time.Duration // until what the fabric could not take is asked for again
	First   time.Duration // until a call that failed is repeated, doubled each time
	Most    time.Duration // and at most this
}

// DefaultLimits are those of the program.
var DefaultLimits = Limits{
	Resync: time.Minute, Pending: time.Second, Again: 15 * time.Second, Refused: 5 * time.Minute,
	First: 200 * time.Millisecond, Most: time.Minute,
}

// messageMax bounds the message of a condition, in bytes.
const messageMax = 1024

// step is where a reconcile has ended: with the zero value everything is as the object wants
// it, and proved.
type step struct {
	condition string // the first that is not true
	status    metav1.ConditionStatus
	reason    string
	message   string
	after     time.Duration // look again; 0 for Limits.Resync
	err       error         // repeated, later each time
}

// settled reports whether the object is ready.
func (s step) settled() bool { return s.condition == "" }

// refused: the object asks for what it cannot have, as things are.
func (b *base) refused(reason, message string) *step {
	return &step{condition: v1alpha1.ConditionAccepted, status: metav1.ConditionFalse, reason: reason, message: message, after: b.limits.Again}
}

// failed is where a call of the service leads that failed.
func (b *base) failed(err error) *step {
	s := &step{condition: v1alpha1.ConditionAccepted, status: metav1.ConditionUnknown, reason: v1alpha1.ReasonUnreachable, message: err.Error(), err: err}
	var p *api.Problem
	if !errors.As(err, &p) {
		return s
	}
	s.reason = camel(p.Reason)
	switch {
	case p.Status == http.StatusPreconditionFailed, p.Status == http.StatusTooManyRequests,
		p.Status == http.StatusRequestTimeout, p.Status == http.StatusUnauthorized, p.Status >= 500:
		return s
	}
	return b.refused(s.reason, s.message)
}

// isStatus reports whether the service answered with a status.
func isStatus(err error, status int) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Status == status
}

// camel spells a reason of the service as conditions do: over-quota is OverQuota.
func camel(reason string) string {
	out := ""
	for word := range strings.SplitSeq(reason, "-") {
		if word != "" {
			out += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	if out == "" {
		return v1alpha1.ReasonUnreachable
	}
	return out
}

// shorten keeps a message within messageMax.
func shorten(text string) string {
	if len(text) > messageMax {
		return strings.ToValidUTF8(text[:messageMax-3], "") + "..."
	}
	return text
}
