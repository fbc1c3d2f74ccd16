// Package controller carries the resources of package v1alpha1 to ibwarden's service, and what
// becomes of them back.
//
// What the provider decides (IBTenant) goes to the service with the provider's token. What a
// namespace asks for (IBPartition, IBPortBinding) goes with a token of the tenant whose
// namespace it is, so that the service itself refuses what is another's, even if this program
// were mistaken.
//
// The state of the cluster is what counts: what somebody changes through the service's API is
// brought back when it is found, at the latest after Limits.Resync. Objects of the service that
// no resource stands for are left alone, and so are members that others added to a partition.
//
// An object that is deleted stays, with its finalizer, until the service has proved that the
// fabric has lost what it stood for.
//
// Every reconcile may be the first after a crash: what is about to be made is written to the
// status before it is made, and what the status says is checked against the service.
package controller
