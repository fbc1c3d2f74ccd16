// Package cables is the list of what is cabled to what: which port of which
// device leads to which, with the GUIDs of end ports and the descriptions that
// devices had when the list was made.
//
// A device may say anything of itself. Where it stands it cannot choose: a
// packet on a directed route leaves by the ports that the route names. So the
// list goes by places, and a manager that has one takes a device for what it
// says only where the list has exactly that: Check.
//
// A list is made from a topology file (Read), learned from a subnet (Learn), and
// changed by taking over what stands at given ports (Accept). It never changes
// in place. Files are those of ibnetdiscover, as internal/topology reads them; what
// is written reads back as the same list.
package cables
