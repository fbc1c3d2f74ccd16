// Package timeline is the order of what happens in a simulated fabric.
//
//	Push        an event, with the time that it happens at
//	Head, Pop   the earliest; of events of one time the one pushed first
//
// Events that always lie the same span ahead have a Lane, and need no heap.
package timeline
