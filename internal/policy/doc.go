// Package policy says who belongs to which partition.
//
// A Policy is what one file says, as read by partitionsconf (OpenSM's
// partitions.conf), policyyaml (our own format) or policyfile (either). Those
// readers return a *Policy, or an *Error that lists every fault found with its
// place; a file with any fault is refused whole, and so is an empty one. What
// is odd but certain in meaning stands in Policy.Warnings.
//
// Allocate gives a number to each partition that states none; the answer is
// a pure function of the policy and of the numbers given before. Resolve turns
// selectors into port GUIDs for the end ports of one fabric.
//
// The members of a partition are an ordered list, and the last member that
// selects a port decides for that port, as in partitions.conf. Where YAML
// lists members by membership instead, without an order, the list is put in
// the order of SelectorKind: the more specific selector decides, and between
// equals limited decides.
//
// Every end port is at least a limited member of the default partition,
// 0x7fff, and the subnet manager's own port a full one; a policy may raise the
// former and lower the latter. With Default None no port is in it unless a
// partition names it, so that no two tenants have a partition in common; the
// subnet manager's port is a full member of every partition that has a member
// then, since subnet administration is asked over the tenants' own keys.
//
// A policy may give ports further GUIDs. A selector that names an alias GUID
// means its port, and only the policy says whose alias a GUID is: neither what
// a device claims nor what a host registers makes it a member.
//
// A node description is what a node says of itself. A selector that goes by
// description trusts the node that far; GUIDs are the better selectors where
// hosts are not trusted.
package policy
