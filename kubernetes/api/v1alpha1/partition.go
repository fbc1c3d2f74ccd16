package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// IBPartition is a partition of the tenant whose namespace it is in.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=PKey,type=string,JSONPath=`.status.pkey`
// +kubebuilder:printcolumn:name=Members,type=integer,JSONPath=`.status.members`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="the name is that of the partition: want at most 40 characters"
type IBPartition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec IBPartitionSpec `json:"spec,omitempty"`
	// +optional
	Status IBPartitionStatus `json:"status,omitempty"`
}

// IBPartitionSpec is what is said of a partition. Its name is that of the object.
// +kubebuilder:validation:XValidation:rule="has(self.pkey) == has(oldSelf.pkey) && (!has(self.pkey) || self.pkey == oldSelf.pkey)",message="the P_Key cannot be changed: make another IBPartition"
type IBPartitionSpec struct {
	// Number; the lowest of the tenant's that is free when there is none.
	// +optional
	PKey PKey `json:"pkey,omitempty"`
	// Service level.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	// +optional
	ServiceLevel int32 `json:"serviceLevel,omitempty"`
	// Bytes; the policy's default when there is none.
	// +kubebuilder:validation:Enum=256;512;1024;2048;4096
	// +optional
	MTU int32 `json:"mtu,omitempty"`
	// Gb/s, such as "100" or "2.5"; the policy's default when there is none.
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,3}(\.5)?$`
	// +optional
	Rate string `json:"rate,omitempty"`
	// Make the broadcast group of IP over InfiniBand.
	// +optional
	IPOverIB bool `json:"ipOverIB,omitempty"`
	// Take over the partition with this number that the tenant has already.
	// +optional
	Adopt bool `json:"adopt,omitempty"`
}

// IBPartitionStatus is what became of a partition.
type IBPartitionStatus struct {
	Status `json:",inline"`
	// Its number.
	// +optional
	PKey PKey `json:"pkey,omitempty"`
	// How many members it has, those that others added included.
	// +optional
	Members int32 `json:"members,omitempty"`
}

// IBPartitionList is a list of partitions.
// +kubebuilder:object:root=true
type IBPartitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IBPartition `json:"items"`
}
