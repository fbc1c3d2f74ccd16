package snapshot

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// Version is the version of the form that Write writes and Read reads.
const Version = 1

// Bounds of what Read takes.
const (
	// MaxLine bounds a line, in bytes: a switch of 254 ports with every table
	// needs about a third of it.
	MaxLine = 64 << 20
	// MaxNodes bounds the nodes; the unicast LID space holds no more.
	MaxNodes = 0xBFFF
)

// Names of what a reading can be asked for beyond nodes, ports, links and P_Key
// tables: they stand in Snapshot.Asked.
const (
	AskedAudit      = "audit"      // P_KeyTables of all switch ports, SMInfo, GUIDInfo
	AskedForwarding = "forwarding" // forwarding tables of switches
	AskedMulticast  = "multicast"  // multicast forwarding tables of switches
	AskedQoS        = "qos"        // SLToVLMappingTable and VLArbitrationTable
)

// Snapshot is what was read from a fabric.
type Snapshot struct {
	// ReadAt is when the reading began: nothing in it is older.
	ReadAt time.Time
	// Source names the fabric that was read, as it was given.
	Source string
	// Asked tells how far the reading went, in the order of the alphabet. What
	// is not here was not asked for, and is not read for that reason.
	Asked  []string
	Fabric *observed.Fabric
	// Faults tells what could not be read or used, and why.
	Faults []Fault
	// Concealed reports whether something else stands in place of every key: keys of
	// this snapshot can be compared with each other and with no others.
	Concealed bool
}

// Fault is a place and what could not be read there, and why.
type Fault struct {
	Where string `json:"where"`
	Why   string `json:"why"`
}

// String joins place and reason.
func (f Fault) String() string { return f.Where + ": " + f.Why }
