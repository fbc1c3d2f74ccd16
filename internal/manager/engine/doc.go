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
// A standby reads the whole subnet once in every drift period and writes nothing. When it
// takes over, and when a manager starts, what an earlier manager sent may still be under
// way, for Limits.Lifetime at the most. The order of reads makes it safe to discover
// meanwhile. Before the end of the wait the engine reads who is there and how the cables
// run, which no manager writes. After it, it reads again all that a manager writes:
// PortInfo and SwitchInfo of every port and switch, then the tables. What is planned and
// proved rests on these reads only, and no write of an earlier manager can land after
// them. The wait of a takeover counts from the first poll that the master left
// unanswered, since it sent nothing after that, or from its handover. Only MasterSMLID is
// written before the end of the wait, and only where the subnet was as the policy wants
// it when it was last read: it grants nothing, the rest of PortInfo is written as it was
// just read, at end ports only, where no P_Key is checked for others, and a late write that
// changes it back, or that it changes back, is found after the wait. The wait of a start ends
// early on a subnet without a trace of a manager: no LID, M_Key, check or link that carries
// data, and after that no P_Key table with more than the default partition. A manager that
// was killed before the first of its writes landed anywhere leaves no trace: what it sent
// is found as a foreign change.
//
// Where the policy sets a LID aside for the master (master_sm_lid), that moves instead of
// MasterSMLID being written: apply.Move has the order. It is no less safe before the end of
// the wait. The former master's port, and any other that has the LID, is given its own
// first, and that write can be lost or undone: then two ports have the LID, and
// forwarding decides. Of a forwarding table the block is written as it was read just before,
// but for that entry; a late write of the former master between the two, or after
// them, changes routes only, and no route lets anybody reach anybody: it is found after the
// wait, when all tables are read. A master that finds its port without the LID was
// taken for dead: it writes nothing before it has asked who is master, and not while
// another is. In the wait nothing is read for good here either.
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
