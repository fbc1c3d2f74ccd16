// Package policy defines which ports belong to which partition.
//
// A Policy is the content of one file, as package policyfile reads it: our own YAML, or
// OpenSM's partitions.conf. The reader returns a *Policy, or an *Error that lists every
// fault with its place; a file with any fault is refused as a whole, and so is an empty
// one. What is unusual but unambiguous is in Policy.Warnings.
//
// Allocate gives a number to each partition that states none; the result is
// a pure function of the policy and of earlier numbers. Resolve turns
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
// partition names it, so that no two tenants have a partition in common. The
// subnet manager's port is then a full member of every partition that has a member,
// since hosts query subnet administration with the keys of their tenant.
//
// A policy may assign alias GUIDs to ports. A selector that names an alias GUID
// means its port, and only the policy assigns aliases: neither what
// a device claims nor what a host registers makes it a member.
//
// A node chooses its own node description, and a selector by
// description trusts it; use GUIDs where hosts are not trusted.
package policy
