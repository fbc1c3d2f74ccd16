// Package engine is the subnet manager as an engine: it sweeps a subnet, computes the
// desired tables, writes the difference, proves isolation from what was read
// back, and monitors the subnet.
//
// The engine is a value. In: packets (Receive), lost packets
// (Lost), time (Expire), a policy (SetPolicy). Out: packets (Next), when it
// wants to be called again (Deadline), and events (Event).
// It has no clock, socket or goroutine; the same inputs give the same outputs.
//
// One pass is observe, desire, diff, apply, prove. Nothing is written before
// the whole policy is known to fit the fabric that was found; a policy that
// does not fit is refused and changes nothing. While another
// manager is master of the subnet nothing is written either.
//
// After the first pass, light sweeps ask every switch for changes and other managers for
// their state, and read back a share of all tables, so that every table is read once within
// a drift period: a foreign value is reported and corrected. Devices that did not answer
// are asked between them, about once a second; when one answers it is read, and what it
// missed is written. PortStateChange is
// cleared only by a sweep that reads the ports after that, so that no change is
// missed, not even one during the first pass: the first light sweep finds it
// set and causes one more full sweep.
//
// A standby reads the whole subnet once in every drift period and writes nothing. What an
// earlier manager sent may still be under way when it takes over; see package quiet.
//
// A master with partners that would take over within Config.MasterTimeout wants to be
// called more often than that. When it was not (event.Slept), it talks to managers only
// until a round of questions has shown that none is master, and, with AwaitConfirmation,
// until its policy has been confirmed; see package nap.
//
// A device that stops answering while its link stays up keeps its tables, and
// so does the switch port before it. A new policy still removes from that switch
// port what it takes from the device; a partition that cannot be removed is not given to
// others. Behind a link that carries data there may be a device that no sweep
// of this engine has found. The partitions that it may use through the switch port
// before it (all of them, where that port does not enforce) are given to no port until
// it answers (Doubtful). If two devices claim one GUID, neither is in any partition but
// the default one.
package engine
