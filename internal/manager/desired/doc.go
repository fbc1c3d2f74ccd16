// Package desired computes what every device of a subnet ought to hold.
//
// Compute is a pure function: from the fabric as it was read, a policy resolved
// on its ports (Resolve), and earlier assignments, to every table
// and setting, with warnings for people. Other knowledge of the
// manager (fences, unreachable ports, bounds on a policy) is in its Input. If it returns
// an error, nothing may be written.
//
// Update computes the result for another policy from an earlier result, and looks
// only at the ports that the difference affects. The outcome equals that of
// Compute; where this cannot be guaranteed, it says that a full computation is needed.
//
// A LID that a policy sets aside for the master is no port's: the manager's port has it in
// place of its own, which it keeps for later, and forwarding tables lead both alike. So the
// tables that two managers want differ in the entry of that LID only.
//
// The parts: LIDs (AssignLIDs), multicast forwarding tables (ComputeMulticast), links
// and virtual lanes (EnterLinks, EnterLanes), and the rest of PortInfo, each described
// in a file of its own. Packages below compute the others: unicast forwarding tables
// in routing, P_Keys in partition.
package desired
