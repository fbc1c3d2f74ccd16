// Package endnode is where an end port of a simulated fabric, its
// subnet-management agent and its performance agent meet.
//
//	Port      an end port as package endpoint sees it: what the agent says now
//	Look      what a consumer is told of when it changes, and Tell, which tells
//	Perform   the answer of the performance agent behind QP1
package endnode
