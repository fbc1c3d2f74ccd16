// Package compare compares the computed path of a packet with the path of a real one
// through a replica of the fabric: a reach.Trace with a replica.Journey. The two are
// computed independently.
//
//	Send       sends the packet of a trace through a replica
//	Compare    lists where the two differ, hop by hop and at the end
//	Try        does both on a replica made for it, for reports
package compare
