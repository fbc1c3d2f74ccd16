// Package mastership is one manager's part in who is master of a subnet, and its one answer to
// whether it may write, and until when: Mastership.MayWrite.
//
// The rules, which docs/dev/election.md has in words for operators:
//
//   - Without a shared store the SMInfo election decides: the master may write for as long as it is
//     master.
//   - With a shared store the lease decides, and SMInfo announces: the master may write for as long as
//     the lease stands, or while every other manager says that it is not master (Right).
//   - A master that did not run for longer than its partners wait for it writes nothing until it knows
//     that none has taken over (Nap).
//   - When a manager starts or takes over, it reads and writes nothing for good until what an earlier
//     manager sent has arrived or is lost (Wait).
//
// # The SMInfo election
//
// An Election is the SMInfo state machine. The states are not active, discovering, standby and
// master.
//
// In: SMInfo requests (Serve, Receive), the other managers that a discovery
// found (Decide), answers (Answered), and
// time (Tick). Out: the reply, a Verdict, and Effects: messages to send, and
// whether to discover the subnet and call Decide again. Time is counted from
// any fixed origin; Due says when to call Tick next.
//
// An Election begins as discovering. Higher priority outranks lower, and on a
// tie the lower GUID. No manager becomes master while it sees another master:
// a master of lower rank hands over with HANDOVER, which is answered
// with ACKNOWLEDGE. A standby polls its master and takes
// over, after discovering, when the master reports that it is no longer master, or when
// too many polls in a row get no answer or an unchanged ActCount.
//
// A manager that shares a secret with this one (ElectionConfig.Key) is given up within
// ElectionConfig.MasterTimeout of its end: it is polled five times in that time, and four polls
// in a row have to fail. One lost packet, or one lost poll, ends nothing: each poll is
// sent again by its sender's window as long as the next is not due. Any other manager is
// polled at PollInterval, and given up after Polls: OpenSM does not answer while it is
// busy. Effects.Since is when the first of the polls was sent that stayed unanswered: a
// manager that still ran then would have answered it, so nothing that it sent left later.
//
// With ElectionConfig.Named only named managers count: those that are listed
// or share a secret with this one, and that answer from the
// port that they claim. Such a manager is sent the key of the pair, or that of
// ElectionConfig when it is listed; no other manager is sent a key. HANDOVER, DISABLE and
// DISCOVER are accepted only from the manager that is polled, STANDBY from any that
// counts, since it only ends the state not active, and ACKNOWLEDGE only from the
// manager that was offered mastership.
//
// Without it only managers in ElectionConfig.Trusted count, and if there is an SMKey, a control
// packet must carry it. The key is sent to trusted managers only, and shown only to
// a master that presented it. Without a list of trusted managers any manager of
// higher rank is handed the subnet, and the key. A request that is not legal in the
// present state is answered with mad.StatusInvalidField and changes nothing.
//
// A master hands over to a standby of lower rank when its administrator asks for it
// (HandOver). It tells a lower rank than that one's until it is master again, so that
// nobody hands the subnet back; where no rank is lower, the new master remembers it.
//
// docs/dev/election.md names what is promised of several managers, and how it is searched.
//
// An Election is not safe for concurrent use.
//
// # The other managers
//
// Peers is what a subnet manager and the others of its subnet tell each other: SMInfo asked and
// answered, polls, control packets and trap 144, who of them counts, and which of them are rogues.
// The Election decides what follows from it.
//
// In: SMInfo requests (Receive), PortInfo that was read (Note, LookFor), packets of
// its windows (Window), and time (Expire, Tick, Advance). Out: requests (Next), calls of
// its Host, and when it wants to be called again (Due).
//
// With a profile only named managers count, those that are listed or share a secret,
// at the port that they claim. They are asked in rounds (Ask), for which a master does
// not wait. Without one, every port with IsSM set is asked in each election.
//
// Managers that share a secret tell each other which policy is in force, with a proof (see
// policy.go). That another has the same gives it nothing; that it has another bounds what is
// given after it is gone.
//
// Package lease decides until when a subnet manager may write to devices, where several
// managers share a store. Devices do not know who is master: a former master that is cut off
// from the others would go on writing to switches that it still reaches. So the right to
// write is a record in the store, which its holder renews, and which another manager takes
// only after it has stood unchanged for its whole term.
//
// Keeper is one manager's view of that record, Right what its engine makes of it. Both are
// values; time is that of their caller, from any origin, and never goes back.
//
// Why no two write at once: the holder counts from when it sent the last renewal that
// succeeded, another manager from when it saw the record last, which was later, and takes it
// only if it is still the one that it saw. So all that the holder may do ends before another
// begins, whatever was lost or late, as long as the clocks of the two run at the same rate
// (Margin is for the difference).
//
// When the store does not answer the holder either, it goes on for as long as every other
// manager that it has met says, each time that it is asked, that it is not master. A manager
// that says so to a master promises by it that it writes nothing for AnswerTTL.
//
// # A master that did not run
//
// Nap is the doubt of a master that did not run for longer than its partners wait for
// it: one of them may have taken over, and carried out a newer policy. Until all have been
// asked and none is master, and whoever keeps the policy has confirmed it, the engine talks
// to managers only: what it had begun to write is not sent again.
//
// # The wait for what an earlier manager sent
//
// Wait is its state. A standby reads the whole subnet once in every drift period and writes nothing. When it
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
//
// The search (search_*_test.go) looks through the states of several subnet managers for one that
// breaks a promise of the election or of the store's fencing.
//
// The managers are values of Election, the code that runs in the manager. The
// search copies them, does every thing that could happen next to each copy, and goes on
// from every state that it has not seen before. docs/dev/election.md names the properties,
// what can happen, and what the search leaves out.
package mastership
