// Package timeline orders the events of a simulated fabric.
//
//	Push        an event, with its time
//	Head, Pop   the earliest; of events of one time the one pushed first
//
// Events with a constant delay use a Lane, which needs no heap.
package timeline
