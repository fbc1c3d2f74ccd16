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
// their state, and read back a share of all tables, so that the light sweeps of a
// drift period read each of them once: a foreign value is reported and corrected. Devices that did not answer
// are asked between them, about once a second; when one answers it is read, and what it
// missed is written. PortStateChange is
// cleared only by a sweep that reads the ports after that, so that no change is
// missed, not even one during the first pass: the first light sweep finds it
// set and causes one more full sweep.
//
// A standby reads the whole subnet once in every drift period and writes nothing. What an
// earlier manager sent may still be under way when it takes over; see package mastership, Wait.
//
// A master with partners that would take over within Config.Election.MasterTimeout wants to be
// called more often than that. When it was not (event.Slept), it talks to managers only
// until a round of questions has shown that none is master, and, with AwaitConfirmation,
// until its policy has been confirmed; see package mastership, Nap.
//
// A device that stops answering while its link stays up keeps its tables, and
// so does the switch port before it. A new policy still removes from that switch
// port what it takes from the device; a partition that cannot be removed is not given to
// others. Behind a link that carries data there may be a device that no sweep
// of this engine has found. The partitions that it may use through the switch port
// before it (all of them, where that port does not enforce) are given to no port until
// it answers. If two devices claim one GUID, neither is in any partition but
// the default one.
//
// What the engine is doing is its phase, a value that only step enters and drops, by one table of
// states.
//
// The table of transitions, which is made from the code (transitions.go):
//
//	SubnetUnread -> Sweeping (startSweep)
//	    reads the whole subnet
//	    from New, Sweeping, Electing, Reading, Watching, Standby, Refused, Pausing
//	LinksChanged -> Sweeping (revisit)
//	    reads what is behind links that changed
//	    from Sweeping, Watching
//	MasterUnknown -> Electing (startElection)
//	    asks the other managers for SMInfo
//	    from Sweeping, Watching
//	KeysDue -> Keying (secure)
//	    writes the M_Keys that ports are to have
//	    from Sweeping, Electing, Reading, Refreshing, Watching
//	TablesUnread -> Reading (readRest)
//	    reads the tables with these keys
//	    from Sweeping, Electing, Keying, Refreshing
//	MustWait -> Pausing (pause)
//	    waits until nothing that an earlier manager sent is under way
//	    from Sweeping, Electing, Announcing, Reading, Refreshing
//	WaitOver -> Refreshing (refresh)
//	    reads PortInfo and SwitchInfo again
//	    from Sweeping, Electing, Announcing, Pausing
//	NewMaster -> Announcing (announce)
//	    writes MasterSMLID, or moves the LID of the master, before the wait is over
//	    from Sweeping, Electing
//	Planned -> Applying (write)
//	    writes a plan: of a pass, of a repair, of groups or of routes around links
//	    from Sweeping, Electing, Reading, Watching
//	Carry -> Applying (Carry)
//	    writes what the caller wants
//	    from Held
//	Handover -> Releasing (release)
//	    clears the M_Keys for a manager that does not share the secret
//	    from Watching
//	Revoked -> Narrowing (narrow)
//	    writes what a new policy takes away, by the last snapshot
//	    from Watching
//	CheckDue -> Checking (startCheck)
//	    asks switches for changes and reads back a share of the tables
//	    from Watching
//	Done -> Watching (applying.applied, checking.advance, keying.secured, narrowing.advance, regrouped, releasing.advance, rerouted)
//	    ends what was under way
//	    from Applying, Keying, Checking, Releasing, Narrowing
//	GivesWay -> Watching (giveWay)
//	    interrupts what is under way for a new policy
//	    from Sweeping, Electing, Reading, Applying, Checking
//	Contested -> Watching (revisited)
//	    drops what was read behind links: a device of it is elsewhere in the snapshot
//	    from Sweeping
//	Robbed -> Watching (swept)
//	    writes nothing: the port of this manager has lost the LID of the master
//	    from Sweeping
//	PolicyRefused -> Watching (refuse)
//	    goes on with the policy in force
//	    from Sweeping, Electing, Reading, Watching
//	Refused -> Refused (refuse)
//	    waits for another policy, or to try again: no policy is in force
//	    from Sweeping, Electing, Keying, Reading, Watching, Refused
//	LockedOut -> Refused (lockOut)
//	    waits for the keys that other managers stored: devices do not accept this one's
//	    from Sweeping, Electing, Keying
//	UnexpectedMaster -> Refused (electedNamed)
//	    leaves the subnet to a master that does not count
//	    from Electing
//	Held -> Held (carrying.carriedOut, lead)
//	    waits for Carry (Config.Hold)
//	    from Electing, Reading, Applying
//	Standby -> Standby (stoodBy)
//	    stands by for the master
//	    from Electing, Reading
//	Takeover -> Standby (abandonReading)
//	    drops what was read as standby, to read it after the wait
//	    from Sweeping, Electing, Reading, Refreshing, Checking
//	Deposed -> Standby (announcing.advance, applying.applied, carrying.carriedOut, held.resign, keying.secured, pausing.resign, refreshing.advance, rest, watching.resign)
//	    ends what was under way: another manager is master
//	    from Watching, Held, Pausing, Applying, Keying, Checking, Releasing, Announcing, Refreshing
//	OthersWrote -> Watching (SetLease, hears, lookAtLease, naps)
//	    drops what was under way, and has the subnet read again: another manager may have written
//	    from any but New and Held
//	LostMeanwhile -> Standby (dropWork)
//	    does the same as a standby: this manager is not master any more
//	    from any but New and Held
//	Internal -> Watching (recover)
//	    does the same as master, after a step that this table does not have
//	    from any but New
package engine
