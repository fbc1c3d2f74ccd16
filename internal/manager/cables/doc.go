// Package cables holds the list of cables: which port of which device leads to which,
// with the port GUIDs and node descriptions at the time of listing.
//
// A device can claim any identity, but it cannot choose its location: a
// packet on a directed route leaves by the ports that the route names. So the
// list is ordered by location, and a manager with a list accepts the identity of a
// device only where the list has exactly that: Check.
//
// A list is made from a topology file (Read), learned from a subnet (Learn), and
// changed by accepting the devices at given ports (Accept). A List is immutable.
// Files have the format of ibnetdiscover, as internal/topology reads it; a file that
// was written reads back as the same list.
package cables
