// fabricmap*.go: shows callers of the API the whole of a fabric, small enough that tens of
// thousands of hosts can be drawn: where each device stands, whose it is and how it is, and
// the cables between them. A tenant is shown its own devices alone.

package views

import "time"

// Map is a fabric as a caller sees it: columns of which the same place is about the same node,
// or the same cable.
type Map struct {
	Revision uint64    `json:"revision" doc:"the revision that was read"`
	Old      string    `json:"old,omitempty" doc:"why owners may be old: the store cannot be reached, or another manager writes it"`
	ReadAt   time.Time `json:"read_at" doc:"when the fabric was read"`
	MapContent
}

// MapContent is what an ETag of a map stands for: all but when it was read.
type MapContent struct {
	Owners     []string `json:"owners" doc:"tenants that own an end port here"`
	Parties    []string `json:"parties" doc:"those of GET /matrix: tenants, and other end ports with the same keys; of a tenant itself alone"`
	Groups     []Group  `json:"groups" doc:"those of --racks, else pods, subtrees or single leaves, in their order; behind them the switches above all of them, and nodes without a switch. For a tenant one group without a name"`
	Racks      []string `json:"racks,omitempty" doc:"racks and rails in the groups, where --racks names any; never for a tenant"`
	States     []string `json:"states" doc:"words for nodes.state"`
	Verdicts   []string `json:"verdicts" doc:"words for nodes.verdict"`
	LinkStates []string `json:"link_states" doc:"words for links.state"`
	Listed     bool     `json:"listed" doc:"there is a list of cables, which the cables are held against; false for a tenant"`
	Nodes      Nodes    `json:"nodes"`
	Links      Links    `json:"links" doc:"for a tenant none that end at another's device"`
}

// Group is what belongs together.
type Group struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
}

// Nodes are devices by GUID.
type Nodes struct {
	GUID    []string `json:"guid" doc:"node GUIDs"`
	Name    []string `json:"name" doc:"what each says of itself; of a missing one, what the list of cables says"`
	Type    []int    `json:"type" doc:"0 CA, 1 switch, 2 router"`
	LID     []int    `json:"lid" doc:"LIDs of end ports: the lowest of each node; 0 where none was read"`
	Level   []int    `json:"level" doc:"0 CAs and routers, 1 leaves, 2 and more what is above them"`
	Group   []int    `json:"group" doc:"indices of groups"`
	Rack    []int32  `json:"rack,omitempty" doc:"indices of racks; -1 none"`
	Owner   []int    `json:"owner" doc:"indices of owners; -1 nobody, -2 several; of switches -1"`
	Party   []int    `json:"party" doc:"indices of parties; -1 none or not known yet, -2 several; of switches -1"`
	State   []int    `json:"state" doc:"indices of states"`
	Verdict []int    `json:"verdict" doc:"indices of verdicts: the worst of the node's end ports; for a tenant, of its own"`
}

// Links are cables by their lower ends.
type Links struct {
	A     []int `json:"a" doc:"indices of nodes"`
	APort []int `json:"a_port"`
	B     []int `json:"b" doc:"indices of nodes"`
	BPort []int `json:"b_port"`
	State []int `json:"state" doc:"indices of link_states"`
}

// States of a node, the places of their words. The first that is true counts, from the last.
const (
	stateActive   = iota // a link of it is Active
	stateInactive        // a link is up, and none is Active
	stateDown            // no link is up
	stateDrained         // a switch that carries nothing from one switch to another
	stateFenced          // what it is cabled to keeps it out of the subnet
	stateUnread          // some of it was not read
	stateMissing         // it is on the list of cables and was not found
)

var states = []string{"active", "inactive", "down", "drained", "fenced", "unread", "missing"}

// Verdicts on a node.
const (
	keptApart = iota
	unknown
	unenforced
	violated
)

var verdicts = []string{"kept-apart", "unknown", "unenforced", "violated"}

// States of a cable.
const (
	linkActive   = iota // both ends are Active
	linkInactive        // found, and not Active
	linkMissing         // on the list of cables, and not found
	linkUnlisted        // found, and not on the list
)

var linkStates = []string{"active", "inactive", "missing", "unlisted"}

// Owners that are none.
const (
	ownerNobody  = -1
	ownerSeveral = -2
)
