// Package pool allocates and reuses objects of one type in slabs, such as packets in
// flight. Objects never move and are identified by an index.
//
//	Take, Put, Get   a free object, by its index
//	InFlight         how many are taken
package pool
