package observed

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Trust is what a subnet manager is to the one that tells of it.
type Trust string

// Kinds of trust.
const (
	// TrustSelf: it is the one that tells.
	TrustSelf Trust = "self"
	// TrustShared: it has proved that it shares the secret.
	TrustShared Trust = "shared"
	// TrustListed: it is listed by the GUID of its port, or every manager counts.
	TrustListed Trust = "listed"
	// TrustNone: it does not count.
	TrustNone Trust = "none"
	// TrustUnknown: who reads has no secret to compare with, and no list.
	TrustUnknown Trust = "unknown"
)

// PolicyOf compares the policy of a subnet manager with that of the one that tells of it.
type PolicyOf string

// What is known of a policy. An older version tells nothing of its own.
const (
	PolicySame    PolicyOf = "same"
	PolicyOther   PolicyOf = "other"
	PolicyUnknown PolicyOf = "unknown"
)

// SubnetManager is a subnet manager of a subnet, as another program sees it. It has no
// key.
type SubnetManager struct {
	// Port is the end port that the manager is behind: that port's own GUID, whatever
	// the manager says.
	Port ib.PortGUID
	Node ib.NodeGUID
	Name string // what the node says of itself
	Num  ib.PortNum
	LID  ib.LID
	// IsSM reports whether the port says that a manager is behind it.
	IsSM bool
	// Answered reports whether the manager has answered SMInfo; else State and Priority mean
	// nothing.
	Answered bool
	State    smp.SMState
	Priority uint8
	// Claims is the GUID in its SMInfo: Port, for an honest manager.
	Claims ib.PortGUID
	// ActCount is its count of acts. Compared says that it has answered twice or more,
	// and Moving that the count was another the last time.
	ActCount         uint32
	Compared, Moving bool
	// ShowsKey reports whether there was an SM_Key in its answer.
	ShowsKey bool
	Trust    Trust
	// Why says why it does not count; empty where it does. Nothing in it is from a device.
	Why string
	// Policy reports whether its policy is that of the one that tells, by what it has proved;
	// empty for who shares no secret. PolicySum is a keyed sum of it.
	Policy    PolicyOf
	PolicySum [16]byte
	// Silent is how long ago it answered last, and Missed how many requests it has not
	// answered since.
	Silent time.Duration
	Missed int
}

// IsMaster reports whether a manager answers that it is master.
func (m *SubnetManager) IsMaster() bool {
	return m.Answered && m.Missed == 0 && m.State == smp.SMMaster
}

// Counts reports whether a manager takes part in the election.
func (m *SubnetManager) Counts() bool {
	return m.Trust == TrustSelf || m.Trust == TrustShared || m.Trust == TrustListed
}

// Hear enters an answer of the manager.
func (m *SubnetManager) Hear(info *smp.SMInfo) {
	m.Compared, m.Moving = m.Answered, m.Answered && m.ActCount != info.ActCount
	m.Answered, m.Missed, m.ActCount = true, 0, info.ActCount
	m.State, m.Priority, m.Claims, m.ShowsKey = info.SMState, info.Priority, info.GUID, info.SMKey != 0
}
