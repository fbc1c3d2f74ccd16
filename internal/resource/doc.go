// Package resource is the state of the service and the rules for changing it:
// tenants, their tokens, the ports and partitions that they own, and the members
// of the partitions.
//
// A State is changed in two steps. Plan checks a Change against the rights, the
// key range and the quota of its caller and returns the Diff that it makes, or a
// *Refusal; the state is as before. Commit enters a Diff, under the number of a
// revision. Between the two the caller of this package stores the Diff. So a
// dry run is Plan alone, and what could not be stored never takes effect.
//
// Nobody gets more by what he says of himself: rights come from the Caller, whom
// the server authenticated, and ownership from the provider. A port is a member of
// a partition, and gets its key, only when both the owner of the partition and the
// owner of the port have agreed to it (Member.Agreed).
package resource
