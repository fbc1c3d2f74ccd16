// Package group keeps the multicast groups of a subnet and their members: the
// rules by which ports create, join and leave them, as values.
//
//	Group   a group with its settings and its members
//	Set     all groups, and who may have which multicast LID
//	Set.Join, Set.Leave   what a host asks for, judged and done
//	Set.Fix               the groups of a policy
//	Set.Prune             drops the members that may not be any more
//	Set.State, Restore    all of it as a value that outlives the process
//
// Which ports a group has follows from here; the forwarding tables that this
// comes to are computed elsewhere from Set.Groups, which is ordered by MGID,
// its members by port GUID.
//
// A multicast LID belongs to one group and so to one partition. When a group
// ends, its LID is kept for that partition (Retired), since tables may still
// lead it to the partition's ports, until Release says that no table does.
//
// A request that is refused changes nothing. Refused requests return a status
// of subnet administration.
package group
