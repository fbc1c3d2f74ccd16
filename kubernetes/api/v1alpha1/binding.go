package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Membership is how far a member reaches: full members reach every member, limited ones full
// members alone.
// +kubebuilder:validation:Enum=full;limited
type Membership string

// Memberships.
const (
	Full    Membership = "full"
	Limited Membership = "limited"
)

// IBPortBinding makes a port a member of a partition.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Partition,type=string,JSONPath=`.spec.partition`
// +kubebuilder:printcolumn:name=Port,type=string,JSONPath=`.status.port`
// +kubebuilder:printcolumn:name=Membership,type=string,JSONPath=`.spec.membership`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type IBPortBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec IBPortBindingSpec `json:"spec"`
	// +optional
	Status IBPortBindingStatus `json:"status,omitempty"`
}

// IBPortBindingSpec is which port is in which partition, and how.
// +kubebuilder:validation:XValidation:rule="has(self.port) != has(self.place)",message="want port or place, and not both"
// +kubebuilder:validation:XValidation:rule="has(self.port) == has(oldSelf.port) && (!has(self.port) || self.port == oldSelf.port) && (!has(self.place) || self.place == oldSelf.place)",message="the port cannot be changed: make another IBPortBinding"
type IBPortBindingSpec struct {
	// The name of an IBPartition of this namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the partition cannot be changed: make another IBPortBinding"
	Partition string `json:"partition"`
	// GUID of the port.
	// +optional
	Port GUID `json:"port,omitempty"`
	// The port of the tenant that is cabled to this place, whichever it is.
	// +optional
	Place      *Place     `json:"place,omitempty"`
	Membership Membership `json:"membership"`
	// Put the key at index 0 of the port's table.
	// +optional
	Index0 bool `json:"index0,omitempty"`
}

// IBPortBindingStatus is what became of a binding.
type IBPortBindingStatus struct {
	Status `json:",inline"`
	// The partition that the port is a member of, or is to be.
	// +optional
	PKey PKey `json:"pkey,omitempty"`
	// The port that is the member, or is to be.
	// +optional
	Port GUID `json:"port,omitempty"`
}

// IBPortBindingList is a list of bindings.
// +kubebuilder:object:root=true
type IBPortBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IBPortBinding `json:"items"`
}
