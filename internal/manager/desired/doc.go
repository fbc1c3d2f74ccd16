// Package desired works out what every device of a subnet ought to hold.
//
// Compute is a function: from the fabric as it was read, a policy as it was
// resolved among its ports (Resolve), and what was assigned before, to every table
// and setting, with warnings for people. It sends nothing and keeps nothing; what a
// manager knows beyond the fabric (fences, ports out of sight, bounds on what a
// policy may give) is in its Input. An error means that nothing may be written.
//
// Update does the same for another policy where the result of one stands, and looks
// only at the ports that the difference concerns. What it comes to is what Compute
// would come to; where that cannot be known so, it says that the whole has to be
// looked at.
//
// What is composed here is worked out in the packages below: addresses in lid,
// forwarding tables in routing and mcast, P_Keys in partition, links in qos, the
// rest of PortInfo in ports.
package desired
