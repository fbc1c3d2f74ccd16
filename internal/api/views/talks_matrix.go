// talks*.go: tells callers of the API who can talk with whom: tenants and other end ports
// by classes, and port by port. The provider sees all, a tenant its own ports and how they
// stand to others.

package views

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
)

// Matrix says who can talk with whom.
type Matrix struct {
	ReadAt  time.Time     `json:"read_at" doc:"when the fabric was read"`
	Verdict string        `json:"verdict" doc:"of the whole proof, as GET /proof has it"`
	Parties []MatrixParty `json:"parties"`
	Cells   []MatrixCell  `json:"cells" doc:"pairs of parties"`
	Sparse  bool          `json:"sparse,omitempty" doc:"there are too many pairs of parties to list all: those that are absent are kept apart, and none of their ports can talk"`
}

// Kinds of parties.
const (
	kindTenant  = "tenant"
	kindPorts   = "ports"
	kindManager = "manager" // for a tenant
	kindOthers  = "others"
)

// MatrixParty is a number of end ports.
type MatrixParty struct {
	Name       string   `json:"name" doc:"of a tenant; of others what they have in common"`
	Kind       string   `json:"kind" enum:"tenant,ports,manager,others" doc:"tenant: the ports of one; ports: ports of no tenant with the same keys, for a tenant those of others that it sees; manager: for a tenant the port of the subnet manager; others: for a tenant all other ports that it does not see"`
	Owner      string   `json:"owner,omitempty" doc:"the tenant whose ports they are"`
	Ports      int      `json:"ports" doc:"how many were found; 0 for manager and others"`
	Partitions []string `json:"partitions" doc:"those of which a port has a key, as far as the caller knows them, at most 16"`
	Example    string   `json:"example,omitempty" doc:"GUID of one of the ports"`
}

// MatrixCell is how two parties stand to each other, or the ports of one party among themselves.
type MatrixCell struct {
	A          int            `json:"a" doc:"index in parties"`
	B          int            `json:"b" doc:"index in parties, not less than a"`
	Talk       string         `json:"talk" enum:"all,some,none,unknown" doc:"which pairs of ports can talk, by the keys that both hold; unknown: none of those that were read"`
	Pairs      int            `json:"pairs" doc:"pairs of ports; against manager and others: ports of the caller"`
	Talking    int            `json:"talking" doc:"those that can talk; against manager and others: ports that can talk with one of them"`
	Unread     int            `json:"unread,omitempty" doc:"those of which the keys were not read whole, and that share none that was read"`
	Allowed    *int           `json:"allowed,omitempty" doc:"those that the policy lets talk"`
	Violations int            `json:"violations,omitempty" doc:"those that can talk and may not"`
	Verdict    string         `json:"verdict" enum:"kept-apart,unknown,unenforced,violated" doc:"the worst on the pairs that the policy keeps apart, and unknown where the keys of any were not read; kept-apart where there is none. unenforced: no switch would hold a host that forged its table"`
	Partitions []string       `json:"partitions,omitempty" doc:"those over which pairs talk, as far as the caller knows them, at most 16"`
	Reason     string         `json:"reason" doc:"why, in words"`
	Witness    *MatrixWitness `json:"witness,omitempty" doc:"two ports that can talk and may not, where there are such, else two that can talk"`
}

// MatrixWitness is two ports that can talk.
type MatrixWitness struct {
	From string `json:"from" doc:"GUID"`
	To   string `json:"to,omitempty" doc:"GUID; absent where the caller does not see the port"`
	PKey string `json:"pkey,omitempty" doc:"the key of the first"`
}

// MatrixPorts is who can talk with whom of two parties, port by port.
type MatrixPorts struct {
	ReadAt      time.Time          `json:"read_at"`
	A           string             `json:"a"`
	B           string             `json:"b"`
	Rows        []EndPort          `json:"rows" doc:"ports of a"`
	Columns     []EndPort          `json:"columns" doc:"ports of b"`
	RowsMore    int                `json:"rows_more" doc:"ports of a after these"`
	ColumnsMore int                `json:"columns_more" doc:"ports of b after these"`
	Cells       [][]MatrixPortCell `json:"cells" doc:"a list for each row, with an element for each column"`
}

// MatrixPortCell is how two ports stand to each other.
type MatrixPortCell struct {
	Talk       string   `json:"talk" enum:"all,none,unknown" doc:"all: they can; none also for a port with itself"`
	Verdict    string   `json:"verdict,omitempty" enum:"kept-apart,unknown,unenforced,violated" doc:"absent for kept-apart"`
	Partitions []string `json:"partitions,omitempty" doc:"those over which they can talk, at most 16"`
	Reason     string   `json:"reason,omitempty" doc:"why not, or what the verdict rests on; absent where they share no partition"`
}

// listed bounds the names of partitions in a list.
const listed = 16

// word is a verdict on two parties, as a map has it too.
func word(v isolation.Verdict) string {
	switch v {
	case isolation.Isolated, isolation.Unguarded:
		return "kept-apart"
	case isolation.ByEndPorts:
		return "unenforced"
	case isolation.Violated:
		return "violated"
	}
	return "unknown"
}

// named are the names of partitions, of those that the caller knows.
func (v *view) named(list []ib.PKeyBase) (out []string) {
	for _, k := range list {
		if name, knows := v.name(k); knows && len(out) < listed {
			out = append(out, name)
		}
	}
	return out
}

// talk is which pairs can talk.
func talk(pairs, talking, unread int) string {
	switch {
	case talking == pairs && pairs > 0:
		return "all"
	case talking > 0:
		return "some"
	case unread > 0:
		return "unknown"
	}
	return "none"
}
