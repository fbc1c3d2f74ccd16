package observed

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Subnet is what a master subnet manager knows of its subnet and tells the
// administration of it.
type Subnet struct {
	// Fabric is the subnet as it was read back.
	Fabric *Fabric
	// Epoch is the same for snapshots of one Fabric between which nothing was
	// read otherwise than before but P_Key tables; of 0 nothing is known.
	Epoch uint64
	// Partitions are the policy's, resolved for this fabric.
	Partitions []Partition
	// Partial reports whether members may be missing that the policy gives: nothing follows from
	// who is not there.
	Partial bool
	// GIDPrefix is the prefix of every GID of the subnet.
	GIDPrefix uint64
	// Lifetime is how long a packet may be under way.
	Lifetime ib.TimeValue
	// Manager is the SMInfo of the master, at Fabric.Self; Others that of
	// further managers.
	Manager smp.SMInfo
	Others  []OtherManager
	// Aliases are the alias GUIDs that the policy gives to ports, by index
	// from 1, zero where there is none. No two ports have one.
	Aliases map[ib.PortGUID][]ib.PortGUID
	// LIDs are the LIDs that were assigned to ports. Whatever a device says,
	// its port has the assigned one here; where there is none counts what was
	// read.
	LIDs map[*Port]Assigned
	// Expelled are ports that are not let in: they are nobody, whatever they
	// claim to be.
	Expelled map[*Port]bool
	// Trusted are the ports that may ask for everything.
	Trusted map[ib.PortGUID]bool
	// Levels are the service levels of paths; nil: those of the partitions.
	Levels *ServiceLevels
}

// Assigned are the LIDs of an end port: 1<<LMC of them, from LID up.
type Assigned struct {
	LID ib.LID
	LMC ib.LMC
}

// OtherManager is a subnet manager that is not master.
type OtherManager struct {
	Port *Port
	Info smp.SMInfo
}
