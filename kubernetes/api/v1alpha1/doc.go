// Package v1alpha1 is the resources by which Kubernetes asks ibwarden for isolation:
//
//	IBTenant       a tenant of the fabric, and the namespace that acts for it
//	IBPartition    a partition of that tenant
//	IBPortBinding  a port of that tenant as a member of a partition
//
// +kubebuilder:object:generate=true
// +groupName=ibwarden.github.io
package v1alpha1

//go:generate go tool controller-gen object paths=.
//go:generate go tool controller-gen crd paths=. output:crd:dir=../../config/crd
