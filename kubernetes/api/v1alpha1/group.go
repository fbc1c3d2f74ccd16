package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the resources of this package.
var GroupVersion = schema.GroupVersion{Group: "ibwarden.github.io", Version: "v1alpha1"}

// AddToScheme adds the resources to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &IBTenant{}, &IBTenantList{}, &IBPartition{}, &IBPartitionList{}, &IBPortBinding{}, &IBPortBindingList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
