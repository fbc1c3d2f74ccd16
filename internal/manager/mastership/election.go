package mastership

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Defaults of ElectionConfig.
const (
	DefaultPollInterval = time.Second
	DefaultPolls        = 3
	// DefaultMasterTimeout is what package engine sets ElectionConfig.MasterTimeout to.
	DefaultMasterTimeout = 400 * time.Millisecond
	// MinMasterTimeout leaves each poll time to be sent again.
	MinMasterTimeout = 50 * time.Millisecond
)

// partnerPolls is how many polls in a row a manager that shares a secret with this one
// has to leave unanswered before it is given up. Each of them is sent more than once.
const partnerPolls = 4

const maxPriority = 15

// ElectionConfig is what an Election is told once.
type ElectionConfig struct {
	// GUID is that of the port that the subnet manager is behind.
	GUID ib.PortGUID
	// Priority is 0 to 15, the highest.
	Priority uint8
	// SMKey is what trusted managers know each other by; 0 for none.
	SMKey ib.SMKey
	// ShowKey puts SMKey into every answer. OpenSM asks without showing a key
	// and ignores a manager whose answer lacks its own (1 unless configured).
	ShowKey bool
	// PollInterval is the time between two polls of a master, and between two
	// tries to hand over; 0 for DefaultPollInterval.
	PollInterval time.Duration
	// Polls is how many in a row may fail; 0 for DefaultPolls.
	Polls int
	// MasterTimeout is how long a manager that shares a secret with this one is polled
	// in vain at the most, from its end until it is given up, in place of PollInterval
	// and Polls; 0 for those.
	MasterTimeout time.Duration
	// Trusted lists the managers that count; all do when it is nil and Named is
	// not set.
	Trusted []ib.PortGUID
	// Named makes count only who is in Trusted, or shows by Key that it shares
	// a secret with this manager; and only where Address.Port, the port that an
	// SMInfo comes from, is the port that it names.
	Named bool
	// Key is the SM_Key that the manager at one port shows to the one at
	// another, and to nobody else; nil where no secret is shared.
	Key func(from, to ib.PortGUID) ib.SMKey
}

// Address is the way to another manager: a directed route, or a LID when that
// is not zero.
type Address struct {
	Path mad.Path
	LID  ib.LID
	// Port is the port that is known to be there, whatever the manager behind
	// it says; 0 for none.
	Port ib.PortGUID
}

func (a Address) known() bool { return a.LID != ib.LIDReserved || a.Path != nil }

// Remote is another subnet manager as it was last seen.
type Remote struct {
	Info    smp.SMInfo
	Address Address
}

// Message is an SMInfo request to send. A Get has no Control, and zero Info
// unless ElectionConfig.Named is set; a Set has Control as its modifier and carries
// Info.
type Message struct {
	To      Address
	GUID    ib.PortGUID // of the manager it goes to
	Method  mad.Method
	Control smp.SMControl
	Info    smp.SMInfo
}

// Effects is what follows from an input.
type Effects struct {
	// Send is to be sent, in this order.
	Send []Message
	// Sweep asks for a discovery, and for Decide when it has ended.
	Sweep bool
	// From and To are the states before and after; they differ when the state
	// has changed.
	From, To smp.SMState
	// Why says for people what happened; empty when nothing did.
	Why string
	// Lost reports whether a manager was given up, which has not been heard of since Since:
	// when the first of the polls was sent that it left unanswered.
	Lost  bool
	Since time.Duration
	// Former is the manager that this one stands by for no more; 0 for none.
	Former ib.PortGUID
}

// Election is one subnet manager's part in the election.
type Election struct {
	config   ElectionConfig
	state    smp.SMState
	actCount uint32
	// watch is the manager that is polled: by a standby its master, by a
	// master another one that has to hand over.
	watch polled
	// offer is the manager that mastership is offered to.
	offer offer
	// offered is the last offer of this mastership that was not refused, whether it is open
	// or not: a manager may have taken it although that was not seen in time.
	offered offer
	// down is the last planned handover of this manager, and kept the manager that
	// handed over to this one although it ranks higher.
	down stepDown
	kept smp.SMInfo
	// frozen is a manager that answers but does nothing any more. It does not
	// count until its ActCount moves.
	frozen smp.SMInfo
}

// NewElection returns an engine that is discovering: the caller sweeps, and calls
// Decide.
func NewElection(c ElectionConfig) (*Election, error) {
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.Polls == 0 {
		c.Polls = DefaultPolls
	}
	switch {
	case c.GUID == 0:
		return nil, errors.New("subnet manager: port GUID is 0")
	case c.Priority > maxPriority:
		return nil, fmt.Errorf("subnet manager: priority %d, want 0 to %d", c.Priority, maxPriority)
	case c.PollInterval < 0:
		return nil, fmt.Errorf("subnet manager: poll interval %v, want more than 0", c.PollInterval)
	case c.MasterTimeout != 0 && c.MasterTimeout < MinMasterTimeout:
		return nil, fmt.Errorf("subnet manager: master timeout %v, want at least %v", c.MasterTimeout, MinMasterTimeout)
	case c.Polls < 0:
		return nil, fmt.Errorf("subnet manager: %d polls, want 1 or more", c.Polls)
	}
	c.Trusted = slices.Clone(c.Trusted)
	return &Election{config: c, state: smp.SMDiscovering}, nil
}

// State is what the manager is doing.
func (e *Election) State() smp.SMState { return e.state }

// Act counts management acts: packets sent, or anything else that shows that
// the manager is alive. Replies and messages of the engine are counted by it.
func (e *Election) Act(acts uint32) { e.actCount += acts }

// Info is the manager's own SMInfo, key included.
func (e *Election) Info() smp.SMInfo { return e.info() }

// InfoFor is the manager's own SMInfo with the key that the manager at a port
// knows it by: none for one that is not named.
func (e *Election) InfoFor(to ib.PortGUID) smp.SMInfo {
	info := e.info()
	info.SMKey = e.keyFor(to)
	return info
}

// info is the manager's own SMInfo, key included.
func (e *Election) info() smp.SMInfo {
	return smp.SMInfo{
		GUID: e.config.GUID, SMKey: e.config.SMKey, ActCount: e.actCount,
		Priority: e.priority(), SMState: e.state,
	}
}

// outranks reports whether a is to be master rather than b.
func outranks(a, b *smp.SMInfo) bool {
	return a.Priority > b.Priority || a.Priority == b.Priority && a.GUID < b.GUID
}

func (e *Election) outranks(other *smp.SMInfo) bool {
	own := e.info()
	return outranks(&own, other)
}

// move changes the state and says why.
func (e *Election) move(to smp.SMState, why string, args ...any) Effects {
	from := e.state
	e.state, e.offered = to, offer{}
	if to == smp.SMMaster {
		e.down = stepDown{} // it ranks as it is configured
	} else {
		e.kept = smp.SMInfo{}
	}
	return Effects{From: from, To: to, Why: fmt.Sprintf(why, args...)}
}

// still is the effect of an input that changes no state.
func (e *Election) still() Effects { return Effects{From: e.state, To: e.state} }

// control is a control packet to another manager, with the state as it is.
func (e *Election) control(c smp.SMControl, to Remote) Message {
	e.actCount++
	return Message{To: to.Address, GUID: to.Info.GUID, Method: mad.MethodSet, Control: c, Info: e.InfoFor(to.Info.GUID)}
}

// Order returns the control packet by which a master turns a standby not
// active, returns it to standby, or sends it to discovering.
func (e *Election) Order(c smp.SMControl, to Remote) (Message, error) {
	switch {
	case c != smp.SMControlDisable && c != smp.SMControlStandby && c != smp.SMControlDiscover:
		return Message{}, fmt.Errorf("SMInfo control %d cannot be ordered, want %d, %d or %d",
			c, smp.SMControlDisable, smp.SMControlStandby, smp.SMControlDiscover)
	case e.state != smp.SMMaster:
		return Message{}, fmt.Errorf("SMInfo control %d: this manager is %s, want master", c, e.state)
	case !e.counts(&to):
		return Message{}, fmt.Errorf("SMInfo control %d: manager %s is not trusted", c, to.Info.GUID)
	}
	return e.control(c, to), nil
}
