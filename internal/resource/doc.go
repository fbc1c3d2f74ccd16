// Package resource is the state of the service and the rules for changing it:
// tenants, their tokens, the ports and partitions that they own, and the members
// of the partitions.
//
// A State is changed in two steps. Plan checks a Change against the rights, the
// key range and the quota of its caller and returns the Diff that it makes, or a
// *Refusal; the state is as before. Commit enters a Diff, under the number of a
// revision. Between the two the caller of this package stores the Diff. So a
// dry run is Plan alone, and what could not be stored never takes effect. A change is
// made as a whole or not at all.
//
// Nobody gets more by what he says of himself: rights come from the Caller, whom
// the server authenticated, and ownership from the provider. A port is a member of
// a partition, and gets its key, only when both the owner of the partition and the
// owner of the port have agreed to it (Member.Agreed). Each consent names the owner
// who gave it and holds for no other; what is wider than both agreed to (Member.Asked)
// waits for the other's. The provider speaks for a tenant only where both, port and
// partition, are that tenant's.
//
// A caller who may not see something gets the refusal that he would get if it did not
// exist, and a Diff that he causes does not say whose a port is. Sees and SeesMember decide
// what he sees of the objects here, SightOf and SeesKey what of a port of the fabric, SeesObject
// what of an object as it was, and TouchedFor is the last change that he may know of.
//
// A tenant's ports are set apart from the policy file: ALL, groups, patterns, nodes and
// places in it do not mean them, and a file that names one by GUID is refused, since
// nobody can consent to a file. Where the base, which is not planned, names one, it is
// left out. In the default partition these ports are at most limited members. A tenant's
// port gets a key of the provider by a partition of the API and the tenant's consent.
//
// What a number or port had under its last owner has to be proved gone from the fabric
// (Request.Proved) before another owner gets it, the provider with his policy file among
// them (ReturnPorts).
//
// A change by a caller of a tenant with Tenant.ApproveRemovals that takes a key from a
// port, or deletes a partition, becomes an Approval, which a second person carries out.
// Tokens that a caller made, and those made by them, are the same person.
//
// None of the limits, in limits.go, can be lifted by a quota.
//
// Its tests have a second opinion on what tenants may do and see (model_*_test.go): a naive
// model of tenants, ports, partitions and consents, which shares no rule with
// internal/resource, only its types. The tests make random calls of both and compare
// every answer, which port gets which key, and what every tenant sees.
package resource
