package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// IBTenant is a tenant of the fabric: the keys and ports that the provider gives it, and
// the one namespace that acts for it. Only the cluster's administrator makes these.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name=Namespace,type=string,JSONPath=`.spec.namespace`
// +kubebuilder:printcolumn:name=First,type=string,JSONPath=`.spec.pkeys.first`
// +kubebuilder:printcolumn:name=Last,type=string,JSONPath=`.spec.pkeys.last`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40 && self.metadata.name != 'provider'",message="the name is that of the tenant: want at most 40 characters, and not provider"
type IBTenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec IBTenantSpec `json:"spec"`
	// +optional
	Status IBTenantStatus `json:"status,omitempty"`
}

// IBTenantSpec is what a tenant has. The tenant's name is that of the object.
type IBTenantSpec struct {
	// The namespace whose partitions and bindings are the tenant's. No other IBTenant may have it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the namespace cannot be changed: delete the IBTenant, and make another"
	Namespace string `json:"namespace"`
	// The numbers that its partitions may have.
	PKeys PKeyRange `json:"pkeys"`
	// +optional
	Quota Quota `json:"quota,omitempty"`
	// Its ports: all of them. A port that is not here is taken from the tenant.
	// +kubebuilder:validation:MaxItems=4096
	// +listType=map
	// +listMapKey=guid
	// +optional
	Ports []TenantPort `json:"ports,omitempty"`
	// Ranges of port GUIDs, for virtual functions: all that it has.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=first
	// +optional
	Pools []Pool `json:"pools,omitempty"`
	// Refuse GUIDs that the fabric has not seen.
	// +optional
	KnownPortsOnly bool `json:"knownPortsOnly,omitempty"`
	// Take over a tenant of this name that the service has already. It must have no port, pool or
	// partition that this spec does not allow.
	// +optional
	Adopt bool `json:"adopt,omitempty"`
}

// PKeyRange is a range of partition numbers, both ends included.
// +kubebuilder:validation:XValidation:rule="self.first <= self.last",message="first must not be above last"
// +kubebuilder:validation:XValidation:rule="self.first != '0x0000' && self.last != '0x7fff'",message="0x0000 and 0x7fff are nobody's: want 0x0001 to 0x7ffe"
type PKeyRange struct {
	First PKey `json:"first"`
	Last  PKey `json:"last"`
}

// Quota bounds what a tenant may have; 0 is no bound.
type Quota struct {
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32766
	// +optional
	Partitions int32 `json:"partitions,omitempty"`
	// Members of all its partitions together.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000000
	// +optional
	Members int32 `json:"members,omitempty"`
	// Partitions that one port is a member of.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32766
	// +optional
	KeysPerPort int32 `json:"keysPerPort,omitempty"`
	// Accepted changes in 60 s.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	ChangesPerMinute int32 `json:"changesPerMinute,omitempty"`
}

// TenantPort is a port that the provider gives to the tenant.
type TenantPort struct {
	GUID GUID `json:"guid"`
	// The only place where the port gets its keys.
	// +optional
	Bound *Place `json:"bound,omitempty"`
}

// Place is a port of a switch.
type Place struct {
	// Node GUID of the switch.
	Switch GUID `json:"switch"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=254
	Port int32 `json:"port"`
}

// Pool is a range of port GUIDs, both ends included.
// +kubebuilder:validation:XValidation:rule="self.first <= self.last",message="first must not be above last"
type Pool struct {
	First GUID `json:"first"`
	Last  GUID `json:"last"`
}

// IBTenantStatus is what became of a tenant.
type IBTenantStatus struct {
	Status `json:",inline"`
	// The service's tenant is this object's: it was made for it, or taken over.
	// +optional
	Owned bool `json:"owned,omitempty"`
	// How many ports the service says that the tenant has.
	// +optional
	Ports int32 `json:"ports,omitempty"`
}

// IBTenantList is a list of tenants.
// +kubebuilder:object:root=true
type IBTenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IBTenant `json:"items"`
}
