package isolation

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Group is a multicast group.
type Group struct {
	MLID ib.LID
	Base ib.PKeyBase
	// Receivers are the members that packets of the group have to reach.
	Receivers []ib.PortGUID
}

// Multicast says to whom the multicast forwarding tables lead packets.
type Multicast struct {
	// Verdict is Isolated when tables lead packets of a multicast LID only to
	// ports that one partition holds, Violated when they lead them farther or in
	// a circle, Unknown when a table was not read.
	Verdict Verdict `json:"verdict"`
	// Spreads are the multicast LIDs that any table leads anywhere, in order,
	// MaxSpreads at most.
	Spreads []Spread `json:"spreads"`
	// Reasons says in words why the verdict is not Isolated.
	Reasons []string `json:"reasons"`
	// LIDs counts all multicast LIDs that lead anywhere, Missing the members of
	// known groups that their packets do not reach; these do not weigh on the
	// verdict.
	LIDs    int `json:"lids"`
	Missing int `json:"missing"`
}

// Spread is who gets packets for one multicast LID.
type Spread struct {
	MLID ib.LID `json:"mlid"`
	// Ports counts the end ports that it leads to, First is the first of them.
	Ports int         `json:"ports"`
	First ib.PortGUID `json:"first"`
	// Partitions are those that hold all of these ports, one at least as a full
	// member; of a known group only its own is asked for.
	Partitions []string `json:"partitions"`
	Verdict    Verdict  `json:"verdict"`
	Reason     string   `json:"reason"`
}

// MaxSpreads bounds Multicast.Spreads.
const MaxSpreads = 1024

// ProveMulticast judges the multicast forwarding tables of a snapshot. Which
// group a multicast LID belongs to no table says: of those that groups does not
// have, all ports that one leads to have to share a partition.
func ProveMulticast(f *observed.Fabric, allowed []observed.Partition, groups []Group) *Multicast {
	return new(MulticastProver).Prove(f, allowed, groups)
}
