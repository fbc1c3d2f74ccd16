// Package quiet is the wait for what an earlier manager sent.
//
// A standby reads the whole subnet once in every drift period and writes nothing. When it
// takes over, and when a manager starts, what an earlier manager sent may still be under
// way, for transact.Limits.Lifetime at the most. The order of reads makes it safe to discover
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
package quiet

import "time"

// Quiet is the wait for packets that an earlier manager has sent. Until its end nothing
// is written, and nothing that a manager writes is read for good: a late copy of a write
// could change it afterwards, and nobody would know. What no manager writes, who is there
// and how the cables run, is read meanwhile.
type Quiet struct {
	Began bool          // the engine was told the time
	Until time.Duration // the end of the wait
	// Stale tells that the sweep under way began before the end of the wait: PortInfo
	// and SwitchInfo are read again after it, and tables not before.
	Stale bool
	// AtStart tells that it is the wait of a start, which ends early on a subnet that
	// nobody has managed; Trial, that the tables are read to find that out.
	AtStart, Trial bool
	// Abandon tells that what is being read was begun as standby.
	Abandon bool
}
