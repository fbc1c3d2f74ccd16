// Package compare holds what was computed of a packet beside what became of a
// real one: a reach.Trace beside a replica.Journey. The two come about without
// each other; here alone they meet.
//
//	Send       sends the packet of a trace through a replica
//	Compare    says in words where the two differ, hop by hop and at the end
//	Try        does both on a replica made for it, for reports
package compare
