// Package endnode connects an end port of a simulated fabric with its subnet management
// agent and its performance agent.
//
//	Port      an end port as package endpoint sees it: the current values of the agent
//	Look      values whose changes a consumer learns of, and Tell, which reports them
//	Perform   the answer of the performance agent behind QP1
package endnode
