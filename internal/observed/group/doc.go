// Package group keeps the multicast groups of a subnet and their members: the
// rules by which ports create, join and leave them, as values.
//
//	Group   a group with its settings and its members
//	Set     all groups, and the assignment of multicast LIDs
//	Set.Join, Set.Leave   requests of hosts
//	Set.Fix               the groups of a policy
//	Set.Prune             drops members that lost the permission
//	Set.State, Restore    all of it as a value that can be stored
//
// The forwarding tables are computed elsewhere from Set.Groups, which is ordered by
// MGID, its members by port GUID.
//
// A multicast LID belongs to one group and so to one partition. When a group
// ends, its LID is kept for that partition (Retired), since tables may still
// lead it to the partition's ports, until Release says that no table does.
//
// A refused request changes nothing, and returns a status
// of subnet administration.
package group
