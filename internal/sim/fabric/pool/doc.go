// Package pool holds things of one kind that are made and done with all the time,
// such as packets under way. They come in slabs, never move, are known by an
// index, and are used again when they are done with.
//
//	Take, Put, Get   one that is free, by its index
//	InFlight         how many are taken
package pool
