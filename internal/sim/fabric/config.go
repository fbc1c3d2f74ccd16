package fabric

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Limits of a fabric.
const (
	// MaxPackets is how many packets may be under way or unread at once; more
	// are discarded for want of a buffer.
	MaxPackets = 1 << 18
	// MaxKinds is how many kinds of packet, by method and attribute, are counted:
	// hosts can send any.
	MaxKinds = 1 << 12
	// MaxInbox is how many packets may wait to be received at one Attachment.
	MaxInbox = 1 << 16
)

// Config says how a fabric behaves. The zero value is a fabric without delays,
// loss or hooks.
type Config struct {
	// Seed is where all chance comes from.
	Seed uint64
	// HopDelay is the time to cross one link and the node before it.
	HopDelay time.Duration
	// AgentDelay is the time from a packet's arrival at an agent to its
	// answer's departure; up to Jitter, drawn evenly, is added to it. Both together
	// are no longer than the port's RespTimeValue.
	AgentDelay, Jitter time.Duration
	// Hardware, when set, has the delays of management packets on real devices.
	Hardware *Hardware
	// TrainDelay is the time that a link takes to train. Links that are
	// cabled from the start are up at once.
	TrainDelay time.Duration
	// SelfTest is how long a device that is switched on tests itself before its
	// links train. Devices that are there from the start have done so.
	SelfTest time.Duration
	// Loss is the probability, 0 to 1, that a packet is lost on its way, be it
	// a request, an answer or a trap. Packets that cross no link are not.
	Loss float64
	// WireTime lets a data packet keep a link busy for as long as its bytes
	// take at the link's rate, and arrive that much later.
	WireTime bool
	// DataTrace, when set, is told of every data packet, wherever it gets to.
	DataTrace func(DataSighting)
	// Profile, when set, changes what a device is capable of from the default
	// profile in c; it must do the same each time it is called for a node.
	Profile func(n *topology.Node, c *sma.Config)
	// Drop, when set, is asked about every packet as it leaves its origin;
	// true loses it.
	Drop func(now time.Duration, m *[mad.Size]byte) bool
	// Trace, when set, is told of every packet, wherever it gets to.
	Trace func(Sighting)
}

// DefaultConfig has the delays of a real fabric: some hundred nanoseconds for
// a link and a switch, some microseconds for an agent.
func DefaultConfig() Config {
	return Config{
		Seed:       1,
		HopDelay:   300 * time.Nanosecond,
		AgentDelay: 10 * time.Microsecond,
		Jitter:     5 * time.Microsecond,
		WireTime:   true,
	}
}

// check refuses what makes no sense.
func (c *Config) check() error {
	switch {
	case c.Loss < 0 || c.Loss > 1 || c.Loss != c.Loss:
		return fmt.Errorf("loss %v: want a probability, 0 to 1", c.Loss)
	case c.HopDelay < 0 || c.AgentDelay < 0 || c.Jitter < 0 || c.TrainDelay < 0 || c.SelfTest < 0:
		return fmt.Errorf("delays %v, %v, %v, %v, %v: want none below 0", c.HopDelay, c.AgentDelay, c.Jitter, c.TrainDelay, c.SelfTest)
	}
	return c.Hardware.check()
}

// device is the configuration of a node's agent.
func (c *Config) device(n *topology.Node) sma.Config {
	d := DeviceProfile(n)
	if c.Profile != nil {
		c.Profile(n, &d)
	}
	return d
}

// Fault is how one node misbehaves.
type Fault struct {
	// Mute keeps the agent from taking in and sending anything. A mute switch
	// still passes on what others send.
	Mute bool
	// Late is added to the agent's delay, whatever its RespTimeValue promises.
	Late time.Duration
	// Drop, when set, is asked about every packet that arrives at the node,
	// by the port that it arrives at; true loses it.
	Drop func(now time.Duration, in ib.PortNum, m *[mad.Size]byte) bool
	// Alter, when set, changes the answers of the agent before they leave: a
	// node that lies.
	Alter func(now time.Duration, m *[mad.Size]byte)
}

// mute reports whether a node's agent takes in and sends nothing.
func (b *behaviour) mute() bool { return b.fault != nil && b.fault.Mute }

// drops reports whether a node loses a packet that arrives by port in.
func (b *behaviour) drops(now time.Duration, in ib.PortNum, packet *[mad.Size]byte) bool {
	return b.fault != nil && b.fault.Drop != nil && b.fault.Drop(now, in, packet)
}
