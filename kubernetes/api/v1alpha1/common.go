package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Finalizer is on every object of which the service may have something: the object stays
// until the fabric is proved to have lost it.
const Finalizer = "ibwarden.github.io/fabric"

// Types of conditions.
const (
	// ConditionAccepted says whether the service took what the object asks for.
	ConditionAccepted = "Accepted"
	// ConditionProved says whether what the object asks for is proved on the fabric.
	ConditionProved = "Proved"
	// ConditionReady is both, for kubectl wait.
	ConditionReady = "Ready"
)

// Reasons of conditions and events. A problem of the service's API gives its own reason in
// this spelling: over-quota is OverQuota.
const (
	ReasonAccepted    = "Accepted"    // the service has it
	ReasonProved      = "Proved"      // and the fabric is proved to have it
	ReasonReady       = "Ready"       // both
	ReasonPending     = "Pending"     // stored, not yet proved
	ReasonFailed      = "Failed"      // written, and not proved
	ReasonRefused     = "Refused"     // the fabric cannot take it; nothing was written
	ReasonWaiting     = "Waiting"     // for another object, which the message names
	ReasonConflict    = "Conflict"    // with another object or another user of the service
	ReasonInUse       = "InUse"       // it is not deleted while something needs it
	ReasonApproval    = "Approval"    // a second person has to approve it
	ReasonUnreachable = "Unreachable" // the service does not answer
	ReasonDeleting    = "Deleting"    // being taken from the fabric
	ReasonBroughtBack = "BroughtBack" // somebody changed it through the API
	ReasonDeleted     = "Deleted"     // gone, and proved so
)

// PKey is the number of a partition: four hexadecimal digits after 0x, without the bit for
// full membership.
// +kubebuilder:validation:Pattern=`^0x[0-7][0-9a-f]{3}$`
// +kubebuilder:validation:MaxLength=6
type PKey string

// GUID is the GUID of a port or a node: 16 lower-case hexadecimal digits after 0x.
// +kubebuilder:validation:Pattern=`^0x[0-9a-f]{16}$`
// +kubebuilder:validation:MaxLength=18
type GUID string

// Status is what is common to the status of every resource.
type Status struct {
	// The generation of the spec that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Accepted, Proved and Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// The last revision of the service that this object made.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// The verdict on the fabric at that revision: isolated, isolated-unguarded, violated or unknown.
	// +optional
	Verdict string `json:"verdict,omitempty"`
	// The change that waits for a second person.
	// +optional
	Approval string `json:"approval,omitempty"`
}
